//! The pattern that blocks are filled with and compared to (`verify_pattern`).
//!
//! Invariant: a byte of it depends on the block's offset and on its place in the block alone.

/// A pattern, repeated over a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockPattern {
    bytes: Vec<u8>,
    offset_at: Vec<usize>,
    restart_bytes: usize,
}

/// Bytes of an offset in a pattern (`%o`).
const OFFSET_BYTES: usize = 8;

impl BlockPattern {
    /// The pattern of these bytes, in which the offset of the block is put at each of `offset_at`. It starts again
    /// every `restart_bytes` with the offset of that place, unless that is 0. `None`: there are no bytes.
    pub fn new(bytes: Vec<u8>, offset_at: Vec<usize>, restart_bytes: usize) -> Option<BlockPattern> {
        (!bytes.is_empty()).then_some(BlockPattern { bytes, offset_at, restart_bytes })
    }

    /// Fills a block that is at `offset_bytes` of its file.
    pub fn fill(&self, block: &mut [u8], offset_bytes: u64) {
        let restart_bytes = if self.restart_bytes == 0 { block.len().max(1) } else { self.restart_bytes };
        for (index, stretch) in block.chunks_mut(restart_bytes).enumerate() {
            let offset = (offset_bytes + (index * restart_bytes) as u64).to_le_bytes();
            for repetition in stretch.chunks_mut(self.bytes.len()) {
                let length = repetition.len();
                repetition.copy_from_slice(&self.bytes[..length]);
                for at in self.offset_at.iter().copied().filter(|at| *at < length) {
                    let end = (at + OFFSET_BYTES).min(length);
                    repetition[at..end].copy_from_slice(&offset[..end - at]);
                }
            }
        }
    }

    /// Fills `part` with what a block at `block_offset_bytes` holds from `at_bytes` on.
    pub(crate) fn fill_part(&self, part: &mut [u8], at_bytes: usize, block_offset_bytes: u64) {
        for (index, byte) in part.iter_mut().enumerate() {
            let place = at_bytes + index;
            let restart = place.checked_rem(self.restart_bytes).map_or(0, |behind| place - behind);
            let within = (place - restart) % self.bytes.len();
            let offset = (block_offset_bytes + restart as u64).to_le_bytes();
            let in_offset =
                self.offset_at.iter().rev().find(|at| (**at..**at + OFFSET_BYTES).contains(&within));
            *byte = in_offset.map_or(self.bytes[within], |at| offset[within - at]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_offset_is_the_blocks_or_that_of_the_restart() {
        let bytes = [b"ab".as_slice(), &[0; 8]].concat();
        let filled = |restart_bytes, length| {
            let mut block = vec![0xee; length];
            BlockPattern::new(bytes.clone(), vec![2], restart_bytes).unwrap().fill(&mut block, 0x1000);
            block
        };
        assert_eq!(filled(0, 14), b"ab\x00\x10\0\0\0\0\0\0ab\x00\x10");
        assert_eq!(filled(4, 12), b"ab\x00\x10ab\x04\x10ab\x08\x10");
        assert_eq!(BlockPattern::new(Vec::new(), Vec::new(), 0), None);
    }
}
