//! Paths, and other text that may be any bytes, in a readable form.
//!
//! Invariant: the form for people never breaks a line or controls a terminal, and different paths have different texts,
//! except for credentials in URLs, which no text has.

use std::ffi::OsStr;
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;

use crate::secret;

/// The path, or any other text of the system's: what is not readable as an escape (`\n`, `\xff`, `\u{1b}`), and so a
/// backslash twice.
pub fn shown(path: impl AsRef<OsStr>) -> String {
    let path = secret::in_urls(path.as_ref());
    let mut shown = String::new();
    for chunk in path.as_bytes().utf8_chunks() {
        shown += &visible(&chunk.valid().replace('\\', "\\\\"));
        for byte in chunk.invalid() {
            // Writing to a String cannot fail.
            let _ = write!(shown, "\\x{byte:02x}");
        }
    }
    shown
}

/// Whether a terminal acts on a character instead of showing it: control characters, and those that change the direction of
/// a line.
pub fn controls_terminal(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A text in which what is not readable stands as an escape.
pub fn visible(text: &str) -> String {
    let mut visible = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            letter if letter.is_control() => visible.extend(letter.escape_default()),
            letter if controls_terminal(letter) => visible.extend(letter.escape_unicode()),
            letter => visible.push(letter),
        }
    }
    visible
}

/// A text of several lines for people, as `visible`. Line feeds stay, and so do tabs.
pub fn visible_lines(text: &str) -> String {
    let of_line = |line: &str| line.split('\t').map(visible).collect::<Vec<_>>().join("\t");
    text.split('\n').map(of_line).collect::<Vec<_>>().join("\n")
}

/// The path for programs: its own text, as it is opened, where it has one; else as people read it.
pub fn text(path: impl AsRef<OsStr>) -> String {
    path.as_ref().to_str().map_or_else(|| shown(&path), secret::in_urls_of)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(bytes: &[u8]) -> String {
        shown(OsStr::from_bytes(bytes))
    }

    #[test]
    fn what_is_readable_stays_and_the_rest_becomes_visible() {
        assert_eq!(of("/data/ä b;#$'\"".as_bytes()), "/data/ä b;#$'\"");
        assert_eq!(of(b"a\nb\t\x1b[0m\x7f"), r"a\nb\t\u{1b}[0m\u{7f}");
        assert_eq!(of(b"a\xff\\xff"), r"a\xff\\xff");
        assert_eq!(of("\u{202e}x".as_bytes()), r"\u{202e}x");
        assert_eq!(text("a\n\\"), "a\n\\");
        assert_eq!(visible_lines("a\tb\n\x1b[31m\r\u{202e}\n"), "a\tb\n\\u{1b}[31m\\r\\u{202e}\n");
        assert_eq!(text(OsStr::from_bytes(b"a\xff")), r"a\xff");
    }

    proptest! {
        #[test]
        fn different_paths_are_different_texts(
            one in prop::collection::vec(1u8.., 0..6),
            other in prop::collection::vec(prop_oneof![Just(b'\\'), Just(b'x'), Just(b'f'), Just(0xff)], 0..6),
            place in 0usize..6,
        ) {
            let mut mixed = one.clone();
            mixed.splice(place.min(one.len())..place.min(one.len()), other.iter().copied());
            for (left, right) in [(&one, &other), (&one, &mixed), (&other, &mixed)] {
                prop_assert_eq!(left == right, of(left) == of(right));
            }
            prop_assert!(!of(&mixed).chars().any(char::is_control));
        }
    }
}
