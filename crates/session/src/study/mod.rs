//! What all studies share: targets and scratch files, plans, runs.
//!
//! Invariant: no particular study is known here; each is a `fiord_lab::Study`, which gives steps and turns reports
//! into a result.

pub mod dry_run;
pub mod io_modes;
mod messages;
pub mod overwrite;
pub mod planned;
pub mod scratch;
mod step_plan;
pub mod steps;
pub mod target;
