//! Space and size of open files, for engines whose operations change them: one call each, never retried.
//!
//! Invariant: no memory is passed, and a descriptor is a plain number, because a hot loop keeps it in a table: a closed one
//! is `EBADF`.

use std::io;
use std::os::fd::RawFd;

use crate::errno::Errno;

/// What `fallocate` does with a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allocation {
    /// Allocates it, and makes the file longer if it ends within the range.
    Extend,
    /// Allocates it, and leaves the size as it is.
    KeepSize,
    /// Frees it, so that it reads as zeroes, and leaves the size as it is.
    PunchHole,
}

/// `fallocate`.
///
/// # Errors
/// The kernel's.
#[inline]
pub fn fallocate(fd: RawFd, what: Allocation, offset_bytes: u64, len_bytes: u64) -> io::Result<()> {
    let mode = match what {
        Allocation::Extend => 0,
        Allocation::KeepSize => libc::FALLOC_FL_KEEP_SIZE,
        Allocation::PunchHole => libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE,
    };
    let (offset, len) = (offset_bytes.cast_signed(), len_bytes.cast_signed());
    // SAFETY: the call takes no memory; a bad descriptor is an error.
    checked(unsafe { libc::fallocate64(fd, mode, offset, len) })
}

/// `ftruncate`.
///
/// # Errors
/// The kernel's.
#[inline]
pub fn ftruncate(fd: RawFd, size_bytes: u64) -> io::Result<()> {
    // SAFETY: the call takes no memory; a bad descriptor is an error.
    checked(unsafe { libc::ftruncate64(fd, size_bytes.cast_signed()) })
}

fn checked(answer: libc::c_int) -> io::Result<()> {
    if answer == 0 { Ok(()) } else { Err(Errno::last().into()) }
}
