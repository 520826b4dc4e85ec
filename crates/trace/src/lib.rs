//! Recorded I/O patterns: fio's iologs (versions 2 and 3), the binary traces of blktrace, and fiord's own recordings.
//!
//! Invariant: a trace is read as a stream, one entry at a time, so that memory does not grow with its length; what
//! cannot be read is an error with its place, never a panic.

#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)
)]

mod blktrace;
mod error;
mod iolog;
mod merge;
mod reader;
mod recording;
mod summary;
mod transform;

pub use error::{TraceError, TracePosition};
pub use iolog::{IologEvent, IologWriter};
pub use merge::{MergeInput, MergedTrace};
pub use reader::Reader;
pub use recording::{
    CallKind, LeftOut, OpenFlags, RECORDING_MARK, Recorded, RecordedIo, RecordingEnd, RecordingHead,
    RecordingWriter, Thread,
};
pub use summary::{Summary, TracedFile, summarize};
pub use transform::{Kinds, Transform};

#[cfg(test)]
mod tests;

use std::path::PathBuf;

/// The longest transfer of one call: a page less than 2 GiB.
pub(crate) const TRANSFER_BYTES_MAX: u64 = 0x7fff_f000;

/// What an entry of a trace does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EntryKind {
    /// Read.
    Read,
    /// Write.
    Write,
    /// Discard.
    Trim,
    /// `fsync`.
    Sync,
    /// `fdatasync`.
    DataSync,
    /// `sync_file_range`.
    RangeSync,
}

impl EntryKind {
    /// All kinds, in order.
    pub const ALL: [EntryKind; 6] = [
        EntryKind::Read,
        EntryKind::Write,
        EntryKind::Trim,
        EntryKind::Sync,
        EntryKind::DataSync,
        EntryKind::RangeSync,
    ];

    /// The word for it in an iolog.
    pub const fn word(self) -> &'static str {
        match self {
            EntryKind::Read => "read",
            EntryKind::Write => "write",
            EntryKind::Trim => "trim",
            EntryKind::Sync => "sync",
            EntryKind::DataSync => "datasync",
            EntryKind::RangeSync => "sync_file_range",
        }
    }

    /// Whether it is of certain bytes, which have to be there.
    pub const fn has_range(self) -> bool {
        matches!(self, EntryKind::Read | EntryKind::Write | EntryKind::Trim)
    }

    /// Whether it moves data between the file and memory.
    pub const fn transfers(self) -> bool {
        matches!(self, EntryKind::Read | EntryKind::Write)
    }
}

/// One I/O of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// When it was issued, in nanoseconds since the beginning of the trace.
    pub at_ns: u64,
    /// Position of its file in [`Reader::files`].
    pub file: u32,
    /// What it does.
    pub kind: EntryKind,
    /// First byte; 0 for synchronizations of whole files.
    pub offset_bytes: u64,
    /// Bytes; 0 for synchronizations of whole files, and of all from the first byte on.
    pub length_bytes: u64,
}

/// How a trace names a file.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FileName {
    /// By its path.
    Path(PathBuf),
    /// A block device by its number.
    Device {
        /// Major number.
        major: u32,
        /// Minor number.
        minor: u32,
    },
}
