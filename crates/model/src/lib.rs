//! From a trace to the job file that behaves alike: measures what each stream of a trace does, chooses the options that
//! make a job do the same, and compares the job's own operations with the trace.
//!
//! Invariant: pure, and in bounded memory: a trace is read once, entry by entry, and of its blocks at most
//! [`touched::KEPT_MAX`] are kept, an even sample of all.

#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)
)]

pub mod arrivals;
pub mod calls;
pub mod choose;
pub mod counted;
pub mod fidelity;
pub mod jobfile;
pub mod measure;
pub mod own;
pub mod pattern;
pub mod place;
pub mod sizes;
pub mod stream;
pub mod syncs;
pub mod timing;
pub mod touched;
pub mod track;

pub use fiord_trace::{
    CallKind, EntryKind, FileName, IologEvent, IologWriter, LeftOut, OpenFlags, RECORDING_MARK, Reader,
    Recorded, RecordedIo, RecordingEnd, RecordingHead, RecordingWriter, Thread, TraceError, TracePosition,
    Transform,
};
