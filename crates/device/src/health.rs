//! What a disk reports about its own health, in terms that all kinds of disks share.
//!
//! Invariant: a figure that a disk does not report is `None`, so that growth is never computed from a made-up zero.

use std::fmt;

/// A disk's report about itself at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HealthLog {
    /// Its temperature in degrees Celsius.
    pub temperature_celsius: Option<i64>,
    /// Whether it reports that it is too hot.
    pub is_too_hot: bool,
    /// How often it has slowed down because of its temperature.
    pub thermal_slowdowns: Option<u64>,
    /// Errors of its medium that it could not correct.
    pub media_errors: Option<u64>,
    /// How much of its rated life is used, in percent; may exceed 100.
    pub used_percent: Option<u64>,
    /// What hosts have written to it in its life, in bytes, exact to the unit in which it counts.
    pub written_bytes: Option<u64>,
    /// Its warning that it has failed or is about to.
    pub failure_warning: Option<FailureWarning>,
}

/// How a disk warns that it has failed or is about to, in the terms of its specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureWarning {
    /// The critical warning of an NVMe disk.
    Critical(u8),
    /// The SMART status of an ATA disk.
    ThresholdExceeded,
    /// The additional sense code of a SCSI disk and its qualifier.
    Sense(u8, u8),
}

impl fmt::Display for FailureWarning {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FailureWarning::Critical(bits) => write!(out, "critical warning {bits:#04x}"),
            FailureWarning::ThresholdExceeded => out.write_str("SMART status: a threshold was exceeded"),
            FailureWarning::Sense(code, qualifier) => {
                write!(out, "additional sense {code:02X}h/{qualifier:02X}h")
            }
        }
    }
}

/// A number of `length` bytes at an offset, the least significant first; bytes beyond the end count as 0.
pub(crate) fn little_endian(bytes: &[u8], offset: usize, length: usize) -> u64 {
    let at = |index: usize| u64::from(bytes.get(offset + index).copied().unwrap_or(0));
    (0..length).rev().fold(0, |number, index| number << 8 | at(index))
}

/// The number in two bytes, the least significant first; bytes beyond the end count as 0.
pub(crate) fn little_endian_u16(bytes: &[u8], offset: usize) -> u16 {
    let at = |index: usize| bytes.get(index).copied().unwrap_or(0);
    u16::from_le_bytes([at(offset), at(offset + 1)])
}

/// A number in all of these bytes, the most significant first; the last eight count if there are more.
pub(crate) fn big_endian(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_shown_as_their_specifications_write_them() {
        assert_eq!(FailureWarning::Critical(4).to_string(), "critical warning 0x04");
        assert_eq!(FailureWarning::Sense(0x5d, 0x10).to_string(), "additional sense 5Dh/10h");
    }

    #[test]
    fn numbers_are_read_in_both_orders_and_end_with_their_bytes() {
        assert_eq!(little_endian(&[9, 0x40, 1], 1, 2), 0x140);
        assert_eq!(little_endian(&[7], 0, 4), 7);
        assert_eq!(little_endian(&[], 3, 8), 0);
        assert_eq!((little_endian_u16(&[9, 0x40, 1], 1), little_endian_u16(&[7], 0)), (0x140, 7));
        assert_eq!(big_endian(&[1, 0x40]), 0x140);
        assert_eq!(big_endian(&[]), 0);
        assert_eq!(big_endian(&[9, 0, 0, 0, 0, 0, 0, 0, 1]), 1);
    }
}
