//! Waiting for descriptors: `poll`.
//!
//! Invariant: one system call; a signal ends it with `EINTR`.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

use crate::errno::check;

/// What is waited for, besides errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// There is something to read, or the other end is closed.
    Readable,
    /// The same, or something can be written.
    ReadableOrWritable,
}

/// Waits at most this long, rounded up to milliseconds; whether it can go on.
///
/// # Errors
/// The kernel's: `EINTR` after a signal.
pub fn wait(fd: BorrowedFd<'_>, until: Until, timeout: Option<Duration>) -> io::Result<bool> {
    poll(&mut [entry(fd, until)], timeout)
}

/// The same for several; which of them can go on.
///
/// # Errors
/// The kernel's: `EINTR` after a signal.
pub fn wait_for_any(awaited: &[(BorrowedFd<'_>, Until)], timeout: Option<Duration>) -> io::Result<Vec<bool>> {
    let mut entries: Vec<libc::pollfd> = awaited.iter().map(|(fd, until)| entry(*fd, *until)).collect();
    poll(&mut entries, timeout)?;
    Ok(entries.iter().map(|entry| entry.revents != 0).collect())
}

fn entry(fd: BorrowedFd<'_>, until: Until) -> libc::pollfd {
    let events = match until {
        Until::Readable => libc::POLLIN,
        Until::ReadableOrWritable => libc::POLLIN | libc::POLLOUT,
    };
    libc::pollfd { fd: fd.as_raw_fd(), events, revents: 0 }
}

fn poll(entries: &mut [libc::pollfd], timeout: Option<Duration>) -> io::Result<bool> {
    let milliseconds = timeout.map_or(-1, |time| {
        let rounded = time.as_nanos().div_ceil(1_000_000);
        libc::c_int::try_from(rounded).unwrap_or(libc::c_int::MAX)
    });
    // SAFETY: that many entries, which live during the call.
    let ready = unsafe { libc::poll(entries.as_mut_ptr(), entries.len() as libc::nfds_t, milliseconds) };
    check(ready).map(|ready| ready > 0)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_socket_is_readable_when_the_other_end_wrote_or_left() {
        let (mut here, there) = UnixStream::pair().unwrap();
        let readable = || wait(there.as_fd(), Until::Readable, Some(Duration::from_nanos(1))).unwrap();
        assert!(!readable());
        assert!(wait(there.as_fd(), Until::ReadableOrWritable, None).unwrap());
        here.write_all(b"x").unwrap();
        assert!(readable());
        drop(here);
        assert!(readable());
        let (_here, idle) = UnixStream::pair().unwrap();
        let both = [(idle.as_fd(), Until::Readable), (there.as_fd(), Until::Readable)];
        assert_eq!(wait_for_any(&both, None).unwrap(), [false, true]);
    }
}
