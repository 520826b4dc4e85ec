//! The result of a run as a value, and that value as bytes: fio's normal text, terse lines, JSON and JSON+.
//!
//! Invariant: every function here is pure. It takes values and returns a `String`; no clock, no file, no stdout.

#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)
)]

pub mod columns;
pub mod compose;
pub mod energy;
mod figures;
pub mod finding;
pub mod json;
pub mod live;
pub mod log;
pub mod model;
pub mod normal;
pub mod number;
pub mod repeats;
pub mod start;
pub mod table;
pub mod terse;
pub mod time;
mod written;

pub use compose::{Format, allows_messages, holds_documents, render, wants_headings};
pub use finding::{Code, Figure, Finding, Severity, Subject};
pub use fiord_plan::shown as path;
pub use model::{
    GroupReport, Idleness, JobReport, LatencyTarget, RateGroup, RunReport, Show, Unified, UnitWork,
    merge_groups,
};
pub use repeats::RepeatedFigure;
pub use terse::TerseVersion;
pub use written::Written;
