//! The checksums of protection information, which disks compute too.
//!
//! Invariant: the standards' numbers, as T10 (SCSI) and the NVM command set (NVMe) define them.

use crc::{CRC_16_T10_DIF, CRC_64_NVME, Crc, Table};

static T10_DIF: Crc<u16, Table<1>> = Crc::<u16, Table<1>>::new(&CRC_16_T10_DIF);
static NVME: Crc<u64, Table<1>> = Crc::<u64, Table<1>>::new(&CRC_64_NVME);

/// The 16-bit guard of data in two parts.
pub fn guard16(data: &[u8], rest: &[u8]) -> u16 {
    let mut digest = T10_DIF.digest();
    digest.update(data);
    digest.update(rest);
    digest.finalize()
}

/// The 64-bit guard of data in two parts.
pub fn guard64(data: &[u8], rest: &[u8]) -> u64 {
    let mut digest = NVME.digest();
    digest.update(data);
    digest.update(rest);
    digest.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guards_are_those_of_the_standards() {
        assert_eq!(guard16(b"12345", b"6789"), 0xd0db);
        // The test cases of the NVM command set specification: 4096 bytes of 0x00, and of 0xff.
        assert_eq!(guard64(&[0; 4096], &[]), 0x6482_d367_eb22_b64e);
        assert_eq!(guard64(&[0xff; 2048], &[0xff; 2048]), 0xc0dd_ba73_02ec_a3ac);
    }
}
