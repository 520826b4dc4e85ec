//! Recording the I/O of a job, and replaying a recorded one.
//!
//! Invariant: the files of a replay are those of the job, in the order in which the trace names them.

use std::path::{Path, PathBuf};

use crate::access::PerDirection;

pub use fiord_trace::{
    EntryKind, FileName, MergeInput, MergedTrace, Summary, TracedFile, Transform, summarize,
};

/// The name that stands for standard input.
pub const STANDARD_INPUT: &str = "-";

/// One of the traces that are merged.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TracePart {
    /// The file.
    pub path: PathBuf,
    /// By what its times are multiplied, in millionths (`merge_blktrace_scalars`).
    pub time_scale_ppm: u64,
    /// How often it is repeated (`merge_blktrace_iters`).
    pub iterations: u64,
}

/// A trace, as it is to be read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TraceNeed {
    /// The file; `-` is standard input.
    pub path: PathBuf,
    /// The traces that are merged into the file before it is read; none if it is read as it is.
    pub parts: Vec<TracePart>,
    /// How its entries are changed.
    pub transform: Transform,
}

/// What is known of a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceFacts {
    /// What it needs.
    pub summary: Summary,
    /// The path of each of its files; a device is looked up by its number.
    pub paths: Vec<PathBuf>,
    /// Where it is read, or where its parts are: not the path itself if that can be read only once, as a pipe.
    pub inputs: Vec<PathBuf>,
}

/// A trace that a job replays instead of an access pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replay {
    /// The trace.
    pub trace: TraceNeed,
    /// Where it is read, or where its parts are (`TraceFacts::inputs`).
    pub inputs: Vec<PathBuf>,
    /// Everything goes to the job's one file, whichever file the trace names (`replay_redirect`).
    pub redirected: bool,
    /// How long the trace is, in nanoseconds.
    pub length_ns: u64,
    /// Bytes of all its transfers.
    pub bytes: u64,
    /// Directions that occur in it.
    pub directions: PerDirection<bool>,
}

impl Replay {
    /// The file that is read during the replay.
    pub fn read_from(&self) -> &Path {
        match self.inputs.first() {
            Some(input) if self.trace.parts.is_empty() => input,
            _ => &self.trace.path,
        }
    }

    /// The file that the trace is merged into, if it is merged.
    pub fn merged(&self) -> Option<&Path> {
        (!self.trace.parts.is_empty()).then_some(&self.trace.path)
    }
}
