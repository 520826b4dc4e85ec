//! How a study's jobs reach what they work on: engine, direct or not, depth.
//!
//! Invariant: it is told of the jobs as they were planned, not of what the place would allow.

use fiord_lab::{Site, Step};
use fiord_plan::Plan;
use fiord_report::table::{Cell, Column, Table};

/// Runs or jobs that are named one by one; more are some.
const NAMES_MAX: usize = 2;

/// The jobs of all steps that are measured.
#[derive(Debug)]
pub(super) struct Ways {
    /// A row for each section of each step.
    pub jobs: Table,
    /// The engines, each once.
    engines: Vec<&'static str>,
    /// Whether some job is direct.
    direct: bool,
    /// Runs that go through the page cache, and jobs that do in runs of which others are direct.
    cached: Vec<String>,
}

impl Ways {
    pub(super) fn new() -> Ways {
        let jobs = Table::new([
            Column::new("run", "RUN"),
            Column::new("job", "JOB"),
            Column::new("engine", "ENGINE"),
            Column::new("direct", "DIRECT"),
            Column::new("depth", "DEPTH"),
        ]);
        Ways { jobs, engines: Vec::new(), direct: false, cached: Vec::new() }
    }

    /// Adds a step as it was planned, unless it only makes ready for others.
    pub(super) fn add(&mut self, step: &Step, plan: &Plan) {
        if step.prepares {
            return;
        }
        let sections = || plan.jobs.iter().filter(|job| job.clone == 0);
        for job in sections() {
            let engine = job.engine.name();
            self.jobs.rows.push(vec![
                Cell::Text(step.name.clone()),
                Cell::Text(job.name.clone()),
                Cell::Text(engine.to_string()),
                Cell::Flag(job.files.direct),
                Cell::Count(u64::from(job.presentation.requested_iodepth)),
            ]);
            if !self.engines.contains(&engine) {
                self.engines.push(engine);
            }
        }
        let some = sections().any(|job| job.files.direct);
        self.direct |= some;
        if some {
            self.cached.extend(sections().filter(|job| !job.files.direct).map(|job| job.name.clone()));
        } else {
            self.cached.push(step.name.clone());
        }
    }

    /// The engine, where all jobs have the same.
    pub(super) fn engine(&self) -> Option<&'static str> {
        match self.engines.as_slice() {
            [only] => Some(only),
            _ => None,
        }
    }

    /// Whether the jobs are direct, where they agree.
    pub(super) fn direct(&self) -> Option<bool> {
        match (self.direct, self.cached.is_empty()) {
            (true, false) => None,
            (direct, _) => Some(direct),
        }
    }

    /// The same for people, of a site.
    pub(super) fn told(&self, site: &Site) -> String {
        match (self.direct(), self.cached.as_slice()) {
            (Some(true), _) => "direct I/O".to_string(),
            (Some(false), _) if site.direct => "through the page cache".to_string(),
            (Some(false), _) => "no direct I/O: it goes through the page cache".to_string(),
            (None, names) if names.len() <= NAMES_MAX => {
                format!("direct I/O, but for {}", names.join(" and "))
            }
            (None, _) => "direct I/O for some jobs, others through the page cache".to_string(),
        }
    }
}
