//! What all studies share: targets and scratch files, plans, progress, output.
//!
//! Invariant: no particular study is known here; each is a `fiord_lab::Study`, which gives steps and turns reports
//! into a result.

mod dry_run;
mod io_modes;
pub(crate) mod job_file;
mod messages;
mod page;
mod planned;
mod progress;
pub(crate) mod scratch;
mod session;
mod step_plan;
pub(crate) mod target;

pub(crate) use session::{Options, at_all, carry_out};
