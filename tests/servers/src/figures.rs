//! Figures of a report.
//!
//! Invariant: a figure that is missing ends the test with the job's part of the report.

use serde_json::Value;

/// A figure of one direction.
///
/// # Panics
/// If the report does not have it.
#[track_caller]
pub fn number(job: &Value, direction: &str, key: &str) -> u64 {
    let figure = job[direction][key].as_u64();
    assert!(figure.is_some(), "{direction}.{key}: {job}");
    figure.unwrap_or_default()
}

/// I/Os and bytes of each direction.
///
/// # Panics
/// If the report does not have them.
#[track_caller]
pub fn counts(job: &Value) -> [(u64, u64); 3] {
    ["read", "write", "trim"]
        .map(|direction| (number(job, direction, "total_ios"), number(job, direction, "io_bytes")))
}
