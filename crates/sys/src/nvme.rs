//! The health log of NVMe disks, by the admin command that reads a log page.
//!
//! Invariant: nothing but that one command is sent, which changes nothing on the disk.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use fiord_device::HealthLog;
use fiord_device::nvme::{HEALTH_PAGE_BYTES, parse_health};

use crate::errno::check;

/// From the kernel's `linux/nvme_ioctl.h`.
const NVME_IOCTL_ADMIN_CMD: libc::Ioctl = libc::_IOWR::<AdminCommand>(0x4e, 0x41);

/// Numbers of the NVMe base specification: the command Get Log Page, the page SMART / Health Information, all namespaces.
const GET_LOG_PAGE: u8 = 0x02;
const HEALTH_PAGE: u32 = 0x02;
const ALL_NAMESPACES: u32 = 0xffff_ffff;

/// The kernel's `struct nvme_passthru_cmd`.
#[repr(C)]
#[derive(Default)]
struct AdminCommand {
    opcode: u8,
    flags: u8,
    reserved: u16,
    namespace: u32,
    words_2_3: [u32; 2],
    metadata: u64,
    address: u64,
    metadata_bytes: u32,
    data_bytes: u32,
    words_10_15: [u32; 6],
    timeout_ms: u32,
    result: u32,
}

/// Reads the health log of the disk behind an open device. Needs root.
///
/// # Errors
/// The kernel's: this is no NVMe disk (`ENOTTY`), or it may not be asked (`EACCES`); `EIO` if the disk refuses.
pub fn nvme_health(device: impl AsFd) -> io::Result<HealthLog> {
    let mut page = [0u8; HEALTH_PAGE_BYTES];
    let dwords = (HEALTH_PAGE_BYTES / 4 - 1) as u32;
    let mut command = AdminCommand {
        opcode: GET_LOG_PAGE,
        namespace: ALL_NAMESPACES,
        address: page.as_mut_ptr() as u64,
        data_bytes: HEALTH_PAGE_BYTES as u32,
        words_10_15: [HEALTH_PAGE | dwords << 16, 0, 0, 0, 0, 0],
        ..AdminCommand::default()
    };
    // SAFETY: the request reads the command and writes at most `data_bytes` to `address`, a buffer of that length, which
    // outlives the call.
    let status = unsafe { libc::ioctl(device.as_fd().as_raw_fd(), NVME_IOCTL_ADMIN_CMD, &raw mut command) };
    // A positive result is a status of the disk.
    if check(status)? != 0 {
        return Err(io::Error::from_raw_os_error(libc::EIO));
    }
    Ok(parse_health(&page))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_has_the_kernels_size() {
        assert_eq!(size_of::<AdminCommand>(), 72);
        assert_eq!(NVME_IOCTL_ADMIN_CMD as u32, 0xc048_4e41);
    }

    #[test]
    fn a_file_has_no_health() {
        let file = std::fs::File::open("/proc/self/exe").unwrap();
        assert!(nvme_health(&file).is_err());
    }
}
