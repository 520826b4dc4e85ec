//! Studies made of runs: which jobs to run, and what a comparison of their reports shows.
//!
//! Invariant: pure. From a target a study makes settings and paths, never text to be parsed again; from reports it makes
//! a table and a sentence. It does not know how jobs are run, so every study can be tested on synthetic reports.

#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)
)]
#![cfg_attr(not(test), warn(clippy::disallowed_methods, reason = "files go through the target opener"))]

pub mod bars;
pub mod capacity;
pub mod chart;
pub mod check;
mod disks;
pub mod figures;
pub mod knee;
pub mod matrix;
pub mod profile;
pub mod qualify;
pub mod quick;
pub mod ranges;
mod repeats;
pub mod rounds;
pub mod several;
mod steady;
pub mod step;
mod step_runs;
pub mod study;
pub mod study_target;
pub mod svg;
pub mod sweep;
mod trust;
pub mod verdict;

#[cfg(test)]
mod testing;

pub use bars::Bars;
pub use figures::Figures;
pub use rounds::{Repeat, Rounds};
pub use several::Several;
pub use step::{Step, StepResult};
pub use study::{Study, StudyOutline, StudyResult};
pub use study_target::StudyTarget;
pub use verdict::Verdict;
