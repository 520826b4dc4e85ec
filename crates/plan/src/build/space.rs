//! What the workers before will have laid out and written, and whether the files of the next one fit into its file system.
//!
//! Invariant: only bytes that are certainly written count, and only those not allocated yet. What is refused could not
//! have been written; what is accepted may still be too much (quotas, thin volumes, others that write).

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::{Path, PathBuf};

use fiord_options::job::{self, JobOptions};
use fiord_options::shown::shown;
use fiord_options::{Problem, ProblemKind};

use super::section::ResolvedSection;
use super::written::{self, Written};
use crate::facts::{Facts, Space};
use crate::files::{FileKind, FilePlan};
use crate::job::Job;

/// What is laid out and written of one file.
#[derive(Debug, Clone, Default)]
pub(crate) struct Layout {
    /// Its length.
    length_bytes: u64,
    /// The parts of it that are written, rather than only reserved: in order, with gaps between them.
    written: Vec<Range<u64>>,
    /// The most that one worker writes at places that are not known.
    scattered_bytes: u64,
}

impl Layout {
    fn add(&mut self, written: Written) {
        let range = match written {
            Written::Some(bytes) => {
                self.scattered_bytes = self.scattered_bytes.max(bytes);
                return;
            }
            Written::All(range) => range,
        };
        if range.is_empty() {
            return;
        }
        let first = self.written.partition_point(|before| before.end < range.start);
        let end = self.written.partition_point(|before| before.start <= range.end);
        let joined = self.written[first..end]
            .iter()
            .fold(range, |joined, part| joined.start.min(part.start)..joined.end.max(part.end));
        self.written.splice(first..end, [joined]);
    }

    /// Bytes that it certainly takes beyond those that are allocated.
    fn missing_bytes(&self, allocated_bytes: u64) -> u128 {
        let written: u64 = self.written.iter().map(|range| range.end - range.start).sum();
        written.max(self.scattered_bytes).saturating_sub(allocated_bytes).into()
    }
}

/// A file system by its device, and what a quota there is of.
type Pool = ((u32, u32), Option<(&'static str, u32)>);

/// What a file takes its space from, and the bytes free of each.
fn pools(space: Space) -> impl Iterator<Item = (Pool, u64)> {
    let within = space.quota.map(|quota| ((space.file_system, Some(quota.of)), quota.left_bytes));
    within.into_iter().chain([((space.file_system, None), space.free_bytes)])
}

/// What the workers so far will have laid out and written.
#[derive(Debug, Default)]
pub(crate) struct LaidOut {
    files: HashMap<PathBuf, Layout>,
    /// The space this takes on each file system, and within each quota there.
    taken_bytes: BTreeMap<Pool, u128>,
    /// What the current worker changed, as it was before.
    before: Vec<(PathBuf, Layout)>,
}

impl LaidOut {
    /// The length that a file will have; 0 if it is not laid out.
    pub fn length_bytes(&self, path: &Path) -> u64 {
        self.files.get(path).map_or(0, |layout| layout.length_bytes)
    }

    /// Adds the layout of a file. `written`: its contents are written.
    pub fn add(&mut self, file: &FilePlan, written: bool, facts: &Facts) {
        let Some(length_bytes) = file.lay_out_bytes else { return };
        let mut layout = self.files.get(&file.path).cloned().unwrap_or_default();
        layout.length_bytes = layout.length_bytes.max(length_bytes);
        if written && file.kind == FileKind::Regular {
            layout.add(Written::All(0..length_bytes));
        }
        self.change(&file.path, layout, facts);
    }

    /// Adds what a worker writes, and returns the files of which that is known: file systems that compress or share what
    /// they are given may have room for more than they say.
    pub fn add_written<'a>(
        &mut self,
        job: &'a Job,
        facts: &Facts,
        counts_timed_writes: bool,
    ) -> Vec<&'a FilePlan> {
        let mut files = Vec::new();
        for (file, written) in written::certainly(job, counts_timed_writes) {
            if facts.path(&file.path).space.is_none_or(|space| space.may_shrink) {
                continue;
            }
            let mut layout = self.files.get(&file.path).cloned().unwrap_or_default();
            layout.add(written);
            self.change(&file.path, layout, facts);
            files.push(file);
        }
        files
    }

    /// Ends the current worker; what it would have laid out and written is not there for others unless it `runs`.
    pub fn end_worker(&mut self, runs: bool, facts: &Facts) {
        let before = std::mem::take(&mut self.before);
        if !runs {
            before.into_iter().rev().for_each(|(path, layout)| drop(self.set(&path, layout, facts)));
        }
    }

    fn change(&mut self, path: &Path, layout: Layout, facts: &Facts) {
        let before = self.set(path, layout, facts);
        self.before.push((path.to_path_buf(), before));
    }

    /// Sets what is laid out of a file, and returns what was before.
    fn set(&mut self, path: &Path, layout: Layout, facts: &Facts) -> Layout {
        let known = facts.path(path);
        let missing_bytes = layout.missing_bytes(known.allocated_bytes);
        let before = self.files.insert(path.to_path_buf(), layout).unwrap_or_default();
        for (pool, _) in known.space.into_iter().flat_map(pools) {
            let taken = self.taken_bytes.entry(pool).or_default();
            *taken = *taken - before.missing_bytes(known.allocated_bytes) + missing_bytes;
        }
        before
    }

    /// Why these files of a worker do not fit beside those of the workers before it.
    pub fn no_room<'a>(
        &self,
        section: &ResolvedSection<'_>,
        mut files: impl Iterator<Item = &'a FilePlan>,
        facts: &Facts,
        remedy: &str,
    ) -> Option<Problem> {
        files.find_map(|file| {
            let taken_bytes = |pool| self.taken_bytes.get(&pool).copied().unwrap_or_default();
            let mut pools = pools(facts.path(&file.path).space?);
            let (pool, free_bytes) = pools.find(|(pool, free)| taken_bytes(*pool) > u128::from(*free))?;
            let taken = taken_bytes(pool);
            let has = match pool.1 {
                None => format!("its file system has {free_bytes} free"),
                Some((of, id)) => format!("the quota of {of} {id} leaves {free_bytes}"),
            };
            let message = format!(
                "there is no room for {}: what is laid out and written needs {taken} bytes, and {has}",
                shown(&file.path)
            );
            let problem = section.error(ProblemKind::Extent, job::Amount::size, message, remedy);
            Some(problem.of_path(&file.path))
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
