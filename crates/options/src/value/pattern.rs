//! Patterns that buffers are filled with.
//!
//! Invariant: a pattern has at least one part; a file is named, never read, here.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use super::contract::{Reading, Value};
use super::kind::ValueKind;
use crate::shown::{self, shown};

/// One part of a pattern.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum PatternPart {
    /// These bytes.
    Bytes(Vec<u8>),
    /// The contents of this file.
    File(PathBuf),
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
    const KIND: ValueKind = ValueKind::Pattern;

    fn parse(text: &str, reading: &mut Reading) -> Result<BufferPattern, String> {
        Self::parse_bytes(OsStr::new(text), reading)
    }

    fn parse_bytes(bytes: &OsStr, _reading: &mut Reading) -> Result<BufferPattern, String> {
        let parts = parse_parts(bytes.as_bytes())?;
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
    const KIND: ValueKind = ValueKind::VerifyPattern;

    fn parse(text: &str, reading: &mut Reading) -> Result<VerifyPattern, String> {
        Self::parse_bytes(OsStr::new(text), reading)
    }

    fn parse_bytes(bytes: &OsStr, _reading: &mut Reading) -> Result<VerifyPattern, String> {
        parse_parts(bytes.as_bytes()).map(VerifyPattern)
    }

    fn print(&self) -> String {
        print_parts(&self.0)
    }
}

fn parse_parts(text: &[u8]) -> Result<Vec<PatternPart>, String> {
    let mut parts: Vec<PatternPart> = Vec::new();
    let mut rest = text.trim_ascii_start();
    while let Some(first) = rest.first() {
        let (part, after) = match first {
            b'"' => quoted(rest, b'"').map(|(string, after)| (PatternPart::Bytes(string.into()), after))?,
            b'\'' => quoted(rest, b'\'').map(|(name, after)| (PatternPart::File(path(name)), after))?,
            b'%' => match rest.strip_prefix(b"%o") {
                Some(after) => (PatternPart::Offset, after),
                None => {
                    return Err(format!("{} starts with an unknown format; %o is the only one", quote(rest)));
                }
            },
            _ => number(rest).map(|(bytes, after)| (PatternPart::Bytes(bytes), after))?,
        };
        match (parts.last_mut(), part) {
            (Some(PatternPart::Bytes(last)), PatternPart::Bytes(bytes)) => last.extend(bytes),
            (_, part) => parts.push(part),
        }
        rest = after.trim_ascii_start();
    }
    match parts.is_empty() {
        true => Err("the pattern is empty".to_string()),
        false => Ok(parts),
    }
}

fn path(name: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(name))
}

/// A part of a pattern as it is shown in a message.
fn quote(part: &[u8]) -> String {
    format!("\"{}\"", shown(OsStr::from_bytes(part)))
}

/// What stands between two quotes, which must not be nothing, and what stands after them.
fn quoted(text: &[u8], mark: u8) -> Result<(&[u8], &[u8]), String> {
    let inner = &text[1..];
    match inner.iter().position(|byte| *byte == mark) {
        Some(0) => Err(format!("{} starts with an empty string", quote(text))),
        Some(end) => Ok((&inner[..end], &inner[end + 1..])),
        None => Err(format!("a closing {} is missing in {}", char::from(mark), quote(text))),
    }
}

/// A number as the bytes it stands for: hexadecimal as written, two digits a byte; decimal as the bytes of a 32-bit
/// little-endian integer, without the zero bytes at its end. Either ends where a hexadecimal one begins:
/// `-120xdeadface` is -12, then the bytes de ad fa ce.
fn number(text: &[u8]) -> Result<(Vec<u8>, &[u8]), String> {
    if let Some(digits) = after_0x(text) {
        let (digits, after) = digits.split_at(run_of(digits, u8::is_ascii_hexdigit));
        // An odd number of digits has half a byte at its start: 0xabc is 0a bc.
        let (head, pairs) = digits.split_at(digits.len() % 2);
        let bytes: Vec<u8> = std::iter::once(head)
            .chain(pairs.chunks(2))
            .filter_map(|byte| u8::from_str_radix(std::str::from_utf8(byte).ok()?, 16).ok())
            .collect();
        return match bytes.is_empty() {
            true => Err(format!("{} has no digits after 0x", quote(text))),
            false => Ok((bytes, after)),
        };
    }
    let signs = usize::from(matches!(text.first(), Some(b'-' | b'+')));
    let (digits, after) = text.split_at(signs + run_of(&text[signs..], u8::is_ascii_digit));
    let number = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse::<i32>().ok());
    let number = number.ok_or_else(|| {
        format!("{} is neither a 32-bit number, 0x digits, a \"string\" nor a 'file'", quote(text))
    })?;
    let bytes = number.to_le_bytes();
    let length = bytes.iter().rposition(|byte| *byte != 0).map_or(1, |last| last + 1);
    Ok((bytes[..length].to_vec(), after))
}

fn after_0x(text: &[u8]) -> Option<&[u8]> {
    text.strip_prefix(b"0x").or_else(|| text.strip_prefix(b"0X"))
}

/// How many digits `text` starts with, up to the next `0x`.
fn run_of(text: &[u8], is_digit: fn(&u8) -> bool) -> usize {
    let ends = |at: &usize| !is_digit(&text[*at]) || after_0x(&text[*at..]).is_some();
    (0..text.len()).find(ends).unwrap_or(text.len())
}

fn print_parts(parts: &[PatternPart]) -> String {
    let part = |part: &PatternPart| match part {
        PatternPart::Bytes(bytes) => {
            let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("0x{digits}")
        }
        PatternPart::File(name) => format!("'{}'", shown::text(name)),
        PatternPart::Offset => "%o".to_string(),
    };
    parts.iter().map(part).collect()
}
