//! Metadata of paths, open files and their file systems.
//!
//! Invariant: values as the kernel reports them, in bytes; nothing is guessed, an unknown value is `None`.

use crate::width::to_u64;
use rustix::fs::{AtFlags, CWD, FileType, StatxFlags};
use std::fmt;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

/// A file's type (symbolic links followed).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InodeKind {
    /// A file in a file system.
    Regular,
    /// A block device.
    Block,
    /// A character device.
    Char,
    /// A directory.
    Directory,
    /// A named pipe.
    Fifo,
    /// A socket, or something newer.
    Other,
}

/// A device's number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeviceNumber {
    /// The driver.
    pub major: u32,
    /// The device of that driver.
    pub minor: u32,
}

impl DeviceNumber {
    pub(crate) fn of(raw: rustix::fs::Dev) -> DeviceNumber {
        DeviceNumber { major: rustix::fs::major(raw), minor: rustix::fs::minor(raw) }
    }
}

impl fmt::Display for DeviceNumber {
    /// `254:0`, as `/sys/dev/block` names it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

/// The result of `stat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// Its type.
    pub kind: InodeKind,
    /// Size in bytes; 0 for a device (see `blkdev::size_bytes`).
    pub size_bytes: u64,
    /// Bytes allocated for it.
    pub allocated_bytes: u64,
    /// The block size its file system prefers, in bytes.
    pub preferred_bytes: u64,
    /// The device that holds it.
    pub device: DeviceNumber,
    /// The number of the device itself, for block and character devices.
    pub special: DeviceNumber,
    /// Its inode number.
    pub inode: u64,
}

/// The identity of a file, the same for all its paths: symbolic and hard links, bind mounts, several nodes of one
/// device, descriptors below `/proc`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Identity {
    /// A device, by its number. A block and a character device may have the same number: `block` distinguishes them.
    Device {
        /// Whether it is a block device.
        block: bool,
        /// Its number.
        number: DeviceNumber,
    },
    /// Anything else, by file system and inode.
    Inode {
        /// The device that holds it.
        device: DeviceNumber,
        /// Its inode number there.
        inode: u64,
    },
}

impl Stat {
    /// The identity of the file, whatever its path.
    pub fn identity(&self) -> Identity {
        match self.kind {
            InodeKind::Block => Identity::Device { block: true, number: self.special },
            InodeKind::Char => Identity::Device { block: false, number: self.special },
            _ => Identity::Inode { device: self.device, inode: self.inode },
        }
    }
}

/// `stat`, following symbolic links.
pub fn stat(path: &Path) -> io::Result<Stat> {
    Ok(of_raw(&rustix::fs::stat(path)?))
}

/// What has this name itself; `None` if that is a symbolic link.
///
/// # Errors
/// The kernel's: nothing has the name.
pub fn not_a_link(path: &Path) -> io::Result<Option<Stat>> {
    let raw = rustix::fs::lstat(path)?;
    let is_link = FileType::from_raw_mode(raw.st_mode) == FileType::Symlink;
    Ok((!is_link).then(|| of_raw(&raw)))
}

/// Whether an open file was opened for writing.
///
/// # Errors
/// The kernel's.
pub fn is_writable(file: impl AsFd) -> io::Result<bool> {
    let flags = rustix::fs::fcntl_getfl(file)?;
    Ok(flags.intersects(rustix::fs::OFlags::WRONLY | rustix::fs::OFlags::RDWR))
}

/// `fstat`.
pub fn fstat(file: impl AsFd) -> io::Result<Stat> {
    Ok(of_raw(&rustix::fs::fstat(file)?))
}

fn of_raw(raw: &rustix::fs::Stat) -> Stat {
    let kind = match FileType::from_raw_mode(raw.st_mode) {
        FileType::RegularFile => InodeKind::Regular,
        FileType::BlockDevice => InodeKind::Block,
        FileType::CharacterDevice => InodeKind::Char,
        FileType::Directory => InodeKind::Directory,
        FileType::Fifo => InodeKind::Fifo,
        FileType::Symlink | FileType::Socket | FileType::Unknown => InodeKind::Other,
    };
    Stat {
        kind,
        size_bytes: to_u64(raw.st_size),
        allocated_bytes: to_u64(raw.st_blocks) * 512,
        preferred_bytes: to_u64(raw.st_blksize),
        device: DeviceNumber::of(raw.st_dev),
        special: DeviceNumber::of(raw.st_rdev),
        inode: raw.st_ino,
    }
}

/// The alignment that direct I/O on a file requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectAlignment {
    /// Alignment of the buffer's address, in bytes.
    pub memory_bytes: u32,
    /// Alignment of offset and length, in bytes.
    pub offset_bytes: u32,
}

/// Whether a file supports direct I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DirectSupport {
    /// Supported with this alignment.
    Aligned(DirectAlignment),
    /// Not supported.
    Unsupported,
    /// Not reported by the kernel (before 6.1) or the file system.
    Unknown,
}

/// `statx(STATX_DIOALIGN)` of a path.
pub fn direct_support(path: &Path) -> io::Result<DirectSupport> {
    let raw = rustix::fs::statx(CWD, path, AtFlags::empty(), StatxFlags::DIOALIGN)?;
    let is_known = StatxFlags::from_bits_retain(raw.stx_mask).contains(StatxFlags::DIOALIGN);
    Ok(match (is_known, raw.stx_dio_mem_align, raw.stx_dio_offset_align) {
        (false, ..) => DirectSupport::Unknown,
        (true, _, 0) => DirectSupport::Unsupported,
        (true, memory_bytes, offset_bytes) => {
            DirectSupport::Aligned(DirectAlignment { memory_bytes, offset_bytes })
        }
    })
}

/// Whether the contents of a file are in persistent memory that is accessed directly (DAX), and not through the page cache.
///
/// # Errors
/// The kernel's.
pub fn is_dax(file: impl AsFd) -> io::Result<bool> {
    let raw = rustix::fs::statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::empty())?;
    Ok(raw.stx_attributes.contains(rustix::fs::StatxAttributes::DAX))
}

/// `STATX_WRITE_ATOMIC`.
const WRITE_ATOMIC: StatxFlags = StatxFlags::from_bits_retain(0x0001_0000);

/// The lengths of atomic writes that a file takes, in bytes: powers of two, shortest and longest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AtomicLimits {
    /// Shortest.
    pub min_bytes: u32,
    /// Longest.
    pub max_bytes: u32,
}

/// `statx(STATX_WRITE_ATOMIC)` of a path; `None` if it takes no atomic writes, or the kernel knows none (before 6.11).
pub fn atomic_limits(path: &Path) -> io::Result<Option<AtomicLimits>> {
    let raw = rustix::fs::statx(CWD, path, AtFlags::empty(), WRITE_ATOMIC)?;
    let is_known = StatxFlags::from_bits_retain(raw.stx_mask).contains(WRITE_ATOMIC);
    let (min_bytes, max_bytes) = (raw.stx_atomic_write_unit_min, raw.stx_atomic_write_unit_max);
    Ok((is_known && max_bytes > 0).then_some(AtomicLimits { min_bytes, max_bytes }))
}

/// The result of `statfs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileSystem {
    /// Its magic number.
    pub magic: u64,
    /// Block size in bytes (page size, on a huge page file system).
    pub block_bytes: u64,
    /// Its size.
    pub total_bytes: u64,
    /// Free, including what is reserved for root.
    pub free_bytes: u64,
    /// Free for any user.
    pub available_bytes: u64,
    /// Mounted read-only.
    pub read_only: bool,
}

impl FileSystem {
    /// The type's name, `"ext4"`, for the common ones. Types that share a number (ext2, ext3, ext4) share a name:
    /// the mount table tells them apart.
    pub fn type_name(&self) -> Option<&'static str> {
        FILE_SYSTEMS.iter().find(|row| row.0 == self.magic).map(|row| row.1)
    }
}

/// `statfs` of the file system that holds `path`.
pub fn file_system(path: &Path) -> io::Result<FileSystem> {
    Ok(of_raw_fs(&rustix::fs::statfs(path)?))
}

/// `fstatfs` of the file system that holds an open file.
pub fn file_system_of(file: impl AsFd) -> io::Result<FileSystem> {
    Ok(of_raw_fs(&rustix::fs::fstatfs(file)?))
}

#[expect(
    clippy::cast_sign_loss,
    reason = "signed on some processors only; the lower bits of the magic are meant, the others are not below zero"
)]
fn of_raw_fs(raw: &rustix::fs::StatFs) -> FileSystem {
    let block_bytes = raw.f_bsize as u64;
    // Counts are in fragments, which is the block size unless the file system says otherwise.
    let unit_bytes = if raw.f_frsize > 0 { raw.f_frsize as u64 } else { block_bytes };
    FileSystem {
        magic: raw.f_type as u64 & 0xffff_ffff,
        block_bytes,
        total_bytes: raw.f_blocks.saturating_mul(unit_bytes),
        free_bytes: raw.f_bfree.saturating_mul(unit_bytes),
        available_bytes: raw.f_bavail.saturating_mul(unit_bytes),
        read_only: raw.f_flags as libc::c_ulong & libc::ST_RDONLY != 0,
    }
}

/// Magic numbers, from the kernel's `linux/magic.h` and the file systems' own headers.
#[rustfmt::skip]
const FILE_SYSTEMS: &[(u64, &str)] = &[
    (0xef53, "ext4"),
    (0x5846_5342, "xfs"),
    (0x9123_683e, "btrfs"),
    (0x0102_1994, "tmpfs"),
    (0x8584_58f6, "ramfs"),
    (0x9584_58f6, "hugetlbfs"),
    (0x794c_7630, "overlay"),
    (0x6969, "nfs"),
    (0xff53_4d42, "cifs"),
    (0xfe53_4d42, "smb2"),
    (0x6573_5546, "fuse"),
    (0x2fc1_2fc1, "zfs"),
    (0xf2f5_2010, "f2fs"),
    (0xca45_1a4e, "bcachefs"),
    (0x4d44, "vfat"),
    (0x2011_bab0, "exfat"),
    (0x7366_746e, "ntfs3"),
    (0x7371_7368, "squashfs"),
    (0xe0f5_e1e2, "erofs"),
    (0x9660, "iso9660"),
    (0x5265_4973, "reiserfs"),
    (0x3153_464a, "jfs"),
    (0x0000_3434, "nilfs2"),
    (0x0116_1970, "gfs2"),
    (0x7461_636f, "ocfs2"),
    (0x00c3_6400, "ceph"),
    (0x0bd0_0bd0, "lustre"),
    (0x0102_1997, "9p"),
    (0x6a65_6a63, "virtiofs"),
    (0x5a4f_4653, "zonefs"),
    (0x9fa0, "proc"),
    (0x6265_6572, "sysfs"),
    (0x6462_6720, "debugfs"),
    (0x1373, "devfs"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TempFile;

    #[test]
    fn a_file_and_its_path_have_the_same_metadata() {
        let temp = TempFile::new("stat");
        std::fs::write(&temp.path, [0u8; 5000]).unwrap();
        let by_path = stat(&temp.path).unwrap();
        assert_eq!(by_path, fstat(&temp.file).unwrap());
        assert_eq!((by_path.kind, by_path.size_bytes), (InodeKind::Regular, 5000));
        let system = file_system(&temp.path).unwrap();
        assert_eq!(system.magic, file_system_of(&temp.file).unwrap().magic);
        assert!(system.free_bytes <= system.total_bytes);
    }

    #[test]
    fn types_are_distinguished() {
        assert_eq!(stat(Path::new("/")).unwrap().kind, InodeKind::Directory);
        let null = stat(Path::new("/dev/null")).unwrap();
        assert_eq!(null.kind, InodeKind::Char);
        assert_eq!(null.special.to_string(), "1:3");
        assert_eq!(stat(Path::new("/no/such")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn every_path_of_a_file_has_the_same_identity() {
        let temp = TempFile::new("identity");
        let other = crate::testing::temp_path("identity-link");
        std::fs::hard_link(&temp.path, &other).unwrap();
        let (one, two) = (stat(&temp.path).unwrap(), stat(&other).unwrap());
        std::fs::remove_file(&other).unwrap();
        assert_eq!(one.identity(), two.identity());
        let elsewhere = TempFile::new("identity-other");
        assert_ne!(one.identity(), fstat(&elsewhere.file).unwrap().identity());
        let null = stat(Path::new("/dev/null")).unwrap().identity();
        let number = DeviceNumber { major: 1, minor: 3 };
        assert_eq!(null, Identity::Device { block: false, number });
        assert_ne!(null, Identity::Device { block: true, number });
    }

    #[test]
    fn known_file_systems_have_names() {
        assert_eq!(file_system(Path::new("/proc")).unwrap().type_name(), Some("proc"));
        let unheard = FileSystem {
            magic: 1,
            block_bytes: 0,
            total_bytes: 0,
            free_bytes: 0,
            available_bytes: 0,
            read_only: false,
        };
        assert_eq!(unheard.type_name(), None);
    }

    #[test]
    fn atomic_writes_have_powers_of_two_of_bytes() {
        let temp = TempFile::new("atomic");
        match atomic_limits(&temp.path).unwrap() {
            Some(AtomicLimits { min_bytes, max_bytes }) => {
                assert!(min_bytes.is_power_of_two() && max_bytes.is_power_of_two() && min_bytes <= max_bytes);
            }
            None => fiord_testing::skipped("the file takes no atomic writes"),
        }
    }

    #[test]
    fn direct_alignment_is_a_power_of_two_if_reported() {
        let temp = TempFile::new("dio");
        match direct_support(&temp.path).unwrap() {
            DirectSupport::Aligned(alignment) => {
                assert!(alignment.memory_bytes.is_power_of_two());
                assert!(alignment.offset_bytes.is_power_of_two());
            }
            other => fiord_testing::skipped(format_args!("the kernel says {other:?}")),
        }
    }
}
