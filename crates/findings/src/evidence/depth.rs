//! Whether as many I/Os were in flight as `iodepth` allows.
//!
//! Invariant: a job that is held back on purpose is not judged.

use fiord_options::job;
use fiord_plan::Job;
use fiord_report::table::Cell;
use fiord_report::{Code, Finding, Subject};
use fiord_stats::JobStats;

use crate::subject;

/// Below this share of `iodepth`, there is a finding.
const SHARE_MIN: f64 = 0.5;

/// Fewer I/Os per unit of depth than this say nothing: the queue fills and drains.
pub(crate) const IOS_PER_DEPTH_MIN: u64 = 20;

/// By Little's law: the mean number in flight is the rate times the mean latency.
pub(super) fn not_reached(job: &Job, stats: &JobStats) -> Option<Finding> {
    let asked = job.depth.max;
    let directions = || stats.directions.iter().filter(|direction| direction.ios > 0);
    let ios: u64 = directions().map(|direction| direction.ios).sum();
    let is_judged = asked > 1
        && job.engine.descriptor.can_queue()
        && !subject::is_paced(job)
        && job.latency_target.is_none()
        && job.measure.total
        && ios >= IOS_PER_DEPTH_MIN * u64::from(asked);
    if !is_judged {
        return None;
    }
    let in_flight_ns: f64 =
        directions().map(|direction| direction.ios as f64 * direction.total.running.mean()).sum();
    let runtime_ms = directions().map(|direction| direction.runtime_ms).max()?;
    below(subject::job(job), asked, in_flight_ns / (runtime_ms.max(1) as f64 * 1e6))
}

/// The finding of a job that had this many I/Os in flight on average, of those that it allows.
pub(crate) fn below(subject: Subject, asked: u32, mean: f64) -> Option<Finding> {
    (mean > 0.0 && mean < SHARE_MIN * f64::from(asked)).then(|| {
        let sentence =
            format!("{mean:.1} I/Os were in flight on average, of the {asked} that iodepth allows");
        let remedy = "look for what delays submission: buffered I/O, a small nr_requests, a busy processor";
        Finding::new(Code::DepthNotReached, subject, sentence, remedy)
            .of_option(job::Queue::iodepth)
            .based_on([("depth_mean", Cell::Number(mean, 1)), ("iodepth", Cell::Count(u64::from(asked)))])
    })
}

#[cfg(test)]
mod tests {
    use crate::evidence::testing::moved;
    use crate::testing::plan;

    use super::*;

    /// A job that did this many I/Os of 1 ms in ten seconds.
    fn found(options: &[(&'static str, &str)], ios: u64) -> Option<String> {
        let common = [("ioengine", "libaio"), ("iodepth", "32"), ("filename", "/data/f")];
        let options: Vec<(&'static str, &str)> = common.iter().chain(options).copied().collect();
        let plan = plan(&[("a", &options)]);
        not_reached(&plan.jobs[0], &moved(0, ios * 4096)).map(|finding| finding.sentence)
    }

    #[test]
    fn a_depth_that_was_not_reached_is_found() {
        let sentence = found(&[], 31_000).unwrap();
        assert_eq!(sentence, "3.1 I/Os were in flight on average, of the 32 that iodepth allows");
        assert_eq!(found(&[], 200_000), None, "20 of 32");
        assert_eq!(found(&[], 600), None, "too few to say");
        assert_eq!(found(&[("rate_iops", "3100")], 31_000), None);
        let target = [("latency_target", "5ms"), ("latency_window", "200ms"), ("latency_percentile", "99")];
        assert_eq!(found(&target, 31_000), None, "the depth is lowered on purpose");
        assert_eq!(found(&[("iodepth", "1")], 31_000), None);
    }
}
