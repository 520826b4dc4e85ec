//! Which part of each file a worker uses: `size`, `filesize`, `offset` and their relatives, in bytes.
//!
//! Invariant: every extent lies within its target, or within what will be laid out for it. Figures in the tests are
//! what fio 3.33 did with the same words.

use fiord_options::value::{Size, SizeRange};
use fiord_stats::Capped;

use crate::files::FileKind;
use crate::seed;

/// Length of a job that writes until the device is full: more than any device has, and a multiple of every
/// power-of-two block.
pub(crate) const UNTIL_FULL_BYTES: u64 = 1 << 62;

/// The largest offset: the kernel's offsets are signed.
pub(crate) const OFFSET_BYTES_MAX: u64 = i64::MAX as u64;

/// The sizes and offsets of a job, the same for all of its files.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    /// `size`.
    pub size: Option<Size>,
    /// `filesize`.
    pub file_size: Option<SizeRange>,
    /// `offset`.
    pub offset: Size,
    /// `offset_increment`.
    pub offset_increment: Size,
    /// `offset_align`; 0 when not given.
    pub offset_align_bytes: u64,
    /// Which clone of its job the worker is.
    pub clone: u32,
    /// Files of the worker.
    pub file_count: u64,
    /// Shortest block.
    pub block_bytes_min: u64,
    /// Whether I/Os follow each other.
    pub sequential: bool,
    /// `file_append`.
    pub append: bool,
    /// `fill_device` without a size: until the device is full.
    pub until_full: bool,
    /// Seed of drawn file sizes.
    pub seed: u64,
}

/// A size with zones of this length in bytes; 0 leaves it as it is.
pub(crate) fn in_bytes(size: Size, zone_bytes: u64) -> Size {
    match size {
        Size::Zones(zones) if zone_bytes > 0 => Size::Bytes(zones.saturating_mul(zone_bytes)),
        Size::Bytes(_) | Size::Percent(_) | Size::Zones(_) => size,
    }
}

impl Wanted {
    /// The same with zones of this length in bytes; 0 leaves them as they are.
    pub(crate) fn in_bytes(&self, zone_bytes: u64) -> Wanted {
        let in_bytes = |size: Size| in_bytes(size, zone_bytes);
        Wanted {
            size: self.size.map(in_bytes),
            offset: in_bytes(self.offset),
            offset_increment: in_bytes(self.offset_increment),
            ..self.clone()
        }
    }
}

/// What is at the path now.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Present {
    /// Its type.
    pub kind: FileKind,
    /// How long it is; 0 when absent or without a length.
    pub bytes: u64,
}

/// The part of one file a worker uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Extent {
    /// First byte.
    pub offset_bytes: u64,
    /// Bytes from there.
    pub length_bytes: u64,
    /// Length the file must have; `None` when what is there will do.
    pub needed_bytes: Option<u64>,
}

/// Why a file cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Misfit {
    /// No option or file gives a size.
    NoSize,
    /// The first byte used is beyond its end.
    OffsetBeyondEnd {
        /// First byte requested.
        offset_bytes: u64,
        /// Length of the file.
        file_bytes: u64,
    },
    /// The part used would end where no file reaches.
    BeyondAllFiles {
        /// First byte requested.
        offset_bytes: u64,
    },
    /// The shortest block does not fit into the part used.
    SmallerThanBlock {
        /// Length of that part.
        length_bytes: u64,
    },
}

/// The extent of the `index`-th file.
pub(crate) fn extent(wanted: &Wanted, index: u64, present: Present) -> Result<Extent, Misfit> {
    let grows = matches!(present.kind, FileKind::Regular);
    if wanted.until_full && grows {
        let offset_bytes = offset(wanted, present.bytes);
        if offset_bytes > OFFSET_BYTES_MAX - UNTIL_FULL_BYTES {
            return Err(Misfit::BeyondAllFiles { offset_bytes });
        }
        return Ok(Extent { offset_bytes, length_bytes: UNTIL_FULL_BYTES, needed_bytes: None });
    }
    let start = if wanted.append && grows { present.bytes } else { offset(wanted, present.bytes) };
    let whole = file_bytes(wanted, index, present, start);
    let Some(whole) = whole.filter(|bytes| *bytes > 0) else { return Err(Misfit::NoSize) };
    // The length of a device is fixed, if it reports one.
    let fixed = present.kind == FileKind::Block && present.bytes > 0;
    let end = if fixed { whole.min(present.bytes) } else { whole };
    if start >= end {
        return Err(match wanted.append {
            true => Misfit::NoSize,
            false => Misfit::OffsetBeyondEnd { offset_bytes: start, file_bytes: end },
        });
    }
    if end > OFFSET_BYTES_MAX {
        return Err(Misfit::BeyondAllFiles { offset_bytes: start });
    }
    let mut length = end - start;
    if let Some(Size::Percent(percent)) = wanted.size {
        let part = percent_of(end, percent);
        length = length.min(part - part % wanted.block_bytes_min);
    }
    // A part of a file that is made does not need the rest of it.
    let end = if matches!(wanted.size, Some(Size::Percent(_))) { start + length } else { end };
    if length < wanted.block_bytes_min {
        return Err(Misfit::SmallerThanBlock { length_bytes: length });
    }
    length = whole_blocks(wanted, start, length, present);
    let needed_bytes = (grows && end > present.bytes).then_some(end);
    Ok(Extent { offset_bytes: start, length_bytes: length, needed_bytes })
}

/// The length of the file for this job; `None` if it is unknown.
fn file_bytes(wanted: &Wanted, index: u64, present: Present, start: u64) -> Option<u64> {
    match (wanted.file_size, wanted.size) {
        (Some(range), _) => Some(drawn(range, wanted, index)),
        (None, Some(Size::Bytes(bytes))) => Some(start.saturating_add(bytes / wanted.file_count.max(1))),
        // Parts are parts of what is there.
        (None, Some(Size::Percent(_)) | None) => Some(present.bytes),
        // Of zones without a length, which are refused.
        (None, Some(Size::Zones(_))) => None,
    }
}

/// A length from the range of `filesize`, a multiple of the shortest block where the range holds one.
fn drawn(range: SizeRange, wanted: &Wanted, index: u64) -> u64 {
    let (low, high) = (range.low_bytes, range.high_bytes);
    if low == high {
        return low;
    }
    let bytes = seed::draw(wanted.seed, index, low, high);
    let rounded = bytes - bytes % wanted.block_bytes_min;
    if rounded < low { bytes } else { rounded }
}

/// First byte of this clone: percentages are rounded up to `offset_align`, or else to the shortest block; numbers
/// of bytes are taken as they are.
fn offset(wanted: &Wanted, file_bytes: u64) -> u64 {
    let align = match wanted.offset_align_bytes {
        0 => wanted.block_bytes_min,
        align => align,
    };
    let in_bytes = |size: Size| match size {
        Size::Bytes(bytes) => bytes,
        Size::Percent(percent) => rounded_up(percent_of(file_bytes, percent), align),
        Size::Zones(_) => 0,
    };
    let increments = in_bytes(wanted.offset_increment).saturating_mul(u64::from(wanted.clone));
    in_bytes(wanted.offset).saturating_add(increments)
}

/// Sequential I/O finishes its last block where the file continues after the requested part: 10 000 bytes of a larger
/// file are 20 blocks of 512 bytes, and 19 of a file of exactly that length.
fn whole_blocks(wanted: &Wanted, start: u64, length: u64, present: Present) -> u64 {
    let rounded = rounded_up(length, wanted.block_bytes_min);
    let absolute = matches!(wanted.size, Some(Size::Bytes(_)));
    match wanted.sequential && absolute && start.saturating_add(rounded) <= present.bytes {
        true => rounded,
        false => length,
    }
}

/// The next multiple, or the largest number where that is beyond all numbers.
fn rounded_up(bytes: u64, align_bytes: u64) -> u64 {
    bytes.checked_next_multiple_of(align_bytes).unwrap_or(u64::MAX)
}

fn percent_of(bytes: u64, percent: u8) -> u64 {
    u64::capped(u128::from(bytes) * u128::from(percent) / 100)
}

/// Bytes of one pass over the files, and of one loop.
pub(crate) fn totals(
    size: Option<Size>,
    io_size: Option<Size>,
    lengths: impl Iterator<Item = u64>,
) -> (u64, u64) {
    let sum = lengths.fold(0_u64, u64::saturating_add);
    let pass = match size {
        Some(Size::Bytes(bytes)) if sum < UNTIL_FULL_BYTES => sum.min(bytes),
        _ => sum,
    };
    (pass, part(io_size, pass).filter(|bytes| *bytes > 0).unwrap_or(pass))
}

/// An amount in bytes, where percentages are of `whole_bytes`; `None` if it still counts zones.
pub(crate) fn part(amount: Option<Size>, whole_bytes: u64) -> Option<u64> {
    match amount? {
        Size::Bytes(bytes) => Some(bytes),
        Size::Percent(percent) => Some(percent_of(whole_bytes, percent)),
        Size::Zones(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: u64 = 1024;
    const MIB: u64 = 1024 * 1024;

    fn wanted(size: Option<Size>) -> Wanted {
        Wanted {
            size,
            file_size: None,
            offset: Size::Bytes(0),
            offset_increment: Size::Bytes(0),
            offset_align_bytes: 0,
            clone: 0,
            file_count: 1,
            block_bytes_min: 4 * KIB,
            sequential: true,
            append: false,
            until_full: false,
            seed: 1,
        }
    }

    #[test]
    fn sizes_beyond_all_files_are_refused() {
        let largest = wanted(Some(Size::Bytes(OFFSET_BYTES_MAX)));
        assert_eq!(parts(extent(&largest, 0, file(0))), (0, OFFSET_BYTES_MAX, Some(OFFSET_BYTES_MAX)));
        let refused = |wanted: Wanted, bytes| extent(&wanted, 0, file(bytes)).is_err();
        assert!(refused(wanted(Some(Size::Bytes(OFFSET_BYTES_MAX + 1))), 0));
        assert!(refused(wanted(Some(Size::Bytes(u64::MAX))), 4 * KIB));
        assert!(refused(Wanted { offset: Size::Bytes(u64::MAX), until_full: true, ..wanted(None) }, 0));
        assert!(refused(Wanted { offset: Size::Percent(100), ..wanted(Some(Size::Percent(1))) }, u64::MAX));
    }

    fn file(bytes: u64) -> Present {
        Present { kind: FileKind::Regular, bytes }
    }

    fn parts(extent: Result<Extent, Misfit>) -> (u64, u64, Option<u64>) {
        let extent = extent.unwrap();
        (extent.offset_bytes, extent.length_bytes, extent.needed_bytes)
    }

    #[test]
    fn size_is_shared_out_among_the_files() {
        let wanted = Wanted { file_count: 3, ..wanted(Some(Size::Bytes(1000 * KIB))) };
        assert_eq!(parts(extent(&wanted, 2, file(0))), (0, 341_333, Some(341_333)));
        let two = Wanted { file_count: 2, ..self::wanted(Some(Size::Bytes(MIB))) };
        assert_eq!(parts(extent(&two, 0, file(MIB))), (0, 512 * KIB, None));
        assert_eq!(parts(extent(&two, 1, file(64 * KIB))), (0, 512 * KIB, Some(512 * KIB)));
    }

    #[test]
    fn size_counts_from_the_offset() {
        let wanted = Wanted { offset: Size::Bytes(512 * KIB), ..wanted(Some(Size::Bytes(MIB))) };
        assert_eq!(parts(extent(&wanted, 0, file(0))), (512 * KIB, MIB, Some(1536 * KIB)));
    }

    #[test]
    fn filesize_includes_the_offset() {
        let range = SizeRange { low_bytes: MIB, high_bytes: MIB };
        let wanted = Wanted {
            offset: Size::Bytes(512 * KIB),
            file_size: Some(range),
            ..wanted(Some(Size::Bytes(MIB)))
        };
        assert_eq!(parts(extent(&wanted, 0, file(0))), (512 * KIB, 512 * KIB, Some(MIB)));
    }

    #[test]
    fn a_percentage_of_a_given_size_makes_no_more_than_that_part() {
        let range = SizeRange { low_bytes: MIB, high_bytes: MIB };
        let part = |percent| Wanted { file_size: Some(range), ..wanted(Some(Size::Percent(percent))) };
        let quarter = part(25);
        assert_eq!(parts(extent(&quarter, 0, file(0))), (0, 256 * KIB, Some(256 * KIB)));
        assert_eq!(parts(extent(&quarter, 0, file(128 * KIB))), (0, 256 * KIB, Some(256 * KIB)));
        assert_eq!(parts(extent(&quarter, 0, file(2 * MIB))), (0, 256 * KIB, None), "of what was given");
        let behind = Wanted { offset: Size::Bytes(128 * KIB), ..part(25) };
        assert_eq!(parts(extent(&behind, 0, file(0))), (128 * KIB, 256 * KIB, Some(384 * KIB)));
        let cut = Wanted { offset: Size::Bytes(768 * KIB), ..part(50) };
        assert_eq!(parts(extent(&cut, 0, file(0))), (768 * KIB, 256 * KIB, Some(MIB)));
    }

    #[test]
    fn drawn_sizes_are_blocks_within_the_range() {
        let range = SizeRange { low_bytes: 100 * KIB, high_bytes: 300 * KIB };
        let wanted = Wanted { file_size: Some(range), ..wanted(None) };
        for index in 0..50 {
            let (_, length, needed) = parts(extent(&wanted, index, file(0)));
            assert!((range.low_bytes..=range.high_bytes).contains(&length) && length % (4 * KIB) == 0);
            assert_eq!(needed, Some(length));
        }
    }

    #[test]
    fn without_size_all_of_what_is_there_is_used() {
        assert_eq!(parts(extent(&wanted(None), 0, file(100 * KIB))), (0, 100 * KIB, None));
        assert_eq!(extent(&wanted(None), 0, file(0)), Err(Misfit::NoSize));
        let zones = Wanted { offset: Size::Zones(1), ..wanted(Some(Size::Zones(2))) };
        assert_eq!(extent(&zones, 0, file(MIB)), Err(Misfit::NoSize), "their length is not known");
        let in_zones = zones.in_bytes(256 * KIB);
        assert_eq!(parts(extent(&in_zones, 0, file(MIB))), (256 * KIB, 512 * KIB, None));
    }

    #[test]
    fn percentages_round_offsets_up_and_lengths_down() {
        let offset = Wanted { offset: Size::Percent(1), ..wanted(Some(Size::Bytes(64 * KIB))) };
        assert_eq!(parts(extent(&offset, 0, file(10 * MIB))).0, 106_496);
        let aligned = Wanted { offset_align_bytes: 64 * KIB, ..offset };
        assert_eq!(parts(extent(&aligned, 0, file(10 * MIB))).0, 131_072);
        let part = wanted(Some(Size::Percent(10)));
        assert_eq!(parts(extent(&part, 0, file(MIB))).1, 102_400);
        let behind = Wanted { offset: Size::Percent(25), ..wanted(Some(Size::Percent(50))) };
        assert_eq!(parts(extent(&behind, 0, file(MIB))), (256 * KIB, 512 * KIB, None));
    }

    #[test]
    fn clones_start_further_on() {
        let increment = Size::Bytes(256 * KIB);
        let wanted = Wanted { offset_increment: increment, clone: 2, ..wanted(Some(Size::Bytes(256 * KIB))) };
        assert_eq!(parts(extent(&wanted, 0, file(0))), (512 * KIB, 256 * KIB, Some(768 * KIB)));
    }

    #[test]
    fn a_device_is_not_exceeded() {
        let device = Present { kind: FileKind::Block, bytes: MIB };
        let size = wanted(Some(Size::Bytes(4 * MIB)));
        assert_eq!(parts(extent(&size, 0, device)), (0, MIB, None));
        let beyond = Wanted { offset: Size::Bytes(2 * MIB), ..size };
        let misfit = Misfit::OffsetBeyondEnd { offset_bytes: 2 * MIB, file_bytes: MIB };
        assert_eq!(extent(&beyond, 0, device), Err(misfit));
    }

    #[test]
    fn an_offset_beyond_the_end_is_reported_with_the_end() {
        let wanted = Wanted { offset: Size::Bytes(200 * KIB), ..wanted(None) };
        let misfit = Misfit::OffsetBeyondEnd { offset_bytes: 200 * KIB, file_bytes: 100 * KIB };
        assert_eq!(extent(&wanted, 0, file(100 * KIB)), Err(misfit));
        let short = Wanted { offset: Size::Bytes(99 * KIB), ..wanted };
        assert_eq!(extent(&short, 0, file(100 * KIB)), Err(Misfit::SmallerThanBlock { length_bytes: KIB }));
    }

    #[test]
    fn appending_starts_at_the_end() {
        let append =
            Wanted { append: true, offset: Size::Bytes(4096), ..wanted(Some(Size::Bytes(64 * KIB))) };
        assert_eq!(parts(extent(&append, 0, file(64 * KIB))), (64 * KIB, 64 * KIB, Some(128 * KIB)));
        let sizeless = Wanted { size: None, ..append };
        assert_eq!(extent(&sizeless, 0, file(64 * KIB)), Err(Misfit::NoSize));
    }

    #[test]
    fn sequential_io_finishes_its_last_block_in_a_larger_file() {
        let blocks = Wanted { block_bytes_min: 512, ..wanted(Some(Size::Bytes(10_000))) };
        assert_eq!(parts(extent(&blocks, 0, file(10 * MIB))).1, 10_240);
        assert_eq!(parts(extent(&blocks, 0, file(0))).1, 10_000);
        let random = Wanted { sequential: false, ..blocks };
        assert_eq!(parts(extent(&random, 0, file(10 * MIB))).1, 10_000);
    }

    #[test]
    fn filling_a_device_has_no_length() {
        let fill = Wanted { until_full: true, ..wanted(None) };
        assert_eq!(parts(extent(&fill, 0, file(0))), (0, UNTIL_FULL_BYTES, None));
    }

    #[test]
    fn a_pass_is_at_most_size_and_a_loop_is_io_size() {
        let bytes = |bytes: u64| Some(Size::Bytes(bytes));
        assert_eq!(totals(bytes(MIB), None, [512 * KIB; 4].into_iter()), (MIB, MIB));
        assert_eq!(totals(bytes(MIB), None, [100 * KIB; 4].into_iter()), (400 * KIB, 400 * KIB));
        assert_eq!(totals(bytes(MIB), bytes(3 * MIB), [MIB].into_iter()), (MIB, 3 * MIB));
        assert_eq!(totals(None, Some(Size::Percent(50)), [MIB].into_iter()), (MIB, 512 * KIB));
    }
}
