//! Encoding of values as bytes and back: numbers of variable length, each text stored once.
//!
//! Invariant: bytes that do not encode a value are refused, and decoding never takes more memory than their length;
//! data of an older version is read as that version meant it.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// Maximum nesting of lists: far above any tree of disks, far below the size of the stack.
const DEPTH_MAX: u32 = 64;

/// Bytes that do not encode the expected value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damaged;

impl fmt::Display for Damaged {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("the stored report is damaged")
    }
}

/// The checksum of bytes (FNV-1a): it detects every change of one byte, and nearly every change of several.
pub fn checksum(bytes: &[u8]) -> [u8; 8] {
    let add = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, add).to_le_bytes()
}

/// A value that can be encoded and decoded.
pub trait Codec: Sized {
    /// Appends the value.
    fn encode(&self, out: &mut Encoder);

    /// Reads the value.
    ///
    /// # Errors
    /// The bytes encode something else.
    fn decode(from: &mut Decoder<'_>) -> Result<Self, Damaged>;
}

/// Encodes values.
#[derive(Debug, Default)]
pub struct Encoder {
    bytes: Vec<u8>,
    texts: HashMap<String, u64>,
}

impl Encoder {
    /// The bytes so far.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Seven bits a byte, the lowest first, the highest bit of a byte set while more follow.
    pub fn number(&mut self, mut value: u128) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    /// Counts that are mostly zero: the number of others, then for each its distance from the previous one and its
    /// count.
    pub fn sparse(&mut self, counts: &[u64]) {
        let occupied = counts.iter().enumerate().filter(|(_, count)| **count > 0);
        self.number(occupied.clone().count() as u128);
        let mut next = 0;
        for (place, count) in occupied {
            self.number((place - next) as u128);
            self.number(u128::from(*count));
            next = place + 1;
        }
    }

    /// A text that occurred before is its number, from 1; a new one is 0, its length and its bytes.
    pub fn text(&mut self, text: &str) {
        if let Some(known) = self.texts.get(text) {
            return self.number(u128::from(*known));
        }
        self.texts.insert(text.to_owned(), self.texts.len() as u64 + 1);
        self.number(0);
        self.number(text.len() as u128);
        self.bytes.extend_from_slice(text.as_bytes());
    }
}

/// Decodes values.
#[derive(Debug)]
pub struct Decoder<'a> {
    rest: &'a [u8],
    texts: Vec<&'a str>,
    version: u32,
    depth: u32,
}

impl<'a> Decoder<'a> {
    /// Reads `bytes`, written by version `version`.
    pub fn new(bytes: &'a [u8], version: u32) -> Decoder<'a> {
        Decoder { rest: bytes, texts: Vec::new(), version, depth: 0 }
    }

    /// The version of the bytes: fields that were added later are absent.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// Checks that everything has been read.
    ///
    /// # Errors
    /// Bytes follow.
    pub fn end(&self) -> Result<(), Damaged> {
        if self.rest.is_empty() { Ok(()) } else { Err(Damaged) }
    }

    /// The counterpart of [`Encoder::number`].
    ///
    /// # Errors
    /// The bytes end, or the number does not fit into `T`.
    pub fn number<T: TryFrom<u128>>(&mut self) -> Result<T, Damaged> {
        let mut value: u128 = 0;
        for shift in (0..u128::BITS).step_by(7) {
            let (byte, rest) = self.rest.split_first().ok_or(Damaged)?;
            self.rest = rest;
            let bits = u128::from(byte & 0x7f);
            if (bits << shift) >> shift != bits {
                return Err(Damaged);
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return T::try_from(value).map_err(|_| Damaged);
            }
        }
        Err(Damaged)
    }

    /// The counterpart of [`Encoder::sparse`], into these counts.
    ///
    /// # Errors
    /// An index is out of range.
    pub fn sparse(&mut self, counts: &mut [u64]) -> Result<(), Damaged> {
        let mut places = counts.iter_mut();
        for _ in 0..self.number::<usize>()? {
            let distance = self.number()?;
            *places.nth(distance).ok_or(Damaged)? = self.number()?;
        }
        Ok(())
    }

    fn text(&mut self) -> Result<&'a str, Damaged> {
        let known: usize = self.number()?;
        if known > 0 {
            return self.texts.get(known - 1).copied().ok_or(Damaged);
        }
        let length = self.number()?;
        let (bytes, rest) = self.rest.split_at_checked(length).ok_or(Damaged)?;
        self.rest = rest;
        let text = std::str::from_utf8(bytes).map_err(|_| Damaged)?;
        self.texts.push(text);
        Ok(text)
    }
}

impl Codec for String {
    fn encode(&self, out: &mut Encoder) {
        out.text(self);
    }

    fn decode(from: &mut Decoder<'_>) -> Result<Self, Damaged> {
        from.text().map(str::to_owned)
    }
}

/// A path is encoded as bytes: it need not be text.
impl Codec for PathBuf {
    fn encode(&self, out: &mut Encoder) {
        let bytes = self.as_os_str().as_bytes();
        out.number(bytes.len() as u128);
        out.bytes.extend_from_slice(bytes);
    }

    fn decode(from: &mut Decoder<'_>) -> Result<Self, Damaged> {
        let length = from.number()?;
        let (bytes, rest) = from.rest.split_at_checked(length).ok_or(Damaged)?;
        from.rest = rest;
        Ok(PathBuf::from(OsStr::from_bytes(bytes)))
    }
}

/// Unsigned numbers.
macro_rules! unsigned {
    ($($type:ty)+) => {$(
        impl Codec for $type {
            fn encode(&self, out: &mut Encoder) {
                out.number(u128::from(*self));
            }

            fn decode(from: &mut Decoder<'_>) -> Result<Self, Damaged> {
                from.number()
            }
        }
    )+};
}

unsigned!(u16 u32 u64 u128);

impl Codec for bool {
    fn encode(&self, out: &mut Encoder) {
        out.number(u128::from(*self));
    }

    fn decode(from: &mut Decoder<'_>) -> Result<Self, Damaged> {
        match from.number::<u8>()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Damaged),
        }
    }
}

impl Codec for i32 {
    // The sign is the lowest bit, so that small numbers of either sign stay short.
    fn encode(&self, out: &mut Encoder) {
        out.number(u128::from(((self << 1) ^ (self >> 31)) as u32));
    }

    fn decode(from: &mut Decoder<'_>) -> Result<Self, Damaged> {
        let bits: u32 = from.number()?;
        Ok((bits >> 1) as i32 ^ -((bits & 1) as i32))
    }
}

impl Codec for f64 {
    // The exponent is lowest: round figures have zeros at the other end and stay short.
    fn encode(&self, out: &mut Encoder) {
        out.number(u128::from(self.to_bits().swap_bytes()));
    }

    fn decode(from: &mut Decoder<'_>) -> Result<Self, Damaged> {
        from.number::<u64>().map(|bits| f64::from_bits(bits.swap_bytes()))
    }
}

impl<T: Codec> Codec for Option<T> {
    fn encode(&self, out: &mut Encoder) {
        self.is_some().encode(out);
        self.iter().for_each(|value| value.encode(out));
    }

    fn decode(from: &mut Decoder<'_>) -> Result<Self, Damaged> {
        bool::decode(from)?.then(|| T::decode(from)).transpose()
    }
}

impl<T: Codec> Codec for Vec<T> {
    fn encode(&self, out: &mut Encoder) {
        out.number(self.len() as u128);
        self.iter().for_each(|value| value.encode(out));
    }

    fn decode(from: &mut Decoder<'_>) -> Result<Self, Damaged> {
        let length: usize = from.number()?;
        // A value takes at least one byte.
        if length > from.rest.len() || from.depth == DEPTH_MAX {
            return Err(Damaged);
        }
        from.depth += 1;
        let values = (0..length).map(|_| T::decode(from)).collect();
        from.depth -= 1;
        values
    }
}

impl<T: Codec, const N: usize> Codec for [T; N]
where
    [T; N]: Default,
{
    fn encode(&self, out: &mut Encoder) {
        self.iter().for_each(|value| value.encode(out));
    }

    fn decode(from: &mut Decoder<'_>) -> Result<Self, Damaged> {
        let mut values = Self::default();
        for value in &mut values {
            *value = T::decode(from)?;
        }
        Ok(values)
    }
}

impl<A: Codec, B: Codec> Codec for (A, B) {
    fn encode(&self, out: &mut Encoder) {
        self.0.encode(out);
        self.1.encode(out);
    }

    fn decode(from: &mut Decoder<'_>) -> Result<Self, Damaged> {
        Ok((A::decode(from)?, B::decode(from)?))
    }
}

/// Encodes a structure field by field in the order listed, which defines the format from then on. All fields are
/// named, so that one added to the structure does not compile until it is added here: at the end, `since` the version
/// that has it, with its default for runs recorded before.
///
/// `sparse` writes a value equal to the default as one byte.
#[macro_export]
macro_rules! codec {
    (sparse $type:ident { $($field:ident),+ $(,)? } $(since $version:literal { $($later:ident),+ $(,)? })*) => {
        impl $crate::codec::Codec for $type {
            fn encode(&self, out: &mut $crate::codec::Encoder) {
                let present = *self != $type::default();
                present.encode(out);
                if present {
                    $crate::codec!(@encode self, out, $type { $($field,)+ $($($later,)+)* });
                }
            }

            fn decode(from: &mut $crate::codec::Decoder<'_>) -> Result<Self, $crate::codec::Damaged> {
                if !bool::decode(from)? {
                    return Ok($type::default());
                }
                $crate::codec!(@decode from, $type { $($field,)+ } $(since $version { $($later,)+ })*)
            }
        }
    };
    ($type:ident { $($field:ident),+ $(,)? } $(since $version:literal { $($later:ident),+ $(,)? })*) => {
        impl $crate::codec::Codec for $type {
            fn encode(&self, out: &mut $crate::codec::Encoder) {
                $crate::codec!(@encode self, out, $type { $($field,)+ $($($later,)+)* });
            }

            fn decode(from: &mut $crate::codec::Decoder<'_>) -> Result<Self, $crate::codec::Damaged> {
                $crate::codec!(@decode from, $type { $($field,)+ } $(since $version { $($later,)+ })*)
            }
        }
    };
    (@encode $self:ident, $out:ident, $type:ident { $($field:ident,)+ }) => {
        let $type { $($field),+ } = $self;
        $($crate::codec::Codec::encode($field, $out);)+
    };
    (@decode $from:ident, $type:ident { $($field:ident,)+ } $(since $version:literal { $($later:ident,)+ })*) => {
        Ok($type {
            $($field: $crate::codec::Codec::decode($from)?,)+
            $($($later: if $from.version() >= $version {
                $crate::codec::Codec::decode($from)?
            } else {
                Default::default()
            },)+)*
        })
    };
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bytes(value: &impl Codec) -> Vec<u8> {
        let mut out = Encoder::default();
        value.encode(&mut out);
        out.into_bytes()
    }

    fn read<T: Codec>(bytes: &[u8], version: u32) -> Result<T, Damaged> {
        let mut from = Decoder::new(bytes, version);
        let value = T::decode(&mut from)?;
        from.end().map(|()| value)
    }

    #[derive(Debug, Default, PartialEq)]
    struct Before {
        name: String,
    }

    #[derive(Debug, Default, PartialEq)]
    struct Since {
        name: String,
        count: u64,
    }

    codec!(Before { name });
    codec!(Since { name } since 2 { count });

    #[test]
    fn a_field_added_later_has_its_default_in_older_data() {
        let kept = bytes(&Before { name: "n".to_owned() });
        assert_eq!(read(&kept, 1), Ok(Since { name: "n".to_owned(), count: 0 }));
        assert_eq!(read::<Since>(&kept, 2), Err(Damaged));
        let now = Since { name: "n".to_owned(), count: 7 };
        assert_eq!(read(&bytes(&now), 2), Ok(now));
    }

    #[test]
    fn the_checksum_is_fnv_1a() {
        for (text, expected) in
            [("", 0xcbf2_9ce4_8422_2325_u64), ("a", 0xaf63_dc4c_8601_ec8c), ("foobar", 0x8594_4171_f739_67e8)]
        {
            assert_eq!(checksum(text.as_bytes()), expected.to_le_bytes(), "{text}");
        }
    }

    #[test]
    fn a_text_is_stored_once() {
        let texts = vec!["randread".to_owned(), String::new(), "randread".to_owned(), "randread".to_owned()];
        let kept = bytes(&texts);
        assert_eq!(kept.len(), 1 + (2 + 8) + 2 + 1 + 1);
        assert_eq!(read(&kept, 1), Ok(texts));
    }

    #[test]
    fn numbers_that_do_not_fit_are_refused() {
        assert_eq!(read::<u32>(&bytes(&u64::MAX), 1), Err(Damaged));
        assert_eq!(read::<bool>(&[2], 1), Err(Damaged));
        assert_eq!(read::<u128>(&[0xff; 18], 1), Err(Damaged));
        let mut too_large = [0xff; 19];
        too_large[18] = 0x04;
        assert_eq!(read::<u128>(&too_large, 1), Err(Damaged));
        too_large[18] = 0x03;
        assert_eq!(read::<u128>(&too_large, 1), Ok(u128::MAX));
    }

    #[test]
    fn a_list_longer_than_its_bytes_is_refused_before_memory_is_allocated() {
        let mut out = Encoder::default();
        out.number(u128::from(u64::MAX));
        assert_eq!(read::<Vec<u64>>(&out.into_bytes(), 1), Err(Damaged));
    }

    #[test]
    fn nested_lists_are_refused_before_the_stack_overflows() {
        #[derive(Debug, PartialEq)]
        struct Tree {
            below: Vec<Tree>,
        }
        codec!(Tree { below });
        assert_eq!(read::<Tree>(&[1; 1 << 20], 1), Err(Damaged));
        assert_eq!(read::<Tree>(&[1, 1, 0], 1).unwrap().below.len(), 1);
    }

    proptest! {
        #[test]
        fn values_come_back(
            numbers in any::<(u32, u64, u128, i32)>(),
            bits in any::<u64>(),
            texts in prop::collection::vec("[a-c]{0,2}", 0..8),
            some in any::<Option<u64>>(),
        ) {
            let (a, b, c, d) = numbers;
            prop_assert_eq!(read(&bytes(&a), 1), Ok(a));
            prop_assert_eq!(read(&bytes(&b), 1), Ok(b));
            prop_assert_eq!(read(&bytes(&c), 1), Ok(c));
            prop_assert_eq!(read(&bytes(&d), 1), Ok(d));
            prop_assert_eq!(read::<f64>(&bytes(&f64::from_bits(bits)), 1).unwrap().to_bits(), bits);
            prop_assert_eq!(read(&bytes(&texts), 1), Ok(texts));
            prop_assert_eq!(read(&bytes(&some), 1), Ok(some));
        }

        #[test]
        fn counts_come_back(counts in prop::collection::vec(prop_oneof![4 => Just(0), 1 => any::<u64>()], 0..200)) {
            let mut out = Encoder::default();
            out.sparse(&counts);
            let kept = out.into_bytes();
            let mut from = Decoder::new(&kept, 1);
            let mut back = vec![0; counts.len()];
            prop_assert_eq!(from.sparse(&mut back), Ok(()));
            prop_assert_eq!(back, counts);
        }
    }
}
