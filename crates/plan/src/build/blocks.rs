//! Block sizes: `bs`, `bsrange`, `bssplit` and what depends on them.
//!
//! Invariant: a mix overrides a range, and a range a size, in any order (as in fio 3.33).

use fiord_options::job::JobOptions;
use fiord_options::value::{BlockRange, BlockSplit, Bytes};

use crate::access::{BlockSizes, PerDirection};

/// Block size of a direction without one.
const DEFAULT_BYTES: u64 = 4096;

/// The sizes of each direction.
pub(crate) fn block_sizes(options: &JobOptions) -> PerDirection<BlockSizes> {
    let sizes = [options.blocks.bs.read, options.blocks.bs.write, options.blocks.bs.trim];
    let ranges = [options.blocks.bsrange.read, options.blocks.bsrange.write, options.blocks.bsrange.trim];
    let split = &options.blocks.bssplit;
    let splits = [split.read.as_ref(), split.write.as_ref(), split.trim.as_ref()];
    [0, 1, 2].map(|direction| one(sizes[direction], ranges[direction], splits[direction]))
}

fn one(size: Option<Bytes>, range: Option<BlockRange>, split: Option<&BlockSplit>) -> BlockSizes {
    if let Some(split) = split {
        return shares(split);
    }
    match range {
        Some(BlockRange { low_bytes, high_bytes }) if low_bytes == high_bytes => BlockSizes::Fixed(low_bytes),
        Some(BlockRange { low_bytes, high_bytes }) => BlockSizes::Range { min: low_bytes, max: high_bytes },
        None => BlockSizes::Fixed(size.map_or(DEFAULT_BYTES, |Bytes(bytes)| bytes)),
    }
}

/// Shares that add up to 100: those left blank share what the others leave, and a sum below 100 is stretched.
fn shares(split: &BlockSplit) -> BlockSizes {
    let given: f64 = split.entries.iter().filter_map(|entry| entry.percent).map(f64::from).sum();
    let blanks = split.entries.iter().filter(|entry| entry.percent.is_none()).count();
    let blank = if blanks == 0 { 0.0 } else { (100.0 - given).max(0.0) / blanks as f64 };
    let stretch = if blanks == 0 && given > 0.0 { 100.0 / given } else { 1.0 };
    let share = |percent: Option<u8>| percent.map_or(blank, |percent| f64::from(percent) * stretch);
    match split.entries.as_slice() {
        [only] => BlockSizes::Fixed(only.bytes),
        entries => {
            BlockSizes::Split(entries.iter().map(|entry| (entry.bytes, share(entry.percent))).collect())
        }
    }
}

/// Every length that an I/O of these sizes is a multiple of; 1 when lengths are drawn freely.
pub(crate) fn granularity_bytes(sizes: &BlockSizes, unaligned: bool) -> u64 {
    match sizes {
        BlockSizes::Fixed(bytes) => *bytes,
        BlockSizes::Range { .. } if unaligned => 1,
        // The longest is drawn as well if it is not a multiple of the shortest.
        BlockSizes::Range { min, max } => greatest_common_divisor(*min, *max),
        BlockSizes::Split(shares) => shares.iter().map(|share| share.0).fold(0, greatest_common_divisor),
    }
}

fn greatest_common_divisor(left: u64, right: u64) -> u64 {
    if right == 0 { left } else { greatest_common_divisor(right, left % right) }
}

#[cfg(test)]
mod tests {
    use fiord_options::value::SplitEntry;

    use super::*;

    fn split(entries: &[(u64, Option<u8>)]) -> BlockSplit {
        BlockSplit {
            entries: entries.iter().map(|&(bytes, percent)| SplitEntry { bytes, percent }).collect(),
        }
    }

    #[test]
    fn a_mix_beats_a_range_and_a_range_beats_a_size() {
        let range = BlockRange { low_bytes: 1024, high_bytes: 4096 };
        let mix = split(&[(512, Some(50)), (1024, Some(50))]);
        assert_eq!(one(Some(Bytes(8192)), None, None), BlockSizes::Fixed(8192));
        assert_eq!(one(Some(Bytes(8192)), Some(range), None), BlockSizes::Range { min: 1024, max: 4096 });
        assert_eq!(one(None, Some(range), Some(&mix)), BlockSizes::Split(vec![(512, 50.0), (1024, 50.0)]));
        assert_eq!(one(None, None, None), BlockSizes::Fixed(4096));
    }

    #[test]
    fn blank_shares_get_what_is_left() {
        let mix = split(&[(4096, None), (8192, None), (16_384, Some(20))]);
        assert_eq!(shares(&mix), BlockSizes::Split(vec![(4096, 40.0), (8192, 40.0), (16_384, 20.0)]));
    }

    #[test]
    fn shares_are_stretched_to_a_hundred() {
        let mix = split(&[(4096, Some(20)), (8192, Some(20))]);
        assert_eq!(shares(&mix), BlockSizes::Split(vec![(4096, 50.0), (8192, 50.0)]));
        assert_eq!(shares(&split(&[(4096, Some(20))])), BlockSizes::Fixed(4096));
    }

    #[test]
    fn granularity_is_what_every_length_is_a_multiple_of() {
        assert_eq!(granularity_bytes(&BlockSizes::Fixed(3000), false), 3000);
        let range = BlockSizes::Range { min: 512, max: 4096 };
        assert_eq!(granularity_bytes(&range, false), 512);
        assert_eq!(granularity_bytes(&range, true), 1);
        assert_eq!(granularity_bytes(&BlockSizes::Range { min: 4096, max: 10_240 }, false), 2048);
        assert_eq!(granularity_bytes(&BlockSizes::Split(vec![(12, 50.0), (8, 50.0)]), false), 4);
    }
}
