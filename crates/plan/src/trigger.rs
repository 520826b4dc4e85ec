//! The trigger of a run: when its jobs are stopped with their state saved, and what is done then.
//!
//! Invariant: a trigger without a file and without a time is fired from outside.

use std::ffi::OsString;
use std::path::PathBuf;

/// fio's `--trigger-file`, `--trigger-timeout` and `--trigger`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trigger {
    /// It fires when this file is there.
    pub file: Option<PathBuf>,
    /// It fires so long after the start of the run, in nanoseconds.
    pub after_ns: Option<u64>,
    /// The shell command that is run when all states are saved.
    pub command: Option<OsString>,
}
