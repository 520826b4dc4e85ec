//! One run of a study: a job file's text in, a report out.
//!
//! Invariant: the same way as a job file of the user's: read, checked, planned with the host's facts, refused where a
//! target is in use.

use std::io;
use std::sync::Arc;

use fiord_host::Machine;
use fiord_options::cli::{self, Parsed};
use fiord_options::expand::Environment;
use fiord_options::{Problem, Severity};
use fiord_plan::Plan;
use fiord_plan::facts::RunSettings;
use fiord_report::RunReport;
use fiord_worker::Watcher;

use crate::assemble::{self, Frame, Meters};
use crate::{environment, facts, status};

/// A run that was planned.
pub(super) struct Run {
    pub plan: Arc<Plan>,
    /// What is worth saying although it stops nothing.
    pub warnings: Vec<Problem>,
}

/// Why there is no run, and the status to end with.
pub(super) struct Refused {
    pub text: String,
    pub status: u8,
}

/// What came of a run.
pub(super) struct Outcome {
    pub report: RunReport,
    pub signal: Option<i32>,
    /// What failed, a line each.
    pub failures: Vec<String>,
}

/// Who looks on while a run of a study goes on: a watcher that is told of the disks as well.
pub(super) trait Looker: Watcher {
    /// What is watched beside the workers.
    fn meters(&mut self) -> &mut Meters;
}

impl Run {
    /// Plans the job file `job`, which is called `name` where something is wrong with it.
    pub(super) fn of(name: &str, job: &str, machine: &Machine) -> Result<Run, Refused> {
        let text = |asked: &str| match asked == name {
            true => Ok(job.as_bytes().to_vec()),
            false => Err(io::Error::from(io::ErrorKind::NotFound)),
        };
        let environment = Environment {
            files: &text,
            variables: &environment::variable,
            machine: environment::keywords(machine),
        };
        let parsed =
            cli::read(&[name.to_string()], &environment).map_err(|problems| refused(&problems, false))?;
        let problems = cli::check(&parsed);
        if problems.iter().any(|problem| problem.severity == Severity::Error) {
            return Err(refused(&problems, false));
        }
        let (plan, of_plan) = plan(&parsed, machine)?;
        let warnings = [parsed.warnings, problems, of_plan].concat();
        Ok(Run { plan: Arc::new(plan), warnings })
    }

    /// Runs it to its end.
    pub(super) fn go(&self, looker: &mut impl Looker) -> Outcome {
        // Ten thousand jobs open ten thousand files; a limit that stays low shows as EMFILE in a job.
        let _ = fiord_sys::process::raise_open_file_limit();
        let frame = Frame { plan: &self.plan, global_options: Vec::new() };
        looker.meters().disks = assemble::disks(&self.plan);
        let mut result = fiord_worker::run(&self.plan, looker);
        let report = assemble::report(&frame, looker.meters(), &mut result.workers, result.elapsed_ms);
        let failures = assemble::failures(&self.plan, &result.workers);
        Outcome { report, signal: result.signal, failures }
    }
}

fn plan(parsed: &Parsed, machine: &Machine) -> Result<(Plan, Vec<Problem>), Refused> {
    let settings = RunSettings { readonly: false, max_jobs: None, entropy: fiord_sys::clock::realtime_ns() };
    let facts = facts::gather(&fiord_plan::needs(&parsed.sections), machine);
    let planned = fiord_plan::build(&parsed.sections, &parsed.waiting, &facts, &settings);
    planned.map_err(|refusal| refused(&refusal.problems, refusal.unsafe_target))
}

fn refused(problems: &[Problem], unsafe_target: bool) -> Refused {
    Refused {
        text: problems.iter().map(|problem| format!("{problem}\n")).collect(),
        status: if unsafe_target { status::REFUSED } else { status::FAILED },
    }
}
