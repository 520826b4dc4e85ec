//! One kind of latency: its moments, and its histogram if percentiles are requested.
//!
//! Invariant: every recorded value is in the moments; and in the histogram if that is allocated.

use serde::{Deserialize, Serialize};

use crate::capped::Capped;
use crate::{Histogram, Moments};

/// Latencies of one kind, in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Count, mean, deviation and extremes.
    pub running: Moments,
    /// Counts by bin; unallocated if percentiles are not requested.
    pub histogram: Histogram,
}

impl Latency {
    /// An empty record with a histogram. `Latency::default()` is one without.
    pub fn with_histogram() -> Self {
        Latency { running: Moments::default(), histogram: Histogram::allocated() }
    }

    /// Counts a latency and returns its histogram bin, which [`crate::LatencyDistribution::record`] takes.
    #[inline]
    pub fn record(&mut self, latency_ns: u64) -> usize {
        self.running.record(latency_ns);
        self.histogram.record(latency_ns)
    }

    /// Counts latencies below 2^32 ns, a few dozen at a time, and passes the histogram bin of each to `bin_of`, as
    /// [`crate::LatencyDistribution::record`] takes it.
    #[inline]
    pub fn record_all(&mut self, latencies_ns: &[u32], mut bin_of: impl FnMut(u64, usize)) {
        self.running.record_all(latencies_ns);
        for latency_ns in latencies_ns.iter().map(|latency_ns| u64::from(*latency_ns)) {
            bin_of(latency_ns, self.histogram.record(latency_ns));
        }
    }

    /// Counts sums of two latencies each, which are below 2^32 ns as well.
    #[inline]
    pub fn record_sums(&mut self, first_ns: &[u32], second_ns: &[u32]) {
        const CHUNK: usize = 64;
        let mut sums_ns = [0; CHUNK];
        for (first_ns, second_ns) in first_ns.chunks(CHUNK).zip(second_ns.chunks(CHUNK)) {
            let sums_ns = &mut sums_ns[..first_ns.len().min(second_ns.len())];
            for (sum_ns, (first_ns, second_ns)) in sums_ns.iter_mut().zip(first_ns.iter().zip(second_ns)) {
                *sum_ns = first_ns + second_ns;
            }
            self.record_all(sums_ns, |_, _| ());
        }
    }

    /// Adds the values of `other`.
    pub fn merge(&mut self, other: &Self) {
        let Latency { running, histogram } = other;
        self.running.merge(running);
        self.histogram.merge(histogram);
    }

    /// These latencies, each with that of what followed it. Which followed which is not recorded: the longest are taken to
    /// follow the longest, so that each percentile is the sum of both. The mean is exact.
    pub fn followed_by(&self, next: &Self) -> Latency {
        let (own, of_next) = (&self.running, &next.running);
        if own.count == 0 || of_next.count == 0 {
            return self.clone();
        }
        let count = u128::from(own.count);
        let sum = own.sum + of_next.sum * count / u128::from(of_next.count);
        let mean = sum as f64 / own.count.max(1) as f64;
        let deviation = own.stddev() + of_next.stddev();
        Latency {
            running: Moments {
                count: own.count,
                sum,
                sum_squares: u128::capped((mean.powi(2) + deviation.powi(2)) * own.count as f64),
                min: own.min.saturating_add(of_next.min),
                max: own.max.saturating_add(of_next.max),
            },
            histogram: self.histogram.paired_with(&next.histogram),
        }
    }

    /// Becomes a copy of `other`, in the memory that it has.
    pub fn copy_from(&mut self, other: &Self) {
        let Latency { running, histogram } = other;
        self.running = *running;
        self.histogram.copy_from(histogram);
    }

    /// What was counted since `earlier`, an earlier copy; `None` if that counts more. The extremes are those of the bins.
    pub fn since(&self, earlier: &Self) -> Option<Latency> {
        let (now, then) = (&self.running, &earlier.running);
        let histogram =
            self.histogram.covers(&earlier.histogram).then(|| self.histogram.since(&earlier.histogram))?;
        let count = now.count.checked_sub(then.count)?;
        // Without a histogram the part's own extremes are not known, and those of the whole are bounds.
        let (min, max) = match (count, histogram.range()) {
            (0, _) => return Some(Latency { running: Moments::default(), histogram }),
            (_, Some((min, max))) => (min.max(now.min), max.min(now.max)),
            (_, None) => (now.min, now.max),
        };
        let sum = now.sum.checked_sub(then.sum)?;
        let sum_squares = now.sum_squares.wrapping_sub(then.sum_squares);
        Some(Latency { running: Moments { count, sum, sum_squares, min, max }, histogram })
    }

    /// Percentiles in nanoseconds, never outside the recorded extremes; see [`Histogram::percentiles`].
    pub fn percentiles(&self, percents: &[f64]) -> Vec<u64> {
        self.histogram.percentiles(percents, self.running.min(), self.running.max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentile_never_exceeds_the_maximum() {
        let mut latency = Latency::with_histogram();
        latency.record(2_657_402);
        assert_eq!(latency.percentiles(&[50.0, 100.0]), [2_657_402, 2_657_402]);
    }

    /// As many syncs as writes, or one fewer.
    #[test]
    fn what_is_followed_by_something_has_the_sum_of_both_percentiles() {
        let of = |values: &[u64]| {
            let mut latency = Latency::with_histogram();
            values.iter().for_each(|ns| {
                latency.record(*ns);
            });
            latency
        };
        let writes: Vec<u64> = (1..=1000).map(|rank| 10_000 + 7 * rank).collect();
        let syncs: Vec<u64> = (1..=999).map(|rank| 1_000_000 + 90_000 * rank).collect();
        let both = of(&writes).followed_by(&of(&syncs));
        assert_eq!((both.running.count, both.histogram.count()), (1000, 1000));
        assert!((both.running.mean() - (of(&writes).running.mean() + of(&syncs).running.mean())).abs() < 1.0);
        assert_eq!((both.running.min, both.running.max), (writes[0] + syncs[0], writes[999] + syncs[998]));
        for percent in [1.0, 50.0, 90.0, 99.0, 99.9] {
            let at = |latency: &Latency| latency.percentiles(&[percent])[0] as f64;
            let (sum, shown) = (at(&of(&writes)) + at(&of(&syncs)), at(&both));
            assert!((shown / sum - 1.0).abs() < 0.03, "p{percent}: {shown} of {sum}");
        }
        assert_eq!(of(&writes).followed_by(&Latency::with_histogram()), of(&writes), "nothing followed");
        assert_eq!(of(&[]).followed_by(&of(&syncs)).running.count, 0);
        let bare = Latency { running: of(&writes).running, ..Latency::default() };
        assert!(!bare.followed_by(&of(&syncs)).histogram.is_allocated());
    }

    #[test]
    fn many_at_once_are_the_same_as_one_by_one() {
        let values = [3, 900, 70_000, u32::MAX];
        let (mut at_once, mut one_by_one) = (Latency::with_histogram(), Latency::with_histogram());
        let mut bins = Vec::new();
        at_once.record_all(&values, |value, bin| bins.push((value, bin)));
        let expected: Vec<(u64, usize)> =
            values.iter().map(|value| (u64::from(*value), one_by_one.record(u64::from(*value)))).collect();
        assert_eq!((at_once, bins), (one_by_one, expected));
    }

    #[test]
    fn without_a_histogram_only_moments_are_kept() {
        let mut latency = Latency::default();
        assert_eq!(latency.record(100), 100);
        assert_eq!(latency.running.count, 1);
        assert_eq!(latency.percentiles(&[50.0]), [0]);
    }
}
