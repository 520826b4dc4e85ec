//! Copies of the histograms of latency during a run, and by difference the latencies of its steady part.
//!
//! Invariant: a copy is of all jobs, by groups, at one moment at which all of them were running. Where there is none in a
//! part of a run, the latencies of that part are not known.

use fiord_host::Samples;
use fiord_stats::{ProgressSample, RunLatencies, SteadyPart};

/// The most copies, of up to 60 KB for each group of jobs: in a longer run they are further apart, by a thirty-second of it at most.
const COPIES_MAX: usize = 64;

/// What the jobs had done at one moment.
#[derive(Debug)]
struct Mark {
    /// Time since the run began, in nanoseconds.
    at_ns: u64,
    /// Of each group.
    latencies: Vec<RunLatencies>,
}

/// The latencies of each group of jobs in a part of a run, up to its end.
#[derive(Debug, PartialEq)]
pub(super) struct GroupLatencies {
    /// Where they begin, in milliseconds since all jobs were running.
    pub from_ms: u64,
    /// Of each group.
    pub latencies: Vec<RunLatencies>,
}

/// The copies of one run.
#[derive(Debug, Default)]
pub(super) struct LatencyMarks {
    all: Samples<Mark, COPIES_MAX>,
}

impl LatencyMarks {
    /// Keeps the latencies of this moment, if they are known and it is time for a copy.
    pub(super) fn take(&mut self, at_ns: u64, latencies: Option<Vec<RunLatencies>>) {
        self.all.take(|| Some(Mark { at_ns, latencies: latencies? }));
    }

    /// The latencies of the steady part of a run whose jobs were all running at `first` and at `last`. `at_end` are those
    /// of the whole run, if it was over then; without them the part ends at the last copy.
    pub(super) fn of_part(
        &self,
        part: &SteadyPart,
        (first, last): (&ProgressSample, &ProgressSample),
        at_end: Option<&[RunLatencies]>,
    ) -> Option<GroupLatencies> {
        let from_ns = first.at_ns + part.from_ms * 1_000_000;
        let within = |mark: &&Mark| (from_ns..last.at_ns).contains(&mark.at_ns);
        let begin = self.all.all().iter().find(within)?;
        let end = match at_end {
            Some(end) => end,
            None => self
                .all
                .all()
                .iter()
                .rfind(within)
                .filter(|end| end.at_ns > begin.at_ns)?
                .latencies
                .as_slice(),
        };
        let from_ms = (begin.at_ns - first.at_ns) / 1_000_000;
        let since = end.iter().zip(&begin.latencies).map(|(end, begin)| end.since(begin));
        Some(GroupLatencies { from_ms, latencies: since.collect::<Option<_>>()? })
    }
}

#[cfg(test)]
mod tests {
    use fiord_stats::{JobStats, Latency};

    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    /// Of one job, ten reads of 10 ms in each of the first five seconds, and of 1 ms, the middle of a bin, in each later
    /// one; of another, none.
    fn after(seconds: u64) -> Vec<RunLatencies> {
        let mut stats = JobStats::default();
        stats.directions[0].completion = Latency::with_histogram();
        for second in 0..seconds {
            let latency_ns = if second < 5 { 10_000_000 } else { 1_003_520 };
            for _ in 0..10 {
                stats.directions[0].completion.record(latency_ns);
            }
        }
        vec![RunLatencies::of([&stats]), RunLatencies::default()]
    }

    fn sample(seconds: u64) -> ProgressSample {
        ProgressSample { at_ns: seconds * SECOND_NS, ..ProgressSample::default() }
    }

    /// A run that begins after two seconds, with a copy in each second of `copied`.
    fn marks(copied: impl Iterator<Item = u64>) -> LatencyMarks {
        let mut marks = LatencyMarks::default();
        copied.for_each(|second| marks.take((2 + second) * SECOND_NS + 7, Some(after(second))));
        marks
    }

    fn reads(found: &GroupLatencies) -> (u64, u64, u64) {
        assert_eq!(found.latencies[1], RunLatencies::default());
        let reads = &found.latencies[0].directions[0];
        (found.from_ms, reads.running.count, reads.percentiles(&[99.0])[0])
    }

    #[test]
    fn latencies_of_a_part_are_those_since_the_first_copy_in_it() {
        let part = SteadyPart { from_ms: 4750, ..SteadyPart::default() };
        let span = (&sample(2), &sample(22));
        let found = |marks: &LatencyMarks, end: Option<&Vec<RunLatencies>>| {
            marks.of_part(&part, span, end.map(Vec::as_slice))
        };
        let all = marks(0..20);
        assert_eq!(found(&all, Some(&after(20))).as_ref().map(reads), Some((5000, 150, 1_003_520)));
        // Jobs that went on alone are not part of it.
        assert_eq!(found(&all, None).as_ref().map(reads), Some((5000, 140, 1_003_520)));
        // Without a copy where the part begins, it is the next one that counts; without any, nothing is known.
        let few = marks([0, 4, 9].into_iter());
        assert_eq!(found(&few, Some(&after(20))).as_ref().map(reads), Some((9000, 110, 1_003_520)));
        assert_eq!(found(&few, None), None, "one copy has no end");
        assert_eq!(found(&marks(0..4), Some(&after(20))), None);
        assert_eq!(found(&LatencyMarks::default(), Some(&after(20))), None);
        assert_eq!(found(&all, Some(&after(3))), None, "counts that began anew");
    }

    #[test]
    fn a_long_run_keeps_few_copies_that_still_reach_its_end() {
        let mut all = LatencyMarks::default();
        (0..10_000).for_each(|second| all.take(second * SECOND_NS, Some(after(0))));
        assert!(all.all.all().len() < COPIES_MAX);
        let part = SteadyPart { from_ms: 9_000_000, ..SteadyPart::default() };
        let found = all.of_part(&part, (&sample(0), &sample(10_000)), Some(&after(0))).unwrap();
        assert!((9_000_000..9_300_000).contains(&found.from_ms), "{}", found.from_ms);
    }
}
