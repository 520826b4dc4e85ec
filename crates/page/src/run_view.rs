//! What a page shows of one run.
//!
//! Invariant: values only. What is not known is absent, and the page leaves its part out.

use fiord_device::DeviceUse;
use fiord_explain::NotedFinding;
use fiord_import::{JobFigures, Report};

use crate::over_time::OverTime;

/// What a page shows of one run.
#[derive(Clone, Debug, Default)]
pub struct RunView {
    /// What it is called: `run 12`, or a file's name.
    pub name: String,
    /// The report, as its JSON says.
    pub report: Report,
    /// Its findings, the worst first.
    pub findings: Vec<NotedFinding>,
    /// What it did over time, if that is known.
    pub over_time: Option<OverTime>,
    /// The devices below its files; empty if they are not known.
    pub devices: Vec<DeviceUse>,
    /// Facts about where and when it ran: (name, text).
    pub facts: Vec<(String, String)>,
    /// The command that ran it, if it is known.
    pub command: Option<String>,
}

impl RunView {
    /// The jobs with their names; jobs that share one (`numjobs`) are numbered, as in the charts over time.
    pub(crate) fn named_jobs(&self) -> Vec<(String, &JobFigures)> {
        let jobs = &self.report.jobs;
        let count = |jobs: &[JobFigures], name: &str| jobs.iter().filter(|job| job.name == name).count();
        let name = |(index, job): (usize, &JobFigures)| match count(jobs, &job.name) {
            1 => job.name.clone(),
            _ => format!("{} ({})", job.name, count(&jobs[..=index], &job.name)),
        };
        jobs.iter().enumerate().map(|(index, job)| (name((index, job)), job)).collect()
    }
}

/// What comes before names of a run: nothing if there is only one.
pub(crate) fn prefix(runs: &[RunView], number: usize) -> String {
    if runs.len() < 2 { String::new() } else { format!("{} ", letter(number)) }
}

/// The letter of a run.
pub(crate) fn letter(number: usize) -> char {
    char::from(b'A' + number.min(25) as u8)
}
