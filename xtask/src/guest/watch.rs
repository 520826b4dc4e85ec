//! Watching a guest: its output is passed on, and it is ended when it does not end itself.
//!
//! Invariant: when this returns the guest has ended, unless its power is to be cut.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::session::{STATUS, Session};

/// The file by which a script asks for the power to be cut.
const CUT: &str = "cut";

/// How long the emulator may take to end.
const END_MAX: Duration = Duration::from_secs(5);

/// How long the guest may take to power itself down after its command has ended. It takes two seconds, but has been seen
/// never to do it.
const POWER_DOWN_MAX: Duration = Duration::from_secs(60);

/// How often the guest's output is looked at.
const POLL: Duration = Duration::from_millis(100);

/// How a guest ended.
#[derive(Debug, PartialEq, Eq)]
pub enum End {
    /// Its script was done, or it stopped. The emulator has ended.
    ItsOwn,
    /// The script asked for its power to be cut, and it still runs.
    PowerCut,
}

/// Copies the guest's output to this program's until the guest has ended or its power is to be cut.
pub fn pass_on(child: &mut Child, session: &Session, limit: Duration) -> Result<End, String> {
    let start = Instant::now();
    let mut done_since = None;
    let (mut stdout, mut stderr) = (Tail::new(session.path("stdout")), Tail::new(session.path("stderr")));
    loop {
        let ended = child.try_wait().map_err(|error| error.to_string())?.is_some();
        let copied = stdout.copy(&mut io::stdout()).and_then(|()| stderr.copy(&mut io::stderr()));
        copied.map_err(|error| format!("cannot pass on the guest's output: {error}"))?;
        if ended {
            return Ok(End::ItsOwn);
        }
        // A load that was cut has left the file there.
        if session.path(CUT).exists() && fs::remove_file(session.path(CUT)).is_ok() {
            return Ok(End::PowerCut);
        }
        if start.elapsed() > limit {
            end(child);
            return Err(format!("the guest was ended after {} s", limit.as_secs()));
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

/// Ends virtme-ng, and with it the emulator, which it started.
fn end(child: &mut Child) {
    let mut stop = Command::new("kill");
    stop.args(["-TERM", "--", &format!("-{}", child.id())]);
    let _ = stop.status();
    let start = Instant::now();
    while start.elapsed() < END_MAX {
        if matches!(child.try_wait(), Ok(Some(_))) {
            return;
        }
        std::thread::sleep(POLL);
    }
    let _ = child.kill();
    let _ = child.wait();
}

/// Kills virtme-ng and the emulator at once, and waits until nothing of them runs.
pub fn kill_group(child: &mut Child) {
    let group = format!("-{}", child.id());
    let signal = |signal: &str| {
        let mut kill = Command::new("kill");
        kill.args([signal, "--", &group]).stderr(Stdio::null());
        kill.status().is_ok_and(|status| status.success())
    };
    signal("-KILL");
    let _ = child.wait();
    let start = Instant::now();
    while signal("-0") && start.elapsed() < END_MAX {
        std::thread::sleep(POLL);
    }
}

/// A file that grows.
struct Tail {
    file: io::Result<File>,
}

impl Tail {
    fn new(path: PathBuf) -> Tail {
        Tail { file: File::open(path) }
    }

    fn copy(&mut self, to: &mut impl Write) -> io::Result<()> {
        let mut text = Vec::new();
        if let Ok(file) = &mut self.file {
            file.read_to_end(&mut text)?;
        }
        to.write_all(&text)?;
        to.flush()
    }
}
