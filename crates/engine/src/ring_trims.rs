//! Trims that go through a ring: which files take them, and how long each is.
//!
//! Invariant: a trim is queued only where the kernel has shown that it queues it: discards of block devices (Linux 6.12)
//! and holes in regular files (Linux 5.6). All other trims are left to a blocking call.

use std::os::fd::BorrowedFd;

use fiord_plan::{FileIndex, Op};
use fiord_sys::errno::Errno;
use fiord_sys::stat::{self, InodeKind};
use fiord_sys::uring;
use fiord_sys::width::low_u32;

use crate::contract::Outcome;

/// Marks the user data of a trim, whose result is 0 where that of a transfer is its length.
const TRIM: u64 = 1 << 32;

/// How a trim is queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TrimCall {
    /// A command of a block device.
    Discard,
    /// `fallocate` of a regular file.
    PunchHole,
}

/// The trims of one engine.
#[derive(Debug)]
pub(crate) struct RingTrims {
    /// By file; `None` for those whose trims cannot be queued.
    calls: Box<[Option<TrimCall>]>,
    /// By slot: the bytes of its last trim.
    lengths: Box<[u64]>,
    /// Whether the ring takes anything but transfers, and can punch holes.
    available: bool,
}

impl RingTrims {
    /// For this many slots and files. `available`: the ring keeps its entries and does not poll, and its kernel punches holes.
    pub(crate) fn new(slots: u32, files: usize, available: bool) -> RingTrims {
        let (calls, lengths) = (vec![None; files], vec![0; slots as usize]);
        RingTrims { calls: calls.into(), lengths: lengths.into(), available }
    }

    /// A file was opened.
    pub(crate) fn attach(&mut self, file: FileIndex, fd: BorrowedFd<'_>) {
        let kind = stat::fstat(fd).ok().filter(|_| self.available).map(|found| found.kind);
        let call = if kind == Some(InodeKind::Regular) {
            Some(TrimCall::PunchHole)
        } else if kind == Some(InodeKind::Block) && uring::queues_discards(fd) {
            Some(TrimCall::Discard)
        } else {
            None
        };
        if let Some(place) = self.calls.get_mut(file as usize) {
            *place = call;
        }
    }

    /// Whether the trims of a file go through the ring.
    pub(crate) fn are_queued(&self, file: FileIndex) -> bool {
        self.calls.get(file as usize).is_some_and(Option::is_some)
    }

    /// The call for a trim of a file that takes them, which is queued in this slot.
    pub(crate) fn begin(&mut self, index: u32, op: &Op) -> TrimCall {
        self.lengths[index as usize] = op.length_bytes;
        self.calls.get(op.file as usize).copied().flatten().unwrap_or(TrimCall::PunchHole)
    }

    /// The user data of a trim in this slot.
    pub(crate) fn user_data(index: u32) -> u64 {
        TRIM | u64::from(index)
    }

    /// How an operation without a length as its result ended.
    #[cold]
    pub(crate) fn outcome(&self, user_data: u64, result: i32) -> Outcome {
        match result {
            0 if user_data & TRIM != 0 => Outcome::Done(self.lengths[low_u32(user_data) as usize]),
            0.. => Outcome::Done(u64::from(result.cast_unsigned())),
            error => Outcome::Failed(Errno(-error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fiord_plan::Action;

    #[test]
    fn a_trim_that_succeeded_has_its_length_and_a_read_at_the_end_none() {
        let mut trims = RingTrims::new(2, 1, true);
        trims.begin(1, &Op::new(Action::Trim, 0, 0, 65536));
        assert_eq!(trims.outcome(RingTrims::user_data(1), 0), Outcome::Done(65536));
        assert_eq!(trims.outcome(1, 0), Outcome::Done(0));
        assert_eq!(trims.outcome(RingTrims::user_data(1), -95), Outcome::Failed(Errno(95)));
    }
}
