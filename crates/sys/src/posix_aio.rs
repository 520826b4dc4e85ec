//! POSIX asynchronous I/O of the C library, which executes it with threads of its own.
//!
//! Invariant: a request is at one place in memory from its start until its result was taken, because the library keeps
//! its address.

use std::fmt;
use std::io;
use std::os::fd::RawFd;
use std::ptr;
use std::time::Duration;

use crate::clock::c_timespec;
use crate::errno::Errno;
use crate::width::{to_c_int, to_u64};

/// A request and the state of it that the C library keeps.
#[repr(transparent)]
pub struct Request(libc::aiocb);

// SAFETY: a request is plain data; the pointer in it is used by the functions here alone, whose callers vouch for it.
unsafe impl Send for Request {}

impl fmt::Debug for Request {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Request(block) = self;
        out.debug_struct("Request")
            .field("fd", &block.aio_fildes)
            .field("offset", &block.aio_offset)
            .field("length", &block.aio_nbytes)
            .finish()
    }
}

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// `aio_read`.
    Read,
    /// `aio_write`.
    Write,
}

/// The part of a file and of memory that a request transfers.
#[derive(Clone, Copy, Debug)]
pub struct Transfer {
    /// The file.
    pub fd: RawFd,
    /// Where in memory.
    pub buffer: *mut u8,
    /// How much, in bytes.
    pub len_bytes: usize,
    /// Where in the file, in bytes.
    pub offset_bytes: u64,
}

impl Default for Request {
    fn default() -> Request {
        // SAFETY: all zeroes is a valid control block, the one that the manual pages begin with.
        let mut block: libc::aiocb = unsafe { std::mem::zeroed() };
        block.aio_sigevent.sigev_notify = libc::SIGEV_NONE;
        Request(block)
    }
}

impl Request {
    /// Says what is to be transferred.
    #[inline]
    pub fn set(&mut self, transfer: Transfer) {
        let Request(block) = self;
        block.aio_fildes = transfer.fd;
        block.aio_buf = transfer.buffer.cast();
        block.aio_nbytes = transfer.len_bytes;
        // Where the library's offsets have 32 bits, one that needs more becomes one that it refuses.
        block.aio_offset = libc::off_t::try_from(transfer.offset_bytes).unwrap_or(-1);
    }

    /// Hands the request to the C library.
    ///
    /// # Safety
    /// The request stays where it is, and is neither changed nor started again, until `result` has returned its result;
    /// until then its memory is valid, for writes if it reads, and nothing else uses it.
    ///
    /// # Errors
    /// `EAGAIN` if the library has no resources for it.
    #[inline]
    pub unsafe fn start(&mut self, command: Command) -> io::Result<()> {
        let block = &raw mut self.0;
        // SAFETY: the caller vouches for the request and its memory.
        let answer = unsafe {
            match command {
                Command::Read => libc::aio_read(block),
                Command::Write => libc::aio_write(block),
            }
        };
        if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// The bytes transferred or the error of a request that was started and has ended; `None` while it has not. Takes the
    /// result: the request may be used again.
    #[inline]
    pub fn result(&mut self) -> Option<Result<u64, Errno>> {
        // SAFETY: the block is one that was started; the library reads its state.
        match unsafe { libc::aio_error(&raw const self.0) } {
            libc::EINPROGRESS => None,
            error => {
                // SAFETY: it has ended, and its result was not taken before.
                let bytes = unsafe { libc::aio_return(&raw mut self.0) };
                Some(if error == 0 { Ok(to_u64(bytes)) } else { Err(Errno(error)) })
            }
        }
    }
}

/// Waits until one of these requests has ended, a signal arrives, or the time has passed.
///
/// # Safety
/// Each pointer is to a live request that was started and of which the result was not taken.
///
/// # Errors
/// `EINTR` after a signal, `EAGAIN` after the time.
pub unsafe fn wait(requests: &[*const Request], timeout: Option<Duration>) -> io::Result<()> {
    let time = timeout.map(c_timespec);
    let time = time.as_ref().map_or(ptr::null(), ptr::from_ref);
    // SAFETY: a request is its control block; the caller vouches for them, and the time lives during the call.
    let answer = unsafe { libc::aio_suspend(requests.as_ptr().cast(), to_c_int(requests.len()), time) };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn a_request_ends_with_its_bytes_or_with_its_error() {
        let zeroes = File::open("/dev/zero").unwrap();
        let mut buffer = [1; 16];
        for (fd, expected) in [(zeroes.as_raw_fd(), Ok(16)), (-1, Err(Errno(libc::EBADF)))] {
            let mut request = Box::<Request>::default();
            request.set(Transfer { fd, buffer: buffer.as_mut_ptr(), len_bytes: 16, offset_bytes: 0 });
            // SAFETY: the request is in its box and the buffer alive until the result is taken.
            if let Err(error) = unsafe { request.start(Command::Read) } {
                // musl looks at the descriptor first.
                assert_eq!(Err(Errno(error.raw_os_error().unwrap_or(0))), expected);
                continue;
            }
            let result = loop {
                match request.result() {
                    // SAFETY: it was started, and has no result yet.
                    None => drop(unsafe { wait(&[&raw const *request], None) }),
                    Some(result) => break result,
                }
            };
            assert_eq!(result, expected);
        }
        assert_eq!(buffer, [0; 16]);
    }
}
