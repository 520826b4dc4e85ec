//! Block devices, by the calls that an open one answers.
//!
//! Invariant: sizes, offsets and lengths are in bytes, whatever unit the device counts in.

use crate::errno::check;
use crate::stat::{DeviceNumber, Identity};
use std::io;
use std::os::fd::{AsFd, AsRawFd};

// Numbers from the kernel's `linux/fs.h`. The sizes in two of them are those of a `size_t`, although the kernel writes
// 64 bits: they are part of the number and nothing else.
const BLKROGET: libc::Ioctl = libc::_IO(0x12, 94);
const BLKFLSBUF: libc::Ioctl = libc::_IO(0x12, 97);
const BLKSSZGET: libc::Ioctl = libc::_IO(0x12, 104);
const BLKGETSIZE64: libc::Ioctl = libc::_IOR::<usize>(0x12, 114);
const BLKDISCARD: libc::Ioctl = libc::_IO(0x12, 119);
const BLKPBSZGET: libc::Ioctl = libc::_IO(0x12, 123);
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
    get_u32(device, BLKSSZGET)
}

/// The unit the device writes without reading first, in bytes.
pub fn physical_block_bytes(device: impl AsFd) -> io::Result<u32> {
    get_u32(device, BLKPBSZGET)
}

/// Whether the device takes no writes.
pub fn is_read_only(device: impl AsFd) -> io::Result<bool> {
    get_u32(device, BLKROGET).map(|flag| flag != 0)
}

fn get_u32(device: impl AsFd, request: libc::Ioctl) -> io::Result<u32> {
    let mut value = 0u32;
    // SAFETY: each request this is called with writes one 32-bit integer.
    check(unsafe { libc::ioctl(device.as_fd().as_raw_fd(), request, &raw mut value) })?;
    Ok(value)
}

/// What a loop device keeps its data in, wherever that is called what: a file, or a device. `ENXIO` where the device is
/// not in use.
pub fn loop_backing(device: impl AsFd) -> io::Result<Identity> {
    let mut info = LoopInfo { device: 0, inode: 0, special: 0, rest: [0; 208] };
    // SAFETY: the request writes one `loop_info64`, which is as long as the structure.
    check(unsafe { libc::ioctl(device.as_fd().as_raw_fd(), LOOP_GET_STATUS64, &raw mut info) })?;
    Ok(match info.special {
        0 => Identity::Inode { device: DeviceNumber::of(info.device), inode: info.inode },
        special => Identity::Device { block: true, number: DeviceNumber::of(special) },
    })
}

/// Writes what the page cache holds of the device, then drops it. Needs a privilege (`EACCES`).
pub fn flush_buffers(device: impl AsFd) -> io::Result<()> {
    // SAFETY: the request takes no argument.
    check(unsafe { libc::ioctl(device.as_fd().as_raw_fd(), BLKFLSBUF, 0) }).map(drop)
}

/// Tells the device that `len_bytes` from `offset_bytes` are no longer needed, both whole logical blocks. What they
/// read as afterwards is the device's affair.
#[inline]
pub fn discard(device: impl AsFd, offset_bytes: u64, len_bytes: u64) -> io::Result<()> {
    let range = [offset_bytes, len_bytes];
    // SAFETY: the call reads two u64.
    check(unsafe { libc::ioctl(device.as_fd().as_raw_fd(), BLKDISCARD, range.as_ptr()) }).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{LoopDevice, TempFile};

    #[test]
    fn the_numbers_are_the_kernels() {
        assert_eq!(BLKROGET as u32, 0x125e);
        assert_eq!(BLKFLSBUF as u32, 0x1261);
        assert_eq!(BLKSSZGET as u32, 0x1268);
        assert_eq!(BLKDISCARD as u32, 0x1277);
        assert_eq!(BLKPBSZGET as u32, 0x127b);
        if cfg!(target_arch = "x86_64") {
            assert_eq!(BLKGETSIZE64 as u32, 0x8008_1272);
        }
    }

    #[test]
    fn a_file_is_no_device() {
        let temp = TempFile::new("blkdev");
        assert_eq!(size_bytes(&temp.file).unwrap_err().raw_os_error(), Some(libc::ENOTTY));
    }

    #[test]
    fn a_loop_device_tells_its_geometry_and_forgets_what_is_discarded() {
        let device = match LoopDevice::new(1 << 20) {
            Ok(device) => device,
            Err(why) => {
                println!("skipped: {why}");
                return;
            }
        };
        let file = crate::file::open(&device.path, &crate::file::OpenHow::READ_WRITE).unwrap();
        assert_eq!(size_bytes(&file).unwrap(), 1 << 20);
        assert_eq!(crate::file::seek_end(&file).unwrap(), 1 << 20);
        assert!(logical_block_bytes(&file).unwrap() >= 512);
        assert!(physical_block_bytes(&file).unwrap() >= logical_block_bytes(&file).unwrap());
        assert!(!is_read_only(&file).unwrap());
        flush_buffers(&file).unwrap();
        match discard(&file, 0, 4096) {
            Ok(()) => {}
            Err(error) => println!("skipped: the file below punches no holes: {error}"),
        }
        assert!(discard(&file, 1 << 20, 4096).is_err(), "beyond the end");
    }

    #[test]
    fn a_loop_device_tells_what_is_behind_it() {
        assert_eq!(std::mem::size_of::<LoopInfo>(), 232);
        let device = match LoopDevice::new(1 << 20) {
            Ok(device) => device,
            Err(why) => {
                println!("skipped: {why}");
                return;
            }
        };
        let open = crate::file::open(&device.path, &crate::file::OpenHow::READ).unwrap();
        let behind = crate::stat::stat(&device.backing.path).unwrap().identity();
        assert_eq!(loop_backing(&open).unwrap(), behind);
        assert!(loop_backing(&device.backing.file).is_err(), "a file is no loop device");
    }
}
