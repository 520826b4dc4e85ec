//! Findings from the plan of a run, and from facts about the host.
//!
//! Invariant: no finding depends on measurements, but nothing is said of a job that failed, and what is in flight is said
//! as it was measured.

mod cache;
mod contents;
mod flush;
pub(crate) mod known;
mod length;
mod limits;
mod logs;
mod name;
mod pcie;
pub(crate) mod queue;
mod rate;
mod sharing;
mod target;

use fiord_host::{CAN_LOAD, StorageStack, TargetFacts};
use fiord_plan::{Direction, Job, Plan};
use fiord_report::Finding;

use crate::evidence::measured::{Ended, JobEvidence};
use crate::subject;
use known::{Known, KnownTarget};

/// The findings about a plan, whose jobs did this.
pub fn lint(plan: &Plan, known: &Known, jobs: &[JobEvidence<'_>]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let sound: Vec<(&Job, &JobEvidence<'_>)> =
        plan.jobs.iter().zip(jobs).filter(|(_, job)| job.ended != Ended::Failed).collect();
    for target in &known.targets {
        // What else uses it may be why a job failed.
        if plan.jobs.iter().any(|job| subject_is(job, target)) {
            findings.extend(target::in_use(&target.facts));
        }
        let uses = || sound.iter().map(|(job, _)| *job).filter(|job| subject_is(job, target));
        if uses().next().is_some() {
            let below = target.stack.iter();
            findings.extend(below.flat_map(|stack| target::below(&target.facts, stack)));
            let gpus = if CAN_LOAD && uses().any(Job::uses_gpu) { &known.gpus[..] } else { &[] };
            let disks = target.stack.iter().flat_map(StorageStack::devices);
            findings.extend(disks.flat_map(|disk| pcie::of(disk, gpus)));
        }
        if uses().any(|job| job.access.pattern.includes(Direction::Write)) {
            findings.extend(target::of_file_system(&target.facts));
            let below = target.stack.iter();
            findings.extend(below.filter_map(|stack| target::thin(&target.facts, stack)));
        }
        if uses().any(|job| target::reads_what_is_there(job, &target.facts)) {
            findings.extend(target::unwritten(&target.facts));
        }
    }
    if !sound.is_empty() {
        findings.extend(limits::of_processors(plan, known));
    }
    // Clones have the findings of the first one.
    for clones in sound.chunk_by(|(one, _), (next, _)| one.section == next.section) {
        let (job, _) = clones[0];
        findings.extend(name::contradicts(job));
        findings.extend(queue::depth_without_a_queue(job));
        findings.extend(queue::buffered_async(job));
        findings.extend(rate::closed_loop(job));
        findings.extend(length::stops_early(job));
        if subject::does_io(job) {
            findings.extend(cache::cached_io(job, known));
            findings.extend(cache::too_small(job, known));
            findings.extend(contents::misaligned(job, known));
            findings.extend(contents::compressible(job, known));
            findings.extend(flush::volatile_cache(job, known));
            findings.extend(flush::ignored(job, known));
            findings.extend(limits::io(clones, known));
            findings.extend(logs::on_target(job, known));
            findings.extend(sharing::of(plan, job));
        }
    }
    findings
}

fn subject_is(job: &Job, target: &KnownTarget) -> bool {
    subject::does_io(job) && job.files.list.iter().any(|file| file.path == target.facts.path)
}

/// The findings about a target before a plan is made; `stack` is the storage below it, if that is known.
pub fn lint_target(facts: &TargetFacts, stack: Option<&StorageStack>) -> Vec<Finding> {
    let in_use = target::in_use(facts);
    in_use
        .into_iter()
        .chain(stack.into_iter().flat_map(|stack| target::below(facts, stack)))
        .chain(target::unwritten(facts))
        .chain(target::of_file_system(facts))
        .chain(stack.and_then(|stack| target::thin(facts, stack)))
        .chain(stack.into_iter().flat_map(StorageStack::devices).filter_map(pcie::of_disk))
        .collect()
}
