//! A random order that takes each block exactly once, in a few words of memory for any number of blocks.
//!
//! Invariant: between two restarts, `next` returns each number below `blocks` once.
//!
//! Up to 256 blocks are shuffled. The order of more is a keyed bijection on the smallest power of two that holds all of
//! them, applied to a walk with an odd stride through all its numbers; numbers that are not blocks are skipped (fewer
//! than half). Each round of the bijection carries high bits downwards, by xor with a shift, and low bits upwards, by
//! x * (2x + odd). The square makes that step depend on the number itself: numbers that differ in high bits alone (the
//! halves of a pass) would stay correlated through more rounds of plain multiplication than are affordable.
//! Successive numbers do not depend on each other, so the processor computes several at once.

use fiord_stats::Capped;
use fiord_stats::random::Random;

/// With three rounds `tests/randomness.rs` cannot distinguish an order from a shuffle, with two it can.
const ROUNDS: usize = 3;

/// Up to this many blocks are shuffled: a bijection of so few numbers has too few keys to reach every order.
const SHUFFLED_MAX: u64 = 256;

/// Below this many blocks at once, vectors do not pay off.
const LANES_MIN: usize = 8;

/// The image of a number under the bijection, computed in integers of this width, which must hold the mask.
macro_rules! image {
    ($keyed:expr, $number:expr, $width:ty) => {{
        let (mask, shift) = ($keyed.mask as $width, $keyed.shift);
        let down = |x: $width| x ^ (x >> shift);
        let up = |x: $width, summand: &u64| {
            let x = down(x);
            x.wrapping_mul(x.wrapping_add(x).wrapping_add(*summand as $width)) & mask
        };
        down($keyed.summands.iter().fold($number & mask, up))
    }};
}

/// The order, and the position in it.
#[derive(Debug, Clone)]
pub(crate) struct Permutation {
    blocks: u64,
    left: u64,
    order: Order,
}

/// A position in an order.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mark {
    left: u64,
    number: u64,
}

#[derive(Debug, Clone)]
enum Order {
    /// All blocks, in their order.
    Shuffled(Box<[u8]>),
    Keyed(Keyed),
}

/// The walk and the bijection.
#[derive(Debug, Clone)]
struct Keyed {
    /// The next number to apply the bijection to; bits above the mask are ignored.
    number: u64,
    first: u64,
    /// Odd.
    stride: u64,
    mask: u64,
    shift: u32,
    /// Odd, one per round.
    summands: [u64; ROUNDS],
}

impl Permutation {
    /// An order of `blocks` blocks that depends on the seed.
    pub(crate) fn new(blocks: u64, seed: u64) -> Permutation {
        let order = match blocks {
            ..=SHUFFLED_MAX => Order::Shuffled(vec![0; usize::capped(blocks)].into()),
            _ => Order::Keyed(Keyed::over(blocks)),
        };
        let mut permutation = Permutation { blocks, left: 0, order };
        permutation.reseed(seed);
        permutation
    }

    /// Restarts in the order of this seed.
    pub(crate) fn reseed(&mut self, seed: u64) {
        let mut random = Random::new(seed);
        match &mut self.order {
            Order::Shuffled(blocks) => {
                blocks.iter_mut().zip(0..=u8::MAX).for_each(|(block, number)| *block = number);
                random.shuffle(blocks);
            }
            Order::Keyed(keyed) => keyed.reseed(&mut random),
        }
        self.restart();
    }

    /// Restarts in the same order.
    pub(crate) fn restart(&mut self) {
        self.left = self.blocks;
        if let Order::Keyed(keyed) = &mut self.order {
            keyed.number = keyed.first;
        }
    }

    /// Where it is, to return there.
    pub(crate) fn mark(&self) -> Mark {
        Mark { left: self.left, number: if let Order::Keyed(keyed) = &self.order { keyed.number } else { 0 } }
    }

    /// Returns to a mark of this order.
    pub(crate) fn return_to(&mut self, mark: &Mark) {
        self.left = mark.left;
        if let Order::Keyed(keyed) = &mut self.order {
            keyed.number = mark.number;
        }
    }

    /// Blocks left.
    #[inline]
    pub(crate) fn left(&self) -> u64 {
        self.left
    }

    /// The next block, `None` after the last.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<u64> {
        let mut block = [0];
        (self.left > 0).then(|| {
            self.take(&mut block);
            block[0]
        })
    }

    /// The next `blocks.len()` blocks, no more than are left.
    #[inline]
    pub(crate) fn take(&mut self, blocks: &mut [u64]) {
        let wanted = blocks.len() as u64;
        assert!(wanted <= self.left, "more blocks than are left");
        match &mut self.order {
            Order::Shuffled(order) => {
                let taken = usize::capped(self.blocks - self.left);
                blocks.iter_mut().zip(&order[taken..]).for_each(|(block, next)| *block = u64::from(*next));
            }
            Order::Keyed(keyed) => keyed.take(blocks, self.blocks),
        }
        self.left -= wanted;
    }
}

impl Keyed {
    /// Not yet keyed.
    fn over(blocks: u64) -> Keyed {
        let bits = (u64::BITS - blocks.saturating_sub(1).leading_zeros()).max(1);
        let (mask, shift) = (u64::MAX >> (u64::BITS - bits), bits.div_ceil(2));
        Keyed { number: 0, first: 0, stride: 1, mask, shift, summands: [1; ROUNDS] }
    }

    fn reseed(&mut self, random: &mut Random) {
        self.first = random.next_u64();
        self.stride = random.next_u64() | 1;
        self.summands.fill_with(|| random.next_u64() | 1);
    }

    /// The next numbers below `limit`.
    #[inline]
    fn take(&mut self, blocks: &mut [u64], limit: u64) {
        if blocks.len() >= LANES_MIN && self.mask <= u64::from(u32::MAX) {
            self.take_narrow(blocks, limit);
        } else {
            self.take_wide(blocks, limit);
        }
    }

    /// Computes them one by one.
    ///
    /// Numbers that are not blocks are overwritten by the next one instead of skipped by a branch: they are effectively
    /// random, so a branch would be mispredicted up to half of the time.
    #[inline]
    fn take_wide(&mut self, blocks: &mut [u64], limit: u64) {
        let mut taken = 0;
        while let Some(block) = blocks.get_mut(taken) {
            *block = image!(self, self.number, u64);
            taken += usize::from(*block < limit);
            self.number = self.number.wrapping_add(self.stride);
        }
    }

    /// Computes several at a time in vectors: as many numbers as blocks are still needed, of which the blocks are kept.
    #[allow(
        clippy::cast_possible_truncation,
        reason = "bits above the mask are ignored, and the mask has 32"
    )]
    fn take_narrow(&mut self, blocks: &mut [u64], limit: u64) {
        let mut numbers = [0_u32; 64];
        let mut taken = 0;
        while taken < blocks.len() {
            let wanted = &mut blocks[taken..];
            let count = wanted.len().min(numbers.len());
            let (first, stride) = (self.number as u32, self.stride as u32);
            for (place, number) in (0_u32..).zip(&mut numbers[..count]) {
                *number = image!(self, first.wrapping_add(place.wrapping_mul(stride)), u32);
            }
            self.number = self.number.wrapping_add(self.stride.wrapping_mul(count as u64));
            if limit > self.mask {
                wanted
                    .iter_mut()
                    .zip(&numbers[..count])
                    .for_each(|(block, number)| *block = u64::from(*number));
                taken += count;
                continue;
            }
            let mut kept = 0;
            for number in &numbers[..count] {
                // At most as many are kept as computed, and at most as many computed as needed.
                wanted[kept] = u64::from(*number);
                kept += usize::from(u64::from(*number) < limit);
            }
            taken += kept;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_goes_on_from_a_mark() {
        for blocks in [5, 256, 257, 4097] {
            let mut order = Permutation::new(blocks, 3);
            (0..blocks / 2).for_each(|_| assert!(order.next().is_some()));
            let mark = order.mark();
            let rest: Vec<u64> = std::iter::from_fn(|| order.next()).collect();
            order.return_to(&mark);
            assert_eq!(std::iter::from_fn(|| order.next()).collect::<Vec<u64>>(), rest, "{blocks}");
        }
    }

    #[test]
    fn batches_are_the_same_order() {
        for blocks in [1, 5, 64, 256, 257, 1000, 4096, 4097] {
            let mut one_by_one = Permutation::new(blocks, 5);
            let mut batched = one_by_one.clone();
            let mut all = vec![0; blocks as usize];
            // Few and many at a time, in both widths.
            let sizes = [7, 61, 8, 100].into_iter().cycle();
            let mut rest = &mut all[..];
            for size in sizes {
                let (batch, others) = rest.split_at_mut(size.min(rest.len()));
                batched.take(batch);
                rest = others;
                if rest.is_empty() {
                    break;
                }
            }
            assert!(all.iter().all(|block| one_by_one.next() == Some(*block)), "{blocks} blocks");
            assert_eq!(batched.left(), 0);
        }
    }

    #[test]
    fn seeds_give_different_orders() {
        let first_of = |seed| Permutation::new(1 << 20, seed).next();
        let firsts: std::collections::BTreeSet<_> = (0..100).map(first_of).collect();
        assert!(firsts.len() > 95);
    }

    /// The number whose image is `block`: each round inverted, the last one first.
    fn origin(keyed: &Keyed, block: u64) -> u64 {
        // The shift is at least half of the bits, so the shifted bits do not affect each other.
        let down = |x: u64| x ^ (x >> keyed.shift);
        keyed.summands.iter().rev().fold(down(block), |y, summand| {
            // Newton's iteration: each step doubles the number of correct bits of the inverse, starting with three.
            let inverse = (0..5).fold(*summand, |inverse: u64, _| {
                inverse.wrapping_mul(2_u64.wrapping_sub(summand.wrapping_mul(inverse)))
            });
            // y = 2xx + xs, so x = (y - 2xx) / s: each step determines one more bit.
            let mixed = (0..64).fold(0, |x: u64, _| {
                y.wrapping_sub(x.wrapping_mul(x).wrapping_mul(2)).wrapping_mul(inverse) & keyed.mask
            });
            down(mixed)
        })
    }

    #[test]
    fn the_map_is_a_bijection_for_every_size() {
        let mut random = Random::new(4);
        for bits in 1..=64 {
            for blocks in [u64::MAX >> (64 - bits), 1 << (bits - 1), (1 << (bits - 1)) | 1] {
                let mut keyed = Keyed::over(blocks);
                keyed.reseed(&mut random);
                for _ in 0..1000 {
                    let number = random.next_u64() & keyed.mask;
                    let block = image!(keyed, number, u64);
                    assert!(block <= keyed.mask);
                    assert_eq!(origin(&keyed, block), number, "{blocks} blocks");
                }
            }
        }
    }

    #[test]
    fn an_order_can_be_repeated() {
        for blocks in [1, 256, 257, 5000] {
            let mut permutation = Permutation::new(blocks, 5);
            let mut round = || {
                permutation.restart();
                std::iter::from_fn(|| permutation.next()).collect::<Vec<u64>>()
            };
            assert_eq!(round(), round());
        }
    }

    // divergence: random order
    #[test]
    fn every_block_occurs_once() {
        let around_powers = (7..18).flat_map(|bits| [(1 << bits) - 1, 1 << bits, (1 << bits) + 1]);
        for blocks in (0..70).chain([255, 256, 257]).chain(around_powers).chain([1000, 100_003]) {
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
