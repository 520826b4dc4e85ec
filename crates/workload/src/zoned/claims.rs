//! The writes and trims of a job in zones that have not completed yet.
//!
//! Invariant: a claim is found by its operation, by the rest of one that was short, and by an append wherever in the zone it
//! went.

use fiord_plan::{Action, FileIndex, Op};

/// Writes and trims that a job may have in flight; one that wants more waits.
const CLAIMS_MAX: usize = 4096;

/// A write or a trim.
pub(super) struct Claim {
    pub(super) file: FileIndex,
    pub(super) zone: usize,
    /// What is written; 0 for a trim.
    pub(super) write_bytes: u64,
}

/// Those of a job.
pub(super) struct Claims(Vec<Claim>);

impl Claims {
    pub(super) fn new() -> Claims {
        Claims(Vec::with_capacity(CLAIMS_MAX))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn is_full(&self) -> bool {
        self.0.len() == CLAIMS_MAX
    }

    pub(super) fn push(&mut self, file: usize, zone: usize, write_bytes: u64) {
        self.0.push(Claim { file: file as FileIndex, zone, write_bytes });
    }

    /// The place of the claim of an operation in this zone; `None` for one that claims none.
    pub(super) fn place_of(&self, op: &Op, zone: usize) -> Option<usize> {
        let write_bytes = match op.action {
            Action::Write => op.buffer_offset_bytes + op.length_bytes,
            Action::Trim | Action::ResetZone => 0,
            Action::Read | Action::Sync | Action::DataSync | Action::RangeSync(_) => return None,
        };
        let sought = (op.file, zone, write_bytes);
        self.0.iter().position(|claim| (claim.file, claim.zone, claim.write_bytes) == sought)
    }

    /// The claim of an operation in this zone, which has ended.
    pub(super) fn take(&mut self, op: &Op, zone: usize) -> Option<Claim> {
        let place = self.place_of(op, zone)?;
        Some(self.0.swap_remove(place))
    }

    /// Any claim, of an operation that will not be issued any more.
    pub(super) fn pop(&mut self) -> Option<Claim> {
        self.0.pop()
    }
}
