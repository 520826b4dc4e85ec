//! How a plan is carried out: gathering facts, running and watching jobs, assembling reports, writing logs, recording
//! runs.
//!
//! Invariant: knows neither fio's command line nor studies; both call this with a plan.

pub mod assemble;
pub mod attended;
pub mod calibration;
pub mod drive;
pub mod environment;
pub mod facts;
pub mod files;
mod heartbeat;
pub mod idle;
mod job_groups;
mod latency_marks;
pub mod logs;
mod meters;
mod recording;
pub mod repeats;
pub mod self_cost;
pub mod traces;
mod trust;
pub mod version;
