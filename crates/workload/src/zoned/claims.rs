//! The writes and trims of a job in zones that have not completed yet.
//!
//! Invariant: a claim is found by its operation, by the rest of one that was short, and by an append wherever in the zone it
//! went.

use std::collections::VecDeque;

use fiord_plan::{Action, FileIndex, Op};
use fiord_stats::Capped;

/// Writes and trims that a job may have in flight; one that wants more waits.
const CLAIMS_MAX: usize = 4096;

/// A write or a trim.
#[derive(PartialEq, Eq)]
pub(super) struct Claim {
    pub(super) file: FileIndex,
    pub(super) zone: usize,
    /// What is written; 0 for a trim.
    pub(super) write_bytes: u64,
}

/// Those of a job, about in the order in which they were made: most end in it, so that the first is the one sought.
pub(super) struct Claims(VecDeque<Claim>);

impl Claims {
    pub(super) fn new() -> Claims {
        Claims(VecDeque::with_capacity(CLAIMS_MAX))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn is_full(&self) -> bool {
        self.0.len() == CLAIMS_MAX
    }

    pub(super) fn push(&mut self, file: usize, zone: usize, write_bytes: u64) {
        self.0.push_back(Claim { file: FileIndex::capped(file), zone, write_bytes });
    }

    /// Whether an operation in this zone has a claim.
    pub(super) fn holds(&self, op: &Op, zone: usize) -> bool {
        sought(op, zone).is_some_and(|sought| self.0.contains(&sought))
    }

    /// The claim of an operation in this zone, which has ended; `None` for one that claims none.
    pub(super) fn take(&mut self, op: &Op, zone: usize) -> Option<Claim> {
        let sought = sought(op, zone)?;
        if self.0.front() == Some(&sought) {
            return self.0.pop_front();
        }
        let place = self.0.iter().position(|claim| *claim == sought)?;
        self.0.swap_remove_front(place)
    }

    /// Any claim, of an operation that will not be issued any more.
    pub(super) fn pop(&mut self) -> Option<Claim> {
        self.0.pop_back()
    }
}

/// The claim that an operation in this zone has, if it has any.
fn sought(op: &Op, zone: usize) -> Option<Claim> {
    let write_bytes = match op.action {
        Action::Write => op.buffer_offset_bytes + op.length_bytes,
        Action::Trim | Action::ResetZone => 0,
        Action::Read | Action::Sync | Action::DataSync | Action::RangeSync(_) => return None,
    };
    Some(Claim { file: op.file, zone, write_bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_found_in_whatever_order_operations_end() {
        let op = |zone: u64| Op::new(Action::Write, 0, zone * 100, zone + 1);
        for order in [[0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [2, 0, 4, 1, 3]] {
            let mut claims = Claims::new();
            (0..5).for_each(|zone| claims.push(0, zone, zone as u64 + 1));
            for (ended, zone) in order.into_iter().enumerate() {
                let taken = claims.take(&op(zone), zone as usize);
                assert_eq!(taken.map(|claim| claim.zone), Some(zone as usize), "{order:?}");
                assert!(claims.take(&op(zone), zone as usize).is_none(), "it is there once");
                assert_eq!(claims.is_empty(), ended == 4);
            }
        }
    }
}
