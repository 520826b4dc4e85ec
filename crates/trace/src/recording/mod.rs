//! fiord's own form of a trace: what the calls of an application did, a few bytes for each. docs/model.md has the layout.
//!
//! Invariant: what the writer writes is read back as it was; a recording that is not whole is an error with its place.

mod layout;
mod records;
mod writer;

pub use layout::{CallKind, LeftOut, OpenFlags, RecordedIo, RecordingEnd, RecordingHead, Thread};
pub use records::Recorded;
pub use writer::{RECORDING_MARK, RecordingWriter};

pub(crate) use records::{Records, is_magic};

#[cfg(test)]
mod tests;
