//! How the random offsets of a region are found, and for which directions together.
//!
//! Invariant: full coverage means that within a pass no block is drawn twice by the directions that share an order.
//!
//! All directions share one order while their shortest blocks are the same, as in fio. Where they differ, each has
//! an order of its own over its own blocks; fio then counts blocks of different lengths in one map, and stops early.

use fiord_plan::{Access, BlockSizes, Direction, Pattern};

use super::map::BlockMap;
use super::permutation::Permutation;

/// How random offsets are found.
#[derive(Debug, Clone)]
pub(crate) enum Order {
    /// Anywhere, any number of times; how many places there are for each direction.
    Draws([u64; 3]),
    /// Each block once, all of one length.
    Permutation(Permutation),
    /// Each block once, several of them at a time.
    Map(BlockMap),
}

/// What kind of order serves some directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Draws,
    Permutation { block_bytes: u64 },
    Map { block_bytes: u64 },
}

/// The orders of a job, the same for each file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Orders {
    /// One for all directions, or one for each of two.
    pub(crate) kinds: Vec<Kind>,
    /// Which of them serves a direction.
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

    /// The length of all random operations, if they have one and each place comes once.
    pub(crate) fn one_block_bytes(&self) -> Option<u64> {
        match self.kinds[..] {
            [Kind::Permutation { block_bytes }] => Some(block_bytes),
            _ => None,
        }
    }
}

/// The kind for directions with these lengths, the shortest of which is the same, and these alignments.
fn kind(access: &Access, used: &[(&BlockSizes, u64)]) -> Kind {
    let block_bytes = used[0].0.min();
    // Another alignment than to whole blocks (`blockalign`) is without coverage in fio too.
    let is_aligned = access.sizes_by_order || used.iter().all(|(_, align_bytes)| *align_bytes == block_bytes);
    let has_one_length = used.iter().all(|(sizes, _)| sizes.max() == block_bytes);
    let covers = access.full_coverage || access.covers_single_size && has_one_length;
    if !access.random || !covers || !is_aligned || block_bytes == 0 {
        Kind::Draws
    } else if has_one_length {
        Kind::Permutation { block_bytes }
    } else {
        Kind::Map { block_bytes }
    }
}
