//! The target for reports: any bytes as fio's normal text, terse lines or JSON.
//!
//! Invariant: every place that a report or an error names lies within the text.

use fiord_import::{best, read};

/// Reads the bytes as a file of reports.
pub fn report(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let lines = text.split('\n').count() as u32;
    match read(&text) {
        Ok(reports) => {
            let jobs = reports.iter().flat_map(|report| &report.jobs);
            let parts =
                jobs.clone().flat_map(|job| job.directions.iter().filter_map(|direction| direction.line));
            let lines_of_parts = jobs.filter_map(|job| job.line).chain(parts);
            for line in reports.iter().map(|report| report.line).chain(lines_of_parts) {
                assert!((1..=lines).contains(&line), "line {line} of {lines}");
            }
            assert!(best(reports).is_some(), "there is one");
        }
        Err(error) => {
            let line = text.split('\n').nth(error.line as usize - 1).expect("the line exists");
            // JSON may end after the last column.
            assert!((1..=line.len() as u32 + 1).contains(&error.column) || error.column == 0, "{error}");
        }
    }
}
