//! The queue of an open loop: I/Os that have arrived and are not issued yet.
//!
//! Invariant: no more than [`WAITING_MAX`] wait, in memory that is allocated before the loop; an I/O that arrives when as
//! many do is dropped and counted.

use std::collections::VecDeque;

/// How many I/Os of one direction may wait. An option's documentation states it (`rate_arrivals`).
pub(crate) const WAITING_MAX: usize = 65_536;

/// Arrivals of one direction.
#[derive(Debug, Clone)]
pub(crate) struct Arrivals {
    /// When they arrived, in nanoseconds since the loop began; the earliest first.
    waiting: VecDeque<u64>,
    dropped: u64,
}

impl Arrivals {
    /// Allocates the queue.
    pub(crate) fn new() -> Arrivals {
        Arrivals { waiting: VecDeque::with_capacity(WAITING_MAX), dropped: 0 }
    }

    /// The arrival time of the I/O that has waited longest.
    pub(crate) fn first_ns(&self) -> Option<u64> {
        self.waiting.front().copied()
    }

    /// Adds an arrival: it waits, or is dropped if the queue is full.
    pub(crate) fn arrive(&mut self, at_ns: u64) {
        if self.waiting.len() < WAITING_MAX {
            self.waiting.push_back(at_ns);
        } else {
            self.dropped += 1;
        }
    }

    /// Removes the I/O that has waited longest; `false` if none is waiting.
    pub(crate) fn take_first(&mut self) -> bool {
        self.waiting.pop_front().is_some()
    }

    /// Resets the count of dropped arrivals.
    pub(crate) fn restart_counting(&mut self) {
        self.dropped = 0;
    }

    /// Discards all arrivals.
    pub(crate) fn clear(&mut self) {
        self.waiting.clear();
        self.dropped = 0;
    }

    /// Number of dropped and of waiting I/Os.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.dropped, self.waiting.len() as u64)
    }
}
