//! Lists of decimal fractions: `99:99.9:99.99`.
//!
//! Invariant: one to twenty numbers, all finite and within the option's range.

use super::contract::{Reading, Value};
use super::kind::ValueKind;

/// Numbers fio takes.
const MAX_NUMBERS: usize = 20;

/// Numbers separated by colons, in the order given.
#[derive(Debug, Clone, PartialEq)]
pub struct FloatList(pub Vec<f64>);

impl Value for FloatList {
    const KIND: ValueKind = ValueKind::Decimals;

    fn parse(text: &str, reading: &mut Reading) -> Result<FloatList, String> {
        let mut numbers = Vec::new();
        for part in text.split(':') {
            if numbers.len() == MAX_NUMBERS {
                reading.note(format!("{MAX_NUMBERS} numbers are taken of {text:?}"));
                break;
            }
            match number(part, text, reading) {
                Ok(number) => numbers.push(number),
                // fio stops at the first part that is not a number, if there was one before it.
                Err(why) if numbers.is_empty() => return Err(why),
                Err(why) => {
                    reading.note(format!("{why}; the list ends before it"));
                    break;
                }
            }
        }
        for number in &numbers {
            let outside = |range: &std::ops::RangeInclusive<i128>| {
                !(*range.start() as f64..=*range.end() as f64).contains(number)
            };
            if let Some(range) = reading.range.as_ref().filter(|range| outside(range)) {
                return Err(format!("{number} is not between {} and {}", range.start(), range.end()));
            }
        }
        Ok(FloatList(numbers))
    }

    fn print(&self) -> String {
        let numbers: Vec<String> = self.0.iter().map(f64::to_string).collect();
        numbers.join(":")
    }
}

/// A decimal number, if it is one and not too large.
pub(super) fn finite(text: &str) -> Option<f64> {
    text.parse::<f64>().ok().filter(|number| number.is_finite())
}

/// A number at the start of a part; what follows it is ignored.
fn number(part: &str, whole: &str, reading: &mut Reading) -> Result<f64, String> {
    let part = part.trim();
    let length = part.find(|letter: char| !letter.is_ascii_digit() && !matches!(letter, '.' | '-' | '+'));
    let (digits, rest) = part.split_at(length.unwrap_or(part.len()));
    let number = finite(digits).ok_or_else(|| format!("{part:?} in {whole:?} is not a number"))?;
    if !rest.is_empty() {
        reading.note(format!("{part:?} is read as {number}: {rest:?} is ignored"));
    }
    Ok(number)
}
