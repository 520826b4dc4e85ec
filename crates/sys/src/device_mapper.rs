//! What a device of the device mapper is made of, from its table.
//!
//! Invariant: reading a table changes nothing: a pool is not made to write its metadata first.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

use crate::errno::check;
use crate::stat::DeviceNumber;
use crate::width::to_u32;

/// From the kernel's `linux/dm-ioctl.h`.
const DM_TABLE_STATUS: libc::Ioctl = libc::_IOWR::<Header>(0xfd, 12);
const DM_VERSION: [u32; 3] = [4, 0, 0];
const DM_STATUS_TABLE_FLAG: u32 = 1 << 4;
const DM_NOFLUSH_FLAG: u32 = 1 << 11;

/// `struct dm_ioctl`.
#[repr(C)]
struct Header {
    version: [u32; 3],
    all_bytes: u32,
    data_at: u32,
    targets: u32,
    open_count: i32,
    flags: u32,
    event: u32,
    padding: u32,
    device: u64,
    name_and_uuid: [[u8; 128]; 2],
    rest: [u8; 8],
}

/// Room for the first line of a table, whose name comes after this many bytes of `struct dm_target_spec`.
const TABLE_BYTES: usize = 4096;
const NAME_AT: usize = 24;
const NAME_BYTES: usize = 16;

#[repr(C)]
struct Request {
    header: Header,
    table: [u8; TABLE_BYTES],
}

/// The name of the first target in the table of a device: `linear`, `thin-pool`. Needs root.
///
/// # Errors
/// The kernel's: the device is none of the device mapper (`ENXIO`), or it may not be asked; `ENODATA` for an empty table.
pub fn first_target(number: DeviceNumber) -> io::Result<String> {
    let control = File::open(Path::new("/dev/mapper/control"))?;
    let mut request = Request {
        header: Header {
            version: DM_VERSION,
            all_bytes: to_u32(size_of::<Request>()),
            data_at: to_u32(size_of::<Header>()),
            targets: 0,
            open_count: 0,
            flags: DM_STATUS_TABLE_FLAG | DM_NOFLUSH_FLAG,
            event: 0,
            padding: 0,
            device: kernel_number(number),
            name_and_uuid: [[0; 128]; 2],
            rest: [0; 8],
        },
        table: [0; TABLE_BYTES],
    };
    // SAFETY: the kernel reads and writes the request alone, which has the length that it states.
    check(unsafe { libc::ioctl(control.as_raw_fd(), DM_TABLE_STATUS, &raw mut request) })?;
    let name = request.table[NAME_AT..][..NAME_BYTES].split(|byte| *byte == 0).next();
    let name = name.filter(|name| request.header.targets > 0 && !name.is_empty());
    let name = name.ok_or_else(|| io::Error::from_raw_os_error(libc::ENODATA))?;
    Ok(String::from_utf8_lossy(name).into_owned())
}

/// As the kernel writes numbers of devices in 64 bits.
fn kernel_number(number: DeviceNumber) -> u64 {
    let (major, minor) = (u64::from(number.major), u64::from(number.minor));
    minor & 0xff | major << 8 | (minor & !0xff) << 12
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_request_has_the_kernels_layout() {
        assert_eq!((size_of::<Header>(), DM_TABLE_STATUS as u32), (312, 0xc138_fd0c));
        assert_eq!(kernel_number(DeviceNumber { major: 253, minor: 0x1234 }), 0x0120_fd34);
    }

    #[test]
    fn what_is_not_mapped_has_no_table() {
        assert!(first_target(DeviceNumber { major: 1, minor: 3 }).is_err());
    }
}
