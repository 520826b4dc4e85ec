//! Why a job has no stream of operations.
//!
//! Invariant: the text names what the user can change.

use std::fmt;

use fiord_plan::{Direction, FileIndex};

/// Why there is no stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkloadError {
    /// The job has no file.
    NoFiles,
    /// A block size is 0.
    EmptyBlock(Direction),
    /// The map of blocks does not fit into memory.
    MapTooLarge {
        /// The file it is for.
        file: FileIndex,
        /// Blocks of the file.
        blocks: u64,
    },
    /// The record of what was written, for verification, does not fit into memory.
    LedgerTooLarge {
        /// Blocks of all files.
        blocks: u64,
    },
    /// The saved state is fio's, with writes in random order.
    ForeignOrder,
}

impl fmt::Display for WorkloadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WorkloadError::NoFiles => write!(f, "the job has no file"),
            WorkloadError::EmptyBlock(direction) => {
                write!(f, "the block size for {}s is 0", direction.name())
            }
            WorkloadError::MapTooLarge { file, blocks } => {
                write!(f, "no memory for the map of the {blocks} blocks of file {file}; see softrandommap")
            }
            WorkloadError::ForeignOrder => write!(
                f,
                "the saved state is fio's, and fio draws another random order: the blocks it refers to are not known; \
                 verify with fio, or without verify_state_load"
            ),
            WorkloadError::LedgerTooLarge { blocks } => {
                write!(
                    f,
                    "no memory for the record of {blocks} blocks to be verified; see size and verify_backlog"
                )
            }
        }
    }
}

impl std::error::Error for WorkloadError {}
