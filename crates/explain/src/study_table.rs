//! Tables of a study for people: titles instead of keys, figures with their units.
//!
//! Invariant: a figure has the unit that its key ends in; columns that differ in nothing but their units are one.

use fiord_import::{StudyRows, StudyValue};
use fiord_report::table::Cell;
use fiord_stats::Capped;

use crate::words;

/// The unit of a figure, as the keys of JSON name it at their end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    MibPerS,
    PerS,
    Percent,
    Times,
    Bytes,
    Ns,
    Ms,
    S,
    Plain,
}

/// What keys end in; the longer of two endings first.
const UNITS: [(&str, Unit); 8] = [
    ("mib_per_s", Unit::MibPerS),
    ("per_s", Unit::PerS),
    ("percent", Unit::Percent),
    ("times", Unit::Times),
    ("bytes", Unit::Bytes),
    ("ns", Unit::Ns),
    ("ms", Unit::Ms),
    ("s", Unit::S),
];

/// Words of keys that people write in another way.
const WORDS: [(&str, &str); 6] = [
    ("iops", "IOPS"),
    ("ios", "I/Os"),
    ("io", "I/O"),
    ("cpu", "CPU"),
    ("p999", "p99.9"),
    ("p9999", "p99.99"),
];

/// A column by its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    /// What it is about, in words: `read p99`; empty if the key is a unit alone.
    pub stem: String,
    pub unit: Unit,
}

impl Key {
    pub(crate) fn of(key: &str) -> Key {
        let ending = UNITS.iter().find_map(|(suffix, unit)| {
            let stem = key.strip_suffix(suffix)?;
            (stem.is_empty() || stem.ends_with('_')).then(|| (stem.trim_end_matches('_'), *unit))
        });
        let (stem, unit) = match (key.strip_prefix("ns_per_"), ending) {
            (Some(what), _) => (format!("time_per_{what}"), Unit::Ns),
            (None, Some((stem, unit))) => (stem.to_string(), unit),
            (None, None) => (key.to_string(), Unit::Plain),
        };
        Key { stem: in_words(&stem), unit }
    }

    /// Of a figure as rows name it: by its key, or as `fiord compare` does, `read.p99`.
    fn of_figure(name: &str) -> Key {
        match name.rsplit_once('.').map(|(_, figure)| figure) {
            None => Key::of(name),
            Some("iops") => Key { stem: name.to_string(), unit: Unit::Plain },
            Some("bw") => Key { stem: name.to_string(), unit: Unit::Bytes },
            // The part of a percentile behind the point belongs to the name: `p99.9`.
            Some(_) => Key { stem: name.to_string(), unit: Unit::Ns },
        }
    }

    /// The heading of its column.
    fn title(&self) -> String {
        let what = match self.unit {
            Unit::MibPerS => "throughput",
            _ if !self.stem.is_empty() => return self.stem.clone(),
            Unit::Ns | Unit::Ms | Unit::S => "time",
            _ => "value",
        };
        [self.stem.as_str(), what].join(" ").trim_start().to_string()
    }

    /// A value with its unit; `-` for nothing.
    pub(crate) fn shown(&self, value: &StudyValue) -> String {
        match value {
            StudyValue::None => Cell::None.shown(),
            StudyValue::Flag(flag) => Cell::Flag(*flag).shown(),
            StudyValue::Text(text) => text.clone(),
            StudyValue::List(items) if items.is_empty() => Cell::None.shown(),
            StudyValue::List(items) => {
                items.iter().map(|item| self.shown(item)).collect::<Vec<_>>().join(", ")
            }
            StudyValue::Number(number) => self.figure(*number),
        }
    }

    fn figure(&self, number: f64) -> String {
        match self.unit {
            Unit::MibPerS => format!("{} MiB/s", Cell::Number(number, decimals(number)).shown()),
            Unit::PerS => format!("{}/s", plain(number)),
            Unit::Percent => format!("{} %", Cell::Number(number, 1).shown()),
            Unit::Times => words::times(number),
            Unit::Bytes => words::bytes(u64::capped(number.max(0.0))),
            Unit::Ns => words::time(number),
            Unit::Ms => words::time(number * 1e6),
            Unit::S => format!("{} s", Cell::Number(number, 1).shown()),
            Unit::Plain => plain(number),
        }
    }
}

/// A number without a unit: whole if it is large.
fn plain(number: f64) -> String {
    match number {
        number if number.fract() == 0.0 || number.abs() >= 1000.0 => words::count(number),
        number => Cell::Number(number, 2).shown().trim_end_matches('0').to_string(),
    }
}

/// `read_p99_9` as `read p99.9`.
fn in_words(stem: &str) -> String {
    let mut text = String::new();
    for word in stem.split('_').filter(|word| !word.is_empty()) {
        let is_digits = word.bytes().all(|byte| byte.is_ascii_digit());
        let after_percentile = text
            .rsplit(' ')
            .next()
            .is_some_and(|last| last.strip_prefix('p').is_some_and(|digits| digits.parse::<u32>().is_ok()));
        text.push_str(match text.is_empty() {
            true => "",
            false if is_digits && after_percentile => ".",
            false => " ",
        });
        let known = WORDS.iter().find(|(key, _)| *key == word);
        text.push_str(known.map_or(word, |(_, people)| people));
    }
    text
}

/// A table to be shown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ShownTable {
    /// The titles of its columns.
    pub columns: Vec<String>,
    /// Its rows: each cell as it is shown, and the exact figure if it is one.
    pub rows: Vec<Vec<(String, Option<f64>)>>,
}

/// Columns whose figures are those that the row names, with its unit.
const OF_ROW: [&str; 9] = [
    "runs",
    "median",
    "lowest",
    "highest",
    "mean",
    "interval_low",
    "interval_high",
    "from_value",
    "to_value",
];

/// A table with its titles and units, without columns that are empty.
pub fn shown(table: &StudyRows) -> ShownTable {
    let keys: Vec<Key> = table.columns.iter().map(|key| Key::of(key)).collect();
    let figure = table.columns.iter().position(|key| key == "figure");
    let has_rows_figures = figure.is_some() && table.columns.iter().any(|key| OF_ROW.contains(&key.as_str()));
    let is_nothing =
        |value: &StudyValue| *value == StudyValue::None || *value == StudyValue::List(Vec::new());
    let has = |column: usize| table.rows.iter().any(|row| !is_nothing(&row[column]));
    // The title of each column, and the keys that share it.
    let mut columns: Vec<(String, Vec<usize>)> = Vec::new();
    for (column, key) in keys.iter().enumerate().filter(|(column, _)| has(*column)) {
        let title = key.title();
        match columns.last_mut().filter(|(last, _)| *last == title) {
            Some((_, shared)) => shared.push(column),
            None => columns.push((title, vec![column])),
        }
    }
    let cell = |row: &Vec<StudyValue>, shared: &[usize]| {
        let column = shared.iter().copied().find(|column| row[*column] != StudyValue::None);
        column.map_or((Cell::None.shown(), None), |column| {
            let exact = match row[column] {
                StudyValue::Number(number) => Some(number),
                _ => None,
            };
            let of_row = figure.filter(|_| has_rows_figures).map(|figure| &row[figure]);
            let text = match of_row {
                Some(StudyValue::Text(name)) if figure == Some(column) => Key::of_figure(name).title(),
                Some(StudyValue::Text(name)) if OF_ROW.contains(&table.columns[column].as_str()) => {
                    Key::of_figure(name).shown(&row[column])
                }
                _ => keys[column].shown(&row[column]),
            };
            (text, exact)
        })
    };
    ShownTable {
        rows: table
            .rows
            .iter()
            .map(|row| columns.iter().map(|(_, shared)| cell(row, shared)).collect())
            .collect(),
        columns: columns.into_iter().map(|(title, _)| title).collect(),
    }
}

/// Decimals at which a small figure still has two digits.
fn decimals(number: f64) -> usize {
    match number.abs() {
        size if size > 0.0 && size < 0.1 => usize::capped((1.0 - size.log10().floor()).min(9.0)),
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_become_titles_and_figures_have_units() {
        let of = |key: &str, number: f64| {
            let key = Key::of(key);
            (key.title(), key.shown(&StudyValue::Number(number)))
        };
        let expected = |title: &str, figure: &str| (title.to_string(), figure.to_string());
        assert_eq!(of("iops", 84_173.4), expected("IOPS", "84,173"));
        assert_eq!(of("mib_per_s", 328.84), expected("throughput", "328.8 MiB/s"));
        assert_eq!(of("run_error_mib_per_s", 0.0123), expected("run error throughput", "0.012 MiB/s"));
        assert_eq!(of("run_error_mib_per_s", 0.0), expected("run error throughput", "0.0 MiB/s"));
        assert_eq!(of("read_mib_per_s", 328.84), expected("read throughput", "328.8 MiB/s"));
        assert_eq!(of("p99_9_ns", 383_000.0), expected("p99.9", "383us"));
        assert_eq!(of("block_bytes", 4096.0), expected("block", "4KiB"));
        assert_eq!(of("ns_per_io", 5230.0), expected("time per I/O", "5.23us"));
        assert_eq!(of("per_s", 2.5), expected("value", "2.5/s"));
        assert_eq!(of("share_percent", 70.7), expected("share", "70.7 %"));
        assert_eq!(of("until_s", 1.1), expected("until", "1.1 s"));
        assert_eq!(of("depth", 32.0), expected("depth", "32"));
        assert_eq!(of("bound_percentile", 99.9), expected("bound percentile", "99.9"));
    }

    #[test]
    fn figures_of_rounds_and_comparisons_have_the_unit_of_the_figure_that_the_row_names() {
        let of = |figure: &str, column: &str, value: f64| {
            let row = vec![StudyValue::Text(figure.to_string()), StudyValue::Number(value)];
            let columns = ["figure", column].map(String::from).to_vec();
            let table = shown(&StudyRows { key: "x".to_string(), columns, rows: vec![row] });
            table.rows[0].iter().map(|(text, _)| text.clone()).collect::<Vec<_>>()
        };
        assert_eq!(of("p99_ns", "median", 4e6), ["p99", "4ms"]);
        assert_eq!(of("mib_per_s", "lowest", 673.31), ["throughput", "673.3 MiB/s"]);
        assert_eq!(of("iops", "highest", 1565.0), ["IOPS", "1,565"]);
        assert_eq!(of("p99_ns", "left_out", 1.0), ["p99_ns", "1"], "no figure of the row");
        assert_eq!(of("read.p99.9", "from_value", 4e6), ["read.p99.9", "4ms"]);
        assert_eq!(of("write.bw", "to_value", 1048576.0), ["write.bw", "1MiB"]);
        assert_eq!(of("write.iops", "to_value", 370.2), ["write.iops", "370.2"]);
    }

    #[test]
    fn columns_that_differ_in_their_unit_are_one_and_empty_ones_are_left_out() {
        use StudyValue::{None, Number, Text};
        let table = StudyRows {
            key: "rows".to_string(),
            columns: ["figure", "measured_ns", "measured_per_s", "rounds_ns"].map(String::from).to_vec(),
            rows: vec![
                vec![Text("p99".to_string()), Number(2e6), None, None],
                vec![Text("rate".to_string()), None, Number(50.0), None],
            ],
        };
        let shown = shown(&table);
        assert_eq!(shown.columns, ["figure", "measured"]);
        let cells: Vec<&str> = shown.rows.iter().flatten().map(|(text, _)| text.as_str()).collect();
        assert_eq!(cells, ["p99", "2ms", "rate", "50/s"]);
        assert_eq!(shown.rows[0][1].1, Some(2e6));
    }
}
