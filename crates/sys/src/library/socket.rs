//! Waiting for the socket of a library that has no threads of its own.
//!
//! Invariant: no memory but the entry of the call is shared with the kernel.

use std::ffi::c_int;
use std::io;
use std::time::Duration;

/// How a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answers {
    /// With these events, none if the time has passed.
    Ready(c_int),
    /// A signal arrived.
    Signal,
}

/// Waits for these events of a socket, for at most so long.
pub(super) fn poll(socket: c_int, events: c_int, at_most: Duration) -> io::Result<Answers> {
    let mut entry = libc::pollfd { fd: socket, events: (events & 0x7fff) as i16, revents: 0 };
    // Rounded up, so that a short wait does not become a loop.
    let timeout_ms = at_most.as_micros().div_ceil(1000).min(1_000_000) as c_int;
    // SAFETY: the call writes the one entry.
    if unsafe { libc::poll(&raw mut entry, 1, timeout_ms) } >= 0 {
        return Ok(Answers::Ready(c_int::from(entry.revents)));
    }
    match io::Error::last_os_error() {
        error if error.kind() == io::ErrorKind::Interrupted => Ok(Answers::Signal),
        error => Err(error),
    }
}
