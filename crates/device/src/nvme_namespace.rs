//! What an NVMe namespace consists of, from the pages of the command Identify, and the placements that it has for writes.
//!
//! Invariant: pure, and total: any bytes are a namespace or none. A namespace has blocks of at least 512 bytes.

use crate::health::{little_endian, little_endian_u16};

/// Length of each page.
pub const IDENTIFY_BYTES: usize = 4096;

/// A namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NvmeNamespace {
    /// Its number.
    pub id: u32,
    /// How many blocks it has.
    pub blocks: u64,
    /// The data of a block, in bytes.
    pub block_bytes: u32,
    /// The metadata of a block, in bytes.
    pub metadata_bytes: u32,
    /// Whether metadata follow the data of each block in the same buffer; otherwise they have a buffer of their own.
    pub metadata_in_data: bool,
    /// The protection information among the metadata.
    pub protection: Option<NvmeProtection>,
}

/// The protection information of each block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NvmeProtection {
    /// 1 to 3. Type 3 has no reference tag that could be checked.
    pub kind: u8,
    /// Its checksum.
    pub guard: NvmeGuard,
    /// Whether it is the first of the metadata; otherwise it is the last.
    pub is_first: bool,
}

/// The checksum of protection information.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NvmeGuard {
    /// CRC-16 T10-DIF, in 8 bytes with the tags.
    Crc16,
    /// CRC-64 NVMe, in 16 bytes with the tags.
    Crc64,
}

impl NvmeProtection {
    /// Its length.
    pub fn bytes(&self) -> u32 {
        match self.guard {
            NvmeGuard::Crc16 => 8,
            NvmeGuard::Crc64 => 16,
        }
    }
}

/// The zones of a namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NvmeZones {
    /// Blocks of a zone, up to the start of the next.
    pub blocks: u64,
    /// The most bytes of a Zone Append, if they are limited.
    pub append_bytes_max: Option<u64>,
}

/// The unit of limits of transfers: the smallest page of memory, as drivers assume it.
const LIMIT_UNIT_BYTES: u64 = 4096;

/// Which of the formats of a namespace it has.
fn format_index(page: &[u8; IDENTIFY_BYTES]) -> usize {
    let (formats, format) = (page[25], page[26]);
    // Two more bits for disks with more than 16 formats.
    usize::from(format & 0x0f) | if formats > 15 { usize::from(format >> 5 & 3) << 4 } else { 0 }
}

/// The zones that the pages describe: the page of a namespace, what the zoned command set adds to it and to that of the
/// controller, and the latter.
pub fn parse_zones(
    page: &[u8; IDENTIFY_BYTES],
    of_zones: &[u8; IDENTIFY_BYTES],
    controller_of_zones: &[u8; IDENTIFY_BYTES],
    controller: &[u8; IDENTIFY_BYTES],
) -> Option<NvmeZones> {
    let blocks = little_endian(of_zones, 2816 + 16 * format_index(page), 8);
    // Without a limit of their own, appends have that of all transfers.
    let exponent = [controller_of_zones[0], controller[77]].into_iter().find(|exponent| *exponent > 0);
    let append_bytes_max =
        exponent.and_then(|exponent| LIMIT_UNIT_BYTES.checked_mul(1_u64.checked_shl(exponent.into())?));
    (blocks > 0).then_some(NvmeZones { blocks, append_bytes_max })
}

/// The namespace that the pages describe: that of the base specification, and that of the NVM command set, which older disks
/// do not have.
pub fn parse_namespace(
    id: u32,
    page: &[u8; IDENTIFY_BYTES],
    of_command_set: Option<&[u8; IDENTIFY_BYTES]>,
) -> Option<NvmeNamespace> {
    let index = format_index(page);
    let at = 128 + 4 * index;
    let metadata_bytes = u32::from(little_endian_u16(page, at));
    let block_bytes = 1_u32.checked_shl(u32::from(page[at + 2])).filter(|bytes| *bytes >= 512)?;
    let kind = page[29] & 7;
    let guard = match of_command_set.map(|page| little_endian(page, 12 + 4 * index, 4) >> 7 & 3) {
        Some(2) => NvmeGuard::Crc64,
        _ => NvmeGuard::Crc16,
    };
    let protection = NvmeProtection { kind, guard, is_first: page[29] & 8 != 0 };
    Some(NvmeNamespace {
        id,
        blocks: little_endian(page, 0, 8),
        block_bytes,
        metadata_bytes,
        metadata_in_data: page[26] & 0x10 != 0 && metadata_bytes > 0,
        protection: (kind != 0 && metadata_bytes >= protection.bytes()).then_some(protection),
    })
}

/// Length of the beginning of the status of a namespace's reclaim unit handles, which says how many follow.
pub const HANDLES_HEADER_BYTES: usize = 16;

/// Length of the status of each handle.
const HANDLE_BYTES: usize = 32;

/// Length of the status of all handles, as its beginning says.
pub fn handles_bytes(header: &[u8; HANDLES_HEADER_BYTES]) -> usize {
    HANDLES_HEADER_BYTES + usize::from(little_endian_u16(header, 14)) * HANDLE_BYTES
}

/// The placement identifiers in the status of a namespace's handles, in their order.
pub fn parse_placements(status: &[u8]) -> Vec<u16> {
    let handles = status.get(HANDLES_HEADER_BYTES..).unwrap_or_default().chunks_exact(HANDLE_BYTES);
    handles.map(|handle| little_endian_u16(handle, 0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_of_handles_has_their_identifiers() {
        let mut header = [0; HANDLES_HEADER_BYTES];
        assert_eq!(handles_bytes(&header), 16);
        header[14] = 2;
        assert_eq!(handles_bytes(&header), 80);
        let mut status = [0; 80];
        (status[16], status[48], status[49]) = (7, 1, 2);
        assert_eq!(parse_placements(&status), [7, 0x201]);
        assert_eq!((parse_placements(&status[..79]), parse_placements(&[])), (vec![7], vec![]));
    }

    /// A page of 1000 blocks in format 1, of 4096 bytes and 16 of metadata.
    fn page() -> [u8; IDENTIFY_BYTES] {
        let mut page = [0; IDENTIFY_BYTES];
        page[..2].copy_from_slice(&1000_u16.to_le_bytes());
        (page[25], page[26]) = (1, 1);
        page[130] = 9;
        (page[132], page[134]) = (16, 12);
        page
    }

    #[test]
    fn a_namespace_is_read_at_the_offsets_of_the_specification() {
        let mut page = page();
        let plain = parse_namespace(7, &page, None).unwrap();
        assert_eq!((plain.id, plain.blocks, plain.block_bytes, plain.metadata_bytes), (7, 1000, 4096, 16));
        assert_eq!((plain.metadata_in_data, plain.protection), (false, None));
        (page[26], page[29]) = (0x11, 0x0a);
        let protected = parse_namespace(7, &page, None).unwrap();
        let expected = NvmeProtection { kind: 2, guard: NvmeGuard::Crc16, is_first: true };
        assert_eq!((protected.metadata_in_data, protected.protection), (true, Some(expected)));
    }

    #[test]
    fn a_long_guard_is_described_by_the_command_set() {
        let mut page = page();
        page[29] = 1;
        let mut of_command_set = [0; IDENTIFY_BYTES];
        of_command_set[17] = 1;
        let protection = parse_namespace(1, &page, Some(&of_command_set)).unwrap().protection.unwrap();
        assert_eq!(
            (protection.guard, protection.bytes(), protection.is_first),
            (NvmeGuard::Crc64, 16, false)
        );
    }

    #[test]
    fn zones_are_those_of_the_format_and_appends_have_a_limit() {
        let (mut of_zones, mut own, mut all) =
            ([0; IDENTIFY_BYTES], [0; IDENTIFY_BYTES], [0; IDENTIFY_BYTES]);
        of_zones[2816] = 7;
        assert_eq!(parse_zones(&page(), &of_zones, &own, &all), None, "another format");
        of_zones[2833] = 8;
        let zones = |own: &_, all: &_| parse_zones(&page(), &of_zones, own, all).unwrap();
        assert_eq!(zones(&own, &all), NvmeZones { blocks: 2048, append_bytes_max: None });
        all[77] = 7;
        assert_eq!(zones(&own, &all).append_bytes_max, Some(512 << 10));
        own[0] = 5;
        assert_eq!(zones(&own, &all).append_bytes_max, Some(128 << 10));
        own[0] = 0xff;
        assert_eq!(zones(&own, &all).append_bytes_max, None);
    }

    #[test]
    fn a_page_of_zeroes_is_no_namespace_and_any_other_does_no_harm() {
        assert_eq!(parse_namespace(1, &[0; IDENTIFY_BYTES], None), None);
        assert_eq!(parse_namespace(1, &[0xff; IDENTIFY_BYTES], Some(&[0xff; IDENTIFY_BYTES])), None);
    }
}
