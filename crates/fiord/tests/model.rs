//! `fiord model`: recordings become job files that do the same, and what is wrong is said with its place.
//!
//! Invariant: what docs/model.md shows is what the program prints.

use std::fs;

use serde_json::Value;

use crate::common::schema::assert_documented;
use crate::common::{Dir, Ran, assert_fits_terminal, finish, fiord, run_with_input, start};

/// A database: a log of small synced appends, and reads of a table of which some blocks are hot.
const DATABASE: [&str; 2] = [
    "--filename=db/wal --rw=write --bs=8k --size=8m --fdatasync=1",
    "--filename=db/table --rw=randread --bs=16k --size=128m --io_size=256m --random_distribution=zipf:1.1",
];

fn run(dir: &Dir, line: &str) -> Ran {
    finish(start(fiord(dir.path(), line)))
}

/// The recording of a job of one section.
fn recorded(dir: &Dir, options: &str) {
    let line = format!("--name=job --ioengine=null --filename=data --write_iolog=t {options}");
    run(dir, &line).assert_success();
}

fn option(document: &Value, section: usize, name: &str) -> Option<String> {
    let options = document["sections"][section]["options"].as_array().unwrap();
    let found = options.iter().find(|option| option["name"] == name)?;
    Some(found["value"].as_str().unwrap().to_string())
}

#[test]
fn a_recording_becomes_a_job_file_that_does_the_same() {
    let dir = Dir::new();
    recorded(&dir, "--rw=randrw --rwmixread=70 --bs=8k --size=32m --io_size=16m --fdatasync=4");
    let document = run(&dir, "model t --json").assert_success().json();
    assert_documented(&document, "model");
    assert_eq!(document["close"], true, "{}", document["sentence"]);
    let options = ["rw", "bs", "fdatasync"].map(|name| option(&document, 0, name).unwrap());
    assert_eq!(options, ["randrw", "8k", "4"]);
    // The text is the file that is written, and that runs.
    let printed = run(&dir, "model t").assert_success().stdout.clone();
    assert_eq!(document["job_file"], printed);
    let compared = run(&dir, "model t -o app.fio");
    compared.assert_success();
    assert_fits_terminal(&compared.stdout);
    assert!(compared.stdout.contains("\nClose: "), "{}", compared.stdout);
    assert_eq!(fs::read_to_string(dir.join("app.fio")).unwrap(), printed);
    let report = run(&dir, "app.fio --output-format=json").assert_success().json();
    let bytes = |direction: &str| report["jobs"][0][direction]["io_bytes"].as_u64().unwrap();
    assert_eq!(bytes("read") + bytes("write"), 16 << 20);
    assert!(dir.join("data.model").exists(), "it works on a file of its own");
}

#[test]
fn streams_have_sections_and_few_if_compact() {
    let dir = Dir::new();
    let entries = |file: u32| {
        let lines =
            (0..64_u32).map(move |block| format!("{} f{file} write {} 4096\n", block + 1, block * 4096));
        lines.collect::<String>()
    };
    let names: String = (0..5).map(|file| format!("0 f{file} add\n0 f{file} open\n")).collect();
    let all: String = (0..5).map(entries).collect();
    dir.write("t", format!("fio version 3 iolog\n{names}{all}"));
    let document = run(&dir, "model t --json").assert_success().json();
    assert_eq!(document["sections"].as_array().unwrap().len(), 5);
    assert_eq!(option(&document, 0, "stonewall"), None);
    let document = run(&dir, "model t --compact --json").assert_success().json();
    assert_eq!(document["sections"].as_array().unwrap().len(), 1);
    assert_eq!(option(&document, 0, "nrfiles").as_deref(), Some("5"));
    assert_eq!(document["close"], true, "{}", document["sentence"]);
}

#[test]
fn rates_and_bursts_of_the_trace_are_kept() {
    let dir = Dir::new();
    let lines = |at_us: fn(u64) -> u64| {
        let line = |block: u64| format!("{} f read {} 4096\n", at_us(block), block * 4096);
        let lines: String = (0..400).map(line).collect();
        format!("fio version 3 iolog\n0 f add\n0 f open\n{lines}")
    };
    dir.write("even", lines(|block| block * 2000));
    let even = run(&dir, "model even --json").assert_success().json();
    assert_eq!(option(&even, 0, "rate_iops").as_deref(), Some("501"), "400 I/Os in 399 times 2 ms");
    assert_eq!(option(&even, 0, "rate_process"), None);
    dir.write("bursts", lines(|block| block / 10 * 50_000 + block % 10 * 20));
    let bursts = run(&dir, "model bursts --json").assert_success().json();
    assert_eq!(option(&bursts, 0, "thinktime_blocks").as_deref(), Some("10"));
    assert_eq!(bursts["close"], true, "{}", bursts["sentence"]);
}

#[test]
fn what_is_no_recording_is_refused_with_its_place() {
    let dir = Dir::new();
    let head = "fio version 3 iolog\n";
    for (name, text, why) in [
        ("empty", head.to_string(), "empty: the trace is empty; record the program while it reads or writes"),
        (
            "opens",
            format!("{head}0 f add\n1 f open\n2 f close\n"),
            "opens: the trace names 1 files, and no I/O",
        ),
        ("syncs", format!("{head}0 f add\n1 f sync 0 0\n"), "syncs: the trace has 1 synchronizations"),
        ("broken", format!("{head}0 f add\n1 f raed 0 512\n"), "broken:3: there is no action \"raed\""),
        ("text", "root:x:0:0\n".to_string(), "text:1: it is neither an iolog"),
    ] {
        dir.write(name, text);
        let refused = run(&dir, &format!("model {name} -o out.fio"));
        assert_eq!((refused.status, refused.stdout.as_str()), (Some(1), ""), "{}", refused.stderr);
        assert!(refused.stderr.starts_with(&format!("fiord model: {why}")), "{}", refused.stderr);
        assert!(!dir.join("out.fio").exists());
    }
    let missing = run(&dir, "model nowhere");
    assert_eq!(missing.stderr, "fiord model: nowhere: No such file or directory (ENOENT)\n");
}

#[test]
fn an_output_replaces_neither_the_trace_nor_what_fiord_did_not_write() {
    let dir = Dir::new();
    recorded(&dir, "--rw=read --bs=4k --size=64k");
    let trace = fs::read(dir.join("t")).unwrap();
    let refused = run(&dir, "model t -o t --force");
    assert_eq!(refused.status, Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("is read by this command"), "{}", refused.stderr);
    assert_eq!(fs::read(dir.join("t")).unwrap(), trace);
    dir.write("mine.fio", "[mine]\n");
    assert_eq!(run(&dir, "model t -o mine.fio").status, Some(2));
    assert_eq!(fs::read(dir.join("mine.fio")).unwrap(), b"[mine]\n");
    run(&dir, "model t -o app.fio").assert_success();
    run(&dir, "model t -o app.fio").assert_success();
    // From standard input, and with a name that would leave its comment.
    let named = "fio version 3 iolog\n0 a]\x1b[0mb add\n0 a]\x1b[0mb write 0 512\n";
    let piped = run_with_input(dir.path(), "model -", named);
    piped.assert_success();
    assert!(
        piped.stdout.contains("\n[a__u_1b__0mb]\n") && !piped.stdout.contains('\x1b'),
        "{}",
        piped.stdout
    );
}

#[test]
fn the_documented_example_is_what_is_printed() {
    let dir = Dir::new();
    fs::create_dir(dir.join("db")).unwrap();
    // Each job has a recording of its own; together they are that of the program.
    for (number, options) in DATABASE.iter().enumerate() {
        let line = format!("--name=job --ioengine=null --write_iolog=t{number} {options}");
        run(&dir, &line).assert_success();
    }
    let [wal, table] = ["t0", "t1"].map(|name| fs::read_to_string(dir.join(name)).unwrap());
    dir.write("db.iolog", wal + table.split_once('\n').unwrap().1);
    let document = run(&dir, "model db.iolog --json").assert_success().json();
    let sections: Vec<&str> =
        document["sections"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(sections.len(), 2, "{sections:?}");
    let page = include_str!("../../../docs/model.md");
    for name in ["wal", "table"] {
        let at = sections.iter().position(|section| *section == name).unwrap();
        for option in ["filename", "rw", "bs", "size"] {
            let line = format!("\n{option}={}\n", self::option(&document, at, option).unwrap());
            assert!(page.contains(&line), "{line}");
        }
    }
}
