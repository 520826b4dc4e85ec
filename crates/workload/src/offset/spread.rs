//! Random places that are not equally likely: by rank, by zone, or in a given sequence.
//!
//! Invariant: what is drawn is below the number of places.

use std::sync::Arc;

use fiord_plan::{AccessZone, RandomDistribution, ZoneSize};
use fiord_stats::{Capped, Random, Ranks};

/// Ranks are scattered by multiplication with this number, which is odd and near 2^64 times (3 - sqrt(5)) / 2; fio
/// scatters by the same one.
const SCATTER: u64 = 0x61c8_8646_80b5_83eb;

/// How one direction of one file finds its places.
#[derive(Debug, Clone)]
pub(crate) enum Spread {
    /// Each as likely as any other.
    Even { places: u64 },
    /// Ranks scattered over the file.
    Scattered { ranks: Arc<Ranks>, scatter: Scatter },
    /// Ranks in order.
    InOrder { ranks: Arc<Ranks> },
    /// Zones.
    Zoned(Box<Zoned>),
    /// A given sequence.
    Sequence(Sequence),
}

/// The tables that spreads of the same distribution over as many places share.
#[derive(Debug, Default)]
pub(crate) struct RankTables {
    made: Vec<(RandomDistribution, Arc<Ranks>)>,
}

impl RankTables {
    fn get(
        &mut self,
        distribution: &RandomDistribution,
        places: u64,
        make: impl Fn() -> Ranks,
    ) -> Arc<Ranks> {
        let known = self.made.iter().find(|(made, ranks)| made == distribution && ranks.count() == places);
        if let Some((_, ranks)) = known {
            return Arc::clone(ranks);
        }
        let ranks = Arc::new(make());
        self.made.push((distribution.clone(), Arc::clone(&ranks)));
        ranks
    }
}

impl Spread {
    /// Over `length_bytes` with places for blocks of `block_bytes` at each multiple of `align_bytes`. A favourite that
    /// may be anywhere is at `anywhere` (0 the start, 1 the end).
    pub(crate) fn new(
        distribution: &RandomDistribution,
        length_bytes: u64,
        places: u64,
        align_bytes: u64,
        anywhere: f64,
        tables: &mut RankTables,
    ) -> Spread {
        let places = places.max(1);
        let at = |centre: &Option<f64>| u64::capped(places as f64 * centre.unwrap_or(anywhere));
        match distribution {
            RandomDistribution::Uniform => Spread::Even { places },
            RandomDistribution::Zipf { theta, centre } => Spread::Scattered {
                ranks: tables.get(distribution, places, || Ranks::zipf(places, *theta)),
                scatter: Scatter::new(places, at(centre)),
            },
            RandomDistribution::Pareto { power, centre } => Spread::Scattered {
                ranks: tables.get(distribution, places, || Ranks::pareto(places, *power)),
                scatter: Scatter::new(places, at(centre)),
            },
            RandomDistribution::Normal { deviation_percent, centre } => {
                let make = || Ranks::normal(places, *deviation_percent, *centre);
                Spread::InOrder { ranks: tables.get(distribution, places, make) }
            }
            RandomDistribution::Zoned(zones) => {
                Spread::Zoned(Box::new(Zoned::new(zones, length_bytes, places, align_bytes)))
            }
            RandomDistribution::Sequence { blocks, strides } => {
                Spread::Sequence(Sequence::new(blocks, *strides, places))
            }
        }
    }

    /// The next place.
    #[inline]
    pub(crate) fn draw(&mut self, random: &mut Random) -> u64 {
        match self {
            Spread::Even { places } => random.below(*places),
            Spread::Scattered { ranks, scatter } => scatter.place(ranks.sample(random)),
            Spread::InOrder { ranks } => ranks.sample(random),
            Spread::Zoned(zones) => zones.draw(random),
            Spread::Sequence(sequence) => sequence.next(),
        }
    }

    /// Begins again, where that makes a difference.
    pub(crate) fn restart(&mut self) {
        if let Spread::Sequence(sequence) = self {
            sequence.restart();
        }
    }
}

/// Scatters ranks: rank 0 is at the first place, and each place has one rank as long as there are less than 2^32.
#[derive(Debug, Clone)]
pub(crate) struct Scatter {
    places: u64,
    first: u64,
    multiplier: u64,
    /// 2^64 / places, rounded down.
    reciprocal: u64,
}

impl Scatter {
    fn new(places: u64, first: u64) -> Scatter {
        let multiplier = match places {
            // Products below 2^64, with a number that shares no factor with the places.
            ..=0xffff_ffff => {
                (SCATTER % places..).find(|number| shared_factor(*number, places) == 1).unwrap_or(1)
            }
            _ => SCATTER,
        };
        Scatter { places, first: first % places, multiplier, reciprocal: u64::MAX / places }
    }

    #[inline]
    fn place(&self, rank: u64) -> u64 {
        let place = self.remainder(rank.wrapping_mul(self.multiplier)) + self.first;
        if place >= self.places { place - self.places } else { place }
    }

    /// The remainder of a division by the number of places, by a multiplication.
    #[inline]
    fn remainder(&self, number: u64) -> u64 {
        let quotient = (u128::from(number) * u128::from(self.reciprocal)) >> 64;
        // The quotient is too small by two at most.
        let mut rest = number - quotient as u64 * self.places;
        while rest >= self.places {
            rest -= self.places;
        }
        rest
    }
}

fn shared_factor(left: u64, right: u64) -> u64 {
    if right == 0 { left } else { shared_factor(right, left % right) }
}

/// Zones of places.
#[derive(Debug, Clone)]
pub(crate) struct Zoned {
    /// First place and number of places of each.
    zones: Vec<(u64, u64)>,
    /// Which zone each percent of the I/Os goes to.
    by_percent: [u8; 100],
}

impl Zoned {
    fn new(zones: &[AccessZone], length_bytes: u64, places: u64, align_bytes: u64) -> Zoned {
        let mut by_percent = [0; 100];
        let mut bounds = Vec::with_capacity(zones.len());
        let (mut percent, mut begin_bytes) = (0, 0.0);
        for (number, zone) in zones.iter().enumerate() {
            let bytes = match zone.size {
                ZoneSize::Percent(percent) => length_bytes as f64 * percent / 100.0,
                ZoneSize::Bytes(bytes) => bytes as f64,
            };
            let end_bytes = begin_bytes + bytes;
            let place = |bytes: f64| u64::capped(bytes / align_bytes as f64);
            let first = place(begin_bytes).min(places - 1);
            // A zone smaller than a block is the block it begins in.
            let end = place(end_bytes).clamp(first + 1, places.max(first + 1));
            bounds.push((first, end - first));
            let next = (percent + usize::from(zone.access_percent)).min(by_percent.len());
            by_percent[percent..next].fill(u8::capped(number));
            (percent, begin_bytes) = (next, end_bytes);
        }
        Zoned { zones: bounds, by_percent }
    }

    #[inline]
    fn draw(&self, random: &mut Random) -> u64 {
        let (first, places) = self.zones[usize::from(self.by_percent[random.percent() as usize])];
        first + random.below(places)
    }
}

/// A sequence of blocks.
#[derive(Debug, Clone)]
pub(crate) struct Sequence {
    blocks: Box<[u64]>,
    places: u64,
    /// Places from one beginning of the sequence to the next.
    stride: u64,
    begin: u64,
    next: usize,
}

impl Sequence {
    fn new(blocks: &[u64], strides: bool, places: u64) -> Sequence {
        let reach = blocks.iter().max().map_or(1, |highest| highest.saturating_add(1));
        let stride = if strides { reach % places } else { 0 };
        let blocks = blocks.iter().map(|block| block % places).collect();
        Sequence { blocks, places, stride, begin: 0, next: 0 }
    }

    #[inline]
    fn next(&mut self) -> u64 {
        let place = (self.begin + self.blocks[self.next]) % self.places;
        self.next += 1;
        if self.next == self.blocks.len() {
            self.next = 0;
            self.begin = (self.begin + self.stride) % self.places;
        }
        place
    }

    fn restart(&mut self) {
        (self.begin, self.next) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(distribution: RandomDistribution, places: u64) -> Spread {
        Spread::new(&distribution, places * 4096, places, 4096, 0.3, &mut RankTables::default())
    }

    #[test]
    fn ranks_are_where_fio_scatters_them() {
        // Hottest blocks of `--random_distribution=zipf:1.2:0 --bs=4k --size=4m`, and the same with zipf:1.2:0.25.
        let scatter = Scatter::new(1024, 0);
        assert_eq!([0, 1, 2, 3, 4, 5].map(|rank| scatter.place(rank)), [0, 1003, 982, 961, 940, 919]);
        let quarter = Scatter::new(1024, 256);
        assert_eq!([0, 1, 2, 3].map(|rank| quarter.place(rank)), [256, 235, 214, 193]);
    }

    #[test]
    fn each_place_has_one_rank() {
        for places in [1, 2, 3, 1000, 1023, 1024, 9973, 65_536] {
            let scatter = Scatter::new(places, places / 3);
            let mut seen = vec![false; places as usize];
            (0..places).for_each(|rank| seen[scatter.place(rank) as usize] = true);
            assert!(seen.iter().all(|seen| *seen), "{places} places");
        }
        for places in [(1 << 32) - 1, 1 << 32, (1 << 40) + 7, u64::MAX / 2] {
            let scatter = Scatter::new(places, places - 1);
            let in_range = |rank: u64| scatter.place(rank) < places;
            assert!([0, 1, 2, places / 2, places - 1].into_iter().all(in_range), "{places} places");
            assert_eq!(scatter.remainder(u64::MAX), u64::MAX % places);
        }
    }

    #[test]
    fn a_sequence_repeats_in_place_or_strides_on() {
        let take = |strides: bool, places: u64, count: usize| {
            let mut random = Random::new(1);
            let mut spread =
                spread(RandomDistribution::Sequence { blocks: vec![0, 2, 1, 3], strides }, places);
            (0..count).map(|_| spread.draw(&mut random)).collect::<Vec<u64>>()
        };
        assert_eq!(take(false, 100, 8), [0, 2, 1, 3, 0, 2, 1, 3]);
        assert_eq!(take(true, 8, 10), [0, 2, 1, 3, 4, 6, 5, 7, 0, 2]);
    }

    #[test]
    fn zones_get_their_shares_of_access_and_of_places() {
        let zone = |access_percent, percent| AccessZone { access_percent, size: ZoneSize::Percent(percent) };
        let zones = vec![zone(60, 10.0), zone(30, 20.0), zone(0, 30.0), zone(10, 40.0)];
        let mut spread = spread(RandomDistribution::Zoned(zones), 1000);
        let mut random = Random::new(2);
        let mut cells = [0_u32; 10];
        (0..100_000).for_each(|_| cells[(spread.draw(&mut random) / 100) as usize] += 1);
        let expected = [60_000, 15_000, 15_000, 0, 0, 0, 2500, 2500, 2500, 2500];
        for (cell, expected) in cells.into_iter().zip(expected) {
            assert!(f64::from(cell.abs_diff(expected)) <= 5.0 * f64::from(expected).sqrt(), "{cells:?}");
        }
        // `zoned_abs:60/10:40/20`: bytes within the first block.
        let tiny = |access_percent, bytes| AccessZone { access_percent, size: ZoneSize::Bytes(bytes) };
        let mut tiny = self::spread(RandomDistribution::Zoned(vec![tiny(60, 10), tiny(40, 20)]), 1000);
        assert!((0..100).all(|_| tiny.draw(&mut random) == 0));
    }
}
