//! The number that a text starts with.
//!
//! Invariant: what follows the number is handed back; nothing is ignored here.

/// A leading whole number, decimal or with `0x`, after white space and a sign; and the text after it.
pub(crate) fn scan(text: &str) -> Option<(i128, &str)> {
    let text = text.trim_start();
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let hexadecimal = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X"));
    let (radix, digits) = match hexadecimal {
        Some(digits) => (16, digits),
        None => (10, digits),
    };
    let length = digits.find(|letter: char| !letter.is_digit(radix)).unwrap_or(digits.len());
    if length == 0 {
        return None;
    }
    let number = i128::from_str_radix(&digits[..length], radix).ok()?;
    Some((if negative { -number } else { number }, &digits[length..]))
}
