//! Running fio and fiord, and reading their reports.
//!
//! Invariant: a report that cannot be read is an error that shows both streams.

mod resources;

use std::ffi::OsStr;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub use resources::{Resources, resources_after};
use serde_json::Value;

/// How long a job may take to be in a state that is waited for. An emulated machine may take half a minute.
const STATE_WITHIN: Duration = Duration::from_secs(120);

/// How long a program may take. The jobs take seconds, and up to a minute in an emulated machine that others slow down.
const ENDS_WITHIN: Duration = Duration::from_secs(240);

/// How often a program is looked at.
const POLL: Duration = Duration::from_millis(10);

/// How long a job that is at work has used a processor, if it does not wait. In an emulated machine its setup alone takes
/// some tenths of a second.
const WORKED_AT_WORK: Duration = Duration::from_secs(2);

/// How often a job that is at work has waited, if that takes no processor. Its setup waits some dozen times where programs
/// are read from a file system of the machine outside.
const WAITS_AT_WORK: u64 = 200;

/// A program that has ended.
#[derive(Debug)]
pub struct Finished {
    /// Its exit status; `None` if a signal ended it.
    pub code: Option<i32>,
    /// What it wrote to standard output.
    pub stdout: String,
    /// What it wrote to standard error.
    pub stderr: String,
}

impl Finished {
    /// The report, which is the last document on standard output.
    ///
    /// # Errors
    /// Both streams, if there is none.
    pub fn report(&self) -> Result<Value, String> {
        let start = self.stdout.find("\n{").map(|line| line + 1).filter(|_| !self.stdout.starts_with('{'));
        serde_json::from_str(&self.stdout[start.unwrap_or(0)..]).map_err(|error| {
            format!("{error}: exit status {:?}\n{}\n{}", self.code, self.stdout, self.stderr)
        })
    }

    /// The first job of the report.
    ///
    /// # Errors
    /// As `report`.
    pub fn job(&self) -> Result<Value, String> {
        Ok(self.report()?["jobs"][0].clone())
    }
}

/// Runs Debian's fio in a directory, with a report in JSON.
///
/// # Errors
/// If it cannot be started.
pub fn fio(directory: &Path, args: &[&str]) -> Result<Finished, String> {
    Place { directory, variables: &[] }.fio(args)
}

/// Runs fiord as fio in a directory, with a report in JSON.
///
/// # Errors
/// If it cannot be started.
pub fn fiord(directory: &Path, args: &[&str]) -> Result<Finished, String> {
    Place { directory, variables: &[] }.fiord(args)
}

/// Where programs run.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// The directory.
    pub directory: &'a Path,
    /// Variables of the environment beyond those of the test.
    pub variables: &'a [(&'a str, &'a OsStr)],
}

impl Place<'_> {
    /// As `fio`.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn fio(&self, args: &[&str]) -> Result<Finished, String> {
        run(self.with_report(Command::new("fio"), args))
    }

    /// As `fiord`.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn fiord(&self, args: &[&str]) -> Result<Finished, String> {
        run(self.with_report(command_of_fiord()?, args))
    }

    /// As `start`.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start(&self, args: &[&str]) -> Result<Running, String> {
        let mut command = self.with_report(command_of_fiord()?, args);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Ok(Running { child: command.spawn().map_err(|error| format!("{command:?}: {error}"))? })
    }

    fn with_report(&self, mut command: Command, args: &[&str]) -> Command {
        let variables = self.variables.iter().copied();
        command.arg("--output-format=json").args(args).current_dir(self.directory).envs(variables);
        command
    }
}

/// fiord while it runs.
#[derive(Debug)]
pub struct Running {
    child: Child,
}

impl Running {
    /// Waits until this job has begun: its thread exists, which has the job's name.
    ///
    /// # Errors
    /// What the program printed, if it ends before; or that the job has not begun in two minutes.
    pub fn begun(self, job: &str) -> Result<Running, String> {
        self.once(job, "begun", |_| true)
    }

    /// Waits until this job is at work: its thread has used a processor for two seconds, or has often waited, as it does for
    /// I/Os.
    ///
    /// # Errors
    /// What the program printed, if it ends before; or that the job has not come to that in two minutes.
    pub fn at_work(self, job: &str) -> Result<Running, String> {
        self.once(job, "at work", is_at_work)
    }

    /// Waits until the thread of a job, given as its directory in `/proc`, is in some state.
    fn once(mut self, job: &str, state: &str, is_so: fn(&Path) -> bool) -> Result<Running, String> {
        let is_it = |task: &PathBuf| of_task(task, "comm").trim_end() == job && is_so(task);
        let since = Instant::now();
        while !self.tasks().any(|task| is_it(&task)) {
            if self.child.try_wait().map_err(|error| format!("fiord: {error}"))?.is_some() {
                return Err(format!("{job} ended before it was {state}: {:?}", self.wait()?));
            }
            if since.elapsed() > STATE_WITHIN {
                return Err(format!("{job} was not {state} within {} s", STATE_WITHIN.as_secs()));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(self)
    }

    /// The directories of its threads in `/proc`.
    fn tasks(&self) -> impl Iterator<Item = PathBuf> {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id()));
        tasks.into_iter().flatten().flatten().map(|task| task.path())
    }

    /// How many threads it has.
    pub fn threads(&self) -> usize {
        self.tasks().count()
    }

    /// Memory it has in use now; `None` if it has ended.
    pub fn memory_bytes(&self) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        line.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kibibytes| kibibytes << 10)
    }

    /// How many descriptors it has open.
    pub fn descriptors(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.child.id())).map_or(0, Iterator::count)
    }

    /// Sends SIGINT, and waits for the report.
    ///
    /// # Errors
    /// If the signal cannot be sent, or the program has no exit status.
    pub fn interrupt(self) -> Result<Finished, String> {
        self.signal("INT")?;
        self.wait()
    }

    /// Stops it and lets it go on, several times: system calls that it waits in end with `EINTR`, or begin again.
    ///
    /// # Errors
    /// If a signal cannot be sent.
    pub fn stop_and_continue(&self) -> Result<(), String> {
        for _ in 0..10 {
            self.signal("STOP")?;
            std::thread::sleep(Duration::from_millis(20));
            self.signal("CONT")?;
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    fn signal(&self, name: &str) -> Result<(), String> {
        let (signal, id) = (format!("-{name}"), self.child.id().to_string());
        let sent =
            Command::new("kill").args([&signal, &id]).status().map_err(|error| format!("kill: {error}"))?;
        match sent.success() {
            true => Ok(()),
            false => Err(format!("kill {signal} {id}: {sent}")),
        }
    }

    /// Waits for the report.
    ///
    /// # Errors
    /// If the program has no exit status.
    pub fn wait(self) -> Result<Finished, String> {
        finished(self.child).map_err(|why| format!("fiord: {why}"))
    }
}

fn of_task(task: &Path, file: &str) -> String {
    std::fs::read_to_string(task.join(file)).unwrap_or_default()
}

/// Whether a thread has used a processor, or waited, as much as `Running::at_work` says.
fn is_at_work(task: &Path) -> bool {
    let status = of_task(task, "status");
    let waits = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    // Nanoseconds on a processor, then those of waiting for one.
    let worked =
        of_task(task, "schedstat").split(' ').next().and_then(|nanoseconds| nanoseconds.parse().ok());
    waits.and_then(|count| count.trim().parse().ok()).unwrap_or(0) >= WAITS_AT_WORK
        || worked.map_or(Duration::ZERO, Duration::from_nanos) >= WORKED_AT_WORK
}

/// Starts fiord as fio in a directory, with a report in JSON.
///
/// # Errors
/// If it cannot be started.
pub fn start(directory: &Path, args: &[&str]) -> Result<Running, String> {
    Place { directory, variables: &[] }.start(args)
}

fn command_of_fiord() -> Result<Command, String> {
    let mut command = Command::new(std::env::var_os("FIORD").ok_or("FIORD names no binary")?);
    command.arg("--no-history");
    Ok(command)
}

fn run(mut command: Command) -> Result<Finished, String> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().map_err(|error| format!("{command:?}: {error}"))?;
    finished(child).map_err(|why| format!("{command:?}: {why}"))
}

/// What a program printed, once it has ended. One that does not end is killed.
fn finished(child: Child) -> Result<Finished, String> {
    finished_within(ENDS_WITHIN, child)
}

fn finished_within(time_max: Duration, mut child: Child) -> Result<Finished, String> {
    let stdout = Stream::read(child.stdout.take());
    let stderr = Stream::read(child.stderr.take());
    let since = Instant::now();
    while child.try_wait().map_err(|error| error.to_string())?.is_none() {
        if since.elapsed() > time_max {
            // Not waited for: what it does in the kernel may not end even now.
            let _ = child.kill();
            return Err(format!(
                "killed because it had not ended after {} s\n{}\n{}",
                time_max.as_secs(),
                stdout.so_far(),
                stderr.so_far()
            ));
        }
        std::thread::sleep(POLL);
    }
    let code = child.wait().map_err(|error| error.to_string())?.code();
    Ok(Finished { code, stdout: stdout.all(), stderr: stderr.all() })
}

/// What comes from a stream, which a thread reads.
struct Stream {
    bytes: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

impl Stream {
    fn read(stream: Option<impl Read + Send + 'static>) -> Stream {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let into = Arc::clone(&bytes);
        let reader = std::thread::spawn(move || {
            let Some(mut stream) = stream else { return };
            let mut part = [0; 4 << 10];
            loop {
                match stream.read(&mut part) {
                    Ok(0) => return,
                    Ok(length) => {
                        into.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(&part[..length])
                    }
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(_) => return,
                }
            }
        });
        Stream { bytes, reader }
    }

    fn so_far(&self) -> String {
        text_of(&self.bytes)
    }

    /// All of it, when it has ended.
    fn all(self) -> String {
        let _ = self.reader.join();
        text_of(&self.bytes)
    }
}

fn text_of(bytes: &Mutex<Vec<u8>>) -> String {
    String::from_utf8_lossy(&bytes.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Child {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("sh starts")
    }

    #[test]
    fn all_that_a_program_printed_is_there_when_it_has_ended() {
        let ended = finished(shell("head -c 200000 /dev/zero | tr '\\0' x; echo why >&2; exit 3")).unwrap();
        assert_eq!((ended.code, ended.stdout.len(), ended.stderr.as_str()), (Some(3), 200_000, "why\n"));
    }

    #[test]
    fn a_program_that_does_not_end_is_killed_and_shown() {
        let since = Instant::now();
        let ended = finished_within(Duration::from_secs(1), shell("echo begun; sleep 1000"));
        let why = ended.unwrap_err();
        assert!(why.contains("not ended after 1 s\nbegun"), "{why}");
        assert!(since.elapsed() < Duration::from_secs(60));
    }
}
