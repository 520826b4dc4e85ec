//! What is wrong with a block.
//!
//! Invariant: plain values without allocations: a loop makes one beside its data.

use std::fmt::{self, Write as _};

use crate::field::Field;
use crate::method::Method;

/// The fault that a check found.
#[allow(clippy::large_enum_variant, reason = "a box would allocate, which a loop must not")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// No header begins here.
    Magic {
        /// Its first two bytes.
        found: u16,
    },
    /// The header is of a piece of another length.
    Length {
        /// In bytes.
        found: u32,
        /// In bytes.
        wanted: u32,
    },
    /// The header has another seed than the write had.
    Seed {
        /// As in the header.
        found: u64,
        /// As it was written.
        wanted: u64,
    },
    /// The header is of another place.
    Offset {
        /// In bytes.
        found: u64,
        /// In bytes.
        wanted: u64,
    },
    /// The header is of another write.
    Number {
        /// Number of the write in the header.
        found: u64,
        /// Number of the write that was last.
        wanted: u64,
    },
    /// The header's own checksum is wrong.
    HeaderChecksum {
        /// As in the header.
        found: u32,
        /// Of the header.
        computed: u32,
    },
    /// The header is of another method.
    Method {
        /// Its code.
        found: u8,
        /// The code of the job's method.
        wanted: u8,
    },
    /// The data has another checksum than its header.
    Checksum {
        /// As in the header.
        expected: Field,
        /// Of the data.
        received: Field,
    },
    /// The data is not the pattern.
    Pattern,
    /// The block was trimmed, and is not all zeroes.
    NotTrimmed,
}

impl Fault {
    /// Whether the header is wrong, so that the data after it was not compared.
    pub fn is_of_header(&self) -> bool {
        match self {
            Fault::Magic { .. }
            | Fault::Length { .. }
            | Fault::Seed { .. }
            | Fault::Offset { .. }
            | Fault::Number { .. }
            | Fault::HeaderChecksum { .. } => true,
            Fault::Method { .. } | Fault::Checksum { .. } | Fault::Pattern | Fault::NotTrimmed => false,
        }
    }
}

/// The probable cause of the damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CorruptionKind {
    /// The block of an earlier write: the last one never arrived.
    Stale,
    /// The right block of another place.
    Misplaced,
    /// All zeros where data should be.
    Zeroes,
    /// Part of the block is of this write and part is not, with the change between two sectors.
    Torn,
    /// One bit differs.
    BitFlip,
    /// Data where the block was trimmed.
    NotTrimmed,
    /// Anything else.
    Garbled,
}

impl CorruptionKind {
    /// Its description.
    pub const fn meaning(self) -> &'static str {
        match self {
            CorruptionKind::Stale => "stale block: an intact block of an earlier write",
            CorruptionKind::Misplaced => "misplaced block: an intact block that belongs to another offset",
            CorruptionKind::Zeroes => "zeroes where data was written",
            CorruptionKind::Torn => "torn write: only some sectors of the block arrived",
            CorruptionKind::BitFlip => "bit flip: a single bit differs",
            CorruptionKind::NotTrimmed => {
                "data where the block was trimmed: this device does not return zeroes"
            }
            CorruptionKind::Garbled => "data other than was written",
        }
    }
}

/// A corrupted block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Corruption {
    /// What the check found.
    pub fault: Fault,
    /// The probable cause.
    pub kind: CorruptionKind,
    /// What the block is verified by.
    pub method: Method,
    /// Where the piece with the fault begins in the file, in bytes.
    pub piece_offset_bytes: u64,
    /// Length of that piece.
    pub piece_bytes: u64,
    /// The first byte of the file that differs from what was written, if that is known.
    pub first_difference_bytes: Option<u64>,
    /// How many bytes of the piece differ, if that is known.
    pub differing_bytes: Option<u64>,
    /// Number of the write that the block should be of, if that is known.
    pub expected_number: Option<u64>,
    /// Number of the write in the header, if there is a header.
    pub found_number: Option<u64>,
}

impl Corruption {
    /// fio's lines about it, without a line break at the end. `block` is offset and length of the block that was read.
    pub fn fio_lines(&self, file: &dyn fmt::Display, block: (u64, u64)) -> String {
        let (offset, length) = (self.piece_offset_bytes, self.piece_bytes);
        let place = format!(
            "at file {file} offset {offset}, length {length} (requested block: offset={}, length={})",
            block.0, block.1
        );
        let bad = |what: &str| format!("verify: bad {what} {place}");
        match self.fault {
            Fault::Magic { found } => bad(&format!("magic header {found:x}, wanted acca")),
            Fault::Length { found, wanted } => bad(&format!("header length {found}, wanted {wanted}")),
            Fault::Seed { found, wanted } => bad(&format!("header rand_seed {found}, wanted {wanted}")),
            Fault::Offset { found, wanted } => bad(&format!("header offset {found}, wanted {wanted}")),
            Fault::Number { found, wanted } => bad(&format!("header numberio {found}, wanted {wanted}")),
            Fault::HeaderChecksum { found, computed } => {
                bad(&format!("header crc {found:x}, calculated {computed:x}"))
            }
            Fault::Method { found, wanted } => {
                let name = self.method.name();
                format!(
                    "{name}: verify failed {place}\n       verify type mismatch ({found} media, {wanted} given)"
                )
            }
            Fault::Checksum { expected, received } => {
                let name = self.method.name();
                format!(
                    "{name}: verify failed {place}\n       Expected CRC: {expected:?}\n       Received CRC: {received:?}"
                )
            }
            // fio's words differ here.
            Fault::NotTrimmed => {
                let at = self.first_difference_bytes.unwrap_or(offset) - offset;
                format!(
                    "trim: verify failed at file {file} offset {offset}, length {length}, block offset {at}"
                )
            }
            Fault::Pattern => format!("{}: verify failed {place}", self.method.name()),
        }
    }

    /// The diagnosis, in one sentence.
    pub fn explanation(&self) -> String {
        let mut text = self.kind.meaning().to_string();
        // Writing to a string cannot fail.
        if let Some(at) = self.first_difference_bytes {
            let _ = write!(text, "; first difference at byte {at}");
        }
        if let Some(count) = self.differing_bytes {
            let _ = write!(text, ", {count} of {} bytes differ", self.piece_bytes);
        }
        match (self.expected_number, self.found_number) {
            (Some(expected), Some(found)) => {
                let _ = write!(text, "; expected write {expected}, found write {found}");
            }
            (Some(expected), None) => {
                let _ = write!(text, "; expected write {expected}, found no header");
            }
            (None, Some(found)) => {
                let _ = write!(text, "; the header is of write {found}");
            }
            (None, None) => {}
        }
        text
    }
}
