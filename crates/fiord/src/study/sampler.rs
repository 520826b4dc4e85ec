//! What a study observes of its runs beside their reports.
//!
//! Invariant: all calls come from the thread that carries the study out, in the order of the methods, and for measured runs
//! only.

use std::path::PathBuf;
use std::time::Duration;

use fiord_lab::{StepResult, StudyResult};
use fiord_plan::Plan;
use fiord_report::{Finding, RunReport};
use fiord_worker::{View, WorkerReport};

/// Observes the runs of a study.
pub(crate) trait RunSampler {
    /// A run of this plan comes next.
    fn prepare(&self, plan: &Plan);
    /// Its files are laid out, and its first workers are about to be released.
    fn started(&self);
    /// Interval between calls of `look`.
    fn look_every(&self) -> Duration;
    /// The current state of the run.
    fn look(&self, view: &View<'_>);
    /// The run is over.
    fn ended(&self, report: &RunReport, workers: &[WorkerReport]);
    /// It succeeded: its report is among the results.
    fn measured(&self);
    /// Files to be written of the whole study: path and contents. Called once, after all runs.
    ///
    /// # Errors
    /// Why one cannot be made.
    fn files(
        &self,
        results: &[StepResult],
        result: &StudyResult,
        findings: &[Finding],
    ) -> Result<Vec<(PathBuf, String)>, String>;
}
