//! What a comparison yields: rows of figures with their changes, and what the changes mean.
//!
//! Invariant: values only; `comparison.rs` makes them.

use crate::estimate::Estimate;
use crate::figure::Figure;
use crate::outcome::Outcome;

/// Results side by side.
#[derive(Clone, Debug, Default)]
pub struct Comparison {
    /// The name of each and what it is; the first is the one that the others are compared with.
    pub sides: Vec<(String, String)>,
    /// What was measured in all of them, or in some.
    pub rows: Vec<ComparedRow>,
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

/// A change of a figure, in percent of its first value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// The change.
    pub percent: f64,
    /// The interval in which it is with 95 % confidence, that of all figures of the row together.
    pub interval: Option<(f64, f64)>,
    /// What it means.
    pub verdict: Verdict,
}

impl Change {
    /// Half of the interval.
    pub fn half_width(&self) -> Option<f64> {
        self.interval.map(|(low, high)| (high - low) / 2.0)
    }
}

/// What a change means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// More of what is good, or less of what is bad, beyond noise.
    Better,
    /// The contrary, beyond noise.
    Worse,
    /// Noise explains it.
    Same,
    /// How much noise there is is not known.
    Unknown,
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
            Verdict::Unknown => "unknown",
            Verdict::NotComparable => "not comparable",
        }
    }
}
