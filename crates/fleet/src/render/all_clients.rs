//! All jobs of all hosts as fio shows them.
//!
//! Invariant: it is there only if there is more than one entry to sum.

use fiord_report::RunReport;

use crate::model::FleetReport;

/// All jobs of all hosts as a report of its own, as fio has it if there is more than one.
pub(super) fn all_clients(fleet: &FleetReport) -> Option<RunReport> {
    let reports = || fleet.counted().filter_map(|(run, _)| run.report.as_ref());
    let entries: usize = reports().map(|report| report.jobs.len()).sum();
    let last = reports().last()?;
    let all = fleet.all.clone().filter(|_| entries > 1)?;
    Some(RunReport {
        version: last.version.clone(),
        timestamp_ms: last.timestamp_ms,
        utc_offset_s: last.utc_offset_s,
        jobs: vec![all],
        ..RunReport::default()
    })
}
