//! Buckets of latencies: Prometheus' classic ones with bounds of 1, 2 and 5, and exponential ones, eight to a doubling.
//!
//! Invariant: every latency is in exactly one exponential bucket or among the zeros, and in every classic bucket whose
//! bound is not below it.

use fiord_stats::Capped;

/// Exponential buckets for each doubling, as a power of two: Prometheus' and OpenTelemetry's `schema` and `scale`.
pub(crate) const SCHEMA: i32 = 3;

const BUCKETS_PER_DOUBLING: f64 = (1 << SCHEMA) as f64;

/// Upper bounds of the classic buckets, in nanoseconds; one without a bound follows.
const BOUNDS_NS: [u64; 22] = [
    1_000,
    2_000,
    5_000,
    10_000,
    20_000,
    50_000,
    100_000,
    200_000,
    500_000,
    1_000_000,
    2_000_000,
    5_000_000,
    10_000_000,
    20_000_000,
    50_000_000,
    100_000_000,
    200_000_000,
    500_000_000,
    1_000_000_000,
    2_000_000_000,
    5_000_000_000,
    10_000_000_000,
];

/// The largest latency that a classic bucket counts, in seconds; `None` if it counts all.
pub type Bound = Option<f64>;

/// An exponential bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NativeBucket {
    /// It counts latencies above `2^((index - 1) / 8)` s and up to `2^(index / 8)` s.
    pub index: i32,
    /// Latencies in it.
    pub count: u64,
}

/// Nanoseconds as seconds.
pub(crate) fn seconds(latency_ns: u64) -> f64 {
    latency_ns as f64 / 1e9
}

/// How many of these latencies, as (nanoseconds, count) ascending, are at most as long as each bound.
pub(crate) fn classic_counts(occupied: &[(u64, u64)]) -> Vec<(Bound, u64)> {
    let up_to = |bound_ns: u64| {
        let within = occupied.iter().take_while(|(latency_ns, _)| *latency_ns <= bound_ns);
        within.map(|(_, count)| count).sum()
    };
    let bounded = BOUNDS_NS.iter().map(|bound_ns| (Some(seconds(*bound_ns)), up_to(*bound_ns)));
    bounded.chain([(None, up_to(u64::MAX))]).collect()
}

/// The latencies of 0 ns, and the exponential buckets of the others, ascending.
pub(crate) fn native_buckets(occupied: &[(u64, u64)]) -> (u64, Vec<NativeBucket>) {
    let mut zeros = 0;
    let mut buckets: Vec<NativeBucket> = Vec::new();
    for (latency_ns, count) in occupied.iter().copied() {
        if latency_ns == 0 {
            zeros += count;
            continue;
        }
        let index = index_of(latency_ns);
        match buckets.last_mut().filter(|bucket| bucket.index == index) {
            Some(bucket) => bucket.count += count,
            None => buckets.push(NativeBucket { index, count }),
        }
    }
    (zeros, buckets)
}

fn index_of(latency_ns: u64) -> i32 {
    i32::capped((seconds(latency_ns).log2() * BUCKETS_PER_DOUBLING).ceil())
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn a_latency_is_within_its_exponential_bucket(latency_ns in 1_u64..1 << 36) {
            let bound = |index: i32| 2_f64.powf(f64::from(index) / BUCKETS_PER_DOUBLING);
            let (index, latency_s) = (index_of(latency_ns), seconds(latency_ns));
            // Bounds are irrational but for whole doublings: one unit of rounding is allowed.
            proptest::prop_assert!(bound(index - 1) * (1.0 - 1e-12) < latency_s);
            proptest::prop_assert!(latency_s <= bound(index) * (1.0 + 1e-12));
        }
    }

    #[test]
    fn classic_buckets_include_their_bound_and_all_below() {
        let counts = classic_counts(&[(999, 1), (1_000, 2), (1_001, 4), (20_000_000_000, 8)]);
        assert_eq!(counts[0], (Some(1e-6), 3));
        assert_eq!(counts[1], (Some(2e-6), 7));
        assert_eq!(counts[counts.len() - 2], (Some(10.0), 7));
        assert_eq!(counts[counts.len() - 1], (None, 15));
    }

    #[test]
    fn exponential_buckets_have_all_latencies_and_the_zeros_are_apart() {
        let (zeros, buckets) =
            native_buckets(&[(0, 3), (1_000_000_000, 1), (1_000_000_001, 2), (1_050_000_000, 4)]);
        assert_eq!(zeros, 3);
        assert_eq!(buckets, [NativeBucket { index: 0, count: 1 }, NativeBucket { index: 1, count: 6 }]);
    }
}
