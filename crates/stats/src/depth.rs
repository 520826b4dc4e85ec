//! Shares of I/O depths and of batch sizes, in powers of two.
//!
//! Invariant: every recorded number is in exactly one of seven buckets.

use serde::{Deserialize, Serialize};

/// Buckets of either map.
const BUCKETS: usize = 7;

/// Units in flight when each I/O was issued: buckets 1, 2, 4, 8, 16, 32, >=64, each from its label up to the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DepthMap {
    /// Counts, smallest bucket first.
    pub counts: [u64; BUCKETS],
}

impl DepthMap {
    /// Names of the buckets, as fio prints them.
    pub const LABELS: [&str; BUCKETS] = ["1", "2", "4", "8", "16", "32", ">=64"];

    /// Counts `ios` I/Os that were submitted together and brought the queue to `depth`, themselves included (so from 1; 0
    /// counts as 1).
    #[inline]
    pub fn record_many(&mut self, depth: u32, ios: u64) {
        self.counts[(depth | 1).ilog2().min(6) as usize] += ios;
    }

    /// Adds the counts of `other`.
    pub fn merge(&mut self, other: &Self) {
        let DepthMap { counts } = other;
        self.counts.iter_mut().zip(counts).for_each(|(a, b)| *a += b);
    }
}

/// I/Os in one submit or one reaping call: buckets 0, 4, 8, 16, 32, 64, >=64, each from above the previous label up to
/// its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchMap {
    /// Counts of calls, smallest bucket first.
    pub counts: [u64; BUCKETS],
}

impl BatchMap {
    /// Names of the buckets, as fio prints them.
    pub const LABELS: [&str; BUCKETS] = ["0", "4", "8", "16", "32", "64", ">=64"];

    /// Counts one call that handled `batch` I/Os.
    #[inline]
    pub fn record(&mut self, batch: u32) {
        self.record_calls(batch, 1);
    }

    /// Counts `calls` calls that each handled `batch` I/Os: a synchronous loop counts its calls at the end.
    #[inline]
    pub fn record_calls(&mut self, batch: u32, calls: u64) {
        // 0 | 1..=4 | 5..=8 | 9..=16 | 17..=32 | 33..=64 | above
        let bucket = if batch == 0 { 0 } else { ((batch - 1) | 3).ilog2().min(6) };
        self.counts[bucket as usize] += calls;
    }

    /// Calls counted.
    pub fn calls(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Adds the counts of `other`.
    pub fn merge(&mut self, other: &Self) {
        let BatchMap { counts } = other;
        self.counts.iter_mut().zip(counts).for_each(|(a, b)| *a += b);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_buckets_start_at_their_label() {
        for (depth, bucket) in
            [(0, 0), (1, 0), (2, 1), (3, 1), (4, 2), (16, 4), (31, 4), (63, 5), (64, 6), (9999, 6)]
        {
            let mut map = DepthMap::default();
            map.record_many(depth, 1);
            assert_eq!(map.counts[bucket], 1, "depth {depth}");
        }
    }

    #[test]
    fn calls_are_counted_for_every_batch_size() {
        let mut map = BatchMap::default();
        assert_eq!(map.calls(), 0);
        [1, 1, 5].into_iter().for_each(|batch| map.record(batch));
        assert_eq!(map.calls(), 3);
    }

    #[test]
    fn batch_buckets_end_at_their_label() {
        for (batch, bucket) in [
            (0, 0),
            (1, 1),
            (4, 1),
            (5, 2),
            (8, 2),
            (9, 3),
            (16, 3),
            (17, 4),
            (32, 4),
            (33, 5),
            (64, 5),
            (65, 6),
            (u32::MAX, 6),
        ] {
            let mut map = BatchMap::default();
            map.record(batch);
            assert_eq!(map.counts[bucket], 1, "batch {batch}");
        }
    }
}
