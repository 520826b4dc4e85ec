//! The difference between two readings of live counters.
//!
//! Invariant: windows follow each other without a gap: the end of one is the start of the next.

use fiord_plan::{Job, PerDirection};
use fiord_stats::Capped;

use crate::live::Counters;

/// Counters at the start of a window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct WindowStart {
    pub at_ns: u64,
    pub counters: Counters,
}

impl WindowStart {
    /// The window that began here, once it is full; the next one begins at its end.
    pub(super) fn advance(&mut self, now_ns: u64, counters: &Counters, interval_ms: u64) -> Option<Window> {
        let elapsed_ns = now_ns.saturating_sub(self.at_ns);
        // A wake-up half a millisecond early is on time.
        if interval_ms == 0 || elapsed_ns + 500_000 < interval_ms * 1_000_000 {
            return None;
        }
        let since =
            |now: PerDirection<u64>, then: PerDirection<u64>| [0, 1, 2].map(|d: usize| now[d] - then[d]);
        let window = Window {
            seconds: elapsed_ns as f64 / 1e9,
            ios: since(counters.ios, self.counters.ios),
            bytes: since(counters.bytes, self.counters.bytes),
            latencies: counters.latencies - self.counters.latencies,
            latency_ns: counters.latency_ns - self.counters.latency_ns,
        };
        *self = WindowStart { at_ns: now_ns, counters: *counters };
        Some(window)
    }
}

/// Whether the counters of a job may not be zero when its measurement begins: they include the ramp, and what was done at
/// another depth.
pub(super) fn counts_before_measuring(job: &Job) -> bool {
    job.limits.has_ramp() || job.latency_target.is_some()
}

/// The difference between the counters at two moments.
pub(super) struct Window {
    pub seconds: f64,
    pub ios: PerDirection<u64>,
    pub bytes: PerDirection<u64>,
    /// How many latencies were added in it, and their sum, if a rule needs them.
    pub latencies: u64,
    pub latency_ns: u64,
}

impl Window {
    /// KiB/s in each direction.
    pub(super) fn kib_per_s(&self) -> PerDirection<u64> {
        self.bytes.map(|bytes| u64::capped(bytes as f64 / 1024.0 / self.seconds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_there_once_it_is_full() {
        let mut window_start = WindowStart::default();
        let counters = Counters { ios: [10, 0, 0], bytes: [40960, 0, 0], ..Counters::default() };
        assert!(window_start.advance(499_000_000, &counters, 500).is_none());
        let window = window_start.advance(500_000_000, &counters, 500).unwrap();
        assert_eq!((window.ios[0], window.bytes[0], window.seconds), (10, 40960, 0.5));
        assert!(window_start.advance(600_000_000, &counters, 500).is_none());
    }
}
