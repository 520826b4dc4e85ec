//! io_uring: operations go into a ring shared with the kernel, completions come out of another.
//!
//! Invariant: what the kernel can queue is queued; what it cannot (zone resets, trims on older kernels, anything but
//! transfers on a ring that polls) is left to `execute_unqueued`.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use fiord_options::job::JobOptions;
use fiord_plan::{
    Action, EngineDescriptor, EngineName, EngineSettings, EngineTests, Example, FileIndex, Need, Op, Queueing,
};
use fiord_sys::transfer::RwFlags;
use fiord_sys::uring;
use fiord_sys::width::low_u32;
use io_uring::squeue::{Entry, Flags};
use io_uring::types::FsyncFlags;
use io_uring::{Probe, cqueue, opcode};

use crate::contract::{Arena, ArenaAccess, Completion, Engine, Outcome, QueuedEngine, Slot, Wait};
use crate::definition::{EngineDefinition, Setup, Visitor};
use crate::error_hint::TransferFlags;
use crate::priorities::{self, Priorities};
use crate::ring_queue::{Every, RingQueue, RingUse, on_file, registered_buffer};
use crate::ring_trims::{RingTrims, TrimCall};
use crate::setup_error::SetupError;
use crate::sync_and_trim;

/// Builds the entry of a read or a write, which differ only in their opcodes.
macro_rules! transfer {
    ($engine:expr, $op:expr, $index:expr, $flags:ident, $plain:ident, $fixed:ident, $vectored:ident) => {{
        let pointer = $engine.queue.arena.part($index, $op);
        let length = $op.length_bytes.min(TRANSFER_BYTES_MAX) as u32;
        let (offset, flags) = ($op.offset_bytes, $engine.$flags);
        let priority = $engine.priorities.of($op);
        match &mut $engine.variant {
            OpcodeVariant::Plain => on_file!($engine.queue, $op, |fd| {
                opcode::$plain::new(fd, pointer, length)
                    .offset(offset)
                    .rw_flags(flags)
                    .ioprio(priority)
                    .build()
            }),
            OpcodeVariant::Fixed { slots_per_buffer } => {
                let buffer = registered_buffer($index, *slots_per_buffer);
                on_file!($engine.queue, $op, |fd| {
                    opcode::$fixed::new(fd, pointer, length, buffer)
                        .offset(offset)
                        .rw_flags(flags)
                        .ioprio(priority)
                        .build()
                })
            }
            OpcodeVariant::Vectored(vectors) => {
                let vector = &mut vectors[$index as usize];
                *vector = libc::iovec { iov_base: pointer.cast(), iov_len: length as usize };
                let vector: *const libc::iovec = vector;
                on_file!($engine.queue, $op, |fd| {
                    opcode::$vectored::new(fd, vector, 1)
                        .offset(offset)
                        .rw_flags(flags)
                        .ioprio(priority)
                        .build()
                })
            }
        }
    }};
}

/// The longest transfer of one entry; the kernel would stop a page short of 2 GiB anyway.
const TRANSFER_BYTES_MAX: u64 = 0x7fff_f000;

/// The engine.
#[derive(Debug)]
pub struct IoUring;

/// Its settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Settings {
    /// Buffers registered with the ring.
    pub fixed_buffers: bool,
    /// Files registered with the ring.
    pub registered_files: bool,
    /// A kernel thread polls the submission queue.
    pub submission_thread: bool,
    /// The CPU of that thread.
    pub submission_thread_cpu: Option<u32>,
    /// Completions are polled (`IORING_SETUP_IOPOLL`).
    pub hipri: bool,
    /// `READ`/`WRITE` (true) or `READV`/`WRITEV` (false).
    pub nonvectored: bool,
    /// `RWF_UNCACHED`.
    pub uncached: bool,
    /// `RWF_NOWAIT`.
    pub nowait: bool,
    /// `RWF_ATOMIC` on writes.
    pub atomic: bool,
    /// `IOSQE_ASYNC` on every I/O of this number; 0 never.
    pub force_async_every: u32,
}

impl Settings {
    /// Those of a job's options.
    fn of(options: &JobOptions) -> Settings {
        let own = &options.io_uring;
        Settings {
            fixed_buffers: own.fixedbufs.is_some_and(|flag| flag.0),
            registered_files: own.registerfiles.is_some_and(|flag| flag.0),
            submission_thread: own.sqthread_poll.is_some_and(|flag| flag.0),
            submission_thread_cpu: own.sqthread_poll_cpu,
            hipri: own.hipri.is_some_and(|flag| flag.0),
            nonvectored: own.nonvectored != 0,
            uncached: own.uncached.is_some_and(|value| value != 0),
            nowait: own.nowait.unwrap_or(false),
            atomic: options.access.atomic,
            force_async_every: own.force_async.unwrap_or(0),
        }
    }

    /// What they want of the ring of a job that trims, or does not.
    fn ring(&self, trims: bool) -> RingUse {
        RingUse {
            keeps_entries: trims,
            registered_files: self.registered_files,
            submission_thread: self.submission_thread,
            submission_thread_cpu: self.submission_thread_cpu,
            hipri: self.hipri,
        }
    }

    /// The explanation of an errno by these settings.
    fn explain(&self, errno: i32) -> Option<&'static str> {
        let Settings { nowait, uncached, hipri, atomic, .. } = *self;
        TransferFlags { nowait, uncached, hipri, atomic }.explain(errno)
    }
}

impl EngineDefinition for IoUring {
    type Settings = Settings;

    const DESCRIPTOR: &'static EngineDescriptor = &EngineDescriptor {
        tests: Some(EngineTests::ON_FILES),
        settings: |options| EngineSettings::new(Settings::of(options)),
        explain: |settings, errno| settings.get::<Settings>()?.explain(errno),
        example: Some(Example {
            text: "Random reads that bypass the page cache, 32 at a time, with registered files and buffers.",
            commands: "fiord --name=example --ioengine=io_uring --iodepth=32 --direct=1 --registerfiles \
                 --fixedbufs --rw=randread --size=16m",
            needs: &[Need::DIRECT],
        }),
        ..priorities::descriptor(
            EngineName::IoUring,
            "queues shared with the kernel (Linux 5.1)",
            Queueing::Queued,
        )
    };

    fn set_up<'a, V: Visitor<'a>>(settings: &Settings, setup: Setup<'_, 'a>, visitor: V) -> V::Output {
        let Setup { job, arena } = setup;
        let engine = IoUringEngine::new(settings, arena, job.files, job.trims);
        let priorities = Priorities::new(&job.priorities);
        visitor.queued(engine.map(|mut engine| {
            engine.priorities = priorities;
            engine
        }))
    }
}

/// The engine, set up.
pub struct IoUringEngine<'arena> {
    // First, so that the kernel is done with the vectors before they go.
    queue: RingQueue<'arena>,
    variant: OpcodeVariant,
    read_flags: i32,
    write_flags: i32,
    priorities: Priorities,
    force_async: Every,
    trims: RingTrims,
}

/// How reads and writes name their memory.
#[derive(Debug)]
enum OpcodeVariant {
    /// A pointer and a length.
    Plain,
    /// A vector; each slot has one, which must live while the kernel reads it.
    Vectored(Box<[libc::iovec]>),
    /// A registered buffer; each contains this many slots.
    Fixed { slots_per_buffer: u32 },
}

impl<'arena> IoUringEngine<'arena> {
    /// An engine with these settings over these buffers for this many files, of a job that may trim. To be called on the
    /// thread that will do the I/O.
    ///
    /// # Errors
    /// The call that the kernel refused, with its likely cause.
    pub fn new(
        settings: &Settings,
        arena: Arena<'arena>,
        files: usize,
        trims: bool,
    ) -> Result<IoUringEngine<'arena>, SetupError> {
        let slots = arena.count();
        let queue = RingQueue::new(&settings.ring(trims), arena, files)?;
        let mut engine = IoUringEngine {
            variant: OpcodeVariant::Plain,
            read_flags: read_flags(settings).0,
            write_flags: write_flags(settings).0,
            priorities: Priorities::new(&[]),
            force_async: Every::new(settings.force_async_every),
            trims: RingTrims::new(
                slots,
                files,
                trims && !settings.hipri && knows(&queue.ring, opcode::Fallocate::CODE),
            ),
            queue,
        };
        engine.variant = engine.choose_variant(settings)?;
        Ok(engine)
    }

    fn choose_variant(&self, settings: &Settings) -> Result<OpcodeVariant, SetupError> {
        if settings.fixed_buffers {
            let slots_per_buffer = self.queue.register_buffers()?;
            return Ok(OpcodeVariant::Fixed { slots_per_buffer });
        }
        let plain = [opcode::Read::CODE, opcode::Write::CODE];
        if settings.nonvectored && plain.iter().all(|code| knows(&self.queue.ring, *code)) {
            return Ok(OpcodeVariant::Plain);
        }
        let empty = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };
        Ok(OpcodeVariant::Vectored(vec![empty; self.queue.arena.count() as usize].into_boxed_slice()))
    }

    /// The entry for an operation that goes through the ring.
    #[inline]
    fn entry(&mut self, op: &Op, index: u32) -> Entry {
        let entry = match op.action {
            Action::Read => transfer!(self, op, index, read_flags, Read, ReadFixed, Readv),
            Action::Write => transfer!(self, op, index, write_flags, Write, WriteFixed, Writev),
            Action::Trim => return self.trim(op, index),
            Action::ResetZone => unreachable!("there is no zone reset in the ring: `is_direct`"),
            Action::Sync => on_file!(self.queue, op, |fd| opcode::Fsync::new(fd).build()),
            Action::DataSync => {
                on_file!(self.queue, op, |fd| opcode::Fsync::new(fd).flags(FsyncFlags::DATASYNC).build())
            }
            Action::RangeSync(flags) => {
                let length = low_u32(op.length_bytes);
                on_file!(self.queue, op, |fd| {
                    opcode::SyncFileRange::new(fd, length)
                        .offset(op.offset_bytes)
                        .flags(u32::from(flags))
                        .build()
                })
            }
        };
        let entry = entry.user_data(u64::from(index));
        if self.force_async.next() { entry.flags(Flags::ASYNC) } else { entry }
    }

    /// The entry for a trim that goes through the ring.
    fn trim(&mut self, op: &Op, index: u32) -> Entry {
        let entry = match self.trims.begin(index, op) {
            TrimCall::Discard => on_file!(self.queue, op, |fd| {
                opcode::UringCmd16::new(fd, uring::DISCARD)
                    .addr(Some(op.offset_bytes))
                    .cmd(uring::discard_data(op.length_bytes))
                    .build()
            }),
            TrimCall::PunchHole => on_file!(self.queue, op, |fd| {
                opcode::Fallocate::new(fd, op.length_bytes)
                    .offset(op.offset_bytes)
                    .mode(libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE)
                    .build()
            }),
        };
        entry.user_data(RingTrims::user_data(index))
    }

    /// Whether an operation cannot go through this ring. No reset of a zone can, nor a synchronisation of 4 GiB and more, and a
    /// ring that polls for completions accepts only reads and writes.
    #[inline]
    fn is_direct(&self, op: &Op) -> bool {
        match op.action {
            Action::Read | Action::Write => false,
            Action::Trim => !self.trims.are_queued(op.file),
            Action::ResetZone => true,
            // The entry has 32 bits for a length.
            Action::RangeSync(_) if op.length_bytes > u64::from(u32::MAX) => true,
            Action::Sync | Action::DataSync | Action::RangeSync(_) => self.queue.completion_polling(),
        }
    }
}

/// Whether the kernel has this operation; one without the probe (before 5.6) does not say so.
fn knows(ring: &uring::Ring, code: u8) -> bool {
    let mut probe = Probe::new();
    ring.submitter().register_probe(&mut probe).is_ok() && probe.is_supported(code)
}

/// How the operation of a completion ended.
#[inline]
fn outcome(trims: &RingTrims, completion: &cqueue::Entry) -> Outcome {
    let result = completion.result();
    match result > 0 {
        true => Outcome::Done(u64::from(result.cast_unsigned())),
        false => trims.outcome(completion.user_data(), result),
    }
}

fn read_flags(settings: &Settings) -> RwFlags {
    let uncached = if settings.uncached { RwFlags::UNCACHED } else { RwFlags::NONE };
    let nowait = if settings.nowait { RwFlags::NOWAIT } else { RwFlags::NONE };
    uncached.with(nowait)
}

fn write_flags(settings: &Settings) -> RwFlags {
    let atomic = if settings.atomic { RwFlags::ATOMIC } else { RwFlags::NONE };
    read_flags(settings).with(atomic)
}

impl<'arena> Engine<'arena> for IoUringEngine<'arena> {
    fn attach(&mut self, file: FileIndex, fd: BorrowedFd<'_>, _length_bytes: u64) -> io::Result<()> {
        self.queue.attach(file, fd)?;
        self.trims.attach(file, fd.as_fd());
        Ok(())
    }

    fn detach(&mut self, file: FileIndex) {
        self.queue.detach(file);
    }

    fn arena(&mut self) -> ArenaAccess<'_, 'arena> {
        self.queue.access()
    }
}

impl<'arena> QueuedEngine<'arena> for IoUringEngine<'arena> {
    #[inline]
    fn execute_unqueued(&mut self, op: &Op) -> Option<Outcome> {
        self.is_direct(op).then(|| sync_and_trim::execute(self.queue.files.get(op.file), op))
    }

    #[inline]
    fn queue(&mut self, op: Op, slot: Slot<'arena>) -> Result<(), Slot<'arena>> {
        let index = slot.into_index();
        let entry = self.entry(&op, index);
        // SAFETY: the entry names a part of the slot's buffer, and the vector kept for the slot, which goes after the
        // queue.
        unsafe { self.queue.push(&entry, index) }
    }

    #[inline]
    fn submit(&mut self) -> io::Result<u32> {
        self.queue.submit()
    }

    #[inline]
    fn reap(&mut self, min: u32, max: u32, wait: Wait, done: &mut Vec<Completion<'arena>>) -> io::Result<()> {
        let trims = &self.trims;
        self.queue.reap(min, max, wait, done, |completion| outcome(trims, completion))
    }

    #[inline]
    fn submit_and_wait(&mut self, done: &mut Vec<Completion<'arena>>) -> io::Result<u32> {
        let trims = &self.trims;
        self.queue.submit_and_wait(done, |completion| outcome(trims, completion))
    }
}

#[cfg(test)]
mod tests {
    use fiord_sys::memory::{MemorySource, Region};
    use fiord_testing::skipped;

    use super::*;

    #[test]
    fn a_range_that_an_entry_has_no_room_for_does_not_go_through_the_ring() {
        let region = Region::allocate(&MemorySource::Mmap, 4096, 4096).unwrap();
        Arena::with(region, 1, 4096, 4096, |arena| {
            let engine = match IoUringEngine::new(&Settings::default(), arena, 1, false) {
                Ok(engine) => engine,
                Err(refused) => return skipped(refused),
            };
            let is_direct = |bytes| engine.is_direct(&Op::new(Action::RangeSync(2), 0, 0, bytes));
            assert_eq!([(1 << 32) - 1, 1 << 32].map(is_direct), [false, true]);
        });
    }

    #[test]
    fn settings_become_flags() {
        let settings = Settings { uncached: true, nowait: true, atomic: true, ..Settings::default() };
        let common = libc::RWF_DONTCACHE | libc::RWF_NOWAIT;
        assert_eq!(read_flags(&settings).0, common);
        assert_eq!(write_flags(&settings).0, common | libc::RWF_ATOMIC);
        assert_eq!(write_flags(&Settings::default()), RwFlags::NONE);
    }
}
