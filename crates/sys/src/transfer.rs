//! Moving bytes between a file and raw memory: the `read` and `write` families, one call each, never retried.
//!
//! Invariant: each function is exactly one system call. A short transfer is returned as its length and an
//! interruption as `EINTR`, because it is the caller that counts and times I/Os.
//!
//! # Safety, for every function here
//!
//! `buffer` (or each vector of `vectors`) must be valid for its length, for writes by the reading functions and for
//! reads by the writing ones, and nothing else may use that memory during the call. Descriptors are plain numbers,
//! because a hot loop keeps them in a table: they must be open, and open for long enough.

use crate::errno::{check_len, is_carried_out};
use crate::width::to_c_int;
use std::io;
use std::os::fd::RawFd;

/// Per-I/O flags of `preadv2` and `pwritev2` (`RWF_*`), also taken by libaio and io_uring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RwFlags(pub i32);

impl RwFlags {
    /// No flag.
    pub const NONE: RwFlags = RwFlags(0);
    /// Poll for the completion on devices that can (`RWF_HIPRI`).
    pub const HIPRI: RwFlags = RwFlags(libc::RWF_HIPRI);
    /// `EAGAIN` rather than waiting (`RWF_NOWAIT`).
    pub const NOWAIT: RwFlags = RwFlags(libc::RWF_NOWAIT);
    /// All of a write or nothing of it, also after a crash (`RWF_ATOMIC`).
    pub const ATOMIC: RwFlags = RwFlags(libc::RWF_ATOMIC);
    /// Buffered, but leaving nothing in the page cache (`RWF_DONTCACHE`).
    pub const UNCACHED: RwFlags = RwFlags(libc::RWF_DONTCACHE);

    /// Both sets of flags.
    #[must_use]
    pub const fn with(self, other: RwFlags) -> RwFlags {
        RwFlags(self.0 | other.0)
    }
}

/// `read` at the file's own position; the bytes read.
///
/// # Safety
///
/// See the module: `buffer` is valid for writes of `len_bytes`.
#[inline]
pub unsafe fn read(fd: RawFd, buffer: *mut u8, len_bytes: usize) -> io::Result<usize> {
    // SAFETY: the caller vouches for the buffer; a bad descriptor is an error, not undefined behaviour.
    check_len(unsafe { libc::read(fd, buffer.cast(), len_bytes) })
}

/// `write` at the file's own position; the bytes written.
///
/// # Safety
///
/// See the module: `buffer` is valid for reads of `len_bytes`.
#[inline]
pub unsafe fn write(fd: RawFd, buffer: *const u8, len_bytes: usize) -> io::Result<usize> {
    // SAFETY: the caller vouches for the buffer; a bad descriptor is an error, not undefined behaviour.
    check_len(unsafe { libc::write(fd, buffer.cast(), len_bytes) })
}

/// An offset as the kernel takes it.
#[inline]
fn at(bytes: u64) -> libc::off64_t {
    bytes.cast_signed()
}

/// The number of vectors as the kernel takes it.
#[inline]
fn count(vectors: &[libc::iovec]) -> libc::c_int {
    to_c_int(vectors.len())
}

/// `pread` at `offset_bytes`; the bytes read.
///
/// # Safety
///
/// See the module: `buffer` is valid for writes of `len_bytes`.
#[inline]
pub unsafe fn pread(fd: RawFd, buffer: *mut u8, len_bytes: usize, offset_bytes: u64) -> io::Result<usize> {
    // SAFETY: the caller vouches for the buffer; a bad descriptor is an error, not undefined behaviour.
    check_len(unsafe { libc::pread64(fd, buffer.cast(), len_bytes, at(offset_bytes)) })
}

/// `pwrite` at `offset_bytes`; the bytes written.
///
/// # Safety
///
/// See the module: `buffer` is valid for reads of `len_bytes`.
#[inline]
pub unsafe fn pwrite(fd: RawFd, buffer: *const u8, len_bytes: usize, offset_bytes: u64) -> io::Result<usize> {
    // SAFETY: the caller vouches for the buffer; a bad descriptor is an error, not undefined behaviour.
    check_len(unsafe { libc::pwrite64(fd, buffer.cast(), len_bytes, at(offset_bytes)) })
}

/// `readv` at the file's own position; the bytes read.
///
/// # Safety
///
/// See the module: every vector is valid for writes of its length.
#[inline]
pub unsafe fn readv(fd: RawFd, vectors: &[libc::iovec]) -> io::Result<usize> {
    // SAFETY: the caller vouches for the vectors; the slice gives their true number.
    check_len(unsafe { libc::readv(fd, vectors.as_ptr(), count(vectors)) })
}

/// `writev` at the file's own position; the bytes written.
///
/// # Safety
///
/// See the module: every vector is valid for reads of its length.
#[inline]
pub unsafe fn writev(fd: RawFd, vectors: &[libc::iovec]) -> io::Result<usize> {
    // SAFETY: the caller vouches for the vectors; the slice gives their true number.
    check_len(unsafe { libc::writev(fd, vectors.as_ptr(), count(vectors)) })
}

/// `preadv` at `offset_bytes`; the bytes read.
///
/// # Safety
///
/// See the module: every vector is valid for writes of its length.
#[inline]
pub unsafe fn preadv(fd: RawFd, vectors: &[libc::iovec], offset_bytes: u64) -> io::Result<usize> {
    // SAFETY: the caller vouches for the vectors; the slice gives their true number.
    check_len(unsafe { libc::preadv64(fd, vectors.as_ptr(), count(vectors), at(offset_bytes)) })
}

/// `pwritev` at `offset_bytes`; the bytes written.
///
/// # Safety
///
/// See the module: every vector is valid for reads of its length.
#[inline]
pub unsafe fn pwritev(fd: RawFd, vectors: &[libc::iovec], offset_bytes: u64) -> io::Result<usize> {
    // SAFETY: the caller vouches for the vectors; the slice gives their true number.
    check_len(unsafe { libc::pwritev64(fd, vectors.as_ptr(), count(vectors), at(offset_bytes)) })
}

/// `preadv2` at `offset_bytes`; the bytes read.
///
/// # Safety
///
/// See the module: every vector is valid for writes of its length.
#[inline]
pub unsafe fn preadv2(
    fd: RawFd,
    vectors: &[libc::iovec],
    offset_bytes: u64,
    flags: RwFlags,
) -> io::Result<usize> {
    // SAFETY: the caller vouches for the vectors; the slice gives their true number.
    unsafe { transfer2(libc::SYS_preadv2, fd, vectors, offset_bytes, flags) }
}

/// `pwritev2` at `offset_bytes`; the bytes written.
///
/// # Safety
///
/// See the module: every vector is valid for reads of its length.
#[inline]
pub unsafe fn pwritev2(
    fd: RawFd,
    vectors: &[libc::iovec],
    offset_bytes: u64,
    flags: RwFlags,
) -> io::Result<usize> {
    // SAFETY: the caller vouches for the vectors; the slice gives their true number.
    unsafe { transfer2(libc::SYS_pwritev2, fd, vectors, offset_bytes, flags) }
}

/// Whether the kernel carries out `preadv2` and `pwritev2`.
///
/// # Errors
/// Why not: `ENOSYS` before Linux 4.6, or what a filter of system calls answers.
pub fn try_preadv2() -> io::Result<()> {
    for call in [libc::SYS_preadv2, libc::SYS_pwritev2] {
        // SAFETY: no memory is passed.
        is_carried_out(unsafe { transfer2(call, -1, &[], 0, RwFlags::NONE) })?;
    }
    Ok(())
}

/// `preadv2` or `pwritev2` without the C library, since musl has neither.
///
/// # Safety
///
/// As for the call with this number.
#[inline]
unsafe fn transfer2(
    call: libc::c_long,
    fd: RawFd,
    vectors: &[libc::iovec],
    offset_bytes: u64,
    flags: RwFlags,
) -> io::Result<usize> {
    // The kernel takes the offset in two halves; where the lower one holds all of it, it ignores the upper.
    let [low, high] = [at(offset_bytes), at(offset_bytes >> 32)].map(|half| half as libc::c_long);
    // SAFETY: the caller vouches for the vectors; the slice gives their true number.
    let answer = unsafe { libc::syscall(call, fd, vectors.as_ptr(), vectors.len(), low, high, flags.0) };
    check_len(answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TempFile;
    use std::io::{Seek, SeekFrom};
    use std::os::fd::AsRawFd;

    fn vector(bytes: &mut [u8]) -> libc::iovec {
        libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() }
    }

    #[test]
    fn what_is_written_is_read_back_by_every_pair() {
        let temp = TempFile::new("transfer");
        let fd = temp.file.as_raw_fd();
        let (mut out, mut back) = (*b"fjord and fell", [0u8; 14]);
        for pair in 0..4 {
            let offset = pair * 4096;
            back.fill(0);
            let out_vectors = [vector(&mut out)];
            let back_vectors = [vector(&mut back)];
            // SAFETY: both arrays live to the end of the test and nothing else touches them meanwhile.
            let (written, read) = unsafe {
                match pair {
                    0 => (pwrite(fd, out.as_ptr(), 14, offset), pread(fd, back.as_mut_ptr(), 14, offset)),
                    1 => (pwritev(fd, &out_vectors, offset), preadv(fd, &back_vectors, offset)),
                    2 => (
                        pwritev2(fd, &out_vectors, offset, RwFlags(libc::RWF_DSYNC)),
                        preadv2(fd, &back_vectors, offset, RwFlags::NONE),
                    ),
                    _ => {
                        (&temp.file).seek(SeekFrom::Start(offset)).unwrap();
                        let written = writev(fd, &out_vectors);
                        (&temp.file).seek(SeekFrom::Start(offset)).unwrap();
                        (written, readv(fd, &back_vectors))
                    }
                }
            };
            assert_eq!((written.unwrap(), read.unwrap()), (14, 14), "pair {pair}");
            assert_eq!(back, out, "pair {pair}");
        }
    }

    #[test]
    fn the_kernels_error_comes_back_as_it_is() {
        let mut byte = 0u8;
        // SAFETY: one valid byte; descriptor -1 is never open.
        let error = unsafe { pread(-1, &mut byte, 1, 0) }.unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EBADF));
    }
}
