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
use fiord_workload::Filler;

use super::target_opener::TargetOpener;
use crate::failure::Failure;

/// Bytes per write when a file is filled.
const CHUNK_BYTES: u64 = 1 << 20;

/// The extent of a job's layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Task {
    /// Files.
    pub files: usize,
    /// Total bytes.
    pub bytes: u64,
}

/// The layout that `job` needs; `None` if every file exists.
pub(crate) fn task(job: &Job) -> Option<Task> {
    let missing: Vec<u64> = missing(job).map(|(_, bytes)| bytes).collect();
    (!missing.is_empty()).then(|| Task { files: missing.len(), bytes: missing.iter().sum() })
}

/// Creates the files of `job`, passing the bytes done to `progress`, which returns whether to continue.
pub(crate) fn lay_out(
    job: &Job,
    opener: &TargetOpener,
    progress: &mut dyn FnMut(u64) -> bool,
) -> Result<(), Failure> {
    make_directories(job)?;
    let todo: Vec<(&FilePlan, u64)> = missing(job).collect();
    let mut filler = Filler::new(&fresh(&job.buffers.fill), job.access.seed);
    for (plan, bytes) in todo {
        let how = OpenHow { create: job.files.may_create, interruptible: true, ..OpenHow::READ_WRITE };
        let open = opener.open(plan, &how, !job.files.allow_in_use).map_err(|failure| Failure {
            operation: format!("lay out ({})", failure.operation),
            ..failure
        })?;
        make(job, &open, bytes, &mut filler, progress).map_err(|(operation, error)| {
            let mut failure = Failure::file(&format!("lay out ({operation})"), &plan.path, &error);
            if Errno::of(&error) == Some(Errno::ENOSPC) {
                failure.explanation = format!("the file system has no room for {bytes} bytes");
            }
            failure
        })?;
    }
    Ok(())
}

/// Creates the directories of the job's file names, parents first.
pub(crate) fn make_directories(job: &Job) -> Result<(), Failure> {
    for directory in &job.files.create_directories {
        std::fs::create_dir_all(directory)
            .map_err(|error| Failure::file("create directory", directory, &error))?;
    }
    Ok(())
}

fn missing(job: &Job) -> impl Iterator<Item = (&FilePlan, u64)> {
    job.files.list.iter().filter(|_| !job.files.create_on_open).filter_map(|plan| {
        let wanted = plan.lay_out_bytes.filter(|_| plan.kind == FileKind::Regular)?;
        let there = std::fs::metadata(&plan.path).map_or(0, |meta| meta.len());
        (there < wanted).then_some((plan, wanted))
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
    open: &File,
    bytes: u64,
    filler: &mut Filler,
    progress: &mut dyn FnMut(u64) -> bool,
) -> Result<(), Failed> {
    let reserved = reserve(job.files.fallocate, open, bytes);
    if job.files.lay_out_contents {
        reserved?;
        fill(filler, open, bytes, progress).map_err(|error| ("write", error))?;
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
        Err(error) if Errno::of(&error) == Some(Errno::ENOSPC) => Err(("fallocate", error)),
        _ => Ok(()),
    }
}

fn fill(
    filler: &mut Filler,
    open: &File,
    bytes: u64,
    progress: &mut dyn FnMut(u64) -> bool,
) -> io::Result<()> {
    use std::os::unix::fs::FileExt;

    let mut buffer = vec![0; CHUNK_BYTES.min(bytes) as usize];
    filler.prime(&mut buffer);
    let mut done = 0;
    while done < bytes {
        let length = CHUNK_BYTES.min(bytes - done) as usize;
        filler.before_write(&mut buffer[..length], done);
        open.write_all_at(&buffer[..length], done)?;
        done += length as u64;
        if !progress(length as u64) {
            return Err(Errno::EINTR.into());
        }
    }
    Ok(())
}
