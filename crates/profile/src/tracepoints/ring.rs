//! Pages of the kernel's ring buffer (`per_cpu/cpuN/trace_pipe_raw` of tracefs) as records.
//!
//! Invariant: no page is a panic: a record that does not fit into its page ends the page. The layout is that of
//! `events/header_page` and `events/header_event`: a time stamp and the number of bytes in use, then records of four bytes
//! of head (5 bits of kind or length, 27 of time since the record before) and data.

use fiord_stats::Capped;

/// Bytes before the first record of a page.
const HEAD_BYTES: usize = 16;
/// In the number of bytes in use: events were lost before this page.
const MISSED: u64 = 1 << 31;
/// In it: how many were lost is behind the last record.
const MISSED_COUNTED: u64 = 1 << 30;
/// What of it is the number of bytes.
const USED_MASK: u64 = (1 << 20) - 1;

/// Kinds of records, beside those whose number is their length in words.
const LONG: u32 = 0;
const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;
/// Bits of the time since the record before.
const DELTA_BITS: u32 = 27;

/// A page as it was read.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a>(pub &'a [u8]);

impl<'a> Page<'a> {
    /// Events that the kernel had no room for before this page; at least 1 if it does not say how many.
    pub fn lost(self) -> u64 {
        let Some(state) = word(self.0, 8) else { return 0 };
        if state & MISSED == 0 {
            return 0;
        }
        let behind = HEAD_BYTES + (state & USED_MASK) as usize;
        let counted = (state & MISSED_COUNTED != 0).then(|| word(self.0, behind)).flatten();
        counted.unwrap_or(1).max(1)
    }

    /// Its records: time in nanoseconds of the trace's clock, and data.
    pub fn records(self) -> Records<'a> {
        let at_ns = word(self.0, 0).unwrap_or(0);
        let used = word(self.0, 8).map_or(0, |state| (state & USED_MASK) as usize);
        let data = self.0.get(HEAD_BYTES..).unwrap_or_default();
        Records { data: data.get(..used).unwrap_or(data), at_ns }
    }
}

/// The records of a page that are left.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    data: &'a [u8],
    at_ns: u64,
}

impl<'a> Iterator for Records<'a> {
    type Item = (u64, &'a [u8]);

    fn next(&mut self) -> Option<(u64, &'a [u8])> {
        loop {
            let head = half(self.data, 0)?;
            let (kind, delta) = (head & 31, u64::from(head >> 5));
            let second = || half(self.data, 4).map(u64::from);
            match kind {
                // The rest of the page is empty, or a record was taken back.
                PADDING if delta == 0 => return None,
                PADDING => {
                    let length = second()?;
                    self.skip(usize::capped(length).saturating_add(4))?;
                    self.at_ns = self.at_ns.wrapping_add(delta);
                }
                TIME_EXTEND => {
                    self.at_ns = self.at_ns.wrapping_add((second()? << DELTA_BITS) + delta);
                    self.skip(8)?;
                }
                TIME_STAMP => {
                    // The five highest bits are those of the time before.
                    self.at_ns = (self.at_ns & !((1 << 59) - 1)) | ((second()? << DELTA_BITS) + delta);
                    self.skip(8)?;
                }
                _ => {
                    let (begin, end) = match kind {
                        LONG => (8, 4usize.checked_add(usize::capped(second()?))?),
                        words => (4, 4 + 4 * words as usize),
                    };
                    let data = self.data.get(begin..end)?;
                    self.skip(end)?;
                    self.at_ns = self.at_ns.wrapping_add(delta);
                    return Some((self.at_ns, data));
                }
            }
        }
    }
}

impl Records<'_> {
    fn skip(&mut self, bytes: usize) -> Option<()> {
        self.data = self.data.get(bytes..)?;
        Some(())
    }
}

/// Eight bytes at an offset, in this processor's order.
pub(crate) fn word(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..)?.get(..8)?.try_into().ok()?))
}

/// Four bytes at an offset.
pub(crate) fn half(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..)?.get(..4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(at_ns: u64, state: u64, records: &[u8]) -> Vec<u8> {
        [&at_ns.to_ne_bytes()[..], &(state | records.len() as u64).to_ne_bytes(), records].concat()
    }

    fn head(kind: u32, delta: u32) -> [u8; 4] {
        (kind | delta << 5).to_ne_bytes()
    }

    #[test]
    fn records_have_their_times_and_data() {
        let long = [&head(LONG, 7)[..], &16u32.to_ne_bytes(), &[9; 12]].concat();
        let records = [
            &head(2, 5)[..],
            &[1; 8],
            &head(TIME_EXTEND, 1),
            &2u32.to_ne_bytes(),
            &long,
            &head(PADDING, 3),
            &8u32.to_ne_bytes(),
            &[0; 4],
            &head(1, 1),
            &[4; 4],
            &head(PADDING, 0),
            &[0xff; 8],
        ]
        .concat();
        let bytes = page(1000, 0, &records);
        let found: Vec<_> = Page(&bytes).records().collect();
        let late = 1005 + (2 << DELTA_BITS) + 1 + 7;
        assert_eq!(found, [(1005, &[1u8; 8][..]), (late, &[9; 12][..]), (late + 4, &[4; 4][..])]);
        assert_eq!(Page(&bytes).lost(), 0);
    }

    #[test]
    fn a_time_stamp_replaces_all_but_the_highest_bits() {
        let records = [&head(TIME_STAMP, 5)[..], &1u32.to_ne_bytes(), &head(1, 2), &[0; 4]].concat();
        let bytes = page((3 << 59) + 77, 0, &records);
        assert_eq!(Page(&bytes).records().next().unwrap().0, (3 << 59) + (1 << DELTA_BITS) + 7);
    }

    #[test]
    fn what_was_lost_is_counted_where_the_kernel_counts() {
        let with_count = [page(0, MISSED | MISSED_COUNTED, &[]), 42u64.to_ne_bytes().to_vec()].concat();
        assert_eq!(Page(&with_count).lost(), 42);
        assert_eq!(Page(&page(0, MISSED, &[])).lost(), 1);
        assert_eq!(Page(&[]).lost(), 0);
    }

    proptest::proptest! {
        #[test]
        fn no_page_is_a_panic(bytes in proptest::collection::vec(0u8.., 0..300)) {
            let page = Page(&bytes);
            page.lost();
            proptest::prop_assert!(page.records().count() <= bytes.len());
        }
    }
}
