//! Open block devices: geometry, cache and discards, by ioctl.
//!
//! Invariant: sizes, offsets and lengths are in bytes, whatever unit the device counts in.

use crate::errno::check;
use crate::stat::{DeviceNumber, Identity};
use std::io;
use std::os::fd::{AsFd, AsRawFd};

// Numbers from the kernel's `linux/fs.h`. That of BLKGETSIZE64 encodes the size of a `size_t`, although the kernel
// writes 64 bits.
const BLKROGET: libc::Ioctl = libc::_IO(0x12, 94);
const BLKFLSBUF: libc::Ioctl = libc::_IO(0x12, 97);
const BLKGETSIZE64: libc::Ioctl = libc::_IOR::<usize>(0x12, 114);
/// From the kernel's `linux/loop.h`.
const LOOP_GET_STATUS64: libc::Ioctl = 0x4c05;

/// The kernel's `struct loop_info64`, of which only the first numbers are of interest here.
#[repr(C)]
struct LoopInfo {
    device: u64,
    inode: u64,
    special: u64,
    rest: [u8; 208],
}

/// The device's size in bytes.
pub fn size_bytes(device: impl AsFd) -> io::Result<u64> {
    let mut bytes = 0u64;
    // SAFETY: the call writes one u64.
    check(unsafe { libc::ioctl(device.as_fd().as_raw_fd(), BLKGETSIZE64, &raw mut bytes) })?;
    Ok(bytes)
}

/// The unit the device is addressed in, in bytes: direct I/O is a multiple of it.
pub fn logical_block_bytes(device: impl AsFd) -> io::Result<u32> {
    Ok(rustix::fs::ioctl_blksszget(device)?)
}

/// The unit the device writes without reading first, in bytes.
pub fn physical_block_bytes(device: impl AsFd) -> io::Result<u32> {
    Ok(rustix::fs::ioctl_blkpbszget(device)?)
}

/// Whether the device takes no writes.
pub fn is_read_only(device: impl AsFd) -> io::Result<bool> {
    let mut flag = 0u32;
    // SAFETY: the request writes one 32-bit integer.
    check(unsafe { libc::ioctl(device.as_fd().as_raw_fd(), BLKROGET, &raw mut flag) })?;
    Ok(flag != 0)
}

/// The file or device that backs a loop device, whatever its path. `ENXIO` if the device is not in use.
pub fn loop_backing(device: impl AsFd) -> io::Result<Identity> {
    let mut info = LoopInfo { device: 0, inode: 0, special: 0, rest: [0; 208] };
    // SAFETY: the request writes one `loop_info64`, which is as long as the structure.
    check(unsafe { libc::ioctl(device.as_fd().as_raw_fd(), LOOP_GET_STATUS64, &raw mut info) })?;
    Ok(match info.special {
        0 => Identity::Inode { device: DeviceNumber::of(info.device), inode: info.inode },
        special => Identity::Device { block: true, number: DeviceNumber::of(special) },
    })
}

/// Writes the device's dirty pages back, then drops its pages from the cache. Needs a privilege (`EACCES`).
pub fn flush_buffers(device: impl AsFd) -> io::Result<()> {
    // SAFETY: the request takes no argument.
    check(unsafe { libc::ioctl(device.as_fd().as_raw_fd(), BLKFLSBUF, 0) }).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{LoopDevice, TempFile};

    #[test]
    fn the_numbers_are_the_kernels() {
        assert_eq!(BLKROGET as u32, 0x125e);
        assert_eq!(BLKFLSBUF as u32, 0x1261);
        if cfg!(target_arch = "x86_64") {
            assert_eq!(BLKGETSIZE64 as u32, 0x8008_1272);
        }
    }

    #[test]
    fn a_file_is_not_a_device() {
        let temp = TempFile::new("blkdev");
        assert_eq!(size_bytes(&temp.file).unwrap_err().raw_os_error(), Some(libc::ENOTTY));
    }

    #[test]
    fn a_loop_device_has_a_geometry() {
        let device = fiord_testing::need!(LoopDevice::new(1 << 20));
        let file = crate::file::open(&device.path, &crate::file::OpenHow::READ_WRITE).unwrap();
        assert_eq!(size_bytes(&file).unwrap(), 1 << 20);
        assert_eq!(std::io::Seek::seek(&mut &file, std::io::SeekFrom::End(0)).unwrap(), 1 << 20);
        assert!(logical_block_bytes(&file).unwrap() >= 512);
        assert!(physical_block_bytes(&file).unwrap() >= logical_block_bytes(&file).unwrap());
        assert!(!is_read_only(&file).unwrap());
        flush_buffers(&file).unwrap();
    }

    #[test]
    fn a_loop_device_names_its_backing_file() {
        assert_eq!(std::mem::size_of::<LoopInfo>(), 232);
        let device = fiord_testing::need!(LoopDevice::new(1 << 20));
        let open = crate::file::open(&device.path, &crate::file::OpenHow::READ).unwrap();
        let behind = crate::stat::stat(&device.backing.path).unwrap().identity();
        assert_eq!(loop_backing(&open).unwrap(), behind);
        assert!(loop_backing(&device.backing.file).is_err(), "a file is not a loop device");
    }
}
