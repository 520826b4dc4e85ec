//! Helpers of the binary's tests: running it, and places for its files, which are removed on drop.
//!
//! Invariant: a place that this system does not offer is a skip, recorded by `fiord_testing`, never a silent pass.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

/// Longer than any run here takes; a longer run has hung.
pub const TIMEOUT: Duration = Duration::from_secs(60);

pub mod control_group;
pub mod flash;
pub mod flash_device;
pub mod fuse;
pub mod schema;
pub mod stalling;
pub mod study;

static NEXT: AtomicU32 = AtomicU32::new(0);

/// The result of a run.
#[derive(Debug)]
pub struct Ran {
    /// The exit status; `None` if a signal ended the process.
    pub status: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    /// The one JSON document on standard output.
    pub fn json(&self) -> Value {
        let document = serde_json::from_str(&self.stdout);
        let document = document.unwrap_or_else(|error| panic!("no JSON: {error}: {self:?}"));
        schema::assert_known(&document);
        document
    }

    /// Standard output and standard error together.
    pub fn all_output(&self) -> String {
        format!("{}{}", self.stdout, self.stderr)
    }

    #[track_caller]
    pub fn assert_status(&self, status: i32) -> &Ran {
        assert_eq!(self.status, Some(status), "{self:?}");
        self
    }

    /// Asserts exit status 0 and an empty standard error.
    #[track_caller]
    pub fn assert_success(&self) -> &Ran {
        self.assert_status(0);
        assert_eq!(self.stderr, "", "standard error of a run that went well");
        self
    }

    #[track_caller]
    pub fn assert_prints(&self, parts: &[&str]) -> &Ran {
        for part in parts {
            assert!(self.all_output().contains(part), "{part:?} is not in {self:?}");
        }
        self
    }
}

/// The binary with these arguments, separated by blanks, in a directory.
pub fn fiord(directory: &Path, line: &str) -> Command {
    let mut command = with_own_history(env!("CARGO_BIN_EXE_fiord"));
    command.args(words(line)).current_dir(directory);
    command
}

/// A program that runs fiord, whose runs are no history of whoever runs the tests, and follow no config file of theirs.
pub fn with_own_history(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.env("XDG_STATE_HOME", Path::new(env!("CARGO_TARGET_TMPDIR")).join("state"));
    command.env("XDG_CONFIG_HOME", Path::new(env!("CARGO_TARGET_TMPDIR")).join("no-config"));
    command
}

/// The words of a line. Tests run beside others, on a machine and a disk that may be busy, so a study looks for no
/// findings unless the test says so: they would decide its exit status.
pub fn words(line: &str) -> Vec<&str> {
    let mut words: Vec<&str> = line.split_whitespace().collect();
    let is_study = words.first().is_some_and(|first| {
        ["quick", "matrix", "sweep", "check", "capacity", "profile", "qualify"].contains(first)
    });
    if is_study && !line.contains("--trust") {
        words.insert(1, "--trust=off");
    }
    words
}

/// Runs it until it ends.
pub fn run(directory: &Path, line: &str) -> Ran {
    finish(start(fiord(directory, line)))
}

/// Runs it with this text on its standard input.
pub fn run_with_input(directory: &Path, line: &str, input: &str) -> Ran {
    let mut command = fiord(directory, line);
    command.stdin(Stdio::piped());
    let mut running = start(command);
    running.0.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    finish(running)
}

/// A run that has not been waited for; killed on drop, so that a test that fails leaves nothing behind.
pub struct Running(pub Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts it with pipes for its output.
pub fn start(mut command: Command) -> Running {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    Running(command.spawn().unwrap())
}

/// Waits for its end; kills it if it does not end.
pub fn finish(mut running: Running) -> Ran {
    let child = &mut running.0;
    let drain = |pipe: Option<Box<dyn Read + Send>>| {
        thread::spawn(move || {
            let mut bytes = Vec::new();
            pipe.map(|mut pipe| pipe.read_to_end(&mut bytes)).transpose().unwrap();
            String::from_utf8_lossy(&bytes).into_owned()
        })
    };
    let stdout = drain(child.stdout.take().map(|pipe| Box::new(pipe) as _));
    let stderr = drain(child.stderr.take().map(|pipe| Box::new(pipe) as _));
    let (done, watch) = mpsc::channel::<()>();
    let pid = child.id();
    let watchdog = thread::spawn(move || {
        if watch.recv_timeout(TIMEOUT) == Err(mpsc::RecvTimeoutError::Timeout) {
            signal(pid, "KILL");
        }
    });
    let status = child.wait().unwrap().code();
    drop(done);
    watchdog.join().unwrap();
    Ran { status, stdout: stdout.join().unwrap(), stderr: stderr.join().unwrap() }
}

/// Sends a signal by its name.
pub fn signal(pid: u32, name: &str) {
    let status = Command::new("sh").args(["-c", &format!("kill -{name} {pid}")]).status().unwrap();
    assert!(status.success(), "kill -{name} {pid}");
}

/// Polls a condition until it holds.
#[track_caller]
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + TIMEOUT;
    while !is_so() {
        assert!(Instant::now() < end, "waited in vain until {what}");
        thread::park_timeout(Duration::from_millis(2));
    }
}

/// A text with single blanks and no line breaks, for sentences that may break anywhere.
pub fn in_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Checks that each line fits a terminal. A path is not broken, so that it can be copied, and may be longer.
#[track_caller]
pub fn assert_fits_terminal(text: &str) {
    let is_long = |word: &str| word.chars().count() > 60 && word.contains('/');
    for line in text.lines() {
        let columns = line.chars().count();
        assert!(columns <= 80 || line.split(' ').any(is_long), "{columns} columns: {line}\n{text}");
    }
}

/// Waits until a run has read or written this much.
#[track_caller]
pub fn until_moved(running: &Running, bytes: u64) {
    until("bytes have moved", || moved_bytes(running) >= bytes);
}

/// How much a run has read and written.
#[track_caller]
pub fn moved_bytes(running: &Running) -> u64 {
    counted_bytes(running, "rchar: ") + counted_bytes(running, "wchar: ")
}

/// How much a program has read from devices.
#[track_caller]
pub fn bytes_from_devices(running: &Running) -> u64 {
    counted_bytes(running, "read_bytes: ")
}

#[track_caller]
fn counted_bytes(running: &Running, key: &str) -> u64 {
    let text = fs::read_to_string(format!("/proc/{}/io", running.0.id()));
    let text = text.expect("the run has ended before its time");
    text.lines().find_map(|line| line.strip_prefix(key)).unwrap().parse().unwrap()
}

/// Waits until a run has a thread of this name, of which the kernel keeps 15 characters.
#[track_caller]
pub fn until_at(running: &Running, thread: &str) {
    until_thread(running, thread, |_| true);
}

/// Waits until a run has a thread of this name that has worked for a few ticks of the clock: the kernel does not count the
/// bytes of every engine.
#[track_caller]
pub fn until_working(running: &Running, thread: &str) {
    until_thread(running, thread, |task| worked_ticks(task).is_some_and(|ticks| ticks >= 3));
}

/// The processor time of a thread, in ticks; `None` if it has ended.
fn worked_ticks(task: &Path) -> Option<u64> {
    let text = fs::read_to_string(task.join("stat")).ok()?;
    // Its name, in parentheses, may have blanks.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    Some(fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?)
}

/// Waits until a thread of a run sleeps in this function of the kernel.
#[track_caller]
pub fn until_asleep_in(running: &Running, function: &str) {
    until_task(running, &format!("a thread sleeps in {function}"), |task| {
        fs::read_to_string(task.join("wchan")).is_ok_and(|text| text.contains(function))
    });
}

#[track_caller]
fn until_thread(running: &Running, thread: &str, is_so: impl Fn(&Path) -> bool) {
    until_task(running, thread, |task| {
        let name = fs::read_to_string(task.join("comm"));
        name.is_ok_and(|name| name.trim_end() == thread) && is_so(task)
    });
}

#[track_caller]
fn until_task(running: &Running, what: &str, is_so: impl Fn(&Path) -> bool) {
    let tasks = format!("/proc/{}/task", running.0.id());
    until(what, || {
        let tasks = fs::read_dir(&tasks).expect("it ended before its time").flatten();
        tasks.into_iter().any(|task| is_so(&task.path()))
    });
}

/// Whether the test runs as root.
pub fn root() -> Result<(), String> {
    let id = Command::new("id").arg("-u").output().map_err(|error| format!("id: {error}"))?;
    if id.stdout == b"0\n" { Ok(()) } else { Err("needs root".to_string()) }
}

/// Runs a helper program; the error has its messages.
pub fn helper(program: &str, args: &[&str]) -> Result<String, String> {
    let output = Command::new(program).args(args).output().map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_string())
    } else {
        Err(format!("{program} {}: {}", args.join(" "), String::from_utf8_lossy(&output.stderr).trim()))
    }
}

/// An empty directory, removed with its contents on drop.
pub struct Dir {
    path: PathBuf,
}

impl Dir {
    /// On the file system of the build directory.
    pub fn new() -> Dir {
        Dir::under(Path::new(env!("CARGO_TARGET_TMPDIR"))).unwrap()
    }

    /// On another file system.
    pub fn under(parent: &Path) -> Result<Dir, String> {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("fiord-{}-{number}", std::process::id()));
        fs::create_dir(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Dir { path })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn join(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.join(name);
        fs::write(&path, bytes).unwrap();
        path
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.join(name)).unwrap()
    }

    pub fn text(&self, name: &str) -> String {
        String::from_utf8(self.read(name)).unwrap()
    }

    pub fn run(&self, line: &str) -> Ran {
        run(&self.path, line)
    }

    /// All files below with their bytes, to compare before and after.
    pub fn contents(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut found = Vec::new();
        let mut open = vec![self.path.clone()];
        while let Some(directory) = open.pop() {
            for entry in fs::read_dir(&directory).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    open.push(path.clone());
                    found.push((path, Vec::new()));
                } else {
                    found.push((path.clone(), fs::read(&path).unwrap()));
                }
            }
        }
        found.sort();
        found
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// A loop device over a file, detached on drop.
pub struct LoopDevice {
    pub path: String,
}

impl LoopDevice {
    /// Needs root and `losetup`.
    pub fn over(backing: &Path) -> Result<LoopDevice, String> {
        root()?;
        let path = helper("losetup", &["--find", "--show", &backing.to_string_lossy()])?;
        let device = LoopDevice { path };
        // A test may have left a short queue to whoever has this number next. The kernel says 128 then, and keeps the room
        // for 4 until it is told another number.
        let queue = format!("/sys/block/{}/queue/nr_requests", device.path.trim_start_matches("/dev/"));
        for requests in ["127", "128"] {
            fs::write(&queue, requests).map_err(|error| format!("{queue}: {error}"))?;
        }
        Ok(device)
    }

    /// Over a file of zeros in a directory.
    pub fn new(directory: &Dir, bytes: u64) -> Result<LoopDevice, String> {
        let backing = directory.join("backing");
        File::create(&backing).and_then(|file| file.set_len(bytes)).map_err(|error| error.to_string())?;
        LoopDevice::over(&backing)
    }

    /// `MAJOR:MINOR`.
    pub fn number(&self) -> Result<String, String> {
        let path = format!("/sys/block/{}/dev", self.path.trim_start_matches("/dev/"));
        let text = fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
        Ok(text.trim().to_string())
    }

    /// Waits until nothing holds it: a file system is unmounted a moment after its mount is gone.
    #[track_caller]
    pub fn until_free(&self) {
        const O_EXCL: i32 = 0o200;
        until("nothing holds the device", || {
            OpenOptions::new().read(true).custom_flags(O_EXCL).open(&self.path).is_ok()
        });
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let _ = helper("losetup", &["--detach", &self.path]);
    }
}

/// A mounted file system, unmounted on drop.
pub struct Mount {
    pub path: PathBuf,
}

impl Mount {
    /// `mount ARGS... DIRECTORY`, with a new directory called `name`. Needs root.
    pub fn new(directory: &Dir, name: &str, args: &[&str]) -> Result<Mount, String> {
        root()?;
        let path = directory.join(name);
        fs::create_dir(&path).map_err(|error| error.to_string())?;
        let text = path.to_string_lossy().into_owned();
        helper("mount", &[args, &[text.as_str()]].concat())?;
        Ok(Mount { path })
    }

    /// A file system in memory.
    pub fn tmpfs(directory: &Dir, options: &str) -> Result<Mount, String> {
        Mount::new(directory, "tmpfs", &["-t", "tmpfs", "-o", options, "none"])
    }

    /// A new ext4 on a device.
    pub fn ext4(directory: &Dir, device: &LoopDevice) -> Result<Mount, String> {
        helper("mkfs.ext4", &["-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0", &device.path])?;
        Mount::new(directory, "ext4", &[&device.path])
    }

    pub fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.path.join(name), bytes).unwrap();
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = helper("umount", &["--lazy", &self.path.to_string_lossy()]);
    }
}

/// Whether direct I/O works on files here.
pub fn direct_works_in(directory: &Path) -> Result<(), String> {
    let probe = directory.join("direct-probe");
    let to = format!("of={}", probe.display());
    let works = helper("dd", &["if=/dev/zero", &to, "bs=4096", "count=1", "oflag=direct"]);
    let _ = fs::remove_file(probe);
    works.map(drop).map_err(|why| format!("no direct I/O here: {why}"))
}
