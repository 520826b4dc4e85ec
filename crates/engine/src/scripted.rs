//! scripted: outcomes and times are set by a test, on a clock that only this engine advances. For tests of the loops.
//!
//! Invariant: no system call and no real time. Time passes in two places: while a synchronous operation runs, and
//! while `reap` waits.

use std::collections::VecDeque;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use fiord_plan::{FileIndex, Op};

use crate::contract::{
    Arena, ArenaAccess, Completion, Engine, Outcome, QueuedEngine, Slot, SyncEngine, Wait,
};

/// A clock that stands still until it is advanced. Clones show the same time.
#[derive(Debug, Clone, Default)]
pub struct FakeClock {
    now_ns: Arc<AtomicU64>,
}

impl FakeClock {
    /// Nanoseconds since its creation.
    pub fn now_ns(&self) -> u64 {
        self.now_ns.load(Ordering::Relaxed)
    }

    /// Advances the time.
    pub fn advance(&self, by_ns: u64) {
        self.now_ns.fetch_add(by_ns, Ordering::Relaxed);
    }

    /// Advances to this time, unless it has passed.
    pub fn advance_to(&self, then_ns: u64) {
        self.now_ns.fetch_max(then_ns, Ordering::Relaxed);
    }
}

/// The outcome of an operation, and its duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// How.
    pub outcome: Outcome,
    /// From `execute` or `submit` on.
    pub delay_ns: u64,
}

impl Answer {
    /// A complete transfer after this time.
    pub fn whole(op: &Op, delay_ns: u64) -> Answer {
        Answer { outcome: Outcome::Done(op.length_bytes), delay_ns }
    }
}

/// One operation as received by the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// What.
    pub op: Op,
    /// On which buffer; the maximum for one that blocked between submissions.
    pub slot: usize,
    /// When it was executed or submitted.
    pub at_ns: u64,
}

/// The operations an engine received, in order. Clones share one list.
#[derive(Debug, Clone, Default)]
pub struct OperationLog {
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl OperationLog {
    /// All of it so far.
    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn note(&self, seen: Seen) {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).push(seen);
    }
}

/// The test's script: the outcome of the n-th operation, counted from 0.
pub type Script = Box<dyn FnMut(u64, &Op) -> Answer + Send>;

/// The engine.
pub struct Scripted<'arena> {
    script: Script,
    clock: FakeClock,
    journal: OperationLog,
    next: u64,
    /// Queued and not yet submitted.
    queued: VecDeque<(Op, Slot<'arena>)>,
    /// Submitted, with the time they end.
    running: Vec<(u64, Completion<'arena>)>,
    take_max: u32,
    /// Whether operations other than transfers block between submissions.
    blocks: bool,
    arena: Arena<'arena>,
}

impl<'arena> Scripted<'arena> {
    /// An engine over these buffers, on this clock.
    pub fn new(script: Script, clock: FakeClock, arena: Arena<'arena>) -> Scripted<'arena> {
        let (queued, running) = (VecDeque::new(), Vec::new());
        let journal = OperationLog::default();
        Scripted {
            script,
            clock,
            journal,
            next: 0,
            queued,
            running,
            take_max: u32::MAX,
            blocks: false,
            arena,
        }
    }

    /// Accepts at most this many operations at each `submit`.
    #[must_use]
    pub fn taking_at_most(mut self, operations: u32) -> Scripted<'arena> {
        self.take_max = operations;
        self
    }

    /// Executes synchronisations and discards between submissions.
    #[must_use]
    pub fn blocking(mut self) -> Scripted<'arena> {
        self.blocks = true;
        self
    }

    /// The log of its operations.
    pub fn journal(&self) -> OperationLog {
        self.journal.clone()
    }

    fn answer(&mut self, op: &Op, slot: usize) -> Answer {
        self.journal.note(Seen { op: *op, slot, at_ns: self.clock.now_ns() });
        let number = self.next;
        self.next += 1;
        (self.script)(number, op)
    }

    /// The time at which this many of the running operations have ended, or all of them if there are fewer.
    fn time_of(&self, count: usize) -> Option<u64> {
        let mut ends: Vec<u64> = self.running.iter().map(|(end_ns, _)| *end_ns).collect();
        ends.sort_unstable();
        ends.get(count.min(ends.len()).checked_sub(1)?).copied()
    }
}

impl<'arena> Engine<'arena> for Scripted<'arena> {
    fn attach(&mut self, _file: FileIndex, _fd: BorrowedFd<'_>, _length_bytes: u64) -> io::Result<()> {
        Ok(())
    }

    fn arena(&mut self) -> ArenaAccess<'_, 'arena> {
        ArenaAccess::of(&mut self.arena)
    }
}

impl<'arena> SyncEngine<'arena> for Scripted<'arena> {
    fn execute(&mut self, op: Op, slot: &mut Slot<'arena>) -> Outcome {
        let answer = self.answer(&op, slot.index());
        self.clock.advance(answer.delay_ns);
        answer.outcome
    }
}

impl<'arena> QueuedEngine<'arena> for Scripted<'arena> {
    fn execute_unqueued(&mut self, op: &Op) -> Option<Outcome> {
        if !self.blocks || op.action.transfers() {
            return None;
        }
        let answer = self.answer(op, usize::MAX);
        self.clock.advance(answer.delay_ns);
        Some(answer.outcome)
    }

    fn queue(&mut self, op: Op, slot: Slot<'arena>) -> Result<(), Slot<'arena>> {
        self.queued.push_back((op, slot));
        Ok(())
    }

    fn submit(&mut self) -> io::Result<u32> {
        let mut taken = 0;
        while taken < self.take_max {
            let Some((op, slot)) = self.queued.pop_front() else { break };
            let answer = self.answer(&op, slot.index());
            let end_ns = self.clock.now_ns() + answer.delay_ns;
            self.running.push((end_ns, Completion { slot, outcome: answer.outcome }));
            taken += 1;
        }
        Ok(taken)
    }

    fn reap(&mut self, min: u32, max: u32, wait: Wait, done: &mut Vec<Completion<'arena>>) -> io::Result<()> {
        self.submit()?;
        let enough_ns = self.time_of(min.min(max) as usize).unwrap_or(0);
        match wait {
            Wait::Poll => {}
            Wait::Block => self.clock.advance_to(enough_ns),
            Wait::For(time_ns) => self.clock.advance_to(enough_ns.min(self.clock.now_ns() + time_ns)),
        }
        let now_ns = self.clock.now_ns();
        for _ in 0..max {
            let ended = self.running.iter().enumerate().filter(|(_, (end_ns, _))| *end_ns <= now_ns);
            let Some((first, _)) = ended.min_by_key(|(_, (end_ns, _))| *end_ns) else { break };
            done.push(self.running.remove(first).1);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fiord_plan::Action;
    use fiord_sys::errno::Errno;
    use fiord_sys::memory::{MemorySource, Region};

    const OP: Op = Op::new(Action::Read, 0, 0, 4096);

    fn scripted(script: Script, test: impl for<'arena> FnOnce(Scripted<'arena>, FakeClock)) {
        let clock = FakeClock::default();
        let region = Region::allocate(&MemorySource::Malloc, 4 * 4096, 4096).unwrap();
        Arena::with(region, 4, 4096, 4096, |arena| test(Scripted::new(script, clock.clone(), arena), clock));
    }

    fn queue_all(engine: &mut Scripted<'_>) {
        for slot in engine.arena().slots() {
            engine.queue(OP, slot).unwrap();
        }
    }

    #[test]
    fn a_synchronous_operation_takes_its_time() {
        let script: Script = Box::new(|number, op| match number {
            1 => Answer { outcome: Outcome::Failed(Errno(libc::EIO)), delay_ns: 7 },
            _ => Answer::whole(op, 100),
        });
        scripted(script, |mut engine, clock| {
            let mut slot = engine.arena().slots().remove(0);
            assert_eq!(engine.execute(OP, &mut slot), Outcome::Done(4096));
            assert_eq!(engine.execute(OP, &mut slot), Outcome::Failed(Errno(libc::EIO)));
            assert_eq!(clock.now_ns(), 107);
            let times: Vec<u64> = engine.journal().seen().iter().map(|seen| seen.at_ns).collect();
            assert_eq!(times, [0, 100]);
        });
    }

    #[test]
    fn waiting_advances_the_clock_just_enough() {
        // The n-th takes 40, 30, 20, 10.
        let script: Script = Box::new(|number, op| Answer::whole(op, 40 - 10 * number));
        scripted(script, |mut engine, clock| {
            let mut done = Vec::with_capacity(4);
            queue_all(&mut engine);
            assert_eq!(engine.submit().unwrap(), 4);
            engine.reap(1, 4, Wait::Poll, &mut done).unwrap();
            assert!(done.is_empty());
            engine.reap(2, 4, Wait::Block, &mut done).unwrap();
            let order: Vec<usize> = done.iter().map(|completion| completion.slot.index()).collect();
            assert_eq!((order, clock.now_ns()), (vec![3, 2], 20));
            engine.reap(2, 4, Wait::For(5), &mut done).unwrap();
            assert_eq!((done.len(), clock.now_ns()), (2, 25));
            engine.reap(9, 4, Wait::Block, &mut done).unwrap();
            assert_eq!((done.len(), clock.now_ns()), (4, 40));
        });
    }

    #[test]
    fn operations_not_accepted_are_submitted_later() {
        let script: Script = Box::new(|_, op| Answer::whole(op, 1));
        scripted(script, |mut engine, _clock| {
            engine = engine.taking_at_most(3);
            queue_all(&mut engine);
            assert_eq!(engine.submit().unwrap(), 3);
            assert_eq!(engine.submit().unwrap(), 1);
            assert_eq!(engine.submit().unwrap(), 0);
        });
    }
}
