//! A ring with the operations that are in it: what the engines on io_uring have in common.
//!
//! Invariant: `outstanding` operations went into the ring and have not been reaped, the last `queued` of them not
//! yet submitted. The arena is released only when none is outstanding, so the kernel never writes into memory that has
//! been reused.
//!
//! The ring belongs to the thread that creates the engine; only that thread may use it.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use fiord_plan::FileIndex;
use fiord_sys::uring::{Ring, RingOptions, SubmissionPolling};
use fiord_sys::width::{low_u32, to_u32};
use io_uring::{cqueue, squeue};

use crate::adaptive_poll::{AdaptivePoll, POLL_NS};
use crate::attached_files::AttachedFiles;
use crate::contract::{Arena, ArenaAccess, Completion, Outcome, Slot, Wait};
use crate::setup_error::{SetupError, SetupStep};

/// Milliseconds without work after which the submission thread sleeps: the kernel's own default.
const SUBMISSION_THREAD_IDLE_MS: u32 = 1000;

/// What a job wants of its ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RingUse {
    /// Files registered with the ring.
    pub registered_files: bool,
    /// A kernel thread polls the submission queue.
    pub submission_thread: bool,
    /// The CPU of that thread.
    pub submission_thread_cpu: Option<u32>,
    /// Completions are polled (`IORING_SETUP_IOPOLL`).
    pub hipri: bool,
    /// An entry stays as it is until its operation has completed.
    pub keeps_entries: bool,
}

/// Builds an entry on an operation's file, named by its place in the registered table or by its descriptor.
macro_rules! on_file {
    ($queue:expr, $op:expr, |$fd:ident| $entry:expr) => {
        if $queue.registered_files() {
            let $fd = io_uring::types::Fixed($op.file);
            $entry
        } else {
            let $fd = io_uring::types::Fd($queue.files.get($op.file));
            $entry
        }
    };
}
pub(crate) use on_file;

/// The ring, the buffers and the open files of an engine.
pub(crate) struct RingQueue<'arena, S = squeue::Entry, C = cqueue::Entry>
where
    S: squeue::EntryMarker,
    C: cqueue::EntryMarker,
{
    pub(crate) ring: Ring<S, C>,
    // After the ring, so that the kernel releases the buffers first.
    pub(crate) arena: Arena<'arena>,
    pub(crate) files: AttachedFiles,
    registered_files: bool,
    completion_polling: bool,
    submission_thread: bool,
    adaptive_poll: AdaptivePoll,
    queued: u32,
    outstanding: u32,
    kept: Option<KeptEntries>,
}

/// The entries of a ring that are still in use, for a kernel that reads one again: Linux from 6.17 on, which no longer
/// copies a command when it submits it, and finds a later one in its place when it has to repeat it (the device had no free
/// request). Seen on 6.18: a quarter of the discards was lost where more were in flight than `nr_requests`, none with this.
#[derive(Debug)]
struct KeptEntries {
    /// By place in the ring, which has a power of two of them.
    in_use: Box<[bool]>,
    /// How many entries were added, modulo 2^32.
    added: u32,
    /// By slot.
    places: Box<[usize]>,
}

/// So many entries has a ring that keeps them for each slot, so that it is rarely full because of an old one.
const ENTRIES_PER_SLOT: u32 = 4;

/// The most entries of a ring: a limit of the kernel.
const ENTRIES_MAX: u32 = 32_768;

impl KeptEntries {
    fn new(entries: u32, slots: u32) -> KeptEntries {
        let (in_use, places) = (vec![false; entries as usize], vec![0; slots as usize]);
        KeptEntries { in_use: in_use.into(), added: 0, places: places.into() }
    }

    fn next(&self) -> usize {
        self.added as usize & (self.in_use.len() - 1)
    }

    /// Whether the place of the next entry is free.
    fn has_room(&self) -> bool {
        !self.in_use[self.next()]
    }

    /// The entry of this slot was added.
    fn add(&mut self, slot: u32) {
        let place = self.next();
        self.in_use[place] = true;
        self.places[slot as usize] = place;
        self.added = self.added.wrapping_add(1);
    }

    /// The operation of this slot has completed.
    fn free(&mut self, slot: u32) {
        self.in_use[self.places[slot as usize]] = false;
    }
}

impl<'arena, S: squeue::EntryMarker, C: cqueue::EntryMarker> RingQueue<'arena, S, C> {
    /// A ring over these buffers for this many files. To be called on the thread that will do the I/O.
    ///
    /// # Errors
    /// The call that the kernel refused, with its likely cause.
    pub(crate) fn new(
        wanted: &RingUse,
        arena: Arena<'arena>,
        files: usize,
    ) -> Result<RingQueue<'arena, S, C>, SetupError> {
        let ring: Ring<S, C> = build_ring(wanted, arena.count())?;
        let entries = ring.entries();
        let kept = wanted.keeps_entries.then(|| KeptEntries::new(entries, arena.count()));
        let registered_files =
            wanted.registered_files || (wanted.submission_thread && !ring.polls_any_file());
        if registered_files {
            let closed = vec![-1; files];
            ring.register_files(&closed)
                .map_err(|error| SetupError::new(SetupStep::RegisterFiles, &error))?;
        }
        Ok(RingQueue {
            files: AttachedFiles::new(files),
            registered_files,
            completion_polling: wanted.hipri,
            submission_thread: wanted.submission_thread,
            adaptive_poll: AdaptivePoll::default(),
            queued: 0,
            outstanding: 0,
            kept,
            ring,
            arena,
        })
    }

    /// Whether entries name files by their place in the registered table.
    #[inline]
    pub(crate) fn registered_files(&self) -> bool {
        self.registered_files
    }

    /// Whether completions are polled.
    #[inline]
    pub(crate) fn completion_polling(&self) -> bool {
        self.completion_polling
    }

    /// Registers the whole arena in as few buffers as the kernel's limit of 1 GiB for one allows; returns how many
    /// slots each holds.
    pub(crate) fn register_buffers(&self) -> Result<u32, SetupError> {
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

    /// A file was opened.
    pub(crate) fn attach(&mut self, file: FileIndex, fd: BorrowedFd<'_>) -> io::Result<()> {
        self.files.attach(file, fd)?;
        if self.registered_files {
            self.ring.submitter().register_files_update(file, &[fd.as_raw_fd()])?;
        }
        Ok(())
    }

    /// A file is about to be closed.
    pub(crate) fn detach(&mut self, file: FileIndex) {
        if self.registered_files && self.files.get(file) >= 0 {
            // An old entry would only keep the file open as long as the ring.
            let _ = self.ring.submitter().register_files_update(file, &[-1]);
        }
        self.files.detach(file);
    }

    /// The buffers.
    pub(crate) fn access(&mut self) -> ArenaAccess<'_, 'arena> {
        ArenaAccess::of(&mut self.arena)
    }

    /// Adds an entry whose user data begin with the number of its slot; or returns the slot, if the queue is full.
    ///
    /// # Safety
    ///
    /// The entry names no memory but a part of the slot's buffer, and what is kept for the slot as long as this queue.
    #[inline]
    pub(crate) unsafe fn push(&mut self, entry: &S, index: u32) -> Result<(), Slot<'arena>> {
        if self.kept.as_ref().is_some_and(|kept| !kept.has_room()) {
            return Err(Slot::from_index(index));
        }
        // SAFETY: the slot is ours until the completion has been seen, and its memory lives until then (`Drop` waits, or
        // releases nothing); the caller vouches for the rest.
        let pushed = unsafe { self.ring.submission().push(entry) };
        if pushed.is_err() {
            return Err(Slot::from_index(index));
        }
        if let Some(kept) = &mut self.kept {
            kept.add(index);
        }
        self.queued += 1;
        self.outstanding += 1;
        Ok(())
    }

    /// Waits for what is in flight, without handing it out; whether nothing is in flight any more. Before the end.
    pub(crate) fn wait_until_idle(&mut self) -> bool {
        while self.outstanding > 0 {
            let seen = to_u32(self.ring.completion().count());
            self.outstanding = self.outstanding.saturating_sub(seen);
            if self.outstanding == 0 {
                break;
            }
            match self.ring.submit_and_reap(1) {
                Err(error) if error.raw_os_error() != Some(libc::EINTR) => break,
                _ => {}
            }
        }
        self.outstanding == 0
    }

    /// Records how many queued operations a system call submitted.
    #[inline]
    fn took(&mut self, taken: usize) -> u32 {
        // The submission thread takes them later, but nothing more has to be done for them.
        let taken = if self.submission_thread { self.queued } else { to_u32(taken).min(self.queued) };
        self.queued -= taken;
        taken
    }

    /// Moves at most `max` completions from the ring to `done`; returns how many. No system call.
    #[inline]
    fn drain(
        &mut self,
        max: u32,
        done: &mut Vec<Completion<'arena>>,
        outcome: &mut impl FnMut(&C) -> Outcome,
    ) -> u32 {
        let mut count = 0;
        let mut completions = self.ring.completion();
        while count < max {
            let Some(completion) = completions.next() else { break };
            let index = low_u32(completion.user_data());
            if let Some(kept) = &mut self.kept {
                kept.free(index);
            }
            let slot = Slot::from_index(index);
            done.push(Completion { slot, outcome: outcome(&completion) });
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

    /// As `QueuedEngine::submit`.
    #[inline]
    pub(crate) fn submit(&mut self) -> io::Result<u32> {
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

    /// As `QueuedEngine::reap`; `outcome` tells how the operation of a completion ended.
    #[inline]
    pub(crate) fn reap(
        &mut self,
        min: u32,
        max: u32,
        wait: Wait,
        done: &mut Vec<Completion<'arena>>,
        mut outcome: impl FnMut(&C) -> Outcome,
    ) -> io::Result<()> {
        let mut got = self.drain(max, done, &mut outcome);
        let wanted = match wait {
            // Only a system call shows whether completions are ready.
            Wait::Poll if got == 0 && self.outstanding > 0 => {
                self.enter(0, wait, &mut 0)?;
                self.drain(max, done, &mut outcome);
                return Ok(());
            }
            Wait::Poll => 0,
            Wait::Block | Wait::For(_) => min.min(max),
        };
        while got < wanted && self.outstanding > 0 {
            let missing = if self.sees_one(wait) { 0 } else { (wanted - got).min(self.outstanding) };
            let go_on = self.enter(missing, wait, &mut 0)?;
            got += self.drain(max - got, done, &mut outcome);
            if !go_on {
                break;
            }
        }
        Ok(())
    }

    /// As `QueuedEngine::submit_and_wait`.
    #[inline]
    pub(crate) fn submit_and_wait(
        &mut self,
        done: &mut Vec<Completion<'arena>>,
        outcome: impl FnMut(&C) -> Outcome,
    ) -> io::Result<u32> {
        let mut taken = 0;
        if self.queued > 0 {
            // A completion not yet reaped counts too: the kernel compares with what is in the ring.
            self.enter(self.outstanding.min(1), Wait::Block, &mut taken)?;
        }
        self.reap(1, 1, Wait::Block, done, outcome)?;
        Ok(taken)
    }
}

/// The number of the registered buffer that holds a slot; the kernel registers at most 2^14 of them.
#[inline]
pub(crate) fn registered_buffer(index: u32, slots_per_buffer: u32) -> u16 {
    ((index / slots_per_buffer) & 0xffff) as u16
}

fn build_ring<S, C>(wanted: &RingUse, depth: u32) -> Result<Ring<S, C>, SetupError>
where
    S: squeue::EntryMarker,
    C: cqueue::EntryMarker,
{
    let polling = SubmissionPolling { idle_ms: SUBMISSION_THREAD_IDLE_MS, cpu: wanted.submission_thread_cpu };
    let entries = match wanted.keeps_entries {
        true => depth.saturating_mul(ENTRIES_PER_SLOT).min(ENTRIES_MAX).max(depth),
        false => depth,
    };
    let options = RingOptions {
        entries,
        // Never more completions than slots, but the kernel wants no fewer than entries.
        completion_entries: Some(entries),
        submission_polling: wanted.submission_thread.then_some(polling),
        completion_polling: wanted.hipri,
    };
    let step = match (wanted.submission_thread, S::BUILD_FLAGS) {
        (true, _) => SetupStep::RingSetupThread,
        (false, 0) => SetupStep::RingSetup,
        (false, _) => SetupStep::RingSetupCommands,
    };
    Ring::build(&options).map_err(|error| SetupError::new(step, &error))
}

impl<S: squeue::EntryMarker, C: cqueue::EntryMarker> Drop for RingQueue<'_, S, C> {
    fn drop(&mut self) {
        if !self.wait_until_idle() {
            // The kernel may still write into the buffers.
            self.arena.leak();
        }
    }
}

/// True for every Nth call; never for 0.
#[derive(Debug)]
pub(crate) struct Every {
    interval: u32,
    left: u32,
}

impl Every {
    /// With this interval.
    pub(crate) fn new(interval: u32) -> Every {
        Every { interval, left: interval }
    }

    /// Whether this call is one of them.
    #[inline]
    pub(crate) fn next(&mut self) -> bool {
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
    fn an_entry_is_not_replaced_before_its_operation_has_completed() {
        let mut kept = KeptEntries::new(4, 2);
        kept.added = u32::MAX - 2;
        kept.add(0);
        for _ in 0..3 {
            assert!(kept.has_room());
            kept.add(1);
            kept.free(1);
        }
        assert!(!kept.has_room(), "the place of the first, which is in flight");
        kept.free(0);
        assert!(kept.has_room());
    }

    #[test]
    fn every_third_call_is_true() {
        let mut every = Every::new(3);
        let answers: Vec<bool> = (0..7).map(|_| every.next()).collect();
        assert_eq!(answers, [false, false, true, false, false, true, false]);
        let mut never = Every::new(0);
        assert!(!(0..5).any(|_| never.next()));
    }
}
