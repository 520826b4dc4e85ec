//! What jobs have done so far, with their latencies in coarse bins.
//!
//! Invariant: a difference between two moments has the counts of what was done between them.

use serde::{Deserialize, Serialize};

use crate::capped::Capped;
use crate::histogram::{BINS, bin_floor};
use crate::{Histogram, JobStats, Latency};

/// Bins of a histogram that one coarse bin covers: there are four to a power of two.
const FINE_PER_COARSE: usize = 16;
/// Bins of a coarse histogram: 116.
pub const COARSE_BINS: usize = BINS / FINE_PER_COARSE;

/// Counts of latencies, four bins to a power of two: enough for a heat map, and for percentiles within a tenth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoarseHistogram {
    /// The counts, bin 0 first.
    #[serde(with = "counts")]
    pub counts: [u64; COARSE_BINS],
}

impl Default for CoarseHistogram {
    fn default() -> Self {
        CoarseHistogram { counts: [0; COARSE_BINS] }
    }
}

impl CoarseHistogram {
    /// The smallest latency that a bin counts, in nanoseconds. That of the bin after the last is its upper end.
    pub const fn floor_ns(bin: usize) -> u64 {
        bin_floor(bin * FINE_PER_COARSE)
    }

    /// All latencies counted.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Adds the counts of a histogram; none if it does not count.
    pub fn add(&mut self, histogram: &Histogram) {
        for (coarse, fine) in self.counts.iter_mut().zip(histogram.bins().chunks(FINE_PER_COARSE)) {
            *coarse += fine.iter().sum::<u64>();
        }
    }

    /// Adds the counts of another.
    pub fn merge(&mut self, other: &Self) {
        self.counts.iter_mut().zip(other.counts).for_each(|(count, theirs)| *count += theirs);
    }

    /// An upper bound of this percentile, in nanoseconds: the end of its bin. `None` if nothing was counted.
    pub fn percentile_ns(&self, percent: f64) -> Option<u64> {
        let total = self.total();
        let rank = u64::capped((percent / 100.0 * total as f64).ceil().max(1.0));
        let mut seen = 0;
        let bin = self.counts.iter().position(|count| {
            seen += count;
            seen >= rank
        })?;
        Some(Self::floor_ns(bin + 1))
    }
}

/// How more counts are stored than the 32 for which serde has arrays: as a list.
mod counts {
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(counts: &[u64], out: S) -> Result<S::Ok, S::Error> {
        counts.serialize(out)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>, const N: usize>(
        from: D,
    ) -> Result<[u64; N], D::Error> {
        let counts = Vec::deserialize(from)?;
        counts
            .try_into()
            .map_err(|counts: Vec<u64>| D::Error::invalid_length(counts.len(), &"a count for each bin"))
    }
}

/// What was done in one direction: so far, or in one window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectionProgress {
    /// I/Os completed.
    pub ios: u64,
    /// Bytes transferred.
    pub bytes: u64,
    /// The sum of their latencies in nanoseconds; 0 if latencies are not measured.
    pub latency_ns: u64,
    /// Their latencies; empty if no percentiles are measured.
    pub latencies: CoarseHistogram,
}

impl DirectionProgress {
    fn merge(&mut self, other: &Self) {
        let DirectionProgress { ios, bytes, latency_ns, latencies } = other;
        self.ios += ios;
        self.bytes += bytes;
        self.latency_ns += latency_ns;
        self.latencies.merge(latencies);
    }

    /// What was done since `earlier`. Counts that were reset in between begin at zero.
    pub(crate) fn since(&self, earlier: &Self) -> Self {
        if self.ios < earlier.ios {
            return *self;
        }
        let mut latencies = self.latencies;
        let counts = latencies.counts.iter_mut().zip(earlier.latencies.counts);
        counts.for_each(|(count, before)| *count = count.saturating_sub(before));
        DirectionProgress {
            ios: self.ios - earlier.ios,
            bytes: self.bytes.saturating_sub(earlier.bytes),
            latency_ns: self.latency_ns.saturating_sub(earlier.latency_ns),
            latencies,
        }
    }
}

/// What one or several jobs have done so far, without their ramps: reads, writes, trims.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DetailedProgress {
    /// By direction.
    pub directions: [DirectionProgress; 3],
}

impl DetailedProgress {
    /// That of a job with these statistics. Latencies are completion latencies, or total ones if only those are measured.
    pub fn of(stats: &JobStats) -> DetailedProgress {
        let mut progress = DetailedProgress::default();
        progress.add(stats);
        progress
    }

    /// Adds a job with these statistics.
    pub fn add(&mut self, stats: &JobStats) {
        for (progress, stats) in self.directions.iter_mut().zip(&stats.directions) {
            progress.ios += stats.ios;
            progress.bytes += stats.bytes;
            let kinds = [&stats.completion, &stats.total];
            let sum_ns = |latency: &&Latency| latency.running.sum;
            progress.latency_ns += u64::capped(kinds.iter().map(sum_ns).find(|sum| *sum > 0).unwrap_or(0));
            let counting = kinds.iter().find(|latency| latency.histogram.is_allocated());
            counting.iter().for_each(|latency| progress.latencies.add(&latency.histogram));
        }
    }

    /// Adds what others have done.
    pub fn merge(&mut self, other: &Self) {
        self.directions.iter_mut().zip(&other.directions).for_each(|(one, theirs)| one.merge(theirs));
    }

    pub(crate) fn since(&self, earlier: &Self) -> Self {
        let [read, write, trim] = &self.directions;
        let [read_before, write_before, trim_before] = &earlier.directions;
        DetailedProgress {
            directions: [read.since(read_before), write.since(write_before), trim.since(trim_before)],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stats(latencies_ns: &[u64]) -> JobStats {
        let mut stats = JobStats::default();
        let read = &mut stats.directions[0];
        read.completion = Latency::with_histogram();
        for latency_ns in latencies_ns {
            read.completion.record(*latency_ns);
            read.ios += 1;
            read.bytes += 4096;
        }
        stats
    }

    #[test]
    fn coarse_bins_are_four_to_a_power_of_two() {
        let floors: Vec<u64> = (4..14).map(CoarseHistogram::floor_ns).collect();
        assert_eq!(floors, [64, 80, 96, 112, 128, 160, 192, 224, 256, 320]);
        let progress = DetailedProgress::of(&stats(&[64, 79, 80, 1_000_000, u64::MAX]));
        let read = &progress.directions[0];
        let bins: Vec<(usize, u64)> =
            read.latencies.counts.iter().copied().enumerate().filter(|(_, count)| *count > 0).collect();
        assert_eq!(bins[..2], [(4, 2), (5, 1)]);
        assert_eq!(bins.last(), Some(&(COARSE_BINS - 1, 1)));
        assert_eq!((read.ios, read.bytes, read.latencies.total()), (5, 5 * 4096, 5));
    }

    #[test]
    fn percentiles_are_upper_bounds_within_a_quarter() {
        let latencies_ns: Vec<u64> = (1..=1000).map(|number| number * 1000).collect();
        let coarse = DetailedProgress::of(&stats(&latencies_ns)).directions[0].latencies;
        for percent in [1.0, 50.0, 99.0, 100.0] {
            let (exact, bound) = (percent * 10_000.0, coarse.percentile_ns(percent).unwrap() as f64);
            assert!((exact..=exact * 1.25).contains(&bound), "{percent}: {bound}");
        }
        assert_eq!(CoarseHistogram::default().percentile_ns(50.0), None);
    }
}
