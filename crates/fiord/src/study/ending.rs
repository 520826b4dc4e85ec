//! The exit status of a study.
//!
//! Invariant: it follows from the verdict, the conditions and the ending alone. Nothing is printed.

use fiord_compare::Outcome;
use fiord_lab::{Study, Verdict};
use fiord_session::Ending;

use super::options::Options;
use crate::{gate, status};

/// The exit status of a study with this ending and verdict and these conditions, whose output was written or not.
pub(super) fn exit_status(
    study: &dyn Study,
    ending: Ending,
    verdict: Option<Verdict>,
    is_written: bool,
    options: &Options,
    outcomes: &[Outcome],
) -> u8 {
    let of_verdict = match verdict {
        Some(verdict) if !study.accepts(verdict) => status::of_verdict(verdict, options.undecided),
        _ => status::SUCCESS,
    };
    match ending {
        Ending::Complete | Ending::Void if !is_written => status::FAILED,
        Ending::Complete => match gate::status(outcomes, options.undecided) {
            // What is not known hides nothing that is.
            of_conditions if status::is_certain(of_conditions) && !status::is_certain(of_verdict) => {
                of_conditions
            }
            _ if of_verdict != status::SUCCESS => of_verdict,
            of_conditions => of_conditions,
        },
        ending => status::of_ending(ending),
    }
}
