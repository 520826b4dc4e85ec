//! One operation: the value that goes from the workload through the loop into an engine.
//!
//! Invariant: plain data; what it refers to (a file, a buffer) is named by number.

use crate::access::Direction;

/// Position of a file in the job's list.
pub type FileIndex = u32;

/// What an operation asks of the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Transfer or discard.
    Transfer(Direction),
    /// `fsync`.
    Sync,
    /// `fdatasync`.
    DataSync,
    /// `sync_file_range` with these flags.
    RangeSync(u32),
}

/// One operation. Plain data, made by the workload, passed through the loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Op {
    /// What to do.
    pub action: Action,
    /// To which file.
    pub file: FileIndex,
    /// Where in the file.
    pub offset_bytes: u64,
    /// How much.
    pub length_bytes: u64,
    /// Where in the buffer: more than 0 when a short transfer is continued.
    pub buffer_offset_bytes: u64,
}

impl Op {
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
