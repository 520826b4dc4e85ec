//! When a series of rounds is steady: the definition of SNIA's Performance Test Specification 2.0.
//!
//! Invariant: a series whose mean is not above zero is never steady, and no figure is NaN.

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
        let per_round = rising / from_middle().map(|at| at * at).sum::<f64>();
        let highest = rounds.iter().copied().fold(f64::MIN, f64::max);
        let lowest = rounds.iter().copied().fold(f64::MAX, f64::min);
        Some(Window { mean, excursion: (highest - lowest) / mean, slope: per_round * (count - 1.0) / mean })
    }

    /// Whether it is steady.
    pub fn is_steady(&self) -> bool {
        self.excursion <= EXCURSION_MAX && self.slope.abs() <= SLOPE_MAX
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
        assert_eq!(window(&[9.0, 1.0, 1.0, 1.0, 1.0, 1.0]), Window { mean: 1.0, excursion: 0.0, slope: 0.0 });
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
    fn a_drifting_series_is_never_steady() {
        let mut series = vec![1000.0];
        for round in 1..40 {
            series.push(series[round - 1] * 0.96);
            let is_steady = Window::last_of(&series).is_some_and(|window| window.is_steady());
            assert!(!is_steady, "round {round}");
        }
    }
}
