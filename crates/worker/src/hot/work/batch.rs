//! Operations that were generated and not yet issued.
//!
//! Invariant: a batch is filled when it is empty, and never grows beyond what it was allocated for.

use fiord_plan::Op;

/// Operations generated at once.
pub(super) const BATCH: usize = 64;

/// Operations generated ahead.
pub(crate) struct Batch {
    pub(super) ops: Vec<Op>,
    next: usize,
    /// Whether they must wait for a change of files.
    pub(super) held: bool,
}

/// The result of a refill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refilled {
    /// Operations are available, and generating them took time that is part of no latency.
    Ready,
    /// Operations in flight have to complete first.
    Blocked,
    /// None is available for this many nanoseconds.
    Later(u64),
    /// All operations have been issued.
    Exhausted,
}

impl Batch {
    /// None yet.
    pub(super) fn new() -> Batch {
        Batch { ops: Vec::with_capacity(BATCH + 8), next: 0, held: false }
    }

    /// Drops all, so that the next are generated.
    pub(super) fn clear(&mut self) {
        self.ops.clear();
        self.next = 0;
    }

    /// Takes the next operation, if one is left. By reference, so that the loop copies it once.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<&Op> {
        let op = self.ops.get(self.next);
        self.next += 1;
        op
    }

    /// Puts the operation just taken back.
    #[inline]
    pub(crate) fn put_back(&mut self) {
        self.next -= 1;
    }

    /// Keeps the operations just generated from being taken.
    pub(super) fn hold(&mut self) {
        self.held = true;
        self.next = self.ops.len();
    }

    /// Lets them be taken.
    pub(super) fn release(&mut self) {
        self.held = false;
        self.next = 0;
    }
}
