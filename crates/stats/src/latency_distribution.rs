//! Shares of completion latencies below fixed bounds: the `lat (usec) : 50=…` lines.
//!
//! Invariant: each value is counted once, in the bucket of the first bound above it.

use serde::{Deserialize, Serialize};

use crate::histogram::{BINS, bin_floor};

/// Upper bounds of the ns buckets, exclusive.
pub const NS_BOUNDS: [u32; 10] = [2, 4, 10, 20, 50, 100, 250, 500, 750, 1000];
/// Upper bounds of the microsecond buckets, exclusive.
pub const US_BOUNDS: [u32; 10] = NS_BOUNDS;
/// Upper bounds of the millisecond buckets, exclusive; one more bucket takes what is at or above the last.
pub const MS_BOUNDS: [u32; 11] = [2, 4, 10, 20, 50, 100, 250, 500, 750, 1000, 2000];
/// All buckets: 10 of ns, 10 of us, 12 of ms.
const BUCKETS: usize = NS_BOUNDS.len() + US_BOUNDS.len() + MS_BOUNDS.len() + 1;

/// Every bucket's upper bound in nanoseconds; the last has none.
const BOUNDS_NS: [u64; BUCKETS] = bounds_ns();
/// The bucket of each histogram bin's smallest value. No bin spans two bounds, so a value is in this bucket or the next.
const BUCKET_OF_BIN: [u8; BINS] = bucket_of_bin();

const fn bounds_ns() -> [u64; BUCKETS] {
    let mut bounds = [u64::MAX; BUCKETS];
    let mut i = 0;
    while i < NS_BOUNDS.len() {
        bounds[i] = NS_BOUNDS[i] as u64;
        bounds[NS_BOUNDS.len() + i] = US_BOUNDS[i] as u64 * 1000;
        i += 1;
    }
    i = 0;
    while i < MS_BOUNDS.len() {
        bounds[NS_BOUNDS.len() + US_BOUNDS.len() + i] = MS_BOUNDS[i] as u64 * 1_000_000;
        i += 1;
    }
    bounds
}

#[allow(clippy::cast_possible_truncation, reason = "there are few buckets")]
const fn bucket_of_bin() -> [u8; BINS] {
    let mut table = [0; BINS];
    let mut index = 0;
    let mut bucket = 0;
    while index < BINS {
        while bin_floor(index) >= BOUNDS_NS[bucket] {
            bucket += 1;
        }
        table[index] = bucket as u8;
        index += 1;
    }
    table
}

/// Counts of completion latencies by magnitude.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatencyDistribution {
    counts: [u64; BUCKETS],
}

impl LatencyDistribution {
    /// Counts `value_ns`, whose histogram bin is `bin`.
    #[inline]
    pub fn record(&mut self, value_ns: u64, bin: usize) {
        let floor = usize::from(BUCKET_OF_BIN[bin]);
        let bucket = floor + usize::from(value_ns >= BOUNDS_NS[floor]);
        // The last bucket's bound is u64::MAX, so only that one value could step over it.
        self.counts[bucket.min(BUCKETS - 1)] += 1;
    }

    /// All counts, smallest bucket first.
    #[allow(dead_code, reason = "the tests of other crates count them")]
    pub fn counts(&self) -> &[u64; BUCKETS] {
        &self.counts
    }

    /// Counts of values below 1 us, one for each of [`NS_BOUNDS`].
    pub fn ns(&self) -> &[u64] {
        &self.counts[..NS_BOUNDS.len()]
    }

    /// Counts of values from 1 us to below 1 ms, one for each of [`US_BOUNDS`].
    pub fn us(&self) -> &[u64] {
        &self.counts[NS_BOUNDS.len()..NS_BOUNDS.len() + US_BOUNDS.len()]
    }

    /// Counts of values of 1 ms and more, one for each of [`MS_BOUNDS`] and a last one for the rest.
    pub fn ms(&self) -> &[u64] {
        &self.counts[NS_BOUNDS.len() + US_BOUNDS.len()..]
    }

    /// Adds the counts of `other`.
    pub fn merge(&mut self, other: &Self) {
        let LatencyDistribution { counts } = other;
        self.counts.iter_mut().zip(counts).for_each(|(a, b)| *a += b);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram::bin_index;

    /// The bucket of a value, found by comparing with one bound after another.
    fn naive_bucket(value_ns: u64) -> usize {
        BOUNDS_NS.iter().position(|bound| value_ns < *bound).unwrap_or(BUCKETS - 1)
    }

    #[test]
    fn values_below_and_at_a_bound_are_in_different_buckets() {
        for bound in BOUNDS_NS {
            for value_ns in [bound - 1, bound, bound.saturating_add(1)] {
                let mut distribution = LatencyDistribution::default();
                distribution.record(value_ns, bin_index(value_ns));
                assert_eq!(distribution.counts[naive_bucket(value_ns)], 1, "{value_ns}");
            }
        }
    }

    #[test]
    fn no_bin_spans_two_bounds() {
        for bin in 0..BINS - 1 {
            let last = bin_floor(bin + 1) - 1;
            assert!(naive_bucket(last) - naive_bucket(bin_floor(bin)) <= 1, "bin {bin}");
        }
    }

    #[test]
    fn sections_have_10_10_and_12_buckets() {
        let distribution = LatencyDistribution::default();
        assert_eq!((distribution.ns().len(), distribution.us().len(), distribution.ms().len()), (10, 10, 12));
    }
}
