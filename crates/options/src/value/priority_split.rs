//! Priorities by block size: `cmdprio_bssplit=4k/50:64k/20/2/7`.
//!
//! Invariant: at least one entry, and the shares given for one block size never exceed 100 percent together.

use super::contract::{Reading, Value};
use super::kind::ValueKind;
use super::number::{integer, note_rest};
use super::scan::scan;

/// Block sizes, and which share of their I/Os has which priority.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrioritySplit {
    /// In the order given.
    pub entries: Vec<PriorityEntry>,
}

/// The I/Os of one block size that have one priority.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PriorityEntry {
    /// Block size in bytes.
    pub bytes: u64,
    /// Share of its I/Os.
    pub percent: u8,
    /// Class, level and hint; `None` for those of the other options.
    pub priority: Option<(u8, u8, u16)>,
}

impl Value for PrioritySplit {
    const KIND: ValueKind = ValueKind::Text;

    fn parse(text: &str, reading: &mut Reading) -> Result<PrioritySplit, String> {
        let mut entries: Vec<PriorityEntry> = Vec::new();
        for part in text.split(':').filter(|part| !part.trim().is_empty()) {
            entries.push(entry(part, reading)?);
        }
        for PriorityEntry { bytes, .. } in &entries {
            let same = entries.iter().filter(|entry| entry.bytes == *bytes);
            let total: u32 = same.map(|entry| u32::from(entry.percent)).sum();
            if total > 100 {
                return Err(format!("the percentages of {bytes} bytes in {text:?} add up to {total}"));
            }
        }
        match entries.is_empty() {
            true => Err(format!("{text:?} holds no block size")),
            false => Ok(PrioritySplit { entries }),
        }
    }

    fn print(&self) -> String {
        let print = |entry: &PriorityEntry| match entry.priority {
            None => format!("{}/{}", entry.bytes, entry.percent),
            Some((class, level, hint)) => {
                format!("{}/{}/{class}/{level}/{hint}", entry.bytes, entry.percent)
            }
        };
        self.entries.iter().map(print).collect::<Vec<String>>().join(":")
    }
}

/// `SIZE`, `SIZE/PERCENT`, `SIZE/PERCENT/CLASS/LEVEL` or `SIZE/PERCENT/CLASS/LEVEL/HINT`.
fn entry(part: &str, reading: &mut Reading) -> Result<PriorityEntry, String> {
    let fields: Vec<&str> = part.split('/').collect();
    let bytes = match u64::try_from(integer(fields[0], reading)?) {
        Ok(bytes @ 1..) => bytes,
        _ => return Err(format!("{part:?} does not start with a block size")),
    };
    // As in fio, numbers that are too large count as the largest.
    let mut number = |index: usize, most: u16| -> Result<u16, String> {
        match fields.get(index).map(|field| field.trim()) {
            None | Some("") => Ok(0),
            Some(field) => {
                let (number, rest) =
                    scan(field).ok_or_else(|| format!("{field:?} in {part:?} is not a number"))?;
                note_rest(part, rest.trim_start_matches('%'), number, reading);
                Ok(u16::try_from(number.clamp(0, most.into())).unwrap_or(most))
            }
        }
    };
    let mut small =
        |index, most: u8| Ok::<u8, String>(u8::try_from(number(index, most.into())?).unwrap_or(most));
    let percent = small(1, 100)?;
    let priority = match fields.len() {
        1 | 2 => None,
        4 | 5 => Some((small(2, 3)?, small(3, 7)?, number(4, 1023)?)),
        _ => return Err(format!("{part:?} is not SIZE/PERCENT or SIZE/PERCENT/CLASS/LEVEL")),
    };
    Ok(PriorityEntry { bytes, percent, priority })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_have_a_share_and_may_have_a_priority() {
        let read = |text: &str| PrioritySplit::parse(text, &mut Reading::default());
        let print = |text: &str| read(text).map(|split| split.print());
        assert_eq!(print("4k/50:8k/30/2/7").unwrap(), "4096/50:8192/30/2/7/0");
        assert_eq!(print("4k/50/1/0/3:4k/50").unwrap(), "4096/50/1/0/3:4096/50");
        assert_eq!(print("4k").unwrap(), "4096/0");
        assert_eq!(print("4k/101/9/9").unwrap(), "4096/100/3/7/0", "as fio");
        for wrong in ["", ":", "x", "4k/50/1", "4k/50:4k/51", "4k/a", "4k/1/1/1/1/1"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
