//! A map of the blocks that a pass has not taken yet, for operations of different lengths.
//!
//! Invariant: a bit of a level above the lowest is set exactly when all bits of the word below it are.
//!
//! One bit per block, set when the block is taken; above it one bit per word, up to a single word. Finding the next
//! free block reads two words per level, however full the map is. That is 1/8 byte per block, and 1/63 of that on top.
//! A new map is all zeros, which the system allocates page by page: memory use grows with the blocks taken.

use std::collections::TryReserveError;

/// Which blocks are taken.
#[derive(Debug, Clone)]
pub(crate) struct BlockMap {
    blocks: u64,
    /// No block has been taken since all were free.
    is_untouched: bool,
    /// The lowest first; the last has one word.
    levels: Vec<Vec<u64>>,
}

/// Consecutive blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlockRun {
    pub(crate) first: u64,
    pub(crate) count: u64,
}

impl BlockMap {
    /// A map with all blocks free.
    ///
    /// # Errors
    /// If it does not fit into memory.
    pub(crate) fn new(blocks: u64) -> Result<BlockMap, TryReserveError> {
        let mut levels = Vec::new();
        let mut bits = blocks;
        loop {
            let words = bits.div_ceil(64).max(1);
            // Allocating zeroed memory cannot return an error; reserving the same size can, and shows whether it will
            // succeed.
            Vec::<u64>::new().try_reserve_exact(usize::try_from(words).unwrap_or(usize::MAX))?;
            levels.push(vec![0; words as usize]);
            if words == 1 {
                break;
            }
            bits = words;
        }
        let mut map = BlockMap { blocks, is_untouched: true, levels };
        map.take_what_is_no_block();
        Ok(map)
    }

    /// Frees all blocks.
    pub(crate) fn restart(&mut self) {
        if std::mem::replace(&mut self.is_untouched, true) {
            return;
        }
        self.levels.iter_mut().for_each(|level| level.fill(0));
        self.take_what_is_no_block();
    }

    /// Sets the bits after the last one of each level.
    fn take_what_is_no_block(&mut self) {
        let mut bits = self.blocks;
        for level in &mut self.levels {
            let words = level.len() as u64;
            if let Some(last) = level.last_mut() {
                let used = bits - (words - 1) * 64;
                *last = if used == 64 { 0 } else { u64::MAX << used };
            }
            bits = words;
        }
    }

    /// Blocks in all.
    pub(crate) fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Whether no block is free.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.levels.last().is_none_or(|top| top[0] == u64::MAX)
    }

    /// Takes the first free block at or after `from`, wrapping around, and the free blocks that follow it, up to
    /// `wanted` (at least 1); `None` if no block is free.
    pub(crate) fn take(&mut self, from: u64, wanted: u64) -> Option<BlockRun> {
        let first = self.first_free(from).or_else(|| self.first_free(0))?;
        self.is_untouched = false;
        let mut count = 0;
        while count < wanted {
            let (word, bit) = ((first + count) / 64, (first + count) % 64);
            let Some(bits) = self.levels[0].get_mut(word as usize) else { break };
            let free = u64::from((*bits >> bit).trailing_zeros()).min(64 - bit);
            let taken = free.min(wanted - count);
            if taken == 0 {
                break;
            }
            *bits |= (u64::MAX >> (64 - taken)) << bit;
            if *bits == u64::MAX {
                self.word_is_taken(word);
            }
            count += taken;
            if bit + taken < 64 {
                break;
            }
        }
        Some(BlockRun { first, count })
    }

    /// Sets the bits above a word of the lowest level that has all its bits set.
    fn word_is_taken(&mut self, mut word: u64) {
        for level in &mut self.levels[1..] {
            let above = &mut level[(word / 64) as usize];
            *above |= 1 << (word % 64);
            if *above != u64::MAX {
                break;
            }
            word /= 64;
        }
    }

    /// The first free block at or after `from`.
    fn first_free(&self, from: u64) -> Option<u64> {
        let mut index = from;
        let mut height = 0;
        let mut found = loop {
            let word = index / 64;
            let free = !self.levels.get(height)?.get(word as usize)? & (u64::MAX << (index % 64));
            if free != 0 {
                break word * 64 + u64::from(free.trailing_zeros());
            }
            index = word + 1;
            height += 1;
        };
        for level in self.levels[..height].iter().rev() {
            found = found * 64 + u64::from(level[found as usize].trailing_ones());
        }
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fiord_stats::random::Random;

    /// Takes runs of up to `wanted_max` from random places until none is left; each block must be taken once.
    fn exhaust(blocks: u64, wanted_max: u64) {
        let mut map = BlockMap::new(blocks).unwrap();
        let mut random = Random::new(blocks ^ wanted_max);
        let mut seen = vec![false; blocks as usize];
        while let Some(run) = map.take(random.below(blocks), 1 + random.below(wanted_max)) {
            assert!(run.count > 0);
            for block in run.first..run.first + run.count {
                assert!(
                    !std::mem::replace(&mut seen[block as usize], true),
                    "{block} of {blocks} came twice"
                );
            }
        }
        assert!(seen.iter().all(|seen| *seen), "{blocks} blocks");
    }

    #[test]
    fn every_block_is_taken_once() {
        for blocks in [0, 1, 2, 63, 64, 65, 127, 128, 4095, 4096, 4097, 100_000, 64 * 64 * 64 + 1] {
            for wanted_max in [1, 3, 64, 1000] {
                exhaust(blocks, wanted_max);
            }
        }
    }

    #[test]
    fn a_run_ends_at_a_taken_block_and_the_search_wraps_around() {
        let mut map = BlockMap::new(200).unwrap();
        assert_eq!(map.take(150, 10), Some(BlockRun { first: 150, count: 10 }));
        assert_eq!(map.take(60, 500), Some(BlockRun { first: 60, count: 90 }));
        assert_eq!(map.take(60, 500), Some(BlockRun { first: 160, count: 40 }));
        assert_eq!(map.take(199, 7), Some(BlockRun { first: 0, count: 7 }));
        map.restart();
        assert_eq!(map.take(0, u64::MAX), Some(BlockRun { first: 0, count: 200 }));
        assert!(map.is_empty() && map.take(0, 1).is_none());
    }

    #[test]
    fn a_block_costs_a_bit_and_a_63rd_of_one() {
        for blocks in [1 << 10, 1_000_003, 1 << 28] {
            let map = BlockMap::new(blocks).unwrap();
            let bytes: usize = map.levels.iter().map(|level| 8 * level.len()).sum();
            let least = blocks.div_ceil(8) as usize;
            // A level may end in a word that is not full.
            assert!(bytes <= least + least / 63 + 8 * map.levels.len(), "{bytes} bytes for {blocks} blocks");
        }
    }

    #[test]
    fn a_map_beyond_memory_is_an_error() {
        assert!(BlockMap::new(u64::MAX).is_err());
    }
}
