//! Completions that a queued engine produced itself, without the kernel's queue, waiting to be reaped.
//!
//! Invariant: capacity for one per slot, so adding one never allocates.

use fiord_sys::width::to_u32;

use crate::contract::{Completion, Outcome, Slot};

/// Completions the engine produced itself, first in, first out.
#[derive(Debug)]
pub(crate) struct LocalCompletions<'arena> {
    queue: Vec<Completion<'arena>>,
}

impl<'arena> LocalCompletions<'arena> {
    /// Capacity for the completions of `depth` slots.
    pub(crate) fn new(depth: u32) -> LocalCompletions<'arena> {
        LocalCompletions { queue: Vec::with_capacity(depth as usize) }
    }

    /// Adds a completed operation.
    #[inline]
    pub(crate) fn push(&mut self, slot: Slot<'arena>, outcome: Outcome) {
        self.queue.push(Completion { slot, outcome });
    }

    /// Moves at most `max` to `done`; returns how many.
    #[inline]
    pub(crate) fn drain(&mut self, max: u32, done: &mut Vec<Completion<'arena>>) -> u32 {
        let count = self.queue.len().min(max as usize);
        if done.is_empty() && count == self.queue.len() {
            // Both have capacity for one per slot.
            std::mem::swap(&mut self.queue, done);
        } else {
            done.extend(self.queue.drain(..count));
        }
        to_u32(count)
    }

    /// How many are waiting.
    #[inline]
    pub(crate) fn len(&self) -> u32 {
        to_u32(self.queue.len())
    }
}
