//! Watching a guest: its output is passed on, and it is ended when it does not end itself.
//!
//! Invariant: when this returns the guest has ended, unless its power is to be cut.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::session::{ANSWERED, STATUS, Session, TASKS};

/// The file by which a script asks for the power to be cut.
const CUT: &str = "cut";

/// How long the emulator may take to end.
const END_MAX: Duration = Duration::from_secs(5);

/// How long the guest may take to power itself down after its command has ended. It takes two seconds, but has been seen
/// never to do it.
const POWER_DOWN_MAX: Duration = Duration::from_secs(60);

/// How long a guest may take to say what its tasks wait for, beyond the time that it may be silent.
const ANSWER_MAX: Duration = Duration::from_secs(60);

/// How often the guest's output is looked at.
const POLL: Duration = Duration::from_millis(100);

/// When a guest is taken for hung.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// How long it may run.
    pub run: Duration,
    /// How long its command may print nothing, if it prints now and then what it has done.
    pub silence: Option<Duration>,
}

/// How a guest ended.
#[derive(Debug, PartialEq, Eq)]
pub enum End {
    /// Its script was done, or it stopped. The emulator has ended.
    ItsOwn,
    /// The script asked for its power to be cut, and it still runs.
    PowerCut,
}

/// Why a guest did not come to its end.
#[derive(Debug, PartialEq, Eq)]
pub enum Failure {
    /// The emulator hung, so that none of the guest's tasks went on, or aborted. What ran in the guest did not cause it.
    Emulator(String),
    /// Anything else.
    Other(String),
}

/// Copies the guest's output to this program's until the guest has ended or its power is to be cut.
pub fn pass_on(child: &mut Child, session: &Session, limits: Limits) -> Result<End, Failure> {
    let other = |what: &str, error: io::Error| Failure::Other(format!("{what}: {error}"));
    let start = Instant::now();
    let (mut printed, mut done_since) = (start, None);
    let (mut stdout, mut stderr) = (Tail::new(session.path("stdout")), Tail::new(session.path("stderr")));
    loop {
        let ended = child.try_wait().map_err(|error| other("virtme-ng", error))?.is_some();
        let failed = |error| other("cannot pass on the guest's output", error);
        let copied = stdout.copy(&mut io::stdout()).map_err(failed)?;
        stderr.copy(&mut io::stderr()).map_err(failed)?;
        if ended {
            return Ok(End::ItsOwn);
        }
        // A load that was cut has left the file there.
        if session.path(CUT).exists() && fs::remove_file(session.path(CUT)).is_ok() {
            return Ok(End::PowerCut);
        }
        if start.elapsed() > limits.run {
            end(child);
            return Err(Failure::Other(format!("the guest was ended after {} s", limits.run.as_secs())));
        }
        if copied > 0 {
            printed = Instant::now();
        }
        if let Some(why) = limits.silence.and_then(|silence| hung(session, silence, printed.elapsed())) {
            end(child);
            return Err(why);
        }
        if done_since.is_none() && session.path(STATUS).exists() {
            done_since = Some(Instant::now());
        }
        if done_since.is_some_and(|since| since.elapsed() > POWER_DOWN_MAX) {
            eprintln!("guest: did not power down, and was ended {} s later", POWER_DOWN_MAX.as_secs());
            end(child);
            return Ok(End::ItsOwn);
        }
        std::thread::sleep(POLL);
    }
}

/// Why a guest that has printed nothing for some time is hung, and what its tasks wait for if it could say so; `None` if it
/// is not, or may still say it.
fn hung(session: &Session, silence: Duration, silent: Duration) -> Option<Failure> {
    if silent < silence {
        return None;
    }
    if session.path(ANSWERED).exists() {
        let tasks = fs::read(session.path(TASKS)).unwrap_or_default();
        let tasks = String::from_utf8_lossy(&tasks);
        return Some(Failure::Other(format!(
            "{tasks}nothing was printed for {} s; what the guest's tasks waited for is above",
            silence.as_secs()
        )));
    }
    let all = silence + ANSWER_MAX;
    (silent > all).then(|| {
        Failure::Emulator(format!(
            "nothing in the guest went on for {} s: it is the emulator that hung",
            all.as_secs()
        ))
    })
}

/// Ends virtme-ng, and with it the emulator, which it started. One that hangs does not heed SIGTERM, as virtme-ng does.
fn end(child: &mut Child) {
    signal_group(child, "-TERM");
    let start = Instant::now();
    while matches!(child.try_wait(), Ok(None)) && start.elapsed() < END_MAX {
        std::thread::sleep(POLL);
    }
    kill_group(child);
}

/// Kills virtme-ng and the emulator at once, and waits until nothing of them runs.
pub fn kill_group(child: &mut Child) {
    signal_group(child, "-KILL");
    let _ = child.wait();
    let start = Instant::now();
    while signal_group(child, "-0") && start.elapsed() < END_MAX {
        std::thread::sleep(POLL);
    }
}

/// Sends a signal to the group of a child; whether anything of it is there.
fn signal_group(child: &Child, signal: &str) -> bool {
    let mut kill = Command::new("kill");
    kill.args([signal, "--", &format!("-{}", child.id())]).stderr(Stdio::null());
    kill.status().is_ok_and(|status| status.success())
}

/// A file that grows.
struct Tail {
    file: io::Result<File>,
}

impl Tail {
    fn new(path: PathBuf) -> Tail {
        Tail { file: File::open(path) }
    }

    /// Copies what was added; returns its length.
    fn copy(&mut self, to: &mut impl Write) -> io::Result<usize> {
        let mut text = Vec::new();
        if let Ok(file) = &mut self.file {
            file.read_to_end(&mut text)?;
        }
        to.write_all(&text)?;
        to.flush()?;
        Ok(text.len())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;

    use super::*;

    #[test]
    fn an_emulator_that_does_not_heed_the_signal_ends_with_what_started_it() {
        let script = "sh -c 'trap \"\" TERM; echo; while :; do sleep 1; done' & wait";
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdout(Stdio::piped()).process_group(0);
        let mut child = command.spawn().unwrap();
        // It ignores the signal from here on.
        child.stdout.take().unwrap().read_exact(&mut [0]).unwrap();
        end(&mut child);
        assert!(!signal_group(&child, "-0"), "something still runs");
    }
}
