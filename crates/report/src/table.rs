//! A table as a value, and that value as text for people, CSV, Markdown or JSON.
//!
//! Invariant: no form loses data. Text that is too wide is wrapped within its column; a number is never broken.

use std::fmt::Write;

use crate::json::Writer;

mod cell;
mod layout;

pub use cell::{Cell, shown_bytes};
pub use layout::wrapped;

/// What spreadsheets take for the beginning of a formula.
const FORMULAS: [char; 6] = ['=', '+', '-', '@', '\t', '\r'];

/// A column: its key for programs, and its title for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// The key in JSON and the heading in CSV: lower case, unit last (`size_bytes`).
    pub key: &'static str,
    /// The heading in text and Markdown: short, without a unit, because the cells carry it.
    pub title: &'static str,
}

impl Column {
    /// A column by its key and its title.
    pub const fn new(key: &'static str, title: &'static str) -> Column {
        Column { key, title }
    }
}

/// Columns, and rows with a cell for each of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// The columns, from left to right.
    pub columns: Vec<Column>,
    /// The rows, from top to bottom, each with a cell for every column.
    pub rows: Vec<Vec<Cell>>,
}

impl Table {
    /// A table without rows.
    pub fn new(columns: impl IntoIterator<Item = Column>) -> Table {
        Table { columns: columns.into_iter().collect(), rows: Vec::new() }
    }

    /// The columns with these keys, in this order, with every row.
    #[must_use]
    pub fn select(&self, keys: &[&str]) -> Table {
        let at: Vec<usize> =
            keys.iter().filter_map(|key| self.columns.iter().position(|column| column.key == *key)).collect();
        Table {
            columns: at.iter().map(|index| self.columns[*index]).collect(),
            rows: self.rows.iter().map(|row| at.iter().map(|index| row[*index].clone()).collect()).collect(),
        }
    }

    /// For people: columns under their titles, figures to the right, at most `width` columns of a terminal wide as long as words
    /// can be broken to fit. Empty for a table without rows.
    pub fn text(&self, width: usize) -> String {
        if self.rows.is_empty() {
            return String::new();
        }
        let is_words =
            |index: usize| self.rows.iter().any(|row| matches!(row[index], Cell::Text(_) | Cell::List(_)));
        let right = self.right_aligned();
        let columns = self.columns.iter().enumerate().map(|(index, column)| layout::ColumnLayout {
            title: column.title,
            is_right: right[index],
            may_wrap: is_words(index),
        });
        let rows = self.rows.iter().map(|row| row.iter().map(Cell::shown).collect());
        layout::text(&columns.collect::<Vec<_>>(), &rows.collect::<Vec<_>>(), width)
    }

    /// RFC 4180: a line of keys, then a line for each row, all ended by CR LF. Words that a spreadsheet would calculate begin
    /// with an apostrophe.
    pub fn csv(&self) -> String {
        let keys = self.columns.iter().map(|column| quoted_csv(column.key));
        let mut text = csv_line(keys);
        for row in &self.rows {
            text.push_str(&csv_line(row.iter().map(|cell| quoted_csv(&inert(cell)))));
        }
        text
    }

    /// A table of GitHub's Markdown. Empty for a table without rows.
    pub fn markdown(&self) -> String {
        if self.rows.is_empty() {
            return String::new();
        }
        let titles = self.columns.iter().map(|column| escaped_markdown(column.title));
        let mut text = markdown_line(titles);
        let rule = |right: bool| if right { "---:" } else { "---" }.to_owned();
        text.push_str(&markdown_line(self.right_aligned().into_iter().map(rule)));
        for row in &self.rows {
            text.push_str(&markdown_line(row.iter().map(|cell| escaped_markdown(&cell.shown()))));
        }
        text
    }

    /// The rows as a list of objects under `key`.
    pub fn write_json(&self, json: &mut Writer, key: &str) {
        json.list(key, |json| {
            for row in &self.rows {
                json.item(|json| {
                    for (column, cell) in self.columns.iter().zip(row) {
                        cell.write(json, column.key);
                    }
                });
            }
        });
    }

    /// Which columns contain only figures.
    fn right_aligned(&self) -> Vec<bool> {
        let figures = |index: usize| {
            let mut known =
                self.rows.iter().map(|row| &row[index]).filter(|cell| **cell != Cell::None).peekable();
            known.peek().is_some() && known.all(Cell::is_figure)
        };
        (0..self.columns.len()).map(figures).collect()
    }
}

/// One JSON document of several tables, each under its key.
pub fn json(tables: &[(&str, &Table)]) -> String {
    Writer::document(|json| {
        for (key, table) in tables {
            table.write_json(json, key);
        }
    })
}

fn csv_line(fields: impl Iterator<Item = String>) -> String {
    format!("{}\r\n", fields.collect::<Vec<_>>().join(","))
}

/// A cell's field. What is not a figure must not be a formula to a spreadsheet, so it gets an apostrophe where it would be one.
fn inert(cell: &Cell) -> String {
    let field = cell.bare();
    let is_formula = matches!(cell, Cell::Text(_) | Cell::List(_)) && field.starts_with(FORMULAS);
    if is_formula { format!("'{field}") } else { field }
}

fn quoted_csv(field: &str) -> String {
    if field.contains([',', '"', '\r', '\n']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

fn markdown_line(cells: impl Iterator<Item = String>) -> String {
    let mut line = String::from("|");
    for cell in cells {
        // Writing to a String cannot fail.
        let _ = write!(line, " {cell} |");
    }
    line.push('\n');
    line
}

/// Escapes characters that would end the cell or be read as markup; a line feed becomes a blank.
fn escaped_markdown(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '|' | '\\' | '*' | '_' | '`' | '<' | '[' | ']') {
            escaped.push('\\');
        }
        escaped.push(if c.is_control() { ' ' } else { c });
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns;

    fn table(cells: Vec<Cell>) -> Table {
        Table {
            columns: vec![Column::new("value", "VALUE")],
            rows: cells.into_iter().map(|cell| vec![cell]).collect(),
        }
    }

    #[test]
    fn nothing_is_a_dash_for_people_and_empty_or_null_for_programs() {
        let table = table(vec![Cell::None]);
        assert_eq!(table.text(80), "VALUE\n-\n");
        assert_eq!(table.csv(), "value\r\n\r\n");
        assert!(json(&[("rows", &table)]).contains("\"value\" : null"));
        assert_eq!(Cell::List(Vec::new()).shown(), "-");
    }

    #[test]
    fn csv_quotes_what_would_break_a_line() {
        let text = |text: &str| Cell::Text(text.to_owned());
        let table = table(vec![
            text("plain"),
            text("a,b"),
            text("say \"x\""),
            text("two\nlines"),
            Cell::Flag(true),
            Cell::Bytes(4096),
        ]);
        assert_eq!(
            table.csv(),
            "value\r\nplain\r\n\"a,b\"\r\n\"say \"\"x\"\"\"\r\n\"two\nlines\"\r\ntrue\r\n4096\r\n"
        );
    }

    #[test]
    fn csv_has_no_formula_but_all_figures() {
        let words =
            ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "a=b", "'"].map(|text| Cell::Text(text.to_owned()));
        let rows = words.into_iter().chain([Cell::List(vec!["=x".to_owned()]), Cell::Number(-1.5, 1)]);
        let csv = table(rows.collect()).csv();
        assert_eq!(csv, "value\r\n'=1+1\r\n'+1\r\n'-1\r\n'@SUM(A1)\r\n'\tx\r\na=b\r\n'\r\n'=x\r\n-1.5\r\n");
    }

    #[test]
    fn markdown_escapes_its_own_marks_and_aligns_figures() {
        let columns = [Column::new("name", "NAME"), Column::new("size_bytes", "SIZE")];
        let mut table = Table::new(columns);
        assert_eq!(table.markdown(), "");
        table.rows.push(vec![Cell::Text("a|b_c\nd".to_owned()), Cell::Bytes(512)]);
        assert_eq!(table.markdown(), "| NAME | SIZE |\n| --- | ---: |\n| a\\|b\\_c d | 512B |\n");
    }

    #[test]
    fn json_keeps_types() {
        let cells = [
            ("a", Cell::Text("x\"y".to_owned())),
            ("b", Cell::List(vec!["p".to_owned(), "q".to_owned()])),
            ("c", Cell::Flag(true)),
            ("d", Cell::Count(7)),
            ("e", Cell::Number(1.5, 0)),
            ("f", Cell::Bytes(4096)),
            ("g", Cell::Latency(12)),
            ("h", Cell::None),
            ("i", Cell::List(Vec::new())),
            ("j", Cell::Formatted("64k".to_owned(), 65536.0)),
            ("k", Cell::Figures(vec![Cell::Latency(5), Cell::Number(0.5, 1)])),
        ];
        let mut table = Table::new(cells.iter().map(|(key, _)| Column::new(key, "")));
        table.rows.push(cells.iter().map(|(_, cell)| cell.clone()).collect());
        let parsed: serde_json::Value =
            serde_json::from_str(&json(&[("none", &Table::default()), ("rows", &table)])).unwrap();
        let expected = serde_json::json!({
            "a": "x\"y", "b": ["p", "q"], "c": true, "d": 7, "e": 1.5, "f": 4096, "g": 12, "h": null, "i": [],
            "j": 65536, "k": [5, 0.5]
        });
        assert_eq!(parsed, serde_json::json!({ "none": [], "rows": [expected] }));
    }

    #[test]
    fn selected_columns_are_in_the_requested_order() {
        let mut table = Table::new([Column::new("a", "A"), Column::new("b", "B"), Column::new("c", "C")]);
        table.rows.push(vec![Cell::Count(1), Cell::Count(2), Cell::Count(3)]);
        assert_eq!(table.select(&["c", "a"]).csv(), "c,a\r\n3,1\r\n");
    }

    fn text_cell(text: &str) -> Cell {
        Cell::Text(text.to_owned())
    }

    #[test]
    fn figures_are_right_aligned_and_words_left_aligned() {
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
    fn text_that_is_too_wide_wraps_within_its_column() {
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
    fn figures_are_not_broken_to_fit() {
        let mut table = Table::new([Column::new("a", "A"), Column::new("b", "B")]);
        table.rows.push(vec![Cell::Count(1_000_000), Cell::Count(2_000_000)]);
        assert_eq!(table.text(10), "      A        B\n1000000  2000000\n");
    }

    #[test]
    fn control_characters_in_names_are_escaped() {
        let mut table = Table::new([Column::new("a", "A")]);
        table.rows.push(vec![text_cell("x\x1b[2Jy\n")]);
        assert_eq!(table.text(80), "A\nx\\u{1b}[2Jy\\n\n");
    }

    proptest::proptest! {
        #[test]
        fn nothing_is_lost_and_lines_fit(words in proptest::collection::vec("[a-zé\u{301}デ/,-]{1,30}", 1..12), width in 12usize..60) {
            let text = words.join(" ");
            let mut table = Table::new([Column::new("a", "A")]);
            table.rows.push(vec![text_cell(&text)]);
            let shown = table.text(width);
            proptest::prop_assert!(shown.lines().all(|line| columns::width(line) <= width));
            let bare = |text: &str| text.split_whitespace().collect::<String>();
            proptest::prop_assert_eq!(bare(shown.strip_prefix("A\n").unwrap()), bare(&text));
        }
    }
}
