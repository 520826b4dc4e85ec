//! Reads the section of what only fiord counts.
//!
//! Invariant: counts go to the first job of their name that does not have them yet, since jobs may have the same name.

use fiord_stats::{Count, Counts};

use super::response::heading;
use crate::model::Report;
use crate::number;
use crate::place::{NumberedLine, ReadError, pairs};

/// Takes a line: `  name: zone resets=3`, or `  name: read: dropped arrivals=3, waiting arrivals=40`.
pub(super) fn line(report: &mut Report, line: NumberedLine<'_>) -> Result<(), ReadError> {
    let Some((of, figures)) = line.text.rsplit_once(": ") else { return Ok(()) };
    let mut counts = Counts::default();
    let mut of_directions = false;
    for (name, value) in pairs(figures) {
        let Some(count) = Count::ALL.iter().find(|count| count.name() == name) else { continue };
        of_directions = count.is_of_directions();
        counts.add(count, line.figure(value, name, number::whole)?);
    }
    let (name, direction) = match heading(of).filter(|_| of_directions) {
        Some((name, direction)) => (name, Some(direction)),
        None => (of.trim_start(), None),
    };
    let places = report.jobs.iter_mut().filter(|job| job.name == name).filter_map(|job| match direction {
        Some(direction) => job.directions.iter_mut().find(|of| of.name == direction).map(|of| &mut of.counts),
        None => Some(&mut job.counts),
    });
    if let Some(place) = places.into_iter().find(|place| place.is_empty()) {
        *place = counts;
    }
    Ok(())
}
