//! The two programs, and what came of running one.
//!
//! Invariant: a run that takes longer than `RUN_SECONDS_MAX` is killed and fails its case; the suite never hangs.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::case::{Case, Contents, Needs};
use crate::raw;

const RUN_SECONDS_MAX: u64 = 60;
const POLL: Duration = Duration::from_millis(3);

/// fio, fiord, and a directory to work in.
pub struct Programs {
    /// The original.
    pub fio: PathBuf,
    /// fiord, by a link called `fio`.
    pub fiord: PathBuf,
    /// fiord by its own name.
    pub fiord_itself: PathBuf,
    scratch: PathBuf,
}

impl Programs {
    /// Finds both; the error says what is not there.
    pub fn find() -> Result<Programs, String> {
        let fio = std::env::var_os("FIO").map_or_else(|| PathBuf::from("/usr/bin/fio"), PathBuf::from);
        if !fio.exists() {
            return Err(format!("no fio at {}", fio.display()));
        }
        let fiord = match std::env::var_os("FIORD") {
            Some(path) => PathBuf::from(path),
            None => target_dir().join("release/fiord"),
        };
        let fiord = fiord.canonicalize().map_err(|_| format!("no fiord at {}", fiord.display()))?;
        let scratch = target_dir().join(format!("compat-{}", std::process::id()));
        let links = scratch.join("bin");
        let link = links.join("fio");
        fs::create_dir_all(&links)
            .and_then(|()| std::os::unix::fs::symlink(&fiord, &link))
            .map_err(|error| format!("{}: {error}", link.display()))?;
        Ok(Programs { fio, fiord: link, fiord_itself: fiord, scratch })
    }

    /// Runs a case with both programs, each in a directory of its own.
    pub fn run(&self, case: &Case) -> Result<Pair, String> {
        let place = self.scratch.join(case.name.replace(['/', ' '], "_"));
        let fio = Ran { notes_before_json: true, ..run(&self.fio, case, &place.join("fio"))? };
        let fiord = run(&self.fiord, case, &place.join("fiord"))?;
        Ok(Pair { fio, fiord, fiord_itself: self.fiord_itself.clone(), place: Scratch(place) })
    }
}

impl Drop for Programs {
    fn drop(&mut self) {
        // What is left lies in the target directory and has this process's number: nobody trips over it.
        let _ = fs::remove_dir_all(&self.scratch);
    }
}

/// The workspace's target directory.
pub fn target_dir() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from)
}

/// A directory that goes away again.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The same case, run by both.
pub struct Pair {
    /// What fio did.
    pub fio: Ran,
    /// What fiord did.
    pub fiord: Ran,
    /// fiord by its own name, for what it does beyond fio.
    pub fiord_itself: PathBuf,
    place: Scratch,
}

impl Pair {
    /// A directory for this case beside those of its runs.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.place.0.join(name)
    }
}

/// What came of one run.
pub struct Ran {
    /// Exit status; 128 and the signal's number when killed by one.
    pub status: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// The directory it ran in, as it was left.
    pub dir: PathBuf,
    /// Whether text may stand before the document: fio puts notes there, fiord must not (C5).
    notes_before_json: bool,
    json: OnceLock<Result<Value, String>>,
}

impl Ran {
    /// Standard output as one JSON document.
    pub fn json(&self) -> Result<&Value, String> {
        let parse = || match self.notes_before_json {
            true => {
                parse_json(raw::documents(&self.stdout).first().map_or(&self.stdout, |document| document))
            }
            false => parse_json(&self.stdout),
        };
        self.json.get_or_init(parse).as_ref().map_err(Clone::clone)
    }

    /// The document's jobs.
    pub fn jobs(&self) -> Result<&[Value], String> {
        self.json()?["jobs"]
            .as_array()
            .map(Vec::as_slice)
            .ok_or_else(|| "no \"jobs\" in the JSON".to_string())
    }

    /// Output and messages, for the report of a failure.
    pub fn said(&self) -> String {
        let shortened = |text: &str| text.lines().take(12).collect::<Vec<_>>().join("\n      ");
        format!("exit {}\n      {}\n      {}", self.status, shortened(&self.stdout), shortened(&self.stderr))
    }

    /// Every regular file in the directory: relative path and size, sorted.
    pub fn files(&self) -> Result<Vec<(String, u64)>, String> {
        let mut found = Vec::new();
        walk(&self.dir, &self.dir, &mut found).map_err(|error| format!("{}: {error}", self.dir.display()))?;
        found.sort();
        Ok(found)
    }

    /// The text of a file in the directory.
    pub fn file(&self, name: &str) -> Result<String, String> {
        fs::read_to_string(self.dir.join(name)).map_err(|error| format!("{name}: {error}"))
    }
}

/// One document; the error shows where the text stops being one.
pub fn parse_json(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| {
        let from = error.line().saturating_sub(3);
        let near: Vec<&str> = text.lines().skip(from).take(4).collect();
        format!("not JSON: {error}, near\n{}", near.join("\n"))
    })
}

fn walk(base: &Path, dir: &Path, found: &mut Vec<(String, u64)>) -> std::io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        if metadata.is_dir() {
            walk(base, &entry.path(), found)?;
        } else if metadata.is_file() {
            let path = entry.path();
            let name = path.strip_prefix(base).unwrap_or(&path).to_string_lossy().into_owned();
            found.push((name, metadata.len()));
        }
    }
    Ok(())
}

fn run(program: &Path, case: &Case, dir: &Path) -> Result<Ran, String> {
    let told = |error: std::io::Error| format!("{}: {error}", dir.display());
    fs::create_dir_all(dir).map_err(told)?;
    for (path, contents) in &case.files {
        put(&dir.join(path), contents).map_err(told)?;
    }
    let device = match case.needs {
        Needs::Nothing => None,
        Needs::LoopDevice(size_bytes) => Some(LoopDevice::attach(&dir.with_extension("disk"), size_bytes)?),
    };
    let path = device.as_ref().map_or("", |device| device.path.as_str());
    let args: Vec<String> = case.args.iter().map(|arg| arg.replace("{device}", path)).collect();
    let mut command = Command::new(program);
    command.args(&args).current_dir(dir).envs(case.env.iter().map(|(name, value)| (name, value)));
    finish(command, &case.stdin, dir)
}

/// Runs a command to its end. Output goes to files beside `dir`, so that no pipe can fill up.
pub fn finish(mut command: Command, stdin: &str, dir: &Path) -> Result<Ran, String> {
    let beside = |kind: &str| dir.with_extension(kind);
    let told = |error: std::io::Error| format!("{command_name}: {error}", command_name = dir.display());
    fs::write(beside("in"), stdin).map_err(told)?;
    command
        .stdin(File::open(beside("in")).map_err(told)?)
        .stdout(File::create(beside("out")).map_err(told)?)
        .stderr(File::create(beside("err")).map_err(told)?);
    let mut child = command.spawn().map_err(|error| format!("{command:?}: {error}"))?;
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().map_err(told)? {
            break status;
        }
        if start.elapsed().as_secs() >= RUN_SECONDS_MAX {
            child.kill().map_err(told)?;
            let _killed = child.wait();
            return Err(format!("{command:?}: still running after {RUN_SECONDS_MAX} s"));
        }
        std::thread::sleep(POLL);
    };
    let text = |kind: &str| fs::read(beside(kind)).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    Ok(Ran {
        status: status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)),
        stdout: text("out").map_err(told)?,
        stderr: text("err").map_err(told)?,
        dir: dir.to_path_buf(),
        notes_before_json: false,
        json: OnceLock::new(),
    })
}

fn put(path: &Path, contents: &Contents) -> std::io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    match contents {
        Contents::Text(text) => fs::write(path, text),
        Contents::Bytes(size) => {
            let bytes: Vec<u8> = (0..*size).map(|at| (at % 251) as u8 + 1).collect();
            fs::write(path, bytes)
        }
    }
}

/// A file attached as a block device until dropped.
struct LoopDevice {
    path: String,
}

/// What a case that lacks something answers; the runner counts it as skipped.
pub const SKIPPED: &str = "skipped: ";

impl LoopDevice {
    fn attach(file: &Path, size_bytes: u64) -> Result<LoopDevice, String> {
        let made = File::create(file).and_then(|disk| disk.set_len(size_bytes));
        made.map_err(|error| format!("{}: {error}", file.display()))?;
        let args = [OsStr::new("--find"), OsStr::new("--show"), file.as_os_str()];
        match Command::new("losetup").args(args).stderr(Stdio::null()).output() {
            Ok(out) if out.status.success() => {
                Ok(LoopDevice { path: String::from_utf8_lossy(&out.stdout).trim().to_string() })
            }
            _ => Err(format!("{SKIPPED}no loop device")),
        }
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["--detach", &self.path]).status();
    }
}
