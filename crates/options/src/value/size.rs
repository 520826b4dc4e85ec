//! Amounts of data that are bytes, a part of the target, or zones; and ranges of sizes.
//!
//! Invariant: which of the three was meant is in the variant, not in the number.

use super::contract::{Reading, Value};
use super::kind::ValueKind;
use super::number::{LIST_SEPARATORS, integer, note_rest, outer_numbers, split_list};
use super::scan::scan;

/// How much of a file or device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// Bytes.
    Bytes(u64),
    /// Percent of the target, 0 to 100.
    Percent(u8),
    /// Zones of a zoned device.
    Zones(u64),
}

impl Value for Size {
    const KIND: ValueKind = ValueKind::Amount;

    fn parse(text: &str, reading: &mut Reading) -> Result<Size, String> {
        // fio hands each value of a list to the option, and the last one stays.
        let parts = split_list(text, LIST_SEPARATORS);
        let filled = parts.iter().rev().find(|part| !part.trim().is_empty());
        let last = *filled.ok_or_else(|| format!("{text:?} holds no value"))?;
        if parts.len() > 1 {
            reading.note(format!("one value is taken: {last:?} of {text:?}"));
        }
        let text = last;
        match scan(text) {
            Some((number, rest)) if rest.starts_with('%') => {
                // "100%%" is how configparser users write "100%".
                note_rest(text, rest.trim_start_matches('%'), number, reading);
                match u8::try_from(number) {
                    Ok(percent @ 0..=100) => Ok(Size::Percent(percent)),
                    _ => Err(format!("{text} is not between 0% and 100%")),
                }
            }
            Some((number, "z")) => match u64::try_from(number) {
                Ok(zones) => Ok(Size::Zones(zones)),
                Err(_) => Err(format!("{text} is not a number of zones")),
            },
            _ => u64::parse(text, reading).map(Size::Bytes),
        }
    }

    fn print(&self) -> String {
        match self {
            Size::Bytes(bytes) => bytes.to_string(),
            Size::Percent(percent) => format!("{percent}%"),
            Size::Zones(zones) => format!("{zones}z"),
        }
    }
}

/// A range of sizes in bytes; a single size is a range of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SizeRange {
    /// Smallest size.
    pub low_bytes: u64,
    /// Largest size.
    pub high_bytes: u64,
}

impl Value for SizeRange {
    const KIND: ValueKind = ValueKind::SizeOrRange;

    fn parse(text: &str, reading: &mut Reading) -> Result<SizeRange, String> {
        let (low, high) = outer_numbers(text)?;
        ordered(low, high, reading)
    }

    fn print(&self) -> String {
        match self.low_bytes == self.high_bytes {
            true => self.low_bytes.to_string(),
            false => format!("{}-{}", self.low_bytes, self.high_bytes),
        }
    }
}

/// A range of block sizes in bytes; both ends must be given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockRange {
    /// Smallest block.
    pub low_bytes: u64,
    /// Largest block.
    pub high_bytes: u64,
}

impl Value for BlockRange {
    const KIND: ValueKind = ValueKind::SizeRange;
    const SEPARATORS: &'static [char] = &[',', '/'];

    fn parse(text: &str, reading: &mut Reading) -> Result<BlockRange, String> {
        match split_list(text, &[':', '-']).as_slice() {
            [low, high, others @ ..] if !high.trim().is_empty() => {
                others.first().inspect(|_| {
                    reading.note(format!("two sizes are taken: {low:?} and {high:?} of {text:?}"));
                });
                ordered(low, high, reading)
                    .map(|SizeRange { low_bytes, high_bytes }| BlockRange { low_bytes, high_bytes })
            }
            _ => Err(format!("{text:?} is not a range such as 4k-64k")),
        }
    }

    fn print(&self) -> String {
        format!("{}-{}", self.low_bytes, self.high_bytes)
    }
}

/// Both ends parsed and in order: fio swaps them when they are the wrong way round.
fn ordered(low: &str, high: &str, reading: &mut Reading) -> Result<SizeRange, String> {
    let mut end = |text: &str| {
        let number = integer(text, reading)?;
        reading.check_range(number)?;
        u64::try_from(number).map_err(|_| format!("{text} is negative"))
    };
    let (low, high) = (end(low)?, end(high)?);
    Ok(SizeRange { low_bytes: low.min(high), high_bytes: low.max(high) })
}
