//! Which blocks a stream touches, how often, and how soon again.
//!
//! Invariant: at most [`KEPT_MAX`] blocks are kept in all: those whose hash is below a threshold that falls as more are
//! seen (SHARDS), so that what is kept is an even sample, and figures of it stand for all.

use std::collections::HashMap;

use fiord_stats::random::splitmix64;

use crate::counted::{Counted, quarter_octave};

/// Blocks that are kept of all streams of a trace together.
pub const KEPT_MAX: usize = 1 << 19;

/// Which blocks are kept, of all streams.
#[derive(Debug, Clone)]
pub struct Sampling {
    /// Blocks with a hash of at most this are kept.
    hash_max: u64,
    kept: usize,
    kept_max: usize,
}

impl Default for Sampling {
    fn default() -> Sampling {
        Sampling { hash_max: u64::MAX, kept: 0, kept_max: KEPT_MAX }
    }
}

impl Sampling {
    /// The share of all blocks that is kept, above 0 and at most 1.
    pub fn share(&self) -> f64 {
        (self.hash_max as f64 / u64::MAX as f64).max(f64::MIN_POSITIVE)
    }

    /// Keeps half as many blocks, of all that there are, if there are too many.
    pub(crate) fn thin<'a>(&mut self, all: impl Iterator<Item = &'a mut Touched>) {
        if self.kept <= self.kept_max {
            return;
        }
        self.hash_max /= 2;
        let hash_max = self.hash_max;
        let left = |touched: &mut Touched| {
            touched.blocks.retain(|offset_bytes, _| splitmix64(*offset_bytes) <= hash_max);
            touched.blocks.len()
        };
        self.kept = all.map(left).sum();
    }
}

/// What is known of a block.
#[derive(Debug, Clone, Copy)]
struct Block {
    /// Which access of the stream was the last to it, from 1.
    last: u64,
    /// Accesses that did not continue where the one before ended.
    jumps: u32,
}

/// The blocks of one stream, by the offset at which accesses begin.
#[derive(Debug, Clone, Default)]
pub struct Touched {
    blocks: HashMap<u64, Block>,
    accesses: u64,
    jumps: u64,
    reuse: Counted,
}

impl Touched {
    /// Adds an access; `is_jump` if it does not continue where the one before ended.
    pub(crate) fn add(&mut self, offset_bytes: u64, is_jump: bool, sampling: &mut Sampling) {
        self.accesses += 1;
        self.jumps += u64::from(is_jump);
        if splitmix64(offset_bytes) > sampling.hash_max {
            return;
        }
        let accesses = self.accesses;
        let block = self.blocks.entry(offset_bytes).or_insert_with(|| {
            sampling.kept += 1;
            Block { last: 0, jumps: 0 }
        });
        if block.last > 0 {
            self.reuse.add(quarter_octave(accesses - block.last));
        }
        block.last = accesses;
        block.jumps += u32::from(is_jump);
    }

    /// How many blocks were touched, as far as the sample tells.
    pub fn unique(&self, sampling: &Sampling) -> f64 {
        self.blocks.len() as f64 / sampling.share()
    }

    /// Accesses of the stream from one use of a block to its next, to a quarter of an octave.
    pub fn reuse(&self) -> &Counted {
        &self.reuse
    }

    /// The blocks of the sample that were jumped to: offset and how often.
    pub fn jumped_to(&self) -> impl Iterator<Item = (u64, u32)> + '_ {
        let jumped = self.blocks.iter().filter(|(_, block)| block.jumps > 0);
        jumped.map(|(offset_bytes, block)| (*offset_bytes, block.jumps))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_sample_is_halved_and_still_stands_for_all() {
        let mut sampling = Sampling { kept_max: 1000, ..Sampling::default() };
        let mut touched = Touched::default();
        for block in 0..100_000 {
            touched.add(block * 4096, true, &mut sampling);
            sampling.thin(std::iter::once(&mut touched));
        }
        assert!(touched.blocks.len() <= 1001 && sampling.share() < 0.02);
        let unique = touched.unique(&sampling);
        assert!((85_000.0..115_000.0).contains(&unique), "{unique}");
    }

    #[test]
    fn reuse_counts_the_accesses_in_between() {
        let (mut sampling, mut touched) = (Sampling::default(), Touched::default());
        [0, 1, 2, 0, 0].into_iter().for_each(|block| touched.add(block, true, &mut sampling));
        assert_eq!(touched.reuse().iter().collect::<Vec<_>>(), [(1, 1), (3, 1)]);
        assert_eq!((touched.unique(&sampling), touched.jumps), (3.0, 5));
        assert_eq!(touched.jumped_to().map(|(_, jumps)| jumps).max(), Some(3));
    }
}
