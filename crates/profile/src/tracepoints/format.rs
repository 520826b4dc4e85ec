//! The kernel's `format` files: where in a record of a tracepoint its fields are.
//!
//! Invariant: no text and no record is a panic.

use fiord_stats::Capped;

/// A field of a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Field {
    pub(super) at: usize,
    pub(super) bytes: usize,
}

impl Field {
    /// The field of this name.
    pub fn named(text: &str, name: &str) -> Option<Field> {
        Field::all(text).find_map(|(found, field)| (found == name).then_some(field))
    }

    /// All fields with their names, of lines such as `field:char comm[16];offset:38;size:16;signed:0;`, their parts apart by
    /// tabs.
    pub fn all(text: &str) -> impl Iterator<Item = (&str, Field)> {
        text.lines().filter_map(|line| {
            let (declared, rest) = line.trim().strip_prefix("field:")?.split_once(';')?;
            let name = declared.rsplit(' ').next()?.split('[').next()?;
            let number = |key: &str| rest.split_once(key)?.1.split_once(';')?.0.parse().ok();
            let field = Field { at: number("offset:")?, bytes: number("size:")? };
            Some((name, field))
        })
    }

    /// The byte of a record where it begins.
    pub fn at(self) -> usize {
        self.at
    }

    /// Its value in a record, without a sign; `None` if it is no number of at most eight bytes.
    pub fn number(self, record: &[u8]) -> Option<u64> {
        let bytes = record.get(self.at..)?.get(..self.bytes)?;
        Some(match *bytes {
            [byte] => byte.into(),
            [a, b] => u16::from_ne_bytes([a, b]).into(),
            [a, b, c, d] => u32::from_ne_bytes([a, b, c, d]).into(),
            _ => u64::from_ne_bytes(bytes.try_into().ok()?),
        })
    }

    /// Its text in a record: one of a fixed length as far as the first zero, or (`__data_loc`) what its place and length point
    /// to.
    pub fn text(self, record: &[u8]) -> Option<String> {
        let bytes = match self.number(record) {
            Some(place) if self.bytes == 4 => {
                record.get(usize::capped(place) & 0xffff..)?.get(..usize::capped(place) >> 16)?
            }
            _ => record.get(self.at..)?.get(..self.bytes)?,
        };
        let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
        Some(String::from_utf8_lossy(text).into_owned())
    }
}

/// The number of the tracepoint, by which its records are known.
pub fn id(text: &str) -> Option<u16> {
    text.lines().find_map(|line| line.strip_prefix("ID:")?.trim().parse().ok())
}

/// The number of the tracepoint that a record is of.
pub fn id_of(record: &[u8]) -> Option<u16> {
    Some(u16::from_ne_bytes(record.get(..2)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_texts_are_where_the_format_says() {
        let format = "ID: 12\n\tfield:__data_loc char[] filename;\toffset:8;\tsize:4;\tsigned:0;\n\
                      \tfield:pid_t pid;\toffset:12;\tsize:4;\tsigned:1;\n\
                      \tfield:char comm[4];\toffset:16;\tsize:8;\tsigned:1;\n";
        let mut record = vec![12, 0, 0, 0, 0, 0, 0, 0];
        record.extend((20_u32 | 4 << 16).to_ne_bytes());
        record.extend(77_u32.to_ne_bytes());
        record.extend(*b"sh\0xab\0c");
        assert_eq!((id(format), id_of(&record)), (Some(12), Some(12)));
        let field = |name: &str| Field::named(format, name).unwrap();
        assert_eq!(field("pid").number(&record), Some(77));
        assert_eq!(field("filename").text(&record).as_deref(), Some("ab"));
        assert_eq!(field("comm").text(&record).as_deref(), Some("sh"));
        assert_eq!(field("filename").text(&record[..22]), None);
        assert_eq!((Field::named(format, "none"), id("")), (None, None));
    }
}
