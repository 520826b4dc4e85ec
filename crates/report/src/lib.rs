//! The result of a run as a value, and that value as bytes: fio's normal text, terse lines, JSON and JSON+.
//!
//! Invariant: every function here is pure. It takes values and returns a `String`; no clock, no file, no stdout.

pub mod compose;
mod figures;
pub mod json;
pub mod live;
pub mod log;
pub mod model;
pub mod normal;
pub mod number;
pub mod path;
pub mod start;
pub mod table;
pub mod terse;
pub mod time;

pub use compose::{Format, bears_remarks, holds_documents, render, wants_headings};
pub use model::{
    DiskFigures, DiskReport, GroupReport, Idleness, JobReport, LatencyTarget, RateGroup, RunReport, Show,
    Unified, UnitWork, Warning, merge_groups,
};
pub use terse::Version as TerseVersion;
