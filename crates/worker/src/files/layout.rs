//! Layout: creates the files and directories that must exist before a job runs.
//!
//! Invariant: a file that is long enough already is not touched.

use std::fs::File;
use std::io;

use fiord_plan::files::Fallocate;
use fiord_plan::job::Fill;
use fiord_plan::{FileKind, FilePlan, Job};
use fiord_sys::errno::Errno;
use fiord_sys::file::{self, Allocate, OpenHow};
use fiord_sys::stat::{self, Identity};
use fiord_workload::Filler;

use super::layout_writer::{self, Contents};
use super::target_opener::TargetOpener;
use crate::failure::Failure;

/// From this size on a file is written past the page cache, several writes at once: the cache is slower than most disks once
/// it has to write back, and what it keeps is dropped before the run. For smaller files opening them twice takes longer.
const DIRECT_BYTES_MIN: u64 = 8 << 20;

/// The extent of a job's layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Extent {
    /// Files.
    pub files: usize,
    /// Total bytes.
    pub bytes: u64,
}

/// The layout that a job needs: its files that are missing or too short.
pub(crate) struct Task<'a>(Vec<Missing<'a>>);

/// A file that is missing or too short.
#[derive(Clone, Copy)]
struct Missing<'a> {
    plan: &'a FilePlan,
    /// The length that it needs.
    bytes: u64,
    /// Whether nothing had its name when it was looked for.
    is_absent: bool,
}

impl<'a> Task<'a> {
    /// That of `job`, now.
    pub(crate) fn of(job: &'a Job) -> Task<'a> {
        Task(missing(job).collect())
    }

    /// How much it is; `None` if every file exists.
    pub(crate) fn extent(&self) -> Option<Extent> {
        let bytes = self.0.iter().map(|file| file.bytes).sum();
        (!self.0.is_empty()).then_some(Extent { files: self.0.len(), bytes })
    }
}

/// Whether `job` needs a layout.
pub(crate) fn is_wanted(job: &Job) -> bool {
    missing(job).next().is_some()
}

/// Creates these files of `job`, passing the bytes done to `progress`, which returns whether to continue.
pub(crate) fn lay_out(
    job: &Job,
    Task(todo): Task,
    opener: &TargetOpener,
    progress: &mut dyn FnMut(u64) -> bool,
) -> Result<(), Failure> {
    make_directories(job)?;
    let mut contents = Contents::new(Filler::new(&fresh(&job.buffers.fill), job.access.seed));
    let mut changed = Vec::with_capacity(todo.len());
    for Missing { plan, bytes, is_absent } in todo {
        let made = opened(job, (plan, is_absent), opener).and_then(|(open, change)| {
            let direct = direct(job, plan, bytes, opener, change.identity);
            changed.push(change);
            make(job, (&open, direct.as_ref()), bytes, &mut contents, progress).map_err(
                |(operation, error)| Failure::file(&format!("lay out ({operation})"), &plan.path, &error),
            )
        });
        let Err(mut failure) = made else { continue };
        // Complete files are of use to the next run, unless they take the room that is missing.
        let is_full = failure.errno.is_some_and(Errno::is_no_space);
        if is_full {
            let which = if failure.errno == Some(Errno::ENOSPC) { "file system" } else { "quota" };
            failure.explanation =
                format!("the {which} has no room for {bytes} bytes; what was laid out is removed again");
        }
        let undone = changed.iter().filter(|change| is_full || change.plan.path == plan.path);
        undone.for_each(|change| change.undo(job, opener));
        return Err(failure);
    }
    Ok(())
}

/// What the layout of a file changes.
struct Change<'a> {
    plan: &'a FilePlan,
    /// The file itself, whatever has its name later.
    identity: Identity,
    /// Its length before; `None` if it was created.
    length_bytes: Option<u64>,
}

impl Change<'_> {
    /// Removes a file that was created, and gives another its former length.
    fn undo(&self, job: &Job, opener: &TargetOpener) {
        let there = stat::stat(&self.plan.path).ok().map(|found| found.identity());
        if there != Some(self.identity) {
            return;
        }
        let guarded = !job.files.allow_in_use;
        // The failure that leads here is what is reported.
        let _ = match self.length_bytes {
            None => opener.remove(self.plan, guarded),
            Some(bytes) => opener.open(self.plan, &OpenHow::READ_WRITE, guarded).and_then(|open| {
                file::truncate(&open, bytes)
                    .map_err(|error| Failure::file("truncate", &self.plan.path, &error))
            }),
        };
    }
}

/// Opens a file to lay it out, and creates it where it is missing.
fn opened<'a>(
    job: &Job,
    (plan, is_absent): (&'a FilePlan, bool),
    opener: &TargetOpener,
) -> Result<(File, Change<'a>), Failure> {
    let guarded = !job.files.allow_in_use;
    let how = OpenHow { create: job.files.may_create, interruptible: true, ..OpenHow::READ_WRITE };
    let created = match how.create && is_absent {
        // Another worker, or the end of a link, may be there by now.
        true => opener.open_and_look(plan, &OpenHow { exclusive: true, ..how }, guarded).ok(),
        false => None,
    };
    let is_new = created.is_some();
    let open = created
        .map_or_else(|| opener.open_and_look(plan, &how, guarded), Ok)
        .map_err(|failure| Failure { operation: format!("lay out ({})", failure.operation), ..failure })?;
    let (open, found) = open;
    let change =
        Change { plan, identity: found.identity(), length_bytes: (!is_new).then_some(found.size_bytes) };
    Ok((open, change))
}

/// The same file, opened past the page cache, if that is of use and the file system takes it.
fn direct(job: &Job, plan: &FilePlan, bytes: u64, opener: &TargetOpener, identity: Identity) -> Option<File> {
    let is_wanted = job.files.lay_out_contents && job.files.invalidate && bytes >= DIRECT_BYTES_MIN;
    let how = OpenHow { direct: true, interruptible: true, ..OpenHow::WRITE };
    let open = || opener.open_and_look(plan, &how, !job.files.allow_in_use).ok();
    let (open, found) = is_wanted.then(open).flatten()?;
    (found.identity() == identity).then_some(open)
}

/// Creates the directories of the job's file names, parents first.
pub(crate) fn make_directories(job: &Job) -> Result<(), Failure> {
    for directory in &job.files.create_directories {
        std::fs::create_dir_all(directory)
            .map_err(|error| Failure::file("create directory", directory, &error))?;
    }
    Ok(())
}

fn missing(job: &Job) -> impl Iterator<Item = Missing<'_>> {
    job.files.list.iter().filter(|_| !job.files.create_on_open).filter_map(|plan| {
        let bytes = plan.lay_out_bytes.filter(|_| plan.kind == FileKind::Regular)?;
        let found = stat::stat(&plan.path);
        let there = found.as_ref().map_or(0, |found| found.size_bytes);
        (there < bytes).then_some(Missing { plan, bytes, is_absent: found.is_err() })
    })
}

type Failed = (&'static str, io::Error);

/// The job's own contents, but with different random data everywhere: if written data cannot be deduplicated, data
/// that is read must not be, either.
fn fresh(fill: &Fill) -> Fill {
    let mut fill = fill.clone();
    if let Fill::Random { refill, .. } | Fill::Compressible { refill, .. } = &mut fill {
        *refill = true;
    }
    fill
}

fn make(
    job: &Job,
    (open, direct): (&File, Option<&File>),
    bytes: u64,
    contents: &mut Contents,
    progress: &mut dyn FnMut(u64) -> bool,
) -> Result<(), Failed> {
    let reserved = reserve(job.files.fallocate, open, bytes);
    if job.files.lay_out_contents {
        reserved?;
        layout_writer::write((open, direct), bytes, contents, progress).map_err(|error| ("write", error))?;
        if job.files.create_fsync {
            file::fsync(open).map_err(|error| ("fsync", error))?;
        }
    }
    // Without contents the file keeps the length that preallocation gave it: the job measures writes that extend it,
    // until the file system is full.
    Ok(())
}

fn reserve(how: Fallocate, open: &File, bytes: u64) -> Result<(), Failed> {
    let allocated = match how {
        Fallocate::None => return Ok(()),
        Fallocate::Truncate => file::truncate(open, bytes),
        Fallocate::Native => file::allocate(open, Allocate::Native, 0, bytes),
        Fallocate::Posix => file::allocate(open, Allocate::Posix, 0, bytes),
        Fallocate::Keep => file::allocate(open, Allocate::KeepSize, 0, bytes),
    };
    match allocated {
        // Not every file system can preallocate; the data is written anyway.
        Err(error) if Errno::of(&error).is_some_and(Errno::is_no_space) => Err(("fallocate", error)),
        _ => Ok(()),
    }
}
