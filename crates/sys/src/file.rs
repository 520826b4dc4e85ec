//! Files: opening with the flags a benchmark needs, syncing, allocating, advising.
//!
//! Invariant: one function, one system call, with two exceptions that are documented at the function (`open` tries again
//! without `O_NOATIME` where that is not allowed, `allocate` in POSIX mode is the C library's loop).

use crate::errno::{check, check_posix};
use rustix::fs::{CWD, FallocateFlags, Mode, OFlags};
use std::fs::File;
use std::io;
use std::num::NonZeroU64;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;

/// Which data has to be on the medium before a write returns.
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
    /// Truncate it to 0 bytes.
    pub truncate: bool,
    /// Every write appends.
    pub append: bool,
    /// Bypass the page cache (`O_DIRECT`).
    pub direct: bool,
    /// What is durable when a write returns.
    pub durability: Durability,
    /// Do not update the access time, where that is permitted.
    pub noatime: bool,
    /// Do not wait (for the other end of a pipe, or for a medium).
    pub nonblocking: bool,
    /// A signal ends the wait with `EINTR`.
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

    /// In the numbers of `libc`, because `rustix` takes `O_DSYNC` for `O_SYNC`.
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

/// Opens `path`. `noatime` is a request: only the owner may set it, so on `EPERM` the file is opened without it.
pub fn open(path: &Path, how: &OpenHow) -> io::Result<File> {
    let flags = OFlags::from_bits_retain(how.flags().cast_unsigned());
    let opened = match open_with(path, flags, how.interruptible) {
        Err(rustix::io::Errno::PERM) if how.noatime => {
            open_with(path, flags.difference(OFlags::NOATIME), how.interruptible)
        }
        result => result,
    };
    Ok(opened?)
}

fn open_with(path: &Path, flags: OFlags, interruptible: bool) -> rustix::io::Result<File> {
    let mode = Mode::from_raw_mode(0o644);
    loop {
        match rustix::fs::openat(CWD, path, flags, mode) {
            Err(rustix::io::Errno::INTR) if !interruptible => {}
            result => return result.map(File::from),
        }
    }
}

/// The file position in bytes from the start; `ESPIPE` if the file has none.
pub fn position(file: impl AsFd) -> io::Result<u64> {
    Ok(rustix::fs::tell(file)?)
}

/// `fsync`: data and metadata are on the medium.
#[inline]
pub fn fsync(file: impl AsFd) -> io::Result<()> {
    Ok(rustix::fs::fsync(file)?)
}

/// `fdatasync`: data, and the metadata needed to read it, are on the medium.
#[inline]
pub fn fdatasync(file: impl AsFd) -> io::Result<()> {
    Ok(rustix::fs::fdatasync(file)?)
}

/// `syncfs`: everything dirty on the file system that holds `file` is on the medium.
pub fn syncfs(file: impl AsFd) -> io::Result<()> {
    Ok(rustix::fs::syncfs(file)?)
}

/// How blocks are allocated for a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allocate {
    /// `fallocate`, growing the file; `EOPNOTSUPP` where the file system cannot.
    Native,
    /// `posix_fallocate`, which writes zeros where the file system cannot allocate.
    Posix,
    /// `fallocate` leaving the size as it is.
    KeepSize,
}

/// Allocates the blocks of `len_bytes` from `offset_bytes`.
pub fn allocate(file: impl AsFd, how: Allocate, offset_bytes: u64, len_bytes: u64) -> io::Result<()> {
    match how {
        Allocate::Native => {
            Ok(rustix::fs::fallocate(file, FallocateFlags::empty(), offset_bytes, len_bytes)?)
        }
        Allocate::KeepSize => {
            Ok(rustix::fs::fallocate(file, FallocateFlags::KEEP_SIZE, offset_bytes, len_bytes)?)
        }
        Allocate::Posix => {
            let (offset, len) = (offset_bytes.cast_signed(), len_bytes.cast_signed());
            // SAFETY: no memory is passed.
            check_posix(unsafe { libc::posix_fallocate64(file.as_fd().as_raw_fd(), offset, len) })
        }
    }
}

/// Makes the file exactly `len_bytes` long.
pub fn truncate(file: impl AsFd, len_bytes: u64) -> io::Result<()> {
    Ok(rustix::fs::ftruncate(file, len_bytes)?)
}

/// The expected access to a range (`posix_fadvise`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// Random order: no read-ahead.
    Random,
    /// Sequential order: more read-ahead.
    Sequential,
    /// Not needed: drop clean pages.
    DontNeed,
    /// Needed once.
    NoReuse,
}

/// Advises about `len_bytes` from `offset_bytes` (0 bytes: to the end of the file).
pub fn advise(file: impl AsFd, advice: Advice, offset_bytes: u64, len_bytes: u64) -> io::Result<()> {
    use rustix::fs::Advice as Raw;
    let advice = match advice {
        Advice::Random => Raw::Random,
        Advice::Sequential => Raw::Sequential,
        Advice::DontNeed => Raw::DontNeed,
        Advice::NoReuse => Raw::NoReuse,
    };
    Ok(rustix::fs::fadvise(file, offset_bytes, NonZeroU64::new(len_bytes), advice)?)
}

/// How long written data is expected to live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum WriteLife {
    /// No hint.
    NotSet = 0,
    /// Explicitly unknown.
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

/// Sets the inode's hint on the lifetime of its data (`F_SET_RW_HINT`).
pub fn set_inode_write_life(file: impl AsFd, life: WriteLife) -> io::Result<()> {
    const F_SET_RW_HINT: libc::c_int = 1024 + 12;
    let value = life as u64;
    // SAFETY: the command reads one u64 behind the pointer, which lives through the call.
    check(unsafe { libc::fcntl(file.as_fd().as_raw_fd(), F_SET_RW_HINT, &raw const value) }).map(drop)
}

/// The flag of `open` that fails with `ELOOP` at a symbolic link, instead of following it.
pub const NO_FOLLOW: i32 = libc::O_NOFOLLOW;

/// Renames a file; unlike `std::fs::rename` it replaces none.
///
/// # Errors
/// Those of `renameat2`: `EEXIST` if `to` exists, `EINVAL` if the file system cannot rename in this way.
pub fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    Ok(rustix::fs::renameat_with(CWD, from, CWD, to, rustix::fs::RenameFlags::NOREPLACE)?)
}

/// Opens a new file in `directory` for reading and writing that has no name, so that it is gone when it is closed.
///
/// # Errors
/// Those of `open`.
pub fn unnamed(directory: &Path) -> io::Result<File> {
    let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    let mode = Mode::RUSR | Mode::WUSR;
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    match rustix::fs::openat(CWD, directory, flags, mode) {
        Ok(file) => Ok(file.into()),
        Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::ISDIR) => {
            // Some file systems have no files without a name: one is created and loses it.
            let name = format!(".fiord-{}-{:x}", std::process::id(), crate::clock::monotonic_ns());
            let path = directory.join(name);
            let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::CLOEXEC;
            let file = rustix::fs::openat(CWD, &path, flags, mode)?;
            rustix::fs::unlink(&path)?;
            Ok(file.into())
        }
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_renamed_file_replaces_none() {
        let directory = crate::testing::temp_path("renamed");
        std::fs::create_dir(&directory).unwrap();
        let [one, other, free] = ["one", "other", "free"].map(|name| directory.join(name));
        std::fs::write(&one, "one").unwrap();
        std::fs::write(&other, "other").unwrap();
        if let Err(error) = super::rename_new(&one, &free) {
            fiord_testing::skip!("this file system always replaces: {error}");
        }
        let refused = super::rename_new(&free, &other).unwrap_err();
        assert_eq!(refused.kind(), std::io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read_to_string(&other).unwrap(), "other");
        assert_eq!(std::fs::read_to_string(&free).unwrap(), "one");
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn a_file_without_a_name_is_in_no_directory() {
        use std::io::{Read, Seek, Write};
        let directory = crate::testing::temp_path("unnamed");
        std::fs::create_dir(&directory).unwrap();
        let mut file = super::unnamed(&directory).unwrap();
        file.write_all(b"some text").unwrap();
        file.rewind().unwrap();
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        assert_eq!(text, "some text");
        assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 0);
        std::fs::remove_dir(&directory).unwrap();
        assert!(super::unnamed(&directory).is_err());
    }

    use super::*;
    use crate::Errno;
    use crate::testing::{TempFile, temp_path};

    #[test]
    fn open_options_become_flags() {
        let how = OpenHow { direct: true, durability: Durability::DataSync, ..OpenHow::READ_WRITE };
        assert_eq!(how.flags(), libc::O_RDWR | libc::O_DIRECT | libc::O_DSYNC | libc::O_CLOEXEC);
        assert_eq!(OpenHow::READ.flags(), libc::O_RDONLY | libc::O_CLOEXEC);
        let how = OpenHow { append: true, create: true, ..OpenHow::default() };
        assert_eq!(how.flags(), libc::O_WRONLY | libc::O_APPEND | libc::O_CREAT | libc::O_CLOEXEC);
    }

    #[test]
    fn opening_creates_only_on_request() {
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
    fn durability_reaches_the_kernel() {
        let temp = TempFile::new("durability");
        let synchronous = |durability| {
            let file = open(&temp.path, &OpenHow { durability, ..OpenHow::WRITE }).unwrap();
            rustix::fs::fcntl_getfl(&file).unwrap().bits().cast_signed() & libc::O_SYNC
        };
        assert_eq!(synchronous(Durability::Cached), 0);
        assert_eq!(synchronous(Durability::DataSync), libc::O_DSYNC);
        assert_eq!(synchronous(Durability::Sync), libc::O_SYNC);
    }

    #[test]
    fn errors_have_the_kernels_numbers() {
        let (_reader, writer) = io::pipe().unwrap();
        let number = |result: io::Result<()>| Errno::of(&result.unwrap_err());
        assert_eq!(number(position(&writer).map(drop)), Some(Errno::ESPIPE));
        assert_eq!(number(fsync(&writer)), Some(Errno::EINVAL));
        assert_eq!(number(truncate(&writer, 1)), Some(Errno::EINVAL));
        assert_eq!(number(advise(&writer, Advice::Random, 0, 0)), Some(Errno::ESPIPE));
        assert_eq!(number(allocate(&writer, Allocate::Native, 0, 1)), Some(Errno::ESPIPE));
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
            Err(error) => fiord_testing::skipped(format_args!("this file system cannot allocate: {error}")),
        }
        allocate(&temp.file, Allocate::Posix, 0, 8192).unwrap();
        assert_eq!(size(), 8192);
        truncate(&temp.file, 4096).unwrap();
        assert_eq!(size(), 4096);
    }

    #[test]
    fn syncs_and_advice_are_accepted() {
        let temp = TempFile::new("sync");
        std::fs::write(&temp.path, [1u8; 4096]).unwrap();
        fsync(&temp.file).unwrap();
        fdatasync(&temp.file).unwrap();
        advise(&temp.file, Advice::Random, 0, 0).unwrap();
        advise(&temp.file, Advice::DontNeed, 0, 0).unwrap();
    }

    #[test]
    fn an_inode_accepts_a_write_life() {
        let temp = TempFile::new("life");
        set_inode_write_life(&temp.file, WriteLife::Short).unwrap();
    }
}
