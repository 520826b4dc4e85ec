//! Positions of figures on an axis, and the figures to label.
//!
//! Invariant: every position is between 0 and 1.

use fiord_stats::Capped;

/// An axis, linear or logarithmic.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Axis {
    low: f64,
    high: f64,
    logarithmic: bool,
}

impl Axis {
    /// From 0 to a round figure at or above the highest; `base` is 1024 for bytes, and 1000 otherwise.
    pub(crate) fn from_zero(figures: impl Iterator<Item = f64>, base: f64) -> Axis {
        let high = figures.filter(|figure| figure.is_finite()).fold(0.0, f64::max);
        let step = round_step(high / 4.0, base);
        Axis { low: 0.0, high: (high / step).ceil().max(1.0) * step, logarithmic: false }
    }

    /// From `low` to `high`.
    pub(crate) fn linear(low: f64, high: f64) -> Axis {
        Axis { low, high: if high > low { high } else { low + 1.0 }, logarithmic: false }
    }

    /// From `low` to `high`, which are positive, with equal room for equal ratios.
    pub(crate) fn logarithmic(low: f64, high: f64) -> Axis {
        Axis { low, high: if high > low { high } else { low * 2.0 }, logarithmic: true }
    }

    /// Over the decades of these figures, which are positive.
    pub(crate) fn decades(figures: impl Iterator<Item = f64> + Clone) -> Axis {
        let figures = figures.filter(|figure| figure.is_finite() && *figure > 0.0);
        let low = figures.clone().fold(f64::INFINITY, f64::min);
        let high = figures.fold(0.0, f64::max);
        if high <= 0.0 {
            return Axis { low: 1.0, high: 10.0, logarithmic: true };
        }
        let step = |figure: f64, up: bool| {
            let power = 10f64.powf(figure.log10().floor());
            let steps = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power);
            let near = |value: &&f64| if up { **value >= figure * 0.999 } else { **value <= figure * 1.001 };
            let found = if up { steps.iter().find(near) } else { steps.iter().rev().find(near) };
            found.copied().unwrap_or(figure)
        };
        let (low, high) = (step(low, false), step(high, true));
        Axis { low, high: if high > low { high } else { low * 10.0 }, logarithmic: true }
    }

    /// The position of a figure, from 0 to 1.
    pub(crate) fn share(&self, figure: f64) -> f64 {
        let place = |figure: f64| if self.logarithmic { figure.max(f64::MIN_POSITIVE).ln() } else { figure };
        let share = (place(figure) - place(self.low)) / (place(self.high) - place(self.low));
        if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 }
    }

    /// The figures to label, about `count` of them.
    pub(crate) fn ticks(&self, count: usize, base: f64) -> Vec<f64> {
        if self.logarithmic {
            return self.powers(count);
        }
        let step = round_step((self.high - self.low) / count as f64, base);
        let first = i64::capped((self.low / step - 1e-9).ceil());
        let last = i64::capped((self.high / step + 1e-9).floor());
        (first..=last.min(first + 24)).map(|number| number as f64 * step).collect()
    }

    fn powers(&self, count: usize) -> Vec<f64> {
        let decades = i32::capped(self.low.log10().floor())..=i32::capped(self.high.log10().ceil());
        let number = decades.clone().count();
        let factors: &[f64] = if number * 3 <= count * 2 { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let every = number.div_ceil(count * 2).max(1);
        let figures = decades
            .step_by(every)
            .flat_map(|power| factors.iter().map(move |factor| factor * 10f64.powi(power)));
        figures.filter(|figure| (self.low * 0.999..=self.high * 1.001).contains(figure)).collect()
    }

    /// The ends of the axis.
    #[cfg(test)]
    pub(crate) fn ends(&self) -> (f64, f64) {
        (self.low, self.high)
    }
}

/// The next of 1, 2, 2.5 and 5 times a power of ten; for bytes, times a power of 1024 as well.
fn round_step(at_least: f64, base: f64) -> f64 {
    if !(at_least.is_finite() && at_least > 0.0) {
        return 1.0;
    }
    let unit = if at_least >= 1.0 { base.powf(at_least.log(base).floor()) } else { 1.0 };
    let at_least = at_least / unit;
    // Multiples of 500 MiB are no round numbers of GiB.
    if base == 1024.0 && at_least > 100.0 {
        return unit * at_least.log2().ceil().exp2();
    }
    let power = 10f64.powf(at_least.log10().floor());
    let steps = [1.0, 2.0, 2.5, 5.0, 10.0].map(|factor| factor * power);
    unit * steps.into_iter().find(|step| *step >= at_least * 0.9999).unwrap_or(10.0 * power)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_end_at_round_figures() {
        let axis = Axis::from_zero([14.0, 93.0].into_iter(), 1000.0);
        assert_eq!(axis.ticks(4, 1000.0), [0.0, 25.0, 50.0, 75.0, 100.0]);
        let mib = 1024.0 * 1024.0;
        let axis = Axis::from_zero([90.0 * mib].into_iter(), 1024.0);
        assert_eq!(axis.ends().1, 100.0 * mib);
        let axis = Axis::from_zero([3300.0 * mib].into_iter(), 1024.0);
        assert_eq!(axis.ticks(4, 1024.0), [0.0, 1.0, 2.0, 3.0, 4.0].map(|gib| gib * 1024.0 * mib));
        let axis = Axis::decades([23_000.0, 4_100_000.0].into_iter());
        assert_eq!(axis.ends(), (20_000.0, 5_000_000.0));
        assert!(axis.ticks(5, 1000.0).contains(&1_000_000.0));
        assert_eq!(Axis::decades(std::iter::empty()).ends(), (1.0, 10.0));
        assert_eq!(Axis::from_zero(std::iter::empty(), 1000.0).share(7.0), 1.0);
    }
}
