//! Where random I/Os go: the distribution that those that were seen come from.
//!
//! Invariant: decided by figures that do not depend on the order of ranks that the sample happens to have: how often two
//! I/Os meet in one block, in all and by position. The sorted counts, which have a bias, are compared only with sorted
//! counts of a simulation, which have the same.

use std::collections::HashMap;

use fiord_stats::OrderBy;
use fiord_stats::{Capped, Random, Ranks};

/// What random I/Os have in common.
#[derive(Debug, Clone, PartialEq)]
pub enum Where {
    /// Each block once before any comes again.
    EachOnce,
    /// Any block, as likely as any other, whether it was touched or not.
    Anywhere,
    /// Evenly, as far as so few tell.
    TooFew,
    /// Few blocks often, scattered: by Zipf's law with this exponent.
    Zipf(f64),
    /// Few blocks often, scattered: the 80-20 rule, with this share instead of 0.2.
    Pareto(f64),
    /// Parts of the region more often than others: percents of the accesses, and of the region.
    Zones(Vec<(u32, u32)>),
}

/// A distribution, and how far it is from what was seen.
#[derive(Debug, Clone, PartialEq)]
pub struct Fit {
    /// The distribution.
    pub place: Where,
    /// The largest difference (0 to 1) between the shares that the most frequent blocks take, here and there; `None` where
    /// it was not compared.
    pub distance: Option<f64>,
}

/// Deviations of a count that are taken for no chance.
const DEVIATIONS: f64 = 5.0;
/// Pairs below this tell nothing.
const PAIRS_MIN: f64 = 5.0;
/// A difference that is none.
const ALIKE: f64 = 0.02;
/// Draws of a simulation, at most.
const DRAWS_MAX: u64 = 1 << 20;
/// Zones at most: more help nobody who reads them.
const ZONES_MAX: usize = 16;
/// Share of what meets beyond chance that zones must explain.
const ZONES_EXPLAIN: f64 = 0.7;

/// The distribution of accesses to blocks (number of the block, how often), out of `places` blocks. Of a sample, only those
/// of its blocks, and as many places as it stands for.
pub fn fit(blocks: &[(u64, u32)], places: u64, sampled_share: f64) -> Fit {
    let draws: f64 = blocks.iter().map(|(_, count)| f64::from(*count)).sum();
    let sampled_places = (places as f64 * sampled_share).max(1.0);
    let pairs = |count: f64| count * (count - 1.0) / 2.0;
    let met: f64 = blocks.iter().map(|(_, count)| pairs(f64::from(*count))).sum();
    let expected = pairs(draws) / sampled_places;
    let chance = DEVIATIONS * expected.sqrt();
    let plain = |place| Fit { place, distance: None };
    let zones = Slices::new(blocks, places, draws);
    let by_position = zones.as_ref().map_or(0.0, |slices| slices.excess());
    if met - expected <= chance + PAIRS_MIN + expected * 0.01 && by_position * expected <= chance {
        return plain(match () {
            () if expected - met > chance => Where::EachOnce,
            () if expected < PAIRS_MIN => Where::TooFew,
            () => Where::Anywhere,
        });
    }
    let excess = met / expected - 1.0;
    if let Some(slices) = &zones
        && (by_position >= excess * ZONES_EXPLAIN || excess <= 0.0)
    {
        return plain(Where::Zones(slices.zones()));
    }
    let share_met = met / pairs(draws);
    let count = u64::capped(sampled_places.round());
    let theta = solved(0.01, 3.0, |theta| zipf_meeting(theta, count), share_met);
    // A smaller share is more skewed.
    let share = solved(0.5, 0.01, |share| pareto_meeting(share, count), share_met);
    let observed = Curve::new(blocks.iter().map(|(_, count)| *count).collect());
    let zipf = observed.distance(&simulated(&Ranks::zipf(count, theta), draws));
    let pareto = observed.distance(&simulated(&Ranks::pareto(count, share), draws));
    // Both laws look alike where they are nearly even; then it is the better known one.
    match zipf <= pareto * 1.5 || zipf <= ALIKE {
        true => Fit { place: Where::Zipf(theta), distance: Some(zipf) },
        false => Fit { place: Where::Pareto(share), distance: Some(pareto) },
    }
}

/// Where a function that rises from `low` to `high` reaches `wanted`.
fn solved(low: f64, high: f64, function: impl Fn(f64) -> f64, wanted: f64) -> f64 {
    let (mut low, mut high) = (low, high);
    for _ in 0..40 {
        let middle = (low + high) / 2.0;
        match function(middle) < wanted {
            true => low = middle,
            false => high = middle,
        }
    }
    (low + high) / 2.0
}

/// Ranks that are added up one by one; the sum of the others is an integral.
const ADDED_UP: u64 = 4096;

/// The sum of `rank^-theta` over the ranks 1..=count.
fn zipf_sum(theta: f64, count: u64) -> f64 {
    let added: f64 = (1..=count.min(ADDED_UP)).map(|rank| (rank as f64).powf(-theta)).sum();
    if count <= ADDED_UP {
        return added;
    }
    let (from, to) = (ADDED_UP as f64 + 0.5, count as f64 + 0.5);
    let power = 1.0 - theta;
    added + if power.abs() < 1e-6 { (to / from).ln() } else { (to.powf(power) - from.powf(power)) / power }
}

/// How likely two draws of Zipf's law are to meet.
fn zipf_meeting(theta: f64, count: u64) -> f64 {
    zipf_sum(2.0 * theta, count) / zipf_sum(theta, count).powi(2)
}

/// How likely two draws are to meet, by the 80-20 rule with this share.
fn pareto_meeting(share: f64, count: u64) -> f64 {
    let exponent = (1.0 - share).ln() / share.ln();
    let below = |rank: f64| (rank / count as f64).powf(exponent);
    let added_up = count.min(ADDED_UP);
    let added: f64 = (0..added_up).map(|rank| (below(rank as f64 + 1.0) - below(rank as f64)).powi(2)).sum();
    let power = 2.0 * exponent - 1.0;
    let from = added_up as f64 / count as f64;
    let rest = if power.abs() < 1e-6 { -from.ln() } else { (1.0 - from.powf(power)) / power };
    added + exponent * exponent * rest / count as f64
}

/// The counts of blocks that were drawn this often.
fn simulated(ranks: &Ranks, draws: f64) -> Curve {
    let mut random = Random::new(1);
    let mut counts: HashMap<u64, u32> = HashMap::new();
    for _ in 0..u64::capped(draws).min(DRAWS_MAX) {
        *counts.entry(ranks.sample(&mut random)).or_default() += 1;
    }
    Curve::new(counts.into_values().collect())
}

/// The shares of all accesses that the most frequent 1, 2, 4, … blocks take.
struct Curve {
    shares: Vec<f64>,
}

impl Curve {
    fn new(mut counts: Vec<u32>) -> Curve {
        counts.sort_unstable();
        let total: f64 = counts.iter().map(|count| f64::from(*count)).sum();
        let (mut sum, mut shares) = (0.0, Vec::new());
        for (index, count) in counts.iter().rev().enumerate() {
            sum += f64::from(*count);
            if (index + 1).is_power_of_two() {
                shares.push(sum / total);
            }
        }
        Curve { shares }
    }

    fn distance(&self, other: &Curve) -> f64 {
        let at = |curve: &Curve, index: usize| curve.shares.get(index).copied().unwrap_or(1.0);
        let indices = 0..self.shares.len().max(other.shares.len());
        indices.map(|index| (at(self, index) - at(other, index)).abs()).fold(0.0, f64::max)
    }
}

/// Accesses by position.
struct Slices {
    counts: Vec<f64>,
    total: f64,
}

impl Slices {
    /// `None` for too few places, where a slice is no more than a block.
    fn new(blocks: &[(u64, u32)], places: u64, total: f64) -> Option<Slices> {
        let slices = [100_u64, 50, 25, 20, 10].into_iter().find(|slices| places >= 8 * slices)?;
        let mut counts = vec![0.0; usize::capped(slices)];
        for (block, count) in blocks {
            let slice = u128::from(*block) * u128::from(slices) / u128::from(places);
            counts[(slice as usize).min(usize::capped(slices) - 1)] += f64::from(*count);
        }
        Some(Slices { counts, total })
    }

    /// How much likelier two accesses meet in a slice than if all were equal, minus one.
    fn excess(&self) -> f64 {
        let met: f64 = self.counts.iter().map(|count| count * (count - 1.0)).sum();
        met * self.counts.len() as f64 / (self.total * (self.total - 1.0)).max(1.0) - 1.0
    }

    /// Neighbours that differ no more than by chance, together.
    fn zones(&self) -> Vec<(u32, u32)> {
        // Accesses and slices of each.
        let mut zones: Vec<(f64, f64)> = self.counts.iter().map(|count| (*count, 1.0)).collect();
        let apart = |left: &(f64, f64), right: &(f64, f64)| {
            let difference = left.0 / left.1 - right.0 / right.1;
            let mean = (left.0 + right.0) / (left.1 + right.1);
            difference * difference * left.1 * right.1 / (left.1 + right.1) / mean.max(1.0)
        };
        while zones.len() > 1 {
            let cost = |at: &usize| apart(&zones[*at], &zones[*at + 1]);
            let nearest = (0..zones.len() - 1).min_by(|left, right| cost(left).total_cmp(&cost(right)));
            let Some(nearest) = nearest else { break };
            if zones.len() <= ZONES_MAX && cost(&nearest) > 12.0 {
                break;
            }
            let (count, slices) = zones.remove(nearest + 1);
            zones[nearest] = (zones[nearest].0 + count, zones[nearest].1 + slices);
        }
        let percents = whole_percents(&zones.iter().map(|zone| zone.0).collect::<Vec<_>>());
        let slice_percent = 100 / u32::capped(self.counts.len());
        percents
            .into_iter()
            .zip(&zones)
            .map(|(access, zone)| (access, u32::capped(zone.1) * slice_percent))
            .collect()
    }
}

/// Whole percents of these parts, which sum up to 100: what is lost by rounding goes to those that lose most.
pub(crate) fn whole_percents(parts: &[f64]) -> Vec<u32> {
    let total: f64 = parts.iter().sum::<f64>().max(f64::MIN_POSITIVE);
    let exact: Vec<f64> = parts.iter().map(|part| part * 100.0 / total).collect();
    let mut percents: Vec<u32> = exact.iter().map(|percent| u32::capped(*percent)).collect();
    let mut by_loss: Vec<usize> = (0..parts.len()).collect();
    by_loss.order_by(|left, right| exact[*right].fract().total_cmp(&exact[*left].fract()));
    let missing = 100_u32.saturating_sub(percents.iter().sum());
    by_loss
        .into_iter()
        .cycle()
        .take(if parts.is_empty() { 0 } else { missing as usize })
        .for_each(|index| percents[index] += 1);
    percents
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks drawn, scattered so that neighbours in rank are not neighbours in place.
    fn drawn(places: u64, draws: u64, mut draw: impl FnMut(&mut Random) -> u64) -> Fit {
        let mut random = Random::new(7);
        let mut counts: HashMap<u64, u32> = HashMap::new();
        (0..draws).for_each(|_| *counts.entry(draw(&mut random)).or_default() += 1);
        fit(&counts.into_iter().collect::<Vec<_>>(), places, 1.0)
    }

    #[test]
    fn thetas_come_back() {
        for (theta, places, draws) in
            [(0.5, 10_000, 20_000), (0.9, 25_600, 30_000), (1.2, 4096, 8000), (1.8, 65_536, 5000)]
        {
            let ranks = Ranks::zipf(places, theta);
            let scattered = |random: &mut Random| ranks.sample(random) * 7919 % places;
            let found = drawn(places, draws, scattered);
            let Where::Zipf(fitted) = found.place else { panic!("{theta}: {found:?}") };
            assert!((fitted - theta).abs() < 0.05, "{theta}: {found:?}");
            assert!(found.distance.unwrap() < 0.1, "{found:?}");
        }
    }

    #[test]
    fn shares_of_pareto_come_back() {
        for share in [0.1, 0.2, 0.3] {
            let ranks = Ranks::pareto(16_384, share);
            let found = drawn(16_384, 40_000, |random| ranks.sample(random) * 7919 % 16_384);
            let Where::Pareto(fitted) = found.place else { panic!("{share}: {found:?}") };
            assert!((fitted - share).abs() < 0.03, "{share}: {found:?}");
        }
    }

    #[test]
    fn even_accesses_are_told_from_each_block_once() {
        assert_eq!(drawn(5000, 5000, |random| random.below(5000)).place, Where::Anywhere);
        let mut next = 0;
        let once = drawn(5000, 4000, |_| {
            next += 1;
            next - 1 + 500
        });
        assert!(matches!(once.place, Where::EachOnce | Where::Zones(_)), "{once:?}");
        let mut next = 0;
        assert_eq!(
            drawn(5000, 5000, |_| {
                next += 1;
                next * 7 % 5000
            })
            .place,
            Where::EachOnce
        );
        assert_eq!(drawn(1_000_000, 50, |random| random.below(1_000_000)).place, Where::TooFew);
    }

    #[test]
    fn zones_come_back() {
        let zoned = |random: &mut Random| match random.percent() {
            0..60 => random.below(1000),
            60..90 => 1000 + random.below(2000),
            _ => 3000 + random.below(7000),
        };
        let Where::Zones(zones) = drawn(10_000, 50_000, zoned).place else { panic!("no zones") };
        assert_eq!(zones.len(), 3, "{zones:?}");
        assert!(
            zones.iter().zip([(60, 10), (30, 20), (10, 70)]).all(|(found, (access, size))| found
                .0
                .abs_diff(access)
                <= 1
                && found.1 == size),
            "{zones:?}"
        );
    }

    #[test]
    fn percents_sum_up_to_a_hundred() {
        assert_eq!(whole_percents(&[1.0, 1.0, 1.0]), [34, 33, 33]);
        assert_eq!(whole_percents(&[0.0, 5.0]), [0, 100]);
        assert_eq!(whole_percents(&[]), []);
    }
}
