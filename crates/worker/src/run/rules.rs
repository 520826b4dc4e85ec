//! The rules of a plan's groups: the one place that knows them all.
//!
//! Invariant: a group without a rule costs a run nothing.

use fiord_plan::{Job, Plan};

use super::group::{Group, GroupRule};
use super::io_done::EndWithIo;
use super::minimum_rates::MinimumRates;
use super::steady_state::SteadyStateRule;

/// The groups of a plan's jobs that have a rule: reporting groups, and jobs that are reported as one.
pub(super) fn groups(plan: &Plan) -> Vec<Group> {
    let mut groups = Vec::new();
    if let Some(rule) = EndWithIo::over(&plan.jobs) {
        groups.push(group(&plan.jobs, Box::new(rule)));
    }
    for jobs in plan.jobs.chunk_by(|one, next| one.group_id == next.group_id) {
        if let Some(rule) = MinimumRates::over(jobs) {
            groups.push(group(jobs, Box::new(rule)));
        }
    }
    for jobs in plan.jobs.chunk_by(|one, next| next.is_reported_with(one)) {
        if let Some(rule) = SteadyStateRule::over(jobs) {
            groups.push(group(jobs, Box::new(rule)));
        }
    }
    groups
}

fn group(jobs: &[Job], rule: Box<dyn GroupRule>) -> Group {
    Group::new(jobs.iter().map(|job| job.number as usize).collect(), rule)
}
