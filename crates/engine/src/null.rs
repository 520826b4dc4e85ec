//! null: does nothing, and does it at once. What is left of a job on it is fiord's own cost.
//!
//! Invariant: no system call, no buffer touched; every operation succeeds in full.
//!
//! At a depth of 1 a job takes it as a synchronous engine, deeper as a queued one, as fio does.

use std::io;
use std::os::fd::RawFd;

use fiord_plan::{FileIndex, Op};

use crate::contract::{
    Arena, Buffers, Completion, Engine, Info, Outcome, QueuedEngine, Slot, SyncEngine, Wait,
};
use crate::ended::Ended;

/// The engine.
#[derive(Debug)]
pub struct Null {
    ended: Ended,
    unsubmitted: u32,
    arena: Arena,
}

impl Null {
    /// Over these buffers, as deep as there are any.
    pub fn new(arena: Arena) -> Null {
        Null { ended: Ended::new(arena.count()), unsubmitted: 0, arena }
    }
}

impl Engine for Null {
    const INFO: Info =
        Info { name: "null", summary: "nothing at all: measures the program itself", queued: true };

    fn attach(&mut self, _file: FileIndex, _fd: RawFd, _length_bytes: u64) -> io::Result<()> {
        Ok(())
    }

    fn detach(&mut self, _file: FileIndex) {}

    fn arena(&mut self) -> Buffers<'_> {
        Buffers::of(&mut self.arena)
    }
}

impl SyncEngine for Null {
    #[inline]
    fn execute(&mut self, op: Op, _slot: &mut Slot) -> Outcome {
        Outcome::whole(&op)
    }
}

impl QueuedEngine for Null {
    const ENDS_AT_ONCE: bool = true;

    #[inline]
    fn queue(&mut self, op: Op, slot: Slot) -> Result<(), Slot> {
        self.ended.push(slot, Outcome::whole(&op));
        self.unsubmitted += 1;
        Ok(())
    }

    #[inline]
    fn submit(&mut self) -> io::Result<u32> {
        Ok(std::mem::take(&mut self.unsubmitted))
    }

    #[inline]
    fn reap(&mut self, _min: u32, max: u32, _wait: Wait, done: &mut Vec<Completion>) -> io::Result<()> {
        self.unsubmitted = 0;
        self.ended.drain(max, done);
        Ok(())
    }
}
