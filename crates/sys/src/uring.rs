//! io_uring: a ring with the best setup the kernel supports, and which flags it supports.
//!
//! Invariant: what the caller requires (submission polling, completion polling, queue sizes) is never dropped; only
//! flags that make the same I/O cheaper are, and `setup_flag_support` reports which.
//!
//! A ring belongs to the thread that builds it: with a single issuer the kernel refuses others, so it is not `Send`.

use crate::clock;
use crate::errno::{Errno, check_len, check_long};
use crate::width::to_u32;
use io_uring::{CompletionQueue, EnterFlags, IoUring, SubmissionQueue, Submitter, cqueue, squeue};
use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsRawFd, RawFd};

mod flag_support;
mod options;
mod setup_flags;
mod trims;

pub use flag_support::{FlagSupport, setup_flag_support};
pub use options::{RingOptions, SubmissionPolling};
pub use setup_flags::SetupFlag;
pub use trims::{DISCARD, discard_data, queues_discards};

/// A ring of submissions and one of completions.
///
/// Its entries are the small ones, or those that hold a whole command of a device (`Entry128` and `Entry32`).
///
/// Dropping it does not wait for I/O in flight: whoever pushed an entry has to see it complete first, or must never use
/// its buffers again.
pub struct Ring<S = squeue::Entry, C = cqueue::Entry>
where
    S: squeue::EntryMarker,
    C: cqueue::EntryMarker,
{
    ring: IoUring<S, C>,
    /// The index of the ring's descriptor registered with this thread, or why it is not registered.
    registration: Result<i32, Errno>,
    /// The argument of `io_uring_enter`: that index, or the descriptor.
    handle: i32,
    enter_flags: u32,
    polls: bool,
    /// Completions are finished only when this thread enters the kernel for them.
    deferred: bool,
    submission_polled: bool,
    of_this_thread: PhantomData<*const ()>,
}

impl<S: squeue::EntryMarker, C: cqueue::EntryMarker> Ring<S, C> {
    /// Builds a ring for the calling thread, with every flag that helps and that this kernel supports. The error is
    /// that of the plainest setup: `ENOSYS` and `EPERM` mean that the kernel or a sandbox forbids io_uring, `ENOMEM`
    /// the limit on locked memory, `EINVAL` a requirement that this kernel cannot meet.
    pub fn build(options: &RingOptions) -> io::Result<Ring<S, C>> {
        Ring::build_with(options, &setup_flags::best_for(options)?)
    }

    fn build_with(options: &RingOptions, flags: &[SetupFlag]) -> io::Result<Ring<S, C>> {
        let ring = setup_flags::builder(options, flags).build(options.entries)?;
        let descriptor = ring.as_raw_fd();
        let registration = register_ring_fd(descriptor);
        Ok(Ring {
            ring,
            registration,
            handle: registration.unwrap_or(descriptor),
            enter_flags: registration.map_or(0, |_| EnterFlags::REGISTERED_RING.bits()),
            polls: options.completion_polling,
            deferred: flags.contains(&SetupFlag::DeferTaskrun),
            submission_polled: options.submission_polling.is_some(),
            of_this_thread: PhantomData,
        })
    }

    /// Entries of its submission queue: a power of two.
    pub fn entries(&self) -> u32 {
        self.ring.params().sq_entries()
    }

    /// Whether a wait can have a time limit (5.11): otherwise `submit_and_reap_within` returns `EINVAL`.
    pub fn has_timed_waits(&self) -> bool {
        self.ring.params().is_feature_ext_arg()
    }

    /// Whether a submission thread accepts files that are not registered (5.11): otherwise they fail with `EBADF`.
    pub fn polls_any_file(&self) -> bool {
        self.ring.params().is_feature_sqpoll_nonfixed()
    }

    /// The submission queue; pushing to it is `unsafe` under the contract of the entry pushed. `submit` sees the entries
    /// once the queue is dropped or synced.
    #[inline]
    pub fn submission(&mut self) -> SubmissionQueue<'_, S> {
        self.ring.submission()
    }

    /// The completion queue, as far as the kernel has filled it.
    #[inline]
    pub fn completion(&mut self) -> CompletionQueue<'_, C> {
        self.ring.completion()
    }

    /// For registering files and buffers. It does not enter through the registered descriptor: submit with `submit`.
    pub fn submitter(&self) -> Submitter<'_> {
        self.ring.submitter()
    }

    /// Submits what was pushed; returns how many entries the kernel consumed. No system call if a kernel thread is awake
    /// to pick them up, or if there is nothing to submit.
    #[inline]
    pub fn submit(&mut self) -> io::Result<usize> {
        self.enter(0, false, None)
    }

    /// Submits what was pushed and waits for `min` completions (0: finishes those that are due without waiting, and
    /// without a system call if it is known that none is). Returns how many entries were consumed.
    #[inline]
    pub fn submit_and_reap(&mut self, min: u32) -> io::Result<usize> {
        self.enter(min, true, None)
    }

    /// The same, waiting for at most `time_ns`, then `ETIME`.
    #[inline]
    pub fn submit_and_reap_within(&mut self, min: u32, time_ns: u64) -> io::Result<usize> {
        self.enter(min, true, Some(time_ns))
    }

    /// Waits for `min` completions, and submits nothing.
    pub fn wait(&mut self, min: u32) -> io::Result<()> {
        let flags = self.enter_flags | EnterFlags::GETEVENTS.bits();
        enter_raw(self.handle, 0, min, flags, None).map(drop)
    }

    #[inline]
    fn enter(&mut self, min: u32, reap: bool, time_ns: Option<u64>) -> io::Result<usize> {
        let none_there = self.ring.completion().is_empty();
        let queue = self.ring.submission();
        let pending = to_u32(queue.len());
        let mut flags = self.enter_flags;
        // Completions that are due are finished when this thread enters; those that are deferred, or of a polled device, are
        // never announced.
        let due = queue.cq_overflow() || queue.taskrun();
        let must_reap = due || (reap && (self.polls || (self.deferred && none_there)));
        if min > 0 || must_reap {
            flags |= EnterFlags::GETEVENTS.bits();
        }
        if self.submission_polled {
            if queue.need_wakeup() {
                flags |= EnterFlags::SQ_WAKEUP.bits();
            } else if min == 0 && !must_reap {
                return Ok(pending as usize);
            }
        } else if pending == 0 && min == 0 && !(reap && must_reap) {
            return Ok(0);
        }
        drop(queue);
        enter_raw(self.handle, pending, min, flags, time_ns)
    }

    /// Polls for completions that are there or due, for at most this long; returns whether it found one. Without a system
    /// call, unless they are deferred. It polls a few times a microsecond: more often would contend with the kernel for the
    /// cache line.
    pub fn poll_for(&mut self, time_ns: u64) -> bool {
        const PAUSES_BETWEEN_LOOKS: u32 = 16;
        let end_ns = clock::monotonic_ns() + time_ns;
        loop {
            if self.deferred && self.wait(0).is_err() {
                return false;
            }
            let queue = self.ring.submission();
            let is_due = queue.taskrun() || queue.cq_overflow();
            drop(queue);
            if is_due || !self.ring.completion().is_empty() {
                return true;
            }
            if clock::monotonic_ns() >= end_ns {
                return false;
            }
            (0..PAUSES_BETWEEN_LOOKS).for_each(|_| std::hint::spin_loop());
        }
    }

    /// Registers open files, to be used by index afterwards (`types::Fixed`).
    pub fn register_files(&self, files: &[RawFd]) -> io::Result<()> {
        self.ring.submitter().register_files(files)
    }

    /// Registers buffers, to be used by index afterwards: their pages are pinned and mapped once. `ENOMEM` means the
    /// limit on locked memory (`ulimit -l`).
    ///
    /// # Safety
    ///
    /// Every buffer is valid until it is unregistered or the ring is dropped.
    pub unsafe fn register_buffers(&self, buffers: &[libc::iovec]) -> io::Result<()> {
        // SAFETY: the caller vouches for the buffers.
        unsafe { self.ring.submitter().register_buffers(buffers) }
    }
}

impl<S: squeue::EntryMarker, C: cqueue::EntryMarker> Drop for Ring<S, C> {
    fn drop(&mut self) {
        if let Ok(number) = self.registration {
            // A registered descriptor keeps the ring alive until the thread ends.
            let _ = update_ring_fd(self.ring.as_raw_fd(), UNREGISTER_RING_FDS, number.cast_unsigned(), 0);
        }
    }
}

/// `struct io_uring_getevents_arg` of `linux/io_uring.h`.
#[repr(C)]
struct WaitArgument {
    signals: u64,
    signals_size: u32,
    least_wait_us: u32,
    /// Where a `[seconds, nanoseconds]` is.
    time: u64,
}

#[inline]
fn enter_raw(handle: i32, pending: u32, min: u32, flags: u32, time_ns: Option<u64>) -> io::Result<usize> {
    let call = libc::SYS_io_uring_enter;
    let taken = match time_ns {
        None => {
            let no_signals: *const libc::sigset_t = std::ptr::null();
            // SAFETY: the entries handed over were pushed under the contract of `SubmissionQueue::push`; no other
            // memory is passed.
            unsafe { libc::syscall(call, handle, pending, min, flags, no_signals, 0usize) }
        }
        Some(time_ns) => {
            let time = [time_ns / 1_000_000_000, time_ns % 1_000_000_000];
            let time = (&raw const time) as u64;
            let argument = WaitArgument { signals: 0, signals_size: 0, least_wait_us: 0, time };
            let (flags, size) = (flags | EnterFlags::EXT_ARG.bits(), size_of::<WaitArgument>());
            // SAFETY: as above, and both structures passed live through the call.
            unsafe { libc::syscall(call, handle, pending, min, flags, &raw const argument, size) }
        }
    };
    check_len(taken)
}

const REGISTER_RING_FDS: libc::c_uint = 20;
const UNREGISTER_RING_FDS: libc::c_uint = 21;

/// `struct io_uring_rsrc_update` of `linux/io_uring.h`.
#[repr(C)]
struct RingFdUpdate {
    offset: u32,
    reserved: u32,
    data: u64,
}

/// Registers a ring's descriptor with the calling thread; returns its index. The `io-uring` crate can do this too, but
/// keeps the index only in its `Submitter`.
fn register_ring_fd(fd: RawFd) -> Result<i32, Errno> {
    const ANY_PLACE: u32 = u32::MAX;
    let registered = update_ring_fd(fd, REGISTER_RING_FDS, ANY_PLACE, u64::from(fd.cast_unsigned()));
    registered.map_err(|error| Errno::of(&error).unwrap_or(Errno(libc::EIO)))
}

fn update_ring_fd(fd: RawFd, operation: libc::c_uint, offset: u32, data: u64) -> io::Result<i32> {
    let mut update = RingFdUpdate { offset, reserved: 0, data };
    let call = libc::SYS_io_uring_register;
    // SAFETY: the kernel reads and writes one update, which lives through the call.
    check_long(unsafe { libc::syscall(call, fd, operation, &raw mut update, 1u32) })?;
    Ok(update.offset.cast_signed())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TempFile;
    use io_uring::{opcode, types};

    fn ring(options: RingOptions) -> Option<Ring> {
        match Ring::build(&options) {
            Ok(ring) => Some(ring),
            Err(error) => {
                fiord_testing::skipped(format_args!("{options:?}: {error}"));
                None
            }
        }
    }

    fn write_and_read_back(mut ring: Ring) {
        let temp = TempFile::new("uring");
        let fd = types::Fd(temp.file.as_raw_fd());
        let (out, mut back) = ([0x3cu8; 4096], [0u8; 4096]);
        let write = opcode::Write::new(fd, out.as_ptr(), 4096).offset(4096).build().user_data(1);
        let read = opcode::Read::new(fd, back.as_mut_ptr(), 4096).offset(4096).build().user_data(2);
        for entry in [write, read] {
            // SAFETY: the buffers live to the end of this function, which waits for each completion.
            unsafe { ring.submission().push(&entry) }.unwrap();
            assert_eq!(ring.submit_and_reap(1).unwrap(), 1);
            let done = ring.completion().next().unwrap();
            assert_eq!((done.user_data(), done.result()), (entry.get_user_data(), 4096));
        }
        assert_eq!(back, out);
    }

    #[test]
    fn the_best_setup_moves_bytes() {
        let Some(ring) = ring(RingOptions { entries: 8, ..RingOptions::default() }) else { return };
        write_and_read_back(ring);
    }

    #[test]
    fn a_polling_kernel_thread_moves_bytes() {
        let polling = SubmissionPolling { idle_ms: 10, cpu: None };
        let options = RingOptions { entries: 8, submission_polling: Some(polling), ..RingOptions::default() };
        if let Some(ring) = ring(options) {
            write_and_read_back(ring);
        }
    }

    #[test]
    fn every_set_of_flags_moves_bytes_or_is_unsupported() {
        let options = RingOptions { entries: 8, completion_entries: Some(64), ..RingOptions::default() };
        for flags in setup_flags::LADDER {
            match Ring::build_with(&options, flags) {
                Ok(ring) => write_and_read_back(ring),
                Err(error) => fiord_testing::skipped(format_args!("{flags:?}: {error}")),
            }
        }
    }

    #[test]
    fn a_wait_within_a_time_ends_with_it() {
        let Some(mut ring) = ring(RingOptions { entries: 2, ..RingOptions::default() }) else { return };
        if !ring.has_timed_waits() {
            fiord_testing::skip!("waits have no time limit here");
        }
        let error = ring.submit_and_reap_within(1, 1000).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ETIME));
        // SAFETY: it names no memory.
        unsafe { ring.submission().push(&opcode::Nop::new().build().user_data(7)) }.unwrap();
        assert_eq!(ring.submit_and_reap_within(1, u64::MAX / 2).unwrap(), 1);
        assert_eq!(ring.completion().next().unwrap().user_data(), 7);
    }

    #[test]
    fn nothing_to_submit_is_no_system_call_and_no_error() {
        let Some(mut ring) = ring(RingOptions { entries: 2, ..RingOptions::default() }) else { return };
        assert_eq!(ring.submit().unwrap(), 0);
        assert_eq!(ring.submit_and_reap(0).unwrap(), 0);
    }

    #[test]
    fn a_registered_file_and_buffer_move_bytes() {
        let Some(mut ring) = ring(RingOptions { entries: 2, ..RingOptions::default() }) else { return };
        let temp = TempFile::new("uring-fixed");
        ring.register_files(&[temp.file.as_raw_fd()]).unwrap();
        let mut bytes = [0x11u8; 4096];
        let vector = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
        // SAFETY: the buffer outlives the ring's use of it: the one request is waited for below.
        if let Err(error) = unsafe { ring.register_buffers(&[vector]) } {
            fiord_testing::skip!("buffers cannot be registered: {error}");
        }
        let entry = opcode::WriteFixed::new(types::Fixed(0), bytes.as_ptr(), 4096, 0).build();
        // SAFETY: as above.
        unsafe { ring.submission().push(&entry) }.unwrap();
        ring.submit_and_reap(1).unwrap();
        assert_eq!(ring.completion().next().unwrap().result(), 4096);
        drop(ring);
        assert_eq!(std::fs::read(&temp.path).unwrap(), bytes);
    }
}
