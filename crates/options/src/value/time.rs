//! Lengths of time, with fio's suffixes.
//!
//! Invariant: held in whole microseconds; the unit of a bare number belongs to the type, as it belongs to the
//! option in fio.

use fiord_stats::Capped;

use super::contract::{Reading, Value};
use super::expression;
use super::kind::ValueKind;
use super::number::{LIST_SEPARATORS, first_part, outer_numbers};
use super::scan::scan;

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
    const KIND: ValueKind = match UNIT_US {
        1 => ValueKind::Micros,
        _ => ValueKind::Seconds,
    };
    const SEPARATORS: &'static [char] = LIST_SEPARATORS;

    const ONE_OF_LIST: bool = true;

    fn parse(text: &str, reading: &mut Reading) -> Result<Self, String> {
        let first = first_part(text, LIST_SEPARATORS, reading)?;
        parse_us(first, unit_text(text, first), UNIT_US, reading).map(|us| Period { us })
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
    const KIND: ValueKind = ValueKind::SecondsOrRange;

    fn parse(text: &str, reading: &mut Reading) -> Result<StartDelay, String> {
        let (low, high) = outer_numbers(text)?;
        let mut end = |end: &str| parse_us(end, unit_text(text, end), 1_000_000, reading);
        let (low_us, high_us) = (end(low)?, end(high)?);
        Ok(StartDelay { low_us: low_us.min(high_us), high_us: low_us.max(high_us) })
    }

    fn print(&self) -> String {
        match self.low_us == self.high_us {
            true => print_us(self.low_us),
            // The unit after the second number is that of both.
            false => {
                let (unit, factor) = unit_of(&[self.low_us, self.high_us]);
                format!("{}-{}{unit}", self.low_us / factor, self.high_us / factor)
            }
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

/// Where fio looks for the unit of `number`, a part of the list `text`: from the number on, up to the next comma.
/// Of `5-10m` both numbers are minutes.
fn unit_text<'t>(text: &'t str, number: &'t str) -> &'t str {
    let at = number.as_ptr() as usize - text.as_ptr() as usize;
    text[at..].split(',').next().unwrap_or(number)
}

/// Microseconds of one number. `behind` is the text from the number on, in which its unit stands: the letters behind
/// all digits and signs. Anything else there leaves the option's own unit (`30*1`, `1.5s`, `90 ms`).
fn parse_us(text: &str, behind: &str, unit_us: u64, reading: &mut Reading) -> Result<u64, String> {
    if text.trim_start().starts_with('(') {
        // Inside an expression fio's bare numbers are microseconds, whatever the option's own unit is.
        let value = expression::evaluate(text, &leading_unit)?;
        return in_range(text, i128::capped(value.trunc()));
    }
    let (number, _) = scan(text).ok_or_else(|| format!("{text:?} is not a duration"))?;
    let rest = behind.trim_start_matches(|letter: char| letter.is_ascii_digit() || "+-".contains(letter));
    let unit = rest.trim_end().to_ascii_lowercase();
    if !unit.starts_with(|letter: char| letter.is_ascii_alphabetic()) {
        if !unit.is_empty() {
            let unit_of_option = if unit_us == 1 { "us" } else { "s" };
            reading.note(format!("{text:?} is read as {number}{unit_of_option}: {rest:?} is ignored"));
        }
        return in_range(text, number.saturating_mul(i128::from(unit_us)));
    }
    let known = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor);
    let factor = known.unwrap_or_else(|| {
        // Of these alone fio looks at the beginning.
        let (factor, name) = if unit.starts_with("ms") { (1_000, "ms") } else { (1, "us") };
        reading.note(format!("{behind:?} is read as {number}{name}: fio knows no unit {unit:?}"));
        factor
    });
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
    if us == 0 {
        return "0".to_string();
    }
    let (unit, factor) = unit_of(&[us]);
    format!("{}{unit}", us / factor)
}

/// The longest unit that all of these are multiples of, and its microseconds.
fn unit_of(lengths_us: &[u64]) -> (&'static str, u64) {
    let fits = |factor: u64| lengths_us.iter().all(|us| us.is_multiple_of(factor));
    UNITS.into_iter().find(|(_, factor)| fits(*factor)).unwrap_or(("us", 1))
}
