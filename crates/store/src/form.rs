//! How values become bytes and back: numbers of variable length, texts told once.
//!
//! Invariant: bytes that no value was made of are refused and never cost more memory than they are long; what was
//! written by an older form reads as that form meant it.

use std::collections::HashMap;
use std::fmt;

/// How deep lists may lie in lists: far above any tree of disks, far below the end of the stack.
const DEPTH_MAX: u32 = 64;

/// Bytes that do not hold what they should.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damaged;

impl fmt::Display for Damaged {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("the kept report is damaged")
    }
}

/// The sum of bytes (FNV-1a): every change of one of them gives another, and nearly every change of several.
pub fn sum(bytes: &[u8]) -> [u8; 8] {
    let add = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, add).to_le_bytes()
}

/// What can be written and read back.
pub trait Form: Sized {
    /// Appends the value.
    fn put(&self, out: &mut Writer);

    /// Reads the value.
    ///
    /// # Errors
    /// The bytes hold something else.
    fn take(from: &mut Reader<'_>) -> Result<Self, Damaged>;
}

/// Where values are written to.
#[derive(Debug, Default)]
pub struct Writer {
    bytes: Vec<u8>,
    texts: HashMap<String, u64>,
}

impl Writer {
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

    /// Counts that are mostly zero: how many are not, then the distance from the former and the count of each.
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

    /// A text met before is the number it was given then, from 1; a new one is 0, its length and its bytes.
    fn text(&mut self, text: &str) {
        if let Some(known) = self.texts.get(text) {
            return self.number(u128::from(*known));
        }
        self.texts.insert(text.to_owned(), self.texts.len() as u64 + 1);
        self.number(0);
        self.number(text.len() as u128);
        self.bytes.extend_from_slice(text.as_bytes());
    }
}

/// Where values are read from.
#[derive(Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    texts: Vec<&'a str>,
    form: u32,
    depth: u32,
}

impl<'a> Reader<'a> {
    /// Reads `bytes`, written by form `form`.
    pub fn new(bytes: &'a [u8], form: u32) -> Reader<'a> {
        Reader { rest: bytes, texts: Vec::new(), form, depth: 0 }
    }

    /// The form of what is read: fields that came later are not there.
    pub fn form(&self) -> u32 {
        self.form
    }

    /// That everything has been read.
    ///
    /// # Errors
    /// Something follows.
    pub fn end(&self) -> Result<(), Damaged> {
        if self.rest.is_empty() { Ok(()) } else { Err(Damaged) }
    }

    /// The counterpart of [`Writer::number`].
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

    /// The counterpart of [`Writer::sparse`], into as many counts as there are places.
    ///
    /// # Errors
    /// A place does not exist.
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

impl Form for String {
    fn put(&self, out: &mut Writer) {
        out.text(self);
    }

    fn take(from: &mut Reader<'_>) -> Result<Self, Damaged> {
        from.text().map(str::to_owned)
    }
}

/// Unsigned numbers.
macro_rules! unsigned {
    ($($type:ty)+) => {$(
        impl Form for $type {
            fn put(&self, out: &mut Writer) {
                out.number(u128::from(*self));
            }

            fn take(from: &mut Reader<'_>) -> Result<Self, Damaged> {
                from.number()
            }
        }
    )+};
}

unsigned!(u32 u64 u128);

impl Form for bool {
    fn put(&self, out: &mut Writer) {
        out.number(u128::from(*self));
    }

    fn take(from: &mut Reader<'_>) -> Result<Self, Damaged> {
        match from.number::<u8>()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Damaged),
        }
    }
}

impl Form for i32 {
    // The sign lowest, so that small numbers of either sign stay short.
    fn put(&self, out: &mut Writer) {
        out.number(u128::from(((self << 1) ^ (self >> 31)) as u32));
    }

    fn take(from: &mut Reader<'_>) -> Result<Self, Damaged> {
        let bits: u32 = from.number()?;
        Ok((bits >> 1) as i32 ^ -((bits & 1) as i32))
    }
}

impl Form for f64 {
    // Exponent lowest: round figures have their zeros at the other end and stay short.
    fn put(&self, out: &mut Writer) {
        out.number(u128::from(self.to_bits().swap_bytes()));
    }

    fn take(from: &mut Reader<'_>) -> Result<Self, Damaged> {
        from.number::<u64>().map(|bits| f64::from_bits(bits.swap_bytes()))
    }
}

impl<T: Form> Form for Option<T> {
    fn put(&self, out: &mut Writer) {
        self.is_some().put(out);
        self.iter().for_each(|value| value.put(out));
    }

    fn take(from: &mut Reader<'_>) -> Result<Self, Damaged> {
        bool::take(from)?.then(|| T::take(from)).transpose()
    }
}

impl<T: Form> Form for Vec<T> {
    fn put(&self, out: &mut Writer) {
        out.number(self.len() as u128);
        self.iter().for_each(|value| value.put(out));
    }

    fn take(from: &mut Reader<'_>) -> Result<Self, Damaged> {
        let length: usize = from.number()?;
        // A value takes a byte at least.
        if length > from.rest.len() || from.depth == DEPTH_MAX {
            return Err(Damaged);
        }
        from.depth += 1;
        let values = (0..length).map(|_| T::take(from)).collect();
        from.depth -= 1;
        values
    }
}

impl<T: Form, const N: usize> Form for [T; N]
where
    [T; N]: Default,
{
    fn put(&self, out: &mut Writer) {
        self.iter().for_each(|value| value.put(out));
    }

    fn take(from: &mut Reader<'_>) -> Result<Self, Damaged> {
        let mut values = Self::default();
        for value in &mut values {
            *value = T::take(from)?;
        }
        Ok(values)
    }
}

impl<A: Form, B: Form> Form for (A, B) {
    fn put(&self, out: &mut Writer) {
        self.0.put(out);
        self.1.put(out);
    }

    fn take(from: &mut Reader<'_>) -> Result<Self, Damaged> {
        Ok((A::take(from)?, B::take(from)?))
    }
}

/// Writes a structure field by field in the order listed, which is what its bytes mean from then on. All fields are
/// named, so that one added to the structure does not compile before it is decided here how it is kept: at the end,
/// `since` the form that has it, and its default for runs kept before.
///
/// `sparse` writes a value equal to the default as one byte.
#[macro_export]
macro_rules! form {
    (sparse $type:ident { $($field:ident),+ $(,)? } $(since $form:literal { $($later:ident),+ $(,)? })*) => {
        impl $crate::form::Form for $type {
            fn put(&self, out: &mut $crate::form::Writer) {
                let told = *self != $type::default();
                told.put(out);
                if told {
                    $crate::form!(@put self, out, $type { $($field,)+ $($($later,)+)* });
                }
            }

            fn take(from: &mut $crate::form::Reader<'_>) -> Result<Self, $crate::form::Damaged> {
                if !bool::take(from)? {
                    return Ok($type::default());
                }
                $crate::form!(@take from, $type { $($field,)+ } $(since $form { $($later,)+ })*)
            }
        }
    };
    ($type:ident { $($field:ident),+ $(,)? } $(since $form:literal { $($later:ident),+ $(,)? })*) => {
        impl $crate::form::Form for $type {
            fn put(&self, out: &mut $crate::form::Writer) {
                $crate::form!(@put self, out, $type { $($field,)+ $($($later,)+)* });
            }

            fn take(from: &mut $crate::form::Reader<'_>) -> Result<Self, $crate::form::Damaged> {
                $crate::form!(@take from, $type { $($field,)+ } $(since $form { $($later,)+ })*)
            }
        }
    };
    (@put $self:ident, $out:ident, $type:ident { $($field:ident,)+ }) => {
        let $type { $($field),+ } = $self;
        $($crate::form::Form::put($field, $out);)+
    };
    (@take $from:ident, $type:ident { $($field:ident,)+ } $(since $form:literal { $($later:ident,)+ })*) => {
        Ok($type {
            $($field: $crate::form::Form::take($from)?,)+
            $($($later: if $from.form() >= $form {
                $crate::form::Form::take($from)?
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

    fn bytes(value: &impl Form) -> Vec<u8> {
        let mut out = Writer::default();
        value.put(&mut out);
        out.into_bytes()
    }

    fn read<T: Form>(bytes: &[u8], form: u32) -> Result<T, Damaged> {
        let mut from = Reader::new(bytes, form);
        let value = T::take(&mut from)?;
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

    form!(Before { name });
    form!(Since { name } since 2 { count });

    #[test]
    fn a_field_that_came_later_is_its_default_in_what_was_kept_before() {
        let kept = bytes(&Before { name: "n".to_owned() });
        assert_eq!(read(&kept, 1), Ok(Since { name: "n".to_owned(), count: 0 }));
        assert_eq!(read::<Since>(&kept, 2), Err(Damaged));
        let now = Since { name: "n".to_owned(), count: 7 };
        assert_eq!(read(&bytes(&now), 2), Ok(now));
    }

    #[test]
    fn the_sum_is_fnvs() {
        for (text, expected) in
            [("", 0xcbf2_9ce4_8422_2325_u64), ("a", 0xaf63_dc4c_8601_ec8c), ("foobar", 0x8594_4171_f739_67e8)]
        {
            assert_eq!(sum(text.as_bytes()), expected.to_le_bytes(), "{text}");
        }
    }

    #[test]
    fn a_text_is_told_once() {
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
    fn a_list_longer_than_its_bytes_is_refused_before_memory_is_taken() {
        let mut out = Writer::default();
        out.number(u128::from(u64::MAX));
        assert_eq!(read::<Vec<u64>>(&out.into_bytes(), 1), Err(Damaged));
    }

    #[test]
    fn lists_in_lists_end_before_the_stack_does() {
        #[derive(Debug, PartialEq)]
        struct Tree {
            below: Vec<Tree>,
        }
        form!(Tree { below });
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
            let mut out = Writer::default();
            out.sparse(&counts);
            let kept = out.into_bytes();
            let mut from = Reader::new(&kept, 1);
            let mut back = vec![0; counts.len()];
            prop_assert_eq!(from.sparse(&mut back), Ok(()));
            prop_assert_eq!(back, counts);
        }
    }
}
