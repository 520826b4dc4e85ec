//! By how much the page cache grows of files that a job uses past it.
//!
//! Invariant: a worker asks about descriptors of its own, so that a file system that does not answer holds up nobody else.

use std::fs::File;

use fiord_plan::{FileIndex, FileKind, Files};
use fiord_sys::pagecache::{CachedParts, cached_parts};

/// The first files of a job are looked at.
const FILES_MAX: FileIndex = 16;

/// Less than this is not reported, in bytes.
const BYTES_MIN: u64 = 1 << 16;

/// The growth of one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheGrowth {
    /// Its number in the plan of the job.
    pub file: FileIndex,
    /// The parts of it that were looked at, in bytes.
    pub looked_bytes: u64,
    /// By how much the cached part of these has grown, in bytes.
    pub grown_bytes: u64,
}

/// The looks at one file.
#[derive(Debug)]
struct Looks {
    cached_bytes_before: u64,
    most: CacheGrowth,
    /// Whether its pages, or the file, have been dropped since it was opened.
    was_dropped: bool,
}

impl Looks {
    fn look(&mut self, files: &Files, open: &File) {
        let Some(CachedParts { looked_bytes, cached_bytes }) = look(files, self.most.file, open) else {
            return;
        };
        let grown_bytes = cached_bytes.saturating_sub(self.cached_bytes_before);
        if grown_bytes > self.most.grown_bytes {
            self.most = CacheGrowth { looked_bytes, grown_bytes, ..self.most };
        }
    }
}

/// What is cached of a job's files.
#[derive(Debug, Default)]
pub(crate) struct CacheLooks(Vec<Looks>);

impl CacheLooks {
    /// A file was opened, and what is done to it before its I/O is done.
    pub(crate) fn opened(&mut self, files: &Files, file: FileIndex, open: &File) {
        let is_regular = files.list[file as usize].kind == FileKind::Regular;
        let is_new = || self.0.iter().all(|looks| looks.most.file != file);
        if files.direct && is_regular && file < FILES_MAX && is_new() {
            let most = CacheGrowth { file, looked_bytes: 0, grown_bytes: 0 };
            let looks = |before: CachedParts| Looks {
                cached_bytes_before: before.cached_bytes,
                most,
                was_dropped: false,
            };
            self.0.extend(look(files, file, open).map(looks));
        }
    }

    /// The job is about to drop the pages of a file, or the file. Only the first time is worth the time.
    pub(crate) fn dropping(&mut self, files: &Files, file: FileIndex, open: &File) {
        let first = self.0.iter_mut().find(|looks| looks.most.file == file && !looks.was_dropped);
        if let Some(looks) = first {
            looks.was_dropped = true;
            looks.look(files, open);
        }
    }

    /// The most that was cached of each file, until now for those that are still open.
    pub(crate) fn end<'f>(
        mut self,
        files: &Files,
        open: impl Fn(FileIndex) -> Option<&'f File>,
    ) -> Vec<CacheGrowth> {
        for looks in &mut self.0 {
            open(looks.most.file).into_iter().for_each(|open| looks.look(files, open));
        }
        let most = self.0.into_iter().map(|looks| looks.most);
        most.filter(|growth| growth.grown_bytes >= BYTES_MIN).collect()
    }
}

/// `None` where the kernel does not say it.
fn look(files: &Files, file: FileIndex, open: &File) -> Option<CachedParts> {
    let plan = &files.list[file as usize];
    cached_parts(open, plan.offset_bytes, plan.length_bytes).ok()
}
