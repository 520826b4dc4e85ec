//! The result of a run as a value, and that value as bytes: fio's normal text, terse lines, JSON and JSON+.
//!
//! Invariant: every function here is pure. It takes values and returns a `String`; no clock, no file, no stdout.

pub mod model;

pub use model::{
    DiskFigures, DiskReport, GroupReport, JobReport, LatencyTarget, RateGroup, RunReport, Show, Unified,
    merge_groups,
};
