//! The interface through which a caller follows a run.
//!
//! Invariant: all calls come from the thread that called `run`, so it needs no lock.

use std::sync::Arc;
use std::time::Duration;

use fiord_plan::{Job, PerDirection};

use super::progress::View;
use super::published::PublishedProgress;
use crate::debug::DebugLog;
use crate::log_sink::LogSink;
use crate::report::WorkerReport;
use crate::states::States;

/// The time of a snapshot within the run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moment {
    /// Time since the run began, layout included.
    pub elapsed_ms: u64,
    /// Seconds until the last worker is done; `None` while unknown.
    pub left_s: Option<f64>,
    /// Whether SIGUSR1 requested it.
    pub is_requested: bool,
}

/// When the workers of a stage may be released.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gate {
    /// Now.
    Open,
    /// That is not known yet.
    Closed,
    /// At this time of the monotonic clock, in nanoseconds.
    OpensAt(u64),
}

/// Follows a run while it lasts. Methods that are not implemented ignore their event.
pub trait Watcher {
    /// The layout of a job's files begins.
    fn laying_out(&mut self, job: &Job, files: usize, bytes: u64) {
        let _ = (job, files, bytes);
    }
    /// This many more bytes were laid out.
    fn laid_out(&mut self, bytes: u64) {
        let _ = bytes;
    }
    /// All files are laid out and the first workers are about to be released. Not called if no worker is.
    fn started(&mut self) {}
    /// All workers of this stage are ready: when they may be released. Asked again and again until that is now; it may take
    /// up to `patience` to find out. A stop is heeded meanwhile.
    fn gate(&mut self, stage: usize, patience: Duration) -> Gate {
        let _ = (stage, patience);
        Gate::Open
    }
    /// The workers of this stage were released at this time of the monotonic clock, in nanoseconds.
    fn released(&mut self, stage: usize, at_ns: u64) {
        let _ = (stage, at_ns);
    }
    /// Interval between calls of `look`; `None`: never called.
    fn look_every(&self) -> Option<Duration> {
        None
    }
    /// The current state of the run.
    fn look(&mut self, view: &View<'_>) {
        let _ = view;
    }
    /// Interval between snapshots; `None`: only when SIGUSR1 requests one.
    fn snapshot_every(&self) -> Option<Duration> {
        None
    }
    /// Whether all workers are to stop, as if SIGTERM had requested it.
    fn is_stop_requested(&self) -> bool {
        false
    }
    /// Whether the trigger of the run fires, if it has one.
    fn is_trigger_requested(&self) -> bool {
        false
    }
    /// Where states of verification are kept, if that is not in files. Called once, before the run.
    fn states(&self) -> Option<Arc<dyn States>> {
        None
    }
    /// A signal, or `is_stop_requested`, has requested all workers to stop.
    fn stop_requested(&mut self, signal: i32) {
        let _ = signal;
    }
    /// These jobs have not stopped yet; the run waits for them.
    fn waiting_for(&mut self, jobs: &[&Job]) {
        let _ = jobs;
    }
    /// Interval between calls of `bandwidth`; `None`: never called.
    fn bandwidth_every(&self) -> Option<Duration> {
        None
    }
    /// Combined KiB/s of all workers in the interval that ended `at_ms` after `started`. The last one may be short.
    fn bandwidth(&mut self, at_ms: u64, kib_per_s: PerDirection<u64>) {
        let _ = (at_ms, kib_per_s);
    }
    /// The receiver of this job's logs; without one they are not recorded. Called for each job before the run.
    fn log_sink(&mut self, job: &Job) -> Option<Box<dyn LogSink>> {
        let _ = job;
        None
    }
    /// The lines of `--debug`, if any are printed.
    fn debug_log(&self) -> Option<DebugLog> {
        None
    }
    /// Whether workers look at what the page cache has of their files.
    fn looks_at_caches(&self) -> bool {
        false
    }
    /// All files are laid out and the first workers are about to be released; called before `started`.
    fn starting(&mut self) {}
    /// Interval between calls of `sample`; `None`: never called.
    fn sample_every(&self) -> Option<Duration> {
        None
    }
    /// The current state of the run, for what is measured over time.
    fn sample(&mut self, view: &View<'_>) {
        let _ = view;
    }
    /// Interval between calls of `statistics` from now on; `None`: not now.
    fn statistics_every(&mut self) -> Option<Duration> {
        None
    }
    /// The statistics of all workers as they published them last, which is within the interval unless an I/O takes
    /// longer.
    fn statistics(&mut self, reports: &[WorkerReport]) {
        let _ = reports;
    }
    /// Interval between calls of `progressed`; `None`: never called.
    fn progress_every(&self) -> Option<Duration> {
        None
    }
    /// What the workers had done `elapsed_ns` after the first were released. Latencies at full resolution are published
    /// only if there are not too many workers.
    fn progressed(&mut self, elapsed_ns: u64, published: &PublishedProgress<'_>) {
        let _ = (elapsed_ns, published);
    }
    /// The statistics of all workers so far, at this moment of the run.
    fn snapshot(&mut self, reports: Vec<WorkerReport>, moment: Moment);
}
