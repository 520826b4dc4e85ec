//! io_uring: a ring with the best setup the kernel takes, and a record of what it would not.
//!
//! Invariant: what the caller requires (submission polling, completion polling, queue sizes) is never dropped; only
//! hints that make the same I/O cheaper are, and each one that is dropped is named in `Ring::dropped`.
//!
//! A ring belongs to the thread that builds it: with a single issuer the kernel refuses others.

use crate::errno::{check_len, check_long};
use io_uring::{Builder, CompletionQueue, EnterFlags, IoUring, SubmissionQueue, Submitter};
use std::io;
use std::os::fd::{AsRawFd, RawFd};

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

/// A hint that makes a ring cheaper, newest kernels first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hint {
    /// Submission without the index array (6.6).
    NoSqArray,
    /// Completions are finished when this thread asks for them (6.1); needs a single issuer.
    DeferTaskrun,
    /// Only this thread submits (6.0).
    SingleIssuer,
    /// This thread is not interrupted to finish completions (5.19).
    CoopTaskrun,
    /// A failing submission does not stop the batch (5.18).
    SubmitAll,
    /// The ring's descriptor is registered (5.18).
    RegisteredRing,
}

impl Hint {
    /// The name of its flag in the kernel's interface.
    pub fn name(self) -> &'static str {
        match self {
            Hint::NoSqArray => "IORING_SETUP_NO_SQARRAY",
            Hint::DeferTaskrun => "IORING_SETUP_DEFER_TASKRUN",
            Hint::SingleIssuer => "IORING_SETUP_SINGLE_ISSUER",
            Hint::CoopTaskrun => "IORING_SETUP_COOP_TASKRUN",
            Hint::SubmitAll => "IORING_SETUP_SUBMIT_ALL",
            Hint::RegisteredRing => "IORING_REGISTER_RING_FDS",
        }
    }
}

/// Sets of hints from best to none, each for older kernels than the one before.
const LADDER: &[&[Hint]] = &[
    &[Hint::NoSqArray, Hint::DeferTaskrun, Hint::SingleIssuer, Hint::SubmitAll],
    &[Hint::DeferTaskrun, Hint::SingleIssuer, Hint::SubmitAll],
    &[Hint::SingleIssuer, Hint::CoopTaskrun, Hint::SubmitAll],
    &[Hint::CoopTaskrun, Hint::SubmitAll],
    &[Hint::SubmitAll],
    &[],
];

/// The same where a kernel thread submits: it runs completions itself, so the hints about that make no sense.
const LADDER_POLLED: &[&[Hint]] = &[
    &[Hint::NoSqArray, Hint::SingleIssuer, Hint::SubmitAll],
    &[Hint::SingleIssuer, Hint::SubmitAll],
    &[Hint::SubmitAll],
    &[],
];

/// A ring of submissions and one of completions.
///
/// Dropping it does not wait for what is in flight: whoever pushed it has to see it complete first, or leave its
/// buffers alone for good.
pub struct Ring {
    ring: IoUring,
    used: Vec<Hint>,
    dropped: Vec<Hint>,
    /// What `io_uring_enter` is given: the descriptor, or its registered number.
    handle: i32,
    enter_flags: u32,
    polls: bool,
    submission_polled: bool,
}

impl Ring {
    /// Builds a ring on and for the calling thread. The error is the plainest setup's: `ENOSYS` and `EPERM` mean that
    /// the kernel or a sandbox forbids io_uring, `ENOMEM` the limit on locked memory, `EINVAL` a requirement that this
    /// kernel cannot meet.
    pub fn build(options: &RingOptions) -> io::Result<Ring> {
        let ladder = if options.submission_polling.is_some() { LADDER_POLLED } else { LADDER };
        let mut refusal = io::Error::from_raw_os_error(libc::EINVAL);
        for hints in ladder {
            match builder(options, hints).build(options.entries) {
                Ok(ring) => return Ok(Ring::finish(ring, options, ladder, hints)),
                Err(error) if error.raw_os_error() == Some(libc::EINVAL) => refusal = error,
                Err(error) => return Err(error),
            }
        }
        Err(refusal)
    }

    fn finish(ring: IoUring, options: &RingOptions, ladder: &[&[Hint]], hints: &[Hint]) -> Ring {
        let dropped = ladder[0].iter().copied().filter(|hint| !hints.contains(hint)).collect();
        let handle = ring.as_raw_fd();
        let mut ring = Ring {
            ring,
            used: hints.to_vec(),
            dropped,
            handle,
            enter_flags: 0,
            polls: options.completion_polling,
            submission_polled: options.submission_polling.is_some(),
        };
        match register_ring_fd(handle) {
            Ok(number) => {
                ring.handle = number;
                ring.enter_flags = EnterFlags::REGISTERED_RING.bits();
                ring.used.push(Hint::RegisteredRing);
            }
            Err(_) => ring.dropped.push(Hint::RegisteredRing),
        }
        ring
    }

    /// The hints in effect.
    pub fn used(&self) -> &[Hint] {
        &self.used
    }

    /// The hints this kernel would not take.
    pub fn dropped(&self) -> &[Hint] {
        &self.dropped
    }

    /// Entries in the submission queue, which may be more than asked for, or fewer at the kernel's limit.
    pub fn submission_entries(&self) -> u32 {
        self.ring.params().sq_entries()
    }

    /// Entries in the completion queue.
    pub fn completion_entries(&self) -> u32 {
        self.ring.params().cq_entries()
    }

    /// Whether a wait can have a time limit (5.11): `Submitter::submit_with_args` otherwise answers `EINVAL`.
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
        self.enter(0, false)
    }

    /// Hands over what was pushed and waits for `min` completions (0: finishes those that are due, without waiting,
    /// and without a system call where none is). Answers how many entries were taken.
    #[inline]
    pub fn submit_and_reap(&mut self, min: u32) -> io::Result<usize> {
        self.enter(min, true)
    }

    #[inline]
    fn enter(&mut self, min: u32, reap: bool) -> io::Result<usize> {
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
        enter_raw(self.handle, pending, min, flags)
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
        if self.used.contains(&Hint::RegisteredRing) {
            // A registered descriptor keeps the ring alive until the thread ends.
            let _ = update_ring_fd(self.ring.as_raw_fd(), UNREGISTER_RING_FDS, self.handle as u32, 0);
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
    for hint in hints {
        match hint {
            Hint::NoSqArray => builder.setup_no_sqarray(),
            // With the flag the kernel says when there is work for us to run.
            Hint::DeferTaskrun => builder.setup_defer_taskrun().setup_taskrun_flag(),
            Hint::SingleIssuer => builder.setup_single_issuer(),
            Hint::CoopTaskrun => builder.setup_coop_taskrun().setup_taskrun_flag(),
            Hint::SubmitAll => builder.setup_submit_all(),
            Hint::RegisteredRing => &mut builder,
        };
    }
    builder
}

#[inline]
fn enter_raw(handle: i32, pending: u32, min: u32, flags: u32) -> io::Result<usize> {
    let no_signals: *const libc::sigset_t = std::ptr::null();
    let call = libc::SYS_io_uring_enter;
    // SAFETY: the entries handed over were pushed under the contract of `SubmissionQueue::push`; no other memory is
    // passed.
    let taken = unsafe { libc::syscall(call, handle, pending, min, flags, no_signals, 0usize) };
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
fn register_ring_fd(fd: RawFd) -> io::Result<i32> {
    const ANY_PLACE: u32 = u32::MAX;
    update_ring_fd(fd, REGISTER_RING_FDS, ANY_PLACE, fd as u64)
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
        for hints in LADDER {
            match builder(&options, hints).build(options.entries) {
                Ok(ring) => write_and_read_back(Ring::finish(ring, &options, LADDER, hints)),
                Err(error) => println!("skipped: {hints:?}: {error}"),
            }
        }
    }

    #[test]
    fn a_dropped_hint_is_named() {
        let options = RingOptions { entries: 8, ..RingOptions::default() };
        let Ok(plain) = builder(&options, &[]).build(8) else {
            println!("skipped: no io_uring here");
            return;
        };
        let ring = Ring::finish(plain, &options, LADDER, &[]);
        for hint in LADDER[0] {
            assert!(ring.dropped().contains(hint) && !ring.used().contains(hint), "{}", hint.name());
        }
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
