//! null: does nothing. The cost of a job on it is fiord's own.
//!
//! Invariant: no system call, no buffer touched; every operation succeeds in full.
//!
//! At depth 1 it is a synchronous engine, at greater depths a queued one, as in fio.

use std::io;
use std::os::fd::BorrowedFd;

use fiord_plan::{
    EngineDescriptor, EngineName, EngineTests, Example, FileIndex, FileUse, Op, Queueing, Tested,
};

use crate::contract::{
    Arena, ArenaAccess, Completion, Engine, Outcome, QueuedEngine, Slot, SyncEngine, Wait,
};
use crate::definition::{EngineDefinition, Setup, Visitor};
use crate::local_completions::LocalCompletions;

/// The engine.
#[derive(Debug)]
pub struct Null;

const COUNTED: Tested = Tested::By("crates/fiord/tests/engines.rs", "body");

impl EngineDefinition for Null {
    type Settings = ();

    const DESCRIPTOR: &'static EngineDescriptor = &EngineDescriptor {
        files: FileUse::Untouched,
        tests: Some(EngineTests::without_io(COUNTED)),
        example: Some(Example::plain(
            "What fiord itself costs for each I/O.",
            "fiord --name=example --ioengine=null --rw=randread --bs=4k --size=1g",
        )),
        ..EngineDescriptor::of(
            EngineName::Null,
            "nothing at all: measures the program itself",
            Queueing::ByDepth,
        )
    };

    fn set_up<'a, V: Visitor<'a>>((): &(), setup: Setup<'_, 'a>, visitor: V) -> V::Output {
        let arena = setup.arena;
        let engine = NullEngine::new(arena);
        match engine.arena.count() {
            1 => visitor.synchronous(Ok(engine)),
            _ => visitor.queued(Ok(engine)),
        }
    }
}

/// The engine, set up.
#[derive(Debug)]
pub struct NullEngine<'arena> {
    local: LocalCompletions<'arena>,
    unsubmitted: u32,
    arena: Arena<'arena>,
}

impl<'arena> NullEngine<'arena> {
    /// An engine over these buffers, whose number is the depth.
    pub fn new(arena: Arena<'arena>) -> NullEngine<'arena> {
        NullEngine { local: LocalCompletions::new(arena.count()), unsubmitted: 0, arena }
    }
}

impl<'arena> Engine<'arena> for NullEngine<'arena> {
    fn attach(&mut self, _file: FileIndex, _fd: BorrowedFd<'_>, _length_bytes: u64) -> io::Result<()> {
        Ok(())
    }

    fn arena(&mut self) -> ArenaAccess<'_, 'arena> {
        ArenaAccess::of(&mut self.arena)
    }
}

impl<'arena> SyncEngine<'arena> for NullEngine<'arena> {
    #[inline]
    fn execute(&mut self, op: Op, _slot: &mut Slot<'arena>) -> Outcome {
        Outcome::whole(&op)
    }
}

impl<'arena> QueuedEngine<'arena> for NullEngine<'arena> {
    const ENDS_AT_ONCE: bool = true;

    #[inline]
    fn queue(&mut self, op: Op, slot: Slot<'arena>) -> Result<(), Slot<'arena>> {
        self.local.push(slot, Outcome::whole(&op));
        self.unsubmitted += 1;
        Ok(())
    }

    #[inline]
    fn submit(&mut self) -> io::Result<u32> {
        Ok(std::mem::take(&mut self.unsubmitted))
    }

    #[inline]
    fn reap(
        &mut self,
        _min: u32,
        max: u32,
        _wait: Wait,
        done: &mut Vec<Completion<'arena>>,
    ) -> io::Result<()> {
        self.unsubmitted = 0;
        self.local.drain(max, done);
        Ok(())
    }
}
