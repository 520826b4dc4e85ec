//! What became of a condition.
//!
//! Invariant: decisions are ordered from what needs no attention to what needs the most.

/// What became of a condition.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The condition as typed.
    pub condition: String,
    /// Whether it holds.
    pub decision: Decision,
    /// Why, with the figures.
    pub why: String,
}

/// Whether a condition holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Decision {
    /// It does not.
    Clear,
    /// It would, but noise explains that, or the results do not allow a decision.
    Undecided,
    /// It holds.
    Holds,
}

impl Decision {
    /// In a word.
    pub fn word(self) -> &'static str {
        match self {
            Decision::Clear => "ok",
            Decision::Undecided => "undecided",
            Decision::Holds => "holds",
        }
    }
}
