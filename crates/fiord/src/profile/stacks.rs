//! Stacks of the jobs' threads, sampled by `perf` during a run.
//!
//! Invariant: nothing is written to a file; `perf` ends with the run, or with fiord.

use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};

use fiord_profile::{Observation, Stacks};
use fiord_sys::errno::error_text;
use fiord_sys::{process, procfs};
use fiord_worker::WorkerReport;

/// Samples per second of each processor: not a multiple of what programs do periodically.
const SAMPLES_PER_S: &str = "499";

/// The most that is kept of what `perf` records.
const BYTES_MAX: u64 = 256 << 20;

/// What is lacking without it.
const WHAT: &str = "flame graph, and the kernel's code by layer";

/// A `perf record` in progress.
pub(super) struct StackSampler {
    perf: Child,
    recorded: JoinHandle<Vec<u8>>,
    said: JoinHandle<Vec<u8>>,
}

impl StackSampler {
    /// Starts it on all threads of this process. The error says what is lacking, and what to do.
    pub(super) fn start() -> Result<StackSampler, String> {
        let mut command = Command::new("perf");
        command.args([
            "record",
            "-e",
            "cpu-clock",
            "-F",
            SAMPLES_PER_S,
            "-g",
            "--kernel-callchains",
            "-o",
            "-",
            "-p",
        ]);
        command.arg(std::process::id().to_string());
        // A signal of the terminal ends the run first.
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        // It polls without a pause once the jobs' threads have ended.
        let mut perf =
            process::in_ordinary_state(&mut command).spawn().map_err(|error| not_started(&error))?;
        let recorded = drain(perf.stdout.take()).map_err(|error| not_started(&error))?;
        let said = drain(perf.stderr.take()).map_err(|error| not_started(&error))?;
        Ok(StackSampler { perf, recorded, said })
    }

    /// Ends it, and completes the observation with the samples of the jobs' threads.
    pub(super) fn finish(mut self, workers: &[WorkerReport], observation: &mut Observation) {
        // It may have ended by itself.
        let _ = process::interrupt(&self.perf);
        let recorded = self.recorded.join().unwrap_or_default();
        let said = self.said.join().unwrap_or_default();
        // Its status tells of the signal.
        let _ = self.perf.wait();
        let threads: Vec<u32> = workers.iter().map(|worker| worker.thread_id).collect();
        let stacks = script(recorded).map(|text| Stacks::parse(&text, &threads));
        match stacks {
            Ok(stacks) if stacks.samples() > 0 => observation.stacks = Some(stacks),
            Ok(_) => {
                observation.lacking.push(no_samples(&String::from_utf8_lossy(&said), may_sample_kernel()))
            }
            Err(error) => observation.lacking.push(format!("{WHAT}: perf script: {}", error_text(&error))),
        }
    }
}

/// Reads a pipe to its end, on a thread of its own.
fn drain(pipe: Option<impl Read + Send + 'static>) -> io::Result<JoinHandle<Vec<u8>>> {
    thread::Builder::new().name("fiord-perf".to_string()).spawn(move || {
        let mut bytes = Vec::new();
        // What cannot be read is missing, as after the end of perf.
        let _ = pipe.map(|pipe| pipe.take(BYTES_MAX).read_to_end(&mut bytes));
        bytes
    })
}

/// The samples as text.
fn script(recorded: Vec<u8>) -> io::Result<String> {
    let mut command = Command::new("perf");
    command.args(["script", "-i", "-", "-F", "comm,tid,time,event,ip,sym"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut perf = process::in_ordinary_state(&mut command).spawn()?;
    let input = perf.stdin.take();
    let writer = thread::Builder::new().name("fiord-perf".to_string()).spawn(move || {
        // One that reads no further has printed what it can.
        let _ = input.map(|mut input| input.write_all(&recorded));
    })?;
    let mut text = Vec::new();
    let read = perf.stdout.take().map(|mut output| output.read_to_end(&mut text));
    let _ = writer.join();
    perf.wait()?;
    read.transpose()?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

fn not_started(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => format!(
            "{WHAT}: perf is not installed; install it (Debian: apt install linux-perf, Ubuntu: apt install \
             linux-tools-generic, Fedora: dnf install perf)"
        ),
        _ => format!("{WHAT}: perf cannot be started: {}", error_text(error)),
    }
}

/// Whether this user may sample the kernel; root may in a container only if that is given `CAP_PERFMON`, which perf says.
fn may_sample_kernel() -> bool {
    process::is_root() || procfs::perf_event_paranoid().is_none_or(|level| level < 2)
}

/// Why there are none, by what perf said and by whether the user may sample the kernel.
fn no_samples(said: &str, may_sample_kernel: bool) -> String {
    match !may_sample_kernel || said.contains("perf_event_paranoid") || said.contains("ermission") {
        true => format!(
            "{WHAT}: perf may not sample the kernel; run as root, or set sysctl kernel.perf_event_paranoid=1"
        ),
        false => format!(
            "{WHAT}: perf took no sample of the jobs; the run may be too short, a second or more is needed"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_for_no_samples_is_the_right_one() {
        assert!(no_samples("", true).contains("too short"));
        assert!(no_samples("", false).contains("perf_event_paranoid=1"));
        assert!(no_samples("Access is limited, see perf_event_paranoid", true).contains("run as root"));
    }
}
