//! Reads the reports that fio and fiord print: normal text, terse lines, JSON and JSON+, each into the same values.
//!
//! Invariant: pure, and no input makes it panic. A figure that a format does not carry is absent, never guessed.

#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)
)]

mod clients;
mod json;
pub mod log;
pub mod model;
mod normal;
mod number;
mod place;
pub mod terse;
mod totals;

pub use json::replaced::with_values;
pub use json::study::{self, StudyDocument, StudyRows, StudyValue};
pub use model::{
    CpuFigures, DirectionFigures, DirectionName, DiskFigures, EnergyFigures, Heading, HostOverTime,
    JobFigures, LatencyFigures, Percentile, RepeatedFigures, Report, ReportFormat, ReportedFinding,
    SampleMoments, WindowFigures,
};
pub use place::ReadError;
pub use totals::Totals;

use fiord_stats::Capped;
use normal::NormalReader;
use place::NumberedLine;

/// The reports of a text, in its order. A file may have several: of several formats, or one for each status interval.
///
/// A damaged line costs its figures alone, and is named in the report.
///
/// # Errors
/// A JSON document that cannot be read, with its place; or there is no report.
pub fn read(text: &str) -> Result<Vec<Report>, ReadError> {
    let mut reports = Vec::new();
    let mut normal = NormalReader::default();
    let mut terse: Option<Report> = None;
    let mut damage = Vec::new();
    let (mut offset, mut number) = (0, 0);
    while offset < text.len() {
        number += 1;
        let end = text[offset..].find('\n').map_or(text.len(), |length| offset + length);
        // A status line is overwritten on a terminal: what counts is after the last carriage return.
        let whole = text[offset..end].trim_end_matches('\r');
        let line = NumberedLine { number, text: whole.rsplit('\r').next().unwrap_or_default() };
        let version = terse::version_of(line.text);
        if version.map(ReportFormat::Terse) != terse.as_ref().map(|report| report.format)
            && !is_description(line)
        {
            reports.extend(terse.take());
        }
        if let Some(version) = version {
            reports.extend(normal.end());
            match terse::read(version, line) {
                Ok(job) => job.add_to(terse.get_or_insert_with(|| terse::begin(version, line.number))),
                Err(why) => damage.push(why),
            }
        } else if let Some(job) =
            terse.as_mut().and_then(|report| report.jobs.last_mut()).filter(|_| is_description(line))
        {
            job.description = Some(line.text[1..].to_string());
        } else if whole.starts_with('{') {
            reports.extend(normal.end());
            let (report, length) = json::read(&text[offset..], number)?;
            reports.push(report);
            // What follows it on its last line is ignored.
            let after = text[offset + length..].find('\n').map_or(text.len(), |rest| offset + length + rest);
            number = number.saturating_add(u32::capped(
                text[offset..after].bytes().filter(|byte| *byte == b'\n').count(),
            ));
            offset = after + 1;
            continue;
        } else {
            reports.extend(normal.line(line));
        }
        offset = end + 1;
    }
    reports.extend(terse);
    reports.extend(normal.end());
    reports
        .iter_mut()
        .filter(|report| matches!(report.format, ReportFormat::Terse(_)))
        .for_each(clients::settle);
    clients::join_terse(&mut reports);
    if let Some(last) = reports.last_mut() {
        last.damage.append(&mut damage);
    } else if let Some(first) = damage.into_iter().next() {
        return Err(first);
    } else {
        let problem = "there is no report of fio here: neither normal text (\"NAME: (groupid=0, jobs=1): err= 0\"), nor \
                       JSON (\"{\" at the beginning of a line), nor a terse line (\"3;fio-3.42;NAME;…\")";
        return Err(ReadError { line: 1, column: 1, problem: problem.to_string() });
    }
    Ok(reports)
}

/// In version 2, a description has a line of its own.
fn is_description(line: NumberedLine<'_>) -> bool {
    line.text.starts_with(';')
}

/// The report with the most information: of the last ones of their format the JSON document, which is exact, otherwise
/// the normal text, which names its figures. It says where others of its format are.
pub fn best(reports: Vec<Report>) -> Option<Report> {
    let rank = |report: &Report| match report.format {
        ReportFormat::Terse(_) => 0,
        ReportFormat::Normal => 1,
        ReportFormat::Json | ReportFormat::JsonPlus => 2,
    };
    let places: Vec<(u32, u32)> = reports.iter().map(|report| (rank(report), report.line)).collect();
    let best = reports.into_iter().max_by_key(rank)?;
    let is_other = |place: &&(u32, u32)| place.0 == rank(&best) && place.1 != best.line;
    let others = places.iter().filter(is_other).map(|(_, line)| *line).collect();
    Some(Report { others, ..best })
}

/// A single line of normal text, as if it stood below a direction. Nothing is in the result if it is none.
///
/// # Errors
/// A figure that cannot be read.
pub fn read_line(text: &str) -> Result<JobFigures, ReadError> {
    normal::single(text)
}

/// Whether a text is one well-formed document of JSON.
pub fn is_json(text: &str) -> bool {
    serde_json::from_str::<serde_json::Value>(text).is_ok()
}
