//! What a comparison yields: rows of figures with their changes, and what the changes mean.
//!
//! Invariant: values only; `comparison.rs` makes them.

use fiord_stats::Capped;

use crate::estimate::Estimate;
use crate::figure::{Figure, Measure, Subject};
use crate::margin::Margin;
use crate::outcome::Outcome;

/// Results side by side.
#[derive(Clone, Debug, Default)]
pub struct Comparison {
    /// The name of each and what it is; the first is the one that the others are compared with.
    pub sides: Vec<(String, String)>,
    /// What was measured in all of them, or in some.
    pub rows: Vec<ComparedRow>,
    /// Within what a change is none.
    pub margin: Margin,
    /// What became of the conditions.
    pub outcomes: Vec<Outcome>,
}

/// One thing that was measured.
#[derive(Clone, Debug)]
pub struct ComparedRow {
    /// Its name on the first side that has it.
    pub name: String,
    /// Its figures.
    pub figures: Vec<ComparedFigure>,
    /// For each side but the first, why it cannot be compared with that one; empty if it can.
    pub obstacles: Vec<Vec<String>>,
}

/// A figure of all sides.
#[derive(Clone, Debug)]
pub struct ComparedFigure {
    /// The figure.
    pub figure: Figure,
    /// Its value on each side that has it.
    pub estimates: Vec<Option<Estimate>>,
    /// For each side but the first, the change from that one.
    pub changes: Vec<Option<Change>>,
}

impl ComparedFigure {
    /// Whether it is energy, or something counted, of which no noise is known: a figure to look at, of which nothing is
    /// concluded.
    pub(crate) fn is_only_shown(&self) -> bool {
        let has_noise = |estimate: &Estimate| estimate.error.is_some();
        let may_lack_noise =
            self.figure.subject == Subject::Energy || matches!(self.figure.measure, Measure::Counted(_));
        may_lack_noise && !self.estimates.iter().flatten().all(has_noise)
    }

    /// Whether both this side and the first show how much of the figure is noise.
    pub(crate) fn is_noise_measured(&self, side: usize) -> bool {
        [0, side]
            .iter()
            .all(|side| self.estimates[*side].is_some_and(|estimate| estimate.basis.is_measured()))
    }
}

/// A change of a figure, in percent of its first value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// The change.
    pub percent: f64,
    /// The interval in which it is with 95 % confidence, that of all figures of the row together.
    pub interval: Option<Interval>,
    /// What it means.
    pub verdict: Verdict,
}

impl Change {
    /// The change and its interval in words: `-20.0 % (-24.3 to -15.4 %)`.
    pub fn shown(&self) -> String {
        let interval = self.interval.map(|interval| (interval.low(), interval.high()));
        let interval =
            interval.map_or_else(String::new, |(low, high)| format!(" ({low:+.1} to {high:+.1} %)"));
        format!("{:+.1} %{interval}", self.percent)
    }
}

/// An interval of changes in tenths of a percent, as it is shown. Verdicts rest on it and not on more digits, so that
/// none contradicts what is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    low_tenths: i64,
    high_tenths: i64,
}

impl Interval {
    /// The smallest that has both ends, in percent.
    pub fn around(low_percent: f64, high_percent: f64) -> Interval {
        let (low, high) = ((low_percent * 10.0).floor(), (high_percent * 10.0).ceil());
        Interval { low_tenths: i64::capped(low), high_tenths: i64::capped(high) }
    }

    /// Its lower end in percent.
    pub fn low(self) -> f64 {
        self.low_tenths as f64 / 10.0
    }

    /// Its upper end in percent.
    pub fn high(self) -> f64 {
        self.high_tenths as f64 / 10.0
    }

    /// What a change in this interval means, if changes within `margin_percent` to either side are none.
    pub fn verdict(self, is_more_better: bool, margin_percent: f64) -> Verdict {
        match (self.low_tenths > 0, self.high_tenths < 0) {
            (false, false) if self.low() >= -margin_percent && self.high() <= margin_percent => Verdict::Same,
            (false, false) => Verdict::CannotTell,
            (is_more, _) if is_more == is_more_better => Verdict::Better,
            _ => Verdict::Worse,
        }
    }
}

/// What a change means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// More of what is good, or less of what is bad, beyond noise.
    Better,
    /// The contrary, beyond noise.
    Worse,
    /// If there is a change, it is smaller than the margin.
    Same,
    /// Noise may be larger than the margin, or how much there is is not known: then there is no interval.
    CannotTell,
    /// The two measured different things.
    NotComparable,
}

impl Verdict {
    /// In a word or two.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Better => "better",
            Verdict::Worse => "worse",
            Verdict::Same => "same",
            Verdict::CannotTell => "cannot tell",
            Verdict::NotComparable => "not comparable",
        }
    }
}
