//! Maps figures to positions on an axis, and chooses the figures to label.
//!
//! Invariant: every position is between 0 and 1, for any figure.

use fiord_stats::Capped;

/// From this ratio of highest to lowest, positive figures are drawn on a logarithmic scale.
const LOGARITHMIC_FROM: f64 = 30.0;

/// From this ratio of highest to lowest (three doublings), positive swept values are drawn on a logarithmic axis.
const AXIS_LOGARITHMIC_FROM: f64 = 8.0;

/// An axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    low: f64,
    high: f64,
    logarithmic: bool,
}

impl Scale {
    /// For these figures: linear from zero, or logarithmic if they vary widely and `from_zero` is not set.
    pub fn of(figures: impl Iterator<Item = f64> + Clone, from_zero: bool) -> Scale {
        let (low, high) = ends(figures);
        if !from_zero && low > 0.0 && high / low >= LOGARITHMIC_FROM {
            return Scale { low, high, logarithmic: true };
        }
        // A round figure above the highest, so that its label is the top.
        let step = round_step(high / 5.0);
        Scale { low: 0.0, high: (high / step).ceil().max(1.0) * step, logarithmic: false }
    }

    /// For swept values: from the first to the last.
    pub fn of_axis(values: impl Iterator<Item = f64> + Clone) -> Scale {
        let (low, high) = ends(values);
        Scale { low, high, logarithmic: low > 0.0 && high / low >= AXIS_LOGARITHMIC_FROM }
    }

    /// The position of a figure, from 0 (low) to 1 (high).
    pub fn share(&self, figure: f64) -> f64 {
        let place = |figure: f64| if self.logarithmic { figure.ln() } else { figure };
        let share = (place(figure) - place(self.low)) / (place(self.high) - place(self.low));
        if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 }
    }

    /// Figures to label, at most about three times `count`.
    pub fn ticks(&self, count: usize) -> Vec<f64> {
        if !self.logarithmic {
            let step = round_step((self.high - self.low) / count as f64);
            let steps = usize::capped((self.high - self.low) / step + 1e-9);
            return (0..=steps.min(2 * count)).map(|number| self.low + number as f64 * step).collect();
        }
        let decades = i32::capped(self.low.log10().floor())..=i32::capped(self.high.log10().ceil());
        let every = (decades.clone().count() / (2 * count)).max(1);
        // Few powers of ten leave room for labels between them.
        let factors: &[f64] = if decades.clone().count() <= count { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let powers = decades.step_by(every).map(|power| 10f64.powi(power));
        let figures = powers.flat_map(|power| factors.iter().map(move |factor| factor * power));
        let ticks: Vec<f64> = figures.filter(|figure| (self.low..=self.high).contains(figure)).collect();
        if ticks.len() > 1 { ticks } else { vec![self.low, self.high] }
    }

    /// The suffix of the panel's title: ` (log)`, or nothing.
    pub fn remark(&self) -> &'static str {
        if self.logarithmic { " (log)" } else { "" }
    }
}

/// The smallest and the largest; 0 and 0 if there is none.
fn ends(figures: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let figures = figures.filter(|figure| figure.is_finite());
    let low = figures.clone().min_by(f64::total_cmp).unwrap_or(0.0);
    (low, figures.max_by(f64::total_cmp).unwrap_or(0.0))
}

/// The next of 1, 2, 2.5 and 5 times a power of ten.
fn round_step(at_least: f64) -> f64 {
    if !(at_least.is_finite() && at_least > 0.0) {
        return 1.0;
    }
    let power = 10f64.powf(at_least.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0].into_iter().map(|factor| factor * power).find(|step| *step >= at_least);
    step.unwrap_or(10.0 * power)
}

/// A figure without needless decimals: `0.05`, `2.5`, `1200`, `12000`, `1.2e9`.
pub fn figure(figure: f64) -> String {
    let size = figure.abs();
    if size >= 1e7 || (size > 0.0 && size < 1e-3) {
        return format!("{figure:.1e}");
    }
    let decimals = match size {
        0.0..0.1 => 3,
        0.1..1.0 => 2,
        1.0..100.0 => 1,
        _ => 0,
    };
    let text = format!("{figure:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_string() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn scales_end_at_round_figures() {
        let scale = Scale::of([14.0, 112.0].into_iter(), true);
        assert_eq!(scale.ticks(4), [0.0, 50.0, 100.0]);
        assert!((scale.share(125.0) - 1.0).abs() < 1e-9);
        let scale = Scale::of([0.05, 60.0].into_iter(), false);
        assert_eq!(scale.ticks(4), [0.1, 1.0, 10.0]);
        assert_eq!(scale.remark(), " (log)");
        assert_eq!(Scale::of([0.5, 3.0].into_iter(), false).remark(), "");
    }

    #[test]
    fn doublings_are_equally_spaced() {
        let scale = Scale::of_axis([1.0, 2.0, 4.0, 8.0].into_iter());
        assert!((scale.share(2.0) - 1.0 / 3.0).abs() < 1e-9);
        assert!((Scale::of_axis([10.0, 20.0].into_iter()).share(15.0) - 0.5).abs() < 1e-9);
    }

    #[test]
    fn figures_have_the_decimals_they_need() {
        let figures = [0.0, 0.05, 0.25, 2.5, 10.0, 1200.0, 1.2e9, 1e-5];
        assert_eq!(figures.map(figure), ["0", "0.05", "0.25", "2.5", "10", "1200", "1.2e9", "1.0e-5"]);
    }

    proptest! {
        #[test]
        fn positions_are_between_0_and_1(low in -1e9..1e9f64, high in -1e9..1e9f64, at in proptest::num::f64::ANY) {
            for scale in [Scale::of([low, high].into_iter(), true), Scale::of_axis([low, high].into_iter())] {
                prop_assert!((0.0..=1.0).contains(&scale.share(at)));
                prop_assert!(scale.ticks(4).len() <= 12);
            }
        }
    }
}
