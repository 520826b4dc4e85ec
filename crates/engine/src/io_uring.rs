//! io_uring: operations go into a ring shared with the kernel, completions come out of another.
//!
//! Invariant: `outstanding` operations went into the ring and have not been reaped, the last `queued` of them the
//! kernel has not been told of. The arena is let go only when none is outstanding, so the kernel never writes into
//! memory that is somebody else's.
//!
//! The ring belongs to the thread that makes the engine; only that thread may use it.

use std::io;
use std::os::fd::RawFd;

use fiord_plan::{Action, Direction, FileIndex, IoUring as Settings, Op};
use fiord_sys::transfer::RwFlags;
use fiord_sys::uring::{Ring, RingOptions, SubmissionPolling};
use io_uring::squeue::{Entry, Flags};
use io_uring::types::{Fd, Fixed, FsyncFlags};
use io_uring::{Probe, opcode};

use crate::contract::{Arena, Buffers, Completion, Engine, Info, Outcome, QueuedEngine, Slot, Wait};
use crate::direct;
use crate::ended::Ended;
use crate::files::Descriptors;
use crate::lookout::{LOOKOUT_NS, Lookout};
use crate::refused::{Refused, Step};

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

/// Builds the entry of a read or a write, which differ in their opcodes alone.
macro_rules! transfer {
    ($engine:expr, $op:expr, $index:expr, $plain:ident, $fixed:ident, $vectored:ident) => {{
        let pointer = $engine.arena.part($index, $op);
        let length = $op.length_bytes.min(TRANSFER_BYTES_MAX) as u32;
        let (offset, flags) = ($op.offset_bytes, $engine.rw_flags);
        match &mut $engine.way {
            Way::Plain => on_file!($engine, $op, |fd| {
                opcode::$plain::new(fd, pointer, length).offset(offset).rw_flags(flags).build()
            }),
            Way::Fixed { slots_per_buffer } => {
                let buffer = ($index / *slots_per_buffer) as u16;
                on_file!($engine, $op, |fd| {
                    opcode::$fixed::new(fd, pointer, length, buffer).offset(offset).rw_flags(flags).build()
                })
            }
            Way::Vectored(vectors) => {
                let vector = &mut vectors[$index as usize];
                *vector = libc::iovec { iov_base: pointer.cast(), iov_len: length as usize };
                let vector: *const libc::iovec = vector;
                on_file!($engine, $op, |fd| {
                    opcode::$vectored::new(fd, vector, 1).offset(offset).rw_flags(flags).build()
                })
            }
        }
    }};
}

/// The longest transfer one entry can ask for; the kernel would stop a page short of 2 GiB anyway.
const TRANSFER_BYTES_MAX: u64 = 0x7fff_f000;

/// Milliseconds without work after which the submission thread sleeps: the kernel's own default.
const SUBMISSION_THREAD_IDLE_MS: u32 = 1000;

/// The engine.
pub struct IoUring {
    ring: Ring,
    // After the ring, so that the kernel lets go of the buffers first.
    arena: Arena,
    files: Descriptors,
    registered_files: bool,
    way: Way,
    rw_flags: i32,
    completion_polling: bool,
    submission_thread: bool,
    force_async: Every,
    ended: Ended,
    lookout: Lookout,
    queued: u32,
    outstanding: u32,
}

/// How reads and writes name their memory.
#[derive(Debug)]
enum Way {
    /// A pointer and a length.
    Plain,
    /// A vector, one kept for each slot while the kernel reads it.
    Vectored(Box<[libc::iovec]>),
    /// A registered buffer; each holds so many slots.
    Fixed { slots_per_buffer: u32 },
}

impl IoUring {
    /// With these settings, over these buffers, for so many files. Call it on the thread that will do the I/O.
    ///
    /// # Errors
    /// What the kernel refused, and why it probably did.
    pub fn new(settings: &Settings, arena: Arena, files: usize) -> Result<IoUring, Refused> {
        let ring = build_ring(settings, arena.count())?;
        let registered_files =
            settings.registered_files || (settings.submission_thread && !ring.polls_any_file());
        if registered_files {
            let closed = vec![-1; files];
            ring.register_files(&closed).map_err(|error| Refused::new(Step::RegisterFiles, &error))?;
        }
        let mut engine = IoUring {
            way: Way::Plain,
            files: Descriptors::new(files),
            registered_files,
            rw_flags: rw_flags(settings).0,
            completion_polling: settings.hipri,
            submission_thread: settings.submission_thread,
            force_async: Every::new(settings.force_async_every),
            ended: Ended::new(arena.count()),
            lookout: Lookout::default(),
            queued: 0,
            outstanding: 0,
            ring,
            arena,
        };
        engine.way = engine.choose_way(settings)?;
        Ok(engine)
    }

    fn choose_way(&self, settings: &Settings) -> Result<Way, Refused> {
        if settings.fixed_buffers {
            let slots_per_buffer = self.register_buffers()?;
            return Ok(Way::Fixed { slots_per_buffer });
        }
        if settings.nonvectored && self.knows_plain_transfers() {
            return Ok(Way::Plain);
        }
        let empty = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };
        Ok(Way::Vectored(vec![empty; self.arena.count() as usize].into_boxed_slice()))
    }

    /// Whether the kernel has `READ` and `WRITE`; one without the probe (before 5.6) has not.
    fn knows_plain_transfers(&self) -> bool {
        let mut probe = Probe::new();
        let probed = self.ring.submitter().register_probe(&mut probe).is_ok();
        probed && probe.is_supported(opcode::Read::CODE) && probe.is_supported(opcode::Write::CODE)
    }

    /// Registers the whole arena in as few buffers as the kernel's limit of 1 GiB for one allows; returns how many
    /// slots each holds.
    fn register_buffers(&self) -> Result<u32, Refused> {
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
        // SAFETY: the buffers tile the arena, which is let go after the ring, or never.
        let registered = unsafe { self.ring.register_buffers(&buffers) };
        registered.map_err(|error| Refused::new(Step::RegisterBuffers, &error))?;
        Ok(slots_per_buffer)
    }

    /// The entry for an operation that goes through the ring.
    #[inline]
    fn entry(&mut self, op: &Op, index: u32) -> Entry {
        let entry = match op.action {
            Action::Transfer(Direction::Read) => transfer!(self, op, index, Read, ReadFixed, Readv),
            Action::Transfer(_) => transfer!(self, op, index, Write, WriteFixed, Writev),
            Action::Sync => on_file!(self, op, |fd| opcode::Fsync::new(fd).build()),
            Action::DataSync => {
                on_file!(self, op, |fd| opcode::Fsync::new(fd).flags(FsyncFlags::DATASYNC).build())
            }
            Action::RangeSync(flags) => {
                let length = u32::try_from(op.length_bytes).unwrap_or(u32::MAX);
                on_file!(self, op, |fd| {
                    opcode::SyncFileRange::new(fd, length).offset(op.offset_bytes).flags(flags).build()
                })
            }
        };
        let entry = entry.user_data(u64::from(index));
        if self.force_async.next() { entry.flags(Flags::ASYNC) } else { entry }
    }

    /// Whether an operation cannot go through this ring. There is no discard in it, and a ring that polls for
    /// completions takes reads and writes alone.
    #[inline]
    fn is_direct(&self, action: Action) -> bool {
        match action {
            Action::Transfer(Direction::Read | Direction::Write) => false,
            Action::Transfer(Direction::Trim) => true,
            Action::Sync | Action::DataSync | Action::RangeSync(_) => self.completion_polling,
        }
    }

    /// Notes how many queued operations an entry into the kernel took.
    #[inline]
    fn took(&mut self, taken: usize) -> u32 {
        // The submission thread takes them in its own time, but nothing more has to be done for them.
        let taken = if self.submission_thread { self.queued } else { (taken as u32).min(self.queued) };
        self.queued -= taken;
        taken
    }

    /// Moves at most `max` completions that are there to `done`; returns how many. No system call.
    #[inline]
    fn drain(&mut self, max: u32, done: &mut Vec<Completion>) -> u32 {
        let mut count = if self.ended.len() > 0 { self.ended.drain(max, done) } else { 0 };
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

    /// Whether a completion came while it was looked out for; then there is no need to sleep.
    #[inline]
    fn sees_one(&mut self, wait: Wait) -> bool {
        if wait != Wait::Block || self.completion_polling || !self.lookout.is_worth_it() {
            return false;
        }
        let seen = self.ring.watch(LOOKOUT_NS);
        self.lookout.learn(seen);
        seen
    }

    /// Enters the kernel once: hands over what is queued, waits until `min` completions are in the ring (0: finishes
    /// those due), and tells whether waiting may go on: not when the time is up or a signal came.
    #[inline]
    fn enter(&mut self, min: u32, wait: Wait, taken: &mut u32) -> io::Result<bool> {
        let entered = match wait {
            // Without time limits this only looks, and the loop comes by again.
            Wait::For(_) if !self.ring.has_timed_waits() => self.ring.submit_and_reap(0),
            Wait::For(time_ns) if min > 0 => self.ring.submit_and_reap_within(min, time_ns),
            _ => self.ring.submit_and_reap(min),
        };
        match entered {
            Ok(count) => {
                *taken += self.took(count);
                Ok(wait == Wait::Block)
            }
            Err(error) => self.after_error(error, min, wait),
        }
    }

    /// What an error of entering the kernel means; it took nothing then.
    #[cold]
    fn after_error(&mut self, error: io::Error, min: u32, wait: Wait) -> io::Result<bool> {
        let in_flight = self.outstanding - self.queued;
        match error.raw_os_error() {
            Some(libc::ETIME | libc::EINTR) => Ok(false),
            // No memory for another request, or no place for its completion: something in flight has to end first.
            Some(libc::EAGAIN | libc::EBUSY) if in_flight > 0 => {
                self.ring.wait(min.min(in_flight))?;
                Ok(wait == Wait::Block)
            }
            _ => Err(error),
        }
    }
}

fn build_ring(settings: &Settings, depth: u32) -> Result<Ring, Refused> {
    let polling =
        SubmissionPolling { idle_ms: SUBMISSION_THREAD_IDLE_MS, cpu: settings.submission_thread_cpu };
    let options = RingOptions {
        entries: depth,
        // Never more completions than slots.
        completion_entries: Some(depth),
        submission_polling: settings.submission_thread.then_some(polling),
        completion_polling: settings.hipri,
    };
    let step = if settings.submission_thread { Step::RingSetupThread } else { Step::RingSetup };
    Ring::build(&options).map_err(|error| Refused::new(step, &error))
}

fn rw_flags(settings: &Settings) -> RwFlags {
    let uncached = if settings.uncached { RwFlags::UNCACHED } else { RwFlags::NONE };
    let nowait = if settings.nowait { RwFlags::NOWAIT } else { RwFlags::NONE };
    uncached.with(nowait)
}

impl Engine for IoUring {
    const INFO: Info =
        Info { name: "io_uring", summary: "queues shared with the kernel (Linux 5.1)", queued: true };

    fn attach(&mut self, file: FileIndex, fd: RawFd, _length_bytes: u64) -> io::Result<()> {
        self.files.attach(file, fd)?;
        if self.registered_files {
            self.ring.submitter().register_files_update(file, &[fd])?;
        }
        Ok(())
    }

    fn detach(&mut self, file: FileIndex) {
        if self.registered_files && self.files.get(file) >= 0 {
            // An old entry would only keep the file open until the ring goes.
            let _ = self.ring.submitter().register_files_update(file, &[-1]);
        }
        self.files.detach(file);
    }

    fn arena(&mut self) -> Buffers<'_> {
        Buffers::of(&mut self.arena)
    }
}

impl QueuedEngine for IoUring {
    #[inline]
    fn queue(&mut self, op: Op, slot: Slot) -> Result<(), Slot> {
        if self.is_direct(op.action) {
            let outcome = direct::call(self.files.get(op.file), &op);
            self.ended.push(slot, outcome);
            return Ok(());
        }
        let index = slot.into_index();
        let entry = self.entry(&op, index);
        // SAFETY: the entry names a part of the slot's buffer, and the vector kept for the slot. The slot is ours until
        // the completion has been seen, and both outlive that (`Drop` waits, or lets go of neither).
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
    fn reap(&mut self, min: u32, max: u32, wait: Wait, done: &mut Vec<Completion>) -> io::Result<()> {
        let mut got = self.drain(max, done);
        let wanted = match wait {
            // Whether anything is due can only be seen by asking for it.
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
        done: &mut Vec<Completion>,
    ) -> io::Result<u32> {
        let mut taken = 0;
        if self.queued > 0 {
            // Completions not yet reaped count too: the kernel compares with what is in the ring.
            let wanted = if wait == Wait::Poll { 0 } else { min.min(max) };
            let missing = wanted.saturating_sub(self.ended.len()).min(self.outstanding);
            self.enter(missing, wait, &mut taken)?;
        }
        self.reap(min, max, wait, done)?;
        Ok(taken)
    }
}

impl Drop for IoUring {
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

/// Says yes to each so many-th question; 0 is never.
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
    fn every_third_question_is_a_yes() {
        let mut every = Every::new(3);
        let answers: Vec<bool> = (0..7).map(|_| every.next()).collect();
        assert_eq!(answers, [false, false, true, false, false, true, false]);
        let mut never = Every::new(0);
        assert!(!(0..5).any(|_| never.next()));
    }

    #[test]
    fn settings_become_flags() {
        let settings = Settings { uncached: true, nowait: true, ..Settings::default() };
        assert_eq!(rw_flags(&settings).0, libc::RWF_DONTCACHE | libc::RWF_NOWAIT);
        assert_eq!(rw_flags(&Settings::default()), RwFlags::NONE);
    }
}
