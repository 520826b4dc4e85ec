//! Linux's asynchronous I/O (what libaio wraps), on the raw system calls, with completions read from the ring the
//! kernel maps into this process.
//!
//! Invariant: only one thread uses a context (it is not `Sync` and everything takes `&mut`), so the ring has one reader.

use crate::clock::timespec;
use crate::errno::{check_len, check_long};
use crate::transfer::RwFlags;
use std::io;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// What an `Iocb` does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Command {
    /// Read into one buffer.
    Pread = 0,
    /// Write from one buffer.
    Pwrite = 1,
    /// Nothing.
    Noop = 6,
    /// Read into several buffers.
    Preadv = 7,
    /// Write from several buffers.
    Pwritev = 8,
}

/// One request, as the kernel lays it out (`struct iocb` of `linux/aio_abi.h`).
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Iocb {
    /// Returned in the completion.
    pub user_data: u64,
    #[cfg(target_endian = "little")]
    key: u32,
    rw_flags: i32,
    #[cfg(target_endian = "big")]
    key: u32,
    command: u16,
    priority: i16,
    fd: u32,
    buffer: u64,
    len: u64,
    offset_bytes: i64,
    reserved: u64,
    flags: u32,
    event_fd: u32,
}

const _: () = assert!(size_of::<Iocb>() == 64);

impl Iocb {
    /// A request that does nothing.
    pub const fn new() -> Iocb {
        Iocb {
            user_data: 0,
            key: 0,
            rw_flags: 0,
            command: Command::Noop as u16,
            priority: 0,
            fd: 0,
            buffer: 0,
            len: 0,
            offset_bytes: 0,
            reserved: 0,
            flags: 0,
            event_fd: 0,
        }
    }

    /// Makes it a `Pread` or `Pwrite` of `len_bytes` at `buffer`; flags and priority are unchanged.
    #[inline]
    pub fn transfer(
        &mut self,
        command: Command,
        fd: RawFd,
        buffer: *mut u8,
        len_bytes: usize,
        offset_bytes: u64,
    ) {
        self.command = command as u16;
        self.fd = fd.cast_unsigned();
        self.buffer = buffer as u64;
        self.len = len_bytes as u64;
        self.offset_bytes = offset_bytes.cast_signed();
    }

    /// Makes it a `Preadv` or `Pwritev` over `count` vectors.
    #[inline]
    pub fn transfer_vectors(
        &mut self,
        command: Command,
        fd: RawFd,
        vectors: *const libc::iovec,
        count: usize,
        offset_bytes: u64,
    ) {
        self.transfer(command, fd, vectors.cast_mut().cast(), count, offset_bytes);
    }

    /// Sets its priority, as the kernel packs it; with 0 it has that of the thread.
    pub fn set_priority(&mut self, priority: u16) {
        /// The priority is to be used (`IOCB_FLAG_IOPRIO`).
        const HAS_PRIORITY: u32 = 1 << 1;
        self.priority = priority.cast_signed();
        self.flags = if priority == 0 { 0 } else { HAS_PRIORITY };
    }

    /// Sets its `RWF_*` flags (none on a sync).
    #[inline]
    pub fn set_rw_flags(&mut self, flags: RwFlags) {
        self.rw_flags = flags.0;
    }
}

impl Default for Iocb {
    fn default() -> Iocb {
        Iocb::new()
    }
}

/// One completion (`struct io_event`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct IoEvent {
    /// The `user_data` of the request.
    pub user_data: u64,
    /// The request's address.
    pub iocb: u64,
    /// Bytes, or a negative error number.
    pub result: i64,
    /// Further result; 0 for file I/O.
    pub result2: i64,
}

/// The kernel's ring of completions, at the address that `io_setup` returns.
#[repr(C)]
struct Ring {
    id: u32,
    capacity: u32,
    head: AtomicU32,
    tail: AtomicU32,
    magic: u32,
    compatible_features: u32,
    incompatible_features: u32,
    header_len_bytes: u32,
}

const RING_MAGIC: u32 = 0xa10a_10a1;

/// A context: room for requests in flight, and the ring where they complete.
#[derive(Debug)]
pub struct AioContext {
    /// The kernel's handle: the address of the ring in this process.
    id: libc::c_ulong,
    /// The ring's events, if it has the known layout.
    events: Option<*const IoEvent>,
    capacity: u32,
}

// SAFETY: the ring belongs to the process, not to a thread; there is one owner.
unsafe impl Send for AioContext {}

impl AioContext {
    /// Sets up a context for `depth` requests in flight. `EAGAIN` means that `/proc/sys/fs/aio-max-nr` is exhausted.
    pub fn new(depth: u32) -> io::Result<AioContext> {
        let mut id: libc::c_ulong = 0;
        // SAFETY: the kernel writes one word to `id`, which must be zero before.
        check_long(unsafe { libc::syscall(libc::SYS_io_setup, depth, &raw mut id) })?;
        let mut context = AioContext { id, events: None, capacity: 0 };
        context.find_ring();
        Ok(context)
    }

    fn find_ring(&mut self) {
        let ring = self.id as *const Ring;
        // SAFETY: the handle that `io_setup` answers is the address of the ring, mapped until `io_destroy`; the fields
        // read here are written once, before it returns.
        let (magic, features, capacity, header_len_bytes) = unsafe {
            ((*ring).magic, (*ring).incompatible_features, (*ring).capacity, (*ring).header_len_bytes)
        };
        if magic == RING_MAGIC
            && features == 0
            && header_len_bytes as usize == size_of::<Ring>()
            && capacity > 0
        {
            // SAFETY: the events follow the header, inside the same mapping.
            self.events = Some(unsafe { ring.add(1) }.cast());
            self.capacity = capacity;
        }
    }

    /// Whether `reap_ring` works here; it does on every kernel known so far.
    pub fn has_ring(&self) -> bool {
        self.events.is_some()
    }

    /// Submits requests in order; returns how many were accepted, which may be fewer. An error is that of the first.
    ///
    /// # Safety
    ///
    /// Each pointer leads to an `Iocb` that is valid until this returns. The buffers (and vectors) it names are valid,
    /// and touched by nobody else, until its completion has been reaped or the context dropped.
    #[inline]
    pub unsafe fn submit(&mut self, requests: &mut [*mut Iocb]) -> io::Result<usize> {
        let (count, list) = (requests.len().cast_signed() as libc::c_long, requests.as_mut_ptr());
        // SAFETY: the slice gives the list's true length, and the caller vouches for what it leads to.
        let taken = unsafe { libc::syscall(libc::SYS_io_submit, self.id, count, list) };
        check_len(taken)
    }

    /// Waits in the kernel for at least `min` completions (0: none), fills `events` from the front, and returns their
    /// number: fewer than `min` only after a timeout. `EINTR` if a signal arrived first.
    pub fn get_events(
        &mut self,
        min: usize,
        events: &mut [IoEvent],
        timeout: Option<Duration>,
    ) -> io::Result<usize> {
        let mut time = timeout.map(timespec);
        let time = time.as_mut().map_or(std::ptr::null_mut(), |time| &raw mut *time);
        let [min, max] = [min, events.len()].map(|count| count.cast_signed() as libc::c_long);
        let call = libc::SYS_io_getevents;
        // SAFETY: the kernel writes at most `max` events, which is the slice's length; `time` lives through the call.
        let count = unsafe { libc::syscall(call, self.id, min, max, events.as_mut_ptr(), time) };
        check_len(count)
    }

    /// Takes completions from the ring without a system call: fills `events` from the front and returns their number.
    /// Always 0 without `has_ring`.
    #[inline]
    pub fn reap_ring(&mut self, events: &mut [IoEvent]) -> usize {
        let Some(source) = self.events else { return 0 };
        // SAFETY: the ring is mapped until this context is dropped; head and tail are shared with the kernel and
        // therefore atomics.
        let (shared_head, shared_tail) = unsafe {
            let ring = self.id as *const Ring;
            (&(*ring).head, &(*ring).tail)
        };
        // This is the head's only writer outside io_getevents, which `&mut self` excludes. Acquire on the tail makes the
        // events before it visible.
        let mut head = shared_head.load(Ordering::Relaxed);
        let tail = shared_tail.load(Ordering::Acquire);
        let mut taken = 0;
        while taken < events.len() && head != tail {
            // SAFETY: both indices stay below the capacity, and the kernel does not overwrite events before the tail
            // that the head has not passed.
            events[taken] = unsafe { source.add(head as usize).read() };
            taken += 1;
            head = if head + 1 == self.capacity { 0 } else { head + 1 };
        }
        if taken > 0 {
            // Release: the events are copied before the kernel may reuse their places.
            shared_head.store(head, Ordering::Release);
        }
        taken
    }
}

impl Drop for AioContext {
    /// Waits for everything in flight: after this the kernel touches no buffer.
    fn drop(&mut self) {
        // SAFETY: the context is this value's own and goes away now.
        unsafe { libc::syscall(libc::SYS_io_destroy, self.id) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TempFile;
    use std::os::fd::AsRawFd;

    fn context(depth: u32) -> Option<AioContext> {
        match AioContext::new(depth) {
            Ok(context) => Some(context),
            Err(error) => {
                fiord_testing::skipped(format_args!("io_setup: {error}"));
                None
            }
        }
    }

    fn complete_one(context: &mut AioContext, iocb: &mut Iocb) -> IoEvent {
        let mut list = [iocb as *mut Iocb];
        // SAFETY: the request and its buffer live in the caller, which waits for the completion right here.
        assert_eq!(unsafe { context.submit(&mut list) }.unwrap(), 1);
        let mut events = [IoEvent::default(); 2];
        assert_eq!(context.get_events(1, &mut events, None).unwrap(), 1);
        events[0]
    }

    #[test]
    fn what_is_written_is_read_back() {
        let Some(mut context) = context(4) else { return };
        let temp = TempFile::new("aio");
        let fd = temp.file.as_raw_fd();
        let (mut out, mut back) = ([0x5au8; 4096], [0u8; 4096]);
        let mut iocb = Iocb::new();
        iocb.user_data = 77;
        iocb.transfer(Command::Pwrite, fd, out.as_mut_ptr(), 4096, 8192);
        let event = complete_one(&mut context, &mut iocb);
        assert_eq!((event.user_data, event.result), (77, 4096));
        let vector = libc::iovec { iov_base: back.as_mut_ptr().cast(), iov_len: 4096 };
        iocb.transfer_vectors(Command::Preadv, fd, &raw const vector, 1, 8192);
        assert_eq!(complete_one(&mut context, &mut iocb).result, 4096);
        assert_eq!(back, out);
        iocb.transfer(Command::Pread, fd, back.as_mut_ptr(), 4096, 1 << 40);
        assert_eq!(complete_one(&mut context, &mut iocb).result, 0, "beyond the end");
    }

    #[test]
    fn the_ring_gives_each_completion_once_and_in_order() {
        let Some(mut context) = context(8) else { return };
        assert!(context.has_ring(), "this kernel's ring has a layout we do not know");
        let temp = TempFile::new("aio-ring");
        let mut byte = [1u8; 1];
        let mut requests = [Iocb::new(); 8];
        let mut next = 0;
        // Often enough to wrap the ring several times, whatever its size.
        for _ in 0..context.capacity {
            for (index, iocb) in requests.iter_mut().enumerate() {
                iocb.user_data = next + index as u64;
                iocb.transfer(Command::Pwrite, temp.file.as_raw_fd(), byte.as_mut_ptr(), 1, 0);
            }
            let mut list = requests.each_mut().map(|iocb| iocb as *mut Iocb);
            // SAFETY: requests and byte outlive the context's use of them: buffered writes complete in the call.
            assert_eq!(unsafe { context.submit(&mut list) }.unwrap(), 8);
            let mut events = [IoEvent::default(); 5];
            let mut seen = 0;
            while seen < 8 {
                let count = context.reap_ring(&mut events);
                for event in &events[..count] {
                    assert_eq!((event.user_data, event.result), (next + seen, 1));
                    seen += 1;
                }
            }
            next += 8;
        }
        assert_eq!(context.reap_ring(&mut [IoEvent::default(); 5]), 0);
    }

    #[test]
    fn a_bad_descriptor_is_refused_at_submission() {
        let Some(mut context) = context(1) else { return };
        let mut byte = 0u8;
        let mut iocb = Iocb::new();
        iocb.transfer(Command::Pread, -1, &raw mut byte, 1, 0);
        let mut list = [&raw mut iocb];
        // SAFETY: request and byte live in this function.
        let error = unsafe { context.submit(&mut list) }.unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EBADF));
    }

    #[test]
    fn waiting_ends_with_the_timeout() {
        let Some(mut context) = context(1) else { return };
        let mut events = [IoEvent::default()];
        assert_eq!(context.get_events(1, &mut events, Some(Duration::ZERO)).unwrap(), 0);
    }
}
