//! An engine that injects short transfers and errors.
//!
//! Invariant: a short transfer really moves the bytes it reports; a failed operation reports none.

use std::io;
use std::os::fd::BorrowedFd;

use fiord_engine::contract::{
    ArenaAccess, Completion, Engine, Outcome, QueuedEngine, Slot, SyncEngine, Wait,
};
use fiord_plan::{FileIndex, Op};
use fiord_sys::errno::Errno;

pub const EIO: Errno = Errno::EIO;

/// Cuts every third operation of more than a sector short, and fails every seventh.
pub struct Faulty<E> {
    engine: E,
    count: u64,
    /// By slot: whether the operation in flight there is to fail.
    fails: Vec<bool>,
}

impl<E> Faulty<E> {
    pub fn new(engine: E, depth: u32) -> Faulty<E> {
        Faulty { engine, count: 0, fails: vec![false; depth as usize] }
    }

    /// The part of `op` that is really done, and whether it fails.
    fn next(&mut self, op: Op) -> (Op, bool) {
        self.count += 1;
        let is_short = self.count.is_multiple_of(3) && op.length_bytes > 512;
        let length_bytes = if is_short { op.length_bytes / 2 } else { op.length_bytes };
        (Op { length_bytes, ..op }, self.count.is_multiple_of(7))
    }
}

impl<'arena, E: Engine<'arena>> Engine<'arena> for Faulty<E> {
    fn attach(&mut self, file: FileIndex, fd: BorrowedFd<'_>, length_bytes: u64) -> io::Result<()> {
        self.engine.attach(file, fd, length_bytes)
    }

    fn detach(&mut self, file: FileIndex) {
        self.engine.detach(file);
    }

    fn arena(&mut self) -> ArenaAccess<'_, 'arena> {
        self.engine.arena()
    }
}

impl<'arena, E: SyncEngine<'arena>> SyncEngine<'arena> for Faulty<E> {
    fn execute(&mut self, op: Op, slot: &mut Slot<'arena>) -> Outcome {
        let (op, fails) = self.next(op);
        let outcome = self.engine.execute(op, slot);
        if fails { Outcome::Failed(EIO) } else { outcome }
    }
}

impl<'arena, E: QueuedEngine<'arena>> QueuedEngine<'arena> for Faulty<E> {
    fn execute_unqueued(&mut self, op: &Op) -> Option<Outcome> {
        let outcome = self.engine.execute_unqueued(op)?;
        let (_, fails) = self.next(*op);
        Some(if fails { Outcome::Failed(EIO) } else { outcome })
    }

    fn queue(&mut self, op: Op, slot: Slot<'arena>) -> Result<(), Slot<'arena>> {
        let index = slot.index();
        let (op, fails) = self.next(op);
        self.fails[index] = fails;
        self.engine.queue(op, slot)
    }

    fn submit(&mut self) -> io::Result<u32> {
        self.engine.submit()
    }

    fn reap(&mut self, min: u32, max: u32, wait: Wait, done: &mut Vec<Completion<'arena>>) -> io::Result<()> {
        let before = done.len();
        self.engine.reap(min, max, wait, done)?;
        for completion in &mut done[before..] {
            if self.fails[completion.slot.index()] {
                completion.outcome = Outcome::Failed(EIO);
            }
        }
        Ok(())
    }
}
