//! What a verified job does on its own: its access pattern, on files or in zones.
//!
//! Invariant: every operation that was handed out is settled once, because those in zones hold their zone until then.

use fiord_errno::Errno;
use fiord_plan::{Files, Op};

use crate::source::OperationSource;
use crate::stream::Stream;
use crate::zoned::{Batch, ZonedSource};

/// The operations of the job's access pattern.
#[allow(clippy::large_enum_variant, reason = "there is one per job, and nearly always it is the large one")]
pub(super) enum Operations {
    /// Anywhere in its files.
    Plain(Stream),
    /// In zones.
    Zoned(Box<ZonedSource>),
}

/// The zone that an operation goes to was reset since the job last began to write to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ResetZone {
    pub(super) start_bytes: u64,
    pub(super) length_bytes: u64,
}

impl Operations {
    /// Appends at most `room` operations of this pass.
    pub(super) fn fill_pass(&mut self, ops: &mut Vec<Op>, room: usize, now_ns: u64) -> Batch {
        match self {
            Operations::Plain(stream) => match stream.fill_pass(ops, room) {
                0 => Batch::Over,
                _ => Batch::Made,
            },
            Operations::Zoned(source) => source.fill_pass(ops, room, now_ns),
        }
    }

    /// Begins the next pass, when `fill_pass` has ended one; `false`: that was the last.
    pub(super) fn begin_next_pass(&mut self) -> bool {
        match self {
            Operations::Plain(stream) => stream.begin_next_pass(),
            Operations::Zoned(source) => source.begin_next_pass(),
        }
    }

    /// An operation of the job has completed.
    ///
    /// # Errors
    /// The errno of what had to be done about its zone.
    pub(super) fn completed(&mut self, op: &Op) -> Result<(), Errno> {
        match self {
            Operations::Plain(_) => Ok(()),
            Operations::Zoned(source) => source.completed(op, &[]),
        }
    }

    /// An operation of the job has failed.
    pub(super) fn failed(&mut self, op: &Op, errno: Errno) {
        match self {
            Operations::Plain(_) => {}
            Operations::Zoned(source) => source.failed(op, errno),
        }
    }

    /// What divides the places of writes in zones; 0 without zones.
    pub(super) fn zone_align_bytes(&self, files: &Files) -> u64 {
        match self {
            Operations::Plain(_) => 0,
            Operations::Zoned(source) => source.align_bytes(files),
        }
    }

    /// The zone that `op` goes to, if it was reset since `take_reset` was last asked about it, by this job or another.
    pub(super) fn reset_since(&self, op: &Op) -> Option<ResetZone> {
        match self {
            Operations::Plain(_) => None,
            Operations::Zoned(source) => source
                .reset_since(op)
                .map(|(start_bytes, length_bytes)| ResetZone { start_bytes, length_bytes }),
        }
    }

    /// The same, once for each reset.
    pub(super) fn take_reset(&mut self, op: &Op) -> Option<ResetZone> {
        let reset = self.reset_since(op)?;
        match self {
            Operations::Plain(_) => {}
            Operations::Zoned(source) => source.note_resets(op),
        }
        Some(reset)
    }

    /// The same, as any other source.
    pub(super) fn source(&self) -> &dyn OperationSource {
        match self {
            Operations::Plain(stream) => stream,
            Operations::Zoned(source) => &**source,
        }
    }

    /// The same, as any other source.
    pub(super) fn source_mut(&mut self) -> &mut dyn OperationSource {
        match self {
            Operations::Plain(stream) => stream,
            Operations::Zoned(source) => &mut **source,
        }
    }
}
