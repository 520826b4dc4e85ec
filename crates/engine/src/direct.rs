//! Operations that every engine may do with one blocking system call: synchronisations and discards.
//!
//! Invariant: no buffer is touched; the outcome of a synchronisation is 0 bytes, of a discard its whole length.

use std::io;
use std::os::fd::RawFd;

use fiord_plan::{Action, Direction, Op};
use fiord_sys::errno::Errno;

use crate::contract::Outcome;

/// `_IO(0x12, 119)` of linux/fs.h.
const BLKDISCARD: libc::Ioctl = libc::_IO(0x12, 119);

/// Ends an operation that is neither a read nor a write.
#[inline(never)]
pub(crate) fn call(fd: RawFd, op: &Op) -> Outcome {
    // SAFETY: none of these calls is given memory, except the discard its two numbers; a bad descriptor is an error.
    let answer = unsafe {
        match op.action {
            Action::Sync => libc::fsync(fd),
            Action::DataSync => libc::fdatasync(fd),
            Action::RangeSync(flags) => {
                let (offset, length) = (op.offset_bytes as libc::off64_t, op.length_bytes as libc::off64_t);
                libc::sync_file_range(fd, offset, length, flags)
            }
            Action::Transfer(Direction::Trim) => return discard(fd, op),
            Action::Transfer(Direction::Read | Direction::Write) => {
                unreachable!("reads and writes are the engine's")
            }
        }
    };
    if answer == 0 { Outcome::Done(0) } else { last_error() }
}

/// Discards a range of a block device. A regular file answers `ENOTTY`: fio trims devices only, and so do we.
fn discard(fd: RawFd, op: &Op) -> Outcome {
    let range = [op.offset_bytes, op.length_bytes];
    // SAFETY: BLKDISCARD reads two u64 behind the pointer, which live through the call.
    let answer = unsafe { libc::ioctl(fd, BLKDISCARD, range.as_ptr()) };
    if answer == 0 { Outcome::Done(op.length_bytes) } else { last_error() }
}

fn last_error() -> Outcome {
    Outcome::Failed(Errno(io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn op(action: Action) -> Op {
        Op { action, file: 0, offset_bytes: 0, length_bytes: 4096, buffer_offset_bytes: 0 }
    }

    #[test]
    fn a_closed_file_cannot_be_synchronised_or_discarded() {
        for action in
            [Action::Sync, Action::DataSync, Action::RangeSync(2), Action::Transfer(Direction::Trim)]
        {
            assert_eq!(call(-1, &op(action)), Outcome::Failed(Errno(libc::EBADF)), "{action:?}");
        }
    }
}
