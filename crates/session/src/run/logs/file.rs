//! The log files of one job.
//!
//! Invariant: a file is opened when its first entries are there, or its job has ended, and after an error it is left
//! alone. A file that belongs to an earlier job as well is written to a file without a name, and appended in the end.

use fiord_sys::errno::error_text;
use std::fs::File;
use std::io::{self, Seek, Write};
use std::path::PathBuf;

use fiord_plan::{DebugChannel, Job, LogFile, Logs};
use fiord_report::log;
use fiord_report::path::shown;
use fiord_stats::LogEntries;
use fiord_sys::file;
use fiord_worker::{DebugLog, TargetOpener};
use flate2::Compression;
use flate2::write::ZlibEncoder;

use super::held::HeldLog;

/// The files of one job.
pub(super) struct JobFiles {
    number: u32,
    job: String,
    plan: Logs,
    files: Vec<Written>,
    opener: TargetOpener,
    debug: Option<DebugLog>,
}

/// An open file.
enum Open {
    Plain(File),
    /// Of a compressed log: little effort, because the job may have to wait for it.
    Compressed(ZlibEncoder<File>),
}

/// A file and its state.
struct Written {
    path: PathBuf,
    /// Whether an earlier job writes to the same file.
    is_shared: bool,
    open: Option<Open>,
    /// What is written when the job has ended.
    held: Option<HeldLog>,
    failure: Option<String>,
}

impl JobFiles {
    /// The files of a job; `first` says for each whether it is the first job with that file.
    pub(super) fn new(job: &Job, plan: &Logs, first: &[bool], debug: Option<&DebugLog>) -> JobFiles {
        let written = |(file, first): (&LogFile, &bool)| Written {
            path: file.path.clone(),
            is_shared: !first,
            open: None,
            held: plan.held_chunk_bytes.map(HeldLog::new),
            failure: None,
        };
        JobFiles {
            number: job.number,
            job: shown(&job.name),
            plan: plan.clone(),
            files: plan.files.iter().zip(first).map(written).collect(),
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
        let names: Vec<String> = self.files.iter().map(|file| shown(&file.path)).collect();
        format!("job {}: logs {}", self.job, names.join(", "))
    }

    /// CPUs that its writer may run on; empty is all.
    pub(super) fn cpus(&self) -> &[u32] {
        &self.plan.cpus
    }

    /// Writes entries; `text` is space for them as text.
    pub(super) fn write(&mut self, entries: &LogEntries, text: &mut String) {
        for (planned, written) in self.plan.files.iter().zip(&mut self.files) {
            if !planned.recorded || written.failure.is_some() {
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
                let (size, log) = (bytes.len(), shown(&written.path));
                debug.line(DebugChannel::Compress, format_args!("deflate input size={size}, log={log}"));
            }
            match &mut written.held {
                _ if bytes.is_empty() => {}
                Some(held) => written.failure = held.add(bytes).err().map(|error| error_text(&error)),
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
                    if written.failure.is_some() { Err(io::Error::other("not written")) } else { Ok(()) }
                });
                if let (Err(error), None) = (drained, &written.failure) {
                    written.failure = Some(error_text(&error));
                }
            }
            if written.open.is_none() && !written.is_shared && written.failure.is_none() {
                written.attempt(planned, &self.opener, Ok);
            }
            if let (Some(debug), Some(Open::Compressed(encoder))) = (&self.debug, &mut written.open) {
                // The end is written now, so that the size is known; an error of it is that of closing.
                let _ = encoder.try_finish();
                let (size, log) = (encoder.total_out(), shown(&written.path));
                debug.line(DebugChannel::Compress, format_args!("deflated to size={size}, log={log}"));
            }
            let closed = written.open.take().map(Open::close);
            match closed.transpose() {
                Ok(open) if written.is_shared => written.open = open,
                Ok(_) => {}
                Err(error) => written.failure = Some(error_text(&error)),
            }
        }
    }

    /// Appends to the files that earlier jobs write as well.
    pub(super) fn append_shared(&mut self) {
        for written in &mut self.files {
            let Some(Open::Plain(mut unnamed)) = written.open.take() else { continue };
            let opened = self.opener.create_named(&written.path, true).map_err(|failure| failure.reason());
            let copied = opened.and_then(|mut shared| {
                let copy = unnamed.rewind().and_then(|()| io::copy(&mut unnamed, &mut shared));
                copy.map_err(|error| error_text(&error))
            });
            written.failure = copied.err().or(written.failure.take());
        }
    }

    /// Gives up all files.
    pub(super) fn fail(&mut self, why: &str) {
        self.files.iter_mut().for_each(|written| written.failure = Some(why.to_string()));
    }

    /// A line for each file that could not be written.
    pub(super) fn failures(self) -> Vec<String> {
        let line = |written: Written| {
            let why = written.failure?;
            Some(format!("fiord: job {}: log {}: {why}\n", self.job, shown(&written.path)))
        };
        self.files.into_iter().filter_map(line).collect()
    }
}

impl Open {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Open::Plain(file) => file.write_all(bytes),
            Open::Compressed(encoder) => encoder.write_all(bytes),
        }
    }

    /// Begins a compressed stream, unless it has begun. A log without entries stays an empty file.
    fn compressed(self) -> Open {
        match self {
            Open::Plain(file) => Open::Compressed(ZlibEncoder::new(file, Compression::fast())),
            Open::Compressed(encoder) => Open::Compressed(encoder),
        }
    }

    /// Writes the end of a compressed stream.
    fn close(self) -> io::Result<Open> {
        match self {
            Open::Compressed(encoder) => encoder.finish().map(Open::Plain),
            Open::Plain(file) => Ok(Open::Plain(file)),
        }
    }
}

impl Written {
    /// Appends bytes to the file, which is compressed if that is planned.
    fn append(&mut self, planned: &LogFile, opener: &TargetOpener, bytes: &[u8]) {
        self.attempt(planned, opener, |open| {
            let mut open = if planned.is_compressed { open.compressed() } else { open };
            open.write_all(bytes).map(|()| open)
        });
    }

    /// Does something with the file, which is opened first if it is not open.
    fn attempt(
        &mut self,
        planned: &LogFile,
        opener: &TargetOpener,
        action: impl FnOnce(Open) -> io::Result<Open>,
    ) {
        let opened = match self.open.take() {
            Some(open) => Ok(open),
            None if self.is_shared => {
                let unnamed = file::unnamed(self.path.parent().unwrap_or(&self.path));
                unnamed.map(Open::Plain).map_err(|error| error_text(&error))
            }
            None => opener
                .create_named(&self.path, planned.appends)
                .map(Open::Plain)
                .map_err(|failure| failure.reason()),
        };
        let done = opened.and_then(|open| action(open).map_err(|error| error_text(&error)));
        match done {
            Ok(open) => self.open = Some(open),
            Err(why) => self.failure = Some(why),
        }
    }
}
