//! The job of a sweep, and the rows that each of its runs has: one for each job and direction.
//!
//! Invariant: an I/O is counted in exactly one row.

use fiord_options::{Section, Setting, job};
use fiord_report::{RunReport, path};
use fiord_stats::job::DIRECTIONS;

use crate::figures::Figures;

/// The job that is run at each point.
#[derive(Clone, Debug, Default)]
pub struct SweptJob {
    /// Its sections; none sets a swept option.
    pub sections: Vec<Section>,
}

impl SweptJob {
    /// The `rw` of a section if it is not swept: as typed, or the default.
    fn rw(section: &Section) -> &str {
        section.last(job::Access::rw).and_then(Setting::text).unwrap_or(job::Access::rw.default)
    }

    /// The jobs in a report, with their titles. Of sections in a group that is reported as one
    /// (`group_reporting`), the report contains only the first, and its row is that of all of them.
    pub(super) fn parts(&self, report: &RunReport) -> Vec<SectionGroup> {
        let mut parts: Vec<SectionGroup> = Vec::new();
        for section in &self.sections {
            let name = &path::text(&section.name);
            let is_reported = self.sections.len() == 1 || report.jobs.iter().any(|job| job.name == *name);
            let known = parts.iter().position(|part| part.name == *name);
            if is_reported && known.is_none() {
                let (name, title, rw) = (name.clone(), name.clone(), SweptJob::rw(section).to_string());
                parts.push(SectionGroup { name, title, rw });
            } else if let Some(part) = match known {
                Some(known) => parts.get_mut(known),
                None => parts.last_mut(),
            } {
                part.include(name, SweptJob::rw(section));
            }
        }
        parts
    }

    /// The figures of a part of a run, by direction.
    pub(super) fn done(&self, part: &SectionGroup, report: &RunReport) -> Vec<Done> {
        let figures = |direction| match self.sections.len() {
            1 => Figures::of(report, direction),
            _ => Figures::of_job(report, &part.name, direction),
        };
        let of = |direction| Some((direction, figures(direction)?));
        let directions: Vec<(usize, Figures)> = (0..DIRECTIONS.len()).filter_map(of).collect();
        let is_mixed = directions.len() > 1;
        let row = |(direction, figures)| Done {
            job: part.title.clone(),
            rw: part.rw.clone(),
            direction,
            is_mixed,
            figures,
        };
        directions.into_iter().map(row).collect()
    }
}

/// One or several sections that share their rows.
pub(super) struct SectionGroup {
    /// Its name in the report.
    name: String,
    /// Its title: the names of all its sections.
    title: String,
    /// The `rw` of its sections, each value once.
    rw: String,
}

impl SectionGroup {
    fn include(&mut self, name: &str, rw: &str) {
        for (list, word) in [(&mut self.title, name), (&mut self.rw, rw)] {
            if !list.split(", ").any(|known| known == word) {
                *list = format!("{list}, {word}");
            }
        }
    }
}

/// The figures of a job in one direction.
#[derive(Clone, Debug)]
pub(super) struct Done {
    /// The job's name.
    pub job: String,
    /// Its `rw`, if that is not swept.
    pub rw: String,
    /// Index into [`DIRECTIONS`].
    pub direction: usize,
    /// Whether it did I/O in other directions, too.
    pub is_mixed: bool,
    pub figures: Figures,
}
