//! Running fio and fiord, and reading their reports.
//!
//! Invariant: a report that cannot be read is an error that shows both streams.

mod resources;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

pub use resources::{Resources, resources_after};
use serde_json::Value;

/// How long a job may take to be in a state that is waited for. An emulated machine may take half a minute.
const STATE_WITHIN: Duration = Duration::from_secs(120);

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
    fn of(out: Output) -> Finished {
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Finished { code: out.status.code(), stdout: text(out.stdout), stderr: text(out.stderr) }
    }

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
        self.child.wait_with_output().map(Finished::of).map_err(|error| format!("fiord: {error}"))
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
    command.output().map(Finished::of).map_err(|error| format!("{command:?}: {error}"))
}
