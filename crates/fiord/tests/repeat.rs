//! `--repeat`: runs of jobs, and studies, several times.
//!
//! Invariant: however often jobs are run, there is one report, and each figure has a value of every run.

use std::time::Duration;

use fiord_testing::need;
use serde_json::Value;

use crate::common::schema::assert_documented;
use crate::common::stalling::Stalling;
use crate::common::{Dir, Ran, finish, fiord, in_one_line, start};

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
    let text = in_one_line(&ran.assert_success().stdout);
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
    assert_documented(&document, "quick");
    assert_eq!((&document["complete"], document["rows"].as_array().unwrap().len()), (&true.into(), 7));
    assert_repeated(&document, 3);
    // 42 figures: six of each row.
    assert_eq!(document["repeats"].as_array().unwrap().len(), 42);
    let runs = run(&dir, "history --json").json()["runs"].as_array().unwrap().len();
    assert_eq!(runs, 1);
    assert_eq!(run(&dir, "show last --json").stdout, ran.stdout);
    run(&dir, "quick --repeat=often").assert_status(1).assert_prints(&["write auto, or a number"]);
}

/// How long reads take in the first seconds of a run, and afterwards.
const SLOW: Duration = Duration::from_millis(80);
const FAST: Duration = Duration::from_millis(5);

/// A file whose reads are slow for three seconds: about one in forty of a run of eleven.
fn slow_at_first(dir: &Dir) -> Result<Stalling, String> {
    let wait = |since_first: Duration| if since_first < Duration::from_secs(3) { SLOW } else { FAST };
    Stalling::waiting(dir, 1 << 20, wait)
}

/// Throughput that settled within the run; the machine may be too busy for that.
fn settled(part: &Value) -> Result<(f64, f64), String> {
    let from_s = part["from_s"].as_f64().filter(|from_s| *from_s > 2.0);
    let from_s = from_s.ok_or_else(|| format!("the machine is too busy for a steady part: {part}"))?;
    let latencies_from_s = part["latencies_from_s"].as_f64();
    Ok((from_s, latencies_from_s.ok_or_else(|| format!("jobs were not asked in time: {part}"))?))
}

/// Of the same run: the report has the percentiles of all I/Os, the steady part those without the slow first seconds.
#[test]
fn latencies_of_the_steady_part_are_without_those_before_it() {
    const READS: &str =
        "--filename=stalling/data --rw=randread --norandommap --bs=4k --size=1m --ioengine=psync --direct=1";
    let (of_jobs, of_study) = (Dir::new(), Dir::new());
    let _mounts = (need!(slow_at_first(&of_jobs)), need!(slow_at_first(&of_study)));
    let line = format!("--no-history --output-format=json --name=a {READS} --time_based --runtime=11s");
    let jobs = start(fiord(of_jobs.path(), &line));
    let line = format!("sweep --no-history --trust=on --json {READS} --over bs=4k --repeat=1 --time 11s");
    let study = start(fiord(of_study.path(), &line));
    // On a busy machine the study concludes nothing, and has its figures all the same.
    let (jobs, study) = (finish(jobs).assert_success().json(), finish(study).json());

    let slow_ns = SLOW.as_nanos() as f64;
    let part = &jobs["steady_part"];
    let (from_s, latencies_from_s) = need!(settled(part));
    assert!((from_s..from_s + 2.5).contains(&latencies_from_s), "{part}");
    let (whole, steady) = (&jobs["jobs"][0]["read"]["clat_ns"], &part["read"]["clat_ns"]);
    let p99 = |latency: &Value| latency["percentile"]["99.000000"].as_f64().unwrap();
    assert!(p99(whole) >= 0.98 * slow_ns, "{whole}");
    assert!(p99(steady) < 0.98 * slow_ns, "{steady}");
    assert!(steady["N"].as_u64().unwrap() < whole["N"].as_u64().unwrap());
    assert!(steady["mean"].as_f64().unwrap() < whole["mean"].as_f64().unwrap());

    let part = &study["steady_parts"][0];
    let (_, latencies_from_s) = need!(settled(part));
    assert!(study["rows"][0]["p99_ns"].as_f64().unwrap() < 0.98 * slow_ns, "{study}");
    assert!(latencies_from_s > 2.0, "{part}");
}
