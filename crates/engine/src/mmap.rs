//! mmap: copies to and from a file mapped into memory.
//!
//! Invariant: a copy stays inside the file as long as it was when attached, and inside its mapping. A page that is not
//! there any more (the file shrank, the disk failed) is an `EIO` of the operation, never the end of the process.

use std::io;
use std::os::fd::{BorrowedFd, RawFd};

use fiord_plan::{Action, Direction, FileIndex, Mmap as Settings, Op};
use fiord_sys::errno::Errno;
use fiord_sys::map::{MapAdvice, Mapping, Protection, Sharing, page_bytes};

use crate::contract::{Arena, Buffers, Engine, Info, Outcome, Slot, SyncEngine};
use crate::direct;
use crate::sigbus;

/// Files up to this are mapped whole, where the address space allows it: 64 of them would fill half of what x86-64
/// gives a process.
const WHOLE_BYTES_MAX: u64 = 1 << 40;
/// Of longer ones, and where mapping the whole fails for want of address space, so much is mapped at a time.
const WINDOW_BYTES: u64 = 1 << 30;

/// What the rest of the job means for the mappings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MapUse {
    /// By the order of the job's I/O; `Normal` makes no call.
    pub advice: MapAdvice,
    /// Write each written range out at once (`direct=1`, which a mapping cannot be).
    pub flush_writes: bool,
}

/// The engine.
#[derive(Debug)]
pub struct Mmap {
    files: Box<[Option<Target>]>,
    huge_pages: bool,
    usage: MapUse,
    page_bytes: u64,
    arena: Arena,
}

/// One open file.
#[derive(Debug)]
struct Target {
    fd: RawFd,
    length_bytes: u64,
    protection: Protection,
    /// Where the mapped part begins.
    start_bytes: u64,
    /// The mapped part; `None` after a fault, and for an empty file.
    mapping: Option<Mapping>,
}

impl Target {
    /// How many bytes of a transfer lie inside the file.
    #[inline]
    fn inside(&self, op: &Op) -> u64 {
        op.length_bytes.min(self.length_bytes.saturating_sub(op.offset_bytes))
    }

    /// Where a part of the file is in memory, if it is.
    #[inline]
    fn pointer(&self, offset_bytes: u64, length_bytes: u64) -> Option<*mut u8> {
        let mapping = self.mapping.as_ref()?;
        let start = offset_bytes.checked_sub(self.start_bytes)?;
        let fits = start.checked_add(length_bytes)? <= mapping.len_bytes() as u64;
        // SAFETY: the part lies inside the mapping.
        fits.then(|| unsafe { mapping.as_ptr().add(start as usize) })
    }

    /// Whether all of the file is mapped.
    fn is_whole(&self) -> bool {
        self.mapping.as_ref().is_some_and(|mapping| mapping.len_bytes() as u64 == self.length_bytes)
    }
}

impl Mmap {
    /// With these settings, over these buffers, for so many files. A file has to be open for reading, also where it is
    /// only written: the kernel maps no other.
    pub fn new(settings: &Settings, usage: MapUse, arena: Arena, files: usize) -> Mmap {
        Mmap {
            files: (0..files).map(|_| None).collect(),
            huge_pages: settings.transparent_huge_pages,
            usage,
            page_bytes: page_bytes() as u64,
            arena,
        }
    }

    #[inline]
    fn transfer(&mut self, op: &Op, index: u32, direction: Direction) -> Outcome {
        let buffer = self.arena.part(index, op);
        let Some(Some(target)) = self.files.get_mut(op.file as usize) else {
            return Outcome::Failed(Errno(libc::EBADF));
        };
        let writing = direction == Direction::Write;
        if writing && target.protection == Protection::Read {
            return Outcome::Failed(Errno(libc::EBADF));
        }
        let length_bytes = target.inside(op);
        if length_bytes == 0 {
            return beyond_the_end(op, writing);
        }
        let memory = match target.pointer(op.offset_bytes, length_bytes) {
            Some(memory) => memory,
            None => match self.map_around(op.file, op.offset_bytes, length_bytes) {
                Ok(memory) => memory,
                Err(error) => return Outcome::from(Err::<(), _>(error)),
            },
        };
        let length = length_bytes as usize;
        // SAFETY: `memory` is valid for `length` bytes of the mapping and `buffer` for as many of the arena, which do
        // not overlap; the slot is borrowed mutably, and what other processes do to the file's pages is theirs to
        // answer for, as with `read`.
        let all_there = sigbus::all_there(memory, length, || unsafe {
            if writing {
                std::ptr::copy_nonoverlapping(buffer, memory, length);
            } else {
                std::ptr::copy_nonoverlapping(memory, buffer, length);
            }
        });
        if !all_there {
            return self.lost(op.file);
        }
        if writing && self.usage.flush_writes {
            return self.flush(op, length_bytes);
        }
        Outcome::Done(length_bytes)
    }

    /// Maps the part of a file that begins here, and as much after it as one window holds; the rest is let go.
    #[cold]
    fn map_around(&mut self, file: FileIndex, offset_bytes: u64, length_bytes: u64) -> io::Result<*mut u8> {
        let page_bytes = self.page_bytes;
        let (huge_pages, advice) = (self.huge_pages, self.usage.advice);
        let closed = || io::Error::from_raw_os_error(libc::EBADF);
        let target = self.files.get_mut(file as usize).and_then(Option::as_mut).ok_or_else(closed)?;
        target.mapping = None;
        let mut window = (0, target.length_bytes);
        if target.length_bytes > WHOLE_BYTES_MAX {
            window = window_at(target.length_bytes, offset_bytes, length_bytes, page_bytes);
        }
        let mapping = match map(target, window) {
            Err(error) if error.raw_os_error() == Some(libc::ENOMEM) => {
                window = window_at(target.length_bytes, offset_bytes, length_bytes, page_bytes);
                map(target, window)
            }
            result => result,
        }?;
        if huge_pages {
            mapping.advise(MapAdvice::HugePage, 0, mapping.len_bytes())?;
        }
        if advice != MapAdvice::Normal {
            mapping.advise(advice, 0, mapping.len_bytes())?;
        }
        target.start_bytes = window.0;
        target.mapping = Some(mapping);
        target.pointer(offset_bytes, length_bytes).ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))
    }

    /// A page was not there; zeros are in its place. The next operation maps the file anew.
    #[cold]
    fn lost(&mut self, file: FileIndex) -> Outcome {
        if let Some(Some(target)) = self.files.get_mut(file as usize) {
            target.mapping = None;
        }
        Outcome::Failed(Errno(libc::EIO))
    }

    /// Writes the pages of a transfer out.
    fn flush(&mut self, op: &Op, length_bytes: u64) -> Outcome {
        let Some(Some(target)) = self.files.get(op.file as usize) else {
            return Outcome::Failed(Errno(libc::EBADF));
        };
        let Some(mapping) = &target.mapping else { return Outcome::Failed(Errno(libc::EIO)) };
        let start = op.offset_bytes - target.start_bytes;
        let page = start - start % self.page_bytes;
        let flushed = mapping.sync(page as usize, (start + length_bytes - page) as usize);
        Outcome::from(flushed.map(|()| length_bytes as usize))
    }

    /// Makes what was written to a file durable: by the mapping where it is all of the file, as fio does, else by the
    /// file, which also reaches what earlier windows wrote.
    fn synchronise(&mut self, op: &Op) -> Outcome {
        match self.files.get(op.file as usize) {
            Some(Some(target)) => match &target.mapping {
                Some(mapping) if target.is_whole() => Outcome::from(mapping.sync(0, mapping.len_bytes())),
                _ => direct::call(target.fd, &Op { action: Action::Sync, ..*op }),
            },
            _ => Outcome::Failed(Errno(libc::EBADF)),
        }
    }
}

/// A read there ends as one at the end of a file does; a write has nowhere to go, because a mapping cannot grow a file.
#[cold]
fn beyond_the_end(op: &Op, writing: bool) -> Outcome {
    if writing && op.length_bytes > 0 { Outcome::Failed(Errno(libc::EFBIG)) } else { Outcome::Done(0) }
}

/// Start and length of the window for a part of a file: from its page on, at least as long as the part.
fn window_at(file_bytes: u64, offset_bytes: u64, length_bytes: u64, page_bytes: u64) -> (u64, u64) {
    let start = offset_bytes - offset_bytes % page_bytes;
    let length = WINDOW_BYTES.max(offset_bytes - start + length_bytes);
    (start, length.min(file_bytes - start))
}

fn map(target: &Target, (start_bytes, length_bytes): (u64, u64)) -> io::Result<Mapping> {
    let length = usize::try_from(length_bytes).map_err(|_| io::Error::from_raw_os_error(libc::ENOMEM))?;
    // SAFETY: the file stays open while it is attached, and the descriptor is not -1 (`attach` saw to it).
    let file = unsafe { BorrowedFd::borrow_raw(target.fd) };
    Mapping::of_file(file, start_bytes, length, target.protection, Sharing::Shared)
}

impl Engine for Mmap {
    const INFO: Info =
        Info { name: "mmap", summary: "copies to and from a mapping of the file", queued: false };

    fn attach(&mut self, file: FileIndex, fd: RawFd, length_bytes: u64) -> io::Result<()> {
        let bad = || io::Error::from_raw_os_error(libc::EBADF);
        sigbus::install()?;
        let place = self.files.get_mut(file as usize).filter(|_| fd >= 0).ok_or_else(bad)?;
        let protection = Protection::ReadWrite;
        *place = Some(Target { fd, length_bytes, protection, start_bytes: 0, mapping: None });
        if length_bytes == 0 {
            return Ok(());
        }
        let first_bytes = length_bytes.min(self.page_bytes);
        let mapped = match self.map_around(file, 0, first_bytes) {
            Err(error) if error.raw_os_error() == Some(libc::EACCES) => {
                // Open for reading alone.
                if let Some(Some(target)) = self.files.get_mut(file as usize) {
                    target.protection = Protection::Read;
                }
                self.map_around(file, 0, first_bytes)
            }
            result => result,
        };
        if mapped.is_err() {
            self.detach(file);
        }
        mapped.map(drop)
    }

    fn detach(&mut self, file: FileIndex) {
        if let Some(place) = self.files.get_mut(file as usize) {
            *place = None;
        }
    }

    fn arena(&mut self) -> Buffers<'_> {
        Buffers::of(&mut self.arena)
    }
}

impl SyncEngine for Mmap {
    #[inline]
    fn execute(&mut self, op: Op, slot: &mut Slot) -> Outcome {
        match op.action {
            Action::Transfer(direction @ (Direction::Read | Direction::Write)) => {
                self.transfer(&op, slot.index() as u32, direction)
            }
            Action::Transfer(Direction::Trim) => {
                let fd =
                    self.files.get(op.file as usize).and_then(Option::as_ref).map_or(-1, |target| target.fd);
                direct::call(fd, &op)
            }
            Action::Sync | Action::DataSync | Action::RangeSync(_) => self.synchronise(&op),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::fd::AsRawFd;

    use fiord_sys::memory::{Region, Source};

    const USE: MapUse = MapUse { advice: MapAdvice::Normal, flush_writes: false };
    const BLOCK_BYTES: u64 = 16_384;

    /// A file in memory, open for reading and writing.
    fn file(length_bytes: u64) -> File {
        // SAFETY: the name is a C string; the new descriptor is owned right away.
        let file = unsafe {
            use std::os::fd::FromRawFd;
            File::from_raw_fd(libc::memfd_create(c"fiord-engine-mmap".as_ptr(), libc::MFD_CLOEXEC))
        };
        file.set_len(length_bytes).unwrap();
        file
    }

    fn engine(usage: MapUse) -> (Mmap, Slot) {
        let region = Region::allocate(&Source::Malloc, BLOCK_BYTES as usize, 4096).unwrap();
        let arena = Arena::new(region, 1, BLOCK_BYTES as usize, 4096);
        let mut engine = Mmap::new(&Settings::default(), usage, arena, 1);
        let slot = engine.arena().slots().remove(0);
        (engine, slot)
    }

    fn at(direction: Direction, offset_bytes: u64) -> Op {
        let (file, length_bytes, buffer_offset_bytes) = (0, BLOCK_BYTES, 0);
        Op { action: Action::Transfer(direction), file, offset_bytes, length_bytes, buffer_offset_bytes }
    }

    #[test]
    fn a_file_that_shrank_is_an_error_until_it_grows_again() {
        let (mut engine, mut slot) = engine(USE);
        let file = file(4 * BLOCK_BYTES);
        engine.attach(0, file.as_raw_fd(), 4 * BLOCK_BYTES).unwrap();
        let (first, last) = (at(Direction::Read, 0), at(Direction::Write, 3 * BLOCK_BYTES));
        assert_eq!(engine.execute(last, &mut slot), Outcome::Done(BLOCK_BYTES));
        file.set_len(BLOCK_BYTES).unwrap();
        for _ in 0..2 {
            assert_eq!(engine.execute(last, &mut slot), Outcome::Failed(Errno(libc::EIO)));
            assert_eq!(engine.execute(first, &mut slot), Outcome::Done(BLOCK_BYTES));
        }
        file.set_len(4 * BLOCK_BYTES).unwrap();
        engine.arena().bytes_mut(&mut slot).fill(0x3d);
        assert_eq!(engine.execute(last, &mut slot), Outcome::Done(BLOCK_BYTES));
        let mut found = [0];
        std::os::unix::fs::FileExt::read_exact_at(&file, &mut found, 4 * BLOCK_BYTES - 1).unwrap();
        assert_eq!(found, [0x3d], "what was written after the fault reached the file");
    }

    #[test]
    fn a_file_longer_than_the_limit_is_mapped_piece_by_piece() {
        const LENGTH_BYTES: u64 = WHOLE_BYTES_MAX + 3 * WINDOW_BYTES;
        let (mut engine, mut slot) = engine(USE);
        let file = file(LENGTH_BYTES);
        engine.attach(0, file.as_raw_fd(), LENGTH_BYTES).unwrap();
        // Within the first window, across its end, not page-aligned, at the end of the file, and back.
        let places = [0, WINDOW_BYTES - 4096, WINDOW_BYTES * 2 + 512, LENGTH_BYTES - BLOCK_BYTES, 65_536];
        for (byte, place) in (1..).zip(places) {
            engine.arena().bytes_mut(&mut slot).fill(byte);
            assert_eq!(engine.execute(at(Direction::Write, place), &mut slot), Outcome::Done(BLOCK_BYTES));
            let mapped_bytes = engine.files[0].as_ref().unwrap().mapping.as_ref().unwrap().len_bytes();
            assert!(mapped_bytes as u64 <= WINDOW_BYTES + BLOCK_BYTES);
        }
        for (byte, place) in (1..).zip(places) {
            assert_eq!(engine.execute(at(Direction::Read, place), &mut slot), Outcome::Done(BLOCK_BYTES));
            assert!(engine.arena().bytes_mut(&mut slot).iter().all(|&found| found == byte), "at {place}");
        }
        let sync = Op { action: Action::Sync, ..at(Direction::Read, 0) };
        assert_eq!(engine.execute(sync, &mut slot), Outcome::Done(0));
    }

    #[test]
    fn the_end_of_the_file_is_the_end() {
        let usage = MapUse { advice: MapAdvice::Random, flush_writes: true };
        let (mut engine, mut slot) = engine(usage);
        let length_bytes = BLOCK_BYTES + 100;
        let file = file(length_bytes);
        engine.attach(0, file.as_raw_fd(), length_bytes).unwrap();
        for direction in [Direction::Read, Direction::Write] {
            assert_eq!(engine.execute(at(direction, BLOCK_BYTES), &mut slot), Outcome::Done(100));
            assert_eq!(engine.execute(at(direction, 4096), &mut slot), Outcome::Done(length_bytes - 4096));
        }
        assert_eq!(engine.execute(at(Direction::Read, length_bytes), &mut slot), Outcome::Done(0));
        let beyond = Outcome::Failed(Errno(libc::EFBIG));
        assert_eq!(engine.execute(at(Direction::Write, length_bytes), &mut slot), beyond);
        assert_eq!(engine.execute(at(Direction::Write, u64::MAX), &mut slot), beyond);
    }

    #[test]
    fn a_file_open_for_reading_alone_can_be_read() {
        let (mut engine, mut slot) = engine(USE);
        let writable = file(BLOCK_BYTES);
        let file = File::open(format!("/proc/self/fd/{}", writable.as_raw_fd())).unwrap();
        engine.attach(0, file.as_raw_fd(), BLOCK_BYTES).unwrap();
        assert_eq!(engine.execute(at(Direction::Read, 0), &mut slot), Outcome::Done(BLOCK_BYTES));
        assert_eq!(engine.execute(at(Direction::Write, 0), &mut slot), Outcome::Failed(Errno(libc::EBADF)));
    }

    #[test]
    fn an_empty_file_is_attached_and_holds_nothing() {
        let (mut engine, mut slot) = engine(USE);
        let file = file(0);
        engine.attach(0, file.as_raw_fd(), 0).unwrap();
        assert_eq!(engine.execute(at(Direction::Read, 0), &mut slot), Outcome::Done(0));
    }
}
