//! A worker's open files.
//!
//! Invariant: at most `open_at_once` files are open; a file is attached to the engine for just as long.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

use fiord_engine::contract::Engine;
use fiord_plan::files::Advice;
use fiord_plan::{EngineSettings, FileIndex, FileKind, FilePlan, Files, Job, SyncMode};
use fiord_sys::file::{self, Durability, OpenHow};
use fiord_workload::Stream;

use crate::door::Door;
use crate::failure::Failure;

/// What has to happen to the files before the operations just made may be issued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// Nothing.
    None,
    /// The files are begun again, and what is cached of them is to be dropped.
    Pass,
    /// Other files are to be open than now.
    Window,
    /// A loop has ended, and with it what fio does there: syncing, closing, removing.
    Loop,
}

impl Change {
    /// Whether nothing may be in flight meanwhile.
    pub(crate) fn needs_quiet(self) -> bool {
        matches!(self, Change::Window | Change::Loop)
    }
}

/// The files of one worker, opened as they are needed.
pub(crate) struct FileTable<'a> {
    plan: &'a Files,
    door: &'a Door,
    open: Vec<Option<File>>,
    /// Those that are open, in no order.
    opened: Vec<FileIndex>,
    random: bool,
    /// Something is done about the files where a loop ends.
    ends_loops: bool,
    /// Passes begun when the files were last looked at.
    passes: u64,
    /// Generation of the stream's set of open files that is open now.
    generation: Option<u64>,
    /// By file: the last round of opening that wanted it open.
    wanted: Vec<u64>,
    round: u64,
}

impl<'a> FileTable<'a> {
    /// All closed.
    pub(crate) fn new(job: &'a Job, door: &'a Door) -> FileTable<'a> {
        let plan = &job.files;
        let syncs = plan.writable && (plan.end_fsync || plan.end_syncfs);
        // Pages that are mapped stay in the cache.
        let maps = matches!(job.engine, EngineSettings::Mmap(_)) && plan.invalidate && !plan.pre_read;
        // A job that is `time_based` has no loops, only passes.
        let ends_loops =
            !job.limits.time_based && (syncs || maps || plan.fsync_on_close || plan.unlink_each_loop);
        FileTable {
            plan,
            door,
            open: plan.list.iter().map(|_| None).collect(),
            opened: Vec::with_capacity(plan.list.len().min(plan.open_at_once as usize)),
            random: job.access.random,
            ends_loops,
            passes: 1,
            generation: None,
            wanted: vec![0; plan.list.len()],
            round: 0,
        }
    }

    /// Files open now.
    pub(crate) fn count(&self) -> u32 {
        self.opened.len() as u32
    }

    pub(crate) fn path(&self, index: FileIndex) -> &'a Path {
        &self.plan.list[index as usize].path
    }

    /// What is at the path.
    pub(crate) fn kind(&self, index: FileIndex) -> FileKind {
        self.plan.list[index as usize].kind
    }

    /// What the operations that `stream` made last need.
    #[inline]
    pub(crate) fn change(&self, stream: &Stream) -> Change {
        let begins_again = stream.passes_begun() != self.passes;
        if begins_again && self.ends_loops {
            Change::Loop
        } else if self.generation != Some(stream.open_generation()) {
            Change::Window
        } else if begins_again && self.drops_cache() {
            Change::Pass
        } else {
            Change::None
        }
    }

    /// Does what the operations that `stream` made last need.
    pub(crate) fn make<E: Engine>(
        &mut self,
        change: Change,
        stream: &Stream,
        engine: &mut E,
    ) -> Result<(), Failure> {
        if change == Change::Loop {
            self.end_loop(engine)?;
        } else if stream.passes_begun() != self.passes && self.drops_cache() {
            self.invalidate();
        }
        if change != Change::Pass {
            self.open_wanted(stream, engine)?;
        }
        self.passes = stream.passes_begun();
        self.generation = Some(stream.open_generation());
        Ok(())
    }

    /// Opens the files the stream wants open, after closing those it does not.
    fn open_wanted<E: Engine>(&mut self, stream: &Stream, engine: &mut E) -> Result<(), Failure> {
        self.round += 1;
        stream.open_files().for_each(|index| self.wanted[index as usize] = self.round);
        let mut at = 0;
        while let Some(index) = self.opened.get(at).copied() {
            if self.wanted[index as usize] == self.round {
                at += 1;
            } else {
                self.close(index, engine)?;
            }
        }
        for index in stream.open_files() {
            if self.open[index as usize].is_none() {
                self.open(index, engine)?;
            }
        }
        Ok(())
    }

    /// Opens a file and attaches it to the engine.
    fn open<E: Engine>(&mut self, index: FileIndex, engine: &mut E) -> Result<(), Failure> {
        let plan = &self.plan.list[index as usize];
        if plan.kind == FileKind::None {
            return Ok(());
        }
        let failed = |operation: &str, error: io::Error| Failure::file(operation, &plan.path, &error);
        let opened = self.door.open(plan, &how(plan, self.plan), !self.plan.allow_in_use);
        let opened = opened.map_err(|failure| self.not_opened(failure))?;
        self.prepare(plan, &opened).map_err(|(operation, error)| failed(operation, error))?;
        let end_bytes = plan.offset_bytes + plan.length_bytes;
        engine.attach(index, opened.as_raw_fd(), end_bytes).map_err(|error| failed("attach", error))?;
        self.open[index as usize] = Some(opened);
        self.opened.push(index);
        Ok(())
    }

    /// Closes a file nothing is in flight to.
    fn close<E: Engine>(&mut self, index: FileIndex, engine: &mut E) -> Result<(), Failure> {
        let Some(open) = self.open[index as usize].take() else { return Ok(()) };
        self.opened.retain(|opened| *opened != index);
        engine.detach(index);
        if self.plan.fsync_on_close {
            file::fsync(&open).map_err(|error| Failure::file("fsync", self.path(index), &error))?;
        }
        Ok(())
    }

    /// Closes all.
    pub(crate) fn close_all<E: Engine>(&mut self, engine: &mut E) -> Result<(), Failure> {
        let mut first = Ok(());
        while let Some(index) = self.opened.last().copied() {
            let closed = self.close(index, engine);
            first = first.and(closed);
        }
        first
    }

    /// What fio does where a loop ends: files are synced and closed, and removed if the job wants that.
    fn end_loop<E: Engine>(&mut self, engine: &mut E) -> Result<(), Failure> {
        self.sync_at_end()?;
        self.close_all(engine)?;
        if self.plan.unlink_each_loop { self.remove() } else { Ok(()) }
    }

    /// `end_fsync` and `end_syncfs`, of a job that writes.
    pub(crate) fn sync_at_end(&self) -> Result<(), Failure> {
        if self.plan.writable && self.plan.end_fsync {
            self.for_each("fsync", |open| file::fsync(open))?;
        }
        if self.plan.writable && self.plan.end_syncfs {
            self.for_each("syncfs", |open| file::syncfs(open))?;
        }
        Ok(())
    }

    /// Removes the regular files.
    pub(crate) fn remove(&self) -> Result<(), Failure> {
        let mut files = self.plan.list.iter().filter(|plan| plan.kind == FileKind::Regular);
        files.try_for_each(|plan| self.door.remove(plan, !self.plan.allow_in_use))
    }

    fn not_opened(&self, failure: Failure) -> Failure {
        let explanation = match failure.errno.map(|errno| errno.name()) {
            Some("EINVAL") if self.plan.direct => "it does not take direct I/O (direct=1)",
            Some("ENOENT") if self.plan.unlink_each_loop && self.round > 1 => {
                "unlink_each_loop removed it, and a job that only reads makes no new one"
            }
            _ => return failure,
        };
        Failure { explanation: explanation.to_string(), ..failure }
    }

    fn drops_cache(&self) -> bool {
        self.plan.invalidate && !self.plan.pre_read
    }

    /// Drops what is cached of the open files.
    fn invalidate(&self) {
        for index in &self.opened {
            if let Some(open) = &self.open[*index as usize] {
                invalidate(&self.plan.list[*index as usize], open);
            }
        }
    }

    /// Calls `work` on every file, opening those that are not open.
    fn for_each(&self, operation: &str, work: impl Fn(&File) -> io::Result<()>) -> Result<(), Failure> {
        for (plan, open) in self.plan.list.iter().zip(&self.open) {
            if plan.kind == FileKind::None {
                continue;
            }
            let result = match open {
                Some(open) => work(open),
                None => work(&self.open_plainly(plan)?),
            };
            result.map_err(|error| Failure::file(operation, &plan.path, &error))?;
        }
        Ok(())
    }

    /// Opened for a synchronisation only: no direct I/O, nothing created.
    fn open_plainly(&self, plan: &FilePlan) -> Result<File, Failure> {
        let how = OpenHow { direct: false, create: false, ..how(plan, self.plan) };
        self.door.open(plan, &how, !self.plan.allow_in_use)
    }

    /// Cache, access hint and write hint, as the job wants them.
    fn prepare(&self, plan: &FilePlan, open: &File) -> Result<(), (&'static str, io::Error)> {
        if self.drops_cache() {
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
        // The other end of a pipe may never come. Nobody wakes a worker but to end it.
        interruptible: true,
        ..OpenHow::READ
    }
}

/// Reads the used part of every file into the page cache; `go_on` is asked between the reads.
pub(crate) fn pre_read(files: &Files, door: &Door, go_on: &dyn Fn() -> bool) -> Result<(), Failure> {
    use std::os::unix::fs::FileExt;

    let mut buffer = vec![0; 1 << 20];
    for plan in files.list.iter().filter(|plan| matches!(plan.kind, FileKind::Regular | FileKind::Block)) {
        let failed = |error: io::Error| Failure::file("pre-read", &plan.path, &error);
        let how = OpenHow { interruptible: true, ..OpenHow::READ };
        let open = door.open(plan, &how, false)?;
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
