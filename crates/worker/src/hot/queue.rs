//! Where the slots of a queued engine are, and what is known of those in flight.
//!
//! Invariant: every slot is in exactly one place: free, in flight inside the engine, or done and not yet looked at.

use fiord_engine::contract::{Completion, Slot};
use fiord_plan::Op;

/// An operation in flight.
#[derive(Debug, Clone, Copy)]
pub(super) struct Flight {
    /// What the engine has of it now: its rest, when a short transfer is continued.
    pub op: Op,
    /// When it was made.
    pub start_ns: u64,
    /// When the kernel got it.
    pub issue_ns: u64,
}

/// The slots of one worker.
pub(super) struct Queue {
    pub free: Vec<Slot>,
    pub done: Vec<Completion>,
    pub in_flight: u32,
    /// Taken from the engine, but in flight still by fio's count, which looks at completions one by one.
    unseen: u32,
    flights: Box<[Option<Flight>]>,
    /// Slots queued since the last submission.
    queued: Vec<usize>,
    /// Operations begun since the last submission; the rest of a short one is none.
    begun: u32,
}

impl Queue {
    pub(super) fn new(free: Vec<Slot>) -> Queue {
        let depth = free.len();
        Queue {
            free,
            done: Vec::with_capacity(depth),
            in_flight: 0,
            unseen: 0,
            flights: vec![None; depth].into_boxed_slice(),
            queued: Vec::with_capacity(depth),
            begun: 0,
        }
    }

    /// An operation begins, made at `start_ns`.
    #[inline]
    pub(super) fn begin(&mut self, index: usize, op: Op, start_ns: u64) {
        self.flights[index] = Some(Flight { op, start_ns, issue_ns: start_ns });
        self.queued.push(index);
        self.in_flight += 1;
        self.begun += 1;
    }

    /// The rest of a short transfer was queued.
    pub(super) fn go_on(&mut self, index: usize, rest: Op) {
        if let Some(flight) = &mut self.flights[index] {
            flight.op = rest;
        }
        self.queued.push(index);
    }

    /// Operations queued since the last submission.
    #[inline]
    pub(super) fn queued(&self) -> u32 {
        self.queued.len() as u32
    }

    /// What was queued went to the kernel at `issue_ns`; says how many operations began with it.
    #[inline]
    pub(super) fn issue(&mut self, issue_ns: u64) -> u32 {
        for index in &self.queued {
            if let Some(flight) = &mut self.flights[*index] {
                flight.issue_ns = issue_ns;
            }
        }
        self.queued.clear();
        std::mem::take(&mut self.begun)
    }

    /// So many completions were taken at once where fio would take one, begin an operation, and take the next.
    #[inline]
    pub(super) fn leave_unseen(&mut self, taken: u32) {
        self.unseen += taken;
    }

    /// Every completion taken so far has been looked at.
    #[inline]
    pub(super) fn see_all(&mut self) {
        self.unseen = 0;
    }

    /// How deep the queue is by fio's count, now that operations have begun: as many completions were looked at as
    /// make room for them.
    #[inline]
    pub(super) fn depth_shown(&mut self) -> u32 {
        let depth = self.flights.len() as u32;
        self.unseen = self.unseen.min(depth - self.in_flight);
        self.in_flight + self.unseen
    }

    /// The operation that has this slot.
    #[inline]
    pub(super) fn flight(&self, slot: &Slot) -> &Flight {
        match &self.flights[slot.index()] {
            Some(flight) => flight,
            None => unreachable!("the engine completed an operation nobody queued"),
        }
    }

    /// An operation is over.
    #[inline]
    pub(super) fn land(&mut self, slot: Slot) {
        self.in_flight -= 1;
        self.free.push(slot);
    }
}
