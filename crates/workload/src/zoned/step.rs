//! What comes of wanting an operation on zones.
//!
//! Invariant: a job that waits is asked again; one that would wait for ever stops, with the reason.

use fiord_errno::Errno;
use fiord_plan::Op;
use fiord_plan::shown::shown;

use super::file::ZonedFile;
use crate::source::Supply;

/// Why there are no more operations.
pub(super) enum Stop {
    /// A zone of this file cannot be reset or finished.
    Errno(usize, Errno),
    /// No zone of this file may be opened, and no other job will close any.
    NoZone(usize),
}

/// What came of wanting an operation.
pub(super) enum Step {
    Made(Op),
    /// Other jobs use the zones that it needs.
    Wait,
    /// As many zones of this file are open as may be, none of which it can write to.
    NoZone(usize),
    /// The file has no (more) operation of this kind.
    Done,
    /// A zone is to be reset, before which what is in it may be read back.
    BeforeReset,
    Failed(usize, Errno),
}

/// What came of taking operations from a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Batch {
    /// At least one was made.
    Made,
    /// None is left in this pass.
    Over,
    /// None for now.
    Wait(Supply),
    /// None before what the job has written is read back: a zone is to be reset. The next call resets it.
    BeforeReset,
}

/// Whether a zone is reset before it is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EarlyReset {
    /// The job makes no such resets, or little is written yet.
    None,
    /// So much is written that a later write will.
    Later,
    /// By the next write.
    Now,
}

/// What came of wanting to reset a zone.
pub(super) enum Reset {
    /// It was reset, or need not be.
    Done,
    /// Something is in flight there.
    Busy,
    /// What is in it may be read back first.
    Asked,
}

impl Stop {
    /// The reason as a text, of a job with these files. Allocates.
    pub(super) fn explain(&self, files: &[ZonedFile]) -> String {
        match *self {
            Stop::Errno(file, errno) => {
                let path = shown(&files[file].path);
                format!("a zone of {path} cannot be reset or finished: {errno}")
            }
            Stop::NoZone(file) => {
                let one = &files[file];
                let open_bytes = one.table.nth_open(0).map_or(0, |zone| one.table.layout(zone).start_bytes);
                format!(
                    "no zone of {} may be opened: all that may be open at once ({}) are open already, such as the one at \
                     offset {open_bytes}, where this job does not write, and no job that runs will close them (none writes \
                     there, or all wait); raise max_open_zones, or reset or finish these zones before the run",
                    shown(&one.path),
                    one.table.open_max(),
                )
            }
        }
    }
}
