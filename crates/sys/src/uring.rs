//! io_uring: a ring with the best setup the kernel takes, and a record of what it would not.
//!
//! Invariant: what the caller requires (submission polling, completion polling, queue sizes) is never dropped; only
//! hints that make the same I/O cheaper are, and `standings` tells what became of each.
//!
//! A ring belongs to the thread that builds it: with a single issuer the kernel refuses others, so it is not `Send`.

use crate::clock;
use crate::errno::{Errno, check_len, check_long};
use io_uring::{Builder, CompletionQueue, EnterFlags, IoUring, SubmissionQueue, Submitter};
use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsRawFd, RawFd};

mod hints;

pub use hints::{Hint, Standing, standings};

/// A kernel thread that picks submissions up (`IORING_SETUP_SQPOLL`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubmissionPolling {
    /// Milliseconds without work after which it sleeps.
    pub idle_ms: u32,
    /// The processor it is bound to.
    pub cpu: Option<u32>,
}

/// What a ring must have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RingOptions {
    /// Submission queue entries; the kernel rounds up to a power of two and caps at its limit.
    pub entries: u32,
    /// Completion queue entries; twice the submission queue's by default.
    pub completion_entries: Option<u32>,
    /// Submissions are picked up by a kernel thread.
    pub submission_polling: Option<SubmissionPolling>,
    /// Completions are polled for in the device (`IORING_SETUP_IOPOLL`).
    pub completion_polling: bool,
}

/// A ring of submissions and one of completions.
///
/// Dropping it does not wait for what is in flight: whoever pushed it has to see it complete first, or leave its
/// buffers alone for good.
pub struct Ring {
    ring: IoUring,
    /// The number the ring's descriptor is registered by with this thread, or why it is not.
    registration: Result<i32, Errno>,
    /// What `io_uring_enter` is given: that number, or the descriptor.
    handle: i32,
    enter_flags: u32,
    polls: bool,
    submission_polled: bool,
    of_this_thread: PhantomData<*const ()>,
}

impl Ring {
    /// Builds a ring on and for the calling thread, with every hint that helps and that this kernel takes. The error
    /// is the plainest setup's: `ENOSYS` and `EPERM` mean that the kernel or a sandbox forbids io_uring, `ENOMEM` the
    /// limit on locked memory, `EINVAL` a requirement that this kernel cannot meet.
    pub fn build(options: &RingOptions) -> io::Result<Ring> {
        Ring::build_with(options, &hints::best_for(options)?)
    }

    fn build_with(options: &RingOptions, hints: &[Hint]) -> io::Result<Ring> {
        let ring = builder(options, hints).build(options.entries)?;
        let descriptor = ring.as_raw_fd();
        let registration = register_ring_fd(descriptor);
        Ok(Ring {
            ring,
            registration,
            handle: registration.unwrap_or(descriptor),
            enter_flags: registration.map_or(0, |_| EnterFlags::REGISTERED_RING.bits()),
            polls: options.completion_polling,
            submission_polled: options.submission_polling.is_some(),
            of_this_thread: PhantomData,
        })
    }

    /// Entries in the submission queue, which may be more than asked for, or fewer at the kernel's limit.
    pub fn submission_entries(&self) -> u32 {
        self.ring.params().sq_entries()
    }

    /// Entries in the completion queue.
    pub fn completion_entries(&self) -> u32 {
        self.ring.params().cq_entries()
    }

    /// Whether a wait can have a time limit (5.11): `submit_and_reap_within` otherwise answers `EINVAL`.
    pub fn has_timed_waits(&self) -> bool {
        self.ring.params().is_feature_ext_arg()
    }

    /// Whether a submission thread takes files that are not registered (5.11): it otherwise answers `EBADF` for them.
    pub fn polls_any_file(&self) -> bool {
        self.ring.params().is_feature_sqpoll_nonfixed()
    }

    /// The submission queue; pushing to it is `unsafe` and carries the contract of the entry pushed. What was pushed
    /// is seen by `submit` once the queue is dropped or synced.
    #[inline]
    pub fn submission(&mut self) -> SubmissionQueue<'_> {
        self.ring.submission()
    }

    /// The completion queue, as far as the kernel has filled it.
    #[inline]
    pub fn completion(&mut self) -> CompletionQueue<'_> {
        self.ring.completion()
    }

    /// For registering files and buffers. It does not enter through the registered descriptor: submit with `submit`.
    pub fn submitter(&self) -> Submitter<'_> {
        self.ring.submitter()
    }

    /// Hands over what was pushed; answers how many entries the kernel took. No system call where a kernel thread is
    /// awake to pick them up, or where there is nothing to hand over.
    #[inline]
    pub fn submit(&mut self) -> io::Result<usize> {
        self.enter(0, false, None)
    }

    /// Hands over what was pushed and waits for `min` completions (0: finishes those that are due, without waiting,
    /// and without a system call where none is). Answers how many entries were taken.
    #[inline]
    pub fn submit_and_reap(&mut self, min: u32) -> io::Result<usize> {
        self.enter(min, true, None)
    }

    /// The same, waiting for `time_ns` at most: `ETIME` when that was not enough.
    #[inline]
    pub fn submit_and_reap_within(&mut self, min: u32, time_ns: u64) -> io::Result<usize> {
        self.enter(min, true, Some(time_ns))
    }

    /// Waits for `min` completions, and hands nothing over.
    pub fn wait(&mut self, min: u32) -> io::Result<()> {
        let flags = self.enter_flags | EnterFlags::GETEVENTS.bits();
        enter_raw(self.handle, 0, min, flags, None).map(drop)
    }

    #[inline]
    fn enter(&mut self, min: u32, reap: bool, time_ns: Option<u64>) -> io::Result<usize> {
        let queue = self.ring.submission();
        let pending = queue.len() as u32;
        let mut flags = self.enter_flags;
        // Completions that are due wait for us to come by; a device that is polled never says so by itself.
        let due = queue.cq_overflow() || queue.taskrun();
        let must_reap = due || (reap && self.polls);
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

    /// Looks out for completions that are there or due, without a system call, for at most this long; whether it saw
    /// one. It looks a few times a microsecond: more often would take the queue from the kernel's cache each time.
    pub fn watch(&mut self, time_ns: u64) -> bool {
        const PAUSES_BETWEEN_LOOKS: u32 = 16;
        let end_ns = clock::monotonic_ns() + time_ns;
        loop {
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

    /// Registers open files, to be named by index afterwards (`types::Fixed`).
    pub fn register_files(&self, files: &[RawFd]) -> io::Result<()> {
        self.ring.submitter().register_files(files)
    }

    /// Registers buffers, to be named by index afterwards: their pages stay in memory and are mapped once. `ENOMEM`
    /// means the limit on locked memory (`ulimit -l`).
    ///
    /// # Safety
    ///
    /// Every buffer is valid until it is unregistered or the ring is dropped.
    pub unsafe fn register_buffers(&self, buffers: &[libc::iovec]) -> io::Result<()> {
        // SAFETY: the caller vouches for the buffers.
        unsafe { self.ring.submitter().register_buffers(buffers) }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        if let Ok(number) = self.registration {
            // A registered descriptor keeps the ring alive until the thread ends.
            let _ = update_ring_fd(self.ring.as_raw_fd(), UNREGISTER_RING_FDS, number as u32, 0);
        }
    }
}

fn builder(options: &RingOptions, hints: &[Hint]) -> Builder {
    let mut builder = IoUring::builder();
    builder.setup_clamp();
    builder.dontfork();
    if let Some(entries) = options.completion_entries {
        builder.setup_cqsize(entries);
    }
    if let Some(polling) = options.submission_polling {
        builder.setup_sqpoll(polling.idle_ms);
        if let Some(cpu) = polling.cpu {
            builder.setup_sqpoll_cpu(cpu);
        }
    }
    if options.completion_polling {
        builder.setup_iopoll();
    }
    hints.iter().for_each(|hint| hint.ask(&mut builder));
    builder
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
            let time = [(time_ns / 1_000_000_000) as i64, (time_ns % 1_000_000_000) as i64];
            let time = (&raw const time) as u64;
            let argument = WaitArgument { signals: 0, signals_size: 0, least_wait_us: 0, time };
            let (flags, size) = (flags | EnterFlags::EXT_ARG.bits(), size_of::<WaitArgument>());
            // SAFETY: as above, and both structures passed live through the call.
            unsafe { libc::syscall(call, handle, pending, min, flags, &raw const argument, size) }
        }
    };
    check_len(taken as libc::ssize_t)
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

/// Registers a ring's descriptor with the calling thread; answers the number to enter by. The `io-uring` crate can do
/// this too, but forgets the number with the `Submitter`.
fn register_ring_fd(fd: RawFd) -> Result<i32, Errno> {
    const ANY_PLACE: u32 = u32::MAX;
    let registered = update_ring_fd(fd, REGISTER_RING_FDS, ANY_PLACE, fd as u64);
    registered.map_err(|error| Errno::of(&error).unwrap_or(Errno(libc::EIO)))
}

fn update_ring_fd(fd: RawFd, operation: libc::c_uint, offset: u32, data: u64) -> io::Result<i32> {
    let mut update = RingFdUpdate { offset, reserved: 0, data };
    let call = libc::SYS_io_uring_register;
    // SAFETY: the kernel reads and writes one update, which lives through the call.
    check_long(unsafe { libc::syscall(call, fd, operation, &raw mut update, 1u32) })?;
    Ok(update.offset as i32)
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
                println!("skipped: {options:?}: {error}");
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
        assert!(ring.submission_entries() >= 8);
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
    fn every_rung_of_the_ladder_moves_bytes_or_is_unknown_here() {
        let options = RingOptions { entries: 8, completion_entries: Some(64), ..RingOptions::default() };
        for hints in hints::LADDER {
            match Ring::build_with(&options, hints) {
                Ok(ring) => write_and_read_back(ring),
                Err(error) => println!("skipped: {hints:?}: {error}"),
            }
        }
    }

    #[test]
    fn a_wait_within_a_time_ends_with_it() {
        let Some(mut ring) = ring(RingOptions { entries: 2, ..RingOptions::default() }) else { return };
        if !ring.has_timed_waits() {
            println!("skipped: waits have no time limit here");
            return;
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
            println!("skipped: buffers cannot be registered: {error}");
            return;
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
