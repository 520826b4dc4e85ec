//! The log files of one job.
//!
//! Invariant: a log that cannot be written does not affect the others.

use std::io;

use fiord_plan::{DebugChannel, Job, LogFile, Logs};
use fiord_report::log;
use fiord_report::path::shown;
use fiord_stats::LogEntries;
use fiord_sys::errno::error_text;
use fiord_worker::{DebugLog, TargetOpener};

use super::held::HeldLog;
use super::written::{LogReceiver, WrittenLog};

/// The files of one job.
pub(super) struct JobFiles {
    number: u32,
    job: String,
    plan: Logs,
    files: Vec<Written>,
    opener: TargetOpener,
    debug: Option<DebugLog>,
}

/// A file and its state.
struct Written {
    log: WrittenLog,
    /// What is written when the job has ended.
    held: Option<HeldLog>,
}

impl JobFiles {
    /// The files of a job; `first` says for each whether it is the first job with that file. A receiver takes
    /// them all.
    pub(super) fn new(
        job: &Job,
        plan: &Logs,
        first: &[bool],
        debug: Option<&DebugLog>,
        receiver: Option<&dyn LogReceiver>,
    ) -> JobFiles {
        let written = |(position, (file, first)): (usize, (&LogFile, &bool))| Written {
            log: match receiver {
                Some(receiver) => WrittenLog::sent(&file.path, receiver.receive(job.number, position)),
                None => WrittenLog::new(&file.path, file.appends, !first),
            },
            held: plan.held_chunk_bytes.map(HeldLog::new),
        };
        JobFiles {
            number: job.number,
            job: shown(&job.name),
            plan: plan.clone(),
            files: plan.files.iter().zip(first).enumerate().map(written).collect(),
            opener: TargetOpener::default(),
            debug: debug
                .filter(|debug| debug.has(DebugChannel::Compress))
                .and_then(|debug| debug.of_job(job.number)),
        }
    }

    /// The number of the job.
    pub(super) fn number(&self) -> u32 {
        self.number
    }

    /// The job and its files, for messages.
    pub(super) fn names(&self) -> String {
        let names: Vec<String> = self.files.iter().map(|file| shown(file.log.path())).collect();
        format!("job {}: logs {}", self.job, names.join(", "))
    }

    /// CPUs that its writer may run on; empty is all.
    pub(super) fn cpus(&self) -> &[u32] {
        &self.plan.cpus
    }

    /// Writes entries; `text` is space for them as text.
    pub(super) fn write(&mut self, entries: &LogEntries, text: &mut String) {
        for (planned, written) in self.plan.files.iter().zip(&mut self.files) {
            if !planned.recorded || written.log.failure().is_some() {
                continue;
            }
            text.clear();
            let mut samples = Vec::new();
            match planned.is_compressed {
                true => log::encode(&mut samples, planned.kind, &self.plan, entries),
                false => log::write(text, planned.kind, &self.plan, entries),
            }
            let bytes = if planned.is_compressed { &samples } else { text.as_bytes() };
            let is_deflated = planned.is_compressed || written.held.is_some();
            if let (Some(debug), true, false) = (&self.debug, is_deflated, bytes.is_empty()) {
                let (size, log) = (bytes.len(), shown(written.log.path()));
                debug.line(DebugChannel::Compress, format_args!("deflate input size={size}, log={log}"));
            }
            match &mut written.held {
                _ if bytes.is_empty() => {}
                Some(held) => {
                    if let Err(error) = held.add(bytes) {
                        written.log.fail(error_text(&error));
                    }
                }
                None => written.append(planned, &self.opener, bytes),
            }
        }
    }

    /// The job has no more entries: all its files exist, and those that only it writes are closed.
    pub(super) fn close(&mut self) {
        for (planned, written) in self.plan.files.iter().zip(&mut self.files) {
            if let Some(held) = written.held.take() {
                // Later pieces after one that could not be written would leave a gap.
                let drained = held.drain(|bytes| {
                    written.append(planned, &self.opener, bytes);
                    if written.log.failure().is_some() {
                        Err(io::Error::other("not written"))
                    } else {
                        Ok(())
                    }
                });
                if let Err(error) = drained {
                    written.log.fail(error_text(&error));
                }
            }
            // The end of a stream is written now, so that its size is known.
            if let (Some(debug), Some(size)) = (&self.debug, written.log.end_stream()) {
                let log = shown(written.log.path());
                debug.line(DebugChannel::Compress, format_args!("deflated to size={size}, log={log}"));
            }
            written.log.close(&self.opener);
        }
    }

    /// Appends to the files that earlier jobs write as well.
    pub(super) fn append_shared(&mut self) {
        self.files.iter_mut().for_each(|written| written.log.append_shared(&self.opener));
    }

    /// Gives up all files.
    pub(super) fn fail(&mut self, why: &str) {
        self.files.iter_mut().for_each(|written| written.log.fail(why.to_string()));
    }

    /// A line for each file that could not be written.
    pub(super) fn failures(self) -> Vec<String> {
        let line = |written: Written| {
            let (log, why) = (shown(written.log.path()), written.log.failure()?);
            Some(format!("fiord: job {}: log {log}: {why}\n", self.job))
        };
        self.files.into_iter().filter_map(line).collect()
    }
}

impl Written {
    /// Appends bytes to the file, which is compressed if that is planned.
    fn append(&mut self, planned: &LogFile, opener: &TargetOpener, bytes: &[u8]) {
        match planned.is_compressed {
            true => self.log.append_compressed(opener, bytes),
            false => self.log.append(opener, bytes),
        }
    }
}
