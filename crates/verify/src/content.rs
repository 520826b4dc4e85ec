//! The contents of blocks after their headers.
//!
//! Invariant: what a header determines is reproduced byte by byte: random data from its seed, patterns from their
//! offset.

use crate::pattern::BlockPattern;

/// Random words for buffers, made like wyrand's: a counter with an odd step, and a product folded in half. One step
/// does not wait for the one before it, so a processor makes them about as fast as it stores them.
#[derive(Debug, Clone)]
pub struct Words {
    counter: u64,
}

impl Words {
    const STEP: u64 = 0xa076_1d64_78bd_642f;
    const MIX: u64 = 0xe703_7ed1_a0b4_28db;

    /// The words generated from this number.
    pub fn from_seed(seed: u64) -> Words {
        Words { counter: seed }
    }

    /// A word that comes once.
    #[inline]
    pub fn unique(&mut self) -> u64 {
        self.counter = self.counter.wrapping_add(Self::STEP);
        self.counter
    }

    /// The low half of a product.
    const LOW_HALF: u128 = u64::MAX as u128;

    /// A word of which every bit is random.
    #[inline]
    fn next_word(&mut self) -> u64 {
        let counter = self.unique();
        let product = u128::from(counter) * u128::from(counter ^ Self::MIX);
        ((product & Self::LOW_HALF) as u64) ^ (product >> 64) as u64
    }

    /// Fills `bytes` with the next words.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        let (words, rest) = bytes.as_chunks_mut();
        for word in words {
            *word = self.next_word().to_le_bytes();
        }
        let length = rest.len();
        rest.copy_from_slice(&self.next_word().to_le_bytes()[..length]);
    }
}

/// What fills a block before its headers are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Contents {
    /// Random bytes that follow from the seed in the header.
    Random,
    /// A pattern.
    Pattern(BlockPattern),
    /// Whatever the buffer held.
    Given,
}

impl Contents {
    /// Fills a block at this offset.
    pub fn fill(&self, block: &mut [u8], offset_bytes: u64, seed: u64) {
        match self {
            Contents::Random => Words::from_seed(seed).fill(block),
            Contents::Pattern(pattern) => pattern.fill(block, offset_bytes),
            Contents::Given => {}
        }
    }

    /// Whether `fill` reproduces the contents of a block.
    pub(crate) fn is_known(&self) -> bool {
        *self != Contents::Given
    }
}

impl Contents {
    /// Fills `part` with what a block at `block_offset_bytes` holds from `at_bytes` on, a multiple of 512.
    pub(crate) fn fill_part(&self, part: &mut [u8], at_bytes: usize, block_offset_bytes: u64, seed: u64) {
        match self {
            Contents::Random => {
                let words_before = (at_bytes / size_of::<u64>()) as u64;
                Words::from_seed(seed.wrapping_add(Words::STEP.wrapping_mul(words_before))).fill(part);
            }
            Contents::Pattern(pattern) => pattern.fill_part(part, at_bytes, block_offset_bytes),
            Contents::Given => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_bit_is_set_half_of_the_time_and_changes_so_too() {
        let mut words = Words::from_seed(1);
        let drawn: Vec<u64> = (0..10_000).map(|_| words.next_word()).collect();
        for bit in 0..64 {
            let is_set = |word: u64| (word >> bit) & 1 == 1;
            let set = drawn.iter().filter(|word| is_set(**word)).count();
            let changed = drawn.windows(2).filter(|pair| is_set(pair[0] ^ pair[1])).count();
            // 5,000 each, with a deviation of 50.
            assert!(set.abs_diff(5000) < 300 && changed.abs_diff(5000) < 300, "bit {bit}: {set} {changed}");
        }
    }
}
