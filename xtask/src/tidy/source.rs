//! Just enough of Rust's lexical grammar to measure functions and find calls.
//!
//! Invariant: `blank` keeps every byte's line and column, so that a position in its result is a position in the file.

/// The text with comments, and the insides of strings and characters, replaced by spaces.
pub fn blank(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out: Vec<u8> = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let end = match bytes[at] {
            b'/' if bytes.get(at + 1) == Some(&b'/') => line_end(bytes, at),
            b'/' if bytes.get(at + 1) == Some(&b'*') => block_comment_end(bytes, at),
            b'"' => string_end(bytes, at),
            b'r' if !in_word(bytes, at) => raw_string_end(bytes, at).unwrap_or(at),
            b'b' if !in_word(bytes, at) && bytes.get(at + 1) == Some(&b'r') => {
                raw_string_end(bytes, at + 1).unwrap_or(at)
            }
            b'\'' => char_end(bytes, at).unwrap_or(at),
            _ => at,
        };
        if end == at {
            out.push(bytes[at]);
            at += 1;
        } else {
            out.extend(bytes[at..end].iter().map(|&byte| if byte == b'\n' { b'\n' } else { b' ' }));
            at = end;
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn in_word(bytes: &[u8], at: usize) -> bool {
    at > 0 && is_word(bytes[at - 1])
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn line_end(bytes: &[u8], at: usize) -> usize {
    bytes[at..].iter().position(|&byte| byte == b'\n').map_or(bytes.len(), |length| at + length)
}

fn block_comment_end(bytes: &[u8], start: usize) -> usize {
    let mut depth = 0;
    let mut at = start;
    while at < bytes.len() {
        match (bytes[at], bytes.get(at + 1)) {
            (b'/', Some(b'*')) => (depth, at) = (depth + 1, at + 2),
            (b'*', Some(b'/')) => {
                (depth, at) = (depth - 1, at + 2);
                if depth == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    bytes.len()
}

fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// The end of a raw string whose `r` is at `at`, if it is one.
fn raw_string_end(bytes: &[u8], at: usize) -> Option<usize> {
    let hashes = bytes[at + 1..].iter().take_while(|&&byte| byte == b'#').count();
    let open = at + 1 + hashes;
    if bytes.get(open) != Some(&b'"') {
        return None;
    }
    let close = [&b"\""[..], &b"#".repeat(hashes)].concat();
    let body = &bytes[open + 1..];
    let length = body.windows(close.len()).position(|window| window == close)?;
    Some(open + 1 + length + close.len())
}

/// The end of a character literal; `None` for a lifetime.
fn char_end(bytes: &[u8], at: usize) -> Option<usize> {
    if bytes.get(at + 1) == Some(&b'\\') {
        let close = bytes[at + 3..].iter().position(|&byte| byte == b'\'')?;
        return Some(at + 3 + close + 1);
    }
    let width = std::str::from_utf8(&bytes[at + 1..bytes.len().min(at + 5)])
        .ok()
        .or_else(|| (2..5).rev().find_map(|end| std::str::from_utf8(bytes.get(at + 1..at + end)?).ok()))
        .and_then(|text| text.chars().next())?
        .len_utf8();
    (bytes.get(at + 1 + width) == Some(&b'\'')).then_some(at + width + 2)
}

/// A function: its name and the lines it covers, from 1, both ends included.
#[derive(Debug, PartialEq, Eq)]
pub struct Function {
    pub name: String,
    pub first_line: usize,
    pub last_line: usize,
}

impl Function {
    pub fn lines(&self) -> usize {
        self.last_line - self.first_line + 1
    }
}

/// Every function that has a body, in blanked text.
pub fn functions(blanked: &str) -> Vec<Function> {
    let bytes = blanked.as_bytes();
    let mut found = Vec::new();
    for at in words(blanked, "fn") {
        let rest = blanked[at + 2..].trim_start();
        let name: String = rest.bytes().take_while(|&byte| is_word(byte)).map(char::from).collect();
        if name.is_empty() {
            continue;
        }
        if let Some(end) = item_end(bytes, at).filter(|&end| bytes[end] == b'}') {
            found.push(Function { name, first_line: line_of(blanked, at), last_line: line_of(blanked, end) });
        }
    }
    found
}

/// Positions of a whole word.
pub fn words<'t>(blanked: &'t str, word: &'t str) -> impl Iterator<Item = usize> + 't {
    let bytes = blanked.as_bytes();
    blanked.match_indices(word).map(|(at, _)| at).filter(move |&at| {
        !in_word(bytes, at) && !bytes.get(at + word.len()).is_some_and(|&next| is_word(next))
    })
}

/// The line a position lies on, from 1.
pub fn line_of(text: &str, at: usize) -> usize {
    text.as_bytes()[..at].iter().filter(|&&byte| byte == b'\n').count() + 1
}

/// Where the item that starts at `at` ends: its closing brace, or its semicolon when it has no body.
fn item_end(bytes: &[u8], at: usize) -> Option<usize> {
    let mut brackets = 0usize;
    let mut braces = 0usize;
    for (offset, &byte) in bytes[at..].iter().enumerate() {
        match byte {
            b'(' | b'[' => brackets += 1,
            b')' | b']' => brackets = brackets.saturating_sub(1),
            b';' if brackets == 0 && braces == 0 => return Some(at + offset),
            b'{' => braces += 1,
            b'}' => {
                braces = braces.saturating_sub(1);
                if braces == 0 {
                    return Some(at + offset);
                }
            }
            _ => {}
        }
    }
    None
}

/// Line ranges (from 1, inclusive) of items under `#[cfg(test)]`.
pub fn test_lines(blanked: &str) -> Vec<(usize, usize)> {
    const MARK: &str = "#[cfg(test)]";
    let bytes = blanked.as_bytes();
    let spans = blanked.match_indices(MARK).filter_map(|(at, _)| {
        let mut start = at + MARK.len();
        // Further attributes stand between the mark and the item.
        while let Some(next) = blanked[start..].trim_start().strip_prefix("#[") {
            start = blanked.len() - next.len() + next.find(']')? + 1;
        }
        let end = item_end(bytes, start)?;
        Some((line_of(blanked, at), line_of(blanked, end)))
    });
    spans.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_become_spaces_of_the_same_shape() {
        let text = "a /* x /* { */ \n */ b \"}\\\"{\" 'c' '{' '\\'' r#\"\"}\"# br\"{\" 'life // }\nend";
        let blanked = blank(text);
        assert_eq!(blanked.len(), text.len());
        assert_eq!(blanked.matches('\n').count(), text.matches('\n').count());
        assert!(!blanked.contains(['{', '}']), "{blanked}");
        assert!(blanked.contains("'life") && blanked.contains("end") && blanked.contains(" b "));
    }

    #[test]
    fn a_function_is_measured_from_its_fn_to_its_brace() {
        let text = "trait T { fn none(&self) -> [u8; 4]; }\npub fn one<const N: usize>(f: fn(u8) -> u8)\nwhere u8: Copy {\n  if x { }\n}\n";
        let found = functions(&blank(text));
        assert_eq!(found, [Function { name: "one".to_string(), first_line: 2, last_line: 5 }]);
        assert_eq!(found[0].lines(), 4);
    }

    #[test]
    fn test_items_are_found_behind_further_attributes() {
        let text = "fn a() {}\n#[cfg(test)]\n#[allow(x)]\nmod tests {\n  fn b() {}\n}\nfn c() {}\n#[cfg(test)]\nuse x::y;\n";
        assert_eq!(test_lines(&blank(text)), [(2, 6), (8, 9)]);
    }

    #[test]
    fn words_are_whole() {
        assert_eq!(words("unsafe_code unsafe {} xunsafe", "unsafe").collect::<Vec<_>>(), [12]);
    }
}
