//! What a path or an open file is, and what its file system is.
//!
//! Invariant: facts as the kernel gives them, in bytes; nothing is guessed, an unknown is `None`.

use crate::errno::check;
use crate::file::c_path;
use std::fmt;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;

/// What kind of thing a path leads to (symbolic links followed).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
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
    /// The driver's part.
    pub major: u32,
    /// The driver's own numbering.
    pub minor: u32,
}

impl DeviceNumber {
    pub(crate) fn of(raw: libc::dev_t) -> DeviceNumber {
        DeviceNumber { major: libc::major(raw), minor: libc::minor(raw) }
    }
}

impl fmt::Display for DeviceNumber {
    /// `254:0`, as `/sys/dev/block` names it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

/// What `stat` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// What it is.
    pub kind: Kind,
    /// Size in bytes; 0 for a device (see `blkdev::size_bytes`).
    pub size_bytes: u64,
    /// Bytes set aside for it.
    pub allocated_bytes: u64,
    /// The block size its file system likes, in bytes.
    pub preferred_bytes: u64,
    /// The device that holds it.
    pub device: DeviceNumber,
    /// The device that it is, for block and character devices.
    pub special: DeviceNumber,
    /// Its number in its file system.
    pub inode: u64,
}

/// What a name leads to, by which all its names are known to be the same: symbolic and hard links, bind mounts, nodes
/// of one device in several places, descriptors below `/proc`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Identity {
    /// A device, by its number. A block and a character device of one number are two: `block` tells them apart.
    Device {
        /// Whether it is a block device.
        block: bool,
        /// Its number.
        number: DeviceNumber,
    },
    /// Anything else, by its place in its file system.
    Inode {
        /// The device that holds it.
        device: DeviceNumber,
        /// Its number there.
        inode: u64,
    },
}

impl Stat {
    /// What this is, whatever it is called.
    pub fn identity(&self) -> Identity {
        match self.kind {
            Kind::Block => Identity::Device { block: true, number: self.special },
            Kind::Char => Identity::Device { block: false, number: self.special },
            _ => Identity::Inode { device: self.device, inode: self.inode },
        }
    }
}

/// `stat`, following symbolic links.
pub fn stat(path: &Path) -> io::Result<Stat> {
    let name = c_path(path)?;
    let mut raw = MaybeUninit::<libc::stat64>::uninit();
    // SAFETY: `name` ends in NUL; the kernel fills the structure when it answers 0.
    check(unsafe { libc::stat64(name.as_ptr(), raw.as_mut_ptr()) })?;
    // SAFETY: the call succeeded.
    Ok(of_raw(&unsafe { raw.assume_init() }))
}

/// `fstat`.
pub fn fstat(file: impl AsFd) -> io::Result<Stat> {
    let mut raw = MaybeUninit::<libc::stat64>::uninit();
    // SAFETY: the kernel fills the structure when it answers 0.
    check(unsafe { libc::fstat64(file.as_fd().as_raw_fd(), raw.as_mut_ptr()) })?;
    // SAFETY: the call succeeded.
    Ok(of_raw(&unsafe { raw.assume_init() }))
}

fn of_raw(raw: &libc::stat64) -> Stat {
    let kind = match raw.st_mode & libc::S_IFMT {
        libc::S_IFREG => Kind::Regular,
        libc::S_IFBLK => Kind::Block,
        libc::S_IFCHR => Kind::Char,
        libc::S_IFDIR => Kind::Directory,
        libc::S_IFIFO => Kind::Fifo,
        _ => Kind::Other,
    };
    Stat {
        kind,
        size_bytes: raw.st_size as u64,
        allocated_bytes: raw.st_blocks as u64 * 512,
        preferred_bytes: raw.st_blksize as u64,
        device: DeviceNumber::of(raw.st_dev),
        special: DeviceNumber::of(raw.st_rdev),
        inode: raw.st_ino,
    }
}

/// What direct I/O on a file asks of its buffers and offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectAlignment {
    /// Alignment of the buffer's address, in bytes.
    pub memory_bytes: u32,
    /// Alignment of offset and length, in bytes.
    pub offset_bytes: u32,
}

/// What the kernel tells about direct I/O on a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DirectSupport {
    /// It works with this alignment.
    Aligned(DirectAlignment),
    /// It does not work here.
    Unsupported,
    /// The kernel (before 6.1) or the file system does not tell.
    Unknown,
}

/// `statx(STATX_DIOALIGN)` of a path.
pub fn direct_support(path: &Path) -> io::Result<DirectSupport> {
    let name = c_path(path)?;
    let mut raw = MaybeUninit::<libc::statx>::zeroed();
    // SAFETY: `name` ends in NUL; the kernel fills the structure, which is valid when zeroed.
    check(unsafe { libc::statx(libc::AT_FDCWD, name.as_ptr(), 0, libc::STATX_DIOALIGN, raw.as_mut_ptr()) })?;
    // SAFETY: plain integers, zeroed and then filled.
    let raw = unsafe { raw.assume_init() };
    Ok(match (raw.stx_mask & libc::STATX_DIOALIGN != 0, raw.stx_dio_mem_align, raw.stx_dio_offset_align) {
        (false, ..) => DirectSupport::Unknown,
        (true, _, 0) => DirectSupport::Unsupported,
        (true, memory_bytes, offset_bytes) => {
            DirectSupport::Aligned(DirectAlignment { memory_bytes, offset_bytes })
        }
    })
}

/// What `statfs` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileSystem {
    /// The number its superblocks start with.
    pub magic: u64,
    /// Block size in bytes (page size, on a huge page file system).
    pub block_bytes: u64,
    /// Its size.
    pub total_bytes: u64,
    /// Free, with what is kept for root.
    pub free_bytes: u64,
    /// Free for anybody.
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
    let name = c_path(path)?;
    let mut raw = MaybeUninit::<libc::statfs64>::uninit();
    // SAFETY: `name` ends in NUL; the kernel fills the structure when it answers 0.
    check(unsafe { libc::statfs64(name.as_ptr(), raw.as_mut_ptr()) })?;
    // SAFETY: the call succeeded.
    Ok(of_raw_fs(&unsafe { raw.assume_init() }))
}

/// `fstatfs` of the file system that holds an open file.
pub fn file_system_of(file: impl AsFd) -> io::Result<FileSystem> {
    let mut raw = MaybeUninit::<libc::statfs64>::uninit();
    // SAFETY: the kernel fills the structure when it answers 0.
    check(unsafe { libc::fstatfs64(file.as_fd().as_raw_fd(), raw.as_mut_ptr()) })?;
    // SAFETY: the call succeeded.
    Ok(of_raw_fs(&unsafe { raw.assume_init() }))
}

fn of_raw_fs(raw: &libc::statfs64) -> FileSystem {
    let block_bytes = raw.f_bsize as u64;
    // Counts are in fragments, which is the block size unless the file system says otherwise.
    let unit_bytes = if raw.f_frsize > 0 { raw.f_frsize as u64 } else { block_bytes };
    FileSystem {
        magic: raw.f_type as u64 & 0xffff_ffff,
        block_bytes,
        total_bytes: raw.f_blocks.saturating_mul(unit_bytes),
        free_bytes: raw.f_bfree.saturating_mul(unit_bytes),
        available_bytes: raw.f_bavail.saturating_mul(unit_bytes),
        read_only: raw.f_flags as u64 & libc::ST_RDONLY != 0,
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
    fn a_file_and_its_path_tell_the_same() {
        let temp = TempFile::new("stat");
        std::fs::write(&temp.path, [0u8; 5000]).unwrap();
        let by_path = stat(&temp.path).unwrap();
        assert_eq!(by_path, fstat(&temp.file).unwrap());
        assert_eq!((by_path.kind, by_path.size_bytes), (Kind::Regular, 5000));
        let system = file_system(&temp.path).unwrap();
        assert_eq!(system.magic, file_system_of(&temp.file).unwrap().magic);
        assert!(system.free_bytes <= system.total_bytes);
    }

    #[test]
    fn kinds_are_told_apart() {
        assert_eq!(stat(Path::new("/")).unwrap().kind, Kind::Directory);
        let null = stat(Path::new("/dev/null")).unwrap();
        assert_eq!(null.kind, Kind::Char);
        assert_eq!(null.special.to_string(), "1:3");
        assert_eq!(stat(Path::new("/no/such")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn every_name_of_a_thing_has_its_identity() {
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
    fn direct_alignment_is_a_power_of_two_where_told() {
        let temp = TempFile::new("dio");
        match direct_support(&temp.path).unwrap() {
            DirectSupport::Aligned(alignment) => {
                assert!(alignment.memory_bytes.is_power_of_two());
                assert!(alignment.offset_bytes.is_power_of_two());
            }
            other => println!("skipped: the kernel says {other:?}"),
        }
    }
}
