//! Whether the latency of a job with a rate hides waits: I/Os that were due while the job waited for others.
//!
//! Invariant: both latencies are of the same I/Os, so that their difference is not a matter of chance.

use fiord_options::job;
use fiord_plan::{Direction, Job};
use fiord_report::table::Cell;
use fiord_report::{Code, Finding, Subject};
use fiord_stats::count::{DROPPED_ARRIVALS, WAITING_ARRIVALS};
use fiord_stats::{Counts, DirectionStats, JobStats, Latency};

use crate::subject;

/// The percentile that is compared, and the I/Os without which it would be the maximum.
const PERCENTILES: [(f64, u64); 2] = [(99.9, 1000), (99.0, 100)];

/// There is a finding if the percentile from the intended start is at least this many times the one from the issue …
const RATIO_MIN: f64 = 2.0;

/// … and longer by at least this, which is more than it takes to wake a thread.
const WAIT_NS_MIN: u64 = 1_000_000;

/// Up to this share of the completed I/Os, as many may be missing from an open loop without a finding.
const LOST_SHARE_MIN: f64 = 0.001;

/// A latency from the issue and the one from the intended start, at the same percentile.
pub(crate) struct ComparedLatencies {
    /// `read`, `write` or `trim`.
    pub direction: &'static str,
    pub percentile: f64,
    pub issue_ns: u64,
    pub response_ns: u64,
}

/// The direction of a job that hides the longest waits.
pub(super) fn omitted(job: &Job, stats: &JobStats) -> Option<Finding> {
    let compared = stats.directions.iter().zip(Direction::ALL).filter_map(|(stats, direction)| {
        let (percentile, issue_ns, response_ns) = compared(stats)?;
        Some(ComparedLatencies { direction: direction.name(), percentile, issue_ns, response_ns })
    });
    let counts_ios = job.pace.ios_per_s.iter().any(Option::is_some);
    hidden(subject::job(job), counts_ios, compared)
}

/// The finding about those of these latencies that hide the longest waits; `counts_ios` is whether the rate is one of
/// I/Os, and not of bytes.
pub(crate) fn hidden(
    subject: Subject,
    counts_ios: bool,
    compared: impl Iterator<Item = ComparedLatencies>,
) -> Option<Finding> {
    let is_hidden = |one: &ComparedLatencies| {
        let ComparedLatencies { issue_ns, response_ns, .. } = *one;
        response_ns as f64 >= RATIO_MIN * issue_ns as f64
            && response_ns.saturating_sub(issue_ns) >= WAIT_NS_MIN
    };
    let ComparedLatencies { direction, percentile, issue_ns, response_ns } =
        compared.filter(is_hidden).max_by_key(|one| one.response_ns)?;
    let ms = |ns: u64| ns as f64 / 1e6;
    let sentence = format!(
        "p{percentile} of {direction}s is {} from the issue and {} from the start that the rate intended",
        Cell::Latency(issue_ns).shown(),
        Cell::Latency(response_ns).shown()
    );
    let remedy = "quote the response latency: a job that waits for one I/O issues the next ones late";
    let option = if counts_ios { job::Pace::rate_iops } else { job::Pace::rate };
    let finding = Finding::new(Code::OmittedWaits, subject, sentence, remedy).of_option(option);
    Some(finding.based_on([
        ("percentile", Cell::Number(percentile, 1)),
        ("issue_ms", Cell::Number(ms(issue_ns), 3)),
        ("response_ms", Cell::Number(ms(response_ns), 3)),
    ]))
}

/// The percentile to compare of this many I/Os: the highest that is more than the maximum.
pub(crate) fn percentile_of(ios: u64) -> Option<f64> {
    PERCENTILES.into_iter().find(|(_, ios_min)| ios >= *ios_min).map(|(percentile, _)| percentile)
}

/// I/Os of an open loop that arrived and never were issued, by the direction with most of them.
pub(super) fn never_issued(job: &Job, stats: &JobStats) -> Option<Finding> {
    let unserved = stats
        .directions
        .iter()
        .zip(Direction::ALL)
        .filter_map(|(stats, direction)| Unserved::of(direction.name(), &stats.counts, stats.ios));
    lost(subject::job(job), u64::from(job.depth.max), unserved)
}

/// I/Os of a direction that were never issued, beside those that were completed.
pub(crate) struct Unserved {
    /// `read`, `write` or `trim`.
    pub direction: &'static str,
    pub dropped: u64,
    pub waiting: u64,
    pub ios: u64,
}

impl Unserved {
    /// By the counts of a direction; `None` if it is not an open loop.
    pub fn of(direction: &'static str, counts: &Counts, ios: u64) -> Option<Unserved> {
        let [dropped, waiting] = [&DROPPED_ARRIVALS, &WAITING_ARRIVALS].map(|count| counts.get(count));
        Some(Unserved { direction, dropped: dropped?, waiting: waiting?, ios })
    }
}

/// The finding about the direction with most I/Os that were never issued, at this queue depth.
pub(crate) fn lost(
    subject: Subject,
    depth: u64,
    unserved: impl Iterator<Item = Unserved>,
) -> Option<Finding> {
    let total = |of: &Unserved| of.dropped + of.waiting;
    // One that is just about to be issued is not late.
    let is_many = |of: &Unserved| total(of) > depth && total(of) as f64 >= LOST_SHARE_MIN * of.ios as f64;
    let of = unserved.filter(is_many).max_by_key(total)?;
    let sentence = format!(
        "{} {}s arrived and were never issued, so that no latency includes them; {} were completed",
        total(&of),
        of.direction,
        of.ios
    );
    let remedy = "a lower rate, or a deeper queue: the device, or the depth, does not sustain this rate";
    let finding = Finding::new(Code::ArrivalsLost, subject, sentence, remedy);
    Some(finding.of_option(job::Pace::rate_arrivals).based_on([
        ("dropped", Cell::Count(of.dropped)),
        ("waiting", Cell::Count(of.waiting)),
        ("completed", Cell::Count(of.ios)),
    ]))
}

/// The highest percentile that is more than the maximum, from the issue and from the intended start.
fn compared(stats: &DirectionStats) -> Option<(f64, u64, u64)> {
    // Completion latencies have their histogram by default; submission is part of the total.
    let issue: &Latency =
        [&stats.total, &stats.completion].into_iter().find(|latency| latency.histogram.count() > 0)?;
    let percentile = percentile_of(stats.response.running.count)?;
    let at = |latency: &Latency| latency.percentiles(&[percentile]).first().copied();
    Some((percentile, at(issue)?, at(&stats.response)?))
}

#[cfg(test)]
mod tests {
    use crate::testing::plan;

    use super::*;

    /// What is found of this many I/Os, each of which took `issue_ns`, and of which the slowest 1 % waited for `wait_ns`.
    fn found(ios: u64, issue_ns: u64, wait_ns: u64) -> Option<String> {
        let plan = plan(&[("a", &[("rate_iops", "1000"), ("filename", "f")])]);
        let mut stats = JobStats::default();
        let of = &mut stats.directions[0];
        (of.completion, of.response) = (Latency::with_histogram(), Latency::with_histogram());
        for io in 0..ios {
            of.completion.record(issue_ns);
            of.response.record(issue_ns + if io % 100 < 2 { wait_ns } else { 0 });
        }
        omitted(&plan.jobs[0], &stats).map(|finding| finding.sentence)
    }

    #[test]
    fn waits_that_only_the_response_latency_has_are_found() {
        let sentence =
            "p99.9 of reads is 10us from the issue and 409ms from the start that the rate intended";
        assert_eq!(found(1000, 10_000, 410_000_000).as_deref(), Some(sentence));
        assert_eq!(found(100, 10_000, 2_000_000_000).unwrap()[..4], *"p99 ", "too few for p99.9");
        assert_eq!(found(99, 10_000, 410_000_000), None, "too few to say");
        assert_eq!(found(1000, 10_000, 0), None, "on time");
        assert_eq!(found(1000, 10_000, 900_000), None, "a thread that was woken late");
        assert_eq!(found(1000, 5_000_000, 4_000_000), None, "not twice as long");
        assert!(found(1000, 5_000_000, 6_000_000).is_some());
    }

    #[test]
    fn arrivals_that_were_never_issued_are_found() {
        let plan = plan(&[("a", &[("rate_iops", "1000"), ("rate_arrivals", "open"), ("filename", "f")])]);
        let found = |arrivals: Option<(u64, u64)>| {
            let mut stats = JobStats::default();
            stats.directions[0].ios = 10_000;
            if let Some((dropped, waiting)) = arrivals {
                stats.directions[0].counts.add(&DROPPED_ARRIVALS, dropped);
                stats.directions[0].counts.add(&WAITING_ARRIVALS, waiting);
            }
            never_issued(&plan.jobs[0], &stats).map(|finding| finding.sentence)
        };
        let sentence =
            "12 reads arrived and were never issued, so that no latency includes them; 10000 were completed";
        assert_eq!(found(Some((7, 5))).as_deref(), Some(sentence));
        assert_eq!(found(Some((4, 5))), None, "less than one in a thousand");
        assert_eq!(found(Some((0, 0))), None);
        assert_eq!(found(None), None);
    }

    #[test]
    fn the_direction_that_waits_longest_is_named() {
        let plan = plan(&[("a", &[("rate", "1m"), ("rw", "rw"), ("filename", "f")])]);
        let mut stats = JobStats::default();
        for (index, wait_ns) in [(0, 10_000_000), (1, 20_000_000)] {
            let of = &mut stats.directions[index];
            (of.total, of.response) = (Latency::with_histogram(), Latency::with_histogram());
            for _ in 0..1000 {
                of.total.record(1_000_000);
                of.response.record(1_000_000 + wait_ns);
            }
        }
        let finding = omitted(&plan.jobs[0], &stats).unwrap();
        assert!(
            finding.sentence.starts_with("p99.9 of writes is 1ms from the issue and 21ms"),
            "{finding:?}"
        );
        assert_eq!(finding.option, "rate");
        // Without a histogram from the issue there is nothing to compare.
        stats.directions.iter_mut().for_each(|of| of.total = Latency::default());
        assert_eq!(omitted(&plan.jobs[0], &stats), None);
    }
}
