//! Writes the log files of a run while it lasts.
//!
//! Invariant: every planned file exists afterwards, empty if its job measured nothing; one that cannot be written does
//! not affect the others, nor the run. Entries are in the order they were recorded, jobs that share a file in the order
//! of the plan. Memory is bounded: a job that is faster than its log files waits.

mod file;
mod held;
mod written;

use fiord_sys::channel::{Receiver, Sender, bounded, channel};
use fiord_sys::errno::error_text;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::available_parallelism;

use fiord_plan::{Job, Plan};
use fiord_stats::{LogEntries, LoggedIo};
use fiord_sys::signal;
use fiord_sys::spawn::{Thread, spawn};
use fiord_sys::thread;
use fiord_worker::{DebugLog, LogSink};

use file::JobFiles;
use fiord_stats::OrderBy;

pub use written::{LogReceiver, WrittenLog};

/// Memory for blocks that wait to be written, of all jobs together.
const WAITING_BYTES: usize = 64 << 20;
/// I/Os of a block: few enough to stay in a cache, and enough for handing one over to cost nothing.
const BLOCK_IOS: std::ops::RangeInclusive<usize> = 224..=4096;
/// The fewest blocks of a job: one to record into, others to be written meanwhile.
const BLOCKS_MIN: usize = 4;
const THREADS_MAX: usize = 8;
/// The state of a compressor is built on the stack.
const STACK_BYTES: usize = 2 << 20;

/// The threads that write log files.
pub(super) struct LogWriters {
    writers: Vec<Writer>,
    /// By number of the job: its receiver, until the job takes it.
    sinks: Vec<Option<Box<dyn LogSink>>>,
    /// Files of jobs, in the order of the plan, as their writers leave them.
    written: Arc<Mutex<Vec<JobFiles>>>,
    failures: Vec<String>,
}

/// A thread, and its channel.
struct Writer {
    messages: Sender<Message>,
    thread: Option<Thread>,
    /// What it writes, for people.
    names: Vec<String>,
}

/// A message to a writer.
enum Message {
    /// Entries of the job of this index among the writer's.
    Entries(usize, Box<LogEntries>),
    /// The job has handed over its last entries.
    Ended(usize),
    /// The run is over, whether all jobs have ended or not.
    Over,
}

/// A job with logs: its number, its files, and the entries that it wants space for.
type LoggedJob = (u32, JobFiles, usize);

/// A job in its writer.
struct WriterJob {
    files: Option<JobFiles>,
    spares: Sender<LogEntries>,
}

/// A job's receiver of entries.
struct JobSink {
    index: usize,
    messages: Sender<Message>,
    spares: Receiver<LogEntries>,
    /// Blocks that may still be created.
    left: usize,
    block_ios: usize,
}

impl LogWriters {
    /// Starts writers for the logs of a plan; none if it has no logs. `debug` is where their compression is printed,
    /// `receiver` takes those that are sent.
    pub(super) fn start(
        plan: &Plan,
        debug: Option<&DebugLog>,
        receiver: Option<&dyn LogReceiver>,
    ) -> LogWriters {
        let logged: Vec<&Job> = plan.jobs.iter().filter(|job| job.logs.is_some()).collect();
        let mut started = LogWriters {
            writers: Vec::new(),
            sinks: plan.jobs.iter().map(|_| None).collect(),
            written: Arc::default(),
            failures: Vec::new(),
        };
        let mut paths = BTreeSet::new();
        // Jobs by the CPUs of their writers.
        let mut by_cpus: BTreeMap<&[u32], Vec<LoggedJob>> = BTreeMap::new();
        for job in &logged {
            let Some(logs) = &job.logs else { continue };
            let first: Vec<bool> = logs.files.iter().map(|file| paths.insert(file.path.as_path())).collect();
            let receiver = receiver.filter(|_| logs.are_sent);
            let files = JobFiles::new(job, logs, &first, debug, receiver);
            by_cpus.entry(&logs.cpus).or_default().push((job.number, files, logs.entries_ahead as usize));
        }
        let available = available_parallelism().map_or(1, usize::from);
        for (cpus, jobs) in by_cpus {
            let cpu_count = if cpus.is_empty() { available / 2 } else { cpus.len() };
            let threads = cpu_count.clamp(1, THREADS_MAX).min(jobs.len());
            let mut of_threads: Vec<Vec<LoggedJob>> = (0..threads).map(|_| Vec::new()).collect();
            for (position, job) in jobs.into_iter().enumerate() {
                of_threads[position % threads].push(job);
            }
            for of_thread in of_threads {
                started.start_writer(of_thread, logged.len());
            }
        }
        started
    }

    /// Starts a writer for these jobs, whose logs may be written on the same CPUs.
    fn start_writer(&mut self, jobs: Vec<LoggedJob>, job_count: usize) {
        let (messages, received) = channel();
        let (block_ios, blocks_min) = block_sizes(job_count);
        let cpus = jobs.first().map_or_else(Vec::new, |(_, files, _)| files.cpus().to_vec());
        let mut of_writer = Vec::new();
        let mut sinks = Vec::new();
        for (index, (number, files, entries)) in jobs.into_iter().enumerate() {
            let blocks = blocks_min.max(entries.div_ceil(block_ios));
            let (spare, spares) = bounded(blocks);
            let sink = JobSink { index, messages: messages.clone(), spares, left: blocks - 1, block_ios };
            sinks.push((number as usize, sink));
            of_writer.push(WriterJob { files: Some(files), spares: spare });
        }
        let names: Vec<String> = of_writer.iter().flat_map(|job| &job.files).map(JobFiles::names).collect();
        let written = self.written.clone();
        let write = move || {
            signal::leave_to_other_threads();
            if let Err(error) = place(&cpus) {
                fail_all(&mut of_writer, &error);
            }
            write_all(of_writer, &received, &written);
        };
        match spawn("fiord-logs", STACK_BYTES, write) {
            Ok(thread) => {
                self.writers.push(Writer { messages, thread: Some(thread), names });
                for (number, sink) in sinks {
                    self.sinks[number] = Some(Box::new(sink));
                }
            }
            Err(error) => self.failures.extend(names.iter().map(|names| {
                format!("fiord: {names}: no thread could be started to write: {}\n", error_text(&error))
            })),
        }
    }

    /// The receiver of a job's logs, once.
    pub(super) fn sink(&mut self, job: &Job) -> Option<Box<dyn LogSink>> {
        self.sinks.get_mut(job.number as usize)?.take()
    }

    /// Waits until all entries are written; returns a line for each file that could not be.
    pub(super) fn finish(&mut self) -> Vec<String> {
        for writer in &mut self.writers {
            // If it panicked, `join` says so.
            let _ = writer.messages.send(Message::Over);
        }
        for writer in &mut self.writers {
            if let Some(Err(panicked)) = writer.thread.take().map(Thread::join) {
                let incomplete = |names| format!("fiord: {names}: incomplete: {panicked}\n");
                self.failures.extend(writer.names.iter().map(incomplete));
            }
        }
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        written.order_by_key(JobFiles::number);
        written.iter_mut().for_each(JobFiles::append_shared);
        self.failures.extend(written.drain(..).flat_map(JobFiles::failures));
        std::mem::take(&mut self.failures)
    }
}

/// The I/Os of a block and the blocks of each job, for this many jobs with logs.
fn block_sizes(jobs: usize) -> (usize, usize) {
    let ios_per_job = WAITING_BYTES / size_of::<LoggedIo>() / jobs.max(1);
    let block_ios = (ios_per_job / BLOCKS_MIN).clamp(*BLOCK_IOS.start(), *BLOCK_IOS.end());
    (block_ios, (ios_per_job / block_ios).max(BLOCKS_MIN))
}

/// Moves this thread to these CPUs; without any it may run on all.
fn place(cpus: &[u32]) -> io::Result<()> {
    if cpus.is_empty() { Ok(()) } else { thread::set_affinity(cpus) }
}

/// Leaves the logs of these jobs alone, because their writer may not run where it should.
fn fail_all(jobs: &mut [WriterJob], error: &io::Error) {
    let why = format!("log_compression_cpus: {}", error_text(error));
    jobs.iter_mut().flat_map(|job| &mut job.files).for_each(|files| files.fail(&why));
}

/// Writes entries as they come, to the end of the run.
fn write_all(mut jobs: Vec<WriterJob>, messages: &Receiver<Message>, written: &Mutex<Vec<JobFiles>>) {
    let mut text = String::new();
    let end = |job: &mut WriterJob| {
        if let Some(mut files) = job.files.take() {
            files.close();
            written.lock().unwrap_or_else(PoisonError::into_inner).push(files);
        }
    };
    while let Ok(message) = messages.recv() {
        match message {
            Message::Entries(index, mut entries) => {
                if let Some(files) = &mut jobs[index].files {
                    files.write(&entries, &mut text);
                }
                entries.clear();
                // If nothing receives it, the job has ended.
                let _ = jobs[index].spares.try_send(*entries);
            }
            Message::Ended(index) => end(&mut jobs[index]),
            Message::Over => break,
        }
    }
    jobs.iter_mut().for_each(end);
}

impl LogSink for JobSink {
    fn block_ios(&self) -> usize {
        self.block_ios
    }

    fn spare(&mut self) -> Option<LogEntries> {
        if let Ok(spare) = self.spares.try_recv() {
            return Some(spare);
        }
        self.left = self.left.checked_sub(1)?;
        Some(LogEntries::default())
    }

    fn take(&mut self, entries: LogEntries) {
        // If the writer panicked, its files are incomplete, as `finish` reports.
        let _ = self.messages.send(Message::Entries(self.index, Box::new(entries)));
    }
}

impl Drop for JobSink {
    fn drop(&mut self) {
        let _ = self.messages.send(Message::Ended(self.index));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_entries_are_bounded_however_many_jobs_there_are() {
        for jobs in [1, 2, 100, 1_300] {
            let (block_ios, blocks) = block_sizes(jobs);
            assert!(BLOCK_IOS.contains(&block_ios) && blocks >= BLOCKS_MIN, "{jobs} jobs");
            assert!(block_ios * blocks * jobs * size_of::<LoggedIo>() <= WAITING_BYTES, "{jobs} jobs");
        }
        assert_eq!(block_sizes(10_000), (224, 4), "never less than a job needs");
    }

    #[test]
    fn a_job_has_as_many_blocks_as_it_may_and_gets_back_those_that_are_written() {
        let (messages, received) = channel();
        let (spare, spares) = bounded(3);
        let mut sink = JobSink { index: 7, messages, spares, left: 2, block_ios: 256 };
        assert!(sink.spare().is_some() && sink.spare().is_some() && sink.spare().is_none());
        sink.take(LogEntries::default());
        assert!(matches!(received.try_recv(), Ok(Message::Entries(7, _))));
        spare.send(LogEntries::default()).unwrap();
        assert!(sink.spare().is_some() && sink.spare().is_none());
        drop(sink);
        assert!(matches!(received.try_recv(), Ok(Message::Ended(7))));
    }
}
