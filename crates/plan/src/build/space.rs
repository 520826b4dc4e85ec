//! What the workers before will have laid out, and whether what the next one lays out fits into its file system.
//!
//! Invariant: only bytes that are certainly written count, and only those not allocated yet. What is refused could not
//! have been laid out; what is accepted may still be too much (quotas, thin volumes, others that write).

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use fiord_options::job::{self, JobOptions};
use fiord_options::shown::shown;
use fiord_options::{Problem, ProblemKind};

use super::section::ResolvedSection;
use crate::facts::Facts;
use crate::files::{FileKind, FilePlan};

/// What is laid out of one file.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Layout {
    /// Its length.
    length_bytes: u64,
    /// The part of it that is written, rather than only reserved.
    written_bytes: u64,
}

/// What the workers so far will have laid out.
#[derive(Debug, Default)]
pub(crate) struct LaidOut {
    files: HashMap<PathBuf, Layout>,
    /// The space this takes on each file system.
    taken_bytes: BTreeMap<(u32, u32), u128>,
}

impl LaidOut {
    /// The length that a file will have; 0 if it is not laid out.
    pub fn length_bytes(&self, path: &Path) -> u64 {
        self.files.get(path).map_or(0, |layout| layout.length_bytes)
    }

    /// Adds a file, and returns what was laid out of it before. `written`: its contents are written.
    pub fn add(&mut self, file: &FilePlan, written: bool, facts: &Facts) -> Option<(PathBuf, Layout)> {
        let length_bytes = file.lay_out_bytes?;
        let before = self.files.get(&file.path).copied().unwrap_or_default();
        let written_bytes = if written && file.kind == FileKind::Regular { length_bytes } else { 0 };
        let after = Layout {
            length_bytes: before.length_bytes.max(length_bytes),
            written_bytes: before.written_bytes.max(written_bytes),
        };
        self.set(&file.path, after, facts);
        Some((file.path.clone(), before))
    }

    /// Takes back what `add` did, last first.
    pub fn take_back(&mut self, added: Vec<(PathBuf, Layout)>, facts: &Facts) {
        for (path, before) in added.into_iter().rev() {
            self.set(&path, before, facts);
        }
    }

    fn set(&mut self, path: &Path, layout: Layout, facts: &Facts) {
        let before = self.files.insert(path.to_path_buf(), layout).unwrap_or_default();
        if before.written_bytes == layout.written_bytes {
            return;
        }
        let known = facts.path(path);
        let Some(space) = known.space else { return };
        let missing = |layout: Layout| u128::from(layout.written_bytes.saturating_sub(known.allocated_bytes));
        let taken = self.taken_bytes.entry(space.file_system).or_default();
        *taken = *taken - missing(before) + missing(layout);
    }

    /// Why the files that a worker lays out do not fit beside those of the workers before it.
    pub fn no_room(
        &self,
        section: &ResolvedSection<'_>,
        list: &[FilePlan],
        facts: &Facts,
    ) -> Option<Problem> {
        list.iter().filter(|file| file.lay_out_bytes.is_some()).find_map(|file| {
            let space = facts.path(&file.path).space?;
            let taken_bytes = *self.taken_bytes.get(&space.file_system)?;
            (taken_bytes > u128::from(space.free_bytes)).then(|| {
                let message = format!(
                    "there is no room for {}: what is laid out before the run needs {taken_bytes} bytes, and its file \
                     system has {} free",
                    shown(&file.path),
                    space.free_bytes
                );
                let remedy = "lower size=, free some space, or name another directory=";
                section
                    .error(ProblemKind::Extent, job::Amount::size, message, remedy)
                    .of_path(&file.path)
            })
        })
    }
}

/// Whether contents of a layout may take less space than their length where the file system compresses or shares them.
pub(crate) fn shrinks(options: &JobOptions) -> bool {
    let buffers = &options.buffers;
    buffers.zero_buffers.0
        || buffers.dedupe_percentage > 0
        || buffers.buffer_pattern.is_some()
        || buffers.buffer_compress_percentage.is_some_and(|percent| percent > 0)
}
