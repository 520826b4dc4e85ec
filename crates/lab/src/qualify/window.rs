//! When a series of rounds is steady: the definition of SNIA's Performance Test Specification 2.0.
//!
//! Beside it, fiord's own: how sure it is that the drift is that small.
//!
//! Invariant: a series whose mean is not above zero is never steady, and no figure is NaN.

use fiord_stats::student;

/// How many rounds a window has.
pub const WINDOW_ROUNDS: usize = 5;

/// The largest difference between two rounds of a steady window, as a share of its mean.
pub const EXCURSION_MAX: f64 = 0.20;

/// The largest change of the least-squares line over a steady window, from its first round to its last, as a share of its
/// mean.
pub const SLOPE_MAX: f64 = 0.10;

/// A window of rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    /// The mean of its rounds.
    pub mean: f64,
    /// The highest round minus the lowest, as a share of the mean.
    pub excursion: f64,
    /// The change of the least-squares line from its first round to its last, as a share of the mean; negative if it falls.
    pub slope: f64,
    /// Half of the interval around the slope that has the drift of the device with a confidence of 95 %, as a share of the
    /// mean: what rounds differ in that is no drift is taken as independent and normal.
    pub slope_reach: f64,
}

impl Window {
    /// Of the last rounds of this series; `None` if there are too few, or their mean is not above zero.
    pub fn last_of(series: &[f64]) -> Option<Window> {
        let rounds = series.get(series.len().checked_sub(WINDOW_ROUNDS)?..)?;
        let count = rounds.len() as f64;
        let mean = rounds.iter().sum::<f64>() / count;
        if !(mean.is_finite() && mean > 0.0) {
            return None;
        }
        let middle = (count - 1.0) / 2.0;
        let from_middle = || (0..rounds.len()).map(|round| round as f64 - middle);
        let rising: f64 = from_middle().zip(rounds).map(|(at, value)| at * (value - mean)).sum();
        let spread = from_middle().map(|at| at * at).sum::<f64>();
        let per_round = rising / spread;
        let off_line = from_middle().zip(rounds).map(|(at, value)| value - mean - per_round * at);
        let degrees = count - 2.0;
        let error = (off_line.map(|off| off * off).sum::<f64>() / degrees / spread).sqrt();
        let highest = rounds.iter().copied().fold(f64::MIN, f64::max);
        let lowest = rounds.iter().copied().fold(f64::MAX, f64::min);
        let of_mean = |per_round: f64| per_round * (count - 1.0) / mean;
        Some(Window {
            mean,
            excursion: (highest - lowest) / mean,
            slope: of_mean(per_round),
            slope_reach: of_mean(error) * student::two_sided(0.05, degrees),
        })
    }

    /// Whether it is steady.
    pub fn is_steady(&self) -> bool {
        self.excursion <= EXCURSION_MAX && self.slope.abs() <= SLOPE_MAX
    }

    /// Whether the drift is at most what a steady window may have with all that the interval has.
    pub fn is_confirmed(&self) -> bool {
        self.slope.abs() + self.slope_reach <= SLOPE_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(series: &[f64]) -> Window {
        Window::last_of(series).unwrap()
    }

    #[test]
    fn a_window_is_steady_within_both_limits() {
        assert!(Window::last_of(&[1.0; 4]).is_none() && Window::last_of(&[0.0; 5]).is_none());
        let even = Window { mean: 1.0, excursion: 0.0, slope: 0.0, slope_reach: 0.0 };
        assert_eq!(window(&[9.0, 1.0, 1.0, 1.0, 1.0, 1.0]), even);
        let hollow = window(&[100.0, 90.0, 80.0, 90.0, 100.0]);
        assert!(hollow.slope.abs() < 1e-12 && !hollow.is_steady(), "20 of 92 are more than 20 %");
        let rising = window(&[94.0, 97.0, 100.0, 103.0, 106.0]);
        assert!(rising.excursion < EXCURSION_MAX && !rising.is_steady(), "{rising:?}");
        let falling = window(&[106.0, 103.0, 100.0, 97.0, 94.0]);
        assert!((falling.slope + 0.12).abs() < 1e-9 && !falling.is_steady(), "{falling:?}");
        assert!(window(&[104.0, 102.0, 100.0, 98.0, 96.0]).is_steady());
        assert!(window(&[110.0, 90.0, 110.0, 90.0, 100.0]).excursion <= EXCURSION_MAX);
    }

    #[test]
    fn a_drift_is_confirmed_to_be_small_if_its_interval_is() {
        // Off the line by 1, -1, -1, 1, 0: their squares are 4 in 3 degrees of freedom.
        let near = window(&[101.0, 99.0, 99.0, 101.0, 100.0]);
        let error = (4.0_f64 / 3.0 / 10.0).sqrt() * 4.0 / 100.0;
        assert!((near.slope_reach - 3.182_446 * error).abs() < 1e-6 && near.is_confirmed(), "{near:?}");
        let noisy = window(&[104.0, 96.0, 96.0, 104.0, 100.0]);
        assert!(noisy.is_steady() && !noisy.is_confirmed(), "{noisy:?}");
        assert!(window(&[104.0, 102.0, 100.0, 98.0, 96.0]).is_confirmed(), "8 % and nothing else");
    }

    /// The error rates in docs/qualify.md: of a device that drifts by 10 % over each window, whose rounds differ by 1 % more.
    #[test]
    fn what_drifts_is_confirmed_as_rarely_as_the_documents_say() {
        let mut random = fiord_stats::Random::new(32);
        let mut normal = || (0..12).map(|_| random.unit()).sum::<f64>() - 6.0;
        let per_round = (1.05_f64 / 0.95).powf(0.25);
        let (mut single, mut first_steady, mut any) = (0, 0, 0);
        for _ in 0..1000 {
            let series: Vec<f64> = (0..25).map(|at| per_round.powi(at) * (1.0 + 0.01 * normal())).collect();
            let windows: Vec<Window> =
                series.windows(WINDOW_ROUNDS).filter_map(Window::last_of).filter(Window::is_steady).collect();
            single += usize::from(window(&series[..5]).is_confirmed());
            first_steady += usize::from(windows.first().is_some_and(Window::is_confirmed));
            any += usize::from(windows.iter().any(Window::is_confirmed));
        }
        assert!((10..40).contains(&single), "{single}: 2.5 %");
        assert!((25..65).contains(&first_steady), "{first_steady}: 4 %");
        assert!((320..430).contains(&any), "{any}: 38 %");
    }

    #[test]
    fn a_drifting_series_is_never_steady() {
        let mut series = vec![1000.0];
        for round in 1..40 {
            series.push(series[round - 1] * 0.96);
            let is_steady = Window::last_of(&series).is_some_and(|window| window.is_steady());
            assert!(!is_steady, "round {round}");
        }
    }
}
