//! SMART of ATA disks: the sector of SMART READ DATA, and the status that SMART RETURN STATUS leaves in the registers.
//!
//! Invariant: pure, and total: an answer that is damaged, or of another command, reports nothing.

use crate::health::{HealthLog, little_endian};

/// Length of the data of SMART READ DATA.
pub const SMART_DATA_BYTES: usize = 512;

/// The attributes are of the vendor's choice by the standard, and agreed upon by nearly all of them: a version of two
/// bytes, then 30 entries of 12 bytes (number, two of flags, value, worst value, six of the raw value, one reserved).
const ENTRIES_OFFSET: usize = 2;
const ENTRY_COUNT: usize = 30;
const ENTRY_BYTES: usize = 12;
const RAW_OFFSET: usize = 5;

/// Numbers of attributes: errors that were reported to the host because they could not be corrected, sectors that could
/// not be read, and the temperature of the disk or of the air around it.
const REPORTED_UNCORRECTABLE: u8 = 187;
const PENDING_SECTORS: u8 = 197;
const TEMPERATURES: [u8; 2] = [194, 190];

/// Values of the two upper bytes of the address after SMART RETURN STATUS, the high one first: a threshold was exceeded.
const THRESHOLD_EXCEEDED: [u8; 2] = [0x2c, 0xf4];
const NOT_EXCEEDED: [u8; 2] = [0xc2, 0x4f];

/// The health in the data of SMART READ DATA; `None` if its checksum is wrong.
pub fn parse_smart_data(data: &[u8; SMART_DATA_BYTES]) -> Option<HealthLog> {
    let sum = data.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
    // Some bridges answer with zeros.
    if sum != 0 || data.iter().all(|byte| *byte == 0) {
        return None;
    }
    let raw = |number: u8| {
        let entries =
            (0..ENTRY_COUNT).map(|index| &data[ENTRIES_OFFSET + index * ENTRY_BYTES..][..ENTRY_BYTES]);
        entries.into_iter().find(|entry| entry[0] == number).map(|entry| &entry[RAW_OFFSET..])
    };
    // The upper bytes have the lowest and the highest temperature so far.
    let celsius = |raw: &[u8]| i64::from(raw[0].cast_signed());
    let count = |raw: &[u8]| little_endian(raw, 0, 4);
    Some(HealthLog {
        temperature_celsius: TEMPERATURES.into_iter().find_map(raw).map(celsius),
        media_errors: raw(REPORTED_UNCORRECTABLE).or_else(|| raw(PENDING_SECTORS)).map(count),
        ..HealthLog::default()
    })
}

/// Whether a disk predicts its failure, from the sense data that a SCSI layer makes of the registers after SMART RETURN
/// STATUS; `None` if it does not contain them.
pub fn parse_smart_status(sense: &[u8]) -> Option<bool> {
    let address = match sense.first()? & 0x7f {
        // Descriptors: the one of ATA has the number 9 and 12 bytes.
        0x72 => {
            let mut rest = sense.get(8..)?;
            loop {
                let (number, length) = (*rest.first()?, usize::from(*rest.get(1)?));
                if number == 9 && length >= 12 {
                    break [*rest.get(11)?, *rest.get(9)?];
                }
                rest = rest.get(2 + length..)?;
            }
        }
        // The fixed format has the registers in its information, where the additional code says so (00h, 1Dh).
        0x70 if sense.get(12..14)? == [0x00, 0x1d] => [*sense.get(11)?, *sense.get(10)?],
        _ => return None,
    };
    match address {
        THRESHOLD_EXCEEDED => Some(true),
        NOT_EXCEEDED => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Data with these attributes and their raw values, with a correct checksum.
    fn data(attributes: &[(u8, [u8; 6])]) -> [u8; SMART_DATA_BYTES] {
        let mut data = [0; SMART_DATA_BYTES];
        data[0] = 1;
        for (index, (number, raw)) in attributes.iter().enumerate() {
            let entry = &mut data[2 + index * 12..][..12];
            entry[0] = *number;
            entry[5..11].copy_from_slice(raw);
        }
        let sum = data.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
        data[511] = sum.wrapping_neg();
        data
    }

    #[test]
    fn attributes_are_found_by_their_numbers() {
        let all = data(&[
            (5, [9, 0, 0, 0, 0, 0]),
            (194, [41, 0, 12, 0, 55, 0]),
            (197, [8; 6]),
            (187, [3, 1, 0, 0, 0, 0]),
        ]);
        let log = parse_smart_data(&all).unwrap();
        assert_eq!((log.temperature_celsius, log.media_errors), (Some(41), Some(259)));
        let less = data(&[(190, [250, 0, 0, 0, 0, 0]), (197, [2, 0, 0, 0, 9, 9])]);
        let log = parse_smart_data(&less).unwrap();
        assert_eq!((log.temperature_celsius, log.media_errors), (Some(-6), Some(2)));
        assert_eq!(parse_smart_data(&data(&[(1, [1; 6])])), Some(HealthLog::default()));
    }

    #[test]
    fn damaged_data_report_nothing() {
        let mut damaged = data(&[(194, [41, 0, 0, 0, 0, 0])]);
        damaged[100] ^= 1;
        assert_eq!(parse_smart_data(&damaged), None);
        assert_eq!(parse_smart_data(&[0; SMART_DATA_BYTES]), None);
    }

    #[test]
    fn a_status_is_read_from_both_formats_of_sense_data() {
        let descriptor = |middle: u8, high: u8| {
            let mut sense = vec![0x72, 1, 0, 0x1d, 0, 0, 0, 20];
            sense.extend([0, 4, 1, 1, 1, 1]);
            sense.extend([9, 12, 0, 0, 0, 0, 0, 0, 0, middle, 0, high, 0, 0x50]);
            sense
        };
        assert_eq!(parse_smart_status(&descriptor(0x4f, 0xc2)), Some(false));
        assert_eq!(parse_smart_status(&descriptor(0xf4, 0x2c)), Some(true));
        assert_eq!(parse_smart_status(&descriptor(0, 0)), None);
        assert_eq!(parse_smart_status(&descriptor(0xf4, 0x2c)[..20]), None, "cut");
        let mut fixed = [0x70, 0, 1, 0, 0x50, 0, 0, 10, 0, 0, 0xf4, 0x2c, 0, 0x1d];
        assert_eq!(parse_smart_status(&fixed), Some(true));
        fixed[13] = 0;
        assert_eq!(parse_smart_status(&fixed), None, "of something else");
        assert_eq!(parse_smart_status(&[]), None);
    }
}
