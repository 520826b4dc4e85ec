//! `fiord matrix` on a directory on a disk, in memory, and on a device; as root and as an ordinary user.
//!
//! Invariant: however a run ends, existing files are unchanged, and no others remain.

use fiord_testing::need;
use serde_json::Value;

use crate::common::schema::assert_documented;
use crate::common::study::{as_ordinary_user, assert_fits, column, fio_takes, is_empty, masked, public};
use crate::common::{Dir, LoopDevice, Mount, in_one_line};

/// Every row for a tenth of a second, on small files.
const SHORT: &str = "--time 1500ms --size 8M";

const TESTS: [&str; 15] = [
    "4k randrw",
    "4k randread",
    "4k randwrite",
    "4k read",
    "4k write",
    "64k randrw",
    "64k randread",
    "64k randwrite",
    "64k read",
    "64k write",
    "1M randrw",
    "1M randread",
    "1M randwrite",
    "1M read",
    "1M write",
];

#[track_caller]
fn assert_measured(document: &Value, expected: &[&str]) {
    assert_eq!(column(document, "test"), expected);
    for row in document["rows"].as_array().unwrap() {
        let pattern = row["pattern"].as_str().unwrap();
        for (way, other) in [("read", "write"), ("write", "read")] {
            let is_done = pattern.contains("rw") || !pattern.contains(other);
            for key in ["iops", "mib_per_s", "p99_ns"] {
                let figure = &row[format!("{way}_{key}")];
                assert_eq!(figure.as_f64().is_some_and(|figure| figure > 0.0), is_done, "{way}_{key}: {row}");
            }
        }
    }
}

#[test]
fn the_table_has_fifteen_rows_with_both_directions_of_mixed_ones() {
    let dir = Dir::new();
    let ran = dir.run(&format!("matrix {SHORT}"));
    assert_fits(&ran);
    assert!(is_empty(dir.path()));
    let text = masked(&ran.stdout);
    // Where the lines break depends on the length of the path.
    assert!(in_one_line(&text).starts_with("fiord matrix: # runs at depth # in /"), "{text}");
    let table = text.split("\n\n").nth(1).unwrap();
    let figures = |name: &&str| match name.split(' ').nth(1).unwrap() {
        "randrw" => format!("{name} # # # # # #"),
        pattern if pattern.contains("read") => format!("{name} # - # - # -"),
        _ => format!("{name} - # - # - #"),
    };
    let mut expected = vec!["TEST IOPS R IOPS W MiB/s R MiB/s W P99 R P99 W".to_string()];
    expected.extend(TESTS.iter().map(figures));
    assert_eq!(table.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn json_has_the_documented_keys_and_every_row() {
    let dir = Dir::new();
    let ran = dir.run(&format!("matrix --json {SHORT} --depth 4"));
    ran.assert_success();
    let document = ran.json();
    assert_documented(&document, "matrix");
    assert_measured(&document, &TESTS);
    assert_eq!((&document["study"], &document["rows"][0]["depth"]), (&"matrix".into(), &4.into()));
}

#[test]
fn sizes_and_patterns_can_be_chosen() {
    let dir = Dir::new();
    let line = "matrix --csv --bs 16k,8192 --rw rw,randwrite --depth 2 --time 400ms --size 8M";
    let ran = dir.run(line);
    ran.assert_success();
    let tests: Vec<&str> = ran.stdout.lines().map(|line| line.split(',').next().unwrap()).collect();
    assert_eq!(tests, ["test", "16k rw", "16k randwrite", "8192 rw", "8192 randwrite"]);
    let markdown = dir.run(&line.replace("--csv", "--markdown"));
    markdown.assert_success();
    assert!(markdown.stdout.contains("| 8192 randwrite | randwrite | 8KiB | 2 | - | "), "{markdown:?}");
}

#[test]
fn in_memory_it_reports_that_there_is_no_disk() {
    let dir = Dir::new();
    let mount = need!(Mount::tmpfs(&dir, "size=80m"));
    let ran = dir.run(&format!("matrix {SHORT} tmpfs"));
    assert_fits(&ran);
    ran.assert_prints(&["Device  memory (no disk)\n", "This target is memory, not a disk"]);
    assert!(is_empty(&mount.path));
}

#[test]
fn a_device_is_only_read() {
    let dir = Dir::new();
    let device = need!(LoopDevice::new(&dir, 32 << 20));
    let before = dir.contents();
    let document = dir.run(&format!("matrix --json {SHORT} {}", device.path)).json();
    assert_documented(&document, "matrix");
    let reading: Vec<&str> = TESTS.into_iter().filter(|name| name.ends_with("read")).collect();
    assert_measured(&document, &reading);
    assert!(dir.contents() == before, "a device that is not the study's own was written to");
    let ran = dir.run(&format!("matrix --rw write,randrw {}", device.path));
    ran.assert_status(1).assert_prints(&["the target is read-only", "name a directory"]);
}

#[test]
fn an_ordinary_user_gets_the_same() {
    let (dir, binary) = need!(public(&std::env::temp_dir()));
    let ran = as_ordinary_user(&dir, &binary, &format!("matrix --json {SHORT}"));
    ran.assert_success();
    assert_measured(&ran.json(), &TESTS);
}

#[test]
fn a_dry_run_prints_job_files_that_fio_accepts_and_help_fits() {
    let dir = Dir::new();
    assert_fits(&dir.run("matrix --help"));
    let ran = dir.run("matrix --dry-run");
    ran.assert_success();
    assert_eq!(ran.stdout.matches("# run ").count(), 1 + TESTS.len());
    assert!(is_empty(dir.path()));
    need!(fio_takes(&dir, &ran.stdout));
}

#[test]
fn errors_say_what_to_do() {
    let dir = Dir::new();
    for (line, parts) in [
        ("matrix --rw randred", ["\"randred\"", "not one of randrw, randread"]),
        ("matrix --bs 4q", ["--bs", "4q"]),
        ("matrix --bs 0", ["--bs", "at least one byte"]),
        ("matrix --depth 0", ["--depth", "1..=65536"]),
    ] {
        let ran = dir.run(line);
        ran.assert_status(1).assert_prints(&parts);
        assert_eq!(ran.stdout, "", "{line}");
    }
    assert!(is_empty(dir.path()));
}
