//! The length of each operation.
//!
//! Invariant: a drawn length fits into the given space if the shortest one does.

use fiord_plan::{Access, BlockSizes, Direction};
use fiord_stats::Capped;
use fiord_stats::OrderBy;
use fiord_stats::random::Random;

use crate::substream::Substream;

/// Draws the lengths of all directions.
#[derive(Debug, Clone)]
pub(crate) struct Sizes {
    distributions: [SizeDistribution; 3],
    /// The shortest length of each.
    shortest_bytes: [u64; 3],
    /// `distributions[0]` is for sequential and `distributions[1]` for random operations, whatever their direction.
    by_order: bool,
    random: Random,
}

/// How the lengths of one direction are drawn.
#[derive(Debug, Clone, PartialEq)]
enum SizeDistribution {
    Fixed(u64),
    /// `min` times 1 to `count`.
    Multiples {
        min: u64,
        count: u64,
    },
    /// Multiples of `min` up to `max`, and `max` itself, which is not one.
    MultiplesAnd {
        min: u64,
        max: u64,
    },
    /// Any length.
    Any {
        min: u64,
        max: u64,
    },
    /// Lengths in ascending order, each with the sum of the weights up to it.
    Split(Vec<(u64, u64)>),
}

/// How often a size that is not 0 goes into a length.
#[inline]
pub(crate) fn quotient(length_bytes: u64, size_bytes: u64) -> u64 {
    // A division costs as much as a draw, and most sizes are a power of two.
    match size_bytes.is_power_of_two() {
        true => length_bytes >> size_bytes.trailing_zeros(),
        false => length_bytes / size_bytes,
    }
}

impl Sizes {
    pub(crate) fn new(access: &Access) -> Sizes {
        let distributions = [0, 1, 2]
            .map(|index: usize| SizeDistribution::new(&access.block_sizes[index], access.unaligned_sizes));
        Sizes {
            shortest_bytes: distributions.each_ref().map(SizeDistribution::min),
            distributions,
            by_order: access.sizes_by_order,
            random: Substream::Sizes.of(access.seed),
        }
    }

    /// The shortest length that an operation can have.
    #[inline]
    pub(crate) fn min(&self, direction: Direction, is_random: bool) -> u64 {
        self.shortest_bytes[self.index(direction, is_random)]
    }

    /// The shortest operation that the job has.
    pub(crate) fn shortest(&self, access: &Access) -> u64 {
        let used = Direction::ALL.into_iter().filter(|direction| access.pattern.includes(*direction));
        used.map(|direction| self.min(direction, access.random)).min().unwrap_or(1)
    }

    /// The length of every operation, if it is fixed.
    pub(crate) fn fixed(&self, direction: Direction, is_random: bool) -> Option<u64> {
        match self.distributions[self.index(direction, is_random)] {
            SizeDistribution::Fixed(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// A length of at most `room_bytes`, into which the shortest must fit.
    #[inline]
    pub(crate) fn draw(&mut self, direction: Direction, is_random: bool, room_bytes: u64) -> u64 {
        let index = self.index(direction, is_random);
        match &self.distributions[index] {
            SizeDistribution::Fixed(bytes) => *bytes,
            drawn => drawn.draw(&mut self.random, room_bytes),
        }
    }

    #[inline]
    fn index(&self, direction: Direction, is_random: bool) -> usize {
        if self.by_order { usize::from(is_random) } else { direction.index() }
    }
}

impl SizeDistribution {
    fn new(sizes: &BlockSizes, unaligned: bool) -> SizeDistribution {
        match sizes {
            BlockSizes::Range { min, max } if min < max && unaligned => {
                SizeDistribution::Any { min: *min, max: *max }
            }
            BlockSizes::Range { min, max } if min < max && max % min == 0 => {
                SizeDistribution::Multiples { min: *min, count: max / min }
            }
            BlockSizes::Range { min, max } if min < max => {
                SizeDistribution::MultiplesAnd { min: *min, max: *max }
            }
            BlockSizes::Split(shares) if shares.len() > 1 => SizeDistribution::Split(cumulated(shares)),
            one => SizeDistribution::Fixed(one.max()),
        }
    }

    fn min(&self) -> u64 {
        match self {
            SizeDistribution::Fixed(bytes) => *bytes,
            SizeDistribution::Multiples { min, .. }
            | SizeDistribution::MultiplesAnd { min, .. }
            | SizeDistribution::Any { min, .. } => *min,
            SizeDistribution::Split(steps) => steps[0].0,
        }
    }

    /// Lengths that do not fit are excluded, and the others keep their proportions, as if draws were repeated
    /// until one fits.
    fn draw(&self, random: &mut Random, room_bytes: u64) -> u64 {
        match self {
            SizeDistribution::Fixed(bytes) => *bytes,
            SizeDistribution::Multiples { min, count } if min * count <= room_bytes => {
                random.below(*count) * min + min
            }
            // Rounding up a number of 1..=max gives a short last step its small share.
            SizeDistribution::MultiplesAnd { min, max } if *max <= room_bytes => {
                (random.below(*max) / min * min + min).min(*max)
            }
            SizeDistribution::Multiples { min, .. } | SizeDistribution::MultiplesAnd { min, .. } => {
                random.below(room_bytes / min) * min + min
            }
            SizeDistribution::Any { min, max } => min + random.below((*max).min(room_bytes) - min + 1),
            SizeDistribution::Split(steps) => {
                let longest = steps.len() - 1;
                let last = match steps[longest].0 <= room_bytes {
                    true => longest,
                    false => steps.partition_point(|step| step.0 <= room_bytes).max(1) - 1,
                };
                let drawn = random.below(steps[last].1);
                steps[steps.partition_point(|step| step.1 <= drawn)].0
            }
        }
    }
}

/// Weights are shares scaled to whole numbers: a share of a thousandth of a percent is not lost.
fn cumulated(shares: &[(u64, f64)]) -> Vec<(u64, u64)> {
    let mut steps: Vec<(u64, u64)> =
        shares.iter().map(|(bytes, share)| (*bytes, u64::capped((share.max(0.0) * 1e6).round()))).collect();
    steps.retain(|step| step.1 > 0);
    steps.order_by_key(|step| step.0);
    let mut sum = 0;
    for step in &mut steps {
        sum += step.1;
        step.1 = sum;
    }
    if steps.is_empty() {
        steps.push((shares.iter().map(|share| share.0).min().unwrap_or(1), 1));
    }
    steps
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// Counts of the lengths drawn.
    fn counts(sizes: &BlockSizes, unaligned: bool, room_bytes: u64, draws: usize) -> BTreeMap<u64, usize> {
        let distribution = SizeDistribution::new(sizes, unaligned);
        let mut random = Random::new(11);
        let mut counts = BTreeMap::new();
        (0..draws).for_each(|_| *counts.entry(distribution.draw(&mut random, room_bytes)).or_default() += 1);
        counts
    }

    fn near(count: usize, share: f64, draws: usize) -> bool {
        let expected = share * draws as f64;
        (count as f64 - expected).abs() < 6.0 * expected.sqrt() + 1.0
    }

    #[test]
    fn a_range_draws_multiples_of_its_minimum_evenly() {
        let counts = counts(&BlockSizes::Range { min: 4096, max: 16384 }, false, u64::MAX, 40_000);
        assert_eq!(counts.keys().copied().collect::<Vec<_>>(), [4096, 8192, 12288, 16384]);
        assert!(counts.values().all(|count| near(*count, 0.25, 40_000)), "{counts:?}");
    }

    #[test]
    fn a_maximum_that_is_not_a_multiple_is_rare() {
        // Shares in fio's operation log for 5k-16k: 5, 10 and 15 KiB 31 % each, 16 KiB 6 %.
        let counts = counts(&BlockSizes::Range { min: 5120, max: 16384 }, false, u64::MAX, 40_000);
        assert_eq!(counts.keys().copied().collect::<Vec<_>>(), [5120, 10240, 15360, 16384]);
        assert!(near(counts[&16384], 1.0 / 16.0, 40_000), "{counts:?}");
    }

    #[test]
    fn unaligned_lengths_stay_in_range() {
        let counts = counts(&BlockSizes::Range { min: 100, max: 109 }, true, u64::MAX, 10_000);
        assert_eq!((counts.len(), *counts.keys().next().unwrap()), (10, 100));
    }

    #[test]
    fn a_split_keeps_its_shares_in_any_order() {
        let shares = vec![(65536, 50.0), (4096, 10.0), (32768, 39.5), (512, 0.5)];
        let counts = counts(&BlockSizes::Split(shares.clone()), false, u64::MAX, 100_000);
        for (bytes, share) in shares {
            assert!(near(counts[&bytes], share / 100.0, 100_000), "{bytes}: {counts:?}");
        }
    }

    #[test]
    fn lengths_that_do_not_fit_are_excluded() {
        let split = BlockSizes::Split(vec![(4096, 30.0), (8192, 10.0), (16384, 60.0)]);
        let split_counts = counts(&split, false, 12_000, 40_000);
        assert!(near(split_counts[&4096], 0.75, 40_000) && near(split_counts[&8192], 0.25, 40_000));
        assert_eq!(split_counts.len(), 2);
        let range = counts(&BlockSizes::Range { min: 4096, max: 16384 }, false, 9000, 1000);
        assert_eq!(range.keys().copied().collect::<Vec<_>>(), [4096, 8192]);
    }

    #[test]
    fn a_share_of_zero_is_never_drawn() {
        let counts = counts(&BlockSizes::Split(vec![(512, 0.0), (4096, 100.0)]), false, u64::MAX, 1000);
        assert_eq!(counts.keys().copied().collect::<Vec<_>>(), [4096]);
    }
}
