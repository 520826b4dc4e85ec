//! Whole numbers and sizes in bytes, with fio's prefixes and suffixes.
//!
//! Invariant: values are read as fio reads them, even if that is surprising (`1.5g` is 1, `4KiB` is 4000); every
//! surprise causes a warning.

use fiord_stats::Capped;

use super::contract::{KbBase, Reading, Takes, Value};
use super::expression;
use super::kind::ValueKind;
use super::scan::scan;

/// A number of bytes: `4096`, `4k`, `0x1000`, `(4 * 1k)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

impl Value for Bytes {
    const KIND: ValueKind = ValueKind::Size;
    const SEPARATORS: &'static [char] = LIST_SEPARATORS;
    const ONE_OF_LIST: bool = true;

    fn parse(text: &str, reading: &mut Reading) -> Result<Bytes, String> {
        u64::parse(text, reading).map(Bytes)
    }

    fn print(&self) -> String {
        self.0.to_string()
    }
}

/// fio takes any of these between the numbers of a list.
pub(crate) const LIST_SEPARATORS: &[char] = &[',', ':', '-'];

/// Whole numbers. All of them take size suffixes, as in fio: `iodepth=1k` is 1024.
macro_rules! whole_number {
    ($($type:ident)*) => {
        $(impl Value for $type {
            const KIND: ValueKind = ValueKind::Integer;
            const SEPARATORS: &'static [char] = LIST_SEPARATORS;
            const ONE_OF_LIST: bool = true;

            fn parse(text: &str, reading: &mut Reading) -> Result<$type, String> {
                let number = integer(first_part(text, LIST_SEPARATORS, reading)?, reading)?;
                reading.check_range(number)?;
                $type::try_from(number).map_err(|_| match number < 0 {
                    true => format!("{number} is negative"),
                    false => format!("{number} is above {}", $type::MAX),
                })
            }

            fn print(&self) -> String {
                self.to_string()
            }
        })*
    };
}
whole_number!(u32 u64 i32);

impl Value for bool {
    const KIND: ValueKind = ValueKind::Boolean;
    const TAKES: Takes = Takes::Value;
    const ONE_OF_LIST: bool = true;

    fn parse(text: &str, reading: &mut Reading) -> Result<bool, String> {
        let text = first_part(text, LIST_SEPARATORS, reading)?;
        match scan(text) {
            Some((number @ (0 | 1), rest)) => {
                note_rest(text, rest, number, reading);
                Ok(number == 1)
            }
            _ => Err(format!("{text:?} is neither 0 nor 1")),
        }
    }

    fn print(&self) -> String {
        u8::from(*self).to_string()
    }
}

/// Splits a list outside parentheses; a leading minus belongs to the number.
pub(crate) fn split_list<'t>(text: &'t str, separators: &[char]) -> Vec<&'t str> {
    let mut depth = 0_usize;
    let mut parts = Vec::new();
    let mut start = 0;
    for (at, letter) in text.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            '-' if text[start..at].trim().is_empty() => {}
            _ if depth == 0 && separators.contains(&letter) => {
                parts.push(&text[start..at]);
                start = at + letter.len_utf8();
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

/// What fio uses of a list given to an option that takes one value: the first part.
pub(crate) fn first_part<'t>(
    text: &'t str,
    separators: &[char],
    reading: &mut Reading,
) -> Result<&'t str, String> {
    let parts = split_list(text, separators);
    match parts.as_slice() {
        [first, ..] if first.trim().is_empty() => Err(format!("{text:?} does not start with a value")),
        [only] => Ok(only),
        [first, ..] => {
            reading.note(format!("one value is taken: {first:?} of {text:?}"));
            Ok(first)
        }
        [] => Ok(text),
    }
}

/// The values behind an empty first part; `None` when the first part has a value.
pub(crate) fn behind_empty_first(text: &str) -> Option<Vec<&str>> {
    let parts = split_list(text, LIST_SEPARATORS);
    let (first, others) = parts.split_first()?;
    let filled = || others.iter().copied().filter(|part| !part.trim().is_empty());
    (first.trim().is_empty() && filled().next().is_some()).then(|| filled().collect())
}

/// The first and the last number of a list, the same one when there is no second: the ends of a range, of which fio
/// passes over those in between. Before a comma or a colon it takes one number alone.
pub(crate) fn outer_numbers(text: &str) -> Result<(&str, &str), String> {
    let groups = split_list(text, &[',', ':']);
    let last = groups.len().saturating_sub(1);
    let numbers: Vec<&str> = groups
        .iter()
        .enumerate()
        .flat_map(|(index, group)| {
            let parts = split_list(group, &['-']).into_iter();
            parts.take(if index == last { usize::MAX } else { 1 })
        })
        .filter(|part| !part.trim().is_empty())
        .collect();
    match numbers.as_slice() {
        [] => Err(format!("{text:?} holds no value")),
        [only] => Ok((only, only)),
        [first, .., last] => Ok((first, last)),
    }
}

/// Parses a whole number with a size suffix, or an expression in parentheses.
pub(crate) fn integer(text: &str, reading: &mut Reading) -> Result<i128, String> {
    if text.trim_start().starts_with('(') {
        return expression::evaluate(text, &|rest| sized(rest, reading.kb_base))
            .map(|value| i128::capped(value.trunc()));
    }
    let (number, rest) = scan(text).ok_or_else(|| format!("{text:?} is not a number"))?;
    if rest.starts_with('%') {
        return Err(format!("{text:?} is a percentage, which this option does not take"));
    }
    if rest == "z" {
        return Err(format!("{text:?} counts zones, which this option does not do"));
    }
    let (factor, used) = sized(rest, reading.kb_base);
    let value = number.checked_mul(factor).filter(|value| value.unsigned_abs() <= u128::from(u64::MAX));
    let value = value.ok_or_else(|| format!("{text} is too large"))?;
    if factor == 1 && rest.trim_end().eq_ignore_ascii_case("b") {
        return Ok(value);
    }
    note_rest(text, &rest[used..], value, reading);
    if reading.kb_base == KbBase::Binary && used == 3 {
        let unit = &rest[..used];
        reading.note_decimal_unit(format!("{text} is read as {value}: with kb_base=1024, {unit} is decimal"));
    }
    Ok(value)
}

/// The factor of the size suffix that `rest` starts with, and the bytes of text it takes: `k` and `ki` go with
/// `kb_base`, `kib` against it.
fn sized(rest: &str, kb_base: KbBase) -> (i128, usize) {
    const PREFIXES: &str = "kmgtp";
    let lower = rest.to_ascii_lowercase();
    let Some(power) = lower.chars().next().and_then(|letter| PREFIXES.find(letter)) else {
        return (1, 0);
    };
    let power = u32::capped(power) + 1;
    let (plain, opposite): (i128, i128) = match kb_base {
        KbBase::Binary => (1024, 1000),
        KbBase::Decimal => (1000, 1024),
    };
    match &lower[1..] {
        rest if rest.starts_with("ib") => (opposite.pow(power), 3),
        rest if rest.starts_with(['i', 'b']) => (plain.pow(power), 2),
        _ => (plain.pow(power), 1),
    }
}

/// Warns of text that fio ignores after a number.
pub(crate) fn note_rest(text: &str, rest: &str, value: i128, reading: &mut Reading) {
    let rest = rest.trim_end();
    if !rest.is_empty() {
        reading.note(format!("{text:?} is read as {value}: {rest:?} is ignored"));
    }
}
