//! A table as text: widths, alignment and wrapping.
//!
//! Invariant: every character of every cell is shown; no line ends in a blank.

use crate::{columns, path};

/// Blanks between two columns.
const GAP: usize = 2;
/// The minimum width of a column of words: narrower ones cannot be read.
const NARROWEST: usize = 10;
/// A text may be broken after each of these.
const SEPARATORS: [char; 4] = [' ', ',', '/', '-'];

/// The layout of a column.
pub(super) struct ColumnLayout<'a> {
    /// Its title.
    pub title: &'a str,
    /// Whether its cells are right-aligned, as figures are.
    pub is_right: bool,
    /// Whether its cells may wrap, as words may; a figure is never broken.
    pub may_wrap: bool,
}

/// The titles and the rows, in at most `width` columns of a terminal unless figures and minimum widths need more.
pub(super) fn text(columns: &[ColumnLayout<'_>], rows: &[Vec<String>], width: usize) -> String {
    let titles = columns.iter().map(|column| column.title.to_owned()).collect();
    // A name may contain a line feed or an escape sequence, which a terminal must not interpret.
    let shown = rows.iter().map(|row| row.iter().map(|cell| path::visible(cell)).collect());
    let lines: Vec<Vec<String>> = std::iter::once(titles).chain(shown).collect();
    let widths = widths(columns, &lines, width);
    lines.iter().map(|cells| row(cells, columns, &widths)).collect()
}

/// Each as wide as its widest cell; if the line is too long, those that may wrap are narrowed: if possible so that no word is
/// broken, and none becomes too narrow to be read.
fn widths(columns: &[ColumnLayout<'_>], lines: &[Vec<String>], width: usize) -> Vec<usize> {
    let widest = |measure: fn(&str) -> usize| {
        let cells = |index: usize| lines.iter().map(move |cells| measure(&cells[index]));
        (0..columns.len()).map(|index| cells(index).max().unwrap_or(0)).collect::<Vec<usize>>()
    };
    let (whole, words) = (widest(columns::width), widest(longest_word));
    let titles: Vec<usize> = columns.iter().map(|column| columns::width(column.title)).collect();
    let floor = |breaks_words: bool, narrowest: usize| {
        let word = |index: usize| if breaks_words { 0 } else { words[index] };
        (0..columns.len()).map(|index| word(index).max(titles[index]).max(narrowest)).collect::<Vec<usize>>()
    };
    let attempts = [floor(false, NARROWEST), floor(false, 0), floor(true, NARROWEST)]
        .map(|floor| narrow(whole.clone(), &floor, |index| columns[index].may_wrap, width));
    let [.., last] = &attempts;
    attempts.iter().find(|widths| line_width(widths) <= width).unwrap_or(last).clone()
}

/// Narrows the widest column that is above its floor until the line fits, or none is.
fn narrow(
    mut widths: Vec<usize>,
    floor: &[usize],
    may_wrap: impl Fn(usize) -> bool,
    width: usize,
) -> Vec<usize> {
    while line_width(&widths) > width {
        let gives = (0..widths.len()).filter(|index| may_wrap(*index) && widths[*index] > floor[*index]);
        match gives.max_by_key(|index| widths[*index]) {
            Some(index) => widths[index] -= 1,
            None => break,
        }
    }
    widths
}

fn line_width(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1)
}

/// The width of the longest part of a text that is broken only if a line is shorter.
fn longest_word(text: &str) -> usize {
    text.split_inclusive(SEPARATORS).map(|word| columns::width(word.trim_end())).max().unwrap_or(0)
}

fn row(cells: &[String], columns: &[ColumnLayout<'_>], widths: &[usize]) -> String {
    let broken: Vec<Vec<String>> =
        cells.iter().zip(widths).map(|(cell, width)| wrapped(cell, *width)).collect();
    let height = broken.iter().map(Vec::len).max().unwrap_or(0);
    let mut text = String::new();
    for level in 0..height {
        let mut line = String::new();
        for (index, parts) in broken.iter().enumerate() {
            let part = parts.get(level).map_or("", String::as_str);
            let gap = if index == 0 { 0 } else { GAP };
            let width = widths[index];
            line.push_str(&" ".repeat(gap));
            line.push_str(&match columns[index].is_right {
                true => columns::right_aligned(part, width),
                false => columns::left_aligned(part, width),
            });
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Breaks a text into lines of at most `width` columns: at a blank; a word that is wider than a line, after a comma, a slash
/// or a hyphen if there is one, else anywhere. Lines after the first keep the text's indentation.
pub fn wrapped(text: &str, width: usize) -> Vec<String> {
    let blanks = text.chars().take_while(|letter| *letter == ' ').count();
    let indent = " ".repeat(blanks.min(width / 2));
    let (mut rest, mut margin) = (text, "");
    let mut lines = Vec::new();
    loop {
        // Of a long text only the beginning is looked at, or its lines would cost the square of its length.
        let near = rest.char_indices().nth(4 * (width + 1)).map_or(rest, |(at, _)| &rest[..at]);
        let line = format!("{margin}{}", if width > 0 { near } else { rest });
        if width == 0 || (near.len() == rest.len() && columns::width(&line) <= width) {
            lines.push(line);
            return lines;
        }
        let at = break_at(&line, width, indent.len());
        lines.push(line[..at].trim_end().to_owned());
        rest = rest[at - margin.len()..].trim_start_matches(' ');
        if rest.is_empty() {
            return lines;
        }
        margin = &indent;
    }
}

/// The byte offset at which a text that is too wide is broken: at least one character after the indentation.
fn break_at(text: &str, width: usize, indent: usize) -> usize {
    let fits = columns::cut(text, width).len();
    // A blank at the break is dropped, so the text before it may fill the line.
    let reach = if text[fits..].starts_with(' ') { fits + 1 } else { fits };
    let last_of = |letters: &[char]| {
        let separates = |(at, letter): &(usize, char)| *at >= indent && letters.contains(letter);
        text[..reach].char_indices().rev().find(separates).map(|(at, _)| at + 1)
    };
    let after_blank = last_of(&[' ']);
    let word = text[after_blank.unwrap_or(indent)..].split(' ').next().unwrap_or_default();
    let fits_on_a_line = columns::width(word) <= width - indent;
    let after_separator = after_blank.filter(|_| fits_on_a_line).or_else(|| last_of(&SEPARATORS));
    after_separator.unwrap_or_else(|| {
        let first = text[indent..].chars().next().map_or(0, char::len_utf8);
        fits.max(indent + first)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_break_where_they_may_and_keep_their_indentation() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("/a/long/path/to", 8), ["/a/long/", "path/to"]);
        assert_eq!(wrapped("of /a/b in", 7), ["of /a/b", "in"]);
        assert_eq!(wrapped("from /a/b,c --d=-5", 8), ["from", "/a/b,c", "--d=-5"]);
        assert_eq!(wrapped("to /a/long/path/to", 8), ["to /a/", "long/", "path/to"]);
        assert_eq!(wrapped("abcdefghij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(wrapped("  sda1 second", 8), ["  sda1", "  second"]);
        assert_eq!(wrapped("", 4), [""]);
    }

    /// With the square of its length this takes minutes.
    #[test]
    fn a_long_text_is_wrapped_in_time_of_its_length() {
        for text in ["x".repeat(1 << 16), "/x".repeat(1 << 15), "a b ".repeat(1 << 14)] {
            let lines = wrapped(&text, 60);
            assert!(lines.iter().all(|line| columns::width(line) <= 60));
            assert_eq!(lines.concat().replace(' ', ""), text.replace(' ', ""));
        }
    }

    #[test]
    fn words_stay_whole_if_other_columns_can_be_narrower() {
        let columns = || {
            ["OF", "FIGURE", "VERDICT"].map(|title| ColumnLayout { title, is_right: false, may_wrap: true })
        };
        let row = ["appends of 2300", "write.p99.9", "not comparable"].map(str::to_owned).to_vec();
        let at = |width| text(&columns(), std::slice::from_ref(&row), width);
        let second = "appends    write.p99.9  not\nof 2300                 comparable\n";
        assert_eq!(at(34), format!("OF         FIGURE       VERDICT\n{second}"));
        assert!(at(32).contains("write.p99.9"), "{}", at(32));
        assert!(at(20).lines().all(|line| columns::width(line) <= 34), "the minimum widths:\n{}", at(20));
    }

    #[test]
    fn widths_are_those_of_a_terminal() {
        assert_eq!(wrapped("ディスク", 5), ["ディ", "スク"]);
        assert_eq!(wrapped(" ディ", 2), [" デ", " ィ"], "each is wider than a line has columns left");
        assert_eq!(wrapped("e\u{301}e\u{301}e\u{301}", 2), ["e\u{301}e\u{301}", "e\u{301}"]);
        let [name, size] = [("NAME", false), ("SIZE", true)].map(|(title, is_right)| ColumnLayout {
            title,
            is_right,
            may_wrap: !is_right,
        });
        let rows = [["ディスク", "1"], ["e\u{301}", "22"]].map(|cells| cells.map(str::to_owned).to_vec());
        assert_eq!(text(&[name, size], &rows, 80), "NAME      SIZE\nディスク     1\ne\u{301}           22\n");
    }
}
