//! The subjects of findings, as reports name them.
//!
//! Invariant: a job is called by its name, and several jobs of one kind by the first and how many more there are.

use fiord_plan::Job;
use fiord_report::{Subject, path};

/// A job.
pub(crate) fn job(job: &Job) -> Subject {
    Subject::Job(path::text(&job.name))
}

/// Whether it moves data to or from a file or device.
pub(crate) fn does_io(job: &Job) -> bool {
    job.unplannable.is_none() && job.engine.descriptor.transfers_data() && !job.files.create_only
}

/// Whether it is slowed down on purpose, by a rate or think time.
pub(crate) fn is_paced(job: &Job) -> bool {
    job.pace.think.is_some() || job.pace.has_rates()
}

/// `part` of `all`, in percent; 0 of nothing.
pub(crate) fn percent(part: f64, all: f64) -> f64 {
    if all > 0.0 { 100.0 * part / all } else { 0.0 }
}
