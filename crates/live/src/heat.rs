//! Latencies over time as a map: a column per second, a row per range of latencies, a shade per share of the I/Os.
//!
//! Invariant: a cell with at least one I/O is never blank, so that one slow I/O among a million is seen.

use std::collections::VecDeque;

use fiord_stats::{Capped, Histogram};

/// Buckets of a second: four per power of two, from 1 ns up.
const BUCKETS: usize = 4 * 40;

/// Seconds that are kept: more than the widest terminal has columns.
const SECONDS_MAX: usize = 512;

/// Shades, from at least one I/O to nearly all of a second.
const SHADES: [char; 5] = ['·', '░', '▒', '▓', '█'];

/// The smallest share of a second's I/Os for the second shade and those after it.
const SHARES: [f64; 4] = [0.01, 0.05, 0.2, 0.5];

/// One second: I/Os by latency.
#[derive(Clone, Debug, PartialEq)]
pub struct Second {
    counts: Box<[u64; BUCKETS]>,
    total: u64,
}

impl Second {
    /// Of the I/Os that this histogram has more than that.
    pub fn of(occupied: impl Iterator<Item = (u64, u64)>) -> Second {
        let mut second = Second { counts: Box::new([0; BUCKETS]), total: 0 };
        for (latency_ns, count) in occupied {
            second.counts[bucket(latency_ns)] += count;
            second.total += count;
        }
        second
    }
}

/// The seconds that are shown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HeatMap {
    seconds: VecDeque<Second>,
}

/// A row of the map: the lower end of its latencies, and a shade for each second, oldest first; `None` is blank.
pub(crate) struct HeatRow {
    pub from_ns: u64,
    pub shades: Vec<Option<usize>>,
}

impl HeatMap {
    /// Adds the second that has just passed.
    pub fn add(&mut self, histogram: &Histogram) {
        self.seconds.push_back(Second::of(histogram.occupied()));
        if self.seconds.len() > SECONDS_MAX {
            self.seconds.pop_front();
        }
    }

    /// The last `width` seconds in at most `height` rows, the slowest I/Os in the first.
    pub(crate) fn rows(&self, width: usize, height: usize) -> Vec<HeatRow> {
        let shown = || self.seconds.iter().skip(self.seconds.len().saturating_sub(width));
        let used = |bucket: &usize| shown().any(|second| second.counts[*bucket] > 0);
        let (Some(low), Some(high)) = ((0..BUCKETS).find(used), (0..BUCKETS).rev().find(used)) else {
            return Vec::new();
        };
        let per_row = (high - low + 1).div_ceil(height.max(1));
        let row = |index: usize| {
            let buckets = low + index * per_row..(low + (index + 1) * per_row).min(BUCKETS);
            let shade = |second: &Second| shade(second.counts[buckets.clone()].iter().sum(), second.total);
            HeatRow { from_ns: floor_ns(buckets.start), shades: shown().map(shade).collect() }
        };
        (0..(high - low + 1).div_ceil(per_row)).rev().map(row).collect()
    }
}

/// The character of a shade.
pub(crate) fn character(shade: usize) -> char {
    SHADES[shade]
}

fn shade(count: u64, total: u64) -> Option<usize> {
    if count == 0 {
        return None;
    }
    let share = count as f64 / total as f64;
    Some(SHARES.iter().filter(|least| share >= **least).count())
}

/// Quarters of a power of two: the number of the highest bit, and the two bits after it.
fn bucket(latency_ns: u64) -> usize {
    let value = latency_ns.max(1);
    let power = value.ilog2() as usize;
    let quarter = if power >= 2 { usize::capped(value >> (power - 2)) & 3 } else { 0 };
    (4 * power + quarter).min(BUCKETS - 1)
}

fn floor_ns(bucket: usize) -> u64 {
    let (power, quarter) = (bucket / 4, bucket as u64 % 4);
    (1 << power) + (quarter << power) / 4
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_begins_at_its_floor() {
        // Below 4 ns there are no quarters.
        for number in 9..BUCKETS {
            assert_eq!(bucket(floor_ns(number)), number);
            assert_eq!(bucket(floor_ns(number) - 1), number - 1);
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
        assert_eq!(bucket(0), 0);
    }

    #[test]
    fn one_slow_io_is_seen() {
        let mut histogram = Histogram::allocated();
        for _ in 0..100_000 {
            histogram.record(50_000);
        }
        histogram.record(80_000_000);
        let mut map = HeatMap::default();
        map.add(&histogram);
        let rows = map.rows(10, 6);
        assert_eq!(rows.len(), 6);
        assert_eq!(rows[0].shades, [Some(0)]);
        assert_eq!(rows[5].shades, [Some(4)]);
        assert!(rows[1..5].iter().all(|row| row.shades == [None]));
        assert!(rows[0].from_ns <= 80_000_000 && rows[5].from_ns <= 50_000);
    }

    #[test]
    fn the_newest_seconds_are_shown() {
        let mut map = HeatMap::default();
        assert!(map.rows(4, 4).is_empty());
        for latency_ns in [1_000, 1_000, 1_000_000] {
            let mut histogram = Histogram::allocated();
            histogram.record(latency_ns);
            map.add(&histogram);
        }
        let rows = map.rows(1, 8);
        assert_eq!(rows.len(), 1, "only the last second counts for the range");
        assert_eq!(rows[0].shades, [Some(4)]);
    }
}
