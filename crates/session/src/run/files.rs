//! The files that a plan reads or writes.
//!
//! Invariant: no file of an engine that has none.

use std::collections::BTreeSet;
use std::path::Path;

use fiord_plan::{FileKind, Plan};

/// The paths of the files of all jobs, each once.
pub fn files(plan: &Plan) -> BTreeSet<&Path> {
    let files = plan.jobs.iter().flat_map(|job| &job.files.list).filter(|file| file.kind != FileKind::None);
    files.map(|file| file.path.as_path()).collect()
}
