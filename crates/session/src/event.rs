//! What happens in a run or a study, as whoever shows it is told.
//!
//! Invariant: events are values that refer to what they are about, and all of them come from the thread that carries it
//! out, in order. Who is told decides nothing but how often it is told.

use std::time::Duration;

use fiord_lab::Step;
use fiord_options::Problem;
use fiord_plan::{Job, PerDirection, Plan};
use fiord_report::{Finding, RunReport};
use fiord_worker::{View, WorkerReport};

use crate::ending::Ending;

/// Something that happened.
#[derive(Debug)]
pub enum Event<'a> {
    /// A step of a study comes next: its run, and `StepDone` if that measured something.
    Step {
        /// Its number, from 0.
        number: usize,
        /// The step.
        step: &'a Step,
    },
    /// The run is about to begin: from here on a signal stops the run, not the process; no target has been opened.
    Planned {
        /// What is run.
        plan: &'a Plan,
        /// Warnings about options.
        warnings: &'a [Problem],
    },
    /// The layout of a job's files begins.
    LayingOut {
        /// Whose files.
        job: &'a Job,
        /// How many are laid out.
        files: usize,
        /// Their bytes.
        bytes: u64,
    },
    /// This many more bytes were laid out.
    LaidOut(u64),
    /// All files are laid out, and the first workers are about to be released.
    Started,
    /// The current state of the run.
    Tick(&'a View<'a>),
    /// The combined rate of all jobs in the interval that has ended.
    Bandwidth {
        /// When it ended, in milliseconds since `Started`.
        at_ms: u64,
        /// In KiB per second.
        kib_per_s: PerDirection<u64>,
    },
    /// The statistics of all workers as they published them last.
    Statistics(&'a [WorkerReport]),
    /// The findings so far.
    Findings(&'a [Finding]),
    /// The report of what has been measured so far.
    Snapshot {
        /// The report.
        report: &'a RunReport,
        /// Whether SIGUSR1 requested it.
        is_requested: bool,
    },
    /// A signal has requested all workers to stop.
    StopRequested(i32),
    /// These jobs have not stopped yet; the run waits for them.
    WaitingFor(&'a [&'a Job]),
    /// The run is over. The rest of the log files is written after this.
    Report {
        /// The report.
        report: &'a RunReport,
        /// What it was made of.
        workers: &'a [WorkerReport],
    },
    /// The run of a step is over, by its end or by a signal.
    StepDone {
        /// The step.
        step: &'a Step,
        /// What was run.
        plan: &'a Plan,
        /// What was measured.
        report: &'a RunReport,
        /// Lines about errors that were ignored.
        errors: &'a [String],
        /// How it ended.
        ending: Ending,
        /// Whether it is one of the results of the study.
        is_result: bool,
    },
}

/// How often events that come again and again are wanted; those without an interval do not come, and what they would tell
/// is not collected.
#[derive(Clone, Copy, Debug, Default)]
pub struct Intervals {
    /// Of `Tick`.
    pub tick: Option<Duration>,
    /// Of `Snapshot`, which also comes when SIGUSR1 requests it.
    pub snapshot: Option<Duration>,
    /// Of `Bandwidth`.
    pub bandwidth: Option<Duration>,
    /// Of `Statistics`, from now on.
    pub statistics: Option<Duration>,
    /// Of `Findings`, which follow `Statistics`.
    pub findings: Option<Duration>,
}

/// Whoever is told what happens.
pub trait Presenter {
    /// How often it wants to be told, from now on.
    fn intervals(&self) -> Intervals;
    /// Something happened.
    fn event(&mut self, event: &Event<'_>);
}
