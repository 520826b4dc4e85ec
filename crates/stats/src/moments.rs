//! Count, sum, sum of squares and extremes of integers, kept exactly.
//!
//! Invariant: nothing is rounded until a mean or deviation is computed, so merging in any order gives the same bits.

use serde::{Deserialize, Serialize};

/// Moments of a stream of values. The unit is the caller's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moments {
    /// Values recorded.
    pub count: u64,
    /// Their sum.
    pub sum: u128,
    /// The sum of their squares; wraps only beyond 2^128.
    pub sum_squares: u128,
    /// The smallest; `u64::MAX` before the first. [`Moments::min`] gives zero there.
    pub min: u64,
    /// The largest; zero before the first.
    pub max: u64,
}

impl Default for Moments {
    fn default() -> Self {
        Moments { count: 0, sum: 0, sum_squares: 0, min: u64::MAX, max: 0 }
    }
}

impl Moments {
    /// Adds a value.
    #[inline]
    pub fn record(&mut self, value: u64) {
        self.count += 1;
        self.sum += u128::from(value);
        self.sum_squares = self.sum_squares.wrapping_add(u128::from(value) * u128::from(value));
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// Adds values below 2^32, a few dozen at a time: the same as recording each, in fewer instructions.
    #[inline]
    pub fn record_all(&mut self, values: &[u32]) {
        /// Squares of this many values up to `SMALL_MAX` fit into 64 bits.
        const CHUNK: usize = 64;
        const SMALL_MAX: u32 = 1 << 28;
        for chunk in values.chunks(CHUNK) {
            let sum: u64 = chunk.iter().map(|value| u64::from(*value)).sum();
            let (min, max) =
                chunk.iter().fold((u32::MAX, 0), |(min, max), value| (min.min(*value), max.max(*value)));
            let square = |value: &u32| u64::from(*value) * u64::from(*value);
            let sum_squares = if max < SMALL_MAX {
                u128::from(chunk.iter().map(square).sum::<u64>())
            } else {
                chunk.iter().map(|value| u128::from(square(value))).sum()
            };
            self.count += chunk.len() as u64;
            self.sum += u128::from(sum);
            self.sum_squares = self.sum_squares.wrapping_add(sum_squares);
            self.min = self.min.min(u64::from(min));
            self.max = self.max.max(u64::from(max));
        }
    }

    /// Adds the values of `other`.
    pub fn merge(&mut self, other: &Self) {
        let Moments { count, sum, sum_squares, min, max } = *other;
        self.count += count;
        self.sum += sum;
        self.sum_squares = self.sum_squares.wrapping_add(sum_squares);
        self.min = self.min.min(min);
        self.max = self.max.max(max);
    }

    /// The smallest value, zero before the first.
    pub fn min(&self) -> u64 {
        if self.count == 0 { 0 } else { self.min }
    }

    /// The arithmetic mean, zero before the first value.
    pub fn mean(&self) -> f64 {
        if self.count == 0 {
            return 0.0;
        }
        let count = u128::from(self.count);
        (self.sum / count) as f64 + (self.sum % count) as f64 / self.count as f64
    }

    /// The sum of squared differences from the mean.
    pub fn squared_deviation(&self) -> f64 {
        if self.count == 0 {
            return 0.0;
        }
        // Taken about the mean's integer part, in integers, so that nothing cancels if the deviation is tiny compared
        // with the mean; the fraction of the mean is corrected for afterwards.
        let count = u128::from(self.count);
        let (quotient, remainder) = (self.sum / count, self.sum % count);
        let about_quotient = self.sum_squares.wrapping_sub(quotient.wrapping_mul(self.sum + remainder));
        let correction = remainder as f64 * (remainder as f64 / self.count as f64);
        (about_quotient as f64 - correction).max(0.0)
    }

    /// The sample standard deviation (n - 1), as fio prints it; zero below two values.
    pub fn stddev(&self) -> f64 {
        if self.count < 2 {
            return 0.0;
        }
        (self.squared_deviation() / (self.count - 1) as f64).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[u64]) -> Moments {
        let mut running = Moments::default();
        values.iter().for_each(|v| running.record(*v));
        running
    }

    #[test]
    fn empty_and_single_are_plain_zeroes() {
        let empty = Moments::default();
        assert_eq!((empty.min(), empty.max, empty.mean(), empty.stddev()), (0, 0, 0.0, 0.0));
        let one = of(&[7]);
        assert_eq!((one.min(), one.max, one.mean(), one.stddev()), (7, 7, 7.0, 0.0));
    }

    #[test]
    fn many_at_once_are_the_same_as_one_by_one() {
        let small: Vec<u32> = (0..200).map(|i| i * 7919 % 100_003).collect();
        let large = vec![u32::MAX; 70];
        for values in [&small[..], &large, &small[..1], &[]] {
            let mut at_once = Moments::default();
            at_once.record_all(values);
            let wide: Vec<u64> = values.iter().map(|value| u64::from(*value)).collect();
            assert_eq!(at_once, of(&wide));
        }
    }

    #[test]
    fn deviation_is_the_samples_one() {
        let running = of(&[500, 502]);
        assert_eq!(running.mean(), 501.0);
        assert!((running.stddev() - std::f64::consts::SQRT_2).abs() < 1e-12);
    }

    #[test]
    fn a_small_deviation_on_a_large_mean_survives() {
        let base = 1 << 60;
        let running = of(&[base, base + 1, base + 2]);
        assert!((running.stddev() - 1.0).abs() < 1e-12);
    }
}
