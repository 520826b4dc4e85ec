//! A table laid out for people: widths, alignment, and words that go on below.
//!
//! Invariant: every character of every cell is shown; no line ends in a blank.

use super::{Cell, Table};
use crate::path;

/// Blanks between two columns.
const GAP: usize = 2;
/// A column of words is not made narrower than this: what is left could not be read.
const NARROWEST: usize = 10;

/// The table in at most `width` characters where its figures and its narrowest columns leave room.
pub(super) fn text(table: &Table, width: usize) -> String {
    if table.rows.is_empty() {
        return String::new();
    }
    let right = table.right_aligned();
    let titles = table.columns.iter().map(|column| column.title.to_owned()).collect();
    // A name may hold a line feed or an escape sequence; a terminal must not act on it.
    let shown = table.rows.iter().map(|row| row.iter().map(|cell| path::visible(&cell.shown())).collect());
    let lines: Vec<Vec<String>> = std::iter::once(titles).chain(shown).collect();
    let widths = widths(table, &lines, width);
    lines.iter().map(|cells| row(cells, &widths, &right)).collect()
}

/// As wide as the widest cell; then the widest column of words gives way until the line fits.
fn widths(table: &Table, lines: &[Vec<String>], width: usize) -> Vec<usize> {
    let mut widths: Vec<usize> = (0..table.columns.len())
        .map(|index| lines.iter().map(|cells| cells[index].chars().count()).max().unwrap_or(0))
        .collect();
    let words =
        |index: usize| table.rows.iter().any(|row| matches!(row[index], Cell::Text(_) | Cell::List(_)));
    while widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1) > width {
        let narrowest = |index: usize| NARROWEST.max(table.columns[index].title.chars().count());
        let gives = (0..widths.len()).filter(|index| words(*index) && widths[*index] > narrowest(*index));
        match gives.max_by_key(|index| widths[*index]) {
            Some(index) => widths[index] -= 1,
            None => break,
        }
    }
    widths
}

fn row(cells: &[String], widths: &[usize], right: &[bool]) -> String {
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
            line.push_str(&if right[index] { format!("{part:>width$}") } else { format!("{part:<width$}") });
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Breaks a text into lines of at most `width` characters: after a blank, a comma, a slash or a hyphen where there is
/// one, else anywhere. Lines after the first keep the text's indentation.
pub fn wrapped(text: &str, width: usize) -> Vec<String> {
    let indent: String = text.chars().take_while(|c| *c == ' ').take(width / 2).collect();
    let mut rest: Vec<char> = text.chars().collect();
    let mut lines = Vec::new();
    while rest.len() > width && width > 0 {
        // A blank at the break falls away, so the text before it may fill the line.
        let reach = if rest[width] == ' ' { width + 1 } else { width };
        let may_break = |at: &usize| matches!(rest[at - 1], ' ' | ',' | '/' | '-');
        let at = (indent.len() + 1..=reach).rev().find(may_break).unwrap_or(width);
        let line: String = rest[..at].iter().collect();
        lines.push(line.trim_end().to_owned());
        let tail = rest[at..].iter().skip_while(|c| **c == ' ');
        rest = indent.chars().chain(tail.copied()).collect();
    }
    lines.push(rest.into_iter().collect());
    lines
}

#[cfg(test)]
mod tests {
    use super::super::Column;
    use super::*;

    fn text_cell(text: &str) -> Cell {
        Cell::Text(text.to_owned())
    }

    #[test]
    fn figures_stand_right_and_words_left() {
        let mut table = Table::new([
            Column::new("name", "NAME"),
            Column::new("size_bytes", "SIZE"),
            Column::new("x", "X"),
        ]);
        table.rows.push(vec![text_cell("vda"), Cell::Bytes(256 << 30), Cell::None]);
        table.rows.push(vec![text_cell("loop0"), Cell::None, text_cell("word")]);
        assert_eq!(table.text(80), "NAME     SIZE  X\nvda    256GiB  -\nloop0       -  word\n");
    }

    #[test]
    fn what_is_too_wide_goes_on_below_in_its_column() {
        let mut table = Table::new([Column::new("a", "A"), Column::new("b", "B"), Column::new("n", "N")]);
        table.rows.push(vec![
            text_cell("one"),
            text_cell("rw,relatime,discard,errors=continue"),
            Cell::Count(7),
        ]);
        assert_eq!(
            table.text(30),
            "A    B                       N\none  rw,relatime,discard,    7\n     errors=continue\n"
        );
    }

    #[test]
    fn a_table_of_figures_is_as_wide_as_it_must_be() {
        let mut table = Table::new([Column::new("a", "A"), Column::new("b", "B")]);
        table.rows.push(vec![Cell::Count(1_000_000), Cell::Count(2_000_000)]);
        assert_eq!(table.text(10), "      A        B\n1000000  2000000\n");
    }

    #[test]
    fn words_break_where_they_may_and_keep_their_indentation() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("/a/long/path/to", 8), ["/a/long/", "path/to"]);
        assert_eq!(wrapped("abcdefghij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(wrapped("  sda1 second", 8), ["  sda1", "  second"]);
        assert_eq!(wrapped("", 4), [""]);
    }

    #[test]
    fn a_terminal_is_told_nothing_by_a_name() {
        let mut table = Table::new([Column::new("a", "A")]);
        table.rows.push(vec![text_cell("x\x1b[2Jy\n")]);
        assert_eq!(table.text(80), "A\nx\\u{1b}[2Jy\\n\n");
    }

    proptest::proptest! {
        #[test]
        fn nothing_is_lost_and_lines_fit(words in proptest::collection::vec("[a-z/,-]{1,30}", 1..12), width in 12usize..60) {
            let text = words.join(" ");
            let mut table = Table::new([Column::new("a", "A")]);
            table.rows.push(vec![text_cell(&text)]);
            let shown = table.text(width);
            proptest::prop_assert!(shown.lines().all(|line| line.chars().count() <= width));
            let bare = |text: &str| text.split_whitespace().collect::<String>();
            proptest::prop_assert_eq!(bare(shown.strip_prefix("A\n").unwrap()), bare(&text));
        }
    }
}
