//! How the jobs of a study do I/O: engine, direct or buffered, depth.
//!
//! Invariant: describes the jobs as planned, not what the target would allow.

use fiord_lab::{Step, StudyTarget};
use fiord_plan::{EngineName, Plan};
use fiord_report::path;
use fiord_report::table::{Cell, Column, Table};

/// Up to this many buffered runs or jobs are named; more are "some".
const NAMES_MAX: usize = 2;

/// The jobs of all measured steps.
#[derive(Debug)]
pub struct IoModes {
    /// One row per section of each step.
    pub jobs: Table,
    /// The engines, each once.
    engines: Vec<EngineName>,
    /// Whether some job is direct.
    direct: bool,
    /// Runs that are buffered, and buffered jobs of runs that also have direct ones.
    cached: Vec<String>,
}

impl IoModes {
    pub(super) fn new() -> IoModes {
        let jobs = Table::new([
            Column::new("run", "RUN"),
            Column::new("job", "JOB"),
            Column::new("engine", "ENGINE"),
            Column::new("direct", "DIRECT"),
            Column::new("depth", "DEPTH"),
        ]);
        IoModes { jobs, engines: Vec::new(), direct: false, cached: Vec::new() }
    }

    /// Adds a step as planned, unless it only prepares others.
    pub(super) fn add(&mut self, step: &Step, plan: &Plan) {
        if step.prepares {
            return;
        }
        let sections = || plan.jobs.iter().filter(|job| job.clone == 0);
        for job in sections() {
            let engine = job.engine.name();
            self.jobs.rows.push(vec![
                Cell::Text(step.name.clone()),
                Cell::Text(path::text(&job.name)),
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
            self.cached.extend(sections().filter(|job| !job.files.direct).map(|job| path::text(&job.name)));
        } else {
            self.cached.push(step.name.clone());
        }
    }

    /// The engine, if all jobs have the same.
    pub fn engine(&self) -> Option<EngineName> {
        match self.engines.as_slice() {
            [only] => Some(*only),
            _ => None,
        }
    }

    /// Whether the jobs are direct, if they agree.
    pub fn direct(&self) -> Option<bool> {
        match (self.direct, self.cached.is_empty()) {
            (true, false) => None,
            (direct, _) => Some(direct),
        }
    }

    /// The same in words, for this target: of several, the names of steps begin with theirs.
    pub fn describe(&self, target: &StudyTarget) -> String {
        let own = format!("{}: ", target.shown());
        let cached: Vec<&str> = match self.cached.iter().any(|name| name.starts_with(&own)) {
            true => self.cached.iter().filter_map(|name| name.strip_prefix(&own)).collect(),
            false => self.cached.iter().map(String::as_str).collect(),
        };
        match (self.direct(), cached.as_slice()) {
            (Some(true), _) => "direct I/O".to_string(),
            (Some(false), _) if target.direct => "through the page cache".to_string(),
            (Some(false), _) => "no direct I/O: it goes through the page cache".to_string(),
            (None, names) if names.len() <= NAMES_MAX => {
                format!("direct I/O, except {}", names.join(" and "))
            }
            (None, _) => "direct I/O for some jobs, others through the page cache".to_string(),
        }
    }
}
