//! One run of a program, in a process that does nothing else.
//!
//! Invariant: the kernel's figure for a child's peak memory includes that of its parent, whose memory the child has
//! until it executes its program. So the parent must be small, which is why this is a separate process.
//!
//! A process of a job that the program did not wait for is waited for here: its cost is the run's, and the next run does not
//! begin before it has ended. fio leaves those of jobs whose engine's library takes long to close.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use fiord_sys::process::{adopt_orphans, kill_children, wait_for_all_with_usage, wait_with_usage};
use fiord_sys::signal;
use serde_json::{Value, json};

/// The name of the chore that runs xtask as this process.
pub const CHORE: &str = "bench-one";

/// How long a run may take; the longest take 20 s. fio sometimes never ends.
const RUN_TIME_MAX: Duration = Duration::from_secs(120);

/// How long the processes of a run that is ended may go on until they are killed again: one that was adopted meanwhile is
/// only known then.
const KILL_EVERY: Duration = Duration::from_millis(50);

/// The cost of a successful run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cost {
    pub process_s: f64,
    pub cpu_s: f64,
    pub memory_bytes_max: u64,
}

/// A run: the program, its directory, and the directory for its output (files `stdout` and `stderr`).
pub struct Run<'a> {
    pub program: &'a Path,
    pub args: &'a [String],
    /// Variables of the environment beyond those of this process.
    pub variables: &'a [(&'static str, OsString)],
    pub directory: &'a Path,
    pub output: &'a Path,
}

impl Run<'_> {
    /// Runs it in a separate process; returns its standard output and its cost.
    pub fn measure(&self) -> Result<(String, Cost), String> {
        let failed = |why: &str| format!("{} {}: {why}", self.program.display(), self.args.join(" "));
        let this = std::env::current_exe().map_err(|error| failed(&error.to_string()))?;
        let mut command = Command::new(this);
        command.arg(CHORE).arg(self.output).arg(self.program).args(self.args).current_dir(self.directory);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        let out = command.stdin(Stdio::null()).output().map_err(|error| failed(&error.to_string()))?;
        if let Some(number) = signal::stop_requested() {
            return Err(format!("stopped by {}", signal::name(number)));
        }
        if !out.status.success() {
            let why = String::from_utf8_lossy(&out.stderr);
            let said = fs::read_to_string(self.output.join("stderr")).unwrap_or_default();
            return Err(failed(format!("{}\n{}", why.trim_end(), said.trim_end()).trim_end()));
        }
        let cost = Cost::parse(&out.stdout).ok_or_else(|| failed("its cost was not reported"))?;
        let stdout = self.output.join("stdout");
        let text = fs::read_to_string(&stdout).map_err(|error| format!("{}: {error}", stdout.display()))?;
        Ok((text, cost))
    }
}

impl Cost {
    /// With the names of `Metric`.
    pub fn to_json(self) -> Value {
        let Cost { process_s, cpu_s, memory_bytes_max } = self;
        json!({ "process_s": process_s, "cpu_s": cpu_s, "memory_bytes_max": memory_bytes_max })
    }

    fn parse(text: &[u8]) -> Option<Cost> {
        let document: Value = serde_json::from_slice(text).ok()?;
        Some(Cost {
            process_s: document["process_s"].as_f64()?,
            cpu_s: document["cpu_s"].as_f64()?,
            memory_bytes_max: document["memory_bytes_max"].as_u64()?,
        })
    }
}

/// `xtask bench-one OUTPUT PROGRAM [ARGUMENT…]`: runs the program here and prints its cost. For a process without other
/// children.
pub fn run(args: &[String]) -> Result<(), String> {
    run_within(RUN_TIME_MAX, args)
}

fn run_within(time_max: Duration, args: &[String]) -> Result<(), String> {
    let [output, program, args @ ..] = args else {
        return Err(format!("usage: {CHORE} OUTPUT PROGRAM [ARGUMENT…]"));
    };
    signal::record_stop_requests().map_err(|error| format!("sigaction: {error}"))?;
    // Into files and not through pipes, so that no other process has to run at the same time.
    let create = |name: &str| {
        let path = PathBuf::from(output).join(name);
        File::create(&path).map_err(|error| format!("{}: {error}", path.display()))
    };
    adopt_orphans().map_err(|error| format!("prctl: {error}"))?;
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null()).stdout(create("stdout")?).stderr(create("stderr")?);
    let end = Watch::start(time_max);
    let start = Instant::now();
    let child = command.spawn().map_err(|error| error.to_string())?;
    let (status, usage) = uninterrupted(|| wait_with_usage(&child))?;
    let process_s = start.elapsed().as_secs_f64();
    let usage = usage.and(uninterrupted(wait_for_all_with_usage)?);
    if end.was_forced() {
        return Err(format!("it had not ended after {} s, and was killed", time_max.as_secs()));
    }
    if !status.success() {
        return Err(status.to_string());
    }
    let cpu_s = usage.cpu_us as f64 / 1e6;
    println!("{}", Cost { process_s, cpu_s, memory_bytes_max: usage.memory_bytes_max }.to_json());
    Ok(())
}

/// Waits; ends what runs if this process is requested to stop.
fn uninterrupted<R>(wait: impl Fn() -> io::Result<R>) -> Result<R, String> {
    loop {
        if signal::stop_requested().is_some() {
            kill_children().map_err(|error| format!("kill: {error}"))?;
        }
        match wait() {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            ended => return ended.map_err(|error| format!("wait4: {error}")),
        }
    }
}

/// Ends what runs when its time is over.
struct Watch {
    thread: JoinHandle<bool>,
    run: Sender<()>,
}

impl Watch {
    fn start(time_max: Duration) -> Watch {
        let (run, ended) = mpsc::channel();
        let is_over = move |time: Duration| ended.recv_timeout(time) == Err(RecvTimeoutError::Timeout);
        let thread = std::thread::spawn(move || {
            let is_late = is_over(time_max);
            let mut kills = is_late;
            while kills {
                // What cannot be killed is waited for.
                kills = kill_children().is_ok() && is_over(KILL_EVERY);
            }
            is_late
        });
        Watch { thread, run }
    }

    /// Whether the run, which has ended, was ended here.
    fn was_forced(self) -> bool {
        drop(self.run);
        self.thread.join().unwrap_or(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cost_is_read_as_it_is_written() {
        let cost = Cost { process_s: 0.5, cpu_s: 0.25, memory_bytes_max: 4096 };
        assert_eq!(Cost::parse(cost.to_json().to_string().as_bytes()), Some(cost));
        assert_eq!(Cost::parse(b"{}"), None);
    }

    /// In a process of its own, because a run waits for all children.
    #[test]
    fn a_program_that_fails_or_never_ends_is_an_error() {
        const ROLE: &str = "FIORD_TEST_BENCH_ONE";
        if let Ok(output) = std::env::var(ROLE) {
            let words = |program: &str| [output.clone(), program.to_string()];
            let outcomes =
                [run(&words("true")), run(&words("false")), run(&words("./is-not-there")), run(&[])];
            assert_eq!(outcomes.map(|outcome| outcome.is_ok()), [true, false, false, false]);
            let asleep =
                [output, "sh".to_string(), "-c".to_string(), "setsid sleep 1000 & sleep 1000".to_string()];
            let why = run_within(Duration::from_secs(1), &asleep).unwrap_err();
            assert_eq!(why, "it had not ended after 1 s, and was killed");
            std::process::exit(77);
        }
        let output = std::env::temp_dir().join(format!("fiord-bench-one-{}", std::process::id()));
        fs::create_dir_all(&output).unwrap();
        let child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "bench::one::tests::a_program_that_fails_or_never_ends_is_an_error",
                "--nocapture",
            ])
            .env(ROLE, &output)
            .output()
            .unwrap();
        fs::remove_dir_all(&output).unwrap();
        assert_eq!(child.status.code(), Some(77), "{}", String::from_utf8_lossy(&child.stderr));
    }
}
