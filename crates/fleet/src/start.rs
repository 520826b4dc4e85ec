//! When all hosts start.
//!
//! Invariant: the time is late enough for the slowest host to be told of it.

/// The least time ahead, in nanoseconds.
const AHEAD_NS_MIN: u64 = 50_000_000;

/// Time for each host, in nanoseconds: they are told one after another.
const NS_PER_HOST: u64 = 1_000_000;

/// When all `hosts` start, on the controller's monotonic clock in nanoseconds: four of the slowest round trips ahead, and
/// 50 ms at least, and a millisecond more for each host.
pub fn choose(now_ns: i64, slowest_round_trip_ns: u64, hosts: usize) -> i64 {
    let ahead_ns = slowest_round_trip_ns.saturating_mul(4).max(AHEAD_NS_MIN);
    let ahead_ns = ahead_ns.saturating_add((hosts as u64).saturating_mul(NS_PER_HOST));
    now_ns.saturating_add(i64::try_from(ahead_ns).unwrap_or(i64::MAX))
}

/// Which skew of starts is accepted, in nanoseconds: 10 ms, or a thousandth of the run, whichever is more.
pub fn accepted_skew_ns(run_ns: u64) -> u64 {
    (run_ns / 1000).max(10_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_leaves_time_for_the_slowest_and_for_each() {
        assert_eq!(choose(1_000_000_000, 200_000, 3), 1_053_000_000);
        assert_eq!(choose(0, 100_000_000, 1000), 1_400_000_000);
        assert_eq!(choose(i64::MAX - 1, u64::MAX, usize::MAX), i64::MAX);
        assert_eq!([accepted_skew_ns(1), accepted_skew_ns(60_000_000_000)], [10_000_000, 60_000_000]);
    }
}
