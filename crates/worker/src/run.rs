//! A run, as those see it who want one: what it is made of, what comes of it, and who may look on.
//!
//! Invariant: every job of the plan gets a report, also one that was never started and one that hangs.

use std::sync::Arc;
use std::time::Duration;

use fiord_plan::{Job, PerDirection, Plan};
use fiord_stats::{JobLogs, JobStats};
use fiord_sys::clock;
use fiord_sys::signal;

use crate::director::Director;
use crate::failure::Failure;
use crate::progress::View;
use crate::scene::Scene;

/// Why a worker ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndReason {
    /// It had done all it was asked for.
    Size,
    /// Its run time was over.
    Time,
    /// The device was full, as `fill_device` wants it.
    DeviceFull,
    /// Another worker's end concerned it.
    Others,
    /// A signal that asks to stop.
    Signal,
    /// It could not go on.
    Error,
    /// It is still running (in a snapshot).
    Running,
    /// It was never started.
    NotStarted,
}

/// Something worth saying of an option, although nothing failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remark {
    /// The job option it is about.
    pub option: &'static str,
    /// What there is to say: a sentence without a final full stop.
    pub message: String,
}

/// What one worker leaves behind.
#[derive(Debug, Clone)]
pub struct WorkerReport {
    /// Number of its job in the plan.
    pub number: u32,
    /// What it measured.
    pub stats: Box<JobStats>,
    /// What it logged over time, once it has ended.
    pub logs: Option<Arc<JobLogs>>,
    /// Why it ended.
    pub reason: EndReason,
    /// What went wrong, if something did.
    pub failure: Option<Failure>,
    /// Errors that were passed over and are to be said (`error_dump`), a line each.
    pub passed_over: Vec<String>,
    /// What is worth saying although nothing went wrong.
    pub warnings: Vec<Remark>,
    /// It never came to its I/O: something it needs could not be set up, or laying out files was all it had to do.
    pub unstarted: bool,
    /// Thread id.
    pub thread_id: u32,
    /// When its I/O began, in milliseconds since 1970.
    pub started_ms: u64,
    /// Life of the worker.
    pub elapsed_ms: u64,
}

/// When in a run something is told.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moment {
    /// Since the run began, layout included.
    pub elapsed_ms: u64,
    /// Seconds until the last worker is done; `None` while that cannot be told.
    pub left_s: Option<f64>,
}

/// A run's end.
#[derive(Debug)]
pub struct RunResult {
    /// One per job, in order.
    pub workers: Vec<WorkerReport>,
    /// The signal that ended it, if one did.
    pub signal: Option<i32>,
    /// How long it took, layout included.
    pub elapsed_ms: u64,
}

/// Who looks on while a run goes on. All calls come from the thread that called `run`.
pub trait Watcher {
    /// Files of a job are about to be laid out.
    fn laying_out(&mut self, job: &Job, files: usize, bytes: u64);
    /// That many more bytes were laid out.
    fn laid_out(&mut self, bytes: u64);
    /// All files are laid out, and the first workers are about to go. Not called when nobody goes.
    fn started(&mut self) {}
    /// How often `look` wants to be called, if at all.
    fn look_every(&self) -> Option<Duration>;
    /// A look at the run.
    fn look(&mut self, view: &View<'_>);
    /// How often `snapshot` wants to be called, if at all.
    fn snapshot_every(&self) -> Option<Duration>;
    /// What all workers have measured so far, at this moment of the run; also when SIGUSR1 asks for it.
    fn snapshot(&mut self, reports: Vec<WorkerReport>, moment: Moment);
    /// A signal told all workers to stop.
    fn told_to_stop(&mut self, signal: i32) {
        let _ = signal;
    }
    /// These have not stopped since, and are waited for.
    fn waiting_for(&mut self, jobs: &[&Job]) {
        let _ = jobs;
    }
    /// How often `bandwidth` wants to be called, if at all.
    fn bandwidth_every(&self) -> Option<Duration> {
        None
    }
    /// KiB/s of all workers together in the interval that ended `at_ms` after `started`. The last one may be short.
    fn bandwidth(&mut self, at_ms: u64, kib_per_s: PerDirection<u64>) {
        let _ = (at_ms, kib_per_s);
    }
}

/// Runs `plan` to its end. A worker that hangs in the kernel is left behind with what it may still touch.
pub fn run(plan: &Arc<Plan>, watcher: &mut dyn Watcher) -> RunResult {
    // Without its handlers a run still runs; a signal then ends it unreported.
    let _ = signal::record_stop_requests();
    let mut director = Director::new(Scene::new(Arc::clone(plan)), watcher);
    director.lay_out();
    director.play_all();
    director.finish()
}

/// The report of a worker that has done nothing, or not yet.
pub(crate) fn not_started(job: &Job) -> WorkerReport {
    WorkerReport {
        number: job.number,
        stats: Box::default(),
        logs: None,
        reason: EndReason::NotStarted,
        failure: None,
        passed_over: Vec::new(),
        warnings: Vec::new(),
        unstarted: false,
        thread_id: std::process::id(),
        started_ms: clock::realtime_ms(),
        elapsed_ms: 0,
    }
}

/// The report of a worker that failed before it did anything.
pub(crate) fn failed(job: &Job, failure: Failure) -> WorkerReport {
    WorkerReport { failure: Some(failure), reason: EndReason::Error, unstarted: true, ..not_started(job) }
}
