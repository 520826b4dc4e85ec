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

/// How many I/Os and syncs a job had in flight, by Little's law: their rate times their mean latency. `None` if it is not
/// known how long they took.
pub(crate) fn in_flight(job: &Job, stats: &JobStats) -> Option<f64> {
    let directions = || stats.directions.iter().filter(|direction| direction.ios > 0);
    let runtime_ms = directions().map(|direction| direction.runtime_ms).max()?;
    let ios_ns: f64 =
        directions().map(|direction| direction.ios as f64 * direction.total.running.mean()).sum();
    let syncs_ns = stats.sync.ios as f64 * stats.sync.latency.running.mean();
    job.measure.total.then(|| (ios_ns + syncs_ns) / (runtime_ms.max(1) as f64 * 1e6))
}

/// A job that had fewer in flight than it was to have.
pub(super) fn not_reached(job: &Job, stats: &JobStats) -> Option<Finding> {
    let asked = job.depth.max;
    let ios: u64 = stats.directions.iter().map(|direction| direction.ios).sum();
    let is_judged = asked > 1
        && job.engine.descriptor.can_queue()
        && !subject::is_paced(job)
        && job.latency_target.is_none()
        && ios >= IOS_PER_DEPTH_MIN * u64::from(asked);
    if !is_judged {
        return None;
    }
    let delay = match &job.submission {
        submission if submission.serialize_overlap => Delay::Overlap,
        _ if !job.files.direct => Delay::Buffered,
        _ if job.depth.low < asked || job.depth.complete_min > 1 => Delay::Batches,
        _ => Delay::Unknown,
    };
    below(subject::job(job), asked, in_flight(job, stats)?, delay)
}

/// What keeps a job from issuing more, as far as its options say it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Delay {
    /// I/Os that overlap wait for each other.
    Overlap,
    /// Buffered I/O is often done while it is submitted.
    Buffered,
    /// It waits for several to complete before it issues the next.
    Batches,
    Unknown,
}

impl Delay {
    fn remedy(self) -> &'static str {
        match self {
            Delay::Overlap => "leave out serialize_overlap: I/Os to the same blocks wait for each other",
            Delay::Buffered => "direct=1: the kernel does much of buffered I/O while it is submitted",
            Delay::Batches => "issue again sooner: iodepth_low, iodepth_batch_complete_min",
            Delay::Unknown => "look for what delays submission: a small nr_requests, a busy processor",
        }
    }
}

/// The finding of a job that had this many I/Os in flight on average, of those that it allows.
pub(crate) fn below(subject: Subject, asked: u32, mean: f64, delay: Delay) -> Option<Finding> {
    (mean > 0.0 && mean < SHARE_MIN * f64::from(asked)).then(|| {
        let sentence =
            format!("{mean:.1} I/Os were in flight on average, of the {asked} that iodepth allows");
        let remedy = delay.remedy();
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

    /// Writes of 1 ms, each with a sync of 10 ms, all of them in the queue.
    #[test]
    fn syncs_are_in_flight_as_well() {
        let options = [("ioengine", "io_uring"), ("iodepth", "32"), ("filename", "/data/f"), ("fsync", "1")];
        let plan = plan(&[("a", &options)]);
        let mut stats = moved(1, 16_000 * 4096);
        assert!(not_reached(&plan.jobs[0], &stats).unwrap().sentence.starts_with("1.6 I/Os"));
        stats.sync.ios = 16_000;
        stats.sync.latency.record(18_000_000);
        assert_eq!(in_flight(&plan.jobs[0], &stats).map(f64::round), Some(30.0));
        assert_eq!(not_reached(&plan.jobs[0], &stats), None);
    }

    #[test]
    fn the_remedy_is_about_what_delays_the_job() {
        let remedy = |options: &[(&'static str, &str)]| {
            let common =
                [("ioengine", "libaio"), ("iodepth", "32"), ("filename", "/data/f"), ("direct", "1")];
            let options: Vec<(&'static str, &str)> = common.iter().chain(options).copied().collect();
            let found = not_reached(&plan(&[("a", &options)]).jobs[0], &moved(0, 31_000 * 4096)).unwrap();
            found.remedy.split([':', ' ']).next().unwrap_or_default().to_string()
        };
        assert_eq!(remedy(&[]), "look");
        assert_eq!(remedy(&[("direct", "0")]), "direct=1");
        assert_eq!(remedy(&[("serialize_overlap", "1")]), "leave");
        assert_eq!(remedy(&[("iodepth_low", "4")]), "issue");
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
