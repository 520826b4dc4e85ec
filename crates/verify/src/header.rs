//! The header of a verified piece, in the layouts of fio 3.33 and 3.42.
//!
//! Invariant: `parse` accepts what `write` makes, in either layout, and never panics.

use fiord_checksum::Checksum;

/// Length of the longer header, without the checksum of the data.
pub const HEADER_BYTES_MAX: usize = 48;

pub(crate) const MAGIC: u16 = 0xacca;

/// What 3.42 has in byte 2.
const VERSION: u8 = 0x81;

/// A number of nanoseconds that no clock shows: marks that the time fields hold a digest instead.
const DIGEST_MARK: u32 = 1 << 31;

/// A layout of headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum HeaderFormat {
    /// fio 3.33's: 40 bytes.
    V3_33,
    /// fio 3.42's: 48 bytes.
    #[default]
    V3_42,
}

impl HeaderFormat {
    /// Length of a header, without the checksum of the data.
    pub const fn header_bytes(self) -> usize {
        match self {
            HeaderFormat::V3_33 => 40,
            HeaderFormat::V3_42 => HEADER_BYTES_MAX,
        }
    }

    /// Offset of the checksum of the header, which covers everything before it.
    const fn checksum_at(self) -> usize {
        match self {
            HeaderFormat::V3_33 => 36,
            HeaderFormat::V3_42 => 44,
        }
    }

    /// The number of a write as a header of this format holds it.
    pub(crate) fn stored_number(self, number: u64) -> u64 {
        match self {
            HeaderFormat::V3_33 => number & 0xffff,
            HeaderFormat::V3_42 => number,
        }
    }
}

/// The contents of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub method_code: u8,
    pub length_bytes: u32,
    pub seed: u64,
    pub offset_bytes: u64,
    pub time: TimeFields,
    pub number: u64,
    pub thread: u16,
}

/// The time fields of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeFields {
    /// When it was written, since the job began.
    At { seconds: u32, nanoseconds: u32 },
    /// 63 bits of a digest of the data: fiord writes them where the checksum field does not cover all changes.
    Digest(u64),
}

impl TimeFields {
    /// The part of a digest that the fields hold.
    pub(crate) fn digest(digest: &[u8]) -> TimeFields {
        let first: [u8; 8] = digest.first_chunk().copied().unwrap_or_default();
        TimeFields::Digest(u64::from_le_bytes(first) & !(1 << 63))
    }

    fn fields(self) -> (u32, u32) {
        match self {
            TimeFields::At { seconds, nanoseconds } => (seconds, nanoseconds),
            TimeFields::Digest(digest) => {
                ((digest & 0xffff_ffff) as u32, (digest >> 32) as u32 | DIGEST_MARK)
            }
        }
    }

    fn of_fields(seconds: u32, nanoseconds: u32) -> TimeFields {
        match nanoseconds & DIGEST_MARK {
            0 => TimeFields::At { seconds, nanoseconds },
            _ => TimeFields::Digest(u64::from(nanoseconds & !DIGEST_MARK) << 32 | u64::from(seconds)),
        }
    }
}

/// Why bytes are not a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoHeader {
    /// They do not begin as one.
    Magic { found: u16 },
    /// They begin as one, but their checksum is wrong.
    Checksum { found: u32, computed: u32 },
}

impl Header {
    /// Writes it; `bytes` has at least the length of a header of this format.
    pub(crate) fn write(&self, format: HeaderFormat, bytes: &mut [u8]) {
        let mut header = [0; HEADER_BYTES_MAX];
        let (seconds, nanoseconds) = self.time.fields();
        header[..2].copy_from_slice(&MAGIC.to_le_bytes());
        header[4..8].copy_from_slice(&self.length_bytes.to_le_bytes());
        header[8..16].copy_from_slice(&self.seed.to_le_bytes());
        header[16..24].copy_from_slice(&self.offset_bytes.to_le_bytes());
        header[24..28].copy_from_slice(&seconds.to_le_bytes());
        header[28..32].copy_from_slice(&nanoseconds.to_le_bytes());
        match format {
            HeaderFormat::V3_33 => {
                header[2] = self.method_code;
                header[32..34].copy_from_slice(&self.thread.to_le_bytes());
                header[34..36].copy_from_slice(&((self.number & 0xffff) as u16).to_le_bytes());
            }
            HeaderFormat::V3_42 => {
                header[2..4].copy_from_slice(&[VERSION, self.method_code]);
                header[32..40].copy_from_slice(&self.number.to_le_bytes());
                header[40..42].copy_from_slice(&self.thread.to_le_bytes());
            }
        }
        let at = format.checksum_at();
        let checksum = Checksum::Crc32c.of(&header[..at]);
        header[at..at + 4].copy_from_slice(checksum.as_bytes());
        bytes[..format.header_bytes()].copy_from_slice(&header[..format.header_bytes()]);
    }

    /// The header at the start of `bytes`, and its format. Its checksum may be wrong, which is then the second value.
    pub(crate) fn parse(bytes: &[u8]) -> Result<(Header, HeaderFormat, Option<NoHeader>), NoHeader> {
        let word16 = |at: usize| bytes.get(at..at + 2).map_or(0, |two| u16::from_le_bytes([two[0], two[1]]));
        let word32 = |at: usize| u32::from(word16(at)) | u32::from(word16(at + 2)) << 16;
        let word64 = |at: usize| u64::from(word32(at)) | u64::from(word32(at + 4)) << 32;
        let format = match bytes.get(2) {
            Some(&VERSION) => HeaderFormat::V3_42,
            _ => HeaderFormat::V3_33,
        };
        if word16(0) != MAGIC || bytes.len() < format.header_bytes() {
            return Err(NoHeader::Magic { found: word16(0) });
        }
        let at = format.checksum_at();
        let computed = Checksum::Crc32c.of(&bytes[..at]);
        let computed = computed.as_bytes().first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
        let (method_code, number, thread) = match format {
            HeaderFormat::V3_33 => (bytes[2], u64::from(word16(34)), word16(32)),
            HeaderFormat::V3_42 => (bytes[3], word64(32), word16(40)),
        };
        let header = Header {
            method_code,
            length_bytes: word32(4),
            seed: word64(8),
            offset_bytes: word64(16),
            time: TimeFields::of_fields(word32(24), word32(28)),
            number,
            thread,
        };
        let found = word32(at);
        let damage = (found != computed).then_some(NoHeader::Checksum { found, computed });
        Ok((header, format, damage))
    }
}
