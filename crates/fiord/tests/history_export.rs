//! `fiord history --export`: the figures in files for databases are those of the reports.

use std::collections::BTreeMap;

use parquet::file::reader::SerializedFileReader;
use parquet::record::Field;
use serde_json::{Map, Value, json};

use crate::common::{Dir, Ran, finish, fiord, start};

/// A working directory with its own history: a run of two jobs, a run with a tag, and a study.
struct Home {
    dir: Dir,
}

impl Home {
    fn with_runs() -> Home {
        let home = Home { dir: Dir::new() };
        let null = "--ioengine=null --size=64m --bs=4k";
        home.run(&format!("--name=a {null} --rw=randrw --name=b {null} --rw=read")).assert_success();
        home.run(&format!("--tag=before --name=c {null} --rw=write --lat_percentiles=1")).assert_success();
        home.dir.write(
            "job.fio",
            format!("[swept]\n{}\nrw=randread\n", null.replace("--", "").replace(' ', "\n")),
        );
        home.run("sweep job.fio --over iodepth=1,2 --repeat=1").assert_success();
        home
    }

    fn run(&self, line: &str) -> Ran {
        let mut command = fiord(self.dir.path(), line);
        command.env("XDG_STATE_HOME", self.dir.join("state"));
        finish(start(command))
    }

    /// The runs of `fiord history --json`, and those of its studies, by their number.
    fn listed(&self) -> BTreeMap<u64, Value> {
        let top = self.run("history --json").assert_success().json();
        let mut all: Vec<Value> = top["runs"].as_array().unwrap().clone();
        for study in all.clone().iter().filter(|run| run["kind"] != "fio") {
            let part = study["id"].as_u64().unwrap() + 1;
            // The parts of a study follow it, and are shown by their numbers.
            for id in part..part + 2 {
                let shown = self.run(&format!("show {id} --json"));
                shown.assert_success();
                all.push(json!({ "id": id, "study": study["id"], "host": study["host"] }));
            }
        }
        all.into_iter().map(|run| (run["id"].as_u64().unwrap(), run)).collect()
    }

    /// The rows of the file of `history --export=parquet`, newest first.
    fn exported(&self, more: &str) -> Vec<Map<String, Value>> {
        let ran = self.run(&format!("history --export=parquet -o runs.parquet {more}"));
        assert_eq!(ran.assert_success().stdout, "");
        let file = std::fs::File::open(self.dir.join("runs.parquet")).unwrap();
        let rows = SerializedFileReader::new(file).unwrap().into_iter();
        let columns = |row: parquet::record::Row| {
            row.get_column_iter().map(|(key, field)| (key.clone(), value(field))).collect()
        };
        rows.map(|row| columns(row.unwrap())).collect()
    }
}

fn value(field: &Field) -> Value {
    match field {
        Field::Null => Value::Null,
        Field::Str(words) => json!(words),
        Field::Long(count) | Field::TimestampMillis(count) => json!(count),
        Field::Double(number) => json!(number),
        Field::ListInternal(list) => list.elements().iter().map(value).collect(),
        other => panic!("{other:?}"),
    }
}

fn is_near(one: &Value, other: &Value) -> bool {
    match (one.as_f64(), other.as_f64()) {
        (Some(one), Some(other)) => (one - other).abs() <= 1e-5 * one.abs().max(1.0),
        _ => one == other,
    }
}

#[test]
fn a_parquet_file_has_all_runs_as_history_lists_them_and_their_figures() {
    let home = Home::with_runs();
    let (listed, rows) = (home.listed(), home.exported(""));
    let ids: Vec<u64> = rows.iter().map(|row| row["id"].as_u64().unwrap()).collect();
    assert_eq!(ids, [5, 4, 3, 2, 1]);
    for row in &rows {
        let id = row["id"].as_u64().unwrap();
        for (key, value) in listed[&id].as_object().unwrap() {
            assert!(is_near(&row[key], value), "run {id}, {key}: {} and {value}", row[key]);
        }
        let report = match row["kind"].as_str() {
            Some("fio") => home.run(&format!("show {id} --json")).json(),
            _ => json!({ "jobs": [] }),
        };
        for direction in ["read", "write", "trim"] {
            let of_jobs = |key: &str| {
                let jobs = report["jobs"].as_array().unwrap().iter();
                jobs.map(|job| job[direction][key].as_u64().unwrap()).sum::<u64>()
            };
            let (ios, bytes) = (of_jobs("total_ios"), of_jobs("io_bytes"));
            let expected = |count: u64| if ios > 0 { json!(count) } else { Value::Null };
            assert_eq!(row[&format!("{direction}_ios")], expected(ios), "run {id}");
            assert_eq!(row[&format!("{direction}_bytes")], expected(bytes), "run {id}");
        }
    }
    let write = &home.run("show 2 --json").json()["jobs"][0]["write"].clone();
    let second = &rows[3];
    assert_eq!(second["tag"], "before");
    for (key, expected) in [
        ("write_ios_per_s", &write["iops"]),
        ("write_latency_mean_ns", &write["clat_ns"]["mean"]),
        ("write_latency_max_ns", &write["clat_ns"]["max"]),
        ("write_latency_p99_ns", &write["clat_ns"]["percentile"]["99.000000"]),
    ] {
        assert!(is_near(&second[key], expected), "{key}: {} and {expected}", second[key]);
    }
}

#[test]
fn csv_and_line_protocol_have_the_rows_of_the_parquet_file() {
    let home = Home::with_runs();
    let rows = home.exported("");
    let csv = home.run("history --export=csv").assert_success().stdout.clone();
    let mut lines = csv.lines();
    let keys: Vec<&str> = lines.next().unwrap().split(',').collect();
    assert_eq!(keys, rows[0].keys().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(lines.count(), rows.len());

    let text = home.run("history --export=line").assert_success().stdout.clone();
    assert_eq!(text.lines().count(), rows.len());
    for (line, row) in text.lines().zip(&rows) {
        let start_ms = row["started_ms"].as_u64().unwrap();
        let id = row["id"].as_u64().unwrap();
        assert!(line.starts_with(&format!("fiord_run,kind={},", row["kind"].as_str().unwrap())), "{line}");
        assert!(line.ends_with(&format!(" {}", start_ms * 1_000_000 + id)), "{line}");
        assert!(line.contains(&format!(" id={id}i,")), "{line}");
        let ios = row["read_ios"].as_u64().map(|ios| format!(",read_ios={ios}i,"));
        assert_eq!(line.contains(",read_ios="), ios.is_some(), "{line}");
        assert!(ios.is_none_or(|ios| line.contains(&ios)), "{line}");
    }
}

#[test]
fn runs_are_selected_as_in_the_list() {
    let home = Home::with_runs();
    let ids = |more: &str| {
        let rows = home.exported(more);
        rows.iter().map(|row| row["id"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(ids("--limit=1"), [5, 4, 3], "a study with its runs");
    assert_eq!(ids("--target=/nowhere"), Vec::<u64>::new());
    let refused = home.run("history --export=parquet --json");
    refused.assert_status(1);
    assert_eq!(home.run("history --output=x").status, Some(1));
    assert!(home.run("history --export=xml").stderr.contains("[possible values: csv, parquet, line]"));
    assert!(!home.dir.join("x").exists());
}

#[test]
fn a_history_without_runs_has_all_columns() {
    let home = Home { dir: Dir::new() };
    let csv = home.run("history --export=csv").assert_success().stdout.clone();
    assert!(csv.starts_with("id,study,kind,") && csv.contains(",trim_latency_max_ns,"), "{csv}");
    assert!(home.exported("").is_empty());
    assert_eq!(home.run("history --export=line").assert_success().stdout, "");
}
