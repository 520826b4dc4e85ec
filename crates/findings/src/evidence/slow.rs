//! Whether single I/Os took so long that the mean and the percentiles do not show it.
//!
//! Invariant: an I/O is compared with the others of its job and direction, so that a slow device alone is no reason.

use fiord_plan::{Direction, Job};
use fiord_report::table::Cell;
use fiord_report::{Code, Finding, Subject};
use fiord_stats::{Capped, JobStats};

use crate::subject;

/// There is a finding if the longest I/O takes this long …
const LONGEST_NS_MIN: u64 = 1_000_000_000;

/// … and at least this many times the mean: a queue in which all wait for a second is no exception.
const RATIO_MIN: f64 = 10.0;

/// The longest I/O of a direction beside the mean of all.
pub(crate) struct LongestIo {
    /// `read`, `write` or `trim`.
    pub direction: &'static str,
    pub longest_ns: u64,
    pub mean_ns: f64,
}

/// The longest I/O of a job that stands out.
pub(super) fn of(job: &Job, stats: &JobStats) -> Option<Finding> {
    let longest = stats.directions.iter().zip(Direction::ALL).filter_map(|(stats, direction)| {
        // Completion latencies are measured by default; submission is part of the total.
        let latency =
            [&stats.total, &stats.completion].into_iter().find(|latency| latency.running.count > 0)?;
        let (longest_ns, mean_ns) = (latency.running.max, latency.running.mean());
        Some(LongestIo { direction: direction.name(), longest_ns, mean_ns })
    });
    longest_of(subject::job(job), longest)
}

/// The finding about the longest of these I/Os, if it stands out.
pub(crate) fn longest_of(subject: Subject, all: impl Iterator<Item = LongestIo>) -> Option<Finding> {
    let stands_out = |one: &LongestIo| {
        one.longest_ns >= LONGEST_NS_MIN && one.longest_ns as f64 >= RATIO_MIN * one.mean_ns
    };
    let LongestIo { direction, longest_ns, mean_ns } =
        all.filter(stands_out).max_by_key(|one| one.longest_ns)?;
    let shown = |ns: u64| Cell::Latency(ns).shown();
    let sentence = format!(
        "the longest {direction} took {}, against {} on average",
        shown(longest_ns),
        shown(u64::capped(mean_ns))
    );
    let remedy =
        "look in the kernel's log, and repeat the run: without such a wait its figures would be others";
    Some(Finding::new(Code::SlowIo, subject, sentence, remedy).based_on([
        ("longest_ms", Cell::Number(longest_ns as f64 / 1e6, 3)),
        ("mean_ms", Cell::Number(mean_ns / 1e6, 3)),
    ]))
}

#[cfg(test)]
mod tests {
    use crate::evidence::testing::moved;
    use crate::testing::plan;

    use super::*;

    /// What is found of 1000 reads of 1 ms and one that took this long.
    fn found(longest_ms: u64, mean_ms: u64) -> Option<String> {
        let plan = plan(&[("a", &[("filename", "f")])]);
        let mut stats = moved(0, 0);
        for _ in 0..1000 {
            stats.directions[0].total.record(mean_ms * 1_000_000);
        }
        stats.directions[0].total.record(longest_ms * 1_000_000);
        of(&plan.jobs[0], &stats).map(|finding| finding.sentence)
    }

    #[test]
    fn an_io_that_stands_out_is_found() {
        assert_eq!(found(2980, 1).as_deref(), Some("the longest read took 2.98s, against 3.98ms on average"));
        assert_eq!(found(999, 1), None, "less than a second");
        assert_eq!(found(2980, 300), None, "all are slow");
    }
}
