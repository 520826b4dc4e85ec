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

/// Prints the conditions that hold or cannot be decided, and returns the exit status.
pub(crate) fn conclude(outcomes: &[Outcome], undecided: Undecided) -> u8 {
    for Outcome { condition, decision, why } in outcomes {
        if *decision != Decision::Clear {
            say(&format!("fiord: --fail-if {condition:?}: {}: {why}\n", decision.word()));
        }
    }
    status::of_decision(outcomes.iter().map(|outcome| outcome.decision).max(), undecided)
}

/// A word of `--undecided`.
pub(crate) fn undecided(text: &str) -> Result<Undecided, String> {
    Undecided::from_word(text).ok_or_else(|| format!("{text:?} is not one of tell, pass, fail"))
}
