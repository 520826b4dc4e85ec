//! A worker's open files.
//!
//! Invariant: at most `open_at_once` files are open; a file is attached to the engine for just as long.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use fiord_engine::contract::{Engine, NamedTarget};
use fiord_plan::files::Advice;
use fiord_plan::{
    DebugChannel, FileIndex, FileKind, FilePlan, Files, Job, NameCall, NamePurpose, PlannedEngine, SyncMode,
};
use fiord_stats::Capped;
use fiord_sys::errno::Errno;
use fiord_sys::file::{self, Durability, OpenHow};
use fiord_workload::{OperationSource, Source};

use super::cache_growth::{CacheGrowth, CacheLooks};
use super::target_opener::TargetOpener;
use crate::debug::DebugLog;
use crate::failure::Failure;

/// The change of files that is needed before the operations just generated may be issued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// Nothing.
    None,
    /// A new pass begins, and the files' page cache is to be dropped.
    Pass,
    /// The set of open files changes.
    Window,
    /// A loop has ended: files are synced, closed and removed as in fio.
    Loop,
}

impl Change {
    /// Whether the queue must be idle meanwhile.
    pub(crate) fn needs_idle_queue(self) -> bool {
        matches!(self, Change::Window | Change::Loop)
    }
}

/// A target that is open.
enum Opened {
    /// A file, which the engine has a descriptor of.
    File(File),
    /// One that the engine opened itself.
    ByEngine,
}

impl Opened {
    /// The file, if it is one.
    fn file(&self) -> Option<&File> {
        match self {
            Opened::File(file) => Some(file),
            Opened::ByEngine => None,
        }
    }
}

/// The files of one worker, opened as they are needed.
pub(crate) struct FileTable<'a> {
    plan: &'a Files,
    opener: &'a TargetOpener,
    /// The lines of `--debug` of this job, if they are printed.
    pub(crate) debug: Option<DebugLog>,
    /// What the page cache has of the files, if that is looked at.
    pub(crate) cache: Option<CacheLooks>,
    open: Vec<Option<Opened>>,
    /// The open files, in no particular order.
    opened: Vec<FileIndex>,
    random: bool,
    /// Whether the engine opens the targets itself.
    named: bool,
    /// Whether they are connections.
    connects: bool,
    /// The engine, if it does other work in place of I/O: what it is begins when it is opened.
    cycles: Option<&'a PlannedEngine>,
    /// The call that the engine makes for each name, if that is what it does.
    name_call: Option<NameCall>,
    /// Whether files that are created when they are opened are mapped.
    maps_new: bool,
    /// Whether mappings of its targets are the medium itself.
    bypasses_cache: bool,
    /// Whether anything is done to the files at the end of a loop.
    ends_loops: bool,
    /// Passes begun at the last change of files.
    passes: u64,
    /// Generation of the source's set of open files that is currently open.
    generation: Option<u64>,
    /// By file: the last round of opening that requested it.
    wanted: Vec<u64>,
    round: u64,
}

impl<'a> FileTable<'a> {
    /// The opener of its files.
    pub(crate) fn opener(&self) -> &'a TargetOpener {
        self.opener
    }

    /// A table with all files closed.
    pub(crate) fn new(job: &'a Job, opener: &'a TargetOpener) -> FileTable<'a> {
        let plan = &job.files;
        let syncs = plan.writable && (plan.end_fsync || plan.end_syncfs);
        // Mapped pages cannot be dropped from the cache.
        let descriptor = job.engine.descriptor;
        let keeps_pages = descriptor.maps_files() && !descriptor.maps_medium();
        let maps = keeps_pages && plan.invalidate && !plan.pre_read;
        let name_call = job.engine.descriptor.name_call();
        let connects = job.engine.descriptor.connects().is_some();
        // A job that is `time_based` has no loops, only passes; names are called again in each.
        let ends_loops = name_call.is_some()
            || !job.limits.time_based
                && (syncs || maps || connects || plan.fsync_on_close || plan.unlink_each_loop);
        FileTable {
            debug: None,
            cache: None,
            plan,
            opener,
            open: plan.list.iter().map(|_| None).collect(),
            opened: Vec::with_capacity(plan.list.len().min(plan.open_at_once as usize)),
            random: job.access.random,
            named: job.engine.descriptor.names_targets() || name_call.is_some(),
            cycles: job.engine.cycle().map(|_| &job.engine),
            name_call,
            connects,
            maps_new: job.engine.descriptor.maps_files()
                && (plan.create_on_open || plan.unlink_each_loop)
                && plan.may_create
                && plan.writable
                && !plan.fill_device,
            bypasses_cache: descriptor.bypasses_cache(),
            ends_loops,
            passes: 1,
            generation: None,
            wanted: vec![0; plan.list.len()],
            round: 0,
        }
    }

    /// Number of open files.
    pub(crate) fn count(&self) -> u32 {
        u32::capped(self.opened.len())
    }

    pub(crate) fn path(&self, index: FileIndex) -> &'a Path {
        &self.plan.list[index as usize].path
    }

    /// The kind of file at the path.
    pub(crate) fn kind(&self, index: FileIndex) -> FileKind {
        self.plan.list[index as usize].kind
    }

    /// The change that the operations last generated by `source` need.
    #[inline]
    pub(crate) fn change(&self, source: &Source) -> Change {
        let begins_again = source.passes_begun() != self.passes;
        if begins_again && self.ends_loops {
            Change::Loop
        } else if self.generation != Some(source.open_generation()) {
            Change::Window
        } else if begins_again && self.drops_cache() {
            Change::Pass
        } else {
            Change::None
        }
    }

    /// Makes the change that the operations last generated by `source` need.
    pub(crate) fn make(
        &mut self,
        change: Change,
        source: &Source,
        engine: &mut dyn Engine<'_>,
    ) -> Result<(), Failure> {
        if change == Change::Loop {
            self.end_loop(engine)?;
        } else if source.passes_begun() != self.passes && self.drops_cache() {
            self.invalidate();
        }
        if change != Change::Pass {
            self.open_wanted(source, engine)?;
        }
        self.passes = source.passes_begun();
        self.generation = Some(source.open_generation());
        Ok(())
    }

    /// Opens the files the source requests, after closing all others.
    fn open_wanted(&mut self, source: &Source, engine: &mut dyn Engine<'_>) -> Result<(), Failure> {
        self.round += 1;
        source.for_each_open_file(&mut |index| self.wanted[index as usize] = self.round);
        let mut at = 0;
        while let Some(index) = self.opened.get(at).copied() {
            if self.wanted[index as usize] == self.round {
                at += 1;
            } else {
                self.close(index, engine)?;
            }
        }
        let mut opened = Ok(());
        source.for_each_open_file(&mut |index| {
            if opened.is_ok() && self.open[index as usize].is_none() {
                opened = self.open(index, engine);
            }
        });
        opened
    }

    /// Opens a file and attaches it to the engine.
    fn open(&mut self, index: FileIndex, engine: &mut dyn Engine<'_>) -> Result<(), Failure> {
        let plan = &self.plan.list[index as usize];
        let failed = |operation: &str, error: io::Error| Failure::file(operation, &plan.path, &error);
        if let Some(cycles) = self.cycles {
            engine
                .open(index, &named(plan, self.plan))
                .map_err(|error| Failure::of_engine(cycles, "start", &error))?;
            self.add_open(index, Opened::ByEngine);
            return Ok(());
        }
        if self.named {
            self.check_name(plan)?;
            let opened = engine.open(index, &named(plan, self.plan));
            opened.map_err(|error| match self.connects {
                true => Failure::system("connect", &error),
                false => failed("open", error),
            })?;
            self.add_open(index, Opened::ByEngine);
            return Ok(());
        }
        if plan.kind == FileKind::None {
            return Ok(());
        }
        let opened = self.opener.open(plan, &how(plan, self.plan), !self.plan.allow_in_use);
        let opened = opened.map_err(|failure| self.not_opened(failure))?;
        self.extend_new(plan, &opened).map_err(|error| failed("extend", error))?;
        self.prepare(plan, &opened).map_err(|(operation, error)| failed(operation, error))?;
        let end_bytes = plan.offset_bytes + plan.length_bytes;
        engine.attach(index, opened.as_fd(), end_bytes).map_err(|error| failed("attach", error))?;
        if let Some(cache) = &mut self.cache {
            cache.opened(self.plan, index, &opened);
        }
        self.print("open", plan);
        self.add_open(index, Opened::File(opened));
        Ok(())
    }

    /// Checks a name that the engine will create or remove what it stands for. One to be created is checked before the
    /// first pass: later ones find what that made.
    fn check_name(&self, plan: &FilePlan) -> Result<(), Failure> {
        let guarded = !self.plan.allow_in_use;
        match self.name_call {
            Some(NameCall { purpose: NamePurpose::Create, directories }) if self.round <= 1 => {
                self.opener.may_create(plan, directories)
            }
            Some(NameCall { purpose: NamePurpose::Remove, directories: false }) => {
                self.opener.may_remove(plan, guarded).map(|_| ())
            }
            Some(_) | None => Ok(()),
        }
    }

    /// From now on this target is open.
    fn add_open(&mut self, index: FileIndex, opened: Opened) {
        self.open[index as usize] = Some(opened);
        self.opened.push(index);
    }

    /// A file that was created just now has no pages that could be mapped: it gets its planned length.
    fn extend_new(&self, plan: &FilePlan, open: &File) -> io::Result<()> {
        let end_bytes = plan.offset_bytes.saturating_add(plan.length_bytes);
        let is_short = || open.metadata().map(|found| found.len() < end_bytes);
        if self.maps_new && plan.kind == FileKind::Regular && is_short()? {
            open.set_len(end_bytes)?;
        }
        Ok(())
    }

    /// Prints a line of `--debug`.
    fn print(&self, what: &str, plan: &FilePlan) {
        if let Some(debug) = &self.debug {
            debug.line(DebugChannel::File, format_args!("fd {what} {}", plan.path.display()));
        }
    }

    /// Closes a file that has nothing in flight.
    fn close(&mut self, index: FileIndex, engine: &mut dyn Engine<'_>) -> Result<(), Failure> {
        let Some(open) = self.open[index as usize].take() else { return Ok(()) };
        self.print("close", &self.plan.list[index as usize]);
        match self.opened.last() == Some(&index) {
            true => drop(self.opened.pop()),
            false => self.opened.retain(|opened| *opened != index),
        }
        engine.detach(index);
        if let (Some(cache), Opened::File(open)) = (&mut self.cache, &open) {
            cache.dropping(self.plan, index, open);
        }
        if let Some(open) = open.file().filter(|_| self.plan.fsync_on_close) {
            self.fsync(open).map_err(|error| Failure::file("fsync", self.path(index), &error))?;
        }
        Ok(())
    }

    /// By how much the page cache grew of the files. It is not looked at any more.
    pub(crate) fn cache_growth(&mut self) -> Vec<CacheGrowth> {
        let cache = self.cache.take();
        let open = |index: FileIndex| self.open[index as usize].as_ref().and_then(Opened::file);
        cache.map_or_else(Vec::new, |cache| cache.end(self.plan, open))
    }

    /// Closes all files.
    pub(crate) fn close_all(&mut self, engine: &mut dyn Engine<'_>) -> Result<(), Failure> {
        let mut first = Ok(());
        while let Some(index) = self.opened.last().copied() {
            let closed = self.close(index, engine);
            first = first.and(closed);
        }
        first
    }

    /// Syncs and closes files at the end of a loop, and removes them if the job requests it, as fio does.
    fn end_loop(&mut self, engine: &mut dyn Engine<'_>) -> Result<(), Failure> {
        self.sync_at_end()?;
        self.close_all(engine)?;
        if self.plan.unlink_each_loop { self.remove() } else { Ok(()) }
    }

    /// `end_fsync` and `end_syncfs`, of a job that writes.
    pub(crate) fn sync_at_end(&self) -> Result<(), Failure> {
        if self.name_call.is_some() {
            return Ok(());
        }
        if self.plan.writable && self.plan.end_fsync {
            self.for_each("fsync", |open| self.fsync(open))?;
        }
        if self.plan.writable && self.plan.end_syncfs {
            self.for_each("syncfs", |open| file::syncfs(open))?;
        }
        Ok(())
    }

    /// A character device that takes commands, and one whose memory is the medium, have no fsync: nothing is cached above
    /// them. As in fio, that is no failure.
    fn fsync(&self, open: &File) -> io::Result<()> {
        match file::fsync(open) {
            Err(error) if self.bypasses_cache && Errno::of(&error) == Some(Errno::EINVAL) => Ok(()),
            result => result,
        }
    }

    /// Removes the regular files, or the directories of an engine that works on directories.
    pub(crate) fn remove(&self) -> Result<(), Failure> {
        if self.name_call.is_some_and(|call| call.directories) {
            return self.plan.list.iter().try_for_each(|plan| self.opener.remove_directory(&plan.path));
        }
        let mut files = self.plan.list.iter().filter(|plan| plan.kind == FileKind::Regular);
        files.try_for_each(|plan| self.opener.remove(plan, !self.plan.allow_in_use))
    }

    fn not_opened(&self, failure: Failure) -> Failure {
        let explanation = match failure.errno {
            Some(Errno::EINVAL) if self.plan.direct => "it does not support direct I/O (direct=1)",
            Some(Errno::ENOENT) if self.plan.unlink_each_loop && self.round > 1 => {
                "unlink_each_loop removed it, and a job that only reads makes no new one"
            }
            Some(Errno::ENOENT) if self.plan.create_on_open => {
                "create_on_open=1 leaves the file to a job that writes, and this one only reads"
            }
            _ => return failure,
        };
        Failure { explanation: explanation.to_string(), ..failure }
    }

    fn drops_cache(&self) -> bool {
        self.plan.invalidate && !self.plan.pre_read
    }

    /// Drops the page cache of the open files.
    fn invalidate(&mut self) {
        for index in &self.opened {
            if let Some(Opened::File(open)) = &self.open[*index as usize] {
                if let Some(cache) = &mut self.cache {
                    cache.dropping(self.plan, *index, open);
                }
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
            let result = match open.as_ref().and_then(Opened::file) {
                Some(open) => work(open),
                None => work(&self.open_plainly(plan)?),
            };
            result.map_err(|error| Failure::file(operation, &plan.path, &error))?;
        }
        Ok(())
    }

    /// Opens a file only for synchronisation: no direct I/O, nothing created.
    fn open_plainly(&self, plan: &FilePlan) -> Result<File, Failure> {
        let how = OpenHow { direct: false, create: false, ..how(plan, self.plan) };
        self.opener.open(plan, &how, !self.plan.allow_in_use)
    }

    /// Applies the job's cache invalidation, access hint and write hint.
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

/// Drops cached pages of the job's region; targets without a page cache are unchanged.
fn invalidate(plan: &FilePlan, open: &File) {
    if matches!(plan.kind, FileKind::Block | FileKind::Regular) {
        // A failure is ignored, as in fio.
        let _ = fiord_sys::pagecache::drop_cached(open, plan.offset_bytes, plan.length_bytes);
    }
}

/// What an engine that opens its targets itself needs to know of this one.
fn named<'a>(plan: &'a FilePlan, files: &Files) -> NamedTarget<'a> {
    let length_bytes = plan.offset_bytes + plan.length_bytes;
    NamedTarget { name: &plan.path, length_bytes, writable: files.writable }
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
        direct: files.direct && !files.direct_by_engine,
        durability,
        // The other end of a pipe may never be opened. Only a request to stop interrupts a worker.
        interruptible: true,
        ..OpenHow::READ
    }
}

/// Reads the used part of every file into the page cache; `go_on` is checked between reads.
pub(crate) fn pre_read(
    files: &Files,
    opener: &TargetOpener,
    go_on: &dyn Fn() -> bool,
) -> Result<(), Failure> {
    use std::os::unix::fs::FileExt;

    let mut buffer = vec![0; 1 << 20];
    for plan in files.list.iter().filter(|plan| matches!(plan.kind, FileKind::Regular | FileKind::Block)) {
        let failed = |error: io::Error| Failure::file("pre-read", &plan.path, &error);
        let how = OpenHow { interruptible: true, ..OpenHow::READ };
        let open = opener.open(plan, &how, false)?;
        let (mut at, end) = (plan.offset_bytes, plan.offset_bytes + plan.length_bytes);
        while at < end && go_on() {
            let length = usize::capped((end - at).min(buffer.len() as u64));
            match open.read_at(&mut buffer[..length], at).map_err(failed)? {
                0 => break,
                read => at += read as u64,
            }
        }
    }
    Ok(())
}
