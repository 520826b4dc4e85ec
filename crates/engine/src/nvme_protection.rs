//! Protection information that the job makes and checks itself (`pi_act=0`).
//!
//! Invariant: what is generated here passes every check of a controller, and the checks here are those of a controller.

use fiord_checksum::{guard16, guard64};
use fiord_sys::nvme::{NvmeGuard, NvmeProtection};

/// The largest reference tag beside a 64-bit guard, and beside one of 16 bits.
const REFERENCE48: u64 = (1 << 48) - 1;
const REFERENCE32: u64 = (1 << 32) - 1;

/// What the protection information of a job consists of, and what of it is checked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Protector {
    /// Its layout.
    pub protection: NvmeProtection,
    /// Guard, application tag, reference tag.
    pub checks: [bool; 3],
    /// The application tag, and the bits of it that are checked.
    pub application_tag: [u16; 2],
}

impl Protector {
    /// The guard and the place of the information of a block: that of the first or the last bytes of its metadata.
    fn guard(&self, data: &[u8], metadata: &[u8]) -> (u64, usize) {
        let length = self.protection.bytes() as usize;
        let place = if self.protection.is_first { 0 } else { metadata.len() - length };
        let guard = match self.protection.guard {
            NvmeGuard::Crc16 => u64::from(guard16(data, &metadata[..place])),
            NvmeGuard::Crc64 => guard64(data, &metadata[..place]),
        };
        (guard, place)
    }

    /// Writes the information of a block.
    pub(crate) fn protect(&self, data: &[u8], metadata: &mut [u8], block: u64) {
        let (guard, place) = self.guard(data, metadata);
        let tag = self.application_tag[0].to_be_bytes();
        match self.protection.guard {
            NvmeGuard::Crc16 => {
                let tuple = &mut metadata[place..place + 8];
                tuple[..2].copy_from_slice(&guard.to_be_bytes()[6..]);
                tuple[2..4].copy_from_slice(&tag);
                tuple[4..].copy_from_slice(&block.to_be_bytes()[4..]);
            }
            NvmeGuard::Crc64 => {
                let tuple = &mut metadata[place..place + 16];
                tuple[..8].copy_from_slice(&guard.to_be_bytes());
                tuple[8..10].copy_from_slice(&tag);
                tuple[10..].copy_from_slice(&(block & REFERENCE48).to_be_bytes()[2..]);
            }
        }
    }

    /// Whether the information of a block that was read is right.
    pub(crate) fn is_right(&self, data: &[u8], metadata: &[u8], block: u64) -> bool {
        let (guard, place) = self.guard(data, metadata);
        let number = |bytes: &[u8]| bytes.iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
        let (found_guard, tag, reference, expected) = match self.protection.guard {
            NvmeGuard::Crc16 => {
                let tuple = &metadata[place..place + 8];
                (number(&tuple[..2]), number(&tuple[2..4]), number(&tuple[4..]), block & REFERENCE32)
            }
            NvmeGuard::Crc64 => {
                let tuple = &metadata[place..place + 16];
                (number(&tuple[..8]), number(&tuple[8..10]), number(&tuple[10..]), block & REFERENCE48)
            }
        };
        // Such a tag switches all checks off, as of blocks that were never written.
        if tag == 0xffff && (self.protection.kind != 3 || matches!(reference, REFERENCE32 | REFERENCE48)) {
            return true;
        }
        let [checks_guard, checks_tag, checks_reference] = self.checks;
        let [wanted, mask] = self.application_tag.map(u64::from);
        (!checks_guard || found_guard == guard)
            && (!checks_tag || tag & mask == wanted & mask)
            && (!checks_reference || self.protection.kind == 3 || reference == expected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_protected_is_right_and_each_change_is_noticed() {
        for (guard, is_first, metadata_bytes) in [
            (NvmeGuard::Crc16, true, 8),
            (NvmeGuard::Crc16, false, 16),
            (NvmeGuard::Crc64, true, 16),
            (NvmeGuard::Crc64, false, 64),
        ] {
            let protection = NvmeProtection { kind: 1, guard, is_first };
            let protector = Protector { protection, checks: [true; 3], application_tag: [0x1234, 0xffff] };
            let mut data = vec![7_u8; 512];
            let mut metadata = vec![9_u8; metadata_bytes];
            protector.protect(&data, &mut metadata, 0x1_2345_6789);
            assert!(protector.is_right(&data, &metadata, 0x1_2345_6789));
            assert!(!protector.is_right(&data, &metadata, 0x1_2345_678a), "another block");
            data[500] ^= 1;
            assert!(!protector.is_right(&data, &metadata, 0x1_2345_6789), "other data");
            let unchecked = Protector { checks: [false; 3], ..protector };
            assert!(unchecked.is_right(&data, &metadata, 0));
        }
    }

    #[test]
    fn the_layout_is_that_of_the_specification() {
        let protection = NvmeProtection { kind: 1, guard: NvmeGuard::Crc16, is_first: true };
        let protector = Protector { protection, checks: [true; 3], application_tag: [0x1234, 0xffff] };
        let mut metadata = [0; 8];
        protector.protect(b"123456789", &mut metadata, 5);
        assert_eq!(metadata, [0xd0, 0xdb, 0x12, 0x34, 0, 0, 0, 5]);
    }

    #[test]
    fn blocks_that_were_never_written_are_not_checked() {
        let protection = NvmeProtection { kind: 2, guard: NvmeGuard::Crc16, is_first: true };
        let protector = Protector { protection, checks: [true; 3], application_tag: [1, 0xffff] };
        assert!(protector.is_right(&[0; 512], &[0xff; 8], 1));
    }
}
