//! Jobs that hang in the kernel: the report of all others is written, and names the one that hangs.
//!
//! Invariant: a job is seen to hang in `/proc` before anything is asserted about it; a frozen file system is thawed
//! whatever happens.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;

use fiord_testing::need;
use serde_json::Value;

use crate::common::fuse::{Fuse, Reply};
use crate::common::{
    Dir, LoopDevice, Mount, Running, TIMEOUT, finish, fiord, helper, signal, start, until, until_moved,
};

/// A job that moves bytes until it is stopped.
const MOVES: &str = "--name=moves --filename=moves --rw=write --bs=4k --size=1m --time_based --runtime=60";

const ETIMEDOUT: i64 = 110;

/// Whether a thread of a process is in this system call, or in a sleep that no signal ends.
fn has_thread(process: u32, is_it: impl Fn(&Path) -> bool) -> bool {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).unwrap();
    tasks.flatten().any(|task| is_it(&task.path()))
}

fn has_thread_in(process: u32, function: &str) -> bool {
    has_thread(process, |task| {
        fs::read_to_string(task.join("wchan")).is_ok_and(|text| text.contains(function))
    })
}

fn waits_in(running: &Running, function: &str) -> bool {
    has_thread_in(running.0.id(), function)
}

fn is_frozen(running: &Running) -> bool {
    let is_uninterruptible = |task: &Path| {
        let stat = fs::read_to_string(task.join("stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('D'))
    };
    // A slow disk looks the same for a moment.
    has_thread(running.0.id(), is_uninterruptible) && waits_in(running, "percpu_rwsem_wait")
}

fn mkfifo(dir: &Dir) {
    helper("mkfifo", &[&dir.join("fifo").to_string_lossy()]).unwrap();
}

#[track_caller]
fn job<'d>(document: &'d Value, name: &str) -> &'d Value {
    let jobs = document["jobs"].as_array().unwrap();
    jobs.iter().find(|job| job["jobname"] == name).unwrap_or_else(|| panic!("no {name} in {document}"))
}

/// A wait that can be interrupted is not a hang: it is interrupted, which is not a failure.
#[test]
fn a_signal_ends_the_wait_for_a_writer_of_a_pipe() {
    for (name, status) in [("TERM", 143), ("INT", 130)] {
        let dir = Dir::new();
        mkfifo(&dir);
        let line = "--output-format=json --name=waits --filename=fifo --rw=read --bs=4k --size=64k --name=null \
                    --ioengine=null --size=1m";
        let running = start(fiord(dir.path(), line));
        until("the pipe is waited for", || {
            waits_in(&running, "wait_for_partner") || waits_in(&running, "fifo_open")
        });
        signal(running.0.id(), name);
        let ran = finish(running);
        let document = ran.assert_status(status).json();
        assert_eq!(job(&document, "waits")["error"], 0, "{document}");
        assert_eq!(document["jobs"].as_array().map(Vec::len), Some(2));
    }
}

/// A job that reads a pipe without a writer, which may still get one.
const READS: &str = "--name=reads --filename=fifo --rw=read --bs=4k --size=64k --ioengine=sync";

#[test]
fn a_signal_ends_the_wait_for_data_in_a_pipe() {
    let dir = Dir::new();
    mkfifo(&dir);
    let writer = fs::File::options().read(true).write(true).open(dir.join("fifo")).unwrap();
    let running = start(fiord(dir.path(), &format!("--output-format=json {MOVES} {READS}")));
    until_moved(&running, 1 << 20);
    until("the pipe is read", || waits_in(&running, "pipe_read"));
    signal(running.0.id(), "TERM");
    let ran = finish(running);
    drop(writer);
    let document = ran.assert_status(143).json();
    assert_eq!(
        (&job(&document, "moves")["error"], &job(&document, "reads")["error"]),
        (&0.into(), &0.into())
    );
    assert!(job(&document, "moves")["write"]["io_bytes"].as_u64() > Some(0), "{document}");
}

#[test]
fn the_end_of_the_runtime_ends_the_wait_for_data_in_a_pipe() {
    let dir = Dir::new();
    mkfifo(&dir);
    let writer = fs::File::options().read(true).write(true).open(dir.join("fifo")).unwrap();
    let ran = dir.run(&format!("--output-format=json {READS} --runtime=1"));
    drop(writer);
    assert_eq!(ran.assert_success().json()["jobs"][0]["read"]["io_bytes"], 0);
}

/// A file system that is frozen until this is dropped.
struct Frozen<'m>(&'m Mount);

impl<'m> Frozen<'m> {
    fn new(mount: &'m Mount) -> Result<Frozen<'m>, String> {
        helper("fsfreeze", &["--freeze", &mount.path.to_string_lossy()])?;
        Ok(Frozen(mount))
    }
}

impl Drop for Frozen<'_> {
    fn drop(&mut self) {
        let _ = helper("fsfreeze", &["--unfreeze", &self.0.path.to_string_lossy()]);
    }
}

/// All output of a run, before the kernel releases its threads.
#[track_caller]
fn output_of(running: &mut Running) -> String {
    let mut stdout = running.0.stdout.take().unwrap();
    let (read, text) = channel();
    std::thread::spawn(move || read.send(std::io::read_to_string(&mut stdout)));
    text.recv_timeout(TIMEOUT).expect("standard output is closed while the job hangs").unwrap()
}

/// A job that writes to the file `hangs` through memory, hardly ever twice to one page: each of its faults reads a page of
/// the file, and then holds the lock on the process's whole memory map.
fn writes_mapped(mount: &Mount) -> String {
    let file = fs::File::create(mount.path.join("hangs")).unwrap();
    std::io::copy(&mut std::io::repeat(1).take(40 << 20), &mut &file).unwrap();
    file.sync_all().unwrap();
    let directory = mount.path.display();
    format!(
        "--name=hangs --directory={directory} --filename=hangs --rw=randwrite --bs=4k --size=40m --rate_iops=500 \
         --time_based --ioengine=mmap"
    )
}

// divergence: a second and third SIGINT
/// The second signal ends the wait, so that the test does not take the whole grace period of the first.
#[test]
fn a_frozen_file_system_affects_only_the_report_of_its_own_job() {
    let dir = Dir::new();
    let device = need!(LoopDevice::new(&dir, 64 << 20));
    let mount = need!(Mount::ext4(&dir, &device));
    for engine in ["psync", "libaio", "io_uring"] {
        let line = format!(
            "--output-format=json {MOVES} --name=hangs --directory={} --filename=hangs --rw=write --bs=4k --size=1m \
             --time_based --runtime=60 --ioengine={engine}",
            mount.path.display()
        );
        let mut running = start(fiord(dir.path(), &line));
        until_moved(&running, 4 << 20);
        until("the file is there", || mount.path.join("hangs").exists());
        let frozen = need!(Frozen::new(&mount));
        until("the job hangs", || is_frozen(&running));
        signal(running.0.id(), "INT");
        signal(running.0.id(), "INT");
        let said = output_of(&mut running);
        let document: Value =
            serde_json::from_str(&said).unwrap_or_else(|error| panic!("{engine}: {error}: {said}"));
        drop(frozen);
        let ran = finish(running);
        ran.assert_status(130);
        assert_eq!(job(&document, "hangs")["error"].as_i64(), Some(ETIMEDOUT), "{engine}: {document}");
        assert_eq!(job(&document, "moves")["error"], 0, "{engine}: {document}");
        assert!(job(&document, "moves")["write"]["io_bytes"].as_u64() > Some(0), "{engine}: {document}");
        for part in ["job hangs", "ETIMEDOUT", "was abandoned", "/hangs"] {
            assert!(ran.stderr.contains(part), "{engine}: {part}: {}", ran.stderr);
        }
    }
}

/// A thread in a page fault holds a lock on the memory map of the process, in which nothing can be mapped then, not even for
/// the report.
#[test]
fn a_page_fault_that_hangs_affects_only_the_report_of_its_own_job() {
    let dir = Dir::new();
    let device = need!(LoopDevice::new(&dir, 64 << 20));
    let mount = need!(Mount::ext4(&dir, &device));
    for (other, output) in [
        ("psync", "--output-format=json"),
        ("libaio --iodepth=8", "--output=report --output-format=normal,terse,json+"),
        (
            "io_uring --iodepth=8 --mem=mmap --unlink=1",
            "--output=report --output-format=json --bandwidth-log",
        ),
        ("mmap --write_lat_log=log", "--output=report --output-format=json --status-interval=1"),
    ] {
        let mapped = writes_mapped(&mount);
        let ends = "--name=ends --filename=ends --rw=randrw --bs=4k --size=1m --time_based --runtime=60";
        let line = format!("{output} {MOVES} {ends} --ioengine={other} {mapped} --runtime=60");
        let mut running = start(fiord(dir.path(), &line));
        until_moved(&running, 4 << 20);
        let frozen = need!(Frozen::new(&mount));
        until("the job hangs", || is_frozen(&running));
        signal(running.0.id(), "INT");
        signal(running.0.id(), "INT");
        let said = output_of(&mut running);
        let said = if line.contains("--output=") { dir.text("report") } else { said };
        drop(frozen);
        let ran = finish(running);
        ran.assert_status(130);
        for part in ["job hangs: page fault", "ETIMEDOUT", "/hangs", "could not be recorded in the history"] {
            assert!(ran.stderr.contains(part), "{other}: {part}: {}", ran.stderr);
        }
        for (part, option) in [
            ("not done: a job hangs in a page fault", "unlink"),
            ("Run status group 0", "normal"),
            ("3;fio-", "terse"),
        ] {
            assert_eq!(said.contains(part), line.contains(option), "{part}: {said}");
        }
        // The last document, in a line of its own.
        let json = &said[said.rfind("\n{\n").map_or(0, |at| at + 1)..];
        let json = &json[..json.find("\n}\n").unwrap() + 2];
        let document: Value =
            serde_json::from_str(json).unwrap_or_else(|error| panic!("{other}: {error}: {said}"));
        assert_eq!(job(&document, "hangs")["error"].as_i64(), Some(ETIMEDOUT), "{other}: {document}");
        assert!(job(&document, "hangs")["write"]["io_bytes"].as_u64() > Some(0), "{other}: {document}");
        for name in ["moves", "ends"] {
            assert_eq!(job(&document, name)["error"], 0, "{other}: {document}");
            assert!(job(&document, name)["write"]["io_bytes"].as_u64() > Some(0), "{other}: {document}");
        }
    }
}

// divergence: a job that does not stop
/// The only test here that takes a whole grace period: half a minute of waiting, of two runs at a time.
#[test]
fn a_job_that_hangs_past_its_runtime_is_abandoned_and_the_next_ones_run() {
    let dir = Dir::new();
    let device = need!(LoopDevice::new(&dir, 64 << 20));
    let mount = need!(Mount::ext4(&dir, &device));
    let begin = |hangs: &str| {
        let line = format!(
            "--output-format=json {MOVES} --runtime=5 {hangs} --runtime=5 --name=next --stonewall --ioengine=null --size=1m"
        );
        start(fiord(dir.path(), &line))
    };
    let directory = mount.path.display();
    let mut faults = begin(&writes_mapped(&mount));
    let mut running = begin(&format!(
        "--name=hangs --directory={directory} --filename=hangs-as-well --rw=write --bs=4k --size=1m --time_based"
    ));
    until_moved(&faults, 4 << 20);
    until_moved(&running, 4 << 20);
    until("the file is there", || mount.path.join("hangs-as-well").exists());
    let frozen = need!(Frozen::new(&mount));
    let said = output_of(&mut running);
    let said_of_fault = output_of(&mut faults);
    drop(frozen);
    finish(faults).assert_status(1).assert_prints(&[
        "job hangs: page fault",
        "its run time was over",
        "job next: start a thread: a job hangs in a page fault",
    ]);
    let document: Value = serde_json::from_str(&said_of_fault).unwrap();
    assert_eq!(job(&document, "moves")["error"], 0, "{document}");
    finish(running).assert_status(1).assert_prints(&["its run time was over", "/hangs-as-well"]);
    let document: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(job(&document, "hangs")["error"].as_i64(), Some(ETIMEDOUT), "{document}");
    assert!(
        job(&document, "hangs")["write"]["io_bytes"].as_u64() > Some(0),
        "what it did is counted: {document}"
    );
    assert_eq!(job(&document, "next")["read"]["io_bytes"].as_u64(), Some(1 << 20), "{document}");
}

#[test]
fn files_that_are_laid_out_on_a_frozen_file_system_are_reported_missing() {
    let dir = Dir::new();
    let device = need!(LoopDevice::new(&dir, 64 << 20));
    let mount = need!(Mount::ext4(&dir, &device));
    let frozen = need!(Frozen::new(&mount));
    let line = format!(
        "--output-format=json --name=hangs --directory={} --filename=new --rw=read --size=8m --name=null \
         --ioengine=null --size=1m",
        mount.path.display()
    );
    let mut running = start(fiord(dir.path(), &line));
    until("the layout hangs", || is_frozen(&running));
    signal(running.0.id(), "INT");
    signal(running.0.id(), "INT");
    let said = output_of(&mut running);
    drop(frozen);
    let ran = finish(running);
    ran.assert_status(130);
    let document: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(job(&document, "hangs")["error"].as_i64(), Some(ETIMEDOUT), "{document}");
    assert_eq!(document["jobs"].as_array().map(Vec::len), Some(2));
    assert!(ran.stderr.contains("laying out its files"), "{}", ran.stderr);
}

/// A file system in `hangs` that answers no more.
fn stopped_file_system(dir: &Dir) -> Result<Fuse, String> {
    let mount = Fuse::mount(dir, "hangs", 1 << 20, false, |_| Reply::Whole)?;
    assert!(mount.path.join("data").exists(), "it has begun to answer");
    mount.stop_answering();
    Ok(mount)
}

/// The kernel releases a thread whose request the server has not taken, so that the process can end. That the request of
/// another program was taken is seen by the server, which does nothing more.
#[test]
fn a_signal_ends_a_setup_that_a_file_system_does_not_answer() {
    let of_job = "--name=a --filename=hangs/other --rw=read --size=64k";
    for (name, status, line) in [
        ("INT", 130, of_job),
        ("TERM", 143, of_job),
        ("INT", 130, "hangs/job.fio"),
        ("INT", 130, "--name=a --directory=hangs --opendir=hangs/other --rw=read"),
        ("INT", 130, "--output=hangs/report --name=a --ioengine=null --size=1m"),
        ("INT", 130, "--name=a --ioengine=null --size=1m --write_lat_log=hangs/log"),
    ] {
        let dir = Dir::new();
        let mount = need!(stopped_file_system(&dir));
        // Not a name in the directory, whose lookup would lock it.
        let path = mount.path.clone();
        let taken = std::thread::spawn(move || path.metadata().is_ok());
        until("the server has stopped", || has_thread_in(std::process::id(), "request_wait_answer"));
        let running = start(fiord(dir.path(), line));
        until("the setup hangs", || waits_in(&running, "request_wait_answer"));
        signal(running.0.id(), name);
        let ran = finish(running);
        drop(mount);
        taken.join().unwrap();
        ran.assert_status(status).assert_prints(&[&format!("SIG{name}"), "hangs", "does not answer"]);
    }
}

/// Nothing can end a process whose request the server has taken; what is wrong is said all the same.
#[test]
fn what_a_setup_waits_for_is_said_before_the_kernel_lets_it_go() {
    let dir = Dir::new();
    let mount = need!(stopped_file_system(&dir));
    let mut running = start(fiord(dir.path(), "--name=a --filename=hangs/other --rw=read --size=64k"));
    until("the setup hangs", || waits_in(&running, "request_wait_answer"));
    signal(running.0.id(), "INT");
    let mut line = String::new();
    let stderr = running.0.stderr.take().unwrap();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(stderr), &mut line).unwrap();
    drop(mount);
    finish(running).assert_status(130);
    assert!(line.contains("SIGINT: hangs") && line.contains("does not answer"), "{line}");
}

/// Shells start what a script runs in the background with SIGINT ignored.
#[test]
fn a_signal_ends_a_setup_at_once_that_waits_for_no_file() {
    for disposition in ["default", "ignore"] {
        let dir = Dir::new();
        let fiord = fiord(dir.path(), "-");
        let mut command = Command::new("env");
        command.arg(format!("--{disposition}-signal=INT")).arg(fiord.get_program()).args(fiord.get_args());
        command.current_dir(dir.path()).stdin(Stdio::piped());
        let mut running = start(command);
        let _input = running.0.stdin.take();
        until("the job file is read", || waits_in(&running, "pipe_read"));
        signal(running.0.id(), "INT");
        assert_eq!(running.0.wait().unwrap().signal(), Some(2), "{disposition}");
    }
}

/// A server that answers one request with single bytes, and the number of bytes so far.
fn dripping_server() -> (u16, Arc<AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let sent = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&sent);
    std::thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        let _ = client.read(&mut [0; 4096]);
        let mut answer = client.write_all(b"HTTP/1.1 206 Partial Content\r\nContent-Length: 65536\r\n\r\n");
        while answer.is_ok() {
            std::thread::park_timeout(std::time::Duration::from_millis(50));
            answer = client.write_all(b"x");
            counter.fetch_add(1, Ordering::Relaxed);
        }
    });
    (port, sent)
}

/// Abandoned, the job would have the error ETIMEDOUT.
#[test]
fn a_signal_ends_the_wait_for_an_answer_that_drips() {
    let dir = Dir::new();
    let (port, sent) = dripping_server();
    let line = format!(
        "--output-format=json --name=a --ioengine=http --http_host=127.0.0.1:{port} --filename=/o --rw=read --bs=64k \
         --size=1m"
    );
    let running = start(fiord(dir.path(), &line));
    until("the answer drips", || sent.load(Ordering::Relaxed) > 3);
    signal(running.0.id(), "INT");
    let ran = finish(running);
    let document = ran.assert_status(130).json();
    assert_eq!(job(&document, "a")["error"], 0, "{ran:?}");
}

/// What hides `/proc` from a command, in a namespace of its own.
fn without_proc(dir: &Dir, line: &str) -> Result<Command, String> {
    let fiord = fiord(dir.path(), line);
    let mut command = Command::new("unshare");
    let script = "mount -t tmpfs none /proc && exec \"$0\" \"$@\"";
    command.args(["--mount", "sh", "-c", script]).arg(fiord.get_program()).args(fiord.get_args());
    command.current_dir(dir.path());
    helper("unshare", &["--mount", "sh", "-c", "mount -t tmpfs none /proc"]).map(|_| command)
}

#[test]
fn what_needs_no_proc_runs_without_it() {
    let dir = Dir::new();
    for line in [
        "--name=a --ioengine=null --size=1m --rw=read",
        "--name=a --size=1m --rw=randrw --bs=4k --direct=1",
        "--name=a --size=1m --rw=randread --bs=4k --ioengine=libaio --numjobs=2 --write_lat_log=l",
    ] {
        let ran = finish(start(need!(without_proc(&dir, &format!("--no-history --trust=off {line}")))));
        ran.assert_success().assert_prints(&["Run status group 0"]);
    }
    // A study reaches its scratch files through it, and says so.
    let ran = finish(start(need!(without_proc(&dir, "quick --time=1s"))));
    ran.assert_status(1).assert_prints(&["/proc is missing", "mount -t proc"]);
}

// divergence: `exec_postrun` after a signal
#[test]
fn a_postrun_command_that_hangs_is_ended_with_its_children() {
    let dir = Dir::new();
    dir.write(
        "job.fio",
        "[a]\nioengine=null\nsize=1m\nexec_postrun=echo $$ > pid && sleep 1000 && echo never\n[b]\nioengine=null\nsize=1m\n",
    );
    let running = start(fiord(dir.path(), "--output-format=json job.fio"));
    until("the command runs", || fs::read_to_string(dir.join("pid")).is_ok_and(|text| text.ends_with('\n')));
    let pid: u32 = dir.text("pid").trim().parse().unwrap();
    signal(running.0.id(), "INT");
    signal(running.0.id(), "INT");
    let ran = finish(running);
    assert_eq!(ran.assert_status(130).json()["jobs"].as_array().map(Vec::len), Some(2));
    assert!(!Path::new(&format!("/proc/{pid}")).exists(), "the command is left behind");
}
