//! How often each value of a quantity occurred, in bounded memory.
//!
//! Invariant: the sum of the counts is the number of values added, whatever was folded together.

use std::collections::BTreeMap;

use fiord_stats::Capped;

/// Distinct values that are kept apart. Beyond, neighbours are folded into the larger of them.
const DISTINCT_MAX: usize = 1024;

/// Counts by value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counted {
    counts: BTreeMap<u64, u64>,
    /// Low bits that are rounded up, so that no more than `DISTINCT_MAX` values are left.
    rounded_bits: u32,
    total: u64,
}

impl Counted {
    /// Adds a value.
    pub fn add(&mut self, value: u64) {
        self.add_many(value, 1);
    }

    fn add_many(&mut self, value: u64, count: u64) {
        *self.counts.entry(rounded(value, self.rounded_bits)).or_default() += count;
        self.total += count;
        while self.counts.len() > DISTINCT_MAX {
            self.rounded_bits += 1;
            let mut folded = BTreeMap::new();
            for (value, count) in &self.counts {
                *folded.entry(rounded(*value, self.rounded_bits)).or_default() += count;
            }
            self.counts = folded;
        }
    }

    /// Adds all values of another.
    pub fn absorb(&mut self, other: &Counted) {
        other.counts.iter().for_each(|(value, count)| self.add_many(*value, *count));
    }

    /// How many values were added.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The values and their counts, in order.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.counts.iter().map(|(value, count)| (*value, *count))
    }

    /// How many values are told apart.
    pub fn distinct(&self) -> usize {
        self.counts.len()
    }

    /// The value below or at which this share (0 to 1) of all is; 0 without any.
    pub fn quantile(&self, share: f64) -> u64 {
        let rank = u64::capped((self.total as f64 * share).ceil()).clamp(1, self.total.max(1));
        let mut seen = 0;
        let reaches = |(_, count): &(u64, u64)| {
            seen += count;
            seen >= rank
        };
        self.iter().find(reaches).map_or(0, |(value, _)| value)
    }

    /// The most frequent value and its share (0 to 1); `None` without any.
    pub fn mode(&self) -> Option<(u64, f64)> {
        let most = self.iter().max_by_key(|(_, count)| *count)?;
        Some((most.0, most.1 as f64 / self.total as f64))
    }

    /// The mean; 0 without any.
    pub fn mean(&self) -> f64 {
        let sum: f64 = self.iter().map(|(value, count)| value as f64 * count as f64).sum();
        sum / self.total.max(1) as f64
    }
}

fn rounded(value: u64, bits: u32) -> u64 {
    let mask = (1_u64 << bits.min(63)) - 1;
    value.checked_add(mask).map_or(value, |up| up & !mask)
}

/// A value to a quarter of an octave: what differs less is the same to those who compare.
pub fn quarter_octave(value: u64) -> u64 {
    octave_part(value, 2)
}

/// A value to a part of an octave, of which there are two to the power of `parts_log2`.
pub fn octave_part(value: u64, parts_log2: u32) -> u64 {
    let bits = value.checked_ilog2().unwrap_or(0).saturating_sub(parts_log2);
    value >> bits << bits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_values_are_folded_and_none_is_lost() {
        let mut counted = Counted::default();
        (1..=100_000_u64).for_each(|value| counted.add(value));
        assert_eq!(counted.iter().map(|(_, count)| count).sum::<u64>(), 100_000);
        assert!(counted.distinct() <= DISTINCT_MAX);
        assert!((50_000..50_200).contains(&counted.quantile(0.5)), "{}", counted.quantile(0.5));
        counted.add(u64::MAX);
        assert_eq!(counted.quantile(1.0), u64::MAX);
    }

    #[test]
    fn quantiles_and_modes_of_few_values_are_exact() {
        let mut counted = Counted::default();
        assert_eq!((counted.quantile(0.5), counted.mode(), counted.mean()), (0, None, 0.0));
        [4, 4, 4, 8].into_iter().for_each(|value| counted.add(value));
        assert_eq!((counted.quantile(0.75), counted.quantile(0.76), counted.mean()), (4, 8, 5.0));
        assert_eq!(counted.mode(), Some((4, 0.75)));
        assert_eq!([7, 9, 1000].map(quarter_octave), [7, 8, 896]);
        assert_eq!([31, 65, 1000].map(|value| octave_part(value, 5)), [31, 64, 992]);
    }
}
