//! What the kernel records of a device, with its own blktrace.
//!
//! Invariant: the work begins when the kernel has begun to record, and everything it queued is in the recording.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long blktrace may take to start on a loaded machine.
const START_MAX: Duration = Duration::from_secs(120);

/// How long blktrace may take to end.
const END_MAX: Duration = Duration::from_secs(20);

/// How often a recording is tried. Once in a while blktrace does not end when it is interrupted, and never will: its threads
/// wait for each other, and neither further signals nor I/Os wake them.
const TRIES: u32 = 3;

/// From here on a device of 16 MiB is read until the kernel records it; the work leaves this part alone.
pub const END_SECTOR: u64 = (16 << 11) - 128;

/// An I/O as the kernel queued it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queued {
    /// blktrace's letters for the kind: `R`, `W`, `D`, with `S` and others behind.
    pub kind: String,
    /// Where it begins.
    pub sector: u64,
    /// Its length.
    pub bytes: u64,
    /// The name of the task that queued it.
    pub task: String,
}

/// Records what `work` does on a device; returns the path of the trace in its binary form, and the I/Os that were
/// queued, in order. The work is done again for each try.
///
/// # Errors
/// If one of blktrace's programs fails.
pub fn record(device: &str, name: &str, mut work: impl FnMut()) -> Result<(PathBuf, Vec<Queued>), String> {
    let dir = Path::new("/run").join(name);
    for _ in 0..TRIES {
        // Files of an earlier recording look like the begin of this one.
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).map_err(|error| format!("{}: {error}", dir.display()))?;
        let mut command = Command::new("blktrace");
        // Many small buffers, because one reaches the file only when it is full.
        command.args(["-d", device, "-b", "4", "-n", "256", "-o", "trace", "-D"]).arg(&dir);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut recorder = command.spawn().map_err(|error| format!("blktrace: {error}"))?;
        let started = wait_for_start(&mut recorder, &dir, device);
        if started.is_ok() {
            work();
        }
        let has_ended = end(&mut recorder, device).map_err(|error| format!("blktrace: {error}"))?;
        started?;
        if has_ended {
            return parsed(&dir);
        }
    }
    Err(format!("blktrace did not end when it was interrupted, {TRIES} times"))
}

/// Ends a recording; whether it ended by itself, so that it is complete.
fn end(recorder: &mut Child, device: &str) -> io::Result<bool> {
    Command::new("kill").args(["-INT", &recorder.id().to_string()]).status()?;
    let since = Instant::now();
    while since.elapsed() < END_MAX {
        if recorder.try_wait()?.is_some() {
            return Ok(true);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    recorder.kill()?;
    recorder.wait()?;
    // The kernel would go on with it, and begin no other.
    Command::new("blktrace").args(["-d", device, "-k"]).stdout(Stdio::null()).status()?;
    Ok(false)
}

/// The recording in this directory.
fn parsed(dir: &Path) -> Result<(PathBuf, Vec<Queued>), String> {
    let binary = dir.join("trace.bin");
    let mut parse = Command::new("blkparse");
    parse.args(["-q", "-i", "trace", "-f", "%a %d %S %N %C\n", "-d"]).arg(&binary);
    let out = parse.current_dir(dir).output().map_err(|error| format!("blkparse: {error}"))?;
    let text = String::from_utf8_lossy(&out.stdout);
    match out.status.success() {
        true => Ok((binary, text.lines().filter_map(queued).collect())),
        false => Err(format!("blkparse: {}", String::from_utf8_lossy(&out.stderr))),
    }
}

/// Reads the end of the device until something is recorded.
fn wait_for_start(recorder: &mut Child, dir: &Path, device: &str) -> Result<(), String> {
    let since = Instant::now();
    let has_begun = || {
        let files = fs::read_dir(dir).into_iter().flatten().flatten();
        files.filter_map(|file| file.metadata().ok()).any(|file| file.len() > 0)
    };
    while !has_begun() {
        let ended = recorder.try_wait().map_err(|error| format!("blktrace: {error}"))?;
        if let Some(status) = ended {
            return Err(format!("blktrace ended with {status} before it recorded anything"));
        }
        if since.elapsed() > START_MAX {
            return Err("blktrace does not begin to record".to_string());
        }
        let mut read = Command::new("dd");
        read.args([&format!("if={device}"), "of=/dev/null", "iflag=direct", "bs=4k", "count=16"]);
        read.arg(format!("skip={}", END_SECTOR / 8)).stderr(Stdio::null());
        read.status().map_err(|error| format!("dd: {error}"))?;
    }
    Ok(())
}

/// A line of blkparse in the format above.
fn queued(line: &str) -> Option<Queued> {
    let mut words = line.split_whitespace();
    let (action, kind) = (words.next()?, words.next()?);
    let (sector, bytes) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let task = words.collect::<Vec<_>>().join(" ");
    (action == "Q").then(|| Queued { kind: kind.to_string(), sector, bytes, task })
}
