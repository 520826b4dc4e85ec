//! Raw flash memory behind the MTD layer: what it consists of, erasures and bad blocks.
//!
//! Invariant: offsets and lengths are in bytes; nothing is erased but the range asked for.

use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};

use crate::errno::check;
use crate::stat;
use crate::sysfs::Sysfs;

/// From the kernel's `mtd/mtd-abi.h`.
const MEMGETINFO: libc::Ioctl = libc::_IOR::<MtdInfo>(0x4d, 1);
const MEMGETBADBLOCK: libc::Ioctl = libc::_IOW::<i64>(0x4d, 11);
const MEMERASE64: libc::Ioctl = libc::_IOW::<[u64; 2]>(0x4d, 20);

/// The kernel's `struct mtd_info_user`.
#[repr(C)]
#[derive(Default)]
struct MtdInfo {
    kind: u8,
    flags: u32,
    size_bytes: u32,
    erase_bytes: u32,
    write_bytes: u32,
    spare_bytes: u32,
    padding: u64,
}

/// A flash device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flash {
    /// Its size.
    pub size_bytes: u64,
    /// The unit that is erased.
    pub erase_bytes: u64,
    /// The unit that is written.
    pub write_bytes: u64,
}

/// What the flash device behind an open character device consists of.
///
/// # Errors
/// The kernel's: `ENOTTY` if it is not a flash device.
pub fn flash(device: impl AsFd) -> io::Result<Flash> {
    let mut info = MtdInfo::default();
    // SAFETY: the request writes one `mtd_info_user`, which is as long as the structure.
    check(unsafe { libc::ioctl(device.as_fd().as_raw_fd(), MEMGETINFO, &raw mut info) })?;
    // The answer has no room for 4 GiB.
    let number = stat::fstat(&device)?.special;
    let shown = Sysfs::default().char_device_of(number).ok().and_then(|device| device.number_in("size"));
    Ok(Flash {
        size_bytes: shown.unwrap_or(u64::from(info.size_bytes)),
        erase_bytes: u64::from(info.erase_bytes.max(1)),
        write_bytes: u64::from(info.write_bytes.max(1)),
    })
}

/// Erases a range.
///
/// # Errors
/// The kernel's: `EINVAL` if the range is not a whole number of erase blocks, `EIO` if one of them is bad.
pub fn erase(fd: RawFd, offset_bytes: u64, length_bytes: u64) -> io::Result<()> {
    let range = [offset_bytes, length_bytes];
    // SAFETY: the request reads two u64, which live during the call; a bad descriptor is an error.
    check(unsafe { libc::ioctl(fd, MEMERASE64, range.as_ptr()) }).map(drop)
}

/// Whether the erase block that begins there is bad. Flash that has no bad blocks does not know the question.
///
/// # Errors
/// The kernel's.
pub fn is_bad(fd: RawFd, offset_bytes: u64) -> io::Result<bool> {
    let offset = offset_bytes.cast_signed();
    // SAFETY: the request reads one i64, which lives during the call; a bad descriptor is an error.
    match check(unsafe { libc::ioctl(fd, MEMGETBADBLOCK, &raw const offset) }) {
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(false),
        answer => Ok(answer? > 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_structure_has_the_kernels_size() {
        assert_eq!((size_of::<MtdInfo>(), MEMGETINFO as u32), (32, 0x8020_4d01));
    }

    #[test]
    fn a_file_is_no_flash() {
        let file = std::fs::File::open("/proc/self/exe").unwrap();
        assert_eq!(flash(&file).unwrap_err().raw_os_error(), Some(libc::ENOTTY));
        assert!(erase(-1, 0, 0).is_err() && is_bad(-1, 0).is_err());
    }
}
