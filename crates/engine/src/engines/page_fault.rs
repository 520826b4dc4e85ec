//! page_fault: copies to and from anonymous memory, each page of which is mapped by a page fault when it is first touched.
//!
//! Invariant: a copy stays inside the mapping of its file. No file is touched.

use std::io;

use fiord_plan::{
    Action, EngineDescriptor, EngineName, EngineTests, Example, FileIndex, FileUse, Op, Queueing, Tested,
};
use fiord_sys::errno::{Errno, Explained};
use fiord_sys::map::{Mapping, Sharing};
use fiord_sys::width::to_usize;

use crate::boxed::BoxedSync;
use crate::contract::{Arena, ArenaAccess, Engine, NamedTarget, Outcome, Slot, SyncEngine};
use crate::definition::{EngineDefinition, Setup, Visitor};

/// The engine.
#[derive(Debug)]
pub struct PageFault;

const TESTS: &str = "crates/fiord/tests/engine_calls.rs";

const MEMORY: Tested = Tested::Never("a copy in memory neither fails nor waits");

const TESTED: EngineTests = EngineTests {
    data: Tested::By(TESTS, "new_memory_is_written_by_page_faults_and_verified"),
    counts: Tested::By(TESTS, "new_memory_is_written_by_page_faults_and_verified"),
    short: MEMORY,
    interrupted: MEMORY,
    error: MEMORY,
    gone: MEMORY,
    stuck: MEMORY,
    given_back: Tested::Together,
};

impl EngineDefinition for PageFault {
    type Settings = ();

    const DESCRIPTOR: &'static EngineDescriptor = &EngineDescriptor {
        files: FileUse::Named,
        explain: |_, errno| {
            (errno == libc::EINVAL).then_some("the engine page_fault has reads and writes only")
        },
        tests: Some(TESTED),
        example: Some(Example::plain(
            "New memory written to, a page at a time.",
            "fiord --name=example --ioengine=page_fault --rw=write --bs=4k --size=16m",
        )),
        ..EngineDescriptor::of(
            EngineName::PageFault,
            "copies to and from new memory, by page faults",
            Queueing::Synchronous,
        )
    };

    fn set_up<'a, V: Visitor<'a>>((): &(), setup: Setup<'_, 'a>, visitor: V) -> V::Output {
        let Setup { job, arena } = setup;
        let files = (0..job.files).map(|_| None).collect();
        visitor.synchronous(Ok(BoxedSync::new(Faults { files, arena })))
    }
}

/// The engine, set up.
#[derive(Debug)]
struct Faults<'arena> {
    files: Box<[Option<Mapping>]>,
    arena: Arena<'arena>,
}

impl Faults<'_> {
    /// Copies to the memory of a file (`writing`) or from it, up to its end.
    fn transfer(&self, op: &Op, index: u32, writing: bool) -> Outcome {
        let Some(Some(mapping)) = self.files.get(op.file as usize) else {
            return Outcome::Failed(Errno(libc::EBADF));
        };
        let length_bytes = op.length_bytes.min((mapping.len_bytes() as u64).saturating_sub(op.offset_bytes));
        if length_bytes == 0 {
            return Outcome::Done(0);
        }
        let buffer = self.arena.part(index, op);
        // SAFETY: the range is inside the mapping, which lives as long as `self`; `buffer` is valid for as many bytes of the
        // arena, which the mapping does not overlap, and the slot is borrowed mutably.
        unsafe {
            let memory = mapping.as_ptr().add(to_usize(op.offset_bytes));
            let (from, to) = if writing { (buffer, memory) } else { (memory, buffer) };
            std::ptr::copy_nonoverlapping(from, to, to_usize(length_bytes));
        }
        Outcome::Done(length_bytes)
    }
}

impl<'arena> Engine<'arena> for Faults<'arena> {
    fn open(&mut self, file: FileIndex, target: &NamedTarget<'_>) -> io::Result<()> {
        let length = usize::try_from(target.length_bytes).unwrap_or(usize::MAX);
        if self.files[file as usize].as_ref().is_some_and(|mapping| mapping.len_bytes() == length) {
            return Ok(());
        }
        let mapping = Mapping::anonymous(length, Sharing::Private, None).map_err(|error| {
            Explained::with(&error, "memory of the size of the job cannot be mapped; use a smaller size=")
        })?;
        self.files[file as usize] = Some(mapping);
        Ok(())
    }

    /// The memory stays: what was written to it may be verified after the file was opened again.
    fn detach(&mut self, _file: FileIndex) {}

    fn arena(&mut self) -> ArenaAccess<'_, 'arena> {
        ArenaAccess::of(&mut self.arena)
    }
}

impl<'arena> SyncEngine<'arena> for Faults<'arena> {
    fn execute(&mut self, op: Op, slot: &mut Slot<'arena>) -> Outcome {
        match op.action {
            Action::Read => self.transfer(&op, slot.number(), false),
            Action::Write => self.transfer(&op, slot.number(), true),
            Action::Trim | Action::ResetZone => Outcome::Failed(Errno(libc::EINVAL)),
            Action::Sync | Action::DataSync | Action::RangeSync(_) => Outcome::Done(0),
        }
    }
}
