//! What all studies share on the command line: their options, the jobs they start from, progress, output.
//!
//! Invariant: no particular study is known here, and none is carried out: `fiord_session::study` does that.

pub(crate) mod completed_job;
mod ending;
pub(crate) mod job_file;
mod on_agent;
pub(crate) mod on_hosts;
mod options;
pub(crate) mod over;
mod overwriting;
mod page;
mod presenter;
mod progress;
pub(crate) mod resume;
mod session;
mod sources;
pub(crate) mod typed_job;

pub(crate) use options::{OnAgent, OnHosts, Options};
pub(crate) use overwriting::Overwriting;
pub(crate) use session::{at_all, at_hosts, carry_out, carry_out_profiled};
pub(crate) use sources::Sources;
