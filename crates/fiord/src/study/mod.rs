//! What all studies share: targets and scratch files, plans, progress, output.
//!
//! Invariant: no particular study is known here; each is a `fiord_lab::Study`, which gives steps and turns reports
//! into a result.

pub(crate) mod completed_job;
mod dry_run;
mod io_modes;
pub(crate) mod job_file;
mod messages;
pub(crate) mod over;
mod page;
mod planned;
mod progress;
mod sampler;
pub(crate) mod scratch;
mod session;
mod step_plan;
pub(crate) mod target;
pub(crate) mod typed_job;

pub(crate) use sampler::RunSampler;
pub(crate) use session::{Options, at_all, carry_out, carry_out_sampled};
