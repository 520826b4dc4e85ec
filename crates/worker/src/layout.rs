//! Laying out: what has to exist before a job runs is made here.
//!
//! Invariant: a file that is long enough already is not touched.

use std::fs::File;
use std::io;
use std::sync::mpsc::Sender;

use fiord_plan::files::Fallocate;
use fiord_plan::job::Fill;
use fiord_plan::{FileKind, FilePlan, Job};
use fiord_sys::file::{self, Allocate, OpenHow};
use fiord_workload::Filler;

use crate::door::Door;
use crate::failure::Failure;
use crate::scene::Scene;

/// Bytes written at once when a file is filled.
const CHUNK_BYTES: u64 = 1 << 20;

/// What is said of a layout that was told to stop.
const EINTR: i32 = 4;

/// What there is to lay out for a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Task {
    /// Files.
    pub files: usize,
    /// Bytes over all of them.
    pub bytes: u64,
}

/// What becomes of the files that are laid out before the first worker starts.
pub(crate) enum News {
    /// The files of this job are next.
    Begins(usize, Task),
    /// That many more bytes were written.
    Wrote(u64),
    /// The job's files are done, or cannot be.
    Ended(usize, Result<(), Failure>),
}

/// Lays out the files of all jobs that want it done one after another, and tells what becomes of them, until told to
/// stop.
pub(crate) fn lay_out_all(scene: &Scene, tell: &Sender<News>) {
    // Nobody to be told is nobody who waits.
    let tell = |news| drop(tell.send(news));
    for (number, job) in serial(&scene.plan.jobs) {
        let is_stopped = || scene.lives[number].is_told_to_stop();
        if is_stopped() {
            return;
        }
        let Some(task) = task(job) else { continue };
        tell(News::Begins(number, task));
        let laid_out = lay_out(job, &scene.door, &mut |bytes| {
            tell(News::Wrote(bytes));
            !is_stopped()
        });
        tell(News::Ended(number, laid_out));
    }
}

/// Whether any of these jobs has files to be laid out before the first worker starts.
pub(crate) fn is_wanted(jobs: &[Job]) -> bool {
    serial(jobs).any(|(_, job)| task(job).is_some())
}

fn serial(jobs: &[Job]) -> impl Iterator<Item = (usize, &Job)> {
    jobs.iter().enumerate().filter(|(_, job)| job.files.create_serially)
}

/// What laying out `job` will have to do; `None` when every file is there.
pub(crate) fn task(job: &Job) -> Option<Task> {
    let missing: Vec<u64> = missing(job).map(|(_, bytes)| bytes).collect();
    (!missing.is_empty()).then(|| Task { files: missing.len(), bytes: missing.iter().sum() })
}

/// Makes the files of `job`, telling `progress` the bytes done; `progress` says whether to go on.
pub(crate) fn lay_out(job: &Job, door: &Door, progress: &mut dyn FnMut(u64) -> bool) -> Result<(), Failure> {
    make_directories(job)?;
    let todo: Vec<(&FilePlan, u64)> = missing(job).collect();
    let mut filler = Filler::new(&fresh(&job.buffers.fill), job.access.seed);
    for (plan, bytes) in todo {
        let how = OpenHow { create: job.files.may_create, interruptible: true, ..OpenHow::READ_WRITE };
        let open = door.open(plan, &how, !job.files.allow_in_use).map_err(|failure| Failure {
            operation: format!("lay out ({})", failure.operation),
            ..failure
        })?;
        make(job, &open, bytes, &mut filler, progress).map_err(|(operation, error)| {
            let mut failure = Failure::file(&format!("lay out ({operation})"), &plan.path, &error);
            if error.raw_os_error() == Some(28) {
                failure.explanation = format!("the file system has no room for {bytes} bytes");
            }
            failure
        })?;
    }
    Ok(())
}

/// Makes the directories of the job's file names, parents first.
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

/// Contents as the job's own, but never the same again: what is read from the disk must not be foldable when what is
/// written is not.
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
    // Without contents the file is as long as reserving has made it: writes that extend it are what is measured, up
    // to where there is no more room.
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
        // Not every file system can reserve; the data is written anyway.
        Err(error) if error.raw_os_error() == Some(28) => Err(("fallocate", error)),
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
            return Err(io::Error::from_raw_os_error(EINTR));
        }
    }
    Ok(())
}
