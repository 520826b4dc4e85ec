//! A table as a value, and that value as text for people, CSV, Markdown or JSON.
//!
//! Invariant: no form loses data. Text that is too wide continues below, in its own column; a number is never broken.

use std::fmt::Write;

use crate::json::Writer;

mod layout;

pub use layout::wrapped;

/// A column: what programs call it, and what people read above it.
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

/// One cell. People are shown units, programs the bare figure.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Words.
    Text(String),
    /// Several words or names.
    List(Vec<String>),
    /// Yes or no.
    Flag(bool),
    /// A count.
    Count(u64),
    /// A figure, and how many decimals people are shown.
    Number(f64, usize),
    /// Bytes.
    Bytes(u64),
    /// A duration, in nanoseconds.
    Latency(u64),
    /// A figure of which people are shown this text: as it was typed (`64k`), or with more digits than usual.
    Said(String, f64),
    /// Several figures.
    Figures(Vec<Cell>),
    /// Unknown, or not applicable.
    None,
}

impl Cell {
    /// Text, or nothing.
    pub fn text(text: Option<impl Into<String>>) -> Cell {
        text.map_or(Cell::None, |text| Cell::Text(text.into()))
    }

    /// A count, or nothing.
    pub fn count(count: Option<u64>) -> Cell {
        count.map_or(Cell::None, Cell::Count)
    }

    /// Bytes, or nothing.
    pub fn bytes(bytes: Option<u64>) -> Cell {
        bytes.map_or(Cell::None, Cell::Bytes)
    }

    /// A duration, with as many digits as tell it from a limit it is held against.
    pub fn latency_beside(ns: u64, limit_ns: u64) -> Cell {
        if ns == limit_ns || shown_latency(ns) != shown_latency(limit_ns) {
            return Cell::Latency(ns);
        }
        let digits = (FIGURES..).find(|digits| latency_to(ns, *digits) != latency_to(limit_ns, *digits));
        Cell::Said(digits.map_or_else(String::new, |digits| latency_to(ns, digits)), ns as f64)
    }

    fn is_figure(&self) -> bool {
        matches!(self, Cell::Count(_) | Cell::Number(..) | Cell::Bytes(_) | Cell::Latency(_) | Cell::Said(..))
    }

    /// The figure without its unit; `None` for what is none.
    fn figure(&self) -> Option<f64> {
        match self {
            Cell::Count(figure) | Cell::Bytes(figure) | Cell::Latency(figure) => Some(*figure as f64),
            Cell::Number(figure, _) | Cell::Said(_, figure) => Some(*figure),
            _ => None,
        }
    }

    /// As people read it; `-` for nothing.
    pub fn shown(&self) -> String {
        match self {
            Cell::Text(text) => text.clone(),
            Cell::List(items) if items.is_empty() => "-".to_owned(),
            Cell::List(items) => items.join(", "),
            Cell::Flag(true) => "yes".to_owned(),
            Cell::Flag(false) => "no".to_owned(),
            Cell::Count(count) => count.to_string(),
            Cell::Number(value, decimals) => shown_number(*value, *decimals),
            Cell::Bytes(bytes) => shown_bytes(*bytes),
            Cell::Latency(ns) => shown_latency(*ns),
            Cell::Said(text, _) => text.clone(),
            Cell::Figures(figures) if figures.is_empty() => "-".to_owned(),
            Cell::Figures(figures) => figures.iter().map(Cell::shown).collect::<Vec<_>>().join(", "),
            Cell::None => "-".to_owned(),
        }
    }

    /// As programs read it in CSV: no unit, empty for nothing.
    fn bare(&self) -> String {
        match self {
            Cell::Bytes(figure) | Cell::Latency(figure) => figure.to_string(),
            Cell::Number(value, _) | Cell::Said(_, value) => value.to_string(),
            Cell::Figures(figures) => figures.iter().map(Cell::bare).collect::<Vec<_>>().join(", "),
            Cell::None => String::new(),
            Cell::List(items) => items.join(", "),
            Cell::Flag(flag) => flag.to_string(),
            other => other.shown(),
        }
    }

    /// As a member of a JSON object.
    pub fn write(&self, json: &mut Writer, key: &str) {
        match self {
            Cell::Text(text) => json.string(key, text),
            Cell::List(items) => json.strings(key, items),
            Cell::Flag(flag) => json.boolean(key, *flag),
            Cell::Count(figure) | Cell::Bytes(figure) | Cell::Latency(figure) => json.integer(key, figure),
            Cell::Number(value, _) => json.float(key, *value),
            Cell::Said(_, value) => json.number(key, *value),
            Cell::Figures(figures) => json.numbers(key, figures.iter().filter_map(Cell::figure)),
            Cell::None => json.null(key),
        }
    }
}

/// Bytes in the largest binary unit that leaves a whole part, to three figures: `512B`, `4KiB`, `79.7GiB`.
pub fn shown_bytes(bytes: u64) -> String {
    const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let power = (bytes.checked_ilog2().unwrap_or(0) / 10) as usize;
    to_figures(bytes as f64 / (1u64 << (10 * power)) as f64, UNITS[power], FIGURES)
}

/// A number to so many decimals. Halves are rounded up, as where a count is made of a rate, so that the same figure is
/// the same wherever it is shown.
fn shown_number(value: f64, decimals: usize) -> String {
    let scale = 10f64.powi(decimals as i32);
    let rounded = (value * scale).round() / scale;
    format!("{:.decimals$}", if rounded.is_finite() { rounded } else { value })
}

/// Nanoseconds in the unit that leaves a whole part, to three figures: `850ns`, `12.3us`, `1.07s`.
pub fn shown_latency(ns: u64) -> String {
    latency_to(ns, FIGURES)
}

fn latency_to(ns: u64, digits: usize) -> String {
    let (divisor, unit) = match ns {
        0..1_000 => (1.0, "ns"),
        1_000..1_000_000 => (1e3, "us"),
        1_000_000..1_000_000_000 => (1e6, "ms"),
        _ => (1e9, "s"),
    };
    to_figures(ns as f64 / divisor, unit, digits)
}

/// Figures of sizes and durations.
const FIGURES: usize = 3;

/// So many figures, without the zeros a decimal fraction ends in.
fn to_figures(value: f64, unit: &str, digits: usize) -> String {
    let whole = if value < 10.0 { 1 } else { 2 + usize::from(value >= 100.0) };
    let decimals = digits.saturating_sub(whole);
    let figure = format!("{value:.decimals$}");
    let figure = if decimals > 0 { figure.trim_end_matches('0').trim_end_matches('.') } else { &figure };
    format!("{figure}{unit}")
}

/// Columns, and rows of as many cells.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// The columns, from left to right.
    pub columns: Vec<Column>,
    /// The rows, from top to bottom; each as long as there are columns.
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

    /// For people: columns under their titles, figures to the right, at most `width` characters wide as long as words
    /// can be broken to fit. Empty for a table without rows.
    pub fn text(&self, width: usize) -> String {
        layout::text(self, width)
    }

    /// RFC 4180: a heading of keys, then a line a row, all ended by CR LF.
    pub fn csv(&self) -> String {
        let keys = self.columns.iter().map(|column| quoted_csv(column.key));
        let mut text = csv_line(keys);
        for row in &self.rows {
            text.push_str(&csv_line(row.iter().map(|cell| quoted_csv(&cell.bare()))));
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

    /// Which columns hold figures and nothing else.
    fn right_aligned(&self) -> Vec<bool> {
        let figures = |index: usize| {
            let mut told =
                self.rows.iter().map(|row| &row[index]).filter(|cell| **cell != Cell::None).peekable();
            told.peek().is_some() && told.all(Cell::is_figure)
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

/// What would end the cell or be read as markup is escaped; a line feed cannot stand in a cell.
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

    fn table(cells: Vec<Cell>) -> Table {
        Table {
            columns: vec![Column::new("value", "VALUE")],
            rows: cells.into_iter().map(|cell| vec![cell]).collect(),
        }
    }

    #[test]
    fn figures_have_three_digits_and_their_unit() {
        for (bytes, shown) in [
            (0, "0B"),
            (512, "512B"),
            (4096, "4KiB"),
            (1536, "1.5KiB"),
            (256 << 30, "256GiB"),
            (85_589_446_656, "79.7GiB"),
            (2_000_398_934_016, "1.82TiB"),
            (u64::MAX, "16EiB"),
        ] {
            assert_eq!(Cell::Bytes(bytes).shown(), shown);
        }
        for (ns, shown) in [
            (0, "0ns"),
            (850, "850ns"),
            (12_340, "12.3us"),
            (2_000_000, "2ms"),
            (100_400_000, "100ms"),
            (1_070_000_000, "1.07s"),
        ] {
            assert_eq!(Cell::Latency(ns).shown(), shown);
        }
        assert_eq!(Cell::Number(2.345, 1).shown(), "2.3");
        for half in [0.5, 1.5, 2.5, 1126.5, 84172.5] {
            assert_eq!(Cell::Number(half, 0).shown(), Cell::Count(half.round() as u64).shown());
        }
        assert_eq!(Cell::Number(f64::INFINITY, 0).shown(), "inf");
        assert_eq!(Cell::Count(0).shown(), "0");
    }

    #[test]
    fn a_duration_is_told_from_the_limit_it_is_beyond() {
        let shown = |ns| Cell::latency_beside(ns, 10_000_000).shown();
        assert_eq!([9_900_000, 10_000_000, 10_100_000].map(shown), ["9.9ms", "10ms", "10.1ms"]);
        assert_eq!([9_999_000, 10_027_008, 10_000_001].map(shown), ["9.999ms", "10.03ms", "10.000001ms"]);
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
            ("j", Cell::Said("64k".to_owned(), 65536.0)),
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
    fn selected_columns_keep_the_order_asked_for() {
        let mut table = Table::new([Column::new("a", "A"), Column::new("b", "B"), Column::new("c", "C")]);
        table.rows.push(vec![Cell::Count(1), Cell::Count(2), Cell::Count(3)]);
        assert_eq!(table.select(&["c", "a"]).csv(), "c,a\r\n3,1\r\n");
    }
}
