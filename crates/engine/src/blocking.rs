//! What the engines of the `read`/`write` family share: files, buffers, and everything but the two calls.
//!
//! Invariant: one operation is the calls its engine names, once each; nothing is retried, continued or gathered.

use std::fmt;
use std::io;
use std::os::fd::RawFd;

use fiord_plan::{Action, Direction, FileIndex, Op};

use crate::contract::{Arena, Buffers, Engine, Info, Outcome, Slot, SyncEngine};
use crate::direct;
use crate::files::Descriptors;

/// The piece of memory and of a file that one call transfers.
#[derive(Debug, Clone, Copy)]
pub struct Part {
    /// Number of the file.
    pub(crate) file: FileIndex,
    /// Its descriptor, or -1 when it is not open.
    pub(crate) fd: RawFd,
    /// Valid for reads and writes of `length_bytes`, and nobody else's while the call runs.
    pub(crate) pointer: *mut u8,
    /// How much.
    pub(crate) length_bytes: usize,
    /// Where in the file.
    pub(crate) offset_bytes: u64,
}

impl Part {
    /// The memory as the only vector of a vectored call.
    #[inline]
    pub(crate) fn vector(&self) -> [libc::iovec; 1] {
        [libc::iovec { iov_base: self.pointer.cast(), iov_len: self.length_bytes }]
    }
}

/// The two calls by which such an engine differs from the others.
pub trait Calls: fmt::Debug {
    /// Who it is.
    const INFO: Info;

    /// A file was opened.
    fn opened(&mut self, _file: FileIndex, _fd: RawFd) {}

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
}

/// An engine of the `read`/`write` family.
#[derive(Debug)]
pub struct Blocking<C> {
    calls: C,
    files: Descriptors,
    arena: Arena,
}

impl<C: Calls> Blocking<C> {
    /// With these calls, over these buffers, for so many files.
    pub(crate) fn with_calls(calls: C, arena: Arena, files: usize) -> Blocking<C> {
        Blocking { calls, files: Descriptors::new(files), arena }
    }
}

impl<C: Calls> Engine for Blocking<C> {
    const INFO: Info = C::INFO;

    fn attach(&mut self, file: FileIndex, fd: RawFd, _length_bytes: u64) -> io::Result<()> {
        self.files.attach(file, fd)?;
        self.calls.opened(file, fd);
        Ok(())
    }

    fn detach(&mut self, file: FileIndex) {
        self.files.detach(file);
    }

    fn arena(&mut self) -> Buffers<'_> {
        Buffers::of(&mut self.arena)
    }
}

impl<C: Calls> SyncEngine for Blocking<C> {
    #[inline]
    fn execute(&mut self, op: Op, slot: &mut Slot) -> Outcome {
        let fd = self.files.get(op.file);
        let Action::Transfer(direction @ (Direction::Read | Direction::Write)) = op.action else {
            return direct::call(fd, &op);
        };
        let part = Part {
            file: op.file,
            fd,
            pointer: self.arena.part(slot.index() as u32, &op),
            length_bytes: op.length_bytes as usize,
            offset_bytes: op.offset_bytes,
        };
        // SAFETY: `part` lies inside the slot's buffer, and the slot is borrowed mutably until the call is over.
        unsafe {
            match direction {
                Direction::Read => self.calls.read(part).into(),
                _ => self.calls.write(part).into(),
            }
        }
    }
}
