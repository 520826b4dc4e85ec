//! A run as windows of equal length, and how far the mean over them may be off.
//!
//! Invariant: windows follow each other without a gap, and their sums are those of the run between its first sample and
//! its last. The error of a mean respects that neighbouring windows resemble each other.

use serde::{Deserialize, Serialize};

use crate::steady_part::ProgressSample;

/// A run has at most this many windows; neighbours are joined until it does.
const WINDOWS_MAX: usize = 120;

/// Fewer windows than this do not show how much they vary.
pub const WINDOWS_MIN: usize = 10;

/// What the jobs of a run did together in a part of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// How long it was, in nanoseconds.
    pub length_ns: u64,
    /// I/Os completed: reads, writes, trims.
    pub ios: [u64; 3],
    /// Bytes transferred: reads, writes, trims.
    pub bytes: [u64; 3],
}

impl Window {
    /// The windows between these samples.
    pub fn between(samples: &[ProgressSample]) -> Vec<Window> {
        let of = |pair: &[ProgressSample]| {
            let less = |to: [u64; 3], from: [u64; 3]| -> [u64; 3] {
                std::array::from_fn(|direction| to[direction].saturating_sub(from[direction]))
            };
            let (from, to) = (&pair[0], &pair[1]);
            Window {
                length_ns: to.at_ns.saturating_sub(from.at_ns),
                ios: less(to.ios, from.ios),
                bytes: less(to.bytes, from.bytes),
            }
        };
        let mut windows: Vec<Window> = samples.windows(2).map(of).collect();
        while windows.len() > WINDOWS_MAX {
            windows = windows.chunks(2).map(joined).collect();
        }
        windows
    }
}

fn joined(windows: &[Window]) -> Window {
    windows.iter().fold(Window::default(), |sum, window| Window {
        length_ns: sum.length_ns + window.length_ns,
        ios: std::array::from_fn(|direction| sum.ios[direction] + window.ios[direction]),
        bytes: std::array::from_fn(|direction| sum.bytes[direction] + window.bytes[direction]),
    })
}

/// How far a mean may be off.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeanError {
    /// Its standard error, as a share of the mean.
    pub share: f64,
    /// The degrees of freedom of that error.
    pub degrees: f64,
}

impl MeanError {
    /// Of the mean of values of windows that follow each other. They are divided into batches, because neighbours
    /// resemble each other; what resemblance is left between the batches widens the error. `None` for too few windows,
    /// or a mean of zero.
    pub fn of_windows(values: &[f64]) -> Option<MeanError> {
        let batches = match values.len() {
            ..WINDOWS_MIN => return None,
            WINDOWS_MIN..20 => 5,
            _ => 10,
        };
        let end = values.len();
        let mean_of = |part: &[f64]| part.iter().sum::<f64>() / part.len().max(1) as f64;
        let means: Vec<f64> = (0..batches)
            .map(|batch| mean_of(&values[batch * end / batches..(batch + 1) * end / batches]))
            .collect();
        let mean = mean_of(&means);
        if mean <= 0.0 {
            return None;
        }
        let off = |value: &f64| value - mean;
        let squares: f64 = means.iter().map(|value| off(value).powi(2)).sum();
        let neighbours: f64 = means.windows(2).map(|pair| off(&pair[0]) * off(&pair[1])).sum();
        let resemblance =
            if squares > 0.0 { (neighbours / squares).clamp(0.0, RESEMBLANCE_MAX) } else { 0.0 };
        let variance = squares / (batches - 1) as f64 / batches as f64;
        Some(MeanError {
            share: (variance * widened(resemblance)).sqrt() / mean,
            degrees: (batches - 1) as f64,
        })
    }

    /// Of the mean of this many samples of which only the standard deviation is known, as a share of the mean. How much
    /// neighbours resemble each other is not known, and taken to be half.
    pub fn of_moments(count: u64, deviation_share: f64) -> Option<MeanError> {
        (count >= WINDOWS_MIN as u64).then(|| MeanError {
            share: deviation_share * (widened(RESEMBLANCE_ASSUMED) / count as f64).sqrt(),
            degrees: count as f64 / widened(RESEMBLANCE_ASSUMED) - 1.0,
        })
    }
}

/// The correlation of neighbours that is taken into account at most, and where it is not known.
const RESEMBLANCE_MAX: f64 = 0.8;
const RESEMBLANCE_ASSUMED: f64 = 0.5;

/// By how much the variance of a mean is larger if neighbours are correlated like this.
fn widened(resemblance: f64) -> f64 {
    (1.0 + resemblance) / (1.0 - resemblance)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Random, student};

    #[test]
    fn windows_sum_up_to_the_run_and_become_fewer_in_a_long_one() {
        let sample =
            |at: u64| ProgressSample { at_ns: at * 250, ios: [at * 7, 0, at], bytes: [at * 70, 0, 0] };
        let samples: Vec<ProgressSample> = (0..=1000).map(sample).collect();
        let windows = Window::between(&samples);
        assert!(windows.len() <= WINDOWS_MAX && windows.len() > WINDOWS_MAX / 2, "{}", windows.len());
        let all = joined(&windows);
        assert_eq!(all, Window { length_ns: 250_000, ios: [7000, 0, 1000], bytes: [70_000, 0, 0] });
        assert_eq!(Window::between(&samples[..3]).len(), 2);
        assert_eq!(Window::between(&samples[..1]), []);
    }

    /// Values around 100 in which each keeps a share of how far the one before was off.
    fn series(random: &mut Random, count: usize, kept: f64) -> Vec<f64> {
        let mut off = 0.0;
        let step = |_| {
            let noise: f64 = (0..12).map(|_| random.below(1 << 30) as f64 / f64::from(1 << 30)).sum();
            off = kept * off + (noise - 6.0);
            100.0 + off
        };
        (0..count).map(step).collect()
    }

    #[test]
    fn the_error_of_a_mean_covers_it_although_neighbours_resemble_each_other() {
        const SETS: usize = 1000;
        for (count, kept, least) in
            [(20, 0.0, 0.93), (40, 0.0, 0.93), (40, 0.5, 0.91), (120, 0.5, 0.93), (120, 0.8, 0.89)]
        {
            let mut random = Random::new(count as u64);
            let covered = (0..SETS).filter(|_| {
                let values = series(&mut random, count, kept);
                let mean = values.iter().sum::<f64>() / count as f64;
                let error = MeanError::of_windows(&values).unwrap();
                (mean - 100.0).abs() <= student::two_sided(0.05, error.degrees) * error.share * mean
            });
            let share = covered.count() as f64 / SETS as f64;
            assert!((least..=0.995).contains(&share), "{count} values, {kept}: {share}");
        }
    }

    #[test]
    fn too_few_windows_have_no_error() {
        assert_eq!(MeanError::of_windows(&[1.0; WINDOWS_MIN - 1]), None);
        assert_eq!(MeanError::of_windows(&[0.0; 20]), None);
        assert_eq!(MeanError::of_windows(&[5.0; 20]).unwrap().share, 0.0);
        assert_eq!(MeanError::of_moments(9, 0.1), None);
        let error = MeanError::of_moments(30, 0.1).unwrap();
        assert!((error.share - 0.1 * (0.1_f64).sqrt()).abs() < 1e-9 && (error.degrees - 9.0).abs() < 1e-9);
    }
}
