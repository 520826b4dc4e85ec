//! Tracks the slots of a queued engine and the operations in flight.
//!
//! Invariant: every slot is in exactly one place: free, in flight inside the engine, or completed but unprocessed.

use fiord_engine::contract::{Completion, Slot};
use fiord_plan::Op;

use super::places::Places;

/// An operation in flight.
#[derive(Debug, Clone, Copy)]
pub(super) struct Flight {
    /// What the engine is executing: the rest, if a short transfer is being continued.
    pub op: Op,
    /// When it was generated.
    pub start_ns: u64,
    /// When it was submitted to the kernel.
    pub issue_ns: u64,
}

/// The slots of one worker.
pub(super) struct SlotQueue<'arena> {
    pub free: Vec<Slot<'arena>>,
    pub done: Vec<Completion<'arena>>,
    pub in_flight: u32,
    /// Completions reaped but still in flight by fio's count, which processes them one by one.
    unseen: u32,
    /// How many may be in flight.
    depth: u32,
    /// Slots beyond that.
    parked: Vec<Slot<'arena>>,
    flights: Box<[Option<Flight>]>,
    places: Places,
    /// Slots queued since the last submission.
    queued: Vec<usize>,
    /// Operations begun since the last submission; the rest of a short transfer does not count.
    begun: u32,
    /// Of those queued since, how many are not I/Os of the job.
    unmeasured: u32,
}

/// A number of slots.
#[inline]
#[allow(
    clippy::cast_possible_truncation,
    reason = "a queue has fewer than 2^32, and a comparison costs an I/O two instructions"
)]
pub(super) fn slots(count: usize) -> u32 {
    count as u32
}

impl<'arena> SlotQueue<'arena> {
    pub(super) fn new(free: Vec<Slot<'arena>>) -> SlotQueue<'arena> {
        let depth = free.len();
        SlotQueue {
            free,
            done: Vec::with_capacity(depth),
            in_flight: 0,
            unseen: 0,
            depth: slots(depth),
            parked: Vec::with_capacity(depth),
            flights: vec![None; depth].into_boxed_slice(),
            places: Places::new(depth),
            queued: Vec::with_capacity(depth),
            begun: 0,
            unmeasured: 0,
        }
    }

    /// Begins an operation that was generated at `start_ns`. By reference, so that the loop copies it once.
    #[inline]
    pub(super) fn begin(&mut self, index: usize, op: &Op, start_ns: u64) {
        self.flights[index] = Some(Flight { op: *op, start_ns, issue_ns: start_ns });
        self.queued.push(index);
        self.in_flight += 1;
        self.begun += 1;
    }

    /// Begins an operation that is executed without the queue, from `start_ns` on.
    pub(super) fn begin_unqueued(&mut self, index: usize, op: Op, start_ns: u64) {
        self.flights[index] = Some(Flight { op, start_ns, issue_ns: start_ns });
        self.in_flight += 1;
    }

    /// Excludes the operation that began last from the count of the job's I/Os.
    pub(super) fn exclude(&mut self) {
        self.begun -= 1;
        self.unmeasured += 1;
    }

    /// How many of the `taken` operations just submitted are I/Os of the job.
    pub(super) fn measured_of(&mut self, taken: u32) -> u32 {
        taken.saturating_sub(std::mem::take(&mut self.unmeasured))
    }

    /// How many of the operations that have completed are I/Os of the job.
    pub(super) fn measured_done(&self, done: &[Completion<'arena>]) -> u32 {
        let is_measured =
            |completion: &&Completion<'arena>| self.flight(&completion.slot).op.purpose.rules().is_measured;
        slots(done.iter().filter(is_measured).count())
    }

    /// Records that the rest of a short transfer was queued.
    pub(super) fn resume(&mut self, index: usize, rest: Op) {
        if let Some(flight) = &mut self.flights[index] {
            flight.op = rest;
        }
        self.queued.push(index);
    }

    /// Operations queued since the last submission.
    #[inline]
    pub(super) fn queued(&self) -> u32 {
        slots(self.queued.len())
    }

    /// Stamps the queued operations as submitted at `issue_ns`; returns how many operations began with them.
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

    /// Records that `taken` completions were reaped at once, where fio would process one, begin an operation, and
    /// process the next.
    #[inline]
    pub(super) fn leave_unseen(&mut self, taken: u32) {
        self.unseen += taken;
    }

    /// Records that every reaped completion has been processed.
    #[inline]
    pub(super) fn see_all(&mut self) {
        self.unseen = 0;
    }

    /// How many may be in flight.
    pub(super) fn depth(&self) -> u32 {
        self.depth
    }

    /// Lets at most `depth` be in flight from now on, when nothing is.
    pub(super) fn set_depth(&mut self, depth: u32) {
        self.free.append(&mut self.parked);
        while slots(self.free.len()) > depth.max(1) {
            self.parked.extend(self.free.pop());
        }
        (self.depth, self.unseen) = (slots(self.free.len()), 0);
    }

    /// The queue depth by fio's count after operations have begun: it has processed as many completions as were needed
    /// to make room for them.
    #[inline]
    pub(super) fn depth_shown(&mut self) -> u32 {
        self.unseen = self.unseen.min(self.depth - self.in_flight);
        self.in_flight + self.unseen
    }

    /// The operation in this slot.
    #[inline]
    pub(super) fn flight(&self, slot: &Slot<'arena>) -> &Flight {
        match &self.flights[slot.index()] {
            Some(flight) => flight,
            None => unreachable!("the engine completed an operation nobody queued"),
        }
    }

    /// Whether an operation for the slot of this index, which is in no list at the moment, overlaps one in flight. If not, it
    /// is taken to be the next in that slot.
    pub(super) fn overlaps(&mut self, index: usize, op: &Op) -> bool {
        let is_free = |other: usize| self.free.iter().any(|slot| slot.index() == other);
        let overlaps = |other: usize| {
            // A slot keeps its last operation after that has completed.
            self.flights[other].as_ref().is_some_and(|flight| flight.op.whole().overlaps(op))
                && !is_free(other)
        };
        !self.places.enter(index, op, overlaps)
    }

    /// Ends an operation and frees its slot.
    #[inline]
    pub(super) fn complete(&mut self, slot: Slot<'arena>) {
        self.in_flight -= 1;
        self.free.push(slot);
    }
}
