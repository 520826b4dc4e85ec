//! Engines for the tests of this crate, one of each kind that makes a difference to a plan, and paths.
//!
//! Invariant: the engines differ in their descriptors only.

use fiord_options::value::EngineName;

use crate::engine::{EngineDescriptor, Engines, FileUse, Queueing};
use crate::facts::PathFacts;
use crate::files::FileKind;
use crate::presentation::RateUnit;

const fn engine(name: EngineName, queueing: Queueing, files: FileUse) -> EngineDescriptor {
    EngineDescriptor {
        files,
        atomic_writes: matches!(name, EngineName::Libaio),
        appends_to_zones: matches!(name, EngineName::IoUring),
        ..EngineDescriptor::of(name, "for tests", queueing)
    }
}

/// Under names that options have, so that jobs can be written down.
pub(crate) const ENGINES: Engines = Engines(&[
    &engine(EngineName::Psync, Queueing::Synchronous, FileUse::Opened),
    &engine(EngineName::Mmap, Queueing::Synchronous, FileUse::Mapped),
    &engine(EngineName::IoUring, Queueing::Queued, FileUse::Opened),
    &engine(EngineName::Libaio, Queueing::QueuedIfDirect, FileUse::Opened),
    &engine(EngineName::Null, Queueing::ByDepth, FileUse::Untouched),
    &engine(EngineName::Nbd, Queueing::Queued, FileUse::Named),
    &engine(EngineName::Net, Queueing::Synchronous, FileUse::Connected(RateUnit::Bits)),
    &engine(EngineName::Rdma, Queueing::Queued, FileUse::Connected(RateUnit::Bytes)),
]);

impl PathFacts {
    /// A regular file of this length, of which nothing else is known.
    pub(crate) fn regular(size_bytes: u64) -> PathFacts {
        PathFacts { exists: true, size_bytes, ..PathFacts::absent() }
    }

    /// A block device of this length and logical block.
    pub(crate) fn block(size_bytes: u64, logical_block_bytes: u64) -> PathFacts {
        PathFacts {
            kind: FileKind::Block,
            logical_block_bytes,
            direct_align_bytes: logical_block_bytes,
            ..PathFacts::regular(size_bytes)
        }
    }
}
