//! Bandwidth and IOPS samples, one per averaging interval.
//!
//! Invariant: merging follows fio's group report: extremes and means of the merged jobs add up (they ran
//! concurrently), and the deviation is that of each job's samples from that job's own mean.

use serde::{Deserialize, Serialize};

use crate::Moments;
use crate::capped::Capped;

/// Fixed-point scale of means and squared deviations kept for merging: integer sums have the same bits in any order.
const FIXED_POINT: f64 = 4_294_967_296.0;

/// Samples of a rate, in KiB/s or in I/Os per second.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Samples {
    /// Samples of this job.
    own: Moments,
    /// Sums of merged jobs.
    merged: Sums,
}

/// Sums over jobs of each job's figures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Sums {
    /// Samples taken.
    count: u64,
    /// Smallest samples.
    min: u64,
    /// Largest samples.
    max: u64,
    /// Means, in units of 2^-32.
    mean_fixed: u128,
    /// Squared deviations, each from its job's mean, in units of 2^-32.
    squared_deviation_fixed: u128,
}

/// The printed figures of [`Samples`], in their unit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SampleFigures {
    /// Samples taken, over all merged jobs.
    pub count: u64,
    /// The smallest, summed over jobs.
    pub min: u64,
    /// The largest, summed over jobs.
    pub max: u64,
    /// The mean, summed over jobs.
    pub mean: f64,
    /// The standard deviation.
    pub stddev: f64,
}

impl Samples {
    /// Adds a sample of this job.
    pub fn record(&mut self, value: u64) {
        self.own.record(value);
    }

    /// Adds the samples of a job that ran concurrently.
    pub fn merge(&mut self, other: &Self) {
        let Sums { count, min, max, mean_fixed, squared_deviation_fixed } = other.sums();
        self.merged.count += count;
        self.merged.min += min;
        self.merged.max += max;
        self.merged.mean_fixed += mean_fixed;
        self.merged.squared_deviation_fixed += squared_deviation_fixed;
    }

    /// The figures to print.
    pub fn figures(&self) -> SampleFigures {
        let Sums { count, min, max, mean_fixed, squared_deviation_fixed } = self.sums();
        if self.merged == Sums::default() {
            return SampleFigures { count, min, max, mean: self.own.mean(), stddev: self.own.stddev() };
        }
        let deviation = squared_deviation_fixed as f64 / FIXED_POINT;
        let stddev = if count < 2 { 0.0 } else { (deviation / (count - 1) as f64).sqrt() };
        SampleFigures { count, min, max, mean: mean_fixed as f64 / FIXED_POINT, stddev }
    }

    fn sums(&self) -> Sums {
        let Samples { own, merged } = self;
        Sums {
            count: merged.count + own.count,
            min: merged.min + own.min(),
            max: merged.max + own.max,
            mean_fixed: merged.mean_fixed + u128::capped((own.mean() * FIXED_POINT).round()),
            squared_deviation_fixed: merged.squared_deviation_fixed
                + u128::capped((own.squared_deviation() * FIXED_POINT).round()),
        }
    }
}

impl PartialEq for Samples {
    /// Equal figures, in whatever order they were merged.
    fn eq(&self, other: &Self) -> bool {
        self.sums() == other.sums()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[u64]) -> Samples {
        let mut samples = Samples::default();
        values.iter().for_each(|v| samples.record(*v));
        samples
    }

    #[test]
    fn one_job_has_its_own_figures() {
        let figures = of(&[500, 502]).figures();
        assert_eq!((figures.count, figures.min, figures.max, figures.mean), (2, 500, 502, 501.0));
        assert!((figures.stddev - std::f64::consts::SQRT_2).abs() < 1e-12);
    }

    #[test]
    fn a_group_sums_means_and_extremes() {
        let mut group = of(&[1024, 1040]);
        group.merge(&of(&[3072, 3136]));
        let figures = group.figures();
        assert_eq!((figures.count, figures.min, figures.max, figures.mean), (4, 4096, 4176, 4136.0));
        // Squared deviations 2 * 8^2 + 2 * 32^2, over 4 - 1.
        assert!((figures.stddev - (2176.0_f64 / 3.0).sqrt()).abs() < 1e-3);
    }
}
