//! Hosts that are far from the others.
//!
//! Invariant: an outlier is beyond what the others' spread explains, more than 5 % from their median and farther than clocks
//! tell apart, and there are none among fewer than five.

use fiord_stats::OrderBy;

use crate::member::Member;

/// Fewer hosts than this have no outlier: a median of four says little of one of them.
pub const HOSTS_MIN: usize = 5;

/// The robust z-score from which a value is one (Iglewicz and Hoaglin).
const Z_MIN: f64 = 3.5;

/// The share of the median that a value must be off by.
const OFF_MIN: f64 = 0.05;

/// The least that a latency must be off by, in nanoseconds: two readings of a clock and the step of it.
const LATENCY_OFF_MIN_NS: f64 = 50.0;

/// The median's deviations as a share of a standard deviation of a normal distribution.
const MAD_PER_SIGMA: f64 = 0.6745;

/// Which figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// I/Os per second: low ones.
    Iops,
    /// The 99th percentile of latency: high ones.
    P99,
}

impl Measure {
    /// As programs read it, unit last.
    pub fn key(self) -> &'static str {
        match self {
            Measure::Iops => "iops",
            Measure::P99 => "p99_ns",
        }
    }

    /// The figure of a host; `None` if it has none.
    pub(crate) fn of(self, member: &Member) -> Option<f64> {
        match self {
            Measure::Iops => Some(member.iops),
            Measure::P99 => member.p99_ns().map(|ns| ns as f64),
        }
    }

    /// Whether a value is so much worse than the median that it may be one of an outlier.
    pub(crate) fn is_off(self, value: f64, median: f64) -> bool {
        let least = match self {
            Measure::Iops => 0.0,
            Measure::P99 => LATENCY_OFF_MIN_NS,
        };
        self.worse_by(value, median) > least.max(OFF_MIN * median)
    }

    /// How much worse than the median a value is.
    fn worse_by(self, value: f64, median: f64) -> f64 {
        match self {
            Measure::Iops => median - value,
            Measure::P99 => value - median,
        }
    }
}

/// A host far from the others.
#[derive(Clone, Debug, PartialEq)]
pub struct Outlier {
    /// Its place in the list of hosts.
    pub host: usize,
    /// By which figure.
    pub measure: Measure,
    /// Its value.
    pub value: f64,
    /// The median of all.
    pub median: f64,
    /// The robust z-score; infinite if the others are all alike.
    pub z: f64,
}

/// Minimum, median, maximum and median absolute deviation; `None` of nothing.
pub fn spread(values: &[f64]) -> Option<[f64; 4]> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let middle = median(&sorted)?;
    let mut off: Vec<f64> = sorted.iter().map(|value| (value - middle).abs()).collect();
    off.sort_unstable_by(f64::total_cmp);
    Some([*sorted.first()?, middle, *sorted.last()?, median(&off)?])
}

fn median(sorted: &[f64]) -> Option<f64> {
    let upper = *sorted.get(sorted.len() / 2)?;
    let lower = *sorted.get((sorted.len() - 1) / 2)?;
    Some(f64::midpoint(lower, upper))
}

/// The outliers among these values of hosts, the worst first.
pub fn outliers(measure: Measure, values: &[(usize, f64)]) -> Vec<Outlier> {
    let bare: Vec<f64> = values.iter().map(|(_, value)| *value).collect();
    let Some([_, median, _, mad]) = spread(&bare).filter(|_| values.len() >= HOSTS_MIN) else {
        return Vec::new();
    };
    let of = |(host, value): &(usize, f64)| {
        let worse = measure.worse_by(*value, median);
        let z = if mad > 0.0 { MAD_PER_SIGMA * worse / mad } else { f64::INFINITY };
        let is_one = measure.is_off(*value, median) && z > Z_MIN;
        is_one.then_some(Outlier { host: *host, measure, value: *value, median, z })
    };
    let mut found: Vec<Outlier> = values.iter().filter_map(of).collect();
    found.order_by(|one, other| {
        measure.worse_by(other.value, median).total_cmp(&measure.worse_by(one.value, median))
    });
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts_of(measure: Measure, values: &[f64]) -> Vec<usize> {
        let values: Vec<(usize, f64)> = values.iter().copied().enumerate().collect();
        outliers(measure, &values).iter().map(|outlier| outlier.host).collect()
    }

    #[test]
    fn a_slow_host_is_found_and_a_quick_one_is_not() {
        assert_eq!(hosts_of(Measure::Iops, &[100.0, 101.0, 99.0, 60.0, 100.0, 50.0]), [5, 3]);
        assert_eq!(hosts_of(Measure::Iops, &[100.0, 101.0, 99.0, 160.0, 100.0]), [0_usize; 0]);
        assert_eq!(hosts_of(Measure::P99, &[100.0, 101.0, 99.0, 160.0, 100.0]), [3]);
    }

    #[test]
    fn hosts_near_the_median_or_few_or_widely_spread_are_none() {
        assert_eq!(hosts_of(Measure::Iops, &[100.0, 100.0, 100.0, 50.0]), [0_usize; 0], "four");
        assert_eq!(
            hosts_of(Measure::Iops, &[100.0, 100.0, 100.0, 100.0, 96.0]),
            [0_usize; 0],
            "4 %, though the others are alike"
        );
        assert_eq!(hosts_of(Measure::Iops, &[100.0, 100.0, 100.0, 100.0, 94.0]), [4]);
        assert_eq!(hosts_of(Measure::Iops, &[100.0, 140.0, 80.0, 60.0, 120.0]), [0_usize; 0]);
        assert_eq!(hosts_of(Measure::Iops, &[0.0; 6]), [0_usize; 0]);
        assert_eq!(hosts_of(Measure::P99, &[]), [0_usize; 0]);
        assert_eq!(
            hosts_of(Measure::P99, &[10.0, 10.0, 10.0, 10.0, 11.0]),
            [0_usize; 0],
            "a step of the clock"
        );
    }

    #[test]
    fn the_spread_of_an_even_number_has_a_median_between() {
        assert_eq!(spread(&[4.0, 1.0, 3.0, 2.0]), Some([1.0, 2.5, 4.0, 1.0]));
        assert_eq!(spread(&[]), None);
    }
}
