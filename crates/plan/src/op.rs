//! One operation: the value that goes from the workload through the loop into an engine.
//!
//! Invariant: plain data; what it refers to (a file, a buffer) is named by number.

// An action that is added must be handled wherever actions are matched: no arm may swallow it.
#![deny(clippy::wildcard_enum_match_arm)]

use crate::access::Direction;

/// Position of a file in the job's list.
pub type FileIndex = u32;

/// What an operation does.
///
/// Flat, and matched without wildcards (`clippy::wildcard_enum_match_arm`): an action that is added does not compile
/// before each engine handles it, and can never be taken for a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// From the target into the buffer.
    Read,
    /// From the buffer to the target.
    Write,
    /// Discard of a range.
    Trim,
    /// `fsync`.
    Sync,
    /// `fdatasync`.
    DataSync,
    /// `sync_file_range` with these flags.
    RangeSync(u8),
    /// Reset of the zone of a zoned device.
    ResetZone,
}

impl Action {
    /// The direction it counts as in per-direction figures; `None` for synchronisations.
    #[inline]
    pub fn direction(self) -> Option<Direction> {
        match self {
            Action::Read => Some(Direction::Read),
            Action::Write => Some(Direction::Write),
            Action::Trim => Some(Direction::Trim),
            // A branch that the loops do not take: five instructions of each I/O less than a table of all actions.
            Action::ResetZone | Action::Sync | Action::DataSync | Action::RangeSync(_) => {
                self.rare_direction()
            }
        }
    }

    /// The direction of actions other than reads, writes and trims.
    #[cold]
    fn rare_direction(self) -> Option<Direction> {
        match self {
            Action::ResetZone => Some(Direction::Trim),
            Action::Read
            | Action::Write
            | Action::Trim
            | Action::Sync
            | Action::DataSync
            | Action::RangeSync(_) => None,
        }
    }

    /// Whether it moves data between the target and the buffer.
    #[inline]
    pub fn transfers(self) -> bool {
        match self {
            Action::Read | Action::Write => true,
            Action::Trim | Action::ResetZone | Action::Sync | Action::DataSync | Action::RangeSync(_) => {
                false
            }
        }
    }

    /// Whether the buffer's contents are written to the target, so that the buffer must be filled first.
    #[inline]
    pub fn sends_buffer(self) -> bool {
        match self {
            Action::Write => true,
            Action::Read
            | Action::Trim
            | Action::ResetZone
            | Action::Sync
            | Action::DataSync
            | Action::RangeSync(_) => false,
        }
    }

    /// Whether it reads data into the buffer, so that 0 bytes mean the end of the file.
    #[inline]
    pub fn fills_buffer(self) -> bool {
        match self {
            Action::Read => true,
            Action::Write
            | Action::Trim
            | Action::ResetZone
            | Action::Sync
            | Action::DataSync
            | Action::RangeSync(_) => false,
        }
    }
}

impl From<Direction> for Action {
    #[inline]
    fn from(direction: Direction) -> Action {
        match direction {
            Direction::Read => Action::Read,
            Direction::Write => Action::Write,
            Direction::Trim => Action::Trim,
        }
    }
}

/// What an operation is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum Purpose {
    /// The job's own I/O.
    #[default]
    Measured,
    /// Reads back what was written, to compare it.
    VerifyRead,
    /// Trims what was written, before it is read back.
    VerifyTrim,
    /// An operation of a trace, issued at its time.
    Replay,
    /// Writes contents that the job will read.
    #[allow(
        dead_code,
        reason = "for sources that lay out their own files; so far only tests of the loops have one"
    )]
    Layout,
}

/// How an operation is treated because of its purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PurposeRules {
    /// Counted, timed and logged as an I/O of the job, in its statistics and in the live line.
    pub is_measured: bool,
    /// Subject to the job's rates and think time.
    pub is_paced: bool,
    /// Its errors may be ignored if the job allows it (`continue_on_error`); otherwise an error ends the job.
    pub may_fail: bool,
}

impl Purpose {
    /// The one table of what purposes mean, used by the recorder, the rate limiter and the error policy.
    #[inline]
    pub const fn rules(self) -> PurposeRules {
        let (is_measured, is_paced, may_fail) = match self {
            Purpose::Measured => (true, true, true),
            // As in fio, reading back counts as reading, and trimming what was written as trimming.
            Purpose::VerifyRead | Purpose::VerifyTrim => (true, false, true),
            Purpose::Replay => (true, false, true),
            Purpose::Layout => (false, false, false),
        };
        PurposeRules { is_measured, is_paced, may_fail }
    }
}

// Six words, which three vector registers carry: 64 operations are made at once and stay in the first-level cache.
const _: () = assert!(size_of::<Action>() == 2 && size_of::<Op>() == 48);

/// One operation. Plain data, made by the workload, passed through the loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Op {
    /// What to do.
    pub action: Action,
    /// What for.
    pub purpose: Purpose,
    /// Number of its priority (`IoPriorities`); 0 is the job's own.
    pub priority: u8,
    /// To which file.
    pub file: FileIndex,
    /// Where in the file.
    pub offset_bytes: u64,
    /// How much.
    pub length_bytes: u64,
    /// Where in the buffer: more than 0 when a short transfer is continued.
    pub buffer_offset_bytes: u64,
    /// Its number in its source; 0 from the generator, which does not number them.
    pub sequence: u64,
    /// Its intended start, before which it is not issued, in nanoseconds since the loop began; 0: at once. A rate sets it
    /// when it lets the operation be issued.
    pub due_ns: u64,
}

impl Op {
    /// An I/O of the job, or a synchronisation, to be issued as soon as possible.
    #[must_use]
    #[inline]
    pub const fn new(action: Action, file: FileIndex, offset_bytes: u64, length_bytes: u64) -> Op {
        let (purpose, buffer_offset_bytes) = (Purpose::Measured, 0);
        let (priority, sequence, due_ns) = (0, 0, 0);
        Op {
            action,
            purpose,
            priority,
            file,
            offset_bytes,
            length_bytes,
            buffer_offset_bytes,
            sequence,
            due_ns,
        }
    }

    /// The rest of this operation after `done_bytes` were transferred.
    #[must_use]
    pub fn rest(self, done_bytes: u64) -> Op {
        Op {
            offset_bytes: self.offset_bytes + done_bytes,
            length_bytes: self.length_bytes - done_bytes,
            buffer_offset_bytes: self.buffer_offset_bytes + done_bytes,
            ..self
        }
    }

    /// Whether this operation and `other` have bytes of a file in common.
    #[must_use]
    pub fn overlaps(&self, other: &Op) -> bool {
        let ends_after = |one: &Op, start_bytes: u64| start_bytes - one.offset_bytes < one.length_bytes;
        self.file == other.file
            && match self.offset_bytes <= other.offset_bytes {
                true => other.length_bytes > 0 && ends_after(self, other.offset_bytes),
                false => self.length_bytes > 0 && ends_after(other, self.offset_bytes),
            }
    }

    /// Bytes of the operation that this is the rest of.
    #[inline]
    pub fn whole_bytes(&self) -> u64 {
        self.buffer_offset_bytes + self.length_bytes
    }

    /// The operation that this is the rest of.
    #[must_use]
    #[inline]
    pub fn whole(self) -> Op {
        Op {
            offset_bytes: self.offset_bytes - self.buffer_offset_bytes,
            length_bytes: self.whole_bytes(),
            buffer_offset_bytes: 0,
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_overlap_in_the_bytes_of_one_file() {
        let op = |file, offset_bytes, length_bytes| Op::new(Action::Write, file, offset_bytes, length_bytes);
        let middle = op(0, 4096, 4096);
        for (other, overlaps) in [
            (op(0, 4096, 4096), true),
            (op(0, 0, 4097), true),
            (op(0, 8191, 1), true),
            (op(0, 0, u64::MAX), true),
            (op(0, 0, 4096), false),
            (op(0, 8192, 4096), false),
            (op(0, 5000, 0), false),
            (op(1, 4096, 4096), false),
        ] {
            assert_eq!((middle.overlaps(&other), other.overlaps(&middle)), (overlaps, overlaps), "{other:?}");
        }
    }

    #[test]
    fn a_direction_becomes_its_own_action_and_no_other() {
        for direction in Direction::ALL {
            let action = Action::from(direction);
            assert_eq!(action.direction(), Some(direction));
            assert_eq!(action.sends_buffer(), direction == Direction::Write);
            assert_eq!(action.fills_buffer(), direction == Direction::Read);
        }
        for action in [Action::Sync, Action::DataSync, Action::RangeSync(2)] {
            assert_eq!(action.direction(), None);
            assert!(!action.sends_buffer() && !action.fills_buffer());
        }
    }

    #[test]
    fn the_rest_of_an_operation_knows_the_whole_of_it() {
        let whole = Op::new(Action::from(Direction::Read), FileIndex::default(), 8192, 4096);
        let rest = whole.rest(512).rest(1024);
        assert_eq!((rest.offset_bytes, rest.length_bytes, rest.buffer_offset_bytes), (9728, 2560, 1536));
        assert_eq!((whole.whole_bytes(), rest.whole_bytes()), (4096, 4096));
        assert_eq!(rest.whole(), whole);
    }
}
