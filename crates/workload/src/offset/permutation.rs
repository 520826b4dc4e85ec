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
        permutation.reseed(seed);
        permutation
    }

    /// Begins again, in the order that this seed gives.
    pub(crate) fn reseed(&mut self, seed: u64) {
        let mut random = Random::new(seed);
        self.rounds.fill_with(|| Round { factor: random.next_u64() | 1, summand: random.next_u64() });
        self.restart();
    }

    /// Begins again, in the same order.
    pub(crate) fn restart(&mut self) {
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

    /// The next `blocks.len()` blocks, no more than are left.
    ///
    /// Numbers that are no blocks are overwritten by the next instead of branched over: which ones they are is as
    /// good as random, so a branch would be mispredicted up to every other time.
    #[inline]
    pub(crate) fn take(&mut self, blocks: &mut [u64]) {
        let wanted = blocks.len();
        assert!(wanted as u64 <= self.left, "more blocks than are left");
        let mut taken = 0;
        while let Some(block) = blocks.get_mut(taken) {
            *block = self.image(self.counter);
            taken += usize::from(*block < self.blocks);
            self.counter += 1;
        }
        self.left -= wanted as u64;
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
    fn batches_are_the_same_order() {
        for blocks in [1, 5, 64, 1000, 4097] {
            let mut one_by_one = Permutation::new(blocks, 5);
            let mut batched = one_by_one.clone();
            let mut all = vec![0; blocks as usize];
            all.chunks_mut(7).for_each(|batch| batched.take(batch));
            assert!(all.iter().all(|block| one_by_one.next() == Some(*block)), "{blocks} blocks");
            assert_eq!(batched.left(), 0);
        }
    }

    /// The share of steps from one block to the next, up or down, of at most a tenth of all blocks. Of random
    /// blocks it is 0.19.
    fn short_steps(order: &[u64]) -> f64 {
        let near = order.len() as u64 / 10;
        let short = order.windows(2).filter(|pair| pair[0].abs_diff(pair[1]) <= near).count();
        short as f64 / (order.len() - 1) as f64
    }

    #[test]
    fn the_order_looks_random() {
        for blocks in [1000, 4096, 5000, 65_536, 100_003] {
            let mut mean_short = 0.0;
            for seed in 0..20 {
                let mut permutation = Permutation::new(blocks, seed);
                let order: Vec<u64> = std::iter::from_fn(|| permutation.next()).collect();
                mean_short += short_steps(&order) / 20.0;
                // Nor do two steps or the halves of the pass know of each other.
                let every_other: Vec<u64> = order.iter().copied().step_by(2).collect();
                let in_lower_half =
                    order[..order.len() / 2].iter().filter(|block| **block < blocks / 2).count();
                let share = in_lower_half as f64 / (order.len() / 2) as f64;
                assert!((share - 0.5).abs() < 0.08, "{blocks} blocks, seed {seed}: lower half {share}");
                assert!((short_steps(&every_other) - 0.1).abs() < 0.06, "{blocks} blocks, seed {seed}");
            }
            assert!((mean_short - 0.19).abs() < 0.02, "{blocks} blocks: {mean_short}");
        }
    }

    #[test]
    fn seeds_give_different_orders() {
        let first_of = |seed| Permutation::new(1 << 20, seed).next();
        let firsts: std::collections::BTreeSet<_> = (0..100).map(first_of).collect();
        assert!(firsts.len() > 95);
    }

    /// The number that `image` makes `block` of: each round undone, the last first.
    fn origin(permutation: &Permutation, block: u64) -> u64 {
        permutation.rounds.iter().rev().fold(block, |y, round| {
            // The shift is half the bits at least, so that what it carries down is not carried on.
            let mixed = y ^ (y >> permutation.shift);
            // Newton's iteration: each step doubles the bits of the inverse that are right, from the first three on.
            let inverse = (0..5).fold(round.factor, |inverse: u64, _| {
                inverse.wrapping_mul(2_u64.wrapping_sub(round.factor.wrapping_mul(inverse)))
            });
            mixed.wrapping_mul(inverse).wrapping_sub(round.summand) & permutation.mask
        })
    }

    #[test]
    fn of_any_size_no_two_numbers_lead_to_one_block() {
        let mut random = Random::new(4);
        for bits in 1..=64 {
            for blocks in [u64::MAX >> (64 - bits), 1 << (bits - 1), (1 << (bits - 1)) | 1] {
                let permutation = Permutation::new(blocks, random.next_u64());
                for _ in 0..1000 {
                    let number = random.next_u64() & permutation.mask;
                    let block = permutation.image(number);
                    assert!(block <= permutation.mask);
                    assert_eq!(origin(&permutation, block), number, "{blocks} blocks");
                }
            }
        }
    }

    #[test]
    fn every_block_comes_once() {
        let around_powers = (7..18).flat_map(|bits| [(1 << bits) - 1, 1 << bits, (1 << bits) + 1]);
        for blocks in (0..70).chain(around_powers).chain([1000, 100_003]) {
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
