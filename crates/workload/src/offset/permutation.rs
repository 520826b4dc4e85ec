//! A random order that takes each block exactly once, in a few words of memory for any number of blocks.
//!
//! Invariant: between two restarts, `next` returns each number below `blocks` once.
//!
//! The order is a keyed bijection on the smallest power of two that holds all blocks, applied to 0, 1, 2…; numbers
//! that are no blocks are passed over (fewer than half). The bijection is what hash functions end with: rounds of
//! multiplying by an odd number, which carries low bits upwards, and xor with a shift, which carries high bits
//! downwards. Successive numbers do not wait for each other, so the processor works on several at once.

use fiord_stats::random::Random;

const ROUNDS: usize = 3;

/// The order and how far it has got.
#[derive(Debug, Clone)]
pub(crate) struct Permutation {
    blocks: u64,
    left: u64,
    /// The next number to apply the bijection to.
    counter: u64,
    mask: u64,
    shift: u32,
    rounds: [Round; ROUNDS],
}

/// One round's key.
#[derive(Debug, Clone, Copy)]
struct Round {
    /// Odd.
    factor: u64,
    summand: u64,
}

impl Permutation {
    /// An order of `blocks` blocks that depends on the seed.
    pub(crate) fn new(blocks: u64, seed: u64) -> Permutation {
        let bits = (u64::BITS - blocks.saturating_sub(1).leading_zeros()).max(1);
        let mut permutation = Permutation {
            blocks,
            left: 0,
            counter: 0,
            mask: u64::MAX >> (u64::BITS - bits),
            shift: bits.div_ceil(2),
            rounds: [Round { factor: 1, summand: 0 }; ROUNDS],
        };
        permutation.restart(seed);
        permutation
    }

    /// Begins again, in the order that this seed gives.
    pub(crate) fn restart(&mut self, seed: u64) {
        let mut random = Random::new(seed);
        self.rounds.fill_with(|| Round { factor: random.next_u64() | 1, summand: random.next_u64() });
        self.left = self.blocks;
        self.counter = 0;
    }

    /// Blocks to go.
    #[inline]
    pub(crate) fn left(&self) -> u64 {
        self.left
    }

    /// The next block, `None` after the last.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<u64> {
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        loop {
            let block = self.image(self.counter);
            self.counter += 1;
            if block < self.blocks {
                return Some(block);
            }
        }
    }

    #[inline]
    fn image(&self, number: u64) -> u64 {
        self.rounds.iter().fold(number, |x, round| {
            let mixed = x.wrapping_add(round.summand).wrapping_mul(round.factor) & self.mask;
            mixed ^ (mixed >> self.shift)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_comes_once() {
        for blocks in (0..70).chain([255, 256, 257, 1000, 4096, 65_537]) {
            let mut permutation = Permutation::new(blocks, blocks ^ 99);
            let mut seen = vec![false; blocks as usize];
            while let Some(block) = permutation.next() {
                assert!(
                    !std::mem::replace(&mut seen[block as usize], true),
                    "{block} of {blocks} came twice"
                );
            }
            assert!(seen.iter().all(|seen| *seen), "{blocks} blocks");
        }
    }
}
