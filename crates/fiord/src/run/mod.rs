//! How a plan is carried out: gathering facts, running and watching jobs, assembling reports, writing logs, recording
//! runs.
//!
//! Invariant: knows neither fio's command line nor studies; both call this with a plan.

pub(crate) mod assemble;
pub(crate) mod attended;
pub(crate) mod calibration;
pub(crate) mod drive;
pub(crate) mod environment;
pub(crate) mod event;
pub(crate) mod facts;
mod heartbeat;
pub(crate) mod idle;
mod job_groups;
pub(crate) mod keep;
mod latency_marks;
mod logs;
mod meters;
pub(crate) mod metrics;
mod recording;
mod repeats;
pub(crate) mod self_cost;
pub(crate) mod status_line;
pub(crate) mod traces;
mod trust;
pub(crate) mod version;
