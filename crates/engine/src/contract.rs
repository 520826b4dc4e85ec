//! The contract between the two loops and the engines: operations, slots, outcomes.
//!
//! Invariant: a `Slot` cannot be cloned or made outside this crate, and belongs to one arena by its type. Queueing
//! moves it into the engine, completion moves it back, so only the holder of a slot can access its buffer.
//!
//! The type that ties slots, arena and engine together is the lifetime `'arena`, which [`Arena::with`] creates for
//! each arena: it is invariant and unique, so lifetimes of different arenas do not unify. It costs nothing at run time.

use std::fs::File;
use std::io;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::os::fd::BorrowedFd;
use std::path::Path;

use fiord_plan::{Action, FileIndex, Op};
use fiord_sys::errno::Errno;
use fiord_sys::memory::Region;
use fiord_sys::thread::Usage;
use fiord_sys::width::to_usize;

use crate::attached_files::AttachedFiles;

/// How an operation ended: bytes transferred, or the kernel's error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Bytes; 0 at the end of a file and for synchronisations.
    Done(u64),
    /// The whole of a write, which the device has put at this byte of the file.
    Appended(u64),
    /// errno.
    Failed(Errno),
}

impl Outcome {
    /// Of a complete operation; a synchronisation has no bytes.
    #[inline]
    pub fn whole(op: &Op) -> Outcome {
        match op.action {
            Action::Read | Action::Write | Action::Trim | Action::ResetZone => Outcome::Done(op.length_bytes),
            Action::Sync | Action::DataSync | Action::RangeSync(_) => Outcome::Done(0),
        }
    }

    /// From the result in a completion: bytes, or the negative errno.
    #[inline]
    pub fn from_result(result: i64) -> Outcome {
        match u64::try_from(result) {
            Ok(bytes) => Outcome::Done(bytes),
            Err(_) => Outcome::Failed(Errno(i32::try_from(result.unsigned_abs()).unwrap_or(libc::EIO))),
        }
    }
}

impl From<io::Result<u64>> for Outcome {
    /// Bytes or errno; an error without an errno (not possible on this path) counts as `EIO`.
    #[inline]
    fn from(result: io::Result<u64>) -> Outcome {
        match result {
            Ok(bytes) => Outcome::Done(bytes),
            Err(error) => Outcome::Failed(Errno::of(&error).unwrap_or(Errno(libc::EIO))),
        }
    }
}

impl From<io::Result<usize>> for Outcome {
    /// The same, of bytes in memory.
    #[inline]
    fn from(result: io::Result<usize>) -> Outcome {
        Outcome::from(result.map(|bytes| bytes as u64))
    }
}

impl From<io::Result<()>> for Outcome {
    /// No bytes, or errno.
    #[inline]
    fn from(result: io::Result<()>) -> Outcome {
        Outcome::from(result.map(|()| 0_u64))
    }
}

/// The right to one buffer of the engine's arena.
///
/// Once queued it belongs to the engine, and the buffer is inaccessible:
///
/// ```compile_fail,E0382
/// # use fiord_engine::{QueuedEngine, Slot};
/// fn refill_in_flight<'a, E: QueuedEngine<'a>>(engine: &mut E, op: fiord_plan::Op, mut slot: Slot<'a>) {
///     engine.queue(op, slot).ok();
///     engine.arena().bytes_mut(&mut slot).fill(0);
/// }
/// ```
///
/// An engine over another arena does not accept it:
///
/// ```compile_fail,E0521
/// # use fiord_engine::{Arena, Engine, SyncEngine};
/// # use fiord_engine::engines::null::NullEngine;
/// # fn run(first: fiord_sys::memory::Region, second: fiord_sys::memory::Region, op: fiord_plan::Op) {
/// Arena::with(first, 1, 4096, 4096, |first| {
///     Arena::with(second, 1, 4096, 4096, |second| {
///         let (mut first, mut second) = (NullEngine::new(first), NullEngine::new(second));
///         let mut slot = first.arena().slots().remove(0);
///         second.execute(op, &mut slot);
///     })
/// })
/// # }
/// ```
///
/// Nor can it outlive its arena, to be used with the next one:
///
/// ```compile_fail,E0521
/// # use fiord_engine::{Arena, Engine, Slot};
/// # use fiord_engine::engines::null::NullEngine;
/// # fn run(region: fiord_sys::memory::Region) {
/// let mut kept = Vec::new();
/// Arena::with(region, 1, 4096, 4096, |arena| kept.extend(NullEngine::new(arena).arena().slots()));
/// # }
/// ```
#[derive(Debug)]
pub struct Slot<'arena> {
    index: u32,
    brand: Brand<'arena>,
}

/// Ties a type to one arena: invariant, so that no arena's lifetime can be shortened to another's.
type Brand<'arena> = PhantomData<fn(&'arena ()) -> &'arena ()>;

impl Slot<'_> {
    /// Number of the buffer, from 0 to depth - 1: the loop's index of the operation's state.
    #[inline]
    pub fn index(&self) -> usize {
        self.index as usize
    }

    /// The same, for engines.
    #[inline]
    pub(crate) fn number(&self) -> u32 {
        self.index
    }

    /// For engines: the number that goes to the kernel with the operation.
    #[inline]
    pub(crate) fn into_index(self) -> u32 {
        self.index
    }

    /// For engines: the slot whose number came back from the kernel. Only for a number from `into_index` that has not
    /// been converted back since.
    #[inline]
    pub(crate) fn from_index(index: u32) -> Self {
        Slot { index, brand: PhantomData }
    }
}

/// The buffers of one worker, in one region: `depth` buffers of `stride` bytes.
#[derive(Debug)]
pub struct Arena<'arena> {
    brand: Brand<'arena>,
    region: ManuallyDrop<Region>,
    leaked: bool,
    stride_bytes: usize,
    count: u32,
    handed_out: bool,
}

impl<'arena> Arena<'arena> {
    /// For engines: the same buffers for another engine, which must have ended before this arena is dropped. It neither
    /// hands out slots nor frees the memory.
    pub(crate) fn view(&self) -> Arena<'arena> {
        // SAFETY: the copy is never dropped, because it is marked as leaked.
        let region = unsafe { std::ptr::read(&raw const self.region) };
        let Arena { stride_bytes, count, .. } = *self;
        Arena { brand: PhantomData, region, leaked: true, stride_bytes, count, handed_out: true }
    }
}

impl Arena<'_> {
    /// Calls `body` with `count` buffers of `buffer_bytes`, each aligned to `align_bytes` (a power of two), over
    /// `region`, which must have `Arena::region_bytes` of the same figures and an aligned start.
    pub fn with<R>(
        region: Region,
        count: u32,
        buffer_bytes: usize,
        align_bytes: usize,
        body: impl for<'arena> FnOnce(Arena<'arena>) -> R,
    ) -> R {
        let stride_bytes = buffer_bytes.next_multiple_of(align_bytes.max(1));
        let needed_bytes = stride_bytes.checked_mul(count as usize);
        assert!(needed_bytes.is_some_and(|bytes| bytes <= region.len_bytes()), "the region is too small");
        let region = ManuallyDrop::new(region);
        body(Arena { brand: PhantomData, region, leaked: false, stride_bytes, count, handed_out: false })
    }

    /// Bytes a region needs for these buffers.
    pub fn region_bytes(count: u32, buffer_bytes: usize, align_bytes: usize) -> usize {
        buffer_bytes.next_multiple_of(align_bytes.max(1)) * count as usize
    }

    /// Bytes of one buffer, padding included.
    pub fn stride_bytes(&self) -> usize {
        self.stride_bytes
    }

    /// Number of buffers: the queue depth.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// For engines: the memory is never freed, because the kernel may still write to it.
    pub(crate) fn leak(&mut self) {
        self.leaked = true;
    }

    /// For engines: where an operation's part of a slot's buffer starts. An operation that would exceed its buffer is
    /// a bug and panics, like an index out of bounds.
    #[inline]
    pub(crate) fn pointer(&self, index: u32, offset_bytes: u64, length_bytes: u64) -> *mut u8 {
        let stride_bytes = self.stride_bytes as u64;
        let fits = offset_bytes <= stride_bytes && length_bytes <= stride_bytes - offset_bytes;
        assert!(index < self.count && fits, "an operation exceeds its buffer");
        // SAFETY: the buffer is inside the region and the offset inside the buffer, both just checked.
        unsafe { self.region.as_ptr().add(index as usize * self.stride_bytes + to_usize(offset_bytes)) }
    }

    /// For engines: `pointer` for the bytes an operation names.
    #[inline]
    pub(crate) fn part(&self, index: u32, op: &Op) -> *mut u8 {
        self.pointer(index, op.buffer_offset_bytes, op.length_bytes)
    }
}

impl Drop for Arena<'_> {
    fn drop(&mut self) {
        if !self.leaked {
            // SAFETY: the region is not used after this.
            unsafe { ManuallyDrop::drop(&mut self.region) };
        }
    }
}

/// Access to the buffers of an engine for the loop. Not the `Arena` itself, which must not be moved out while the
/// kernel writes into it.
#[derive(Debug)]
pub struct ArenaAccess<'a, 'arena> {
    arena: &'a mut Arena<'arena>,
}

impl<'a, 'arena> ArenaAccess<'a, 'arena> {
    /// For engines: these buffers.
    #[inline]
    pub fn of(arena: &'a mut Arena<'arena>) -> ArenaAccess<'a, 'arena> {
        ArenaAccess { arena }
    }

    /// How many there are, and the bytes of each.
    pub(crate) fn shape(&self) -> (usize, usize) {
        (self.arena.count as usize, self.arena.stride_bytes)
    }

    /// All slots, once.
    pub fn slots(self) -> Vec<Slot<'arena>> {
        assert!(!self.arena.handed_out, "slots are handed out once");
        self.arena.handed_out = true;
        (0..self.arena.count).map(Slot::from_index).collect()
    }

    /// The buffer of a slot. Exclusive by construction: the slot is unique, and not in flight.
    #[inline]
    pub fn bytes_mut(self, slot: &'a mut Slot<'arena>) -> &'a mut [u8] {
        let length_bytes = self.arena.stride_bytes;
        let start = self.arena.pointer(slot.index, 0, length_bytes as u64);
        // SAFETY: `pointer` checked that the whole buffer is inside the region; the slot is not in flight (the
        // caller holds it), so the kernel does not write there, and the two `&mut` exclude others.
        unsafe { std::slice::from_raw_parts_mut(start, length_bytes) }
    }
}

/// One completed operation.
#[derive(Debug)]
pub struct Completion<'arena> {
    /// Its slot, returned.
    pub slot: Slot<'arena>,
    /// How it ended.
    pub outcome: Outcome,
}

/// When an offloaded operation was executed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Timing {
    /// From its start to its end, in nanoseconds.
    pub execution_ns: u64,
    /// From its end until it was reaped, in nanoseconds.
    pub since_end_ns: u64,
}

/// Whether `reap` may sleep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Return only what is ready.
    Poll,
    /// Sleep until `min` have completed.
    Block,
    /// Sleep until `min` have completed or this many nanoseconds have passed.
    For(u64),
}

/// A target that an engine opens itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NamedTarget<'a> {
    /// The job's name of it.
    pub name: &'a Path,
    /// Bytes that the job may use, from the target's start.
    pub length_bytes: u64,
    /// Whether the job writes to it or trims it.
    pub writable: bool,
}

/// What an operation was that an engine has executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Executed {
    /// An I/O with a latency.
    Io,
    /// Nothing of its own, because an earlier operation has done its part: it counts, without a latency.
    Earlier,
    /// The last one: there is nothing left to do.
    Last,
}

/// The common part of both kinds of engine: files and buffers.
pub trait Engine<'arena> {
    /// The table of an engine that needs only the descriptors of its files: `attach` and `detach` keep it.
    fn files(&mut self) -> Option<&mut AttachedFiles> {
        None
    }

    /// A file was opened: the engine may register or map it, and uses it by number from here on. `length_bytes` counts
    /// from the file's start. The file stays open until `detach`: an engine that keeps the descriptor relies on that
    /// only for correct outcomes, not for memory safety (see `AttachedFiles`).
    ///
    /// # Errors
    /// The kernel's, from registering or mapping.
    fn attach(&mut self, file: FileIndex, fd: BorrowedFd<'_>, _length_bytes: u64) -> io::Result<()> {
        self.files().ok_or(Errno::EOPNOTSUPP)?.attach(file, fd)
    }

    /// A target of an engine that opens its targets itself (`FileUse::Named`), in place of `attach`: it is opened here,
    /// and used by number from here on. It stays open until `detach`.
    ///
    /// # Errors
    /// Why it cannot be opened: an errno, or a sentence that says what to do.
    fn open(&mut self, _file: FileIndex, _target: &NamedTarget<'_>) -> io::Result<()> {
        Err(Errno(libc::EOPNOTSUPP).into())
    }

    /// A file is about to be closed, or a target to be closed by the engine. None of its operations is in flight.
    fn detach(&mut self, file: FileIndex) {
        if let Some(files) = self.files() {
            files.detach(file);
        }
    }

    /// The buffers.
    fn arena(&mut self) -> ArenaAccess<'_, 'arena>;

    /// One of the files that the engine writes besides the job's targets, as its descriptor lists them, before anything
    /// else.
    fn take_output(&mut self, _number: usize, _file: File) {}

    /// What the operation just executed was. Asked after each operation, but only of engines whose descriptors have
    /// operations other than I/O: one call for each name, or cycles of other work.
    fn executed(&self) -> Executed {
        Executed::Io
    }

    /// Ends the threads that execute operations for the engine, if it has any; returns the resources they used. Nothing
    /// is in flight, and nothing is queued afterwards.
    fn end_threads(&mut self) -> Usage {
        Usage::default()
    }
}

/// Ends each operation before it returns.
pub trait SyncEngine<'arena>: Engine<'arena> {
    /// Executes it.
    fn execute(&mut self, op: Op, slot: &mut Slot<'arena>) -> Outcome;
}

/// Keeps operations in flight. Dropping it waits for them.
pub trait QueuedEngine<'arena>: Engine<'arena> {
    /// Whether every operation has ended when `submit` returns, so that nothing is ever in flight. fio then reaps
    /// with each submission; a loop that reaps later must not count this as queue depth.
    const ENDS_AT_ONCE: bool = false;

    /// Whether other threads execute the operations, one at a time each: an operation then begins when a thread takes it,
    /// not when it is submitted, and `timing` reports when that was.
    const OFFLOADS: bool = false;

    /// Executes an operation that the engine cannot queue, such as a discard, and blocks until it has ended; `None`, and
    /// nothing was done, for one that `queue` takes: every read and write.
    #[inline]
    fn execute_unqueued(&mut self, _op: &Op) -> Option<Outcome> {
        None
    }

    /// Queues an operation that `execute_unqueued` left, or returns the slot if the queue is full until the next
    /// `submit`.
    ///
    /// # Errors
    /// The slot, if the queue is full.
    fn queue(&mut self, op: Op, slot: Slot<'arena>) -> Result<(), Slot<'arena>>;

    /// Submits the queue to the kernel; returns how many operations it accepted. Others stay queued, and are submitted
    /// again by the next `submit` or `reap`.
    ///
    /// # Errors
    /// The kernel's, if none could be submitted and waiting will not help.
    fn submit(&mut self) -> io::Result<u32>;

    /// Moves at least `min` (if it may wait) and at most `max` ended operations to `done`, which has the capacity.
    /// `min` is limited to the operations in flight, so waiting always ends. Fewer are returned after the time of
    /// `Wait::For`, or after a signal.
    ///
    /// # Errors
    /// The kernel's, if no more completions can be reaped.
    fn reap(&mut self, min: u32, max: u32, wait: Wait, done: &mut Vec<Completion<'arena>>) -> io::Result<()>;

    /// When the last operation of this slot was executed; only of an engine that offloads.
    fn timing(&self, _slot: &Slot<'arena>) -> Timing {
        Timing::default()
    }

    /// `submit`, and `reap` of one completion that it waits for; in one system call if the engine can. For loops that
    /// need no information between the two (such as the time of submission).
    ///
    /// # Errors
    /// Those of both.
    #[inline]
    fn submit_and_wait(&mut self, done: &mut Vec<Completion<'arena>>) -> io::Result<u32> {
        let taken = self.submit()?;
        self.reap(1, 1, Wait::Block, done)?;
        Ok(taken)
    }
}
