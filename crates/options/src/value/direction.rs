//! Values given separately for reads, writes and trims.
//!
//! Invariant: a part that was left out is `None` or what it was before, never a made-up number.

use super::contract::{Choice, Reading, Value};
use super::kind::ValueKind;
use super::number::split_list;

/// One value per direction: `bs=4k,8k,16k`. A value that no comma follows applies to the directions after it; a
/// part left out keeps what the direction had (`bs=,8k`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PerDirection<T> {
    /// For reads.
    pub read: Option<T>,
    /// For writes.
    pub write: Option<T>,
    /// For trims.
    pub trim: Option<T>,
}

impl<T: Value> Value for PerDirection<T> {
    const KIND: ValueKind = T::KIND;
    const CHOICES: &'static [Choice] = T::CHOICES;

    fn parse(text: &str, reading: &mut Reading) -> Result<Self, String> {
        Self::parse_onto(None, text, reading)
    }

    fn parse_onto(before: Option<&Self>, text: &str, reading: &mut Reading) -> Result<Self, String> {
        let mut values = match before.cloned() {
            Some(before) => [before.read, before.write, before.trim],
            None => [None, None, None],
        };
        let parts = split_list(text, T::SEPARATORS);
        if parts.iter().take(values.len()).all(|part| part.trim().is_empty()) {
            return Err(format!("{text:?} holds no value"));
        }
        if parts.len() > values.len() {
            reading.note(format!("three values are taken (read, write, trim) of {text:?}"));
        }
        for (index, part) in parts.iter().take(values.len()).enumerate() {
            if part.trim().is_empty() {
                continue;
            }
            let value = T::parse(part, reading)?;
            let end = if index + 1 == parts.len() { values.len() } else { index + 1 };
            values[index..end].fill(Some(value));
        }
        let [read, write, trim] = values;
        Ok(PerDirection { read, write, trim })
    }

    fn print(&self) -> String {
        let part = |value: &Option<T>| value.as_ref().map(T::print).unwrap_or_default();
        if self.read == self.write && self.write == self.trim {
            return part(&self.read);
        }
        format!("{},{},{}", part(&self.read), part(&self.write), part(&self.trim))
    }

    fn unset() -> Option<Self> {
        Some(PerDirection { read: None, write: None, trim: None })
    }
}
