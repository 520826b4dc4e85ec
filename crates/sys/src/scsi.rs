//! The health of SCSI and ATA disks, by commands sent with `SG_IO`: LOG SENSE, and SMART through ATA PASS-THROUGH (16).
//!
//! Invariant: only the commands listed here are sent. Each reads what the disk knows about itself, transfers nothing to
//! it and does not touch its medium.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use fiord_device::ata::{SMART_DATA_BYTES, parse_smart_data, parse_smart_status};
use fiord_device::scsi::{LOG_PAGES, parse_log_pages};
use fiord_device::{FailureWarning, HealthLog};

use crate::sg::{self, CHECK_CONDITION, GOOD, SENSE_BYTES, SgData, SgRequest, sense_key};
use crate::width::to_u32;

/// How long a disk may take. The kernel resets a disk that does not answer in time, so this is long enough for one that
/// others keep busy.
const TIMEOUT_MS: u32 = 5000;

const LOG_SENSE: u8 = 0x4d;
const CURRENT_VALUES: u8 = 0x40;
const LOG_PAGE_BYTES: u16 = 512;

const ATA_PASS_THROUGH_16: u8 = 0x85;
/// Protocols, shifted to their place.
const NON_DATA: u8 = 3 << 1;
const PIO_DATA_IN: u8 = 4 << 1;
/// The length is in blocks and in the sector count, and data come from the disk; or the registers are wanted afterwards.
const FROM_DISK_IN_BLOCKS: u8 = 0x0e;
const RETURN_REGISTERS: u8 = 0x20;
const SMART: u8 = 0xb0;
const SMART_READ_DATA: u8 = 0xd0;
const SMART_RETURN_STATUS: u8 = 0xda;
/// The middle and the high byte of the address, without which a disk rejects every SMART command.
const SMART_KEY: [u8; 2] = [0x4f, 0xc2];

/// The sense key of a disk that was reset, or whose settings or medium were changed.
const UNIT_ATTENTION: u8 = 6;

/// An answer: how many bytes of data there are, the status, and the sense data.
struct Answer {
    data_bytes: usize,
    status: u8,
    sense: Vec<u8>,
}

/// The health of a SCSI disk: of its log pages, those that it has. Needs root, or the right to read the disk.
///
/// # Errors
/// The kernel's: this is not a SCSI disk (`ENOTTY`, `EINVAL`), or it may not be asked (`EPERM`); `EIO` if it has none of
/// the pages.
pub fn scsi_health(device: impl AsFd) -> io::Result<HealthLog> {
    let mut pages = Vec::new();
    for code in LOG_PAGES {
        let mut page = vec![0; LOG_PAGE_BYTES.into()];
        let [high, low] = LOG_PAGE_BYTES.to_be_bytes();
        let command = [LOG_SENSE, 0, CURRENT_VALUES | code, 0, 0, 0, 0, high, low, 0];
        let answer = send(&device, &command, &mut page)?;
        if answer.status == GOOD {
            page.truncate(answer.data_bytes);
            pages.push(page);
        }
    }
    match pages.is_empty() {
        true => Err(io::Error::from_raw_os_error(libc::EIO)),
        false => Ok(parse_log_pages(pages.iter().map(Vec::as_slice))),
    }
}

/// The health of an ATA disk: its SMART data and status. Needs root.
///
/// # Errors
/// The kernel's: this is not a SCSI or ATA disk (`ENOTTY`, `EINVAL`), or it may not be asked (`EPERM`); `EIO` if it has no
/// SMART, or it is switched off.
pub fn ata_health(device: impl AsFd) -> io::Result<HealthLog> {
    let mut data = [0; SMART_DATA_BYTES];
    let command = smart(SMART_READ_DATA, PIO_DATA_IN, FROM_DISK_IN_BLOCKS);
    let answer = send(&device, &command, &mut data)?;
    let is_whole = answer.status == GOOD && answer.data_bytes == SMART_DATA_BYTES;
    let log = is_whole.then(|| parse_smart_data(&data)).flatten();
    // The registers come as sense data, with which the command counts as done.
    let answer = send(&device, &smart(SMART_RETURN_STATUS, NON_DATA, RETURN_REGISTERS), &mut [])?;
    let fails = (answer.status == CHECK_CONDITION).then(|| parse_smart_status(&answer.sense)).flatten();
    if log.is_none() && fails.is_none() {
        return Err(io::Error::from_raw_os_error(libc::EIO));
    }
    let failure_warning = (fails == Some(true)).then_some(FailureWarning::ThresholdExceeded);
    Ok(HealthLog { failure_warning, ..log.unwrap_or_default() })
}

/// ATA PASS-THROUGH (16) of a SMART command.
fn smart(feature: u8, protocol: u8, transfer: u8) -> [u8; 16] {
    let mut command = [0; 16];
    (command[0], command[1], command[2]) = (ATA_PASS_THROUGH_16, protocol, transfer);
    (command[4], command[6], command[14]) = (feature, 1, SMART);
    [command[10], command[12]] = SMART_KEY;
    command
}

/// Sends a command that transfers data from the device into `data`, or none if that is empty. It is sent again if the disk
/// refused it only to report that something has changed.
fn send(device: &impl AsFd, command: &[u8], data: &mut [u8]) -> io::Result<Answer> {
    let answer = send_once(device, command, data)?;
    if answer.status == CHECK_CONDITION && sense_key(&answer.sense) == Some(UNIT_ATTENTION) {
        return send_once(device, command, data);
    }
    Ok(answer)
}

fn send_once(device: &impl AsFd, command: &[u8], data: &mut [u8]) -> io::Result<Answer> {
    let mut sense = [0_u8; SENSE_BYTES];
    let transfer = match data.is_empty() {
        true => SgData::None,
        false => SgData::FromDevice(data.as_mut_ptr(), to_u32(data.len())),
    };
    let mut request = SgRequest::new(command, transfer, &mut sense, 0, TIMEOUT_MS);
    // SAFETY: the request names three buffers with their lengths, which outlive the call: the command, which is read, and
    // the data and the sense data, which are written up to those lengths. The call ends when the command has.
    unsafe { sg::execute(device.as_fd().as_raw_fd(), &mut request) }?;
    // The host adapter could not deliver it, or it timed out.
    if request.host_status != 0 {
        return Err(io::Error::from_raw_os_error(libc::EIO));
    }
    let sense_bytes = usize::from(request.sense_bytes).min(SENSE_BYTES);
    Ok(Answer {
        data_bytes: data.len().saturating_sub(request.residual_bytes()),
        status: request.status,
        sense: sense[..sense_bytes].to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn smart_commands_have_the_layout_of_the_translation_standard() {
        let read = smart(SMART_READ_DATA, PIO_DATA_IN, FROM_DISK_IN_BLOCKS);
        assert_eq!(read, [0x85, 0x08, 0x0e, 0, 0xd0, 0, 1, 0, 0, 0, 0x4f, 0, 0xc2, 0, 0xb0, 0]);
        let status = smart(SMART_RETURN_STATUS, NON_DATA, RETURN_REGISTERS);
        assert_eq!((status[1], status[2], status[4]), (0x06, 0x20, 0xda));
    }

    #[test]
    fn a_file_has_no_health() {
        let file = File::open("/proc/self/exe").unwrap();
        assert!(scsi_health(&file).is_err());
        assert!(ata_health(&file).is_err());
    }
}
