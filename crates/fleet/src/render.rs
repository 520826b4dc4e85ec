//! A run on hosts as text: fio's formats in the shapes of its client mode, and what fio does not have after them.
//!
//! Invariant: formats differ in what they omit, never in figures.

mod all_clients;
mod json;
mod table;
mod text;

use fiord_report::json::Detail;
use fiord_report::path::visible_lines;
use fiord_report::terse::terse;
use fiord_report::{Format, TerseVersion};

use crate::model::FleetReport;
use all_clients::all_clients;

pub use json::starts_of;
pub use table::table;
pub use text::{started, together};

/// The run in all of `formats`: terse lines, then JSON, then text, as [`fiord_report::render`].
pub fn render(fleet: &FleetReport, formats: &[Format], terse_version: TerseVersion) -> String {
    let wanted = |format| formats.contains(&format);
    let mut out = String::new();
    if wanted(Format::Terse) {
        out += &terse_lines(fleet, terse_version);
    }
    if wanted(Format::JsonPlus) {
        out += &json::document(fleet, Detail::Bins);
    } else if wanted(Format::Json) {
        out += &json::document(fleet, Detail::Percentiles);
    }
    if wanted(Format::Normal) {
        // A host may send any bytes, which a terminal must not interpret.
        out += &visible_lines(&text::normal(fleet));
    }
    out
}

fn terse_lines(fleet: &FleetReport, version: TerseVersion) -> String {
    let reports = fleet.counted().filter_map(|(run, _)| run.report.as_ref());
    let lines: String = reports.map(|report| terse(report, version)).collect();
    lines + &all_clients(fleet).map_or_else(String::new, |all| terse(&all, version))
}

#[cfg(test)]
mod tests;
