//! Operations that any engine may execute with one blocking system call: synchronisations and discards.
//!
//! Invariant: no buffer is touched; the outcome of a synchronisation is 0 bytes, of a discard its whole length.

use std::io;
use std::os::fd::RawFd;

use fiord_plan::{Action, Op};
use fiord_sys::errno::Errno;
use fiord_sys::resize::{Allocation, fallocate};

use crate::attached_files::AttachedFiles;
use crate::contract::Outcome;

/// `_IO(0x12, 119)` of linux/fs.h.
const BLKDISCARD: libc::Ioctl = libc::_IO(0x12, 119);

/// `_IOW(0x12, 131, struct blk_zone_range)` of linux/blkzoned.h.
const BLKRESETZONE: libc::Ioctl = libc::_IOW::<[u64; 2]>(0x12, 131);

const SECTOR_BYTES: u64 = 512;

/// Ends an operation that is neither a read nor a write.
#[inline(never)]
pub(crate) fn execute(fd: RawFd, op: &Op) -> Outcome {
    // SAFETY: none of these calls takes memory, except the discard its two numbers; a bad descriptor is an error.
    let answer = unsafe {
        match op.action {
            Action::Sync => libc::fsync(fd),
            Action::DataSync => libc::fdatasync(fd),
            Action::RangeSync(flags) => {
                let (offset, length) = (op.offset_bytes.cast_signed(), op.length_bytes.cast_signed());
                libc::sync_file_range(fd, offset, length, u32::from(flags))
            }
            Action::Trim => return discard(fd, op),
            Action::ResetZone => return reset_zone(fd, op),
            Action::Read | Action::Write => unreachable!("reads and writes are the engine's"),
        }
    };
    if answer == 0 { Outcome::Done(0) } else { last_error() }
}

/// The outcome of an operation that is neither a read nor a write, in a queued engine that executes these between its
/// submissions; `None` for the others.
#[inline]
pub(crate) fn execute_unqueued(files: &AttachedFiles, op: &Op) -> Option<Outcome> {
    (!op.action.transfers()).then(|| execute(files.get(op.file), op))
}

/// Whether an operation that such an engine queues reads, and does not write.
#[inline]
pub(crate) fn is_read(op: &Op) -> bool {
    match op.action {
        Action::Read => true,
        Action::Write => false,
        Action::Trim | Action::ResetZone | Action::Sync | Action::DataSync | Action::RangeSync(_) => {
            unreachable!("not queued: `execute_unqueued`")
        }
    }
}

/// Discards a range of a block device, or punches a hole into a regular file. Only a block device has the ioctl, so
/// that a regular file costs one call more, which fails at once; the other way round would write zeroes to devices that
/// take discards.
fn discard(fd: RawFd, op: &Op) -> Outcome {
    match block_discard(fd, op) {
        // On a device that takes no discards, a hole is a command of the device that writes zeroes, if it has one.
        Outcome::Failed(Errno(libc::ENOTTY | libc::EOPNOTSUPP)) => after_write_back_if_busy(punch, fd, op),
        Outcome::Failed(Errno(libc::EBUSY)) => after_write_back_if_busy(block_discard, fd, op),
        outcome @ (Outcome::Done(_) | Outcome::Appended(_) | Outcome::Failed(_)) => outcome,
    }
}

/// Makes zones of a zoned device empty.
fn reset_zone(fd: RawFd, op: &Op) -> Outcome {
    let range = [op.offset_bytes / SECTOR_BYTES, op.length_bytes / SECTOR_BYTES];
    // SAFETY: BLKRESETZONE reads two u64 through the pointer, which live during the call.
    let answer = unsafe { libc::ioctl(fd, BLKRESETZONE, range.as_ptr()) };
    if answer == 0 { Outcome::Done(op.length_bytes) } else { last_error() }
}

fn block_discard(fd: RawFd, op: &Op) -> Outcome {
    let range = [op.offset_bytes, op.length_bytes];
    // SAFETY: BLKDISCARD reads two u64 through the pointer, which live during the call.
    let answer = unsafe { libc::ioctl(fd, BLKDISCARD, range.as_ptr()) };
    if answer == 0 { Outcome::Done(op.length_bytes) } else { last_error() }
}

/// If the claim on the device is held through another descriptor, the kernel does not drop cached pages that are to be
/// written, and refuses to discard what is below them.
fn after_write_back_if_busy(trim: fn(RawFd, &Op) -> Outcome, fd: RawFd, op: &Op) -> Outcome {
    match trim(fd, op) {
        Outcome::Failed(Errno(libc::EBUSY)) => {}
        outcome @ (Outcome::Done(_) | Outcome::Appended(_) | Outcome::Failed(_)) => return outcome,
    }
    let flags =
        libc::SYNC_FILE_RANGE_WAIT_BEFORE | libc::SYNC_FILE_RANGE_WRITE | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    let (offset, length) = (op.offset_bytes.cast_signed(), op.length_bytes.cast_signed());
    // SAFETY: the call takes no memory; a bad descriptor is an error.
    let answer = unsafe { libc::sync_file_range(fd, offset, length, flags) };
    if answer == 0 { trim(fd, op) } else { last_error() }
}

/// Makes a range of a regular file a hole; its length stays. Writes zeroes to a range of a block device, but only by a
/// command of the device: the kernel writes no data in its place.
fn punch(fd: RawFd, op: &Op) -> Outcome {
    let done = fallocate(fd, Allocation::PunchHole, op.offset_bytes, op.length_bytes);
    done.map(|()| op.length_bytes).into()
}

fn last_error() -> Outcome {
    Outcome::Failed(Errno(io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn op(action: Action) -> Op {
        Op::new(action, 0, 0, 4096)
    }

    #[test]
    fn the_number_of_the_request_is_the_kernels() {
        assert_eq!(BLKDISCARD as u32, 0x1277);
    }

    #[test]
    fn a_closed_file_cannot_be_synchronised_or_discarded() {
        for action in [Action::Sync, Action::DataSync, Action::RangeSync(2), Action::Trim, Action::ResetZone]
        {
            assert_eq!(execute(-1, &op(action)), Outcome::Failed(Errno(libc::EBADF)), "{action:?}");
        }
    }
}
