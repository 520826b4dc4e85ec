//! Conditions on a run or a study: `--fail-if`, `--undecided`.
//!
//! Invariant: nothing is printed of conditions that do not hold; the exit status follows from the others alone.

use fiord_compare::{Condition, Decision, Outcome, Side, gate};
use fiord_options::value::Undecided;

use crate::output::say;
use crate::status;

/// What becomes of the conditions on this result.
pub(crate) fn outcomes(side: Side, conditions: &[Condition]) -> Vec<Outcome> {
    match conditions {
        [] => Vec::new(),
        conditions => gate::outcomes(side, conditions),
    }
}

/// A line for each condition that holds or cannot be decided.
pub(crate) fn lines(outcomes: &[Outcome]) -> impl Iterator<Item = String> {
    let wrong = outcomes.iter().filter(|outcome| outcome.decision != Decision::Clear);
    wrong.map(|Outcome { condition, decision, why }| {
        format!("fiord: --fail-if {condition:?}: {}: {why}\n", decision.word())
    })
}

/// The exit status that follows from the conditions.
pub(crate) fn status(outcomes: &[Outcome], undecided: Undecided) -> u8 {
    status::of_decision(outcomes.iter().map(|outcome| outcome.decision).max(), undecided)
}

/// Prints the conditions that hold or cannot be decided, and returns the exit status.
pub(crate) fn conclude(outcomes: &[Outcome], undecided: Undecided) -> u8 {
    lines(outcomes).for_each(|line| say(&line));
    status(outcomes, undecided)
}

/// A word of `--undecided`.
pub(crate) fn undecided(text: &str) -> Result<Undecided, String> {
    Undecided::from_word(text).ok_or_else(|| format!("{text:?} is not one of tell, pass, fail"))
}
