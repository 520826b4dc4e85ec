//! How many trims blocks lasted, and the state they ended in (`block_error_percentiles`).
//!
//! Invariant: `trims` is ascending, and its blocks are those that were written to or trimmed: all but the unwritten.

use serde::{Deserialize, Serialize};

use crate::capped::Capped;

/// The state of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BlockState {
    /// Neither written nor trimmed yet.
    #[default]
    Unwritten,
    /// Trimmed last.
    Trimmed,
    /// Written last.
    Written,
    /// A trim of it failed.
    TrimFailure,
    /// A write to it failed.
    WriteFailure,
}

impl BlockState {
    /// All, in the order of their numbers.
    pub const ALL: [BlockState; 5] = [
        BlockState::Unwritten,
        BlockState::Trimmed,
        BlockState::Written,
        BlockState::TrimFailure,
        BlockState::WriteFailure,
    ];

    /// fio's name of it.
    pub fn name(self) -> &'static str {
        match self {
            BlockState::Unwritten => "unwritten",
            BlockState::Trimmed => "trimmed",
            BlockState::Written => "written",
            BlockState::TrimFailure => "trim failure",
            BlockState::WriteFailure => "write failure",
        }
    }

    /// Whether an I/O to it failed.
    pub fn is_failure(self) -> bool {
        matches!(self, BlockState::TrimFailure | BlockState::WriteFailure)
    }
}

/// The lifetimes of the blocks of a job, or of a group of jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockLifetimes {
    /// Trims that succeeded before the first failure, and how many blocks had that many; ascending.
    pub trims: Vec<(u64, u64)>,
    /// Blocks by their last state, in the order of [`BlockState::ALL`].
    pub states: [u64; 5],
}

impl BlockLifetimes {
    /// Those of blocks with these states and trims.
    pub fn of(blocks: impl Iterator<Item = (BlockState, u64)>) -> BlockLifetimes {
        let mut by_trims = std::collections::BTreeMap::<u64, u64>::new();
        let mut states = [0; 5];
        for (state, trims) in blocks {
            states[state as usize] += 1;
            if state != BlockState::Unwritten {
                *by_trims.entry(trims).or_default() += 1;
            }
        }
        BlockLifetimes { trims: by_trims.into_iter().collect(), states }
    }

    /// Adds the blocks of another job.
    pub fn merge(&mut self, other: &Self) {
        let BlockLifetimes { trims, states } = other;
        for (number, blocks) in trims {
            match self.trims.binary_search_by_key(number, |(number, _)| *number) {
                Ok(place) => self.trims[place].1 += blocks,
                Err(place) => self.trims.insert(place, (*number, *blocks)),
            }
        }
        self.states.iter_mut().zip(states).for_each(|(sum, blocks)| *sum += blocks);
    }

    /// For each of these percentages, ascending: the smallest number of trims that this share of the blocks did not
    /// exceed. Empty if no block was written or trimmed.
    pub fn percentiles(&self, percents: &[f64]) -> Vec<u64> {
        let total: u64 = self.trims.iter().map(|(_, blocks)| blocks).sum();
        if total == 0 {
            return Vec::new();
        }
        let number_at = |percent: &f64| {
            let rank = u64::capped((percent / 100.0 * total as f64).ceil().clamp(1.0, total as f64));
            let mut below_or_at = 0;
            let at_rank = self.trims.iter().find(|(_, blocks)| {
                below_or_at += blocks;
                below_or_at >= rank
            });
            at_rank.map(|(number, _)| *number)
        };
        percents.iter().filter_map(number_at).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lifetimes(blocks: &[(BlockState, u64)]) -> BlockLifetimes {
        BlockLifetimes::of(blocks.iter().copied())
    }

    #[test]
    fn blocks_are_counted_by_trims_and_by_state() {
        let found = lifetimes(&[
            (BlockState::Trimmed, 3),
            (BlockState::Unwritten, 0),
            (BlockState::TrimFailure, 2),
            (BlockState::Written, 3),
            (BlockState::WriteFailure, 0),
        ]);
        assert_eq!(found, BlockLifetimes { trims: vec![(0, 1), (2, 1), (3, 2)], states: [1; 5] });
        assert_eq!(found.percentiles(&[1.0, 25.0, 26.0, 50.0, 51.0, 100.0]), [0, 0, 2, 2, 3, 3]);
        assert!(lifetimes(&[(BlockState::Unwritten, 0)]).percentiles(&[50.0]).is_empty());
    }

    #[test]
    fn merging_is_the_same_as_counting_all_blocks_together() {
        let (one, other) = (
            [(BlockState::Trimmed, 1), (BlockState::Trimmed, 7)],
            [(BlockState::Written, 0), (BlockState::TrimFailure, 7), (BlockState::Trimmed, 2)],
        );
        let all = lifetimes(&[&one[..], &other[..]].concat());
        let (mut forth, mut back) = (lifetimes(&one), lifetimes(&other));
        forth.merge(&lifetimes(&other));
        back.merge(&lifetimes(&one));
        assert_eq!((&forth, &back), (&all, &all));
        forth.merge(&BlockLifetimes::default());
        assert_eq!(forth, all);
    }
}
