//! mmap: copies to and from a file mapped into memory.
//!
//! Invariant: a copy stays inside the length the file had when attached, and inside its mapping. A page that has become
//! inaccessible (the file shrank, the disk failed) is an `EIO` of the operation, never the end of the process.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};

use fiord_options::job::JobOptions;
use fiord_plan::files::Advice;
use fiord_plan::{
    Action, EngineDescriptor, EngineName, EngineSettings, EngineTests, Example, FileIndex, FileUse, Op,
    Queueing, Tested,
};
use fiord_sys::errno::Errno;
use fiord_sys::map::{MapAdvice, Mapping, Protection, Sharing, page_bytes};
use fiord_sys::width::to_usize;

use crate::contract::{Arena, ArenaAccess, Engine, Outcome, Slot, SyncEngine};
use crate::definition::{EngineDefinition, JobOutline, Setup, Visitor};
use crate::sigbus;
use crate::sync_and_trim;

/// Files up to this size are mapped whole, if the address space allows it: 64 of them would fill half of a process's
/// address space on x86-64.
const WHOLE_BYTES_MAX: u64 = 1 << 40;
/// The size of the window mapped of longer files, and of others if the address space is exhausted.
const WINDOW_BYTES: u64 = 1 << 30;

/// Effects of other job options on the mappings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MapUse {
    /// For the access pattern of the job; `Normal` makes no call.
    pub advice: MapAdvice,
    /// Write each written range out at once (`direct=1`, which a mapping cannot be).
    pub flush_writes: bool,
}

impl MapUse {
    /// How a job uses its mappings.
    fn of(job: &JobOutline) -> MapUse {
        let advice = match (job.advice, job.random) {
            (Advice::None, _) => MapAdvice::Normal,
            (Advice::ByPattern, true) | (Advice::Random, _) => MapAdvice::Random,
            (Advice::ByPattern, false) | (Advice::Sequential | Advice::NoReuse, _) => MapAdvice::Sequential,
        };
        MapUse { advice, flush_writes: job.direct }
    }
}

/// The engine.
#[derive(Debug)]
pub struct Mmap;

/// Its settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Settings {
    /// `MADV_HUGEPAGE`.
    pub transparent_huge_pages: bool,
}

impl Settings {
    /// Those of a job's options.
    fn of(options: &JobOptions) -> Settings {
        Settings { transparent_huge_pages: options.mmap.thp.is_some_and(|value| value != 0) }
    }
}

/// The explanation of an errno of a transfer.
fn explain(errno: i32) -> Option<&'static str> {
    match errno {
        libc::EIO => Some("a mapped page was inaccessible: the file was truncated, or its disk failed"),
        _ => None,
    }
}

const TESTED: EngineTests =
    EngineTests { short: Tested::Never("a page is there or not"), ..EngineTests::ON_FILES };

impl EngineDefinition for Mmap {
    type Settings = Settings;

    const DESCRIPTOR: &'static EngineDescriptor = &EngineDescriptor {
        files: FileUse::Mapped,
        settings: |options| EngineSettings::new(Settings::of(options)),
        explain: |_, errno| explain(errno),
        tests: Some(TESTED),
        example: Some(Example::plain(
            "Random writes to a mapped file, which is synced at the end.",
            "fiord --name=example --ioengine=mmap --rw=randwrite --bs=4k --size=16m --end_fsync=1",
        )),
        ..EngineDescriptor::of(
            EngineName::Mmap,
            "copies to and from a mapping of the file",
            Queueing::Synchronous,
        )
    };

    fn set_up<'a, V: Visitor<'a>>(settings: &Settings, setup: Setup<'_, 'a>, visitor: V) -> V::Output {
        let Setup { job, arena } = setup;
        visitor.synchronous(Ok(MmapEngine::new(settings, MapUse::of(job), arena, job.files)))
    }
}

/// The engine, set up.
#[derive(Debug)]
pub struct MmapEngine<'arena> {
    files: Box<[Option<Target>]>,
    huge_pages: bool,
    usage: MapUse,
    page_bytes: u64,
    arena: Arena<'arena>,
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
    /// The bytes of a transfer that are inside the file.
    #[inline]
    fn inside(&self, op: &Op) -> u64 {
        op.length_bytes.min(self.length_bytes.saturating_sub(op.offset_bytes))
    }

    /// The address of a part of the file, if it is mapped.
    #[inline]
    fn pointer(&self, offset_bytes: u64, length_bytes: u64) -> Option<*mut u8> {
        let mapping = self.mapping.as_ref()?;
        let start = offset_bytes.checked_sub(self.start_bytes)?;
        let fits = start.checked_add(length_bytes)? <= mapping.len_bytes() as u64;
        // SAFETY: the part is inside the mapping.
        fits.then(|| unsafe { mapping.as_ptr().add(to_usize(start)) })
    }

    /// Whether all of the file is mapped.
    fn is_whole(&self) -> bool {
        self.mapping.as_ref().is_some_and(|mapping| mapping.len_bytes() as u64 == self.length_bytes)
    }
}

impl<'arena> MmapEngine<'arena> {
    /// An engine with these settings over these buffers for this many files. Files must be open for reading, even if
    /// they are only written: the kernel does not map others.
    pub fn new(settings: &Settings, usage: MapUse, arena: Arena<'arena>, files: usize) -> MmapEngine<'arena> {
        MmapEngine {
            files: (0..files).map(|_| None).collect(),
            huge_pages: settings.transparent_huge_pages,
            usage,
            page_bytes: page_bytes() as u64,
            arena,
        }
    }

    /// Copies to the file (`writing`) or from it.
    #[inline]
    fn transfer(&mut self, op: &Op, index: u32, writing: bool) -> Outcome {
        let buffer = self.arena.part(index, op);
        let Some(Some(target)) = self.files.get_mut(op.file as usize) else {
            return Outcome::Failed(Errno(libc::EBADF));
        };
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
        let length = to_usize(length_bytes);
        // SAFETY: `memory` is valid for `length` bytes of the mapping and `buffer` for as many of the arena, which do
        // not overlap; the slot is borrowed mutably, and other processes may change the file's pages as with `read`.
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

    /// Maps the window of a file that begins with this part, and unmaps the rest.
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

    /// A page was inaccessible and has been replaced by zeros. The next operation maps the file again.
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
        let flushed = mapping.sync(to_usize(page), to_usize(start + length_bytes - page));
        Outcome::from(flushed.map(|()| length_bytes))
    }

    /// Makes writes to a file durable: through the mapping if it covers the whole file, as in fio, else through the
    /// file, which also covers earlier windows.
    fn synchronise(&mut self, op: &Op) -> Outcome {
        match self.files.get(op.file as usize) {
            Some(Some(target)) => match &target.mapping {
                Some(mapping) if target.is_whole() => Outcome::from(mapping.sync(0, mapping.len_bytes())),
                _ => sync_and_trim::execute(target.fd, &Op { action: Action::Sync, ..*op }),
            },
            _ => Outcome::Failed(Errno(libc::EBADF)),
        }
    }
}

/// A read ends as at the end of a file; a write fails, because a mapping cannot extend a file.
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
    // SAFETY: `attach` was given an open file, which stays open until `detach`. Otherwise another file of this
    // process would be mapped, which is as memory-safe as this one: an inaccessible page is an error.
    let file = unsafe { BorrowedFd::borrow_raw(target.fd) };
    Mapping::of_file(file, start_bytes, length, target.protection, Sharing::Shared)
}

impl<'arena> Engine<'arena> for MmapEngine<'arena> {
    fn attach(&mut self, file: FileIndex, fd: BorrowedFd<'_>, length_bytes: u64) -> io::Result<()> {
        let bad = || io::Error::from_raw_os_error(libc::EBADF);
        sigbus::install()?;
        let place = self.files.get_mut(file as usize).ok_or_else(bad)?;
        let protection = Protection::ReadWrite;
        let fd = fd.as_raw_fd();
        *place = Some(Target { fd, length_bytes, protection, start_bytes: 0, mapping: None });
        if length_bytes == 0 {
            return Ok(());
        }
        let first_bytes = length_bytes.min(self.page_bytes);
        let mapped = match self.map_around(file, 0, first_bytes) {
            Err(error) if error.raw_os_error() == Some(libc::EACCES) => {
                // Open only for reading.
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

    fn arena(&mut self) -> ArenaAccess<'_, 'arena> {
        ArenaAccess::of(&mut self.arena)
    }
}

impl<'arena> SyncEngine<'arena> for MmapEngine<'arena> {
    #[inline]
    fn execute(&mut self, op: Op, slot: &mut Slot<'arena>) -> Outcome {
        match op.action {
            Action::Read => self.transfer(&op, slot.number(), false),
            Action::Write => self.transfer(&op, slot.number(), true),
            Action::Trim | Action::ResetZone => {
                let fd =
                    self.files.get(op.file as usize).and_then(Option::as_ref).map_or(-1, |target| target.fd);
                sync_and_trim::execute(fd, &op)
            }
            Action::Sync | Action::DataSync | Action::RangeSync(_) => self.synchronise(&op),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::fd::AsFd;

    use fiord_sys::memory::{MemorySource, Region};

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

    fn on_engine(usage: MapUse, test: impl for<'arena> FnOnce(MmapEngine<'arena>, Slot<'arena>)) {
        let region = Region::allocate(&MemorySource::Malloc, BLOCK_BYTES as usize, 4096).unwrap();
        Arena::with(region, 1, BLOCK_BYTES as usize, 4096, |arena| {
            let mut engine = MmapEngine::new(&Settings::default(), usage, arena, 1);
            let slot = engine.arena().slots().remove(0);
            test(engine, slot);
        });
    }

    fn at(action: Action, offset_bytes: u64) -> Op {
        Op::new(action, 0, offset_bytes, BLOCK_BYTES)
    }

    #[test]
    fn a_file_that_shrank_is_an_error_until_it_grows_again() {
        on_engine(USE, |mut engine, mut slot| {
            let file = file(4 * BLOCK_BYTES);
            engine.attach(0, file.as_fd(), 4 * BLOCK_BYTES).unwrap();
            let (first, last) = (at(Action::Read, 0), at(Action::Write, 3 * BLOCK_BYTES));
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
        });
    }

    #[test]
    fn a_file_longer_than_the_limit_is_mapped_in_windows() {
        const LENGTH_BYTES: u64 = WHOLE_BYTES_MAX + 3 * WINDOW_BYTES;
        on_engine(USE, |mut engine, mut slot| {
            let file = file(LENGTH_BYTES);
            engine.attach(0, file.as_fd(), LENGTH_BYTES).unwrap();
            // Within the first window, across its end, not page-aligned, at the end of the file, and back.
            let places = [0, WINDOW_BYTES - 4096, WINDOW_BYTES * 2 + 512, LENGTH_BYTES - BLOCK_BYTES, 65_536];
            for (byte, place) in (1..).zip(places) {
                engine.arena().bytes_mut(&mut slot).fill(byte);
                assert_eq!(engine.execute(at(Action::Write, place), &mut slot), Outcome::Done(BLOCK_BYTES));
                let mapped_bytes = engine.files[0].as_ref().unwrap().mapping.as_ref().unwrap().len_bytes();
                assert!(mapped_bytes as u64 <= WINDOW_BYTES + BLOCK_BYTES);
            }
            for (byte, place) in (1..).zip(places) {
                assert_eq!(engine.execute(at(Action::Read, place), &mut slot), Outcome::Done(BLOCK_BYTES));
                assert!(engine.arena().bytes_mut(&mut slot).iter().all(|&found| found == byte), "at {place}");
            }
            let sync = Op { action: Action::Sync, ..at(Action::Read, 0) };
            assert_eq!(engine.execute(sync, &mut slot), Outcome::Done(0));
        });
    }

    #[test]
    fn the_end_of_the_file_is_the_end() {
        let usage = MapUse { advice: MapAdvice::Random, flush_writes: true };
        on_engine(usage, |mut engine, mut slot| {
            let length_bytes = BLOCK_BYTES + 100;
            let file = file(length_bytes);
            engine.attach(0, file.as_fd(), length_bytes).unwrap();
            for action in [Action::Read, Action::Write] {
                assert_eq!(engine.execute(at(action, BLOCK_BYTES), &mut slot), Outcome::Done(100));
                assert_eq!(engine.execute(at(action, 4096), &mut slot), Outcome::Done(length_bytes - 4096));
            }
            assert_eq!(engine.execute(at(Action::Read, length_bytes), &mut slot), Outcome::Done(0));
            let beyond = Outcome::Failed(Errno(libc::EFBIG));
            assert_eq!(engine.execute(at(Action::Write, length_bytes), &mut slot), beyond);
            assert_eq!(engine.execute(at(Action::Write, u64::MAX), &mut slot), beyond);
        });
    }

    #[test]
    fn a_file_open_only_for_reading_can_be_read() {
        on_engine(USE, |mut engine, mut slot| {
            let writable = file(BLOCK_BYTES);
            let file = File::open(format!("/proc/self/fd/{}", writable.as_raw_fd())).unwrap();
            engine.attach(0, file.as_fd(), BLOCK_BYTES).unwrap();
            assert_eq!(engine.execute(at(Action::Read, 0), &mut slot), Outcome::Done(BLOCK_BYTES));
            assert_eq!(engine.execute(at(Action::Write, 0), &mut slot), Outcome::Failed(Errno(libc::EBADF)));
        });
    }

    #[test]
    fn an_empty_file_can_be_attached() {
        on_engine(USE, |mut engine, mut slot| {
            let file = file(0);
            engine.attach(0, file.as_fd(), 0).unwrap();
            assert_eq!(engine.execute(at(Action::Read, 0), &mut slot), Outcome::Done(0));
        });
    }
}
