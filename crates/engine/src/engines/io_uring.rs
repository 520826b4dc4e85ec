//! io_uring: operations go into a ring shared with the kernel, completions come out of another.
//!
//! Invariant: `outstanding` operations went into the ring and have not been reaped, the last `queued` of them not
//! yet submitted. The arena is released only when none is outstanding, so the kernel never writes into memory that has
//! been reused.
//!
//! The ring belongs to the thread that creates the engine; only that thread may use it.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use fiord_options::job::JobOptions;
use fiord_plan::{
    Action, EngineDescriptor, EngineName, EngineSettings, Example, FileIndex, Need, Op, Queueing,
};
use fiord_sys::transfer::RwFlags;
use fiord_sys::uring::{Ring, RingOptions, SubmissionPolling};
use io_uring::squeue::{Entry, Flags};
use io_uring::types::{Fd, Fixed, FsyncFlags};
use io_uring::{Probe, opcode};

use crate::adaptive_poll::{AdaptivePoll, POLL_NS};
use crate::attached_files::AttachedFiles;
use crate::contract::{Arena, ArenaAccess, Completion, Engine, Outcome, QueuedEngine, Slot, Wait};
use crate::definition::{EngineDefinition, JobOutline, Visitor};
use crate::error_hint::TransferFlags;
use crate::priorities::{self, Priorities};
use crate::setup_error::{SetupError, SetupStep};
use crate::sync_and_trim;

/// Builds an entry on an operation's file, named by its place in the registered table or by its descriptor.
macro_rules! on_file {
    ($engine:expr, $op:expr, |$fd:ident| $entry:expr) => {
        if $engine.registered_files {
            let $fd = Fixed($op.file);
            $entry
        } else {
            let $fd = Fd($engine.files.get($op.file));
            $entry
        }
    };
}

/// Builds the entry of a read or a write, which differ only in their opcodes.
macro_rules! transfer {
    ($engine:expr, $op:expr, $index:expr, $flags:ident, $plain:ident, $fixed:ident, $vectored:ident) => {{
        let pointer = $engine.arena.part($index, $op);
        let length = $op.length_bytes.min(TRANSFER_BYTES_MAX) as u32;
        let (offset, flags) = ($op.offset_bytes, $engine.$flags);
        let priority = $engine.priorities.of($op);
        match &mut $engine.variant {
            OpcodeVariant::Plain => on_file!($engine, $op, |fd| {
                opcode::$plain::new(fd, pointer, length)
                    .offset(offset)
                    .rw_flags(flags)
                    .ioprio(priority)
                    .build()
            }),
            OpcodeVariant::Fixed { slots_per_buffer } => {
                let buffer = ($index / *slots_per_buffer) as u16;
                on_file!($engine, $op, |fd| {
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
                on_file!($engine, $op, |fd| {
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

/// Milliseconds without work after which the submission thread sleeps: the kernel's own default.
const SUBMISSION_THREAD_IDLE_MS: u32 = 1000;

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

    /// The explanation of an errno by these settings.
    fn explain(&self, errno: i32) -> Option<&'static str> {
        let Settings { nowait, uncached, hipri, atomic, .. } = *self;
        TransferFlags { nowait, uncached, hipri, atomic }.explain(errno)
    }
}

impl EngineDefinition for IoUring {
    type Settings = Settings;

    const DESCRIPTOR: &'static EngineDescriptor = &EngineDescriptor {
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

    fn set_up<'arena, V: Visitor<'arena>>(
        settings: &Settings,
        job: &JobOutline,
        arena: Arena<'arena>,
        visitor: V,
    ) -> V::Output {
        let engine = IoUringEngine::new(settings, arena, job.files);
        let priorities = Priorities::new(&job.priorities);
        visitor.queued(engine.map(|mut engine| {
            engine.priorities = priorities;
            engine
        }))
    }
}

/// The engine, set up.
pub struct IoUringEngine<'arena> {
    ring: Ring,
    // After the ring, so that the kernel releases the buffers first.
    arena: Arena<'arena>,
    files: AttachedFiles,
    registered_files: bool,
    variant: OpcodeVariant,
    read_flags: i32,
    write_flags: i32,
    priorities: Priorities,
    completion_polling: bool,
    submission_thread: bool,
    force_async: Every,
    adaptive_poll: AdaptivePoll,
    queued: u32,
    outstanding: u32,
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
    /// An engine with these settings over these buffers for this many files. To be called on the thread that will do
    /// the I/O.
    ///
    /// # Errors
    /// The call that the kernel refused, with its likely cause.
    pub fn new(
        settings: &Settings,
        arena: Arena<'arena>,
        files: usize,
    ) -> Result<IoUringEngine<'arena>, SetupError> {
        let ring = build_ring(settings, arena.count())?;
        let registered_files =
            settings.registered_files || (settings.submission_thread && !ring.polls_any_file());
        if registered_files {
            let closed = vec![-1; files];
            ring.register_files(&closed)
                .map_err(|error| SetupError::new(SetupStep::RegisterFiles, &error))?;
        }
        let mut engine = IoUringEngine {
            variant: OpcodeVariant::Plain,
            files: AttachedFiles::new(files),
            registered_files,
            read_flags: read_flags(settings).0,
            write_flags: write_flags(settings).0,
            priorities: Priorities::new(&[]),
            completion_polling: settings.hipri,
            submission_thread: settings.submission_thread,
            force_async: Every::new(settings.force_async_every),
            adaptive_poll: AdaptivePoll::default(),
            queued: 0,
            outstanding: 0,
            ring,
            arena,
        };
        engine.variant = engine.choose_variant(settings)?;
        Ok(engine)
    }

    fn choose_variant(&self, settings: &Settings) -> Result<OpcodeVariant, SetupError> {
        if settings.fixed_buffers {
            let slots_per_buffer = self.register_buffers()?;
            return Ok(OpcodeVariant::Fixed { slots_per_buffer });
        }
        if settings.nonvectored && self.knows_plain_transfers() {
            return Ok(OpcodeVariant::Plain);
        }
        let empty = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };
        Ok(OpcodeVariant::Vectored(vec![empty; self.arena.count() as usize].into_boxed_slice()))
    }

    /// Whether the kernel has `READ` and `WRITE`; one without the probe (before 5.6) has not.
    fn knows_plain_transfers(&self) -> bool {
        let mut probe = Probe::new();
        let probed = self.ring.submitter().register_probe(&mut probe).is_ok();
        probed && probe.is_supported(opcode::Read::CODE) && probe.is_supported(opcode::Write::CODE)
    }

    /// Registers the whole arena in as few buffers as the kernel's limit of 1 GiB for one allows; returns how many
    /// slots each holds.
    fn register_buffers(&self) -> Result<u32, SetupError> {
        const BUFFER_BYTES_MAX: usize = 1 << 30;
        let (count, stride_bytes) = (self.arena.count(), self.arena.stride_bytes());
        let fitting = BUFFER_BYTES_MAX.checked_div(stride_bytes).unwrap_or(1).max(1);
        let slots_per_buffer = u32::try_from(fitting).unwrap_or(u32::MAX).min(count).max(1);
        let buffers: Vec<libc::iovec> = (0..count)
            .step_by(slots_per_buffer as usize)
            .map(|first| {
                let slots = slots_per_buffer.min(count - first) as usize;
                let start = self.arena.pointer(first, 0, stride_bytes as u64);
                libc::iovec { iov_base: start.cast(), iov_len: slots * stride_bytes }
            })
            .collect();
        // SAFETY: the buffers tile the arena, which is released after the ring, or never.
        let registered = unsafe { self.ring.register_buffers(&buffers) };
        registered.map_err(|error| SetupError::new(SetupStep::RegisterBuffers, &error))?;
        Ok(slots_per_buffer)
    }

    /// The entry for an operation that goes through the ring.
    #[inline]
    fn entry(&mut self, op: &Op, index: u32) -> Entry {
        let entry = match op.action {
            Action::Read => transfer!(self, op, index, read_flags, Read, ReadFixed, Readv),
            Action::Write => transfer!(self, op, index, write_flags, Write, WriteFixed, Writev),
            Action::Trim | Action::ResetZone => unreachable!("there is no discard in the ring: `is_direct`"),
            Action::Sync => on_file!(self, op, |fd| opcode::Fsync::new(fd).build()),
            Action::DataSync => {
                on_file!(self, op, |fd| opcode::Fsync::new(fd).flags(FsyncFlags::DATASYNC).build())
            }
            Action::RangeSync(flags) => {
                let length = u32::try_from(op.length_bytes).unwrap_or(u32::MAX);
                on_file!(self, op, |fd| {
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

    /// Whether an operation cannot go through this ring. There is no discard in it, and a ring that polls for
    /// completions accepts only reads and writes.
    #[inline]
    fn is_direct(&self, action: Action) -> bool {
        match action {
            Action::Read | Action::Write => false,
            Action::Trim | Action::ResetZone => true,
            Action::Sync | Action::DataSync | Action::RangeSync(_) => self.completion_polling,
        }
    }

    /// Records how many queued operations a system call submitted.
    #[inline]
    fn took(&mut self, taken: usize) -> u32 {
        // The submission thread takes them later, but nothing more has to be done for them.
        let taken = if self.submission_thread { self.queued } else { (taken as u32).min(self.queued) };
        self.queued -= taken;
        taken
    }

    /// Moves at most `max` completions from the ring to `done`; returns how many. No system call.
    #[inline]
    fn drain(&mut self, max: u32, done: &mut Vec<Completion<'arena>>) -> u32 {
        let mut count = 0;
        let mut completions = self.ring.completion();
        while count < max {
            let Some(completion) = completions.next() else { break };
            let slot = Slot::from_index(completion.user_data() as u32);
            done.push(Completion { slot, outcome: Outcome::from_result(i64::from(completion.result())) });
            self.outstanding -= 1;
            count += 1;
        }
        count
    }

    /// Whether polling found a completion, so that there is no need to sleep.
    #[inline]
    fn sees_one(&mut self, wait: Wait) -> bool {
        if wait != Wait::Block || self.completion_polling || !self.adaptive_poll.should_poll() {
            return false;
        }
        let seen = self.ring.poll_for(POLL_NS);
        self.adaptive_poll.record(seen);
        seen
    }

    /// Enters the kernel once: submits the queue, waits until `min` completions are in the ring (0: processes those
    /// that are ready), and returns whether to continue waiting: not after the time limit or a signal.
    #[inline]
    fn enter(&mut self, min: u32, wait: Wait, taken: &mut u32) -> io::Result<bool> {
        let entered = match wait {
            // Without support for time limits this only polls, and the loop calls again.
            Wait::For(_) if !self.ring.has_timed_waits() => self.ring.submit_and_reap(0),
            Wait::For(time_ns) if min > 0 => self.ring.submit_and_reap_within(min, time_ns),
            Wait::Poll | Wait::Block | Wait::For(_) => self.ring.submit_and_reap(min),
        };
        match entered {
            Ok(count) => {
                *taken += self.took(count);
                Ok(wait == Wait::Block)
            }
            Err(error) => self.after_error(error, min, wait),
        }
    }

    /// Handles an error of entering the kernel, which has then submitted nothing.
    #[cold]
    fn after_error(&mut self, error: io::Error, min: u32, wait: Wait) -> io::Result<bool> {
        let in_flight = self.outstanding - self.queued;
        match error.raw_os_error() {
            Some(libc::ETIME | libc::EINTR) => Ok(false),
            // No memory for another request, or no space for its completion: an operation in flight has to end first.
            Some(libc::EAGAIN | libc::EBUSY) if in_flight > 0 => {
                self.ring.wait(min.min(in_flight))?;
                Ok(wait == Wait::Block)
            }
            _ => Err(error),
        }
    }
}

fn build_ring(settings: &Settings, depth: u32) -> Result<Ring, SetupError> {
    let polling =
        SubmissionPolling { idle_ms: SUBMISSION_THREAD_IDLE_MS, cpu: settings.submission_thread_cpu };
    let options = RingOptions {
        entries: depth,
        // Never more completions than slots.
        completion_entries: Some(depth),
        submission_polling: settings.submission_thread.then_some(polling),
        completion_polling: settings.hipri,
    };
    let step = if settings.submission_thread { SetupStep::RingSetupThread } else { SetupStep::RingSetup };
    Ring::build(&options).map_err(|error| SetupError::new(step, &error))
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
        self.files.attach(file, fd)?;
        if self.registered_files {
            self.ring.submitter().register_files_update(file, &[fd.as_raw_fd()])?;
        }
        Ok(())
    }

    fn detach(&mut self, file: FileIndex) {
        if self.registered_files && self.files.get(file) >= 0 {
            // An old entry would only keep the file open as long as the ring.
            let _ = self.ring.submitter().register_files_update(file, &[-1]);
        }
        self.files.detach(file);
    }

    fn arena(&mut self) -> ArenaAccess<'_, 'arena> {
        ArenaAccess::of(&mut self.arena)
    }
}

impl<'arena> QueuedEngine<'arena> for IoUringEngine<'arena> {
    #[inline]
    fn execute_unqueued(&mut self, op: &Op) -> Option<Outcome> {
        self.is_direct(op.action).then(|| sync_and_trim::execute(self.files.get(op.file), op))
    }

    #[inline]
    fn queue(&mut self, op: Op, slot: Slot<'arena>) -> Result<(), Slot<'arena>> {
        let index = slot.into_index();
        let entry = self.entry(&op, index);
        // SAFETY: the entry names a part of the slot's buffer, and the vector kept for the slot. The slot is ours until
        // the completion has been seen, and both live until then (`Drop` waits, or releases neither).
        let pushed = unsafe { self.ring.submission().push(&entry) };
        if pushed.is_err() {
            return Err(Slot::from_index(index));
        }
        self.queued += 1;
        self.outstanding += 1;
        Ok(())
    }

    #[inline]
    fn submit(&mut self) -> io::Result<u32> {
        let mut taken = 0;
        while self.queued > 0 {
            match self.ring.submit() {
                Ok(0) if !self.submission_thread => break,
                Ok(count) => taken += self.took(count),
                Err(error) => match error.raw_os_error() {
                    Some(libc::EINTR) => {}
                    Some(libc::EAGAIN | libc::EBUSY) if self.outstanding > self.queued => break,
                    _ => return Err(error),
                },
            }
        }
        Ok(taken)
    }

    #[inline]
    fn reap(&mut self, min: u32, max: u32, wait: Wait, done: &mut Vec<Completion<'arena>>) -> io::Result<()> {
        let mut got = self.drain(max, done);
        let wanted = match wait {
            // Only a system call shows whether completions are ready.
            Wait::Poll if got == 0 && self.outstanding > 0 => {
                self.enter(0, wait, &mut 0)?;
                self.drain(max, done);
                return Ok(());
            }
            Wait::Poll => 0,
            Wait::Block | Wait::For(_) => min.min(max),
        };
        while got < wanted && self.outstanding > 0 {
            let missing = if self.sees_one(wait) { 0 } else { (wanted - got).min(self.outstanding) };
            let go_on = self.enter(missing, wait, &mut 0)?;
            got += self.drain(max - got, done);
            if !go_on {
                break;
            }
        }
        Ok(())
    }

    #[inline]
    fn submit_and_reap(
        &mut self,
        min: u32,
        max: u32,
        wait: Wait,
        done: &mut Vec<Completion<'arena>>,
    ) -> io::Result<u32> {
        let mut taken = 0;
        if self.queued > 0 {
            // Completions not yet reaped count too: the kernel compares with what is in the ring.
            let wanted = if wait == Wait::Poll { 0 } else { min.min(max) };
            let missing = wanted.min(self.outstanding);
            self.enter(missing, wait, &mut taken)?;
        }
        self.reap(min, max, wait, done)?;
        Ok(taken)
    }
}

impl Drop for IoUringEngine<'_> {
    fn drop(&mut self) {
        while self.outstanding > 0 {
            let seen = self.ring.completion().count() as u32;
            self.outstanding = self.outstanding.saturating_sub(seen);
            if self.outstanding == 0 {
                break;
            }
            match self.ring.submit_and_reap(1) {
                Err(error) if error.raw_os_error() != Some(libc::EINTR) => break,
                _ => {}
            }
        }
        if self.outstanding > 0 {
            // The kernel may still write into the buffers.
            self.arena.leak();
        }
    }
}

/// True for every Nth call; never for 0.
#[derive(Debug)]
struct Every {
    interval: u32,
    left: u32,
}

impl Every {
    fn new(interval: u32) -> Every {
        Every { interval, left: interval }
    }

    #[inline]
    fn next(&mut self) -> bool {
        if self.interval == 0 {
            return false;
        }
        self.left -= 1;
        let yes = self.left == 0;
        if yes {
            self.left = self.interval;
        }
        yes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_third_call_is_true() {
        let mut every = Every::new(3);
        let answers: Vec<bool> = (0..7).map(|_| every.next()).collect();
        assert_eq!(answers, [false, false, true, false, false, true, false]);
        let mut never = Every::new(0);
        assert!(!(0..5).any(|_| never.next()));
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
