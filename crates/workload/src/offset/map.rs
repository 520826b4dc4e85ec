//! A map of the blocks that a pass has not taken yet, for operations of different lengths.
//!
//! Invariant: a bit of a level above the lowest is set exactly when all bits of the word below it are.
//!
//! One bit per block, set when the block is taken; above it one bit per word, up to a single word. Finding the next
//! free block reads two words per level, however full the map is, and only those of the lowest if one of the next 64 is
//! free. That is 1/8 byte per block, and 1/63 of that on top.
//! A new map is all zeros, which the system allocates page by page: memory use grows with the blocks taken.

use std::collections::TryReserveError;

use fiord_stats::Capped;

/// Which blocks are taken.
#[derive(Debug, Clone)]
pub(crate) struct BlockMap {
    blocks: u64,
    /// No block has been taken since all were free.
    is_untouched: bool,
    /// One bit per block, and a word after them without any, so that 64 bits can be read from each.
    lowest: Vec<u64>,
    /// Those above, the lowest first; the last has one word.
    above: Vec<Vec<u64>>,
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
        let mut words = blocks.div_ceil(64).max(1);
        let lowest = zeros(words.saturating_add(1))?;
        let mut above = Vec::new();
        while words > 1 || above.is_empty() {
            words = words.div_ceil(64);
            above.push(zeros(words)?);
        }
        let mut map = BlockMap { blocks, is_untouched: true, lowest, above };
        map.take_what_is_no_block();
        Ok(map)
    }

    /// Frees all blocks.
    pub(crate) fn restart(&mut self) {
        if std::mem::replace(&mut self.is_untouched, true) {
            return;
        }
        self.lowest.fill(0);
        self.above.iter_mut().for_each(|level| level.fill(0));
        self.take_what_is_no_block();
    }

    /// Sets the bits after the last one of each level.
    fn take_what_is_no_block(&mut self) {
        let mut bits = self.blocks;
        let blocks = self.lowest.split_last_mut().map(|(none, blocks)| {
            *none = u64::MAX;
            blocks
        });
        for level in blocks.into_iter().chain(self.above.iter_mut().map(Vec::as_mut_slice)) {
            let words = level.len() as u64;
            if let Some(last) = level.last_mut() {
                let used = bits - (words - 1) * 64;
                *last = if used == 64 { 0 } else { u64::MAX << used };
            }
            bits = words;
        }
        if self.blocks == 0 {
            self.word_is_taken(0);
        }
    }

    /// Blocks in all.
    pub(crate) fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Whether no block is free.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.above.last().is_none_or(|top| top[0] == u64::MAX)
    }

    /// Takes the first free block at or after `from`, wrapping around, and the free blocks that follow it, up to
    /// `wanted` (at least 1); `None` if no block is free.
    #[inline]
    pub(crate) fn take(&mut self, from: u64, wanted: u64) -> Option<BlockRun> {
        let free = !self.bits_from(from);
        let first = if free != 0 { from + u64::from(free.trailing_zeros()) } else { self.first_far(from)? };
        self.is_untouched = false;
        let mut run = BlockRun { first, count: 0 };
        // At most 64 blocks are taken at once: most runs are shorter.
        while self.extend(&mut run, wanted) {}
        Some(run)
    }

    /// The bits of 64 blocks from this one on; those after the last are set.
    #[inline]
    fn bits_from(&self, block: u64) -> u64 {
        let word = (block / 64) as usize;
        let two = self.lowest.get(word..word + 2).unwrap_or(&[u64::MAX; 2]);
        low_half(((u128::from(two[1]) << 64) | u128::from(two[0])) >> (block % 64))
    }

    /// Takes the free blocks after a run, as many as are wanted and found in one look. Returns whether more may follow.
    #[inline]
    fn extend(&mut self, run: &mut BlockRun, wanted: u64) -> bool {
        let block = run.first + run.count;
        let free = u64::from(self.bits_from(block).trailing_zeros());
        let taken = free.min(wanted - run.count);
        if taken == 0 {
            return false;
        }
        run.count += taken;
        let word = (block / 64) as usize;
        let set = u128::from(u64::MAX >> (64 - taken)) << (block % 64);
        for (word, set) in [(word, low_half(set)), (word + 1, low_half(set >> 64))] {
            self.lowest[word] |= set;
            if self.lowest[word] == u64::MAX && set != 0 {
                self.word_is_taken(word as u64);
            }
        }
        free == 64 && run.count < wanted
    }

    /// Sets the bits above a word of the lowest level that has all its bits set.
    fn word_is_taken(&mut self, mut word: u64) {
        for level in &mut self.above {
            let above = &mut level[(word / 64) as usize];
            *above |= 1 << (word % 64);
            if *above != u64::MAX {
                break;
            }
            word /= 64;
        }
    }

    /// The first free block after the 64 from `from` on, or before them.
    #[inline(never)]
    fn first_far(&self, from: u64) -> Option<u64> {
        self.first_free(from / 64 + 1).or_else(|| self.first_free(0))
    }

    /// The first free block in this word of the lowest level or one after it.
    fn first_free(&self, word: u64) -> Option<u64> {
        let mut index = word;
        let mut height = 0;
        let mut found = loop {
            let word = index / 64;
            let free = !self.above.get(height)?.get(word as usize)? & (u64::MAX << (index % 64));
            if free != 0 {
                break word * 64 + u64::from(free.trailing_zeros());
            }
            index = word + 1;
            height += 1;
        };
        for level in self.above[..height].iter().rev() {
            found = found * 64 + u64::from(level[usize::capped(found)].trailing_ones());
        }
        Some(found * 64 + u64::from(self.lowest[usize::capped(found)].trailing_ones()))
    }
}

/// The lower 64 of these bits.
#[inline]
#[allow(clippy::cast_possible_truncation, reason = "the others are meant to go")]
fn low_half(bits: u128) -> u64 {
    bits as u64
}

/// This many words of zeros.
///
/// # Errors
/// If they do not fit into memory.
fn zeros(words: u64) -> Result<Vec<u64>, TryReserveError> {
    // Allocating zeroed memory cannot return an error; reserving the same size can, and shows whether it will succeed.
    Vec::<u64>::new().try_reserve_exact(usize::try_from(words).unwrap_or(usize::MAX))?;
    Ok(vec![0; usize::capped(words)])
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
            let bytes: usize = 8 * (map.lowest.len() + map.above.iter().map(Vec::len).sum::<usize>());
            let least = blocks.div_ceil(8) as usize;
            // A level may end in a word that is not full, and the lowest has one more.
            let most = least + least / 63 + 8 * (2 + map.above.len());
            assert!(bytes <= most, "{bytes} bytes for {blocks} blocks");
        }
    }

    #[test]
    fn a_map_beyond_memory_is_an_error() {
        assert!(BlockMap::new(u64::MAX).is_err());
    }
}
