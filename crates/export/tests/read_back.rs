//! Files of Parquet, read back by another implementation.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests panic when something is wrong")]

use std::fs::{self, File};
use std::path::Path;

use fiord_export::{Kind, TypedTable, parquet};
use fiord_report::table::{Cell, Column};
use parquet::basic::Type;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;

/// A file with these bytes, as its reader sees it.
fn opened(name: &str, bytes: &[u8]) -> SerializedFileReader<File> {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.parquet"));
    fs::write(&path, bytes).unwrap();
    SerializedFileReader::new(File::open(&path).unwrap()).unwrap()
}

/// The rows of a file, each with its columns and their values as text.
fn read(reader: &SerializedFileReader<File>) -> Vec<Vec<(String, String)>> {
    let rows = reader.get_row_iter(None).unwrap();
    let shown = |field: &Field| match field {
        Field::Null => "null".to_string(),
        Field::Str(words) => format!("{words:?}"),
        Field::Long(count) => count.to_string(),
        Field::Double(number) => format!("{number:?}"),
        Field::TimestampMillis(at_ms) => format!("{at_ms} ms"),
        Field::ListInternal(list) => format!("{:?}", list.elements()),
        other => panic!("{other:?}"),
    };
    rows.map(|row| row.unwrap().get_column_iter().map(|(key, field)| (key.clone(), shown(field))).collect())
        .collect()
}

const COLUMNS: [(&str, Kind); 6] = [
    ("host", Kind::Label),
    ("command", Kind::Text),
    ("targets", Kind::Texts),
    ("started_ms", Kind::Time),
    ("ios", Kind::Count),
    ("ios_per_s", Kind::Number),
];

fn table() -> TypedTable {
    TypedTable::new(COLUMNS.map(|(key, kind)| (Column::new(key, key), kind)))
}

fn texts(all: &[&str]) -> Cell {
    Cell::List(all.iter().map(ToString::to_string).collect())
}

#[test]
fn every_kind_of_column_is_read_back() {
    let mut typed = table();
    let rows = [
        vec![
            Cell::Text("größe".to_string()),
            Cell::Text(String::new()),
            texts(&["/a", "/b,c"]),
            Cell::Count(1_700_000_000_123),
            Cell::Bytes(u64::MAX),
            Cell::Number(-0.25, 0),
        ],
        vec![Cell::None, Cell::None, texts(&[]), Cell::None, Cell::None, Cell::None],
        vec![
            Cell::Text("b".to_string()),
            Cell::Text("\"\n".to_string()),
            texts(&["x", "", "y"]),
            Cell::Count(0),
            Cell::Latency(7),
            Cell::Number(1e300, 0),
        ],
    ];
    rows.into_iter().for_each(|row| typed.push(row).unwrap());
    let all = read(&opened("kinds", &parquet(&typed).unwrap()));
    let values = |row: usize| all[row].iter().map(|(_, value)| value.as_str()).collect::<Vec<_>>();
    assert_eq!(all[0].iter().map(|(key, _)| key.as_str()).collect::<Vec<_>>(), COLUMNS.map(|(key, _)| key));
    let list = "[Str(\"/a\"), Str(\"/b,c\")]";
    assert_eq!(values(0), ["\"größe\"", "\"\"", list, "1700000000123 ms", "9223372036854775807", "-0.25"]);
    assert_eq!(values(1), ["null", "null", "[]", "null", "null", "null"]);
    let list = "[Str(\"x\"), Str(\"\"), Str(\"y\")]";
    assert_eq!(values(2), ["\"b\"", "\"\\\"\\n\"", list, "0 ms", "7", "1e300"]);
    assert_eq!(all.len(), 3);
}

#[test]
fn many_rows_and_none_have_the_same_columns() {
    let mut typed = table();
    let types = |reader: &SerializedFileReader<File>| {
        let schema = reader.metadata().file_metadata().schema_descr_ptr();
        let columns = schema.columns().iter().map(|column| (column.path().string(), column.physical_type()));
        (columns.collect::<Vec<_>>(), reader.metadata().file_metadata().num_rows())
    };
    let empty = opened("empty", &parquet(&typed).unwrap());
    let (columns, count) = types(&empty);
    assert_eq!((columns.len(), count), (6, 0));
    assert_eq!(columns[2], ("targets.list.element".to_string(), Type::BYTE_ARRAY));
    assert!(read(&empty).is_empty());

    for number in 0..5000_u64 {
        let every_third = if number % 3 == 0 { Cell::None } else { Cell::Count(number) };
        let mut row = vec![Cell::None, Cell::None, texts(&[]), Cell::Count(number), every_third, Cell::None];
        row[2] = texts(&["t"; 3][..(number % 4) as usize]);
        typed.push(row).unwrap();
    }
    let file = opened("many", &parquet(&typed).unwrap());
    assert_eq!(types(&file), (columns, 5000));
    let rows = read(&file);
    for (number, row) in rows.iter().enumerate() {
        assert_eq!(row[2].1.matches("Str").count(), number % 4);
        assert_eq!(row[3].1, format!("{number} ms"));
        assert_eq!(row[4].1, if number % 3 == 0 { "null".to_string() } else { number.to_string() });
    }
}
