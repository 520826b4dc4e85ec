//! fiord's own cost on this machine, for reports to quote.
//!
//! Invariant: the job that is measured is planned from options like any other, so it has every default of a run.

use fiord_host::Machine;
use fiord_options::cli;
use fiord_options::expand::Environment;
use fiord_plan::facts::{Facts, RunSettings};
use fiord_worker::SelfCost;

use crate::environment;

const JOB: [&str; 6] =
    ["--name=self", "--ioengine=null", "--rw=randread", "--bs=4k", "--size=1g", "--iodepth=32"];

/// Measures it, in under 50 ms.
///
/// # Errors
/// What is in the way, in words.
pub(crate) fn measure(machine: &Machine) -> Result<SelfCost, String> {
    let nothing = |problems: Vec<fiord_options::Problem>| {
        problems.first().map_or("no job to measure".to_string(), |problem| problem.message.clone())
    };
    let environment = Environment {
        files: &environment::read_file,
        variables: &environment::variable,
        machine: environment::keywords(machine),
    };
    let parsed = cli::read(&JOB.map(str::to_string), &environment).map_err(nothing)?;
    let planned =
        fiord_plan::build(&parsed.sections, &parsed.waiting, &Facts::default(), &RunSettings::default());
    let (plan, _) = planned.map_err(|refusal| nothing(refusal.problems))?;
    let job = plan.jobs.first().ok_or_else(|| nothing(Vec::new()))?;
    fiord_worker::self_cost(job).map_err(|failure| failure.to_string())
}
