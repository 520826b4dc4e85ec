//! What a page shows of one run.
//!
//! Invariant: values only. What is not known is absent, and the page leaves its part out.

use std::borrow::Cow;
use std::collections::HashMap;

use fiord_device::DeviceUse;
use fiord_explain::{Checks, NotedFinding};
use fiord_import::{JobFigures, Report};
use fiord_stats::Capped;

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
        let mut counts: HashMap<Cow<'_, str>, usize> = HashMap::new();
        for job in &self.report.jobs {
            *counts.entry(self.report.name_of(job)).or_default() += 1;
        }
        let mut seen: HashMap<Cow<'_, str>, usize> = HashMap::new();
        let named = jobs.iter().map(|job| {
            let name = self.report.name_of(job);
            if counts.get(&name) == Some(&1) {
                return (name.into_owned(), job);
            }
            let known = seen.entry(name.clone()).or_default();
            *known += 1;
            (format!("{name} ({known})"), job)
        });
        let sum = self.report.all_hosts.as_deref().map(|sum| (sum.name.clone(), sum));
        named.chain(sum).collect()
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
    char::from(b'A' + u8::capped(number.min(25)))
}
