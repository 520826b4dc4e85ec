//! Operations of a queued engine that ended without the kernel's queue, waiting to be reaped.
//!
//! Invariant: room for one per slot, so adding one never allocates.

use crate::contract::{Completion, Outcome, Slot};

/// Completions of our own making, first in, first out.
#[derive(Debug)]
pub(crate) struct Ended {
    queue: Vec<Completion>,
}

impl Ended {
    /// Room for the completions of `depth` slots.
    pub(crate) fn new(depth: u32) -> Ended {
        Ended { queue: Vec::with_capacity(depth as usize) }
    }

    /// An operation ended.
    #[inline]
    pub(crate) fn push(&mut self, slot: Slot, outcome: Outcome) {
        self.queue.push(Completion { slot, outcome });
    }

    /// Moves at most `max` to `done`; returns how many.
    #[inline]
    pub(crate) fn drain(&mut self, max: u32, done: &mut Vec<Completion>) -> u32 {
        let count = self.queue.len().min(max as usize);
        if done.is_empty() && count == self.queue.len() {
            // Both have room for one per slot.
            std::mem::swap(&mut self.queue, done);
        } else {
            done.extend(self.queue.drain(..count));
        }
        count as u32
    }

    /// How many are waiting.
    #[inline]
    pub(crate) fn len(&self) -> u32 {
        self.queue.len() as u32
    }
}
