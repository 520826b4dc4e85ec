//! The latencies of a run so far, and by difference those of a part of it, at the full resolution of histograms.
//!
//! Invariant: there is a difference only between copies of which the later one counts all that the earlier one does.

use serde::{Deserialize, Serialize};

use crate::{JobStats, Latency};

/// Latencies of one or several jobs: so far, or in a part of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunLatencies {
    /// Completion latencies: reads, writes, trims.
    pub directions: [Latency; 3],
    /// Latencies of syncing calls.
    pub sync: Latency,
}

impl RunLatencies {
    /// Of all these jobs together.
    pub fn of<'s>(jobs: impl IntoIterator<Item = &'s JobStats>) -> RunLatencies {
        let mut all = RunLatencies::default();
        for stats in jobs {
            let theirs = stats.directions.iter().map(|direction| &direction.completion);
            all.all_mut().zip(theirs.chain([&stats.sync.latency])).for_each(|(sum, one)| sum.merge(one));
        }
        all
    }

    /// Becomes those of a job with these statistics; allocates only the first time.
    pub fn copy(&mut self, stats: &JobStats) {
        let theirs = stats.directions.iter().map(|direction| &direction.completion);
        self.all_mut().zip(theirs.chain([&stats.sync.latency])).for_each(|(own, one)| own.copy_from(one));
    }

    /// Adds those of other jobs.
    pub fn merge(&mut self, other: &Self) {
        let RunLatencies { directions, sync } = other;
        self.all_mut().zip(directions.iter().chain([sync])).for_each(|(sum, one)| sum.merge(one));
    }

    /// What was counted since `earlier`; `None` if the counts began anew meanwhile.
    pub fn since(&self, earlier: &Self) -> Option<RunLatencies> {
        let [read, write, trim] = &self.directions;
        let [read_before, write_before, trim_before] = &earlier.directions;
        Some(RunLatencies {
            directions: [read.since(read_before)?, write.since(write_before)?, trim.since(trim_before)?],
            sync: self.sync.since(&earlier.sync)?,
        })
    }

    fn all_mut(&mut self) -> impl Iterator<Item = &mut Latency> {
        self.directions.iter_mut().chain([&mut self.sync])
    }
}

/// The latencies of a part of a run, up to its end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PartLatencies {
    /// Where they begin, in milliseconds since all jobs were running.
    pub from_ms: u64,
    /// Of all jobs together.
    pub latencies: RunLatencies,
}

/// What the jobs of one name did in the steady part of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JobPart {
    /// Their name.
    pub name: String,
    /// I/Os per second in it: reads, writes, trims.
    pub ios_per_s: [f64; 3],
    /// Bytes per second in it: reads, writes, trims.
    pub bytes_per_s: [f64; 3],
    /// Their latencies, from where those of all jobs together begin; `None` if these are not known.
    pub latencies: Option<RunLatencies>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stats(reads_ns: &[u64], syncs_ns: &[u64]) -> JobStats {
        let mut stats = JobStats::default();
        stats.directions[0].completion = Latency::with_histogram();
        stats.sync.latency = Latency::with_histogram();
        for ns in reads_ns {
            stats.directions[0].completion.record(*ns);
        }
        for ns in syncs_ns {
            stats.sync.latency.record(*ns);
        }
        stats
    }

    /// Recorded alone, what comes after a copy has the same figures as the difference, but for extremes within a bin.
    #[test]
    fn the_difference_of_two_copies_has_the_figures_of_what_was_recorded_between_them() {
        let first: Vec<u64> = (1..=500).map(|number| number * 40_000).collect();
        let then: Vec<u64> = (1..=300).map(|number| number * 1_000).collect();
        let all = [first.as_slice(), &then].concat();
        let mut earlier = RunLatencies::default();
        earlier.copy(&stats(&[9], &[]));
        earlier.copy(&stats(&first, &[50]));
        let part = RunLatencies::of([&stats(&all, &[50, 70, 70])]).since(&earlier).unwrap();
        let alone = RunLatencies::of([&stats(&then, &[70, 70])]);
        for (part, alone) in part.directions.iter().zip(&alone.directions).chain([(&part.sync, &alone.sync)])
        {
            assert_eq!(part.histogram, alone.histogram);
            let (of_part, of_alone) = (part.running, alone.running);
            assert_eq!((of_part.count, of_part.sum), (of_alone.count, of_alone.sum));
            assert_eq!((of_part.mean(), of_part.stddev()), (of_alone.mean(), of_alone.stddev()));
            assert!(of_part.min() <= of_alone.min() && of_part.max >= of_alone.max);
            assert!(of_part.max - of_alone.max <= of_alone.max / 64, "{of_part:?} {of_alone:?}");
            for percent in [1.0, 50.0, 99.0] {
                assert_eq!(part.percentiles(&[percent]), alone.percentiles(&[percent]));
            }
        }
        assert_eq!(
            part.directions[0].percentiles(&[99.0]),
            [296_960],
            "the middle of the bin of 297 us; that of the whole run is 19 ms"
        );
    }

    #[test]
    fn counts_that_began_anew_have_no_difference() {
        let earlier = RunLatencies::of([&stats(&[10, 20_000, 30_000], &[])]);
        assert_eq!(RunLatencies::of([&stats(&[10, 20_000, 40_000, 50_000], &[])]).since(&earlier), None);
        assert_eq!(RunLatencies::default().since(&earlier), None);
        let same = earlier.since(&earlier).unwrap();
        assert_eq!((same.directions[0].running.count, same.directions[0].running.max), (0, 0));
        assert_eq!(earlier.since(&RunLatencies::default()), Some(earlier));
    }

    #[test]
    fn jobs_are_added_up() {
        let (one, other) = (stats(&[10, 20], &[5]), stats(&[30], &[]));
        let mut sum = RunLatencies::of([&one]);
        sum.merge(&RunLatencies::of([&other]));
        assert_eq!(sum, RunLatencies::of([&one, &other]));
        assert_eq!((sum.directions[0].running.count, sum.sync.running.count), (3, 1));
    }
}
