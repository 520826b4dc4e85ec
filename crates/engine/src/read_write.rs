//! The common part of the engines of the `read`/`write` family: everything except the two calls.
//!
//! Invariant: an operation makes the calls that its engine defines, once each; nothing is retried, continued or
//! gathered.

use std::fmt;
use std::io;
use std::os::fd::{BorrowedFd, RawFd};

use fiord_plan::{Action, EngineDescriptor, FileIndex, Op};
use fiord_sys::width::to_usize;

use crate::attached_files::AttachedFiles;
use crate::contract::{Arena, ArenaAccess, Engine, Outcome, Slot, SyncEngine};
use crate::definition::{EngineDefinition, Setup, Visitor};
use crate::setup_error::SetupError;
use crate::sync_and_trim;

/// The part of memory and of a file that one call transfers.
#[derive(Debug, Clone, Copy)]
pub struct Part {
    /// Number of the file.
    pub(crate) file: FileIndex,
    /// Its descriptor, or -1 when it is not open.
    pub(crate) fd: RawFd,
    /// Valid for reads and writes of `length_bytes`, and used by nothing else during the call.
    pub(crate) pointer: *mut u8,
    /// Its length in bytes.
    pub(crate) length_bytes: usize,
    /// Its offset in the file, in bytes.
    pub(crate) offset_bytes: u64,
}

impl Part {
    /// The memory as the only vector of a vectored call.
    #[inline]
    pub(crate) fn vector(&self) -> [libc::iovec; 1] {
        [libc::iovec { iov_base: self.pointer.cast(), iov_len: self.length_bytes }]
    }
}

/// The two calls in which such an engine differs from the others, and their state.
pub trait Calls: fmt::Debug + Sized + 'static {
    /// The engine's own settings.
    type Settings: Default + fmt::Debug + PartialEq + Send + Sync + 'static;

    /// Whether the calls use the position of the file.
    const MOVES_FILE_POSITION: bool = false;

    /// The engine's description.
    const DESCRIPTOR: &'static EngineDescriptor;

    /// The state for these settings and this many files.
    ///
    /// # Errors
    /// What the kernel refused.
    fn new(settings: &Self::Settings, files: usize) -> Result<Self, SetupError>;

    /// A file was opened.
    fn opened(&mut self, _file: FileIndex, _fd: BorrowedFd<'_>) {}

    /// Reads.
    ///
    /// # Errors
    /// The kernel's.
    ///
    /// # Safety
    /// What `Part` says of its memory holds.
    unsafe fn read(&mut self, part: Part) -> io::Result<usize>;

    /// Writes.
    ///
    /// # Errors
    /// The kernel's.
    ///
    /// # Safety
    /// What `Part` says of its memory holds.
    unsafe fn write(&mut self, part: Part) -> io::Result<usize>;

    /// Trims.
    fn trim(&mut self, fd: RawFd, op: &Op) -> Outcome {
        sync_and_trim::execute(fd, op)
    }
}

/// An engine of the `read`/`write` family.
#[derive(Debug)]
pub struct ReadWriteEngine<'arena, C> {
    calls: C,
    files: AttachedFiles,
    arena: Arena<'arena>,
}

impl<'arena, C: Calls> ReadWriteEngine<'arena, C> {
    /// An engine with these settings over these buffers for this many files.
    ///
    /// # Errors
    /// What the kernel refused.
    pub fn new(
        settings: &C::Settings,
        arena: Arena<'arena>,
        files: usize,
    ) -> Result<ReadWriteEngine<'arena, C>, SetupError> {
        let calls = C::new(settings, files)?;
        Ok(ReadWriteEngine { calls, files: AttachedFiles::new(files), arena })
    }
}

impl<C: Calls> EngineDefinition for C {
    type Settings = C::Settings;

    const DESCRIPTOR: &'static EngineDescriptor = C::DESCRIPTOR;

    const MOVES_FILE_POSITION: bool = C::MOVES_FILE_POSITION;

    fn set_up<'a, V: Visitor<'a>>(settings: &C::Settings, setup: Setup<'_, 'a>, visitor: V) -> V::Output {
        let Setup { job, arena } = setup;
        visitor.synchronous(ReadWriteEngine::<C>::new(settings, arena, job.files))
    }
}

impl<'arena, C: Calls> Engine<'arena> for ReadWriteEngine<'arena, C> {
    fn attach(&mut self, file: FileIndex, fd: BorrowedFd<'_>, _length_bytes: u64) -> io::Result<()> {
        self.files.attach(file, fd)?;
        self.calls.opened(file, fd);
        Ok(())
    }

    fn detach(&mut self, file: FileIndex) {
        self.files.detach(file);
    }

    fn arena(&mut self) -> ArenaAccess<'_, 'arena> {
        ArenaAccess::of(&mut self.arena)
    }
}

impl<'arena, C: Calls> SyncEngine<'arena> for ReadWriteEngine<'arena, C> {
    #[inline]
    fn execute(&mut self, op: Op, slot: &mut Slot<'arena>) -> Outcome {
        let fd = self.files.get(op.file);
        let part = |arena: &Arena<'_>| Part {
            file: op.file,
            fd,
            pointer: arena.part(slot.number(), &op),
            length_bytes: to_usize(op.length_bytes),
            offset_bytes: op.offset_bytes,
        };
        match op.action {
            // SAFETY: the part is inside the slot's buffer, and the slot is borrowed mutably until the call is over.
            Action::Read => unsafe { self.calls.read(part(&self.arena)) }.into(),
            // SAFETY: as above.
            Action::Write => unsafe { self.calls.write(part(&self.arena)) }.into(),
            Action::Trim => self.calls.trim(fd, &op),
            Action::ResetZone | Action::Sync | Action::DataSync | Action::RangeSync(_) => {
                sync_and_trim::execute(fd, &op)
            }
        }
    }
}
