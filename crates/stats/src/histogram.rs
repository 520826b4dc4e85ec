//! A latency histogram in fio's layout: 29 groups of 64 bins, nanoseconds.
//!
//! Invariant: `bin_index(bin_value(i)) == i` for every bin, and a value's bin is within 1/128 of the value, up to
//! the last bin, which takes everything above about 17 s. Values below 128 ns are exact.

use serde::{Deserialize, Serialize, Serializer};

use crate::capped::Capped;

/// log2 of the bins in a group.
const GROUP_BITS: u32 = 6;
/// Bins in a group.
const BINS_PER_GROUP: usize = 1 << GROUP_BITS;
/// Groups in the layout.
const GROUPS: usize = 29;
/// Bins of a histogram: 1856.
pub const BINS: usize = BINS_PER_GROUP * GROUPS;

/// The bin that counts `value_ns`.
#[inline]
#[allow(clippy::cast_possible_truncation, reason = "a shifted value is below 128")]
pub(crate) const fn bin_index(value_ns: u64) -> usize {
    // The first two groups hold the values 0..128 one by one; from there on each group covers one power of two. Or-ing
    // the group size in makes small values fall out of the same formula, so that there is no branch.
    let shift = u64::BITS - 1 - GROUP_BITS - (value_ns | BINS_PER_GROUP as u64).leading_zeros();
    let index = ((shift as usize) << GROUP_BITS) + (value_ns >> shift) as usize;
    if index < BINS { index } else { BINS - 1 }
}

/// The smallest value a bin counts, in nanoseconds.
pub const fn bin_floor(index: usize) -> u64 {
    if index < 2 * BINS_PER_GROUP {
        return index as u64;
    }
    let shift = (index >> GROUP_BITS) - 1;
    ((BINS_PER_GROUP + index % BINS_PER_GROUP) as u64) << shift
}

/// The value fio prints for a bin, in nanoseconds: its middle.
const fn bin_value(index: usize) -> u64 {
    if index < 2 * BINS_PER_GROUP {
        return index as u64;
    }
    let width = 1 << ((index >> GROUP_BITS) - 1);
    bin_floor(index) + width / 2
}

/// Counts of values by bin.
///
/// An unallocated histogram (the default) costs one pointer and counts nothing: a latency whose percentiles are not
/// requested costs nothing. Recording never allocates.
///
/// It is stored as its bins, of which an unallocated one has none; the zeros among them vanish by compression.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(try_from = "Vec<u64>")]
pub struct Histogram {
    bins: Option<Box<[u64; BINS]>>,
}

impl Serialize for Histogram {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        self.bins().serialize(out)
    }
}

impl TryFrom<Vec<u64>> for Histogram {
    type Error = &'static str;

    /// The counterpart of [`Histogram::bins`].
    fn try_from(bins: Vec<u64>) -> Result<Histogram, &'static str> {
        if bins.is_empty() {
            return Ok(Histogram::default());
        }
        let bins = bins.into_boxed_slice().try_into().map_err(|_| "a histogram has 1856 bins or none")?;
        Ok(Histogram { bins: Some(bins) })
    }
}

impl Histogram {
    /// An empty histogram that counts.
    pub fn allocated() -> Self {
        Histogram { bins: Some(Box::new([0; BINS])) }
    }

    /// Resets all counts to zero.
    pub fn clear(&mut self) {
        self.bins.iter_mut().for_each(|bins| bins.fill(0));
    }

    /// Whether this histogram counts.
    pub fn is_allocated(&self) -> bool {
        self.bins.is_some()
    }

    /// Counts `value_ns` and returns its bin, which is computed even when the histogram does not count.
    #[inline]
    pub fn record(&mut self, value_ns: u64) -> usize {
        let index = bin_index(value_ns);
        if let Some(bins) = &mut self.bins {
            bins[index] += 1;
        }
        index
    }

    /// The sums of these values and those of `next`, the greatest with the greatest and so on, as often as there are of
    /// these: each percentile is the sum of both. Empty if either is.
    pub fn paired_with(&self, next: &Self) -> Self {
        let (count, count_of_next) = (u128::from(self.count()), u128::from(next.count()));
        if count == 0 || count_of_next == 0 {
            return Histogram::default();
        }
        let mut bins = Box::new([0; BINS]);
        // Positions are counted in parts of which both have as many.
        let (mut ours, mut theirs) = (self.occupied(), next.occupied());
        let (mut our, mut their) = (ours.next(), theirs.next());
        let (mut our_end, mut their_end, mut begin) = (0, 0, 0u128);
        while let (Some((our_ns, of_ours)), Some((their_ns, of_theirs))) = (our, their) {
            let ends =
                [our_end + u128::from(of_ours) * count_of_next, their_end + u128::from(of_theirs) * count];
            let end = ends[0].min(ends[1]);
            bins[bin_index(our_ns.saturating_add(their_ns))] +=
                u64::capped(end / count_of_next - begin / count_of_next);
            begin = end;
            if ends[0] == end {
                (our, our_end) = (ours.next(), end);
            }
            if ends[1] == end {
                (their, their_end) = (theirs.next(), end);
            }
        }
        Histogram { bins: Some(bins) }
    }

    /// All counts, bin 0 first: [`BINS`] of them, or none when unallocated.
    pub fn bins(&self) -> &[u64] {
        self.bins.as_ref().map_or(&[], |bins| &bins[..])
    }

    /// The bins that counted something, as (middle of the bin in nanoseconds, count).
    pub fn occupied(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.bins()
            .iter()
            .enumerate()
            .filter(|(_, count)| **count > 0)
            .map(|(i, count)| (bin_value(i), *count))
    }

    /// Values counted.
    pub fn count(&self) -> u64 {
        self.bins().iter().sum()
    }

    /// Adds the counts of `other`.
    pub fn merge(&mut self, other: &Self) {
        let Histogram { bins } = other;
        let Some(theirs) = bins else { return };
        match &mut self.bins {
            Some(ours) => ours.iter_mut().zip(theirs.iter()).for_each(|(a, b)| *a += b),
            none => *none = Some(theirs.clone()),
        }
    }

    /// Becomes a copy of `other`, in the memory that it has.
    pub fn copy_from(&mut self, other: &Self) {
        match (&mut self.bins, &other.bins) {
            (Some(ours), Some(theirs)) => ours.copy_from_slice(&theirs[..]),
            (ours, theirs) => ours.clone_from(theirs),
        }
    }

    /// Whether each bin counts at least what that of `earlier` does.
    pub fn covers(&self, earlier: &Self) -> bool {
        match (&self.bins, &earlier.bins) {
            (Some(ours), Some(theirs)) => ours.iter().zip(theirs.iter()).all(|(now, then)| now >= then),
            _ => earlier.count() == 0,
        }
    }

    /// The least and the greatest value that the bins which counted something stand for; `None` if none did.
    pub fn range(&self) -> Option<(u64, u64)> {
        let is_occupied = |count: &u64| *count > 0;
        let first = self.bins().iter().position(is_occupied)?;
        let last = self.bins().iter().rposition(is_occupied)?;
        let greatest = if last + 1 < BINS { bin_floor(last + 1) - 1 } else { u64::MAX };
        Some((bin_floor(first), greatest))
    }

    /// What was counted since `earlier`, an earlier copy of this histogram.
    pub fn since(&self, earlier: &Self) -> Self {
        let mut since = self.clone();
        if let (Some(bins), Some(earlier)) = (&mut since.bins, &earlier.bins) {
            bins.iter_mut().zip(earlier.iter()).for_each(|(now, then)| *now = now.saturating_sub(*then));
        }
        since
    }

    /// The percentiles at `percents` (0..=100, ascending), in nanoseconds.
    ///
    /// A value is its bin's middle, clamped to the recorded `min_ns` and `max_ns`; all are zero if nothing was counted.
    pub fn percentiles(&self, percents: &[f64], min_ns: u64, max_ns: u64) -> Vec<u64> {
        let total = self.count();
        if total == 0 {
            return vec![0; percents.len()];
        }
        let mut index = 0;
        let mut below_or_in = self.bins()[0];
        let mut values_ns = Vec::with_capacity(percents.len());
        for percent in percents {
            let rank = u64::capped((percent / 100.0 * total as f64).ceil().clamp(1.0, total as f64));
            while below_or_in < rank && index + 1 < BINS {
                index += 1;
                below_or_in += self.bins()[index];
            }
            values_ns.push(bin_value(index).min(max_ns).max(min_ns.min(max_ns)));
        }
        values_ns
    }
}

impl PartialEq for Histogram {
    /// Equal counts; one that does not count equals one that counted nothing.
    fn eq(&self, other: &Self) -> bool {
        match (&self.bins, &other.bins) {
            (Some(a), Some(b)) => a == b,
            _ => self.count() == 0 && other.count() == 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layout_has_1856_bins_and_round_trips() {
        assert_eq!(BINS, 1856);
        for index in 0..BINS {
            assert_eq!(bin_index(bin_value(index)), index);
            assert_eq!(bin_index(bin_floor(index)), index);
            if index > 0 {
                assert_eq!(bin_index(bin_floor(index) - 1), index - 1);
            }
        }
    }

    proptest::proptest! {
        #[test]
        fn a_bin_is_within_a_128th_of_its_values(value_ns in 0_u64..1 << 34) {
            let bin = bin_index(value_ns);
            proptest::prop_assert!(bin_floor(bin) <= value_ns);
            let rounding_ns = value_ns / 128 + u64::from(value_ns >= 128);
            proptest::prop_assert!(bin_value(bin).abs_diff(value_ns) <= rounding_ns);
        }
    }

    #[test]
    fn middles_are_those_fio_prints() {
        // (recorded, printed) pairs read off fio's own outputs.
        for (value_ns, printed_ns) in
            [(42, 42), (127, 127), (1305, 1304), (34_680, 34_560), (2_642_300, 2_637_824)]
        {
            assert_eq!(bin_value(bin_index(value_ns)), printed_ns);
        }
    }

    #[test]
    fn values_beyond_the_layout_fall_in_the_last_bin() {
        assert_eq!(bin_index(u64::MAX), BINS - 1);
        assert_eq!(bin_index(bin_floor(BINS - 1)), BINS - 1);
    }

    #[test]
    fn unallocated_counts_nothing_and_still_names_the_bin() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.record(5), 5);
        assert_eq!(histogram.count(), 0);
        assert_eq!(histogram.percentiles(&[50.0], 0, 5), [0]);
        let mut counting = Histogram::allocated();
        counting.record(7);
        histogram.merge(&counting);
        assert_eq!(histogram, counting);
    }

    #[test]
    fn a_cleared_histogram_is_empty_and_counts() {
        let mut histogram = Histogram::allocated();
        histogram.record(7);
        histogram.clear();
        assert_eq!(histogram, Histogram::allocated());
        histogram.record(7);
        assert_eq!(histogram.count(), 1);
    }

    #[test]
    fn the_difference_of_two_copies_is_what_was_counted_between() {
        let mut histogram = Histogram::allocated();
        histogram.record(7);
        let earlier = histogram.clone();
        histogram.record(7);
        histogram.record(900);
        assert_eq!(histogram.since(&earlier).occupied().collect::<Vec<_>>(), [(7, 1), (900, 1)]);
        assert_eq!(histogram.since(&Histogram::default()), histogram);
        assert_eq!(Histogram::default().since(&earlier), Histogram::default());
    }

    #[test]
    fn a_histogram_covers_its_earlier_copies_and_ranges_over_its_bins() {
        let mut histogram = Histogram::allocated();
        assert_eq!(histogram.range(), None);
        histogram.record(7);
        histogram.record(900);
        assert_eq!(histogram.range(), Some((7, 903)));
        let mut copy = Histogram::default();
        copy.copy_from(&histogram);
        histogram.record(u64::MAX);
        assert!(histogram.covers(&copy) && !copy.covers(&histogram));
        assert!(copy.covers(&Histogram::default()) && !Histogram::default().covers(&copy));
        assert_eq!(histogram.range(), Some((7, u64::MAX)));
        copy.copy_from(&histogram);
        assert_eq!(copy, histogram);
    }

    #[test]
    fn percentiles_stay_between_the_extremes() {
        let mut histogram = Histogram::allocated();
        histogram.record(2_657_402); // its bin's middle is 2,670,592
        assert_eq!(histogram.percentiles(&[1.0, 99.99], 2_657_402, 2_657_402), [2_657_402; 2]);
    }
}
