//! SCSI commands as the `sg` driver takes them: one at a time (`SG_IO`), or written to a character device and read back when
//! they have ended.
//!
//! Invariant: a request names memory that its caller keeps; nothing here is sent twice.

use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::time::Duration;

use crate::clock::c_timespec;
use crate::errno::{Errno, check, check_len};
use crate::width::to_u32;

/// From the kernel's `scsi/sg.h`.
const SG_IO: libc::Ioctl = 0x2285;
const NO_TRANSFER: i32 = -1;
const TO_DEVICE: i32 = -2;
const FROM_DEVICE: i32 = -3;

/// Polled completion, of versions of the driver that have it; others ignore it.
pub const FLAG_POLLED: u32 = 0x800;

/// Statuses of SCSI: done, and done or refused with sense data.
pub(crate) const GOOD: u8 = 0x00;
pub(crate) const CHECK_CONDITION: u8 = 0x02;

/// The longest sense data that a request has room for.
pub const SENSE_BYTES: usize = 64;

/// The kernel's `struct sg_io_hdr`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct SgRequest {
    interface_id: i32,
    direction: i32,
    command_bytes: u8,
    sense_bytes_max: u8,
    vector_count: u16,
    data_bytes: u32,
    data: *mut u8,
    command: *const u8,
    sense: *mut u8,
    timeout_ms: u32,
    flags: u32,
    pack_id: i32,
    user_pointer: *mut u8,
    pub(crate) status: u8,
    masked_status: u8,
    message_status: u8,
    pub(crate) sense_bytes: u8,
    pub(crate) host_status: u16,
    driver_status: u16,
    residual_bytes: i32,
    duration_ms: u32,
    info: u32,
}

/// The data of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SgData {
    /// None.
    None,
    /// From this memory to the device.
    ToDevice(*mut u8, u32),
    /// From the device into this memory.
    FromDevice(*mut u8, u32),
}

impl SgRequest {
    /// A request for nothing.
    pub const EMPTY: SgRequest = SgRequest {
        interface_id: b'S' as i32,
        direction: NO_TRANSFER,
        command_bytes: 0,
        sense_bytes_max: 0,
        vector_count: 0,
        data_bytes: 0,
        data: std::ptr::null_mut(),
        command: std::ptr::null(),
        sense: std::ptr::null_mut(),
        timeout_ms: 0,
        flags: 0,
        pack_id: 0,
        user_pointer: std::ptr::null_mut(),
        status: 0,
        masked_status: 0,
        message_status: 0,
        sense_bytes: 0,
        host_status: 0,
        driver_status: 0,
        residual_bytes: 0,
        duration_ms: 0,
        info: 0,
    };

    /// A request with this number, to send these bytes of a command, and to put sense data there.
    pub fn new(command: &[u8], data: SgData, sense: &mut [u8], number: i32, timeout_ms: u32) -> SgRequest {
        let (direction, data, data_bytes) = match data {
            SgData::None => (NO_TRANSFER, std::ptr::null_mut(), 0),
            SgData::ToDevice(start, bytes) => (TO_DEVICE, start, bytes),
            SgData::FromDevice(start, bytes) => (FROM_DEVICE, start, bytes),
        };
        SgRequest {
            direction,
            command_bytes: u8::try_from(command.len()).unwrap_or(u8::MAX),
            sense_bytes_max: u8::try_from(sense.len().min(SENSE_BYTES)).unwrap_or(u8::MAX),
            data_bytes,
            data,
            command: command.as_ptr(),
            sense: sense.as_mut_ptr(),
            timeout_ms,
            pack_id: number,
            ..SgRequest::EMPTY
        }
    }

    /// With this flag.
    #[must_use]
    pub fn with_flag(self, flag: u32) -> SgRequest {
        SgRequest { flags: self.flags | flag, ..self }
    }

    /// Its number.
    pub fn number(&self) -> i32 {
        self.pack_id
    }

    /// How many bytes of data were not transferred.
    pub fn residual_bytes(&self) -> usize {
        usize::try_from(self.residual_bytes).unwrap_or(0)
    }

    /// How a request that was answered ended, with its sense data.
    ///
    /// # Errors
    /// The errno that the kernel has for the same condition of a block device, where it has one; `EIO` for the medium and the
    /// rest, as fio's.
    pub fn result(&self, sense: &[u8]) -> Result<(), Errno> {
        // The host adapter could not deliver it, or it timed out.
        if self.host_status != 0 {
            return Err(Errno(if self.host_status == HOST_TIME_OUT { libc::ETIMEDOUT } else { libc::EIO }));
        }
        let sense = &sense[..usize::from(self.sense_bytes).min(sense.len())];
        match self.status {
            GOOD | CONDITION_MET => Ok(()),
            CHECK_CONDITION => of_sense(sense),
            RESERVATION_CONFLICT => Err(Errno(libc::EBUSY)),
            _ => Err(Errno(libc::EIO)),
        }
    }
}

const CONDITION_MET: u8 = 0x04;
const RESERVATION_CONFLICT: u8 = 0x18;
const HOST_TIME_OUT: u16 = 3;

/// The kind of condition in sense data of either format.
pub(crate) fn sense_key(sense: &[u8]) -> Option<u8> {
    let key = match sense.first()? & 0x7f {
        0x70 | 0x71 => sense.get(2)?,
        0x72 | 0x73 => sense.get(1)?,
        _ => return None,
    };
    Some(key & 0x0f)
}

/// The additional sense code, which tells conditions of one kind apart.
fn additional_code(sense: &[u8]) -> Option<u8> {
    match sense.first()? & 0x7f {
        0x70 | 0x71 => sense.get(12).copied(),
        0x72 | 0x73 => sense.get(2).copied(),
        _ => None,
    }
}

/// The error that sense data report.
fn of_sense(sense: &[u8]) -> Result<(), Errno> {
    /// An additional code: protection information does not match; the device is protected from writes.
    const PROTECTION: u8 = 0x10;
    Err(Errno(match sense_key(sense) {
        // No sense; recovered error.
        Some(0 | 1) => return Ok(()),
        Some(2) => libc::ENXIO,
        Some(5) => libc::EREMOTEIO,
        Some(7) => libc::EROFS,
        Some(0xb) if additional_code(sense) == Some(PROTECTION) => libc::EILSEQ,
        // Volume overflow; miscompare.
        Some(0xd) => libc::ENOSPC,
        Some(0xe) => libc::EILSEQ,
        _ => libc::EIO,
    }))
}

/// Sends a request and waits for its answer.
///
/// # Errors
/// The kernel's, if it cannot be sent.
///
/// # Safety
///
/// The memory that the request names is valid for its length until this returns.
pub unsafe fn execute(fd: RawFd, request: &mut SgRequest) -> io::Result<()> {
    // SAFETY: the call reads and writes the request and the memory it names, which the caller vouches for.
    check(unsafe { libc::ioctl(fd, SG_IO, std::ptr::from_mut(request)) }).map(drop)
}

/// Sends a request to a character device, which answers later.
///
/// # Errors
/// The kernel's: `EDOM` if the device has too many requests already.
///
/// # Safety
///
/// The memory that the request names is valid for its length until the answer has been received.
pub unsafe fn send(fd: RawFd, request: &SgRequest) -> io::Result<()> {
    let start = std::ptr::from_ref(request).cast();
    // SAFETY: the call reads the request and the memory it names, which the caller vouches for.
    check_len(unsafe { libc::write(fd, start, size_of::<SgRequest>()) }).map(drop)
}

/// Receives an answer from a character device, and waits for one if there is none.
///
/// # Errors
/// The kernel's.
pub fn receive(fd: RawFd) -> io::Result<SgRequest> {
    // Of any request.
    let mut answer = SgRequest { pack_id: -1, ..SgRequest::EMPTY };
    let start = (&raw mut answer).cast();
    // SAFETY: the call writes the answer, and the memory named by the request that it answers, which its sender keeps.
    check_len(unsafe { libc::read(fd, start, size_of::<SgRequest>()) })?;
    Ok(answer)
}

/// Whether an answer can be received without waiting from any of these devices; waits for at most this long for one, and
/// for ever with `None`.
///
/// # Errors
/// The kernel's.
pub fn wait(devices: &mut [libc::pollfd], time_ns: Option<u64>) -> io::Result<bool> {
    let time = time_ns.map(Duration::from_nanos).map(c_timespec);
    let time = time.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    let count = devices.len() as libc::nfds_t;
    // SAFETY: the call writes the devices, and reads the time; both live through it.
    Ok(check(unsafe { libc::ppoll(devices.as_mut_ptr(), count, time, std::ptr::null()) })? > 0)
}

/// What a SCSI disk consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScsiDisk {
    /// How many blocks it has.
    pub blocks: u64,
    /// The length of a block.
    pub block_bytes: u32,
    /// How many ranges one UNMAP may have.
    pub unmap_ranges_max: u32,
}

/// Asks a disk for its capacity and limits.
///
/// # Errors
/// The kernel's: this is not a SCSI disk (`ENOTTY`, `EINVAL`), or it may not be asked (`EPERM`); or that of the disk.
pub fn scsi_disk(device: impl AsFd) -> io::Result<ScsiDisk> {
    const READ_CAPACITY_16: [u8; 16] = [0x9e, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 32, 0, 0];
    /// INQUIRY of the vital product data page Block Limits.
    const BLOCK_LIMITS: [u8; 6] = [0x12, 1, 0xb0, 0, 64, 0];
    let mut capacity = [0_u8; 32];
    ask(&device, &READ_CAPACITY_16, &mut capacity)?;
    let mut limits = [0_u8; 64];
    // A disk without the page takes one range at a time.
    let ranges = ask(&device, &BLOCK_LIMITS, &mut limits).map_or(1, |()| big_endian32(&limits[24..]));
    parse_disk(&capacity, ranges).ok_or_else(|| io::Error::from_raw_os_error(libc::EIO))
}

fn parse_disk(capacity: &[u8; 32], ranges: u32) -> Option<ScsiDisk> {
    let last = u64::from(big_endian32(capacity)) << 32 | u64::from(big_endian32(&capacity[4..]));
    let block_bytes = big_endian32(&capacity[8..]);
    let blocks = last.checked_add(1)?;
    (block_bytes > 0).then_some(ScsiDisk { blocks, block_bytes, unmap_ranges_max: ranges.max(1) })
}

fn big_endian32(bytes: &[u8]) -> u32 {
    bytes.iter().take(4).fold(0, |number, byte| number << 8 | u32::from(*byte))
}

/// Opens a stream of a disk, whose number it returns; or closes the one of this number.
///
/// # Errors
/// As `scsi_disk`'s; `EREMOTEIO` if it has no streams.
pub fn stream_control(device: impl AsFd, close: Option<u16>) -> io::Result<u16> {
    const OPEN: u8 = 1 << 5;
    const CLOSE: u8 = 2 << 5;
    let mut command = [0x9e, 0x14, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0];
    command[1] |= if close.is_some() { CLOSE } else { OPEN };
    [command[4], command[5]] = close.unwrap_or(0).to_be_bytes();
    let mut answer = [0; 8];
    ask(&device, &command, &mut answer)?;
    Ok(u16::from_be_bytes([answer[4], answer[5]]))
}

/// Sends a command that reads an answer; again, if the disk only reported that something had changed.
fn ask(device: &impl AsFd, command: &[u8], answer: &mut [u8]) -> io::Result<()> {
    const UNIT_ATTENTION: u8 = 6;
    const TIMEOUT_MS: u32 = 30_000;
    const TRIES: u32 = 4;
    let mut result = Ok(());
    for _ in 0..TRIES {
        let mut sense = [0; SENSE_BYTES];
        let data = SgData::FromDevice(answer.as_mut_ptr(), to_u32(answer.len()));
        let mut request = SgRequest::new(command, data, &mut sense, 0, TIMEOUT_MS);
        // SAFETY: the command, the answer and the sense data outlive the call.
        unsafe { execute(device.as_fd().as_raw_fd(), &mut request) }?;
        result = request.result(&sense);
        if request.status != CHECK_CONDITION || sense_key(&sense) != Some(UNIT_ATTENTION) {
            break;
        }
    }
    result.map_err(|errno| io::Error::from_raw_os_error(errno.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_request_has_the_kernels_size() {
        assert_eq!(size_of::<SgRequest>(), if cfg!(target_pointer_width = "64") { 88 } else { 64 });
    }

    #[test]
    fn sense_data_become_errors() {
        let of = |sense: &[u8]| {
            let answer =
                SgRequest { status: CHECK_CONDITION, sense_bytes: sense.len() as u8, ..SgRequest::EMPTY };
            answer.result(sense)
        };
        assert_eq!(of(&[0x72, 1]), Ok(()));
        assert_eq!(of(&[0x70, 0, 3]), Err(Errno(libc::EIO)), "after which jobs may continue, as in fio");
        assert_eq!(of(&[0x72, 0xb, 0x10]), Err(Errno(libc::EILSEQ)));
        assert_eq!((of(&[0x72, 0xe]), of(&[])), (Err(Errno(libc::EILSEQ)), Err(Errno(libc::EIO))));
        let lost = SgRequest { host_status: HOST_TIME_OUT, ..SgRequest::EMPTY };
        assert_eq!((lost.result(&[]), SgRequest::EMPTY.result(&[])), (Err(Errno(libc::ETIMEDOUT)), Ok(())));
    }

    #[test]
    fn the_sense_key_is_found_in_both_formats() {
        assert_eq!(sense_key(&[0x70, 0, 0xf6, 0]), Some(6));
        assert_eq!(sense_key(&[0x72, 0x05, 0x24]), Some(5));
        assert_eq!((sense_key(&[]), sense_key(&[0x70]), sense_key(&[0, 6, 6])), (None, None, None));
    }

    #[test]
    fn a_capacity_is_read_as_the_standard_says() {
        let mut capacity = [0; 32];
        (capacity[2], capacity[7], capacity[10]) = (1, 0xff, 0x10);
        let disk = parse_disk(&capacity, 0).unwrap();
        assert_eq!((disk.blocks, disk.block_bytes, disk.unmap_ranges_max), ((1 << 40) + 256, 4096, 1));
        assert_eq!(parse_disk(&[0; 32], 1), None);
        assert_eq!(parse_disk(&[0xff; 32], 1), None);
    }

    #[test]
    fn a_file_is_no_scsi_disk() {
        let file = std::fs::File::open("/proc/self/exe").unwrap();
        assert!(scsi_disk(&file).is_err() && stream_control(&file, None).is_err());
    }
}
