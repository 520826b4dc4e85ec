//! A step of a study, and what came of it.
//!
//! Invariant: a result belongs to the step that is known before any run; a repetition has the number of the step it repeats.

use std::path::PathBuf;
use std::time::Duration;

use fiord_options::Section;
use fiord_report::{Finding, RunReport, Severity};

/// One run of a study.
#[derive(Clone, Debug)]
pub struct Step {
    /// What it is called in progress and history: `random read 4k, depth 32`.
    pub name: String,
    /// The jobs: their resolved settings, and their files as paths.
    pub sections: Vec<Section>,
    /// How long it runs, excluding file layout; zero if that is not known in advance.
    pub time: Duration,
    /// Whether it only prepares later steps: it is run, but has no [`StepResult`].
    pub prepares: bool,
    /// The number of the earlier step that it repeats, if it does.
    pub repeats: Option<usize>,
}

impl Step {
    /// A run that is measured for this time.
    pub fn measure(name: impl Into<String>, sections: Vec<Section>, time: Duration) -> Step {
        Step { name: name.into(), sections, time, prepares: false, repeats: None }
    }

    /// A run that prepares later ones, with no limit on its time.
    pub fn prepare(name: impl Into<String>, sections: Vec<Section>) -> Step {
        Step { name: name.into(), sections, time: Duration::ZERO, prepares: true, repeats: None }
    }

    /// With all its jobs on this file.
    #[must_use]
    pub fn on(mut self, file: PathBuf) -> Step {
        self.sections.iter_mut().for_each(|section| section.files = vec![file.clone()]);
        self
    }
}

/// A step that was run and measured.
#[derive(Clone, Debug)]
pub struct StepResult {
    /// Its number among the study's steps, those that prepare included, from 0; that of the step it repeats, if it does.
    pub step: usize,
    /// The report of its run.
    pub report: RunReport,
}

impl StepResult {
    /// The finding that voids the figures of this run, if one does.
    pub(crate) fn void_finding(&self) -> Option<&Finding> {
        self.report.findings.iter().find(|finding| finding.severity() == Severity::Void)
    }
}
