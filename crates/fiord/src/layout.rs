//! Text layout for a terminal: width, wrapping, durations, colours.
//!
//! Invariant: no line is wider than requested unless a single word is; colours are used only on a terminal, and never
//! if `NO_COLOR` is set.

use std::fmt::Write;
use std::io;
use std::time::Duration;

use fiord_report::columns::{self, cut, left_aligned};
use fiord_sys::tty;

use crate::config;

/// The width of text that does not go to a terminal, in columns.
pub(crate) const WIDTH: usize = 80;

/// The width of standard output in columns.
pub(crate) fn width() -> usize {
    tty::columns(io::stdout()).map_or(WIDTH, usize::from)
}

/// Lines of a label and a text each, with the texts aligned.
pub(crate) fn labelled(lines: &[(&str, String)], width: usize) -> String {
    let indent = lines.iter().map(|(name, _)| columns::width(name)).max().unwrap_or(0) + 2;
    let line = |(name, text): &(&str, String)| folded(&(left_aligned(name, indent) + text), width, indent);
    lines.iter().map(line).collect()
}

/// A duration rounded to whole seconds: `45 s`, `2 min 30 s`. Anything above zero is at least one second.
pub(crate) fn duration(time: Duration) -> String {
    let rounded = (time + Duration::from_millis(500)).as_secs();
    let seconds = if time.is_zero() { 0 } else { rounded.max(1) };
    match (seconds / 60, seconds % 60) {
        (minutes @ 120.., _) => format!("{} h {} min", minutes / 60, minutes % 60),
        (0, seconds) => format!("{seconds} s"),
        (minutes, 0) => format!("{minutes} min"),
        (minutes, seconds) => format!("{minutes} min {seconds} s"),
    }
}

/// Wraps a text into lines of at most `width` columns, all but the first indented. Words are not broken.
pub(crate) fn folded(text: &str, width: usize, indent: usize) -> String {
    let mut lines = String::new();
    let mut line = 0;
    // A label keeps its padding.
    let head = if columns::width(text) > indent {
        cut(text, indent).len()
    } else {
        text.len() - text.trim_start_matches(' ').len()
    };
    let (head, rest) = text.split_at(head);
    lines += head;
    line += columns::width(head);
    for (number, word) in rest.split(' ').enumerate() {
        let length = columns::width(word);
        if number > 0 && line + 1 + length > width {
            let _ = write!(lines, "\n{:indent$}", "");
            line = indent;
        } else if number > 0 {
            lines.push(' ');
            line += 1;
        }
        lines += word;
        line += length;
    }
    lines + "\n"
}

/// A page of help with its long lines wrapped at [`WIDTH`]: below the description in a list of options, else below the
/// first word.
pub(crate) fn fitted(page: &str) -> String {
    let mut text = String::with_capacity(page.len());
    for line in page.lines() {
        if columns::width(line) <= WIDTH {
            text.push_str(line);
            text.push('\n');
            continue;
        }
        let words = line.trim_start_matches(' ');
        let margin = line.len() - words.len();
        let description = words.find("  ").map(|end| &words[end..]);
        let indent = description.map_or(margin, |rest| line.len() - rest.trim_start_matches(' ').len());
        text += &folded(line, WIDTH, indent);
    }
    text
}

/// Whether to use colours: on a terminal, unless the user disabled them (no-color.org).
pub(crate) fn is_coloured() -> bool {
    tty::stdout_is_terminal() && may_use_colours()
}

/// Whether a terminal may be coloured.
pub(crate) fn may_use_colours() -> bool {
    let is_wanted = config::get().colour != Some(false);
    is_wanted && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()) && !is_dumb()
}

/// Whether the terminal only writes lines, one after the other.
pub(crate) fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|name| name == "dumb")
}

/// The text with its bars in colour.
pub(crate) fn painted(text: &str, coloured: bool) -> String {
    const ON: &str = "\u{1b}[36m";
    const OFF: &str = "\u{1b}[0m";
    let mut painted = String::with_capacity(text.len());
    let mut inside = false;
    for letter in text.chars() {
        let bar = coloured && ('\u{2581}'..='\u{258f}').contains(&letter);
        if bar != inside {
            painted += if bar { ON } else { OFF };
            inside = bar;
        }
        painted.push(letter);
    }
    painted + if inside { OFF } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_wrapped_and_indented() {
        assert_eq!(folded("one two three", 80, 0), "one two three\n");
        assert_eq!(folded("one two three", 8, 0), "one two\nthree\n");
        assert_eq!(folded("Name  one two three", 13, 6), "Name  one two\n      three\n");
        assert_eq!(folded("unbreakable", 4, 0), "unbreakable\n");
    }

    #[test]
    fn long_lines_of_help_are_wrapped_below_their_description() {
        let words = |count: usize| vec!["word"; count].join(" ");
        let page =
            format!("Usage: a b\n\n  --long=...  {}\n  --short  {}\n{}\n", words(15), words(2), words(17));
        let expected = format!(
            "Usage: a b\n\n  --long=...  {}\n              {}\n  --short  {}\n{}\n{}\n",
            words(13),
            words(2),
            words(2),
            words(16),
            words(1)
        );
        assert_eq!(fitted(&page), expected);
        assert!(expected.lines().all(|line| columns::width(line) <= WIDTH), "{expected}");
    }

    #[test]
    fn wide_characters_take_two_columns() {
        assert_eq!(folded("ディスク ディスク", 12, 0), "ディスク\nディスク\n");
        let lines = [("ディ", "one two".to_string()), ("a", "b".to_string())];
        assert_eq!(labelled(&lines, 9), "ディ  one\n      two\na     b\n");
    }

    #[test]
    fn only_bars_are_coloured() {
        assert_eq!(painted("a ██▏ b\n", true), "a \u{1b}[36m██▏\u{1b}[0m b\n");
        assert_eq!(painted("a ██▏ b\n", false), "a ██▏ b\n");
    }

    #[test]
    fn durations_are_printed_in_minutes_and_seconds() {
        let printed = [0, 1, 1499, 1500, 45_000, 60_000, 150_000].map(Duration::from_millis).map(duration);
        assert_eq!(printed, ["0 s", "1 s", "1 s", "2 s", "45 s", "1 min", "2 min 30 s"]);
    }
}
