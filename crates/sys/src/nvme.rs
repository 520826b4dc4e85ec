//! NVMe disks: the commands that read their health log and their power state, identify a namespace and list its placements, and commands of I/O
//! as entries of a ring.
//!
//! Invariant: the commands sent here change nothing on the disk.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use fiord_device::HealthLog;
use fiord_device::nvme::{HEALTH_PAGE_BYTES, parse_health};
use fiord_device::nvme_namespace::{
    HANDLES_HEADER_BYTES, IDENTIFY_BYTES, handles_bytes, parse_namespace, parse_placements, parse_zones,
};
use fiord_device::nvme_power::{PowerState, parse_power_state};

pub use fiord_device::nvme_namespace::{NvmeGuard, NvmeNamespace, NvmeProtection, NvmeZones};

use crate::errno::check;
use crate::width::{low_u32, to_u32};

/// From the kernel's `linux/nvme_ioctl.h`.
const NVME_IOCTL_ID: libc::Ioctl = libc::_IO(0x4e, 0x40);
const NVME_IOCTL_ADMIN_CMD: libc::Ioctl = libc::_IOWR::<NvmeCommand>(0x4e, 0x41);
const NVME_IOCTL_IO_CMD: libc::Ioctl = libc::_IOWR::<NvmeCommand>(0x4e, 0x43);
/// The same for commands of I/O in a ring: with the address of the data, or with that of a list of vectors.
pub const NVME_URING_CMD_IO: u32 = low_u32(libc::_IOWR::<NvmeCommand>(0x4e, 0x80) as u64);
/// With a list of vectors.
pub const NVME_URING_CMD_IO_VEC: u32 = low_u32(libc::_IOWR::<NvmeCommand>(0x4e, 0x81) as u64);

/// Numbers of the NVMe base specification: the command Get Log Page, the page SMART / Health Information, all namespaces.
const GET_LOG_PAGE: u8 = 0x02;
const HEALTH_PAGE: u32 = 0x02;
const ALL_NAMESPACES: u32 = 0xffff_ffff;
/// The command Get Features, and the feature Power Management.
const GET_FEATURES: u8 = 0x0a;
const POWER_MANAGEMENT: u32 = 0x02;
/// The command Identify, and what it describes: a namespace and the controller, and the parts of them that are of a command
/// set.
const IDENTIFY: u8 = 0x06;
const OF_NAMESPACE: u32 = 0x00;
const OF_CONTROLLER: u32 = 0x01;
const OF_NAMESPACE_AND_COMMAND_SET: u32 = 0x05;
const OF_CONTROLLER_AND_COMMAND_SET: u32 = 0x06;
/// The command sets: of blocks, and of zones.
const BLOCKS: u32 = 0;
const ZONES: u32 = 2;
/// The command I/O Management Receive, and what it receives: the status of reclaim unit handles.
const IO_MANAGEMENT_RECEIVE: u8 = 0x12;
const RECLAIM_UNIT_HANDLES: u32 = 0x01;

/// The kernel's `struct nvme_passthru_cmd` and `struct nvme_uring_cmd`, which differ in the last word alone.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct NvmeCommand {
    /// The command.
    pub opcode: u8,
    /// Flags of the queue entry; 0.
    pub flags: u8,
    reserved: u16,
    /// The namespace.
    pub namespace: u32,
    /// Words 2 and 3.
    pub words_2_3: [u32; 2],
    /// Where the metadata are.
    pub metadata: u64,
    /// Where the data are.
    pub address: u64,
    /// Length of the metadata.
    pub metadata_bytes: u32,
    /// Length of the data, or number of vectors.
    pub data_bytes: u32,
    /// Words 10 to 15.
    pub words_10_15: [u32; 6],
    /// 0 for the kernel's.
    pub timeout_ms: u32,
    result: u32,
}

impl NvmeCommand {
    /// A command without data.
    pub fn new(opcode: u8, namespace: u32, words_10_15: [u32; 6]) -> NvmeCommand {
        NvmeCommand { opcode, namespace, words_10_15, ..NvmeCommand::default() }
    }

    /// As the data of an entry of a ring.
    #[inline]
    pub fn ring_data(&self) -> [u8; 80] {
        let mut data = [0; 80];
        // SAFETY: the structure has no padding, and is shorter than the array.
        let bytes =
            unsafe { std::slice::from_raw_parts((&raw const *self).cast::<u8>(), size_of::<NvmeCommand>()) };
        data[..bytes.len()].copy_from_slice(bytes);
        data
    }
}

/// The number of the namespace behind an open device.
///
/// # Errors
/// The kernel's: `ENOTTY` if this is not an NVMe namespace.
pub fn nvme_namespace_id(device: impl AsFd) -> io::Result<u32> {
    // SAFETY: the request takes no memory.
    Ok(check(unsafe { libc::ioctl(device.as_fd().as_raw_fd(), NVME_IOCTL_ID) })?.cast_unsigned())
}

/// What a namespace consists of. Needs root before Linux 6.2.
///
/// # Errors
/// The kernel's: this is not an NVMe namespace (`ENOTTY`), or it may not be asked (`EACCES`); `EIO` if the disk refuses, or its
/// answer makes no sense.
pub fn nvme_namespace(device: impl AsFd) -> io::Result<NvmeNamespace> {
    let id = nvme_namespace_id(&device)?;
    let page = identify(&device, id, OF_NAMESPACE, BLOCKS)?;
    // Older disks do not know this question: their protection information has 16-bit guards.
    let of_command_set = identify(&device, id, OF_NAMESPACE_AND_COMMAND_SET, BLOCKS).ok();
    let parsed = parse_namespace(id, &page, of_command_set.as_deref());
    parsed.ok_or_else(|| io::Error::from_raw_os_error(libc::EIO))
}

/// The zones of a namespace. Needs root before Linux 6.2.
///
/// # Errors
/// The kernel's; `EIO` if the namespace has none.
pub fn nvme_zones(device: impl AsFd) -> io::Result<NvmeZones> {
    let id = nvme_namespace_id(&device)?;
    let parsed = parse_zones(
        &*identify(&device, id, OF_NAMESPACE, BLOCKS)?,
        &*identify(&device, id, OF_NAMESPACE_AND_COMMAND_SET, ZONES)?,
        &*identify(&device, 0, OF_CONTROLLER_AND_COMMAND_SET, ZONES)?,
        &*identify(&device, 0, OF_CONTROLLER, BLOCKS)?,
    );
    parsed.ok_or_else(|| io::Error::from_raw_os_error(libc::EIO))
}

fn identify(
    device: &impl AsFd,
    namespace: u32,
    what: u32,
    command_set: u32,
) -> io::Result<Box<[u8; IDENTIFY_BYTES]>> {
    let mut page = Box::new([0; IDENTIFY_BYTES]);
    let command = NvmeCommand::new(IDENTIFY, namespace, [what, command_set << 24, 0, 0, 0, 0]);
    receive(device, NVME_IOCTL_ADMIN_CMD, command, &mut *page)?;
    Ok(page)
}

/// The placement identifiers that writes to a namespace can name, in the order of the drive's list.
///
/// # Errors
/// The kernel's; `EIO` if the drive refuses, which it does unless flexible data placement is enabled.
pub fn nvme_placements(device: impl AsFd, namespace: u32) -> io::Result<Vec<u16>> {
    let status = |page: &mut [u8]| {
        let words = [RECLAIM_UNIT_HANDLES, to_u32(page.len() / 4 - 1), 0, 0, 0, 0];
        receive(&device, NVME_IOCTL_IO_CMD, NvmeCommand::new(IO_MANAGEMENT_RECEIVE, namespace, words), page)
    };
    // A drive may refuse a length that is not that of its answer.
    let mut header = [0; HANDLES_HEADER_BYTES];
    status(&mut header)?;
    let mut page = vec![0; handles_bytes(&header)];
    status(&mut page)?;
    Ok(parse_placements(&page))
}

/// Sends a command that reads a page, by the request for its kind of command, and returns the first word of its completion.
fn receive(
    device: &impl AsFd,
    request: libc::Ioctl,
    command: NvmeCommand,
    page: &mut [u8],
) -> io::Result<u32> {
    let address = page.as_mut_ptr() as u64;
    let mut command = NvmeCommand { address, data_bytes: to_u32(page.len()), ..command };
    // SAFETY: the request reads the command and writes at most `data_bytes` to `address`, a buffer of that length, which
    // outlives the call.
    let status = unsafe { libc::ioctl(device.as_fd().as_raw_fd(), request, &raw mut command) };
    // A positive result is a status of the disk.
    match check(status)? {
        0 => Ok(command.result),
        _ => Err(io::Error::from_raw_os_error(libc::EIO)),
    }
}

/// Reads the health log of the disk behind an open device. Needs root.
///
/// # Errors
/// The kernel's: this is not an NVMe disk (`ENOTTY`), or it may not be asked (`EACCES`); `EIO` if the disk refuses.
pub fn nvme_health(device: impl AsFd) -> io::Result<HealthLog> {
    let mut page = [0u8; HEALTH_PAGE_BYTES];
    let dwords = to_u32(HEALTH_PAGE_BYTES / 4 - 1);
    let words = [HEALTH_PAGE | dwords << 16, 0, 0, 0, 0, 0];
    let command = NvmeCommand::new(GET_LOG_PAGE, ALL_NAMESPACES, words);
    receive(&device, NVME_IOCTL_ADMIN_CMD, command, &mut page)?;
    Ok(parse_health(&page))
}

/// The power state that the disk behind an open device is in. Needs root.
///
/// # Errors
/// As of its health; `EIO` too if the answers make no sense.
pub fn nvme_power_state(device: impl AsFd) -> io::Result<PowerState> {
    let controller = identify(&device, 0, OF_CONTROLLER, BLOCKS)?;
    let command = NvmeCommand::new(GET_FEATURES, 0, [POWER_MANAGEMENT, 0, 0, 0, 0, 0]);
    let feature = receive(&device, NVME_IOCTL_ADMIN_CMD, command, &mut [])?;
    parse_power_state(&controller, feature).ok_or_else(|| io::Error::from_raw_os_error(libc::EIO))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_has_the_kernels_size() {
        assert_eq!(size_of::<NvmeCommand>(), 72);
        assert_eq!((NVME_URING_CMD_IO, NVME_URING_CMD_IO_VEC), (0xc048_4e80, 0xc048_4e81));
        assert_eq!((NVME_IOCTL_ADMIN_CMD as u32, NVME_IOCTL_IO_CMD as u32), (0xc048_4e41, 0xc048_4e43));
    }

    #[test]
    fn a_file_has_no_health() {
        let file = std::fs::File::open("/proc/self/exe").unwrap();
        assert!(nvme_health(&file).is_err() && nvme_namespace(&file).is_err() && nvme_zones(&file).is_err());
        assert!(nvme_placements(&file, 1).is_err() && nvme_power_state(&file).is_err());
    }
}
