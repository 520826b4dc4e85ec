//! A checksum as it is stored after a header.
//!
//! Invariant: no longer than the longest that fio writes, and on the stack.

use std::fmt;

/// Length of the longest checksum field.
const FIELD_BYTES_MAX: usize = 128;

/// A checksum as it is stored after a header.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Field {
    bytes: [u8; FIELD_BYTES_MAX],
    length_bytes: usize,
}

impl Field {
    pub(crate) fn new(field: &[u8]) -> Field {
        let length_bytes = field.len().min(FIELD_BYTES_MAX);
        let mut bytes = [0; FIELD_BYTES_MAX];
        bytes[..length_bytes].copy_from_slice(&field[..length_bytes]);
        Field { bytes, length_bytes }
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length_bytes]
    }
}

impl fmt::Debug for Field {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_bytes().iter().try_for_each(|byte| write!(out, "{byte:02x}"))
    }
}
