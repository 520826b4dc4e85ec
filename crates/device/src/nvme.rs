//! The health log page of NVMe disks (log page 02h of the NVMe base specification).
//!
//! Invariant: pure, and total: any bytes are a log.

use crate::health::{FailureWarning, HealthLog, little_endian, little_endian_u16};

/// Length of the page.
pub const HEALTH_PAGE_BYTES: usize = 512;

/// Bits of the critical warning: of its temperature, and that it can no longer be relied upon (spare blocks, reliability,
/// read-only, backup of its volatile memory).
const WARNS_OF_HEAT: u8 = 1 << 1;
const WARNS_OF_FAILURE: u8 = 1 << 0 | 1 << 2 | 1 << 3 | 1 << 4;

/// Kelvin of 0 degrees Celsius.
const ZERO_CELSIUS_K: i64 = 273;

/// The unit of data written by hosts, which the disk counts rounded up.
pub const WRITTEN_UNIT_BYTES: u64 = 512_000;

/// The health that a log page reports.
pub fn parse_health(page: &[u8; HEALTH_PAGE_BYTES]) -> HealthLog {
    let warning = page[0];
    let kelvin = i64::from(little_endian_u16(page, 1));
    HealthLog {
        // A disk without a sensor reports 0.
        temperature_celsius: (kelvin > 0).then_some(kelvin - ZERO_CELSIUS_K),
        is_too_hot: warning & WARNS_OF_HEAT != 0,
        thermal_slowdowns: Some(little_endian(page, 216, 4) + little_endian(page, 220, 4)),
        // Of 16 bytes; a disk with more errors than fit into 8 has other problems.
        media_errors: Some(little_endian(page, 160, 8)),
        used_percent: Some(u64::from(page[5])),
        // Of 16 bytes; 0 says that the disk does not count.
        written_bytes: Some(little_endian(page, 48, 8))
            .filter(|units| *units > 0)
            .map(|units| units.saturating_mul(WRITTEN_UNIT_BYTES)),
        failure_warning: (warning & WARNS_OF_FAILURE != 0).then_some(FailureWarning::Critical(warning)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_read_at_the_offsets_of_the_specification() {
        let mut page = [0; HEALTH_PAGE_BYTES];
        (page[0], page[1], page[2], page[5]) = (2, 0x40, 1, 101);
        (page[48], page[49]) = (2, 1);
        (page[160], page[161], page[216], page[220]) = (7, 1, 2, 3);
        let expected = HealthLog {
            temperature_celsius: Some(0x140 - 273),
            is_too_hot: true,
            thermal_slowdowns: Some(5),
            media_errors: Some(263),
            used_percent: Some(101),
            written_bytes: Some(258 * 512_000),
            failure_warning: None,
        };
        assert_eq!(parse_health(&page), expected);
    }

    #[test]
    fn each_bit_of_the_critical_warning_is_heat_failure_or_neither() {
        let of = |warning: u8| {
            let mut page = [0; HEALTH_PAGE_BYTES];
            page[0] = warning;
            let log = parse_health(&page);
            (log.is_too_hot, log.failure_warning)
        };
        assert_eq!(of(2), (true, None));
        for bit in [1, 4, 8, 16] {
            assert_eq!(of(bit), (false, Some(FailureWarning::Critical(bit))));
        }
        assert_eq!(of(32), (false, None), "persistent memory is not used");
        let empty = parse_health(&[0; HEALTH_PAGE_BYTES]);
        assert_eq!((empty.temperature_celsius, empty.written_bytes), (None, None));
    }
}
