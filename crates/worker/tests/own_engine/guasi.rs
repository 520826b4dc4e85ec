//! A test engine named guasi, which fio has and fiord will not have: its library is gone.
//!
//! Invariant: no file is touched; every operation succeeds in full.

use std::io;
use std::os::fd::BorrowedFd;

use fiord_engine::{Arena, ArenaAccess, Engine, EngineDefinition, Outcome, Setup, Slot, SyncEngine, Visitor};
use fiord_plan::{Action, EngineDescriptor, EngineName, FileIndex, FileUse, Op};

/// The errno that it explains.
pub const EXPLAINED: i32 = 5;

/// The engine.
#[derive(Debug)]
pub struct Guasi;

impl EngineDefinition for Guasi {
    type Settings = ();

    const DESCRIPTOR: &'static EngineDescriptor = &EngineDescriptor {
        files: FileUse::Untouched,
        explain: |_, errno| (errno == EXPLAINED).then_some("as the test has it"),
        ..EngineDescriptor::synchronous(EngineName::Guasi, "an engine of a test")
    };

    fn set_up<'a, V: Visitor<'a>>((): &(), setup: Setup<'_, 'a>, visitor: V) -> V::Output {
        let arena = setup.arena;
        visitor.synchronous(Ok(GuasiEngine { arena }))
    }
}

/// The engine, set up.
struct GuasiEngine<'arena> {
    arena: Arena<'arena>,
}

impl<'arena> Engine<'arena> for GuasiEngine<'arena> {
    fn attach(&mut self, _file: FileIndex, _fd: BorrowedFd<'_>, _length_bytes: u64) -> io::Result<()> {
        Ok(())
    }

    fn detach(&mut self, _file: FileIndex) {}

    fn arena(&mut self) -> ArenaAccess<'_, 'arena> {
        ArenaAccess::of(&mut self.arena)
    }
}

impl<'arena> SyncEngine<'arena> for GuasiEngine<'arena> {
    fn execute(&mut self, op: Op, _slot: &mut Slot<'arena>) -> Outcome {
        match op.action {
            Action::Read | Action::Write | Action::Trim | Action::ResetZone => Outcome::Done(op.length_bytes),
            Action::Sync | Action::DataSync | Action::RangeSync(_) => Outcome::Done(0),
        }
    }
}
