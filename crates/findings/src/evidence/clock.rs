//! Whether the clock of a job counts in steps that are long for its latencies.
//!
//! Invariant: judged by the steps that a clock is known to have; one of unknown steps raises nothing.

use fiord_plan::{ClockSource, Job, Plan};
use fiord_report::table::Cell;
use fiord_report::{Code, Finding};
use fiord_stats::Capped;

use super::measured::Measurements;
use super::overhead::mean_latency_ns;
use crate::subject;

/// From this share of the mean latency on, a step is no longer noise, in percent.
const SHARE_MIN: f64 = 5.0;

const MICROSECOND_NS: f64 = 1000.0;

/// The first job whose latencies are short for the steps of its clock.
pub(super) fn of_steps(plan: &Plan, measured: &Measurements<'_>) -> Option<Finding> {
    measured.sound(plan).find_map(|(job, known)| {
        let step_ns = step_ns(job, measured.counter_step_ns)?;
        of_job(job, step_ns, mean_latency_ns(known.stats)?)
    })
}

/// The steps of a job's clock, where they are known. The kernel's monotonic clock counts by the counter as well.
fn step_ns(job: &Job, counter_step_ns: Option<f64>) -> Option<f64> {
    match job.measure.clock {
        ClockSource::Best | ClockSource::Counter | ClockSource::Monotonic => counter_step_ns,
        ClockSource::Microseconds => Some(MICROSECOND_NS),
        ClockSource::Kept(_) | ClockSource::None => None,
    }
}

fn of_job(job: &Job, step_ns: f64, mean_ns: f64) -> Option<Finding> {
    if step_ns * 100.0 < mean_ns * SHARE_MIN {
        return None;
    }
    let shown = |ns: f64| Cell::Latency(u64::capped(ns.round())).shown();
    let sentence = format!(
        "its clock counts in steps of {}, and its mean latency is {}: a single latency and a percentile may be wrong by a step",
        shown(step_ns),
        shown(mean_ns)
    );
    let is_chosen = job.measure.clock == ClockSource::Microseconds;
    let remedy = if is_chosen { "set clocksource=cpu" } else { "quote its mean" };
    let finding = Finding::new(Code::ClockSteps, subject::job(job), sentence, remedy);
    Some(finding.based_on([("step_ns", Cell::Number(step_ns, 1)), ("latency_ns", Cell::Number(mean_ns, 1))]))
}

#[cfg(test)]
mod tests {
    use fiord_stats::{JobStats, Latency};

    use crate::evidence::measured::{Ended, JobEvidence};
    use crate::evidence::testing::{job, nothing};
    use crate::testing::plan;

    use super::*;

    fn found(clock: Option<&str>, counter_step_ns: Option<f64>, latency_ns: u64) -> Option<Finding> {
        let options: Vec<_> = clock.iter().map(|clock| ("clocksource", *clock)).collect();
        let plan = plan(&[("a", &options)]);
        let mut stats = JobStats::default();
        stats.directions[0].total = Latency::with_histogram();
        stats.directions[0].total.record(latency_ns);
        let of = |ended| {
            let jobs = [JobEvidence { ended, ..job(&stats) }];
            of_steps(&plan, &Measurements { jobs: &jobs, counter_step_ns, ..nothing() })
        };
        assert_eq!(of(Ended::Failed), None);
        of(Ended::Otherwise)
    }

    #[test]
    fn steps_of_a_twentieth_of_the_latency_are_found() {
        // 24 MHz.
        let step_ns = Some(1000.0 / 24.0);
        let finding = found(None, step_ns, 833).unwrap();
        assert_eq!(
            finding.sentence,
            "its clock counts in steps of 42ns, and its mean latency is 833ns: a single latency and a percentile may be \
             wrong by a step"
        );
        assert_eq!(found(None, step_ns, 834), None);
        assert!(
            found(Some("clock_gettime"), step_ns, 833).is_some(),
            "the kernel's clock has the same steps"
        );
        assert_eq!(found(None, None, 1), None);
        assert!(found(None, step_ns, 0).is_some(), "shorter than a step");
    }

    #[test]
    fn microseconds_are_steps_on_every_processor() {
        let finding = found(Some("gettimeofday"), None, 20_000).unwrap();
        assert_eq!(finding.remedy, "set clocksource=cpu");
        assert_eq!(found(Some("gettimeofday"), None, 20_001), None);
    }

    #[test]
    fn a_job_without_latencies_has_none_to_be_wrong() {
        let plan = plan(&[("a", &[("clocksource", "gettimeofday")])]);
        let stats = JobStats::default();
        assert_eq!(of_steps(&plan, &Measurements { jobs: &[job(&stats)], ..nothing() }), None);
    }
}
