//! Open files: opening with the flags a benchmark asks for, making durable, laying out, advising.
//!
//! Invariant: one function, one system call, with two exceptions that are stated where they stand (`open` gives up
//! `O_NOATIME` when it is not allowed, `allocate` in POSIX mode is the C library's loop).

use crate::errno::{check, check_posix};
use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Which writes have to be on the medium before the call returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// None: the page cache may keep them.
    #[default]
    Cached,
    /// Data, and the metadata needed to read it back (`O_DSYNC`).
    DataSync,
    /// Data and all metadata (`O_SYNC`).
    Sync,
}

/// How to open a file; the default opens nothing (set `read` or `write`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenHow {
    /// For reading.
    pub read: bool,
    /// For writing.
    pub write: bool,
    /// Create it when missing, with mode 0644 less the umask.
    pub create: bool,
    /// With `create`: fail where the file exists. On a block device without `create`: fail where it is mounted or
    /// otherwise claimed (`O_EXCL`).
    pub exclusive: bool,
    /// Cut it to nothing.
    pub truncate: bool,
    /// Every write goes to the end.
    pub append: bool,
    /// Past the page cache (`O_DIRECT`).
    pub direct: bool,
    /// What a finished write promises.
    pub durability: Durability,
    /// Leave the access time alone, where that is permitted.
    pub noatime: bool,
    /// Do not wait (for the other end of a pipe, or for a medium).
    pub nonblocking: bool,
    /// A signal ends the waiting, with `EINTR`.
    pub interruptible: bool,
}

impl OpenHow {
    /// For reading alone.
    pub const READ: OpenHow = OpenHow { read: true, ..OpenHow::NOTHING };
    /// For writing alone, of a file that exists.
    pub const WRITE: OpenHow = OpenHow { write: true, ..OpenHow::NOTHING };
    /// For both, of a file that exists.
    pub const READ_WRITE: OpenHow = OpenHow { read: true, ..OpenHow::WRITE };

    const NOTHING: OpenHow = OpenHow {
        read: false,
        write: false,
        create: false,
        exclusive: false,
        truncate: false,
        append: false,
        direct: false,
        durability: Durability::Cached,
        noatime: false,
        nonblocking: false,
        interruptible: false,
    };

    fn flags(&self) -> libc::c_int {
        let access = match (self.read, self.write || self.append) {
            (true, true) => libc::O_RDWR,
            (false, true) => libc::O_WRONLY,
            (_, false) => libc::O_RDONLY,
        };
        let durability = match self.durability {
            Durability::Cached => 0,
            Durability::DataSync => libc::O_DSYNC,
            Durability::Sync => libc::O_SYNC,
        };
        let wanted = [
            (self.create, libc::O_CREAT),
            (self.exclusive, libc::O_EXCL),
            (self.truncate, libc::O_TRUNC),
            (self.append, libc::O_APPEND),
            (self.direct, libc::O_DIRECT),
            (self.noatime, libc::O_NOATIME),
            (self.nonblocking, libc::O_NONBLOCK),
        ];
        let flags = wanted.iter().filter(|(on, _)| *on).fold(0, |all, (_, flag)| all | flag);
        access | durability | flags | libc::O_CLOEXEC
    }
}

/// Opens `path`. `noatime` is a wish: only the owner may have it, so `EPERM` is answered by opening without.
pub fn open(path: &Path, how: &OpenHow) -> io::Result<File> {
    let name = c_path(path)?;
    let flags = how.flags();
    match open_raw(&name, flags, how.interruptible) {
        Err(error) if how.noatime && error.raw_os_error() == Some(libc::EPERM) => {
            open_raw(&name, flags & !libc::O_NOATIME, how.interruptible)
        }
        result => result,
    }
}

fn open_raw(name: &CString, flags: libc::c_int, interruptible: bool) -> io::Result<File> {
    const MODE: libc::mode_t = 0o644;
    loop {
        // SAFETY: `name` ends in NUL and outlives the call.
        match check(unsafe { libc::open(name.as_ptr(), flags, MODE) }) {
            // SAFETY: the kernel just gave us this descriptor; nobody else owns it.
            Ok(fd) => return Ok(unsafe { File::from_raw_fd(fd) }),
            Err(error) if error.kind() == io::ErrorKind::Interrupted && !interruptible => {}
            Err(error) => return Err(error),
        }
    }
}

/// A path as the kernel takes it; a NUL inside is `EINVAL`.
pub(crate) fn c_path(path: &Path) -> io::Result<CString> {
    CString::new(path.as_os_str().as_bytes()).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))
}

/// Moves the file's own position to `offset_bytes` from its start.
#[inline]
pub fn seek(file: impl AsFd, offset_bytes: u64) -> io::Result<u64> {
    seek_raw(file, offset_bytes as libc::off64_t, libc::SEEK_SET)
}

/// Moves the position to the end and answers where that is: the size, also of a block device, in bytes.
pub fn seek_end(file: impl AsFd) -> io::Result<u64> {
    seek_raw(file, 0, libc::SEEK_END)
}

#[inline]
fn seek_raw(file: impl AsFd, offset: libc::off64_t, whence: libc::c_int) -> io::Result<u64> {
    // SAFETY: no memory is passed.
    let at = unsafe { libc::lseek64(file.as_fd().as_raw_fd(), offset, whence) };
    u64::try_from(at).map_err(|_| io::Error::last_os_error())
}

/// `fsync`: data and metadata are on the medium.
#[inline]
pub fn fsync(file: impl AsFd) -> io::Result<()> {
    // SAFETY: no memory is passed.
    check(unsafe { libc::fsync(file.as_fd().as_raw_fd()) }).map(drop)
}

/// `fdatasync`: data, and the metadata needed to read it, are on the medium.
#[inline]
pub fn fdatasync(file: impl AsFd) -> io::Result<()> {
    // SAFETY: no memory is passed.
    check(unsafe { libc::fdatasync(file.as_fd().as_raw_fd()) }).map(drop)
}

/// `syncfs`: everything dirty on the file system that holds `file` is on the medium.
pub fn syncfs(file: impl AsFd) -> io::Result<()> {
    // SAFETY: no memory is passed.
    check(unsafe { libc::syncfs(file.as_fd().as_raw_fd()) }).map(drop)
}

/// What `sync_file_range` is to do about a range's dirty pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SyncRange {
    /// Wait first for writes already under way.
    pub wait_before: bool,
    /// Start writing what is dirty.
    pub write: bool,
    /// Wait for those writes.
    pub wait_after: bool,
}

/// `sync_file_range` over `len_bytes` from `offset_bytes` (0 bytes: to the end of the file). Not a durability promise:
/// metadata and the drive's cache are left alone.
#[inline]
pub fn sync_file_range(
    file: impl AsFd,
    offset_bytes: u64,
    len_bytes: u64,
    what: SyncRange,
) -> io::Result<()> {
    let flags = [
        (what.wait_before, libc::SYNC_FILE_RANGE_WAIT_BEFORE),
        (what.write, libc::SYNC_FILE_RANGE_WRITE),
        (what.wait_after, libc::SYNC_FILE_RANGE_WAIT_AFTER),
    ];
    let flags = flags.iter().filter(|(on, _)| *on).fold(0, |all, (_, flag)| all | flag);
    let (offset, len) = (offset_bytes as libc::off64_t, len_bytes as libc::off64_t);
    // SAFETY: no memory is passed.
    check(unsafe { libc::sync_file_range(file.as_fd().as_raw_fd(), offset, len, flags) }).map(drop)
}

/// How blocks are set aside for a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allocate {
    /// `fallocate`, growing the file; `EOPNOTSUPP` where the file system cannot.
    Native,
    /// `posix_fallocate`, which writes zeros where the file system cannot allocate.
    Posix,
    /// `fallocate` leaving the size as it is.
    KeepSize,
}

/// Sets `len_bytes` from `offset_bytes` aside.
pub fn allocate(file: impl AsFd, how: Allocate, offset_bytes: u64, len_bytes: u64) -> io::Result<()> {
    match how {
        Allocate::Native => fallocate(file, 0, offset_bytes, len_bytes),
        Allocate::KeepSize => fallocate(file, libc::FALLOC_FL_KEEP_SIZE, offset_bytes, len_bytes),
        Allocate::Posix => {
            let (offset, len) = (offset_bytes as libc::off64_t, len_bytes as libc::off64_t);
            // SAFETY: no memory is passed.
            check_posix(unsafe { libc::posix_fallocate64(file.as_fd().as_raw_fd(), offset, len) })
        }
    }
}

/// Gives a range's blocks back; it reads as zeros and the size stays. This is how a file is trimmed; block devices
/// take it too.
#[inline]
pub fn punch_hole(file: impl AsFd, offset_bytes: u64, len_bytes: u64) -> io::Result<()> {
    fallocate(file, libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE, offset_bytes, len_bytes)
}

/// Makes a range read as zeros, keeping its blocks where the file system can.
pub fn zero_range(file: impl AsFd, offset_bytes: u64, len_bytes: u64) -> io::Result<()> {
    fallocate(file, libc::FALLOC_FL_ZERO_RANGE, offset_bytes, len_bytes)
}

#[inline]
fn fallocate(file: impl AsFd, mode: libc::c_int, offset_bytes: u64, len_bytes: u64) -> io::Result<()> {
    let (offset, len) = (offset_bytes as libc::off64_t, len_bytes as libc::off64_t);
    // SAFETY: no memory is passed.
    check(unsafe { libc::fallocate64(file.as_fd().as_raw_fd(), mode, offset, len) }).map(drop)
}

/// Makes the file exactly `len_bytes` long.
pub fn truncate(file: impl AsFd, len_bytes: u64) -> io::Result<()> {
    // SAFETY: no memory is passed.
    check(unsafe { libc::ftruncate64(file.as_fd().as_raw_fd(), len_bytes as libc::off64_t) }).map(drop)
}

/// What is about to happen to a range (`posix_fadvise`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// Nothing special.
    Normal,
    /// Read in no order: no read-ahead.
    Random,
    /// Read in order: more read-ahead.
    Sequential,
    /// Needed soon: read it now.
    WillNeed,
    /// Not needed: drop clean pages.
    DontNeed,
    /// Needed once.
    NoReuse,
}

/// Advises about `len_bytes` from `offset_bytes` (0 bytes: to the end of the file).
pub fn advise(file: impl AsFd, advice: Advice, offset_bytes: u64, len_bytes: u64) -> io::Result<()> {
    let advice = match advice {
        Advice::Normal => libc::POSIX_FADV_NORMAL,
        Advice::Random => libc::POSIX_FADV_RANDOM,
        Advice::Sequential => libc::POSIX_FADV_SEQUENTIAL,
        Advice::WillNeed => libc::POSIX_FADV_WILLNEED,
        Advice::DontNeed => libc::POSIX_FADV_DONTNEED,
        Advice::NoReuse => libc::POSIX_FADV_NOREUSE,
    };
    let (offset, len) = (offset_bytes as libc::off64_t, len_bytes as libc::off64_t);
    // SAFETY: no memory is passed.
    check_posix(unsafe { libc::posix_fadvise64(file.as_fd().as_raw_fd(), offset, len, advice) })
}

/// How long written data is expected to live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum WriteLife {
    /// Nothing said.
    NotSet = 0,
    /// Said to be unknown.
    None = 1,
    /// Short.
    Short = 2,
    /// Medium.
    Medium = 3,
    /// Long.
    Long = 4,
    /// Extremely long.
    Extreme = 5,
}

/// Tells the inode how long its data lives (`F_SET_RW_HINT`).
pub fn set_inode_write_life(file: impl AsFd, life: WriteLife) -> io::Result<()> {
    const F_SET_RW_HINT: libc::c_int = 1024 + 12;
    set_write_life(file, F_SET_RW_HINT, life)
}

/// Tells this open file how long what is written through it lives (`F_SET_FILE_RW_HINT`). Kernels from 5.17 to 6.12
/// answer `EINVAL`: they know only the inode's.
pub fn set_file_write_life(file: impl AsFd, life: WriteLife) -> io::Result<()> {
    const F_SET_FILE_RW_HINT: libc::c_int = 1024 + 14;
    set_write_life(file, F_SET_FILE_RW_HINT, life)
}

fn set_write_life(file: impl AsFd, command: libc::c_int, life: WriteLife) -> io::Result<()> {
    let value = life as u64;
    // SAFETY: both commands read one u64 behind the pointer, which lives through the call.
    check(unsafe { libc::fcntl(file.as_fd().as_raw_fd(), command, &raw const value) }).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{TempFile, temp_path};

    #[test]
    fn flags_say_what_was_asked_for() {
        let how = OpenHow { direct: true, durability: Durability::DataSync, ..OpenHow::READ_WRITE };
        assert_eq!(how.flags(), libc::O_RDWR | libc::O_DIRECT | libc::O_DSYNC | libc::O_CLOEXEC);
        assert_eq!(OpenHow::READ.flags(), libc::O_RDONLY | libc::O_CLOEXEC);
        let how = OpenHow { append: true, create: true, ..OpenHow::default() };
        assert_eq!(how.flags(), libc::O_WRONLY | libc::O_APPEND | libc::O_CREAT | libc::O_CLOEXEC);
    }

    #[test]
    fn opening_creates_only_when_told_to() {
        let path = temp_path("open");
        let missing = open(&path, &OpenHow::WRITE).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
        let how = OpenHow { create: true, exclusive: true, noatime: true, ..OpenHow::READ_WRITE };
        drop(open(&path, &how).unwrap());
        let second = open(&path, &how).unwrap_err();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(second.kind(), io::ErrorKind::AlreadyExists);
    }

    #[test]
    fn a_nul_in_a_path_is_an_error() {
        let error = open(Path::new("a\0b"), &OpenHow::READ).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
    }

    #[test]
    fn allocation_modes_differ_in_the_size_they_leave() {
        let temp = TempFile::new("allocate");
        let size = || temp.file.metadata().unwrap().len();
        match allocate(&temp.file, Allocate::KeepSize, 0, 8192) {
            Ok(()) => assert_eq!(size(), 0),
            Err(error) => println!("skipped: this file system cannot allocate: {error}"),
        }
        allocate(&temp.file, Allocate::Posix, 0, 8192).unwrap();
        assert_eq!(size(), 8192);
        truncate(&temp.file, 4096).unwrap();
        assert_eq!(size(), 4096);
        assert_eq!(seek_end(&temp.file).unwrap(), 4096);
    }

    #[test]
    fn a_punched_hole_reads_as_zeros() {
        let temp = TempFile::new("punch");
        std::fs::write(&temp.path, [7u8; 8192]).unwrap();
        if let Err(error) = punch_hole(&temp.file, 0, 4096) {
            println!("skipped: this file system punches no holes: {error}");
            return;
        }
        let bytes = std::fs::read(&temp.path).unwrap();
        assert!(bytes[..4096].iter().all(|&byte| byte == 0));
        assert!(bytes[4096..].iter().all(|&byte| byte == 7));
    }

    #[test]
    fn syncs_and_advice_are_taken() {
        let temp = TempFile::new("sync");
        std::fs::write(&temp.path, [1u8; 4096]).unwrap();
        fsync(&temp.file).unwrap();
        fdatasync(&temp.file).unwrap();
        let all = SyncRange { wait_before: true, write: true, wait_after: true };
        sync_file_range(&temp.file, 0, 4096, all).unwrap();
        advise(&temp.file, Advice::Random, 0, 0).unwrap();
        advise(&temp.file, Advice::DontNeed, 0, 0).unwrap();
    }

    #[test]
    fn an_inode_takes_a_write_life() {
        let temp = TempFile::new("life");
        set_inode_write_life(&temp.file, WriteLife::Short).unwrap();
    }
}
