//! Mixes of block sizes: `bssplit=4k/50:8k/30:64k/`.
//!
//! Invariant: at least one entry, at most 64, and the shares given never exceed 100 percent together.

use super::contract::{Reading, Value};
use super::kind::ValueKind;
use super::number::{integer, note_rest};
use super::scan::scan;

/// Entries fio takes per direction.
const MAX_ENTRIES: usize = 64;

/// Block sizes and how often each is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockSplit {
    /// In the order given.
    pub entries: Vec<SplitEntry>,
}

/// One block size of a mix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SplitEntry {
    /// Block size in bytes.
    pub bytes: u64,
    /// Share of the I/Os; `None` for an equal part of what the others leave.
    pub percent: Option<u8>,
}

impl Value for BlockSplit {
    const KIND: ValueKind = ValueKind::BlockSplit;

    fn parse(text: &str, reading: &mut Reading) -> Result<BlockSplit, String> {
        let mut entries = Vec::new();
        for part in text.split(':').filter(|part| !part.trim().is_empty()) {
            entries.push(entry(part, reading)?);
        }
        if entries.is_empty() || entries.len() > MAX_ENTRIES {
            return Err(format!("{text:?} has {} block sizes, not 1 to {MAX_ENTRIES}", entries.len()));
        }
        let total: u32 = entries.iter().filter_map(|entry| entry.percent).map(u32::from).sum();
        match total > 100 {
            true => Err(format!("the percentages of {text:?} add up to {total}")),
            false => Ok(BlockSplit { entries }),
        }
    }

    fn print(&self) -> String {
        let entries: Vec<String> = self.entries.iter().map(SplitEntry::print).collect();
        entries.join(":")
    }
}

impl SplitEntry {
    fn print(&self) -> String {
        match self.percent {
            Some(percent) => format!("{}/{percent}", self.bytes),
            None => format!("{}/", self.bytes),
        }
    }
}

fn entry(part: &str, reading: &mut Reading) -> Result<SplitEntry, String> {
    let (size, share) = part.split_once('/').unwrap_or((part, ""));
    let bytes = match u64::try_from(integer(size, reading)?) {
        Ok(bytes @ 1..) => bytes,
        _ => return Err(format!("{part:?} does not start with a block size")),
    };
    if share.trim().is_empty() {
        return Ok(SplitEntry { bytes, percent: None });
    }
    let (number, rest) = scan(share).ok_or_else(|| format!("{share:?} in {part:?} is not a percentage"))?;
    note_rest(part, rest.trim_start_matches('%'), number, reading);
    match u8::try_from(number) {
        // fio treats 0 as if it had been left blank.
        Ok(0) => Ok(SplitEntry { bytes, percent: None }),
        Ok(percent @ 1..=100) => Ok(SplitEntry { bytes, percent: Some(percent) }),
        _ => Err(format!("{share} in {part:?} is not between 0 and 100 percent")),
    }
}
