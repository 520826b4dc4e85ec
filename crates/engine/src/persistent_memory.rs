//! Engines on persistent memory: copies to and from a mapping, which reach the medium without the kernel.
//!
//! Invariant: what was written before a synchronisation is durable after it. A copy stays inside its mapping; memory that
//! cannot be accessed is an `EIO` of the operation.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};

use fiord_plan::{Action, FileIndex, Op};
use fiord_sys::errno::{Errno, Explained};
use fiord_sys::map::{Mapping, Protection};
use fiord_sys::persistent::{self, StorePath, WriteBack};
use fiord_sys::width::to_usize;

use crate::contract::{Arena, ArenaAccess, Engine, Outcome, Slot, SyncEngine};
use crate::setup_error::{SetupError, SetupStep};
use crate::sigbus;

/// A kind of targets, and what is done with them.
#[derive(Debug)]
pub(crate) struct Medium {
    /// What to map of an open target of this planned length.
    pub(crate) extent: fn(BorrowedFd<'_>, u64) -> io::Result<Extent>,
    /// Maps so many bytes from the start of a target.
    pub(crate) map: fn(BorrowedFd<'_>, usize, Protection) -> io::Result<Mapping>,
    /// Why a target could not be mapped, and what to do.
    pub(crate) refusal: fn(errno: i32) -> &'static str,
    /// Ends a trim.
    pub(crate) trim: fn(RawFd, &Op) -> Outcome,
}

/// What is mapped of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Extent {
    /// Its length, from the start.
    pub(crate) length_bytes: u64,
    /// The smallest part that can be mapped in the place of another.
    pub(crate) unit_bytes: usize,
}

/// How writes are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stores {
    /// Writes of so many bytes and longer ones go past the caches.
    pub(crate) past_caches_from_bytes: u64,
    /// Whether each write waits until it is durable.
    pub(crate) drains: bool,
}

/// The engine, set up.
#[derive(Debug)]
pub(crate) struct PersistentEngine<'arena> {
    medium: &'static Medium,
    stores: Stores,
    write_back: WriteBack,
    targets: Box<[Option<Target>]>,
    arena: Arena<'arena>,
}

/// An open file or device.
#[derive(Debug)]
struct Target {
    fd: RawFd,
    extent: Extent,
    protection: Protection,
    /// `None` after memory could not be accessed, and for an empty file.
    mapping: Option<Mapping>,
}

impl Target {
    /// The address of a part inside its extent; it is mapped if it is not.
    fn pointer(&mut self, medium: &Medium, offset_bytes: u64) -> io::Result<*mut u8> {
        if self.mapping.is_none() {
            self.mapping = Some(self.map(medium)?);
        }
        let start = self.mapping.as_ref().map_or(std::ptr::null_mut(), Mapping::as_ptr);
        // SAFETY: the extent is mapped, and the offset inside it.
        Ok(unsafe { start.add(to_usize(offset_bytes)) })
    }

    fn map(&self, medium: &Medium) -> io::Result<Mapping> {
        let length_bytes = usize::try_from(self.extent.length_bytes);
        let length_bytes = length_bytes.map_err(|_| io::Error::from_raw_os_error(libc::ENOMEM))?;
        // SAFETY: `attach` was given an open file, which stays open until `detach`.
        let open = unsafe { BorrowedFd::borrow_raw(self.fd) };
        (medium.map)(open, length_bytes, self.protection)
    }
}

impl<'arena> PersistentEngine<'arena> {
    /// An engine over these buffers for this many files.
    ///
    /// # Errors
    /// Where no instructions are known for this processor.
    pub(crate) fn new(
        medium: &'static Medium,
        stores: Stores,
        arena: Arena<'arena>,
        files: usize,
    ) -> Result<PersistentEngine<'arena>, SetupError> {
        let unknown = || SetupError::new(SetupStep::WriteBack, &io::Error::from_raw_os_error(libc::ENOSYS));
        let write_back = WriteBack::of_this_processor().ok_or_else(unknown)?;
        let targets = (0..files).map(|_| None).collect();
        Ok(PersistentEngine { medium, stores, write_back, targets, arena })
    }

    /// Copies to the memory (`writing`) or from it.
    fn transfer(&mut self, op: &Op, index: u32, writing: bool) -> Outcome {
        let buffer = self.arena.part(index, op);
        let Some(Some(target)) = self.targets.get_mut(op.file as usize) else {
            return Outcome::Failed(Errno(libc::EBADF));
        };
        let inside = target.extent.length_bytes.saturating_sub(op.offset_bytes).min(op.length_bytes);
        match (writing, inside) {
            (true, _) if target.protection == Protection::Read => return Outcome::Failed(Errno(libc::EBADF)),
            (true, 0) if op.length_bytes > 0 => return Outcome::Failed(Errno(libc::EFBIG)),
            (_, 0) => return Outcome::Done(0),
            _ => {}
        }
        let memory = match target.pointer(self.medium, op.offset_bytes) {
            Ok(memory) => memory,
            Err(error) => return Outcome::from(Err::<(), _>(error)),
        };
        let (length, unit_bytes) = (to_usize(inside), target.extent.unit_bytes);
        let Stores { past_caches_from_bytes, drains } = self.stores;
        let path =
            if inside < past_caches_from_bytes { StorePath::ThroughCaches } else { StorePath::PastCaches };
        let write_back = self.write_back;
        // SAFETY: `memory` is valid for `length` bytes of the mapping and `buffer` for as many of the arena, which do not
        // overlap; the slot is borrowed mutably. The instruction is this processor's.
        let all_there = sigbus::all_there_in(unit_bytes, memory, length, || unsafe {
            if writing {
                persistent::store(memory, buffer, length, path, write_back);
                if drains {
                    persistent::drain();
                }
            } else {
                std::ptr::copy_nonoverlapping(memory, buffer, length);
            }
        });
        if !all_there {
            // Part of the mapping is zeros now. The next operation maps the target again.
            target.mapping = None;
            return Outcome::Failed(Errno(libc::EIO));
        }
        Outcome::Done(inside)
    }

    /// Ends an operation that transfers nothing, on a target that is open.
    fn on_open(&self, op: &Op, end: impl FnOnce(&Target) -> Outcome) -> Outcome {
        let target = self.targets.get(op.file as usize).and_then(Option::as_ref);
        target.map_or(Outcome::Failed(Errno(libc::EBADF)), end)
    }
}

impl<'arena> Engine<'arena> for PersistentEngine<'arena> {
    fn attach(&mut self, file: FileIndex, fd: BorrowedFd<'_>, length_bytes: u64) -> io::Result<()> {
        let place = self.targets.get_mut(file as usize);
        let place = place.ok_or_else(|| io::Error::from_raw_os_error(libc::EBADF))?;
        sigbus::install()?;
        let extent = (self.medium.extent)(fd, length_bytes)?;
        let protection = match fiord_sys::stat::is_writable(fd)? {
            true => Protection::ReadWrite,
            false => Protection::Read,
        };
        let mut target = Target { fd: fd.as_raw_fd(), extent, protection, mapping: None };
        if extent.length_bytes > 0 {
            let mapped = target.map(self.medium);
            target.mapping = Some(mapped.map_err(|error| {
                Explained::with(&error, (self.medium.refusal)(error.raw_os_error().unwrap_or(libc::EIO)))
            })?);
        }
        *place = Some(target);
        Ok(())
    }

    fn detach(&mut self, file: FileIndex) {
        self.targets.get_mut(file as usize).map(Option::take);
    }

    fn arena(&mut self) -> ArenaAccess<'_, 'arena> {
        ArenaAccess::of(&mut self.arena)
    }
}

impl<'arena> SyncEngine<'arena> for PersistentEngine<'arena> {
    fn execute(&mut self, op: Op, slot: &mut Slot<'arena>) -> Outcome {
        match op.action {
            Action::Read => self.transfer(&op, slot.number(), false),
            Action::Write => self.transfer(&op, slot.number(), true),
            Action::Trim | Action::ResetZone => {
                self.on_open(&op, |target| (self.medium.trim)(target.fd, &op))
            }
            Action::Sync | Action::DataSync | Action::RangeSync(_) => self.on_open(&op, |_| {
                persistent::drain();
                Outcome::Done(0)
            }),
        }
    }
}
