//! Operations of a queued engine that ended without the kernel's queue, waiting to be reaped.
//!
//! Invariant: room for one per slot, so adding one never allocates.

use std::collections::VecDeque;

use crate::contract::{Completion, Outcome, Slot};

/// Completions of our own making, first in, first out.
#[derive(Debug)]
pub(crate) struct Ended {
    queue: VecDeque<Completion>,
}

impl Ended {
    /// Room for the completions of `depth` slots.
    pub(crate) fn new(depth: u32) -> Ended {
        Ended { queue: VecDeque::with_capacity(depth as usize) }
    }

    /// An operation ended.
    #[inline]
    pub(crate) fn push(&mut self, slot: Slot, outcome: Outcome) {
        self.queue.push_back(Completion { slot, outcome });
    }

    /// Moves at most `max` to `done`; returns how many.
    #[inline]
    pub(crate) fn drain(&mut self, max: u32, done: &mut Vec<Completion>) -> u32 {
        let count = self.queue.len().min(max as usize);
        done.extend(self.queue.drain(..count));
        count as u32
    }

    /// How many are waiting.
    #[inline]
    pub(crate) fn len(&self) -> u32 {
        self.queue.len() as u32
    }
}
