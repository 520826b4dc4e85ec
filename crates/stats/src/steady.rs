//! Judging whether a measure has become steady, over a window of measurements.
//!
//! Invariant: nothing is judged before the window is full, and no figure is NaN.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::capped::Capped;

/// A measure of progress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum SteadyMeasure {
    /// I/Os per second.
    #[default]
    Iops,
    /// Bytes per second.
    Bandwidth,
    /// Mean latency in nanoseconds.
    Latency,
}

/// What must be steady.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SteadyRule {
    /// The measure.
    pub measure: SteadyMeasure,
    /// Its slope is judged, not its largest deviation from the mean.
    pub is_slope: bool,
    /// The limit is in percent of the mean.
    pub is_percent: bool,
    /// It is steady below this.
    pub limit: f64,
    /// Length of the window, in seconds.
    pub duration_s: u64,
}

/// One measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SteadySample {
    /// I/Os per second.
    pub iops: u64,
    /// Bytes per second.
    pub bytes_per_s: u64,
    /// Mean latency; 0 unless it is the measure.
    pub latency_ns: u64,
}

impl SteadySample {
    /// The figure of this measure.
    pub fn of(&self, measure: SteadyMeasure) -> u64 {
        match measure {
            SteadyMeasure::Iops => self.iops,
            SteadyMeasure::Bandwidth => self.bytes_per_s,
            SteadyMeasure::Latency => self.latency_ns,
        }
    }
}

/// What is known about the steadiness of a job or a group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SteadyState {
    /// What must be steady.
    pub rule: SteadyRule,
    /// Whether it was.
    pub attained: bool,
    /// What was compared to the limit last, in its unit; 0 before the first full window. Slopes have a sign.
    pub criterion: f64,
    /// Largest deviation from the mean, in the unit of the measure; 0 if the slope is judged.
    pub max_deviation: f64,
    /// Change per second, in the unit of the measure; 0 if the deviation is judged.
    pub slope: f64,
    /// Measurements that the window holds when it is full.
    pub window: u64,
    /// The last measurements, oldest first: at most `window`.
    pub samples: Vec<SteadySample>,
}

impl SteadyState {
    /// The mean of a figure over the measurements taken, rounded down; 0 without any.
    pub fn mean(&self, figure: impl Fn(&SteadySample) -> u64) -> u64 {
        let sum: u128 = self.samples.iter().map(|sample| u128::from(figure(sample))).sum();
        u64::capped(sum.checked_div(self.samples.len() as u128).unwrap_or(0))
    }
}

/// A window of measurements that moves on.
#[derive(Clone, Debug)]
pub struct SteadyWindow {
    state: SteadyState,
    interval_s: f64,
    samples: VecDeque<SteadySample>,
}

impl SteadyWindow {
    /// An empty window for this many measurements, at least one, each of this length.
    pub fn new(rule: SteadyRule, window: u64, interval_s: f64) -> SteadyWindow {
        let state = SteadyState { rule, window: window.max(1), ..SteadyState::default() };
        SteadyWindow { state, interval_s, samples: VecDeque::new() }
    }

    /// Adds a measurement; returns whether the measure is steady.
    pub fn push(&mut self, sample: SteadySample) -> bool {
        let SteadyWindow { state, interval_s, samples } = self;
        if samples.len() as u64 == state.window {
            samples.pop_front();
        }
        samples.push_back(sample);
        if (samples.len() as u64) < state.window {
            return false;
        }
        let values: Vec<f64> = samples.iter().map(|sample| sample.of(state.rule.measure) as f64).collect();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let judged = match state.rule.is_slope {
            true => {
                state.slope = line(&values).slope / *interval_s;
                state.slope
            }
            false => {
                state.max_deviation =
                    values.iter().fold(0.0, |most: f64, value| most.max((value - mean).abs()));
                state.max_deviation
            }
        };
        // A job that does nothing is not steady.
        let is_idle = mean <= 0.0;
        state.criterion = match state.rule.is_percent {
            true if is_idle => 0.0,
            true => judged / mean * 100.0,
            false => judged,
        };
        state.attained = !is_idle && state.criterion.abs() < state.rule.limit;
        state.attained
    }

    /// What is known so far.
    pub fn state(&self) -> SteadyState {
        SteadyState { samples: self.samples.iter().copied().collect(), ..self.state.clone() }
    }
}

/// A line of least squares through values one apart.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Line {
    /// The mean of the values.
    pub mean: f64,
    /// How much it rises from one value to the next; 0 for a single value.
    pub slope: f64,
    /// Sum of the squared distances of the places from their middle.
    pub squares: f64,
    /// Sum of the squared distances of the values from the line.
    pub squared_residuals: f64,
}

/// The line of least squares through values one apart.
pub(crate) fn line(values: &[f64]) -> Line {
    let middle = (values.len() as f64 - 1.0) / 2.0;
    let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
    let at = |index: usize| index as f64 - middle;
    let (products, squares) =
        values.iter().enumerate().fold((0.0, 0.0), |(products, squares), (index, value)| {
            (products + at(index) * (value - mean), squares + at(index).powi(2))
        });
    let slope = if squares > 0.0 { products / squares } else { 0.0 };
    let residual = |(index, value): (usize, &f64)| (value - mean - slope * at(index)).powi(2);
    Line { mean, slope, squares, squared_residuals: values.iter().enumerate().map(residual).sum() }
}

/// Limits of SNIA's Performance Test Specification for a steady state, as shares of the mean: what the line through the
/// rounds may rise or fall over all of them, and how far apart the highest and the lowest round may be.
pub const SLOPE_SHARE_MAX: f64 = 0.10;
/// See [`SLOPE_SHARE_MAX`].
const EXCURSION_SHARE_MAX: f64 = 0.20;

/// Fewer rounds than this are not a steady state, whatever they are.
const STEADY_ROUNDS_MIN: usize = 3;

/// How steady rounds are, by SNIA's rules.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Steadiness {
    /// What the line through them rises from the first to the last, as a share of the mean; negative if it falls.
    pub slope_share: f64,
    /// The highest less the lowest, as a share of the mean.
    pub excursion_share: f64,
}

impl Steadiness {
    /// Of these rounds; `None` if nothing was done in them.
    pub fn of(rounds: &[f64]) -> Option<Steadiness> {
        let line = line(rounds);
        if line.mean <= 0.0 {
            return None;
        }
        let highest = rounds.iter().copied().fold(f64::MIN, f64::max);
        let lowest = rounds.iter().copied().fold(f64::MAX, f64::min);
        Some(Steadiness {
            slope_share: line.slope * (rounds.len() - 1) as f64 / line.mean,
            excursion_share: (highest - lowest) / line.mean,
        })
    }

    /// Whether both are within SNIA's limits.
    pub fn is_steady(&self) -> bool {
        self.slope_share.abs() <= SLOPE_SHARE_MAX && self.excursion_share <= EXCURSION_SHARE_MAX
    }
}

/// The first of the rounds from which on they are steady to the end, three at least; `None` if they never become it.
pub fn steady_from(rounds: &[f64]) -> Option<usize> {
    let last = rounds.len().checked_sub(STEADY_ROUNDS_MIN)?;
    (0..=last).find(|from| Steadiness::of(&rounds[*from..]).is_some_and(|steadiness| steadiness.is_steady()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(measure: SteadyMeasure, is_slope: bool, is_percent: bool, limit: f64) -> SteadyWindow {
        let rule = SteadyRule { measure, is_slope, is_percent, limit, duration_s: 3 };
        SteadyWindow::new(rule, 3, 1.0)
    }

    fn iops(iops: u64) -> SteadySample {
        SteadySample { iops, bytes_per_s: iops * 4096, latency_ns: 0 }
    }

    #[test]
    fn deviations_are_judged_once_the_window_is_full_and_then_over_the_last_measurements() {
        let mut window = window(SteadyMeasure::Iops, false, true, 1.0);
        assert_eq!([900, 1000].map(|rate| window.push(iops(rate))), [false, false]);
        assert_eq!(window.state().criterion, 0.0);
        assert_eq!(window.state().mean(|sample| sample.iops), 950);
        assert!(!window.push(iops(1000)), "66.7 of 966.7");
        assert!((window.state().criterion - 6.897).abs() < 0.001);
        assert!(window.push(iops(1010)));
        let state = window.state();
        assert!(state.attained && (state.max_deviation - 6.667).abs() < 0.001);
        assert_eq!(state.samples, [iops(1000), iops(1000), iops(1010)]);
        assert_eq!(state.slope, 0.0);
    }

    #[test]
    fn slopes_are_judged_by_their_size_and_reported_with_their_sign() {
        let mut window = window(SteadyMeasure::Bandwidth, true, false, 5000.0);
        assert_eq!([100, 99, 98].map(|rate| window.push(iops(rate))), [false, false, true]);
        assert_eq!((window.state().slope, window.state().criterion), (-4096.0, -4096.0));
        assert!(!window.push(iops(94)), "2.5 * 4096 a second");
        assert_eq!(window.state().max_deviation, 0.0);
    }

    #[test]
    fn a_slope_is_per_second_whatever_the_interval() {
        let rule = SteadyRule { is_slope: true, limit: 1.0, duration_s: 2, ..SteadyRule::default() };
        let mut window = SteadyWindow::new(rule, 4, 0.5);
        let _ = [100, 101, 102, 103].map(|rate| window.push(iops(rate)));
        assert_eq!(window.state().slope, 2.0);
    }

    #[test]
    fn latencies_may_be_the_measure() {
        let mut window = window(SteadyMeasure::Latency, false, true, 10.0);
        let sample = |latency_ns| SteadySample { latency_ns, ..iops(latency_ns * latency_ns) };
        assert_eq!([100, 105, 95].map(|ns| window.push(sample(ns))), [false, false, true]);
        assert_eq!(window.state().criterion, 5.0);
    }

    // divergence: a job that does no I/O, with `steadystate`
    #[test]
    fn a_limit_of_zero_is_never_met_and_an_idle_job_is_not_steady() {
        for (limit, rate) in [(0.0, 100), (-1.0, 100), (5.0, 0)] {
            for (is_slope, is_percent) in [(true, true), (false, true), (true, false), (false, false)] {
                let mut window = window(SteadyMeasure::Iops, is_slope, is_percent, limit);
                assert_eq!([rate; 4].map(|rate| window.push(iops(rate))), [false; 4]);
                assert!(window.state().criterion == 0.0);
            }
        }
    }

    #[test]
    fn rounds_are_steady_by_snias_limits_and_a_steady_end_is_found() {
        let steadiness = Steadiness::of(&[90.0, 100.0, 110.0]).unwrap();
        assert!(
            (steadiness.slope_share - 0.2).abs() < 1e-9 && (steadiness.excursion_share - 0.2).abs() < 1e-9
        );
        assert!(!steadiness.is_steady());
        assert_eq!(steady_from(&[50.0, 70.0, 100.0, 101.0, 99.0]), Some(2));
        assert_eq!(steady_from(&[100.0, 101.0, 99.0]), Some(0));
        assert_eq!(steady_from(&[100.0, 130.0, 100.0, 130.0, 100.0]), None);
        assert_eq!(steady_from(&[100.0, 100.0]), None, "too few");
        assert_eq!(steady_from(&[0.0; 5]), None, "idle");
    }

    #[test]
    fn a_window_of_one_measurement_has_neither_deviation_nor_slope() {
        for is_slope in [false, true] {
            let rule = SteadyRule { is_slope, limit: 1.0, ..SteadyRule::default() };
            let mut window = SteadyWindow::new(rule, 1, 1.0);
            assert!(window.push(iops(7)) && window.push(iops(700)));
            assert_eq!(window.state().criterion, 0.0);
        }
    }
}
