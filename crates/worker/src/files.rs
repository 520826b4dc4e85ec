//! A worker's open files.
//!
//! Invariant: at most `open_at_once` files are open; a file is attached to the engine for just as long.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

use fiord_engine::contract::Engine;
use fiord_plan::files::Advice;
use fiord_plan::{FileIndex, FileKind, FilePlan, Files, SyncMode};
use fiord_sys::file::{self, Durability, OpenHow};

use crate::failure::Failure;

/// The files of one worker, opened as they are needed.
pub(crate) struct FileTable<'a> {
    plan: &'a Files,
    open: Vec<Option<File>>,
    count: u32,
    random: bool,
}

impl<'a> FileTable<'a> {
    pub(crate) fn new(plan: &'a Files, random: bool) -> FileTable<'a> {
        FileTable { plan, open: plan.list.iter().map(|_| None).collect(), count: 0, random }
    }

    /// Files open now.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// Whether every file stays open for the whole run.
    pub(crate) fn fits(&self) -> bool {
        self.plan.list.len() <= self.plan.open_at_once as usize
    }

    pub(crate) fn is_open(&self, index: FileIndex) -> bool {
        self.open[index as usize].is_some()
    }

    pub(crate) fn path(&self, index: FileIndex) -> &'a Path {
        &self.plan.list[index as usize].path
    }

    /// Opens a file and attaches it to the engine.
    pub(crate) fn open<E: Engine>(&mut self, index: FileIndex, engine: &mut E) -> Result<(), Failure> {
        let plan = &self.plan.list[index as usize];
        if plan.kind == FileKind::None {
            return Ok(());
        }
        let failed = |operation: &str, error: io::Error| Failure::file(operation, &plan.path, &error);
        let opened = open(plan, self.plan).map_err(|error| failed("open", error))?;
        self.prepare(plan, &opened).map_err(|(operation, error)| failed(operation, error))?;
        let end_bytes = plan.offset_bytes + plan.length_bytes;
        engine.attach(index, opened.as_raw_fd(), end_bytes).map_err(|error| failed("attach", error))?;
        self.open[index as usize] = Some(opened);
        self.count += 1;
        Ok(())
    }

    /// Closes a file nothing is in flight to.
    pub(crate) fn close<E: Engine>(&mut self, index: FileIndex, engine: &mut E) -> Result<(), Failure> {
        let Some(open) = self.open[index as usize].take() else { return Ok(()) };
        engine.detach(index);
        self.count -= 1;
        if self.plan.fsync_on_close {
            file::fsync(&open).map_err(|error| Failure::file("fsync", self.path(index), &error))?;
        }
        Ok(())
    }

    /// Closes whatever keeps `index` from being opened.
    pub(crate) fn make_room<E: Engine>(&mut self, engine: &mut E) -> Result<(), Failure> {
        while self.count >= self.plan.open_at_once.max(1) {
            let Some(index) = self.open.iter().position(Option::is_some) else { break };
            self.close(index as FileIndex, engine)?;
        }
        Ok(())
    }

    /// Closes all.
    pub(crate) fn close_all<E: Engine>(&mut self, engine: &mut E) -> Result<(), Failure> {
        let mut first = Ok(());
        for index in 0..self.open.len() {
            let closed = self.close(index as FileIndex, engine);
            first = first.and(closed);
        }
        first
    }

    /// Calls `work` on every file, opening those that are not open.
    pub(crate) fn for_each(
        &self,
        operation: &str,
        work: impl Fn(&File) -> io::Result<()>,
    ) -> Result<(), Failure> {
        for (plan, open) in self.plan.list.iter().zip(&self.open) {
            if plan.kind == FileKind::None {
                continue;
            }
            let result = match open {
                Some(open) => work(open),
                None => open_plainly(plan, self.plan).and_then(|open| work(&open)),
            };
            result.map_err(|error| Failure::file(operation, &plan.path, &error))?;
        }
        Ok(())
    }

    /// Cache, access hint and write hint, as the job wants them.
    fn prepare(&self, plan: &FilePlan, open: &File) -> Result<(), (&'static str, io::Error)> {
        if self.plan.invalidate && !self.plan.pre_read {
            invalidate(plan, open);
        }
        let advice = match self.plan.advice {
            Advice::None => None,
            Advice::ByPattern if self.random => Some(file::Advice::Random),
            Advice::ByPattern | Advice::Sequential => Some(file::Advice::Sequential),
            Advice::Random => Some(file::Advice::Random),
            Advice::NoReuse => Some(file::Advice::NoReuse),
        };
        if let (Some(advice), FileKind::Regular | FileKind::Block) = (advice, plan.kind) {
            let region = (plan.offset_bytes, plan.length_bytes);
            file::advise(open, advice, region.0, region.1).map_err(|error| ("fadvise", error))?;
        }
        if let Some(hint) = self.plan.write_hint
            && let Some(life) = write_life(hint)
        {
            file::set_inode_write_life(open, life).map_err(|error| ("set write hint", error))?;
        }
        Ok(())
    }
}

/// The kernel's numbers for `write_hint`.
fn write_life(hint: u64) -> Option<file::WriteLife> {
    use file::WriteLife::{Extreme, Long, Medium, None as Unknown, NotSet, Short};
    [NotSet, Unknown, Short, Medium, Long, Extreme].into_iter().find(|life| *life as u64 == hint)
}

/// Drops cached pages of the job's region; a target that has no cache to drop is left as it is.
fn invalidate(plan: &FilePlan, open: &File) {
    if matches!(plan.kind, FileKind::Block | FileKind::Regular) {
        // What cannot be dropped stays; fio goes on as well.
        let _ = fiord_sys::pagecache::drop_cached(open, plan.offset_bytes, plan.length_bytes);
    }
}

fn open(plan: &FilePlan, files: &Files) -> io::Result<File> {
    file::open(&plan.path, &how(plan, files))
}

/// Opened for a synchronisation only: no direct I/O, nothing created.
fn open_plainly(plan: &FilePlan, files: &Files) -> io::Result<File> {
    file::open(&plan.path, &OpenHow { direct: false, create: false, ..how(plan, files) })
}

/// Flags of the job's own opening.
pub(crate) fn how(plan: &FilePlan, files: &Files) -> OpenHow {
    let durability = match files.sync {
        SyncMode::None => Durability::Cached,
        SyncMode::Sync => Durability::Sync,
        SyncMode::DataSync => Durability::DataSync,
    };
    OpenHow {
        write: files.writable,
        create: files.may_create && files.writable && plan.kind == FileKind::Regular,
        direct: files.direct,
        durability,
        ..OpenHow::READ
    }
}

/// Reads the used part of every file into the page cache; `go_on` is asked between the reads.
pub(crate) fn pre_read(files: &Files, go_on: &dyn Fn() -> bool) -> Result<(), Failure> {
    use std::os::unix::fs::FileExt;

    let mut buffer = vec![0; 1 << 20];
    for plan in files.list.iter().filter(|plan| matches!(plan.kind, FileKind::Regular | FileKind::Block)) {
        let failed = |error: io::Error| Failure::file("pre-read", &plan.path, &error);
        let open = file::open(&plan.path, &OpenHow::READ).map_err(failed)?;
        let (mut at, end) = (plan.offset_bytes, plan.offset_bytes + plan.length_bytes);
        while at < end && go_on() {
            let length = (end - at).min(buffer.len() as u64) as usize;
            match open.read_at(&mut buffer[..length], at).map_err(failed)? {
                0 => break,
                read => at += read as u64,
            }
        }
    }
    Ok(())
}
