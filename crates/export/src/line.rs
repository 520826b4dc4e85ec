//! InfluxDB's line protocol: one line for each row, `measurement,label=… key=… time`.
//!
//! Invariant: no two rows are the same point: whoever writes a point again replaces the first.

use std::fmt::Write;

use fiord_report::table::Cell;

use crate::typed::{Kind, TypedTable, count};

/// Nanoseconds of a millisecond.
const NS_PER_MS: i64 = 1_000_000;

/// The rows as lines of the measurement `name`. The time of a row is that of its column of times; the nanoseconds below the
/// millisecond are taken from `numbers`, which tell apart what began in the same millisecond.
pub fn line_protocol(name: &str, typed: &TypedTable, numbers: &[u64]) -> String {
    let mut text = String::new();
    for (row, number) in typed.table.rows.iter().zip(numbers) {
        let (mut labels, mut fields, mut time) = (String::new(), Vec::new(), String::new());
        let columns = typed.table.columns.iter().zip(&typed.kinds).zip(row);
        for ((column, kind), cell) in columns {
            let key = column.key;
            match (kind, cell) {
                (Kind::Label, Cell::Text(words)) => labels += &label(key, words),
                (Kind::Time, cell) => {
                    let at_ms = count(cell).unwrap_or(0);
                    let below_ms = (number % NS_PER_MS.unsigned_abs()).cast_signed();
                    time = at_ms.saturating_mul(NS_PER_MS).saturating_add(below_ms).to_string();
                }
                (_, cell) => fields.extend(field(cell).map(|value| format!("{key}={value}"))),
            }
        }
        let _ = writeln!(text, "{name}{labels} {} {time}", fields.join(","));
    }
    text
}

/// A label, with what separates it from the one before; nothing if it is empty, which the protocol does not allow.
fn label(key: &str, words: &str) -> String {
    // A backslash before a separator would escape it, and cannot be escaped itself.
    let without_backslash = |value: &mut String| value.truncate(value.trim_end_matches('\\').len());
    let mut value = String::new();
    for letter in words.chars() {
        // Labels have no control characters in this protocol.
        let letter = if letter.is_control() { ' ' } else { letter };
        if matches!(letter, ',' | '=' | ' ') {
            without_backslash(&mut value);
            value.push('\\');
        }
        value.push(letter);
    }
    without_backslash(&mut value);
    if value.is_empty() { String::new() } else { format!(",{key}={value}") }
}

fn field(cell: &Cell) -> Option<String> {
    let quoted = |words: &str| format!("\"{}\"", words.replace('\\', "\\\\").replace('"', "\\\""));
    match cell {
        Cell::None => None,
        Cell::Text(words) => Some(quoted(words)),
        Cell::List(all) => Some(quoted(&all.join(", "))),
        cell => match count(cell) {
            Some(count) => Some(format!("{count}i")),
            None => cell.figure().filter(|figure| figure.is_finite()).map(|figure| figure.to_string()),
        },
    }
}

#[cfg(test)]
mod tests {
    use fiord_report::table::Column;

    use super::*;

    #[test]
    fn a_row_is_a_line_with_labels_fields_and_time() {
        let columns = [
            ("id", Kind::Count),
            ("host", Kind::Label),
            ("title", Kind::Label),
            ("command", Kind::Text),
            ("targets", Kind::Texts),
            ("started_ms", Kind::Time),
            ("ios_per_s", Kind::Number),
        ];
        let mut typed = TypedTable::new(columns.map(|(key, kind)| (Column::new(key, key), kind)));
        let text = |words: &str| Cell::Text(words.to_string());
        typed
            .push(vec![
                Cell::Count(12),
                text("a"),
                text("x\\, y=\\"),
                text("fiord \"a b\" \\"),
                Cell::List(vec!["/a".to_string(), "/b".to_string()]),
                Cell::Count(1_700_000_000_123),
                Cell::Number(0.25, 0),
            ])
            .unwrap();
        typed
            .push(vec![
                Cell::Count(13),
                text(""),
                Cell::None,
                Cell::None,
                Cell::List(Vec::new()),
                Cell::Count(1),
                Cell::Number(f64::NAN, 0),
            ])
            .unwrap();
        let expected = "\
fiord_run,host=a,title=x\\,\\ y\\= id=12i,command=\"fiord \\\"a b\\\" \\\\\",targets=\"/a, /b\",ios_per_s=0.25 \
1700000000123000012
fiord_run id=13i,targets=\"\" 1000013
";
        assert_eq!(line_protocol("fiord_run", &typed, &[12, 13]), expected);
    }
}
