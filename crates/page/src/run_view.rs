//! What a page shows of one run.
//!
//! Invariant: values only. What is not known is absent, and the page leaves its part out.

use std::collections::HashMap;

use fiord_device::DeviceUse;
use fiord_explain::{Checks, NotedFinding};
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
    /// What they rest on.
    pub checks: Checks,
    /// What it did over time, if that is known.
    pub over_time: Option<OverTime>,
    /// The devices below its files; empty if they are not known.
    pub devices: Vec<DeviceUse>,
    /// Facts about where and when it ran: (name, text).
    pub facts: Vec<(String, String)>,
    /// The command that ran it, if it is known.
    pub command: Option<String>,
}

/// More jobs than this cannot be read on a page.
const JOBS_MAX: usize = 1000;

impl RunView {
    /// The jobs with their names; jobs that share one (`numjobs`) are numbered, as in the charts over time.
    pub(crate) fn named_jobs(&self) -> Vec<(String, &JobFigures)> {
        let jobs = &self.report.jobs[..self.report.jobs.len().min(JOBS_MAX)];
        let mut counts: HashMap<&str, usize> = HashMap::new();
        for job in &self.report.jobs {
            *counts.entry(&job.name).or_default() += 1;
        }
        let mut seen: HashMap<&str, usize> = HashMap::new();
        let name = |job: &'_ JobFigures, known: &mut usize| {
            *known += 1;
            format!("{} ({known})", job.name)
        };
        let named = jobs.iter().map(|job| match counts.get(job.name.as_str()) {
            Some(1) => (job.name.clone(), job),
            _ => (name(job, seen.entry(&job.name).or_default()), job),
        });
        named.collect()
    }

    /// Jobs that the page does not show.
    pub(crate) fn jobs_left_out(&self) -> usize {
        self.report.jobs.len().saturating_sub(JOBS_MAX)
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
