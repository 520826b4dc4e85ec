//! Lengths of time, with fio's suffixes.
//!
//! Invariant: held in whole microseconds; the unit of a bare number belongs to the type, as it belongs to the
//! option in fio.

use super::number::{LIST_SEPARATORS, first_part, scan, split_list};
use super::{Reading, Value, expression};

/// A length of time. A number without a unit counts `UNIT_US` microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Period<const UNIT_US: u64> {
    /// Microseconds.
    pub us: u64,
}

/// A length of time whose bare number counts seconds.
pub type Seconds = Period<1_000_000>;

/// A length of time whose bare number counts microseconds.
pub type Micros = Period<1>;

impl<const UNIT_US: u64> Value for Period<UNIT_US> {
    const KIND: &'static str = match UNIT_US {
        1 => "duration, in microseconds without a unit",
        _ => "duration, in seconds without a unit",
    };
    const SEPARATORS: &'static [char] = LIST_SEPARATORS;

    fn parse(text: &str, reading: &mut Reading) -> Result<Self, String> {
        let text = first_part(text, LIST_SEPARATORS, reading)?;
        parse_us(text, UNIT_US, reading).map(|us| Period { us })
    }

    fn print(&self) -> String {
        print_us(self.us)
    }
}

/// When a job starts: after a time, or after one chosen from a range for each worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StartDelay {
    /// Shortest delay in microseconds.
    pub low_us: u64,
    /// Longest delay in microseconds; the same as `low_us` unless a range was given.
    pub high_us: u64,
}

impl Value for StartDelay {
    const KIND: &'static str = "duration or range of durations, in seconds without a unit";

    fn parse(text: &str, reading: &mut Reading) -> Result<StartDelay, String> {
        let ends = split_list(text, LIST_SEPARATORS);
        let (low, high) = match ends.as_slice() {
            [only] => (only, only),
            [low, high] => (low, high),
            _ => return Err(format!("{text:?} has more than two ends")),
        };
        let low_us = parse_us(low, 1_000_000, reading)?;
        let high_us = parse_us(high, 1_000_000, reading)?;
        Ok(StartDelay { low_us: low_us.min(high_us), high_us: low_us.max(high_us) })
    }

    fn print(&self) -> String {
        match self.low_us == self.high_us {
            true => print_us(self.low_us),
            false => format!("{}-{}", print_us(self.low_us), print_us(self.high_us)),
        }
    }
}

/// Units, longest first; the first spelling of a length is the one printed.
const UNITS: [(&str, u64); 9] = [
    ("d", 86_400_000_000),
    ("h", 3_600_000_000),
    ("m", 60_000_000),
    ("s", 1_000_000),
    ("sec", 1_000_000),
    ("ms", 1_000),
    ("msec", 1_000),
    ("us", 1),
    ("usec", 1),
];

fn parse_us(text: &str, unit_us: u64, reading: &mut Reading) -> Result<u64, String> {
    if text.trim_start().starts_with('(') {
        // Inside an expression fio's bare numbers are microseconds, whatever the option's own unit is.
        let value = expression::evaluate(text, &leading_unit)?;
        return in_range(text, value.trunc() as i128);
    }
    let (number, rest) = scan(text).ok_or_else(|| format!("{text:?} is not a length of time"))?;
    let unit = rest.trim().to_ascii_lowercase();
    let factor = match UNITS.iter().find(|(name, _)| *name == unit) {
        Some((_, factor)) => *factor,
        None if unit.is_empty() => unit_us,
        None if unit.starts_with('.') && !unit.ends_with(char::is_alphabetic) => {
            reading.note(format!("{text} is read as {number}: fio reads no fractions"));
            unit_us
        }
        None => {
            reading.note(format!("{text} is read as {number} us: fio knows no unit {unit:?}"));
            1
        }
    };
    in_range(text, number.saturating_mul(i128::from(factor)))
}

fn in_range(text: &str, us: i128) -> Result<u64, String> {
    match u64::try_from(us) {
        Ok(us) => Ok(us),
        Err(_) if us < 0 => Err(format!("{text} is negative")),
        Err(_) => Err(format!("{text} is too long")),
    }
}

/// The longest unit that `rest` starts with: its microseconds, and the bytes of text it takes.
fn leading_unit(rest: &str) -> (i128, usize) {
    let lower = rest.to_ascii_lowercase();
    let fitting = UNITS.iter().filter(|(name, _)| lower.starts_with(name)).max_by_key(|(name, _)| name.len());
    fitting.map_or((1, 0), |(name, factor)| (i128::from(*factor), name.len()))
}

fn print_us(us: u64) -> String {
    match UNITS.iter().find(|(_, factor)| us != 0 && us.is_multiple_of(*factor)) {
        Some((unit, factor)) => format!("{}{unit}", us / factor),
        None => "0".to_string(),
    }
}
