//! What several runs of the same thing say together: median, spread, a confidence interval, and whether they are of one
//! kind.
//!
//! Invariant: an interval exists only from three values on, and a difference in kind is only claimed where values of one
//! kind show it in less than a twentieth of all cases.

use crate::steady::{SLOPE_SHARE_MAX, line};
use crate::student;

/// Fewer values than this have no interval: it would be too wide to say anything.
pub const INTERVAL_VALUES_MIN: usize = 3;

/// Fewer values than this do not show a drift, nor a first value that differs.
const DRIFT_VALUES_MIN: usize = 5;
const COLD_VALUES_MIN: usize = 4;

/// Fewer values than this do not show two modes.
const MODES_VALUES_MIN: usize = 6;

/// Differences below this share of the mean are not worth a word, however significant they are.
const SHARE_MIN: f64 = 0.05;

/// Several values of one figure, such as those of repeated runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// How many there are.
    pub count: usize,
    /// The median; of an even number, the lower of the middle two, which was measured.
    pub median: f64,
    /// The lowest.
    pub lowest: f64,
    /// The highest.
    pub highest: f64,
    /// The arithmetic mean.
    pub mean: f64,
    /// How far the mean may be off to either side: half of the 95 % confidence interval by Student's t. `None` below
    /// three values.
    pub half_width: Option<f64>,
    /// The lower end of an interval that would otherwise reach below zero.
    floor: f64,
}

impl Summary {
    /// Of these values; `None` if there are none.
    pub fn of(values: &[f64]) -> Option<Summary> {
        let mut sorted = values.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let (lowest, highest) = (*sorted.first()?, *sorted.last()?);
        let count = sorted.len();
        let median = sorted[(count - 1) / 2];
        let (mean, deviation) = mean_and_deviation(values);
        let half_width = (count >= INTERVAL_VALUES_MIN)
            .then(|| student_t_95(count - 1) * deviation / (count as f64).sqrt());
        Some(Summary { count, median, lowest, highest, mean, half_width, floor: floor(values, lowest) })
    }

    /// The 95 % confidence interval of the mean. Figures that are never negative have no mean below zero: where values
    /// spread so much that the interval would reach that far, it begins where that of their geometric mean does, which
    /// is never above the mean.
    pub fn interval(&self) -> Option<(f64, f64)> {
        let low =
            |half: f64| if self.mean > half { self.mean - half } else { self.floor.max(self.mean - half) };
        self.half_width.map(|half| (low(half), self.mean + half))
    }

    /// Whether the interval contains this value, so that the mean may lie on either side of it.
    pub fn crosses(&self, value: f64) -> bool {
        self.interval().is_some_and(|(low, high)| low < value && value < high)
    }

    /// Half of the interval as a share of the mean; `None` without an interval, or with a mean of zero.
    pub fn error_share(&self) -> Option<f64> {
        self.half_width.filter(|_| self.mean > 0.0).map(|half| half / self.mean)
    }
}

/// How values that should be alike differ in kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Difference {
    /// They gather around two modes: split where that leaves the least variance, the two means are further apart than
    /// those of one normal distribution in a hundredth of all cases (Ashman's D), and by more than 10 % of the mean.
    Bimodal {
        /// Mean of the lower ones.
        lower: f64,
        /// Mean of the higher ones.
        higher: f64,
    },
    /// The slope of the line through them is significant (t test, 5 %), and beyond what SNIA's test specification
    /// allows a steady state: more than 10 % of the mean over all of them.
    Drift {
        /// Where that line begins, within the values.
        from: f64,
        /// Where it ends, within the values.
        to: f64,
    },
    /// The first lies outside of the interval in which 95 % of further runs like the others are.
    FirstApart {
        /// Its difference from the mean of the others, as a share of that.
        share: f64,
    },
}

/// How values, in the order in which they were measured, differ in kind; empty if they do not show it. A first value
/// that differs is left out before a drift is looked for.
pub fn differences(values: &[f64]) -> Vec<Difference> {
    let first = first_apart(values);
    let rest = if first.is_some() { &values[1..] } else { values };
    let drift = drift(rest);
    // A drift fills two halves as well.
    let modes = if drift.is_none() { two_modes(rest) } else { None };
    [first, drift, modes].into_iter().flatten().collect()
}

fn first_apart(values: &[f64]) -> Option<Difference> {
    let (first, others) = values.split_first().filter(|_| values.len() >= COLD_VALUES_MIN)?;
    let (mean, deviation) = mean_and_deviation(others);
    let count = others.len() as f64;
    let half = student_t_95(others.len() - 1) * deviation * (1.0 + 1.0 / count).sqrt();
    let share = (first - mean) / mean;
    let is_apart = mean > 0.0 && (first - mean).abs() > half && share.abs() > SHARE_MIN;
    is_apart.then_some(Difference::FirstApart { share })
}

fn drift(values: &[f64]) -> Option<Difference> {
    let count = values.len();
    if count < DRIFT_VALUES_MIN {
        return None;
    }
    let line = line(values);
    if line.mean <= 0.0 {
        return None;
    }
    let share = line.slope * (count - 1) as f64 / line.mean;
    let error = (line.squared_residuals / (count - 2) as f64 / line.squares).sqrt();
    let is_significant = line.slope.abs() > student_t_95(count - 2) * error;
    let (lowest, highest) =
        values.iter().fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(*value), high.max(*value)));
    let half = line.slope * (count - 1) as f64 / 2.0;
    let at = |value: f64| value.clamp(lowest, highest);
    let drift = Difference::Drift { from: at(line.mean - half), to: at(line.mean + half) };
    (is_significant && share.abs() > SLOPE_SHARE_MAX).then_some(drift)
}

fn two_modes(values: &[f64]) -> Option<Difference> {
    let count = values.len();
    if count < MODES_VALUES_MIN {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let within = |part: &[f64]| {
        let mean = part.iter().sum::<f64>() / part.len() as f64;
        (mean, part.iter().map(|value| (value - mean).powi(2)).sum::<f64>())
    };
    let split = |at: usize| {
        let ((lower, below), (higher, above)) = (within(&sorted[..at]), within(&sorted[at..]));
        (below + above, lower, higher)
    };
    // A single value is an outlier and no mode.
    let splits = (2..=count - 2).map(split);
    let (squares, lower, higher) = splits.min_by(|one, other| one.0.total_cmp(&other.0))?;
    let deviation = (squares / (count - 2) as f64).sqrt();
    // The 99th percentile of the best split of normal values, from a simulation; fitted for 6 to 20 values.
    let distance_max = 3.2 + 24.0 / (count - 2) as f64;
    let mean = sorted.iter().sum::<f64>() / count as f64;
    let is_apart = higher - lower > distance_max * deviation && higher - lower > 2.0 * SHARE_MIN * mean;
    is_apart.then_some(Difference::Bimodal { lower, higher })
}

/// The mean, and the standard deviation of the sample; 0 below two values.
/// Where the 95 % interval of the geometric mean begins: 0 if one of the values is, and nowhere if one is negative.
fn floor(values: &[f64], lowest: f64) -> f64 {
    if lowest <= 0.0 {
        return if lowest < 0.0 { f64::NEG_INFINITY } else { 0.0 };
    }
    let logarithms: Vec<f64> = values.iter().map(|value| value.ln()).collect();
    let (mean, deviation) = mean_and_deviation(&logarithms);
    let half = student_t_95(values.len().max(2) - 1) * deviation / (values.len() as f64).sqrt();
    (mean - half).exp()
}

fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
    let count = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, if values.len() < 2 { 0.0 } else { (squares / (count - 1.0)).sqrt() })
}

/// The two-sided 95 % quantile of Student's t with this many degrees of freedom, at least 1.
fn student_t_95(degrees: usize) -> f64 {
    student::two_sided(0.05, degrees as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;

    #[test]
    fn a_summary_has_median_spread_and_interval() {
        let summary = Summary::of(&[4.0, 1.0, 3.0, 2.0]).unwrap();
        assert_eq!((summary.count, summary.median, summary.mean), (4, 2.0, 2.5));
        assert_eq!((summary.lowest, summary.highest), (1.0, 4.0));
        // 3.182 * 1.291 / 2
        assert!((summary.half_width.unwrap() - 2.054).abs() < 0.001, "{summary:?}");
        assert!(summary.crosses(1.0) && summary.crosses(4.5) && !summary.crosses(4.6));
        let latencies = Summary::of(&[1.9, 1.6, 6.9]).unwrap();
        // The geometric mean is 2.76, times or divided by 7.4.
        let (low, high) = latencies.interval().unwrap();
        assert!(
            (low - 0.37).abs() < 0.01 && (high - 10.9).abs() < 0.1,
            "no latency is negative: {latencies:?}"
        );
        assert!(!latencies.crosses(1e-6), "however much they spread, all of them are far above");
        assert_eq!(Summary::of(&[0.0, 1.0, 9.0]).unwrap().interval().unwrap().0, 0.0);
        assert!(Summary::of(&[-1.0, 1.0, 0.0]).unwrap().interval().unwrap().0 < -1.0);
        assert_eq!(Summary::of(&[1.0, 2.0]).unwrap().half_width, None);
        assert_eq!(Summary::of(&[]), None);
        let same = Summary::of(&[7.0; 5]).unwrap();
        assert_eq!((same.half_width, same.crosses(7.0)), (Some(0.0), false));
    }

    /// Normal values by the sum of twelve uniform ones.
    fn normal(random: &mut Random, mean: f64, deviation: f64) -> f64 {
        let sum: f64 = (0..12).map(|_| random.below(1 << 30) as f64 / f64::from(1 << 30)).sum();
        mean + deviation * (sum - 6.0)
    }

    /// How often something holds for sets of this many normal values around 100, in percent.
    fn percent(count: usize, holds: impl Fn(&[f64]) -> bool) -> f64 {
        const SETS: u32 = 1500;
        let mut random = Random::new(7 + count as u64);
        let held = (0..SETS).filter(|_| {
            let values: Vec<f64> = (0..count).map(|_| normal(&mut random, 100.0, 20.0)).collect();
            holds(&values)
        });
        100.0 * held.count() as f64 / f64::from(SETS)
    }

    /// The interval must contain the true mean in 95 % of all cases; four standard errors of 1500 sets are 2.3 %.
    #[test]
    fn the_interval_covers_the_mean_as_often_as_it_says() {
        for count in [3, 4, 5, 6, 10, 15, 30] {
            let covered = percent(count, |values| Summary::of(values).unwrap().crosses(100.0));
            assert!((92.7..=97.3).contains(&covered), "{count} values: {covered} %");
        }
    }

    #[test]
    fn values_of_one_kind_are_rarely_taken_for_several() {
        for count in [4, 5, 6, 8, 10, 20] {
            let drifting = percent(count, |values| drift(values).is_some());
            let apart = percent(count, |values| first_apart(values).is_some());
            let bimodal = percent(count, |values| two_modes(values).is_some());
            assert!(drifting < 7.3 && apart < 7.3 && bimodal < 3.0, "{count}: {drifting} {apart} {bimodal}");
        }
    }

    #[test]
    fn two_modes_a_drift_and_a_cold_first_run_are_found() {
        let modes = [100.0, 200.0, 101.0, 203.0, 99.0, 202.0, 100.0, 198.0];
        assert!(matches!(differences(&modes)[..], [Difference::Bimodal { lower, higher }]
            if (lower - 100.0).abs() < 0.1 && (higher - 200.75).abs() < 0.1));
        let falling = [100.0, 96.0, 93.0, 88.0, 85.0];
        assert!(
            matches!(differences(&falling)[..], [Difference::Drift { from, to }] if from > 99.0 && to < 85.0 + 1.0),
            "{:?}",
            differences(&falling)
        );
        let cold = [50.0, 100.0, 101.0, 99.0, 100.0, 101.0];
        assert!(
            matches!(differences(&cold)[..], [Difference::FirstApart { share }] if (share + 0.5).abs() < 0.01)
        );
        assert_eq!(differences(&[100.0, 101.0, 99.0, 100.0, 100.5, 99.5, 100.0]), []);
        assert_eq!(differences(&[1.0, 2.0, 3.0]), [], "too few");
        assert_eq!(differences(&[100.0, 100.0, 100.0, 101.0, 101.0, 101.0]), [], "too small to matter");
        assert_eq!(differences(&[0.0; 8]), []);
    }
}
