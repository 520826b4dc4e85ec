//! How the random offsets of a region are chosen, and which directions share an order.
//!
//! Invariant: full coverage means that within a pass no block is drawn twice by the directions that share an order.
//!
//! All directions share one order if their shortest blocks are the same, as in fio. If they differ, each direction has
//! its own order over its own blocks; fio then counts blocks of different lengths in one map, and stops early.

use fiord_plan::{Access, BlockSizes, Direction, Pattern, RandomDistribution};

use super::map::BlockMap;
use super::permutation::Permutation;
use super::spread::Spread;

/// How random offsets are chosen.
#[derive(Debug, Clone)]
pub(crate) enum Order {
    /// Any place, any number of times; the number of places for each direction.
    Draws([u64; 3]),
    /// Anywhere, any number of times, some places more often than others; for each direction.
    Spread(Box<[Spread; 3]>),
    /// Each block once, all of one length.
    Permutation(Permutation),
    /// Each block once, several at a time.
    Map(BlockMap),
}

/// The kind of order for some directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OrderKind {
    Draws,
    Spread,
    Permutation { block_bytes: u64 },
    Map { block_bytes: u64 },
}

/// The orders of a job, the same for each file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Orders {
    /// One for all directions, or one for each of two.
    pub(crate) kinds: Vec<OrderKind>,
    /// Which of them a direction uses.
    pub(crate) index: [usize; 3],
}

impl Orders {
    pub(crate) fn new(access: &Access) -> Orders {
        let sizes = |direction: Direction| {
            // Random operations take the second block size, whatever their direction.
            let index = if access.sizes_by_order { Direction::Write.index() } else { direction.index() };
            (&access.block_sizes[index], access.align_bytes[direction.index()])
        };
        let of_one =
            |direction: Direction| Orders { kinds: vec![kind(access, &[sizes(direction)])], index: [0; 3] };
        match access.pattern {
            Pattern::Only(direction) => of_one(direction),
            // A write goes where its trim went.
            Pattern::TrimThenWrite => of_one(Direction::Trim),
            Pattern::Mixed => {
                let (read, write) = (sizes(Direction::Read), sizes(Direction::Write));
                if read.0.min() == write.0.min() {
                    Orders { kinds: vec![kind(access, &[read, write])], index: [0; 3] }
                } else {
                    Orders { kinds: vec![kind(access, &[read]), kind(access, &[write])], index: [0, 1, 0] }
                }
            }
        }
    }

    /// The length of all random operations, if it is fixed and each place is used once.
    pub(crate) fn one_block_bytes(&self) -> Option<u64> {
        match self.kinds[..] {
            [OrderKind::Permutation { block_bytes }] => Some(block_bytes),
            _ => None,
        }
    }
}

/// The kind for directions with these lengths, the shortest of which are equal, and these alignments.
fn kind(access: &Access, used: &[(&BlockSizes, u64)]) -> OrderKind {
    let block_bytes = used[0].0.min();
    // With an alignment other than whole blocks (`blockalign`) there is no full coverage in fio either.
    let is_aligned = access.sizes_by_order || used.iter().all(|(_, align_bytes)| *align_bytes == block_bytes);
    let has_one_length = used.iter().all(|(sizes, _)| sizes.max() == block_bytes);
    // Directions that are spread differently cannot share an order, and fio keeps a map of none that is skewed.
    if access.random && access.distribution.iter().any(|one| *one != RandomDistribution::Uniform) {
        return OrderKind::Spread;
    }
    let covers = access.full_coverage || access.covers_single_size && has_one_length;
    if !access.random || !covers || !is_aligned || block_bytes == 0 {
        OrderKind::Draws
    } else if has_one_length {
        OrderKind::Permutation { block_bytes }
    } else {
        OrderKind::Map { block_bytes }
    }
}
