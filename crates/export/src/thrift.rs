//! Thrift's compact protocol, in which Parquet describes its files: as much of it as a writer needs.
//!
//! Invariant: the fields of a structure are written in ascending order of their numbers.

use fiord_stats::Capped;

/// Types of fields and of elements of lists, by their numbers.
const I32: u8 = 5;
const I64: u8 = 6;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

/// One structure in writing.
#[derive(Debug, Default)]
pub(crate) struct Struct {
    bytes: Vec<u8>,
    /// The number of the last field.
    last: u8,
}

impl Struct {
    /// The structure as bytes.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.bytes.push(0);
        self.bytes
    }

    fn field(&mut self, number: u8, kind: u8) {
        debug_assert!(number > self.last && number - self.last < 16);
        self.bytes.push((number - self.last) << 4 | kind);
        self.last = number;
    }

    /// An integer, or an enumeration.
    pub(crate) fn i32(mut self, number: u8, value: i32) -> Self {
        self.field(number, I32);
        zigzag(&mut self.bytes, i64::from(value));
        self
    }

    /// An integer of 64 bits.
    pub(crate) fn i64(mut self, number: u8, value: usize) -> Self {
        self.field(number, I64);
        zigzag(&mut self.bytes, i64::capped(value));
        self
    }

    /// A text.
    pub(crate) fn text(mut self, number: u8, value: &str) -> Self {
        self.field(number, BINARY);
        text(&mut self.bytes, value);
        self
    }

    /// A structure.
    pub(crate) fn nested(mut self, number: u8, value: Struct) -> Self {
        self.field(number, STRUCT);
        self.bytes.extend(value.finish());
        self
    }

    /// A list of enumerations.
    pub(crate) fn i32s(mut self, number: u8, values: &[i32]) -> Self {
        self.list(number, I32, values.len());
        values.iter().for_each(|value| zigzag(&mut self.bytes, i64::from(*value)));
        self
    }

    /// A list of texts.
    pub(crate) fn texts(mut self, number: u8, values: &[&str]) -> Self {
        self.list(number, BINARY, values.len());
        values.iter().for_each(|value| text(&mut self.bytes, value));
        self
    }

    /// A list of structures.
    pub(crate) fn structs(mut self, number: u8, values: impl IntoIterator<Item = Struct>) -> Self {
        let values: Vec<Struct> = values.into_iter().collect();
        self.list(number, STRUCT, values.len());
        values.into_iter().for_each(|value| self.bytes.extend(value.finish()));
        self
    }

    fn list(&mut self, number: u8, kind: u8, count: usize) {
        self.field(number, LIST);
        match count {
            0..15 => self.bytes.push(u8::capped(count) << 4 | kind),
            _ => {
                self.bytes.push(0xf0 | kind);
                varint(&mut self.bytes, count as u64);
            }
        }
    }
}

fn text(bytes: &mut Vec<u8>, value: &str) {
    varint(bytes, value.len() as u64);
    bytes.extend(value.as_bytes());
}

fn zigzag(bytes: &mut Vec<u8>, value: i64) {
    varint(bytes, ((value << 1) ^ (value >> 63)).cast_unsigned());
}

/// Seven bits to a byte, the lowest first; the highest bit says that more follow.
pub(crate) fn varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    bytes.push((value & 0x7f) as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_have_the_distance_from_the_one_before_and_their_type() {
        let inner = Struct::default().i32(1, -1);
        let bytes = Struct::default().i32(2, 150).text(5, "ab").nested(6, inner).i64(9, 1).finish();
        let expected = [0x25, 0xac, 0x02, 0x38, 2, b'a', b'b', 0x1c, 0x15, 1, 0, 0x36, 2, 0];
        assert_eq!(bytes, expected);
    }

    #[test]
    fn long_lists_have_their_length_behind_their_type() {
        let short = Struct::default().i32s(1, &[0; 14]).finish();
        assert_eq!((short[..2].to_vec(), short.len()), (vec![0x19, 0xe5], 17));
        let long = Struct::default().texts(1, &[""; 300]).finish();
        assert_eq!((long[..4].to_vec(), long.len()), (vec![0x19, 0xf8, 0xac, 0x02], 305));
        let nested = Struct::default().structs(1, [Struct::default()]).finish();
        assert_eq!(nested, [0x19, 0x1c, 0, 0]);
    }
}
