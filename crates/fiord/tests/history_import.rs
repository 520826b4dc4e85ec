//! Reports, studies and histories of other machines become runs of the history.
//!
//! Invariant: everything is imported or nothing, and nothing twice.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::common::schema::assert_documented;
use crate::common::{Dir, Ran, finish, fiord, start};

const JOB: &str = "--name=job --ioengine=null --rw=randread --bs=4k --size=1m";

/// A machine with a history of its own, in a directory that several share.
struct Machine<'d> {
    dir: &'d Dir,
    state: &'static str,
}

impl Machine<'_> {
    fn run(&self, line: &str) -> Ran {
        let mut command = fiord(self.dir.path(), line);
        command.env("XDG_STATE_HOME", self.dir.join(self.state));
        finish(start(command))
    }

    fn imported(&self, line: &str) -> Value {
        let document = self.run(&format!("history import --json {line}")).assert_success().json();
        assert_documented(&document, "history-import");
        document["imported"].clone()
    }

    fn runs(&self) -> Vec<Value> {
        let document = self.run("history --json").assert_success().json();
        assert_documented(&document, "history");
        document["runs"].as_array().unwrap().clone()
    }

    fn csv(&self) -> String {
        self.run("history --export=csv").assert_success().stdout.clone()
    }
}

fn two(dir: &Dir) -> [Machine<'_>; 2] {
    ["there", "here"].map(|state| Machine { dir, state })
}

#[test]
fn reports_in_every_format_become_runs() {
    let dir = Dir::new();
    let [there, here] = two(&dir);
    for format in ["normal", "terse", "json", "json+"] {
        let report = there
            .run(&format!("--no-history --output-format={format} {JOB}"))
            .assert_success()
            .stdout
            .clone();
        dir.write(format, report);
    }
    let all = here.imported("normal terse json json+ --host=db3");
    assert_eq!(
        all,
        json!([
            {"file": "normal", "runs": [1], "known": 0},
            {"file": "terse", "runs": [2], "known": 0},
            {"file": "json", "runs": [3], "known": 0},
            {"file": "json+", "runs": [4], "known": 0},
        ])
    );
    let runs = here.runs();
    for run in &runs {
        assert_eq!(
            (&run["kind"], &run["title"], &run["host"]),
            (&json!("import"), &json!("job"), &json!("db3"))
        );
        assert_eq!(run["exit_status"], Value::Null);
        assert!(run["ios_per_s"].as_f64().unwrap() > 0.0, "{run}");
        // Terse lines have whole microseconds, and this engine takes less.
        assert!(run["latency_p99_ns"].is_u64() || run["id"] == 2, "{run}");
    }
    let document: Value = serde_json::from_str(&fs::read_to_string(dir.join("json")).unwrap()).unwrap();
    assert_eq!(runs[1]["fiord_version"], document["fiord"]["version"]);
    let elapsed_ms = runs[1]["elapsed_ms"].as_u64().unwrap();
    assert_eq!(
        runs[1]["started_ms"].as_u64().unwrap() + elapsed_ms,
        document["timestamp_ms"].as_u64().unwrap()
    );
    // Each is shown as it is, compared, explained, made a page of and exported.
    for (id, format) in [(2, "terse"), (3, "json"), (4, "json+")] {
        let shown = here.run(&format!("show {id} --output-format={format}")).assert_success().stdout.clone();
        assert_eq!(shown, fs::read_to_string(dir.join(format)).unwrap());
    }
    here.run("show 3").assert_success().assert_prints(&["db3", "imported", "history import json"]);
    here.run("show 1").assert_success().assert_prints(&["IOPS="]);
    here.run("show 3 --output-format=terse").assert_status(1).assert_prints(&["imported as json"]);
    here.run("explain 2").assert_success();
    here.run("report 3 -o page.html").assert_success();
    here.run("compare 3 4").assert_success().assert_prints(&["run 3 of"]);
    here.run("compare last json").assert_success();
    let csv = here.csv();
    assert_eq!(csv.lines().count(), 5);
    let column = csv.lines().next().unwrap().split(',').position(|name| name == "read_ios").unwrap();
    assert_eq!(csv.lines().nth(1).unwrap().split(',').nth(column), Some("256"), "{csv}");
    here.run("history").assert_success().assert_prints(&["imported"]);
    // Twice is once, also from a copy that is newer.
    fs::copy(dir.join("terse"), dir.join("copy")).unwrap();
    assert_eq!(
        here.imported("copy json"),
        json!([
            {"file": "copy", "runs": [], "known": 1},
            {"file": "json", "runs": [], "known": 1},
        ])
    );
    assert_eq!(here.runs().len(), 4);
}

#[test]
fn a_broken_file_is_named_with_its_place_and_nothing_is_imported() {
    let dir = Dir::new();
    let [there, here] = two(&dir);
    there.run(&format!("--output-format=json --output=good {JOB}")).assert_success();
    let good = fs::read_to_string(dir.join("good")).unwrap();
    dir.write("cut", &good[..good.len() / 2]);
    dir.write("words", "no report\n");
    dir.write("typed", good.replace("\"total_ios\" : 256", "\"total_ios\" : \"x\""));
    dir.write("empty", "");
    dir.write("database", [&b"SQLite format 3\0"[..], &[0; 4096]].concat());
    for (file, why) in [
        ("cut", "cut:"),
        ("words", "words:1:1: there is no report"),
        ("typed", "typed:"),
        ("empty", "empty:1:1: "),
        ("missing", "missing: No such file or directory (ENOENT)"),
        ("database", "database: "),
        (".", ".: Is a directory (EISDIR)"),
    ] {
        let ran = here.run(&format!("history import good {file}"));
        ran.assert_status(1).assert_prints(&[why]);
        assert_eq!(ran.stdout, "");
        assert_eq!(here.run("history --json").assert_success().json()["runs"], json!([]), "{file}");
    }
}

#[test]
fn secrets_of_reports_are_not_recorded() {
    let dir = Dir::new();
    let [_, here] = two(&dir);
    let report = r#"{
"fio version" : "fio-3.42", "timestamp_ms" : 1795258800500, "time" : "Sat Nov 21 12:00:00 2026",
"global options" : {"http_pass" : "hunter2", "filename" : "http://me:hunter3@host/x"},
"jobs" : [{"jobname" : "j\u001b[31m", "groupid" : 0, "error" : 0, "elapsed" : 2,
"job options" : {"http_s3_key": "hunter4"},
"read" : {"io_bytes" : 4096, "iops" : 1.0, "runtime" : 1000, "total_ios" : 1}}]}
"#;
    dir.write("fio.json", report);
    here.run("history import fio.json").assert_success();
    let shown = here.run("show last --json").assert_success().stdout.clone();
    assert!(!shown.contains("hunter"), "{shown}");
    assert_eq!(serde_json::from_str::<Value>(&shown).unwrap()["jobs"][0]["elapsed"], 2);
    for file in fs::read_dir(dir.join("here/fiord")).unwrap() {
        let bytes = fs::read(file.unwrap().path()).unwrap();
        assert!(!String::from_utf8_lossy(&bytes).contains("hunter"));
    }
    let run = here.runs().remove(0);
    assert_eq!((&run["started"], &run["host"]), (&json!("2026-11-21T11:59:58+01:00"), &json!("")));
    assert!(!here.run("history").stdout.contains('\x1b'));
    assert!(!here.run("show last").assert_success().stdout.contains('\x1b'));
}

#[test]
fn a_study_is_imported_with_its_runs() {
    let dir = Dir::new();
    let [there, here] = two(&dir);
    let line = "matrix --json --time=200ms --size=8m --bs=4k --rw=randread,randwrite .";
    let ran = there.run(line);
    dir.write("study.json", ran.assert_success().stdout.clone());
    here.run("history import study.json").assert_success();
    let run = here.runs().remove(0);
    let of_study = ran.json();
    assert_eq!(
        (&run["kind"], &run["host"], &run["started"]),
        (&json!("import"), &of_study["host"], &of_study["started"])
    );
    assert_eq!(here.run("show last --json").assert_success().stdout, ran.stdout);
    here.run("show last").assert_success();
    here.run("explain last").assert_success();
    here.run("report last -o page.html").assert_success();
    here.run("compare last study.json").assert_success();
}

#[test]
fn another_history_is_copied_once_with_its_studies() {
    let dir = Dir::new();
    let [there, here] = two(&dir);
    here.run(JOB).assert_success();
    there.run(&format!("--tag=before {JOB}")).assert_success();
    there.run("matrix --time=200ms --size=8m --bs=4k --rw=randread,randwrite .").assert_success();
    there.run(JOB).assert_success();
    let other = dir.join("there/fiord/history.db");
    let contents = |path: &Path| fs::read(path).unwrap();
    let before = contents(&other);
    let line = format!("{}", other.display());
    let runs = json!([2, 3, 6]);
    assert_eq!(here.imported(&line), json!([{"file": line, "runs": runs, "known": 0}]));
    assert!(contents(&other) == before, "the other history was written");
    // All columns but the number and the study are equal, and so are the reports.
    let rows = |machine: &Machine<'_>| -> Vec<String> {
        let csv = machine.csv();
        let rows = csv.lines().skip(1).map(|line| line.splitn(3, ',').nth(2).unwrap().to_string());
        rows.collect()
    };
    assert_eq!(rows(&here)[..5], rows(&there)[..]);
    for (own, others) in [(2, 1), (3, 2), (4, 3), (6, 5)] {
        let show = |machine: &Machine<'_>, id| {
            machine.run(&format!("show {id} --output-format=json")).assert_success().stdout.clone()
        };
        assert_eq!(show(&here, own), show(&there, others), "{own}");
    }
    here.run("compare before 6").assert_success();
    assert_eq!(here.imported(&line)[0], json!({"file": line, "runs": [], "known": 3}));
    // A copy of the file alone, where nothing may be made beside it, has what was moved to it.
    there.run("history rm 5").assert_success();
    let copy = dir.join("copy.db");
    fs::copy(&other, &copy).unwrap();
    assert_eq!(here.imported("copy.db")[0], json!({"file": "copy.db", "runs": [], "known": 2}));
    let beside = fs::read_dir(dir.path())
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with("copy.db-"));
    assert_eq!(beside.count(), 0, "a file was made beside the copy");
    // Its own history, too, is known.
    let own = format!("{}", dir.join("here/fiord/history.db").display());
    assert_eq!(here.imported(&own)[0]["runs"], json!([]));
}
