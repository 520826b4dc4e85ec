//! The combined bandwidth of all workers of a run, window by window.
//!
//! Invariant: windows follow each other from the first worker's start to the end of the run; the last may be short.

use fiord_plan::PerDirection;

use super::group::{GroupRule, Stop, Tick};
use super::window::WindowStart;
use crate::live::Counters;

/// Bandwidth of a group over time. It observes and never stops a job.
#[derive(Debug)]
pub(super) struct AggregateSampler {
    begun_ns: u64,
    interval_ms: u64,
    window_start: WindowStart,
    full: Option<RateSample>,
}

/// A completed window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RateSample {
    /// Its end, since the beginning of the first.
    pub at_ms: u64,
    /// KiB/s per direction.
    pub kib_per_s: PerDirection<u64>,
}

impl AggregateSampler {
    /// Counts from `now_ns` on, in windows of this length.
    pub(super) fn new(now_ns: u64, interval_ms: u64) -> AggregateSampler {
        let window_start = WindowStart { at_ns: now_ns, counters: Counters::default() };
        AggregateSampler { begun_ns: now_ns, interval_ms, window_start, full: None }
    }

    /// The last completed window; returned once.
    pub(super) fn take(&mut self) -> Option<RateSample> {
        self.full.take()
    }

    /// Ends the current window, however short it is.
    pub(super) fn cut(&mut self, tick: &Tick<'_>) {
        self.sample(tick, 1);
    }

    fn sample(&mut self, tick: &Tick<'_>, interval_ms: u64) {
        if let Some(window) = self.window_start.advance(tick.now_ns, &tick.counters(), interval_ms) {
            let at_ms = (tick.now_ns - self.begun_ns) / 1_000_000;
            self.full = Some(RateSample { at_ms, kib_per_s: window.kib_per_s() });
        }
    }
}

impl GroupRule for AggregateSampler {
    fn due_ns(&self) -> u64 {
        self.window_start.at_ns + self.interval_ms * 1_000_000
    }

    fn look(&mut self, tick: &Tick<'_>) -> Vec<Stop> {
        self.sample(tick, self.interval_ms);
        Vec::new()
    }
}
