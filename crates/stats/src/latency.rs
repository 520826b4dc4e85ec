//! One kind of latency: its moments, and its histogram where percentiles are wanted.
//!
//! Invariant: every recorded value is in the moments; it is in the histogram too when that is allocated.

use crate::{Histogram, Running};

/// Latencies of one kind, in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Latency {
    /// Count, mean, deviation and extremes.
    pub running: Running,
    /// Counts by bin; unallocated when percentiles are not wanted.
    pub histogram: Histogram,
}

impl Latency {
    /// An empty record with a histogram. `Latency::default()` is one without.
    pub fn with_histogram() -> Self {
        Latency { running: Running::default(), histogram: Histogram::allocated() }
    }

    /// Counts a latency and returns its histogram bin, which [`crate::Distribution::record`] takes.
    #[inline]
    pub fn record(&mut self, latency_ns: u64) -> usize {
        self.running.record(latency_ns);
        self.histogram.record(latency_ns)
    }

    /// Adds what `other` recorded.
    pub fn merge(&mut self, other: &Self) {
        let Latency { running, histogram } = other;
        self.running.merge(running);
        self.histogram.merge(histogram);
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

    #[test]
    fn without_a_histogram_only_moments_are_kept() {
        let mut latency = Latency::default();
        assert_eq!(latency.record(100), 100);
        assert_eq!(latency.running.count, 1);
        assert_eq!(latency.percentiles(&[50.0]), [0]);
    }
}
