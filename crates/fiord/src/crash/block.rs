//! Blocks of the crash test: their contents, and the diagnosis of a block that was read.
//!
//! Invariant: every sector contains seed, block and write, and its other bytes are derived from these, so that no
//! sector can be mistaken for that of another write or block.

use fiord_stats::random::Random;

/// The unit that disks write atomically.
pub(crate) const SECTOR_BYTES: usize = 512;

const MAGIC: u64 = u64::from_le_bytes(*b"fiordCUT");

/// The damage to a synced block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Loss {
    /// All of it is an earlier write, of this number.
    Stale(u64),
    /// All of it belongs to this block.
    Misplaced(u64),
    /// All zeroes.
    Zeroes,
    /// Some sectors are correct, others are not.
    Torn,
    /// Anything else.
    Other,
}

impl Loss {
    /// The word for it in reports.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Loss::Stale(_) => "stale",
            Loss::Misplaced(_) => "misplaced",
            Loss::Zeroes => "zero",
            Loss::Torn => "torn",
            Loss::Other => "other",
        }
    }
}

/// Fills a block with the contents of write `number` of a test with this seed.
pub(crate) fn fill(bytes: &mut [u8], seed: u64, block: u64, number: u64) {
    for (index, sector) in bytes.chunks_mut(SECTOR_BYTES).enumerate() {
        let head = [MAGIC, seed, block, number];
        let mut random = Random::substream(seed ^ block.rotate_left(32) ^ number, index as u64);
        for (at, word) in sector.chunks_mut(8).enumerate() {
            let value = head.get(at).copied().unwrap_or_else(|| random.next_u64());
            word.copy_from_slice(&value.to_le_bytes()[..word.len()]);
        }
    }
}

/// What is wrong with a block that should be of the first of these writes, or in part or whole of a later one: of writes
/// that were in flight at the cut, any sector may have arrived.
pub(crate) fn loss(bytes: &[u8], seed: u64, block: u64, numbers: &[u64]) -> Option<Loss> {
    let mut expected = vec![0; bytes.len()];
    let mut right = vec![false; bytes.len() / SECTOR_BYTES];
    for number in numbers {
        fill(&mut expected, seed, block, *number);
        let sectors = bytes.chunks(SECTOR_BYTES).zip(expected.chunks(SECTOR_BYTES));
        right.iter_mut().zip(sectors).for_each(|(right, (found, wanted))| *right |= found == wanted);
    }
    if right.iter().all(|right| *right) {
        return None;
    }
    if bytes.iter().all(|byte| *byte == 0) {
        return Some(Loss::Zeroes);
    }
    if right.iter().any(|right| *right) {
        return Some(Loss::Torn);
    }
    let word = |at: usize| bytes.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes);
    let (found_block, found_number) = (word(16)?, word(24)?);
    fill(&mut expected, seed, found_block, found_number);
    Some(match expected == bytes {
        true if found_block == block => Loss::Stale(found_number),
        true => Loss::Misplaced(found_block),
        false => Loss::Other,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(block: u64, number: u64) -> Vec<u8> {
        let mut bytes = vec![0; 4096];
        fill(&mut bytes, 7, block, number);
        bytes
    }

    #[test]
    fn every_kind_of_loss_has_its_name_and_what_was_in_flight_is_none() {
        let found = |bytes: &[u8]| loss(bytes, 7, 3, &[20, 31]);
        assert_eq!(found(&written(3, 20)), None);
        assert_eq!(found(&written(3, 31)), None);
        let half = |second: Vec<u8>| [&written(3, 20)[..2048], &second[2048..]].concat();
        assert_eq!(found(&half(written(3, 31))), None, "the write in flight arrived in part");
        assert_eq!(found(&half(written(3, 9))), Some(Loss::Torn));
        assert_eq!(found(&half(vec![0; 4096])), Some(Loss::Torn));
        assert_eq!(found(&written(3, 9)), Some(Loss::Stale(9)));
        assert_eq!(found(&written(4, 20)), Some(Loss::Misplaced(4)));
        assert_eq!(found(&[0; 4096]), Some(Loss::Zeroes));
        assert_eq!(found(&[1; 4096]), Some(Loss::Other));
        let mut flipped = written(3, 20);
        flipped[100] ^= 1;
        assert_eq!(found(&flipped), Some(Loss::Torn));
    }
}
