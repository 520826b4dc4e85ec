//! What `str` has for text, for the bytes of paths and free text.
//!
//! Invariant: only the requested bytes are changed, whether the text is UTF-8 or not.

/// The position of the first `part` in `text`.
pub fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part)
}

/// The text with every `part` of it replaced.
pub fn replace(text: &[u8], part: &[u8], by: &[u8]) -> Vec<u8> {
    let mut replaced = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = find(rest, part) {
        replaced.extend_from_slice(&rest[..at]);
        replaced.extend_from_slice(by);
        rest = &rest[at + part.len()..];
    }
    replaced.extend_from_slice(rest);
    replaced
}

/// Whether fio passes over the byte at either end of a line or of a file's name.
pub fn is_blank(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == 0x0B
}

/// The text without blanks at either end.
pub fn trim(text: &[u8]) -> &[u8] {
    let start = text.iter().position(|byte| !is_blank(*byte)).unwrap_or(text.len());
    let end = text.iter().rposition(|byte| !is_blank(*byte)).map_or(start, |last| last + 1);
    &text[start..end]
}
