//! The ranges of one trim (`num_range`): how the workload hands them to an engine.
//!
//! Invariant: they are in the buffer of the operation, which has nothing else to send; a range without bytes ends them.

/// A part of a file that is trimmed with others by one operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrimRange {
    /// Where it begins.
    pub offset_bytes: u64,
    /// How long it is.
    pub length_bytes: u64,
}

impl TrimRange {
    /// What a range takes of a buffer.
    pub const STORED_BYTES: usize = 16;

    /// Stores ranges in a buffer that has room for as many as the job's trims have.
    pub fn store(ranges: impl Iterator<Item = TrimRange>, buffer: &mut [u8]) {
        let (places, _) = buffer.as_chunks_mut::<{ TrimRange::STORED_BYTES }>();
        let end = TrimRange { offset_bytes: 0, length_bytes: 0 };
        for (place, range) in places.iter_mut().zip(ranges.chain([end])) {
            place[..8].copy_from_slice(&range.offset_bytes.to_le_bytes());
            place[8..].copy_from_slice(&range.length_bytes.to_le_bytes());
        }
    }

    /// The ranges that were stored.
    pub fn stored(buffer: &[u8]) -> impl Iterator<Item = TrimRange> {
        let (places, _) = buffer.as_chunks::<{ TrimRange::STORED_BYTES }>();
        let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        let range = move |place: &[u8; TrimRange::STORED_BYTES]| TrimRange {
            offset_bytes: word(&place[..8]),
            length_bytes: word(&place[8..]),
        };
        places.iter().map(range).take_while(|range| range.length_bytes > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_as_they_were_stored() {
        let range = |offset_bytes, length_bytes| TrimRange { offset_bytes, length_bytes };
        let all = [range(1 << 40, 4096), range(0, 512), range(512, u64::MAX)];
        let mut buffer = [0xff; 3 * TrimRange::STORED_BYTES];
        for count in [3, 1, 0] {
            TrimRange::store(all.into_iter().take(count), &mut buffer);
            assert!(TrimRange::stored(&buffer).eq(all.into_iter().take(count)), "{count}");
        }
    }
}
