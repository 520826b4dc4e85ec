//! Apache Parquet: a table as one file of one row group, each column as one page, plainly encoded and not compressed.
//!
//! Invariant: every column may have nothing in a row, but lists, which may be empty; a file without rows has all columns.

use std::fmt;

use fiord_report::table::{Cell, Column};
use fiord_stats::Capped;

use crate::thrift::{Struct, varint};
use crate::typed::{Kind, TypedTable, count};

/// What a file begins and ends with.
const MAGIC: &[u8; 4] = b"PAR1";

/// Parquet's numbers: physical types, repetitions, what a type means, encodings, kinds of pages, compression.
const INT64: i32 = 2;
const DOUBLE: i32 = 5;
const BYTE_ARRAY: i32 = 6;
const REQUIRED: i32 = 0;
const OPTIONAL: i32 = 1;
const REPEATED: i32 = 2;
const UTF8: i32 = 0;
const LIST: i32 = 3;
const TIMESTAMP_MILLIS: i32 = 9;
const PLAIN: i32 = 0;
const RLE: i32 = 3;
const DATA_PAGE: i32 = 0;
const UNCOMPRESSED: i32 = 0;

/// The groups between a column that is a list and its elements, by the names that the format prescribes.
const LIST_GROUPS: [&str; 2] = ["list", "element"];

/// A column with more than the format can describe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TooLarge {
    /// The column's key.
    pub column: &'static str,
    /// Its bytes, or values.
    pub size: usize,
}

impl fmt::Display for TooLarge {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TooLarge { column, size } = self;
        write!(
            out,
            "the column {column} would be larger ({size}) than a page of Parquet; export fewer runs at a time"
        )
    }
}

/// The table as a file.
///
/// # Errors
/// A column has more than 2 GiB, or values.
pub fn parquet(typed: &TypedTable) -> Result<Vec<u8>, TooLarge> {
    let mut file = MAGIC.to_vec();
    let mut chunks = Vec::new();
    for (index, (column, kind)) in typed.table.columns.iter().zip(&typed.kinds).enumerate() {
        let cells: Vec<&Cell> = typed.table.rows.iter().map(|row| &row[index]).collect();
        chunks.push(chunk(&mut file, column.key, *kind, &cells)?);
    }
    let rows = typed.table.rows.len();
    let bytes = file.len() - MAGIC.len();
    let group = Struct::default().structs(1, chunks).i64(2, bytes).i64(3, rows);
    let footer = Struct::default()
        .i32(1, 1)
        .structs(2, schema(&typed.table.columns, &typed.kinds))
        .i64(3, rows)
        .structs(4, (rows > 0).then_some(group))
        .text(6, concat!("fiord version ", env!("CARGO_PKG_VERSION")))
        .finish();
    file.extend(&footer);
    file.extend(u32::capped(footer.len()).to_le_bytes());
    file.extend(MAGIC);
    Ok(file)
}

/// All columns, in the order of a walk through the tree: a group names the number of its children.
fn schema(columns: &[Column], kinds: &[Kind]) -> Vec<Struct> {
    let mut elements = vec![Struct::default().text(4, "schema").i32(5, i32::capped(columns.len()))];
    for (column, kind) in columns.iter().zip(kinds) {
        if *kind == Kind::Texts {
            elements.push(Struct::default().i32(3, REQUIRED).text(4, column.key).i32(5, 1).i32(6, LIST));
            elements.push(Struct::default().i32(3, REPEATED).text(4, LIST_GROUPS[0]).i32(5, 1));
        }
        let (name, repetition) = match kind {
            Kind::Texts => (LIST_GROUPS[1], REQUIRED),
            _ => (column.key, OPTIONAL),
        };
        let element = Struct::default().i32(1, physical(*kind)).i32(3, repetition).text(4, name);
        elements.push(match kind {
            Kind::Label | Kind::Text | Kind::Texts => element.i32(6, UTF8),
            Kind::Time => element.i32(6, TIMESTAMP_MILLIS),
            Kind::Count | Kind::Number => element,
        });
    }
    elements
}

fn physical(kind: Kind) -> i32 {
    match kind {
        Kind::Label | Kind::Text | Kind::Texts => BYTE_ARRAY,
        Kind::Count | Kind::Time => INT64,
        Kind::Number => DOUBLE,
    }
}

/// A size as the header of a page has it.
fn page_size(column: &'static str, size: usize) -> Result<i32, TooLarge> {
    i32::try_from(size).map_err(|_| TooLarge { column, size })
}

/// Adds a column to the file, and describes it.
fn chunk(file: &mut Vec<u8>, key: &'static str, kind: Kind, cells: &[&Cell]) -> Result<Struct, TooLarge> {
    let offset = file.len();
    let values = Values::of(kind, cells);
    let mut page = Vec::new();
    if kind == Kind::Texts {
        levels(&mut page, &values.repeats);
    }
    levels(&mut page, &values.present);
    page.extend(&values.bytes);
    let count = values.present.len();
    let data = Struct::default().i32(1, page_size(key, count)?).i32(2, PLAIN).i32(3, RLE).i32(4, RLE);
    let length = page_size(key, page.len())?;
    file.extend(Struct::default().i32(1, DATA_PAGE).i32(2, length).i32(3, length).nested(5, data).finish());
    file.extend(page);
    let path: &[&str] = if kind == Kind::Texts { &[key, LIST_GROUPS[0], LIST_GROUPS[1]] } else { &[key] };
    let bytes = file.len() - offset;
    let described = Struct::default()
        .i32(1, physical(kind))
        .i32s(2, &[PLAIN, RLE])
        .texts(3, path)
        .i32(4, UNCOMPRESSED)
        .i64(5, count)
        .i64(6, bytes)
        .i64(7, bytes)
        .i64(9, offset);
    Ok(Struct::default().i64(2, 0).nested(3, described))
}

/// The values of a column, one after the other, and which of them there are.
#[derive(Default)]
struct Values {
    /// Whether a value, or the next element of a list, is there.
    present: Vec<bool>,
    /// Whether it belongs to the same list as the one before.
    repeats: Vec<bool>,
    bytes: Vec<u8>,
}

impl Values {
    fn of(kind: Kind, cells: &[&Cell]) -> Values {
        let mut values = Values::default();
        for cell in cells {
            match (kind, cell) {
                (Kind::Label | Kind::Text, Cell::Text(words)) => values.add(false, Some(&text(words))),
                (Kind::Texts, Cell::List(all)) if !all.is_empty() => {
                    let numbered = all.iter().enumerate();
                    numbered.for_each(|(index, words)| values.add(index > 0, Some(&text(words))));
                }
                (Kind::Count | Kind::Time, cell) => {
                    values.add(false, count(cell).map(i64::to_le_bytes).as_ref().map(|bytes| &bytes[..]));
                }
                (Kind::Number, cell) => {
                    values.add(false, cell.figure().map(f64::to_le_bytes).as_ref().map(|bytes| &bytes[..]));
                }
                _ => values.add(false, None),
            }
        }
        values
    }

    fn add(&mut self, repeats: bool, value: Option<&[u8]>) {
        self.present.push(value.is_some());
        self.repeats.push(repeats);
        self.bytes.extend(value.unwrap_or_default());
    }
}

/// A text with its length before it.
fn text(words: &str) -> Vec<u8> {
    [&u32::capped(words.len()).to_le_bytes(), words.as_bytes()].concat()
}

/// Levels of one bit, in runs of equal ones: the length of all, then for each run its length and its level.
fn levels(page: &mut Vec<u8>, levels: &[bool]) {
    let mut runs = Vec::new();
    for run in levels.chunk_by(|one, next| one == next) {
        varint(&mut runs, (run.len() as u64) << 1);
        runs.push(u8::from(run[0]));
    }
    page.extend(u32::capped(runs.len()).to_le_bytes());
    page.extend(runs);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_page_cannot_describe_is_refused_and_not_wrapped_around() {
        assert_eq!(page_size("host", 0x7fff_ffff), Ok(i32::MAX));
        let refused = page_size("host", 1 << 31).unwrap_err();
        let text = "the column host would be larger (2147483648) than a page of Parquet; export fewer runs at a time";
        assert_eq!(refused.to_string(), text);
    }
}
