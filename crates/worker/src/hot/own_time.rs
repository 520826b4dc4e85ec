//! What of a thread's time is no I/O: its own work, and its waits.
//!
//! Invariant: kept by readings of the clock that latencies need anyway; with the latencies of I/Os that do not overlap it adds
//! up to the time of the loop.

use fiord_sys::clock::Clock;

/// Time in a loop that is part of no latency.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OwnTime {
    /// All time between I/Os, waits included.
    between_ns: u64,
    waited_ns: u64,
}

impl OwnTime {
    /// Drawing operations, preparing and verifying buffers, statistics, logs, requests of other threads, in nanoseconds.
    pub fn work_ns(&self) -> u64 {
        self.between_ns.saturating_sub(self.waited_ns)
    }

    /// Waits for a rate, a due time, a flow or logs with nothing in flight, in nanoseconds.
    pub fn waited_ns(&self) -> u64 {
        self.waited_ns.min(self.between_ns)
    }

    /// Reads the clock after work that is not an I/O and began at `since_ns`.
    #[inline(always)]
    pub(super) fn read<C: Clock>(&mut self, since_ns: u64, clock: C) -> u64 {
        let now_ns = clock.now_ns();
        // A counter that is a little behind on another processor is made up for by the next reading.
        self.between_ns = self.between_ns.wrapping_add(now_ns.wrapping_sub(since_ns));
        now_ns
    }

    /// A part of the time between I/Os was a wait.
    pub(super) fn waited(&mut self, ns: u64) {
        self.waited_ns += ns;
    }
}
