//! What a recording has: its head and end, threads, and calls.
//!
//! Invariant: numbers of calls and bits of flags are those of the file; they never change within a version.

use crate::EntryKind;

/// The first bytes of every recording, before the version.
pub(super) const MAGIC: &[u8; 16] = b"fiord recording\n";
/// The version that is written, and the only one that is read.
pub(super) const VERSION: u8 = 1;

/// Tags of records; I/Os have those from `IO` on, whose lower bits are the `IO_` flags.
pub(super) const END: u8 = 0;
pub(super) const FILE: u8 = 1;
pub(super) const THREAD: u8 = 2;
pub(super) const STREAM: u8 = 3;
pub(super) const IO: u8 = 0x80;
/// The I/O is of the stream of the I/O before.
pub(super) const IO_SAME_STREAM: u8 = 0x40;
/// It begins where the one before of its stream ended.
pub(super) const IO_CONTINUES: u8 = 0x20;
/// It is as long as the one before of its stream.
pub(super) const IO_SAME_LENGTH: u8 = 0x10;
/// Distances and lengths are in sectors of 512 bytes.
pub(super) const IO_IN_SECTORS: u8 = 0x08;
/// Bits of the tag of an I/O that are not used.
pub(super) const IO_UNUSED: u8 = 0x07;

/// A sector, as a shift.
pub(super) const SECTOR_SHIFT: u32 = 9;
/// The longest name.
pub(super) const NAME_BYTES_MAX: usize = 64 << 10;

/// The call by which an I/O was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CallKind {
    /// `read`.
    Read,
    /// `write`.
    Write,
    /// `pread`.
    Pread,
    /// `pwrite`.
    Pwrite,
    /// `readv`.
    Readv,
    /// `writev`.
    Writev,
    /// `preadv`.
    Preadv,
    /// `pwritev`.
    Pwritev,
    /// `preadv2`.
    Preadv2,
    /// `pwritev2`.
    Pwritev2,
    /// `fsync`.
    Fsync,
    /// `fdatasync`.
    Fdatasync,
    /// `sync_file_range`.
    SyncFileRange,
    /// `fallocate` that punches a hole.
    PunchHole,
}

impl CallKind {
    /// All kinds, in the order of their numbers.
    pub const ALL: [CallKind; 14] = [
        CallKind::Read,
        CallKind::Write,
        CallKind::Pread,
        CallKind::Pwrite,
        CallKind::Readv,
        CallKind::Writev,
        CallKind::Preadv,
        CallKind::Pwritev,
        CallKind::Preadv2,
        CallKind::Pwritev2,
        CallKind::Fsync,
        CallKind::Fdatasync,
        CallKind::SyncFileRange,
        CallKind::PunchHole,
    ];

    /// What it does.
    pub const fn entry_kind(self) -> EntryKind {
        use CallKind as C;
        match self {
            C::Read | C::Pread | C::Readv | C::Preadv | C::Preadv2 => EntryKind::Read,
            C::Write | C::Pwrite | C::Writev | C::Pwritev | C::Pwritev2 => EntryKind::Write,
            C::Fsync => EntryKind::Sync,
            C::Fdatasync => EntryKind::DataSync,
            C::SyncFileRange => EntryKind::RangeSync,
            C::PunchHole => EntryKind::Trim,
        }
    }
}

/// How a file was open, as far as it matters for its I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct OpenFlags(pub(super) u8);

impl OpenFlags {
    /// `O_DIRECT`.
    pub const DIRECT: OpenFlags = OpenFlags(1);
    /// `O_SYNC`.
    pub const SYNC: OpenFlags = OpenFlags(2);
    /// `O_DSYNC`.
    pub const DSYNC: OpenFlags = OpenFlags(4);
    /// `O_APPEND`.
    pub const APPEND: OpenFlags = OpenFlags(8);
    /// All of them.
    pub(super) const ALL: OpenFlags = OpenFlags(15);

    /// Whether these are among them.
    pub const fn has(self, flags: OpenFlags) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// These and others.
    #[must_use]
    pub const fn with(self, flags: OpenFlags) -> OpenFlags {
        OpenFlags(self.0 | flags.0)
    }
}

/// A thread that made calls.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Thread {
    /// Its process.
    pub process: u32,
    /// Its number.
    pub thread: u32,
    /// Its name.
    pub name: String,
}

/// A call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordedIo {
    /// Number of the thread, in the order in which they were written.
    pub thread: u32,
    /// Number of the file, likewise.
    pub file: u32,
    /// Which call.
    pub call: CallKind,
    /// How the file was open.
    pub flags: OpenFlags,
    /// First byte; 0 of synchronizations of whole files.
    pub offset_bytes: u64,
    /// Bytes, as the call returned them; 0 of synchronizations of whole files.
    pub length_bytes: u64,
    /// When it began, in nanoseconds since the recording did.
    pub begin_ns: u64,
    /// How long it took.
    pub duration_ns: u64,
}

/// What is known before a recording begins.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RecordingHead {
    /// The program that records, and its version.
    pub made_by: String,
    /// The machine.
    pub host: String,
    /// The kernel's release.
    pub kernel: String,
    /// What was recorded: the command line, or the processes.
    pub command: String,
    /// When, in seconds since 1970.
    pub began_s: u64,
    /// Whether names were replaced.
    pub is_anonymous: bool,
}

/// What was seen and is not in a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LeftOut {
    /// Requests of `io_uring`.
    pub io_uring: u64,
    /// Requests of `io_submit`.
    pub libaio: u64,
    /// Files that were mapped into memory, shared.
    pub mappings: u64,
    /// Calls of `copy_file_range` and `sendfile`.
    pub copies: u64,
    /// Calls whose file could not be told.
    pub unknown: u64,
}

/// What is known when it has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RecordingEnd {
    /// How long it took.
    pub length_ns: u64,
    /// Events that the kernel had no room for.
    pub lost_events: u64,
    /// Processor time of the recording program.
    pub own_cpu_ns: u64,
    /// What is not in it.
    pub left_out: LeftOut,
    /// The status that the command ended with, if it was one.
    pub exit_status: Option<u32>,
}
