//! Findings after a run: from what its jobs measured, and from what the kernel counted meanwhile.
//!
//! Invariant: findings come in the order of the jobs; nothing is said about the figures of a job that failed.

pub(crate) mod cache;
mod clock;
pub(crate) mod depth;
mod direct;
pub(crate) mod errors;
mod flat;
mod gpu;
mod health;
pub(crate) mod length;
pub(crate) mod measured;
mod memory;
mod mix;
pub(crate) mod others;
pub(crate) mod overhead;
pub(crate) mod processor;
mod ramp;
pub(crate) mod slow;
pub(crate) mod steady;
pub(crate) mod suspended;
mod syncs;
#[cfg(test)]
pub(crate) mod testing;
mod traffic;
mod trims;
pub(crate) mod waits;

use fiord_host::CAN_LOAD;
use fiord_plan::Plan;
use fiord_report::{Code, Finding};
use fiord_stats::{ProgressSample, RunSteadiness};

use measured::Measurements;

/// How steady a run was; `None` if it is too short, did too few I/Os, or is held back on purpose.
pub fn steadiness(plan: &Plan, samples: &[ProgressSample]) -> Option<RunSteadiness> {
    steady::is_judged(plan).then(|| RunSteadiness::of(samples))?
}

/// The findings about the figures of a run.
pub fn evidence(plan: &Plan, measured: &Measurements<'_>) -> Vec<Finding> {
    let jobs = || measured.sound(plan);
    let mut findings: Vec<Finding> = jobs().filter_map(|(job, known)| ramp::ended(job, known.ramp)).collect();
    let cache = cache::served(plan, measured);
    let is_cached = !cache.is_empty();
    findings.extend(cache);
    findings.extend(direct::not_honoured(plan, measured));
    if CAN_LOAD {
        findings.extend(gpu::copied(plan, measured));
    }
    findings.extend(others::foreign(plan, measured));
    findings.extend(others::waited(measured));
    findings.extend(suspended::of(measured.suspension));
    findings.extend(processor::of_host(measured));
    findings.extend(memory::of(plan, measured));
    findings.extend(health::of(measured));
    if !is_cached {
        findings.extend(processor::bound(plan, measured));
    }
    findings.extend(overhead::of_tool(plan, measured));
    findings.extend(clock::of_steps(plan, measured));
    findings.extend(measured.working(plan).filter_map(|(job, known)| depth::not_reached(job, known.stats)));
    findings.extend(jobs().filter_map(|(job, known)| mix::not_reached(job, known.stats)));
    findings.extend(measured.working(plan).filter_map(|(job, known)| syncs::excluded(job, known.stats)));
    findings.extend(jobs().filter_map(|(job, known)| trims::unqueued(job, known.stats)));
    findings.extend(jobs().filter_map(|(job, known)| length::by_size(job, known)));
    findings.extend(length::few_samples(plan, measured));
    findings.extend(length::apart(plan, measured));
    findings.extend(steady::of(plan, measured.samples, measured.steadiness));
    findings.extend(flat::at_limit(plan, measured));
    // What the whole run stood still for is said once, with its time.
    if findings.iter().all(|finding| !matches!(finding.code, Code::Stalled | Code::Suspended)) {
        findings.extend(measured.working(plan).filter_map(|(job, known)| slow::of(job, known.stats)));
    }
    findings.extend(jobs().filter_map(|(job, known)| waits::omitted(job, known.stats)));
    findings.extend(jobs().filter_map(|(job, known)| waits::never_issued(job, known.stats)));
    let all = plan.jobs.iter().zip(measured.jobs);
    findings.extend(all.filter_map(|(job, known)| errors::of_medium(job, known.stats)));
    findings.extend(jobs().filter_map(|(job, known)| errors::continued(job, known.stats)));
    findings
}

#[cfg(test)]
mod tests {
    use fiord_report::{Severity, Subject};
    use fiord_stats::{JobStats, RampEnd};

    use crate::testing::plan;

    use super::measured::{Ended, JobEvidence};
    use super::*;

    fn found(plan: &Plan, ramps: &[RampEnd]) -> Vec<(Code, Subject, String)> {
        let stats = JobStats::default();
        let job = |ramp: &RampEnd| JobEvidence { ramp: *ramp, ..testing::job(&stats) };
        let jobs: Vec<JobEvidence<'_>> = ramps.iter().map(job).collect();
        let findings = crate::merge(evidence(plan, &Measurements { jobs: &jobs, ..testing::nothing() }));
        assert!(findings.iter().all(|finding| finding.severity() == Severity::Void), "{findings:?}");
        let key = |finding: Finding| (finding.code, finding.subject, finding.option.into_owned());
        findings.into_iter().map(key).collect()
    }

    #[test]
    fn a_job_that_ended_within_its_ramp_is_found_by_the_option_that_is_too_large() {
        let job = |name: &str| Subject::Job(name.to_string());
        let plan = plan(&[("a", &[("ramp_time", "1h")]), ("b", &[("ramp_size", "1g")])]);
        assert_eq!(
            found(&plan, &[RampEnd::Unfinished, RampEnd::NothingAfter]),
            [
                (Code::EndedInRamp, job("a"), "ramp_time".to_string()),
                (Code::NothingMeasured, job("b"), "ramp_size".to_string())
            ]
        );
        assert_eq!(found(&plan, &[RampEnd::Over, RampEnd::Unfinished]).len(), 1);
        assert_eq!(found(&plan, &[RampEnd::Over, RampEnd::Over]), []);
    }

    /// It ended in its ramp, did too few I/Os, reached no depth, and moved bytes that are not others'.
    #[test]
    fn nothing_is_said_about_the_figures_of_a_job_that_failed() {
        let options = [
            ("ioengine", "libaio"),
            ("iodepth", "32"),
            ("direct", "1"),
            ("filename", "/data/f"),
            ("ramp_time", "1h"),
            ("rate_iops", "10"),
            ("runtime", "60"),
        ];
        let plan = plan(&[("a", &options)]);
        let stats = testing::moved(0, 4096 * 700);
        let devices = [testing::device("sda", 4096 * 700, 0)];
        let codes = |ended| -> Vec<Code> {
            let jobs = [JobEvidence { ended, ramp: RampEnd::Unfinished, ..testing::job(&stats) }];
            let found =
                evidence(&plan, &Measurements { jobs: &jobs, devices: &devices, ..testing::nothing() });
            found.into_iter().map(|finding| finding.code).collect()
        };
        assert_eq!(codes(Ended::Failed), []);
        assert_eq!(codes(Ended::Otherwise), [Code::EndedInRamp, Code::FewSamples]);
    }

    #[test]
    fn clones_do_not_repeat_each_other() {
        let plan = plan(&[("a", &[("ramp_time", "1h"), ("numjobs", "3")]), ("b", &[("ramp_time", "1h")])]);
        assert_eq!(found(&plan, &[RampEnd::Unfinished; 4]).len(), 1);
        assert_eq!(
            found(&plan, &[RampEnd::Unfinished, RampEnd::NothingAfter, RampEnd::Over, RampEnd::Over]).len(),
            2
        );
    }
}
