//! The contract between the two loops and the engines: operations, slots, outcomes.
//!
//! Invariant: a `Slot` cannot be cloned or made outside this room. Queueing moves it into the engine, completion
//! moves it back, so whoever holds a slot is the only one who may touch its buffer.

use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::RawFd;

use fiord_plan::{Action, FileIndex, Op};
use fiord_sys::errno::Errno;
use fiord_sys::memory::Region;

/// How an operation ended: bytes transferred, or the kernel's error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Bytes; 0 at the end of a file and for synchronisations.
    Done(u64),
    /// errno.
    Failed(Errno),
}

impl Outcome {
    /// Of an operation that went well; a synchronisation has no bytes.
    #[inline]
    pub fn whole(op: &Op) -> Outcome {
        match op.action {
            Action::Transfer(_) => Outcome::Done(op.length_bytes),
            Action::Sync | Action::DataSync | Action::RangeSync(_) => Outcome::Done(0),
        }
    }

    /// From a system call's way of saying it in completions: negative errno or bytes.
    #[inline]
    pub fn from_result(result: i64) -> Outcome {
        if result >= 0 { Outcome::Done(result as u64) } else { Outcome::Failed(Errno(-result as i32)) }
    }
}

impl From<io::Result<usize>> for Outcome {
    /// Bytes or errno; an error that is not the kernel's (there is none on this path) counts as `EIO`.
    #[inline]
    fn from(result: io::Result<usize>) -> Outcome {
        match result {
            Ok(bytes) => Outcome::Done(bytes as u64),
            Err(error) => Outcome::Failed(Errno::of(&error).unwrap_or(Errno(libc::EIO))),
        }
    }
}

impl From<io::Result<()>> for Outcome {
    /// No bytes, or errno.
    #[inline]
    fn from(result: io::Result<()>) -> Outcome {
        Outcome::from(result.map(|()| 0_usize))
    }
}

/// The right to one buffer of the engine's arena.
///
/// Once queued it is the engine's, and the buffer cannot be reached:
///
/// ```compile_fail,E0382
/// # use fiord_engine::{QueuedEngine, Slot};
/// fn refill_in_flight<E: QueuedEngine>(engine: &mut E, op: fiord_plan::Op, mut slot: Slot) {
///     engine.queue(op, slot).ok();
///     engine.arena().bytes_mut(&mut slot).fill(0);
/// }
/// ```
#[derive(Debug)]
pub struct Slot {
    index: u32,
}

impl Slot {
    /// Number of the buffer, from 0 to depth - 1: where the loop keeps what it knows of the operation.
    #[inline]
    pub fn index(&self) -> usize {
        self.index as usize
    }

    /// For engines: the number that goes to the kernel with the operation.
    #[inline]
    pub(crate) fn into_index(self) -> u32 {
        self.index
    }

    /// For engines: the slot whose number came back from the kernel. Only for a number given by `into_index` and
    /// not turned back since.
    #[inline]
    pub(crate) fn from_index(index: u32) -> Slot {
        Slot { index }
    }
}

/// The buffers of one worker, in one region: `depth` buffers of `stride` bytes.
#[derive(Debug)]
pub struct Arena {
    region: ManuallyDrop<Region>,
    leaked: bool,
    stride_bytes: usize,
    count: u32,
    handed_out: bool,
}

impl Arena {
    /// `count` buffers of `buffer_bytes`, each aligned to `align_bytes` (a power of two), over `region`, which has to
    /// hold `Arena::region_bytes` of the same figures and start aligned.
    pub fn new(region: Region, count: u32, buffer_bytes: usize, align_bytes: usize) -> Arena {
        let stride_bytes = buffer_bytes.next_multiple_of(align_bytes.max(1));
        let needed_bytes = stride_bytes.checked_mul(count as usize);
        assert!(needed_bytes.is_some_and(|bytes| bytes <= region.len_bytes()), "the region is too small");
        let region = ManuallyDrop::new(region);
        Arena { region, leaked: false, stride_bytes, count, handed_out: false }
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

    /// For engines: the memory is never given back, because the kernel may still write to it.
    pub(crate) fn leak(&mut self) {
        self.leaked = true;
    }

    /// For engines: where an operation's part of a slot's buffer starts. An operation that would leave its buffer is
    /// a fault of the program and ends it, as an index out of bounds would.
    #[inline]
    pub(crate) fn pointer(&self, index: u32, offset_bytes: u64, length_bytes: u64) -> *mut u8 {
        let stride_bytes = self.stride_bytes as u64;
        let fits = offset_bytes <= stride_bytes && length_bytes <= stride_bytes - offset_bytes;
        assert!(index < self.count && fits, "an operation leaves its buffer");
        // SAFETY: the buffer lies inside the region and the offset inside the buffer, both just checked.
        unsafe { self.region.as_ptr().add(index as usize * self.stride_bytes + offset_bytes as usize) }
    }

    /// For engines: `pointer` for the bytes an operation names.
    #[inline]
    pub(crate) fn part(&self, index: u32, op: &Op) -> *mut u8 {
        self.pointer(index, op.buffer_offset_bytes, op.length_bytes)
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        if !self.leaked {
            // SAFETY: the region is not used after this.
            unsafe { ManuallyDrop::drop(&mut self.region) };
        }
    }
}

/// The buffers inside an engine: what the loop may do with them. Not the `Arena` itself, which must stay where it is
/// while the kernel writes into it.
#[derive(Debug)]
pub struct Buffers<'a> {
    arena: &'a mut Arena,
}

impl<'a> Buffers<'a> {
    /// For engines: these buffers.
    #[inline]
    pub(crate) fn of(arena: &'a mut Arena) -> Buffers<'a> {
        Buffers { arena }
    }

    /// All slots, once.
    pub fn slots(self) -> Vec<Slot> {
        assert!(!self.arena.handed_out, "slots are handed out once");
        self.arena.handed_out = true;
        (0..self.arena.count).map(|index| Slot { index }).collect()
    }

    /// The buffer of a slot. Exclusive by construction: the slot is unique and is here, not in flight.
    #[inline]
    pub fn bytes_mut(self, slot: &'a mut Slot) -> &'a mut [u8] {
        let length_bytes = self.arena.stride_bytes;
        let start = self.arena.pointer(slot.index, 0, length_bytes as u64);
        // SAFETY: `pointer` checked that the whole buffer lies inside the region; the slot is not in flight (the
        // caller holds it), so the kernel does not write there, and the two `&mut` exclude others.
        unsafe { std::slice::from_raw_parts_mut(start, length_bytes) }
    }

    /// Bytes of one buffer, padding included.
    pub fn stride_bytes(&self) -> usize {
        self.arena.stride_bytes
    }

    /// Number of buffers: the queue depth.
    pub fn count(&self) -> u32 {
        self.arena.count
    }
}

/// One operation that has ended.
#[derive(Debug)]
pub struct Completion {
    /// The right to its buffer, back.
    pub slot: Slot,
    /// How it ended.
    pub outcome: Outcome,
}

/// Whether `reap` may sleep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Take what is there.
    Poll,
    /// Sleep until `min` have completed.
    Block,
    /// Sleep until `min` have completed or this many nanoseconds have passed.
    For(u64),
}

/// What one engine is, in one constant.
#[derive(Debug, Clone, Copy)]
pub struct Info {
    /// fio's name.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// Keeps more than one I/O in flight.
    pub queued: bool,
}

/// What both kinds of engine have: files and buffers.
pub trait Engine {
    /// Who it is.
    const INFO: Info;

    /// A file was opened: the engine may register or map it. `length_bytes` counts from the file's start.
    ///
    /// # Errors
    /// What the kernel said to registering or mapping.
    fn attach(&mut self, file: FileIndex, fd: RawFd, length_bytes: u64) -> io::Result<()>;

    /// A file is about to be closed. Nothing of it is in flight.
    fn detach(&mut self, file: FileIndex);

    /// The buffers.
    fn arena(&mut self) -> Buffers<'_>;
}

/// Ends each operation before it returns.
pub trait SyncEngine: Engine {
    /// Does it.
    fn execute(&mut self, op: Op, slot: &mut Slot) -> Outcome;
}

/// Keeps operations in flight. Dropping one waits for what is in flight.
pub trait QueuedEngine: Engine {
    /// Whether every operation has ended when `submit` returns, so that nothing is ever in flight. fio takes what has
    /// ended with each submission then; a loop that takes it later must not show it as a queue.
    const ENDS_AT_ONCE: bool = false;

    /// Takes an operation, or gives the slot back when there is no room before the next `submit`. What cannot be
    /// queued (a discard, say) is done here and now, and comes out of `reap` like everything else.
    ///
    /// # Errors
    /// The slot, when the queue is full.
    fn queue(&mut self, op: Op, slot: Slot) -> Result<(), Slot>;

    /// Tells the kernel; returns how many operations it took. What it did not take stays queued, and is offered again
    /// by the next `submit` or `reap`.
    ///
    /// # Errors
    /// The kernel's, when none could be taken and waiting will not help.
    fn submit(&mut self) -> io::Result<u32>;

    /// Moves at least `min` (if it may wait) and at most `max` ended operations to `done`, which has room. `min` is
    /// read as "or as many as there are", so waiting never outlasts what is in flight. Fewer come back when the time
    /// of `Wait::For` is up or a signal came in.
    ///
    /// # Errors
    /// The kernel's, when completions cannot be had any more.
    fn reap(&mut self, min: u32, max: u32, wait: Wait, done: &mut Vec<Completion>) -> io::Result<()>;

    /// `submit` and `reap`, in one system call where the engine can. Use it when nothing has to be known between the
    /// two (the time of submission, say).
    ///
    /// # Errors
    /// Those of both.
    #[inline]
    fn submit_and_reap(
        &mut self,
        min: u32,
        max: u32,
        wait: Wait,
        done: &mut Vec<Completion>,
    ) -> io::Result<u32> {
        let taken = self.submit()?;
        self.reap(min, max, wait, done)?;
        Ok(taken)
    }
}
