//! The targets for reports: any bytes as fio's normal text, terse lines or JSON, and as a report of the history.
//!
//! Invariant: every place that a report or an error names lies within the text; a stored report that is read is stored in
//! the same bytes again.

use fiord_import::{best, read};
use fiord_store::{codec, decode, encode};

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

/// Decodes the bytes as a report of the history, of whichever version they begin with. Their checksum is added: what is
/// damaged on a disk is refused by it, so that nothing else would be seen of the decoder.
pub fn stored_report(data: &[u8]) {
    let stored = [data, &codec::checksum(data)].concat();
    let Ok(report) = decode(&stored) else { return };
    let again = encode(&report);
    // As bytes: a figure may be no number, which equals nothing.
    assert!(decode(&again).map(|report| encode(&report)).is_ok_and(|bytes| bytes == again), "{report:?}");
}
