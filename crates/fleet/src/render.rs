//! A run on hosts as text.
//!
//! Invariant: formats differ in what they omit, never in figures.

use fiord_report::{Format, TerseVersion};

use crate::report::FleetReport;

/// The run in all of `formats`: terse lines, then JSON, then text, as [`fiord_report::render`].
pub fn render(fleet: &FleetReport, formats: &[Format], terse_version: TerseVersion) -> String {
    let reports = fleet.hosts.iter().filter_map(|run| run.report.as_ref());
    reports.map(|report| fiord_report::render(report, formats, terse_version)).collect()
}
