//! Makes findings, the reasons why a figure may not mean what its reader thinks, before a run and after it.
//!
//! Invariant: pure. Facts, plans and what was measured come as values; where a figure is not known, there is no
//! finding. One file per subject; the meaning and the severity of codes are in `fiord_report::finding` alone.

#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)
)]

mod evidence;
mod interrupted;
mod lint;
mod merge;
mod own_cost;
mod reported;
mod subject;
#[cfg(test)]
mod testing;

pub use evidence::measured::{Ended, JobEvidence, Measurements};
pub use evidence::overhead::may_have_overhead;
pub use evidence::suspended::{Look, Suspension, SuspensionWatch};
pub use evidence::{evidence, steadiness};
pub use interrupted::interrupted;
pub use lint::known::{Known, KnownTarget, detailed_logs, log_directory};
pub use lint::{lint, lint_target};
pub use merge::{Merged, have_same_words, merge, more};
pub use own_cost::OwnCost;
pub use reported::{Check, EngineFacts, Judgement, of_report};
