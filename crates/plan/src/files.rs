//! The files of one worker: where they are, which part of each is used, and what has to exist before the run.
//!
//! Invariant: offsets and lengths are resolved to bytes; nothing is relative to a size not yet known, except for a
//! target that does not report a size, whose `length_bytes` is what the job requests.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use fiord_options::{Spec, bytes, job};

/// A job's name in the name of a file that fiord makes up. A slash would name a directory, and `../` one elsewhere.
pub(crate) fn as_file_name(job: &OsStr) -> OsString {
    OsString::from_vec(bytes::replace(job.as_bytes(), b"/", b"_"))
}

/// What a path is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A regular file (there already, or to be laid out).
    Regular,
    /// A block device.
    Block,
    /// A character device.
    Char,
    /// A pipe or socket.
    Pipe,
    /// No file at all (the null engine's).
    None,
}

impl FileKind {
    /// Its name in messages, as it follows "is".
    pub fn words(self) -> &'static str {
        match self {
            FileKind::Regular => "a regular file",
            FileKind::Block => "a block device",
            FileKind::Char => "a character device",
            FileKind::Pipe => "a pipe or socket",
            FileKind::None => "no file",
        }
    }
}

/// One file of a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePlan {
    /// Where it is, as opened.
    pub path: PathBuf,
    /// The kind that was found, never the one that the job claims.
    pub kind: FileKind,
    /// Major and minor number of a block device: what is opened must be that one.
    pub device: Option<(u32, u32)>,
    /// First byte used.
    pub offset_bytes: u64,
    /// Bytes used from there: I/O stays within `offset_bytes..offset_bytes + length_bytes`.
    pub length_bytes: u64,
    /// Size the file must have before the run; `None` when nothing has to be laid out or extended. Whether the space
    /// must be written as well is `Files::lay_out_contents`.
    pub lay_out_bytes: Option<u64>,
}

/// fio's `sync=`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SyncMode {
    /// Neither.
    #[default]
    None,
    /// `O_SYNC`.
    Sync,
    /// `O_DSYNC`.
    DataSync,
}

/// fio's `lockfile=`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileLock {
    /// I/Os of one job at a time.
    Exclusive,
    /// Reads of any number of jobs, or other I/Os of one.
    ReadWrite,
}

/// fio's `fallocate=`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fallocate {
    /// Nothing.
    None,
    /// `fallocate(2)`.
    Native,
    /// `posix_fallocate(3)`.
    Posix,
    /// `fallocate(2)` with `FALLOC_FL_KEEP_SIZE`.
    Keep,
    /// `ftruncate(2)` to the size.
    Truncate,
}

/// fio's `fadvise_hint=`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advice {
    /// No call.
    None,
    /// By the pattern: random or sequential.
    ByPattern,
    /// `POSIX_FADV_RANDOM`.
    Random,
    /// `POSIX_FADV_SEQUENTIAL`.
    Sequential,
    /// `POSIX_FADV_NOREUSE`.
    NoReuse,
}

/// The files of one worker, and how they are opened, laid out and closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Files {
    /// In service order.
    pub list: Vec<FilePlan>,
    /// How many may be open at once.
    pub open_at_once: u32,
    /// I/O bypasses the page cache.
    pub direct: bool,
    /// Its engine does so by itself, without `O_DIRECT`.
    pub direct_by_engine: bool,
    /// `O_SYNC` or `O_DSYNC`.
    pub sync: SyncMode,
    /// `lockfile`: locks on the files, which I/O is issued under.
    pub lock: Option<FileLock>,
    /// Opened for writing.
    pub writable: bool,
    /// May be created.
    pub may_create: bool,
    /// Laid out by writing, because the job reads them or has `overwrite`. Otherwise their space is only reserved
    /// (`fallocate`).
    pub lay_out_contents: bool,
    /// Directories to be created before the files are, parents first (a `filename` with directories in it).
    pub create_directories: Vec<PathBuf>,
    /// Created when opened instead of laid out before.
    pub create_on_open: bool,
    /// Laid out one worker after another (or each by its own worker, in parallel).
    pub create_serially: bool,
    /// `fsync` after laying out.
    pub create_fsync: bool,
    /// Stop after laying out.
    pub create_only: bool,
    /// Space reservation before laying out.
    pub fallocate: Fallocate,
    /// Access hint after opening.
    pub advice: Advice,
    /// `F_SET_RW_HINT` value (1 none .. 5 extreme), `None` when not set.
    pub write_hint: Option<u64>,
    /// Read everything before the run.
    pub pre_read: bool,
    /// Drop the page cache of the region before the run.
    pub invalidate: bool,
    /// Remove files at the end of the job.
    pub unlink: bool,
    /// Remove files at the end of each loop.
    pub unlink_each_loop: bool,
    /// `fsync` at the end of the job.
    pub end_fsync: bool,
    /// `syncfs` at the end of the job.
    pub end_syncfs: bool,
    /// `fsync` when a file is closed.
    pub fsync_on_close: bool,
    /// Write until the device is full; lengths are then far beyond any device, and `ENOSPC` is the regular end.
    pub fill_device: bool,
    /// A mounted or held device may be written to.
    pub allow_in_use: bool,
}

impl Files {
    /// The option that has them removed at the end of the job.
    pub const UNLINK_OPTION: &'static Spec = job::Files::unlink;
}
