//! `--repeat`: runs of jobs, and studies, several times.
//!
//! Invariant: however often jobs are run, there is one report, and each figure has a value of every run.

#![allow(clippy::unwrap_used, reason = "tests panic when something is wrong")]

mod common;

use common::study::assert_documented;
use common::{Dir, Ran, finish, fiord, start};
use serde_json::Value;

const JOB: &str = "--name=a --ioengine=null --rw=randrw --size=4m";

/// Runs fiord with a history of the directory's own.
fn run(dir: &Dir, line: &str) -> Ran {
    let mut command = fiord(dir.path(), line);
    command.env("XDG_STATE_HOME", dir.join("state"));
    finish(start(command))
}

#[track_caller]
fn assert_repeated(document: &Value, times: usize) {
    let repeats = document["repeats"].as_array().unwrap();
    assert!(!repeats.is_empty());
    for one in repeats {
        let runs: Vec<f64> =
            one["runs"].as_array().unwrap().iter().map(|run| run.as_f64().unwrap()).collect();
        assert_eq!(runs.len(), times, "{one}");
        let of = |key: &str| one[key].as_f64().unwrap();
        assert!(of("lowest") <= of("median") && of("median") <= of("highest"), "{one}");
        assert!(of("interval_low") <= of("mean") && of("mean") <= of("interval_high"), "{one}");
        assert!(runs.contains(&of("lowest")) && runs.contains(&of("highest")), "{one}");
    }
}

// divergence: `--repeat=N`
#[test]
fn jobs_are_run_again_and_reported_once_with_the_spread_of_all_runs() {
    let dir = Dir::new();
    let ran = run(&dir, &format!("--repeat=4 {JOB}"));
    let text = ran.assert_success().stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        " Repeats: 4 runs of each; the report above is of the last run; ",
        " a, read IOPS ",
        " a, write P99 ",
    ] {
        assert!(text.contains(part), "{part}: {ran:?}");
    }
    assert_eq!(ran.stdout.matches("Run status group 0").count(), 1, "{ran:?}");
    assert!(ran.stdout.lines().rev().take(9).all(|line| line.chars().count() <= 80), "{ran:?}");
    let shown = run(&dir, "show last");
    assert_eq!(shown.assert_success().stdout, ran.stdout);
    let document = run(&dir, &format!("--repeat=4 --output-format=json {JOB}")).json();
    assert_repeated(&document, 4);
    assert_eq!(document["repeats"].as_array().unwrap().len(), 8, "four figures of reads, and of writes");
    assert_eq!(document["jobs"].as_array().unwrap().len(), 1);
    assert_eq!(run(&dir, &format!("--output-format=json {JOB}")).json()["repeats"], Value::Null);
    assert_eq!(run(&dir, "history --json").json()["runs"].as_array().unwrap().len(), 3);
}

#[test]
fn a_run_that_fails_is_the_last() {
    let dir = Dir::new();
    let ran = run(
        &dir,
        "--repeat=3 --output-format=json --name=a --rw=read --size=4k --filename=absent --allow_file_create=0",
    );
    ran.assert_status(1);
    assert_eq!(ran.json()["jobs"].as_array().unwrap().len(), 1);
    run(&dir, &format!("--repeat=0 {JOB}")).assert_status(1).assert_prints(&["repeat"]);
}

#[test]
fn a_study_is_repeated_in_rounds() {
    let dir = Dir::new();
    let ran = run(&dir, "quick --json --trust=off --repeat=3 --time=1050ms --size=8M");
    let document = ran.json();
    assert_documented(&document, &["Studies", "quick"]);
    assert_eq!((&document["complete"], document["rows"].as_array().unwrap().len()), (&true.into(), 7));
    assert_repeated(&document, 3);
    // 42 figures: six of each row.
    assert_eq!(document["repeats"].as_array().unwrap().len(), 42);
    let runs = run(&dir, "history --json").json()["runs"].as_array().unwrap().len();
    assert_eq!(runs, 1);
    assert_eq!(run(&dir, "show last --json").stdout, ran.stdout);
    run(&dir, "quick --repeat=often").assert_status(1).assert_prints(&["write auto, or a number"]);
}
