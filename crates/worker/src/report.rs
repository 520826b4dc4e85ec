//! The result of a run: one report per job.
//!
//! Invariant: plain values, built once and never changed by a thread that may still be running.

use fiord_plan::{Job, Spec};
use fiord_stats::{JobStats, RampEnd, SteadyState};
use fiord_sys::clock;

use crate::failure::Failure;
use crate::files::cache_growth::CacheGrowth;
use crate::hot::own_time::OwnTime;

/// Why a worker ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndReason {
    /// It had done all its I/O.
    Size,
    /// Its run time was over.
    Time,
    /// Its measure became steady (`steadystate`).
    Steady,
    /// It found the depth that meets `latency_target`.
    DepthFound,
    /// The device was full, as requested by `fill_device`.
    DeviceFull,
    /// Another job's end stopped it (`exitall`).
    Others,
    /// A signal requested it to stop.
    Signal,
    /// The trigger of the run stopped it.
    Trigger,
    /// It failed.
    Error,
    /// It is still running (in a snapshot).
    Running,
    /// It was never started.
    NotStarted,
}

/// A warning about an option, although the job did not fail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remark {
    /// The job option it is about.
    pub option: &'static Spec,
    /// The warning: a sentence without a final full stop.
    pub message: String,
    /// A file that was asked for could not be written in full: the run fails, and what was measured stands.
    pub is_lost_output: bool,
}

impl Remark {
    /// A warning, no more.
    pub(crate) fn warning(option: &'static Spec, message: String) -> Remark {
        Remark { option, message, is_lost_output: false }
    }

    /// A file that could not be written in full.
    pub(crate) fn lost_output(option: &'static Spec, message: String) -> Remark {
        Remark { option, message, is_lost_output: true }
    }
}

/// The report of one worker.
#[derive(Debug, Clone)]
pub struct WorkerReport {
    /// Number of its job in the plan.
    pub number: u32,
    /// Its statistics.
    pub stats: Box<JobStats>,
    /// The queue depth in use, if it is adjusted to `latency_target`.
    pub depth: Option<u32>,
    /// How steady the job, or all jobs that it is reported with, became.
    pub steady: Option<Box<SteadyState>>,
    /// Why it ended.
    pub reason: EndReason,
    /// What went wrong, if something did.
    pub failure: Option<Failure>,
    /// Errors that were ignored and are to be printed (`error_dump`), a line each.
    pub passed_over: Vec<String>,
    /// Warnings, although it did not fail.
    pub warnings: Vec<Remark>,
    /// What of its measured time was no I/O.
    pub own: OwnTime,
    /// By how much the page cache grew of files that it used past it.
    pub cache_growth: Vec<CacheGrowth>,
    /// How long its ramp had lasted when it ended.
    pub ramp: RampEnd,
    /// It never started its I/O: setup failed, or laying out files was all it had to do.
    pub unstarted: bool,
    /// Thread id.
    pub thread_id: u32,
    /// When its I/O began, in milliseconds on the job's start clock: since 1970 by default.
    pub started_ms: u64,
    /// Duration of the worker's I/O.
    pub elapsed_ms: u64,
}

/// The result of a run.
#[derive(Debug)]
pub struct RunResult {
    /// One per job, in order.
    pub workers: Vec<WorkerReport>,
    /// The signal that ended it, if one did.
    pub signal: Option<i32>,
    /// What went wrong with the command of its trigger.
    pub trigger_warning: Option<String>,
    /// Its duration, layout included.
    pub elapsed_ms: u64,
}

/// The report of a worker that has not started.
pub(crate) fn not_started(job: &Job) -> WorkerReport {
    WorkerReport {
        number: job.number,
        stats: Box::default(),
        depth: None,
        steady: None,
        reason: EndReason::NotStarted,
        failure: None,
        passed_over: Vec::new(),
        warnings: Vec::new(),
        own: OwnTime::default(),
        cache_growth: Vec::new(),
        ramp: RampEnd::Over,
        unstarted: false,
        thread_id: std::process::id(),
        started_ms: clock::read_ms(job.measure.start_clock_id),
        elapsed_ms: 0,
    }
}

/// The report of a worker that failed before its first I/O.
pub(crate) fn failed(job: &Job, failure: Failure) -> WorkerReport {
    WorkerReport { failure: Some(failure), reason: EndReason::Error, unstarted: true, ..not_started(job) }
}
