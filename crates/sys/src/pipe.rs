//! A pipe as a way for data between a file and memory: `splice` and `vmsplice`, one call each, never retried.
//!
//! Invariant: each function is exactly one system call, but `discard`. A short transfer is returned as its length.
//!
//! # Safety, for every unsafe function here
//!
//! `buffer` must be valid for its length, for writes by the function that fills it and for reads by the one that takes
//! from it. Memory that was given to the pipe is in use until it was taken out of the pipe again.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsRawFd, RawFd};

use crate::errno::{check_len, is_carried_out};

/// Both ends of a pipe.
#[derive(Debug)]
pub struct Pipe {
    reader: PipeReader,
    writer: PipeWriter,
    capacity_bytes: usize,
}

impl Pipe {
    /// An empty pipe of the size that the system gives it.
    ///
    /// # Errors
    /// The kernel's, if there are too many files.
    pub fn new() -> io::Result<Pipe> {
        let (reader, writer) = io::pipe()?;
        // SAFETY: no memory is passed.
        let capacity_bytes = check_len(unsafe { libc::fcntl(writer.as_raw_fd(), libc::F_GETPIPE_SZ) })?;
        Ok(Pipe { reader, writer, capacity_bytes })
    }

    /// How much it holds, in bytes, if every page of it is used in full.
    #[inline]
    pub fn capacity_bytes(&self) -> usize {
        self.capacity_bytes
    }

    /// Moves bytes of a file into the pipe; how many.
    ///
    /// # Errors
    /// The kernel's.
    #[inline]
    pub fn fill_from_file(&self, fd: RawFd, offset_bytes: u64, len_bytes: usize) -> io::Result<usize> {
        let mut offset = offset_bytes.cast_signed();
        let writer = self.writer.as_raw_fd();
        // SAFETY: the offset lives during the call; a bad descriptor is an error.
        check_len(unsafe { libc::splice(fd, &raw mut offset, writer, std::ptr::null_mut(), len_bytes, 0) })
    }

    /// Moves bytes out of the pipe into a file; how many.
    ///
    /// # Errors
    /// The kernel's.
    #[inline]
    pub fn drain_to_file(&self, fd: RawFd, offset_bytes: u64, len_bytes: usize) -> io::Result<usize> {
        let mut offset = offset_bytes.cast_signed();
        let reader = self.reader.as_raw_fd();
        // SAFETY: as above.
        check_len(unsafe { libc::splice(reader, std::ptr::null_mut(), fd, &raw mut offset, len_bytes, 0) })
    }

    /// Moves bytes that arrive at a socket into the pipe; how many, 0 at the end of its stream.
    ///
    /// # Errors
    /// The kernel's.
    #[inline]
    pub fn fill_from_stream(&self, fd: RawFd, len_bytes: usize) -> io::Result<usize> {
        let (none, writer) = (std::ptr::null_mut(), self.writer.as_raw_fd());
        // SAFETY: no memory is passed; a bad descriptor is an error.
        check_len(unsafe { libc::splice(fd, none, writer, none, len_bytes, 0) })
    }

    /// Moves bytes out of the pipe into a socket; how many.
    ///
    /// # Errors
    /// The kernel's.
    #[inline]
    pub fn drain_to_stream(&self, fd: RawFd, len_bytes: usize, more: bool) -> io::Result<usize> {
        let (none, reader) = (std::ptr::null_mut(), self.reader.as_raw_fd());
        let flags = if more { libc::SPLICE_F_MORE } else { 0 };
        // SAFETY: as above.
        check_len(unsafe { libc::splice(reader, none, fd, none, len_bytes, flags) })
    }

    /// Copies bytes of memory into the pipe; how many.
    ///
    /// # Errors
    /// The kernel's.
    #[inline]
    pub fn fill_with_copy(&self, bytes: &[u8]) -> io::Result<usize> {
        (&self.writer).write(bytes)
    }

    /// Puts pages of memory into the pipe without a copy; how many bytes.
    ///
    /// # Safety
    /// See the module: `buffer` is valid for reads of `len_bytes`, and is not changed while the pipe holds it.
    ///
    /// # Errors
    /// The kernel's.
    #[inline]
    pub unsafe fn fill_from_memory(&self, buffer: *const u8, len_bytes: usize) -> io::Result<usize> {
        // SAFETY: the caller vouches for the buffer.
        unsafe { vmsplice(self.writer.as_raw_fd(), buffer.cast_mut(), len_bytes) }
    }

    /// Copies bytes out of the pipe to memory; how many.
    ///
    /// # Safety
    /// See the module: `buffer` is valid for writes of `len_bytes`.
    ///
    /// # Errors
    /// The kernel's.
    #[inline]
    pub unsafe fn drain_to_memory(&self, buffer: *mut u8, len_bytes: usize) -> io::Result<usize> {
        // SAFETY: the caller vouches for the buffer.
        unsafe { vmsplice(self.reader.as_raw_fd(), buffer, len_bytes) }
    }

    /// Whether the kernel carries out `splice` and `vmsplice`.
    ///
    /// # Errors
    /// Why not: what a filter of system calls answers.
    pub fn try_calls(&self) -> io::Result<()> {
        is_carried_out(self.fill_from_file(-1, 0, 1))?;
        // SAFETY: no byte is passed.
        is_carried_out(unsafe { vmsplice(-1, std::ptr::null_mut(), 0) })
    }

    /// Drops bytes that the pipe holds.
    #[cold]
    pub fn discard(&self, mut len_bytes: usize) {
        let mut dropped = [0; 4096];
        while len_bytes > 0 {
            let wanted = len_bytes.min(dropped.len());
            match (&self.reader).read(&mut dropped[..wanted]) {
                Ok(read) if read > 0 => len_bytes -= read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Neither happens while both ends are open and there are bytes.
                Ok(_) | Err(_) => return,
            }
        }
    }
}

/// Between memory and this end of a pipe; the bytes.
///
/// # Safety
/// See the module: `buffer` is valid for `len_bytes`, for writes if this end is read from.
#[inline]
unsafe fn vmsplice(end: RawFd, buffer: *mut u8, len_bytes: usize) -> io::Result<usize> {
    let vector = libc::iovec { iov_base: buffer.cast(), iov_len: len_bytes };
    // SAFETY: the vector lives during the call, and the caller vouches for its memory.
    check_len(unsafe { libc::vmsplice(end, &raw const vector, 1, 0) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_goes_through_and_what_is_discarded_does_not() {
        let pipe = Pipe::new().unwrap();
        assert!(pipe.capacity_bytes() >= 4096);
        let mut taken = [0; 6];
        // SAFETY: the text lives for ever, and the array during the call.
        unsafe {
            assert_eq!(pipe.fill_from_memory(b"abcdefgh".as_ptr(), 8).unwrap(), 8);
            pipe.discard(2);
            assert_eq!(pipe.drain_to_memory(taken.as_mut_ptr(), 6).unwrap(), 6);
        }
        assert_eq!(&taken, b"cdefgh");
    }
}
