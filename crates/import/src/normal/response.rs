//! Reads the section of response latencies, which follows the reports of fiord.
//!
//! Invariant: figures go to the direction of the job that their heading names; without such a direction they are
//! skipped.

use super::job::{moments, percentiles};
use crate::model::{DirectionName, Report};
use crate::number;
use crate::place::{NumberedLine, ReadError};

/// Reads the section.
#[derive(Debug, Default)]
pub(super) struct ResponseReader {
    /// The job and the direction whose figures follow, by their positions.
    place: Option<(usize, usize)>,
    unit_ns: f64,
}

impl ResponseReader {
    /// Takes a line.
    pub fn line(&mut self, report: &mut Report, line: NumberedLine<'_>) -> Result<(), ReadError> {
        if let Some((job, direction)) = heading(line.text) {
            self.place = place(report, job, direction);
            return Ok(());
        }
        let Some((job, direction)) = self.place else { return Ok(()) };
        let direction = &mut report.jobs[job].directions[direction];
        let text = line.text.trim();
        if let Some(entries) = text.strip_prefix("| ") {
            return percentiles(direction.response.get_or_insert_default(), line, self.unit_ns, entries);
        }
        if let Some((_, unit)) = text.split_once(" percentiles (") {
            self.unit_ns = line.figure(unit.trim_end_matches([':', ')']), "unit", number::unit_ns)?;
        } else if let Some((unit, figures)) =
            text.strip_prefix("response (").and_then(|rest| rest.split_once("):"))
        {
            let unit_ns = line.figure(unit, "unit", number::unit_ns)?;
            moments(direction.response.get_or_insert_default(), line, unit_ns, figures)?;
        }
        Ok(())
    }
}

/// `  name: read`: the job, whose name may have colons, and the direction.
pub(super) fn heading(text: &str) -> Option<(&str, DirectionName)> {
    let text = text.strip_prefix("  ").filter(|text| !text.starts_with(' '))?;
    let (job, direction) = text.rsplit_once(": ")?;
    let direction = DirectionName::ALL.into_iter().find(|name| name.name() == direction)?;
    Some((job, direction))
}

/// The direction of the first job of this name that has no response latency yet: jobs may have the same name.
fn place(report: &Report, name: &str, direction: DirectionName) -> Option<(usize, usize)> {
    let jobs = report.jobs.iter().enumerate().filter(|(_, job)| job.name == name);
    let mut places = jobs.filter_map(|(index, job)| {
        let is_it = |of: &crate::model::DirectionFigures| of.name == direction && of.response.is_none();
        Some((index, job.directions.iter().position(is_it)?))
    });
    places.next()
}
