//! Patterns that buffers are filled with.
//!
//! Invariant: a pattern has at least one part; a file is named, never read, here.

use super::{Reading, Value};

/// One part of a pattern.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum PatternPart {
    /// These bytes.
    Bytes(Vec<u8>),
    /// The contents of the file of this name.
    File(String),
    /// The block's offset, eight bytes, little-endian (`%o`).
    Offset,
}

/// Pattern of `buffer_pattern`: `0xdeadface"abcd"-12'file'`, repeated over the buffer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct BufferPattern(pub Vec<PatternPart>);

/// Pattern of `verify_pattern`: as `BufferPattern`, and `%o` for the block's offset.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct VerifyPattern(pub Vec<PatternPart>);

impl Value for BufferPattern {
    const KIND: &'static str = "pattern of numbers, \"strings\" and 'files'";

    fn parse(text: &str, _reading: &mut Reading) -> Result<BufferPattern, String> {
        let parts = parse_parts(text)?;
        match parts.contains(&PatternPart::Offset) {
            true => Err("%o is for verify_pattern only".to_string()),
            false => Ok(BufferPattern(parts)),
        }
    }

    fn print(&self) -> String {
        print_parts(&self.0)
    }
}

impl Value for VerifyPattern {
    const KIND: &'static str = "pattern of numbers, \"strings\", 'files' and %o";

    fn parse(text: &str, _reading: &mut Reading) -> Result<VerifyPattern, String> {
        parse_parts(text).map(VerifyPattern)
    }

    fn print(&self) -> String {
        print_parts(&self.0)
    }
}

fn parse_parts(text: &str) -> Result<Vec<PatternPart>, String> {
    let mut parts: Vec<PatternPart> = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let (part, after) = match first {
            '"' => quoted(rest, '"').map(|(string, after)| (PatternPart::Bytes(string.into()), after))?,
            '\'' => quoted(rest, '\'').map(|(name, after)| (PatternPart::File(name.into()), after))?,
            '%' => match rest.strip_prefix("%o") {
                Some(after) => (PatternPart::Offset, after),
                None => return Err(format!("{rest:?} starts with an unknown format; %o is the only one")),
            },
            _ => number(rest).map(|(bytes, after)| (PatternPart::Bytes(bytes), after))?,
        };
        match (parts.last_mut(), part) {
            (Some(PatternPart::Bytes(last)), PatternPart::Bytes(bytes)) => last.extend(bytes),
            (_, part) => parts.push(part),
        }
        rest = after.trim_start();
    }
    match parts.is_empty() {
        true => Err("the pattern is empty".to_string()),
        false => Ok(parts),
    }
}

/// The text between two quotes, which must not be empty, and the text after them.
fn quoted(text: &str, quote: char) -> Result<(&str, &str), String> {
    match text[1..].split_once(quote) {
        Some(("", _)) => Err(format!("{text:?} starts with an empty string")),
        Some(split) => Ok(split),
        None => Err(format!("a closing {quote} is missing in {text:?}")),
    }
}

/// A number as the bytes it stands for: hexadecimal as written, two digits a byte; decimal as the bytes of a 32-bit
/// little-endian integer, without the zero bytes at its end. Either ends where a hexadecimal one begins:
/// `-120xdeadface` is -12, then the bytes de ad fa ce.
fn number(text: &str) -> Result<(Vec<u8>, &str), String> {
    if let Some(digits) = after_0x(text) {
        let (digits, after) = digits.split_at(run_of(digits, |letter| letter.is_ascii_hexdigit()));
        // An odd number of digits has half a byte at its start: 0xabc is 0a bc.
        let (head, pairs) = digits.split_at(digits.len() % 2);
        let pairs = (0..pairs.len()).step_by(2).map(|at| &pairs[at..at + 2]);
        let bytes: Vec<u8> = std::iter::once(head)
            .chain(pairs)
            .filter(|byte| !byte.is_empty())
            .filter_map(|byte| u8::from_str_radix(byte, 16).ok())
            .collect();
        return match bytes.is_empty() {
            true => Err(format!("{text:?} has no digits after 0x")),
            false => Ok((bytes, after)),
        };
    }
    let signs = usize::from(text.starts_with(['-', '+']));
    let (digits, after) = text.split_at(signs + run_of(&text[signs..], |letter| letter.is_ascii_digit()));
    let number: i32 = digits
        .parse()
        .map_err(|_| format!("{text:?} is neither a 32-bit number, 0x digits, a \"string\" nor a 'file'"))?;
    let bytes = number.to_le_bytes();
    let length = bytes.iter().rposition(|byte| *byte != 0).map_or(1, |last| last + 1);
    Ok((bytes[..length].to_vec(), after))
}

fn after_0x(text: &str) -> Option<&str> {
    text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))
}

/// The bytes of the digits that `text` starts with, up to the next `0x`.
fn run_of(text: &str, is_digit: fn(&char) -> bool) -> usize {
    let ends = |(at, letter): &(usize, char)| !is_digit(letter) || after_0x(&text[*at..]).is_some();
    text.char_indices().find(ends).map_or(text.len(), |(at, _)| at)
}

fn print_parts(parts: &[PatternPart]) -> String {
    let part = |part: &PatternPart| match part {
        PatternPart::Bytes(bytes) => {
            let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("0x{digits}")
        }
        PatternPart::File(name) => format!("'{name}'"),
        PatternPart::Offset => "%o".to_string(),
    };
    parts.iter().map(part).collect()
}
