//! The `rw` option: directions, order, and the number that modifies offsets.
//!
//! Invariant: the number is held under the meaning it has for the mode, bytes or I/Os.

use super::choice::{RwKind, split_word, unknown_word};
use super::contract::{Choice, Reading, Value};
use super::kind::ValueKind;
use super::number::integer;

/// A mode with its modifier: `randread:8`, `write:4k`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RwMode {
    /// Directions and order.
    pub kind: RwKind,
    /// For random modes: I/Os per random offset, at least 1.
    pub ios_per_offset: u32,
    /// For sequential modes: bytes added to the offset after each I/O; negative to go back.
    pub skip_bytes: i64,
}

impl RwKind {
    /// Whether offsets are random.
    pub fn is_random(self) -> bool {
        match self {
            RwKind::RandRead
            | RwKind::RandWrite
            | RwKind::RandTrim
            | RwKind::RandReadWrite
            | RwKind::RandTrimWrite => true,
            RwKind::Read | RwKind::Write | RwKind::Trim | RwKind::ReadWrite | RwKind::TrimWrite => false,
        }
    }
}

impl Value for RwMode {
    const KIND: ValueKind = ValueKind::WordWithNumber;
    const CHOICES: &'static [Choice] = RwKind::CHOICES;

    fn parse(text: &str, reading: &mut Reading) -> Result<RwMode, String> {
        let (word, number) = split_word(text);
        let kind = RwKind::from_word(word).ok_or_else(|| unknown_word(word, Self::CHOICES, reading))?;
        let mut mode = RwMode { kind, ios_per_offset: 1, skip_bytes: 0 };
        if number.is_empty() {
            return Ok(mode);
        }
        let Ok(number) = integer(number, reading) else {
            reading.note(format!("{number:?} in {text:?} is not a number, and is ignored"));
            return Ok(mode);
        };
        let wrong = |_| format!("{number} in {text:?} is out of range");
        match kind.is_random() {
            true => mode.ios_per_offset = u32::try_from(number).map_err(wrong)?.max(1),
            false => mode.skip_bytes = i64::try_from(number).map_err(wrong)?,
        }
        Ok(mode)
    }

    fn print(&self) -> String {
        match self {
            RwMode { kind, ios_per_offset: 1, skip_bytes: 0 } => kind.word().to_string(),
            RwMode { kind, ios_per_offset, skip_bytes: 0 } => format!("{}:{ios_per_offset}", kind.word()),
            RwMode { kind, skip_bytes, .. } => format!("{}:{skip_bytes}", kind.word()),
        }
    }
}
