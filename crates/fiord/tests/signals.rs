//! Runs that are told to stop: what was measured is reported, and the exit status names the signal.
//!
//! Invariant: a run is only told to stop when it is seen to move bytes, so that there is something to report.

#![allow(clippy::unwrap_used, reason = "tests panic when something is wrong")]

mod common;

use std::fs;
use std::time::{Duration, Instant};

use common::{Dir, Ran, finish, fiord, signal, start, until, until_moved};

/// One second to stop in, as promised, and three for a machine that is busy with other tests.
const STOP_MAX: Duration = Duration::from_secs(4);

const JOB: &str = "--name=job --filename=f --rw=write --bs=4k --size=1m --time_based --runtime=60";

/// Runs, tells it to stop once it has moved this much, and sees that it does so in time.
fn stopped(dir: &Dir, line: &str, moved_bytes: u64, name: &str) -> Ran {
    let running = start(fiord(dir.path(), line));
    until_moved(&running, moved_bytes);
    let told = Instant::now();
    signal(running.0.id(), name);
    let ran = finish(running);
    assert!(told.elapsed() < STOP_MAX, "took {:?} to stop", told.elapsed());
    ran
}

#[test]
fn an_interrupt_ends_with_a_report_and_130() {
    let ran = stopped(&Dir::new(), JOB, 1 << 20, "INT");
    ran.assert_status(130).assert_says(&["  WRITE: bw=", "     issued rwts: total=0,"]);
    assert!(!ran.stdout.contains("issued rwts: total=0,0,"), "nothing measured: {ran:?}");
}

#[test]
fn a_request_to_terminate_ends_with_a_report_and_143() {
    stopped(&Dir::new(), JOB, 1 << 20, "TERM").assert_status(143).assert_says(&["  WRITE: bw="]);
}

#[test]
fn json_of_an_interrupted_run_is_one_whole_document() {
    for format in ["json", "json+"] {
        let ran = stopped(&Dir::new(), &format!("--output-format={format} {JOB}"), 1 << 20, "INT");
        let document = ran.assert_status(130).json();
        assert!(document["jobs"][0]["write"]["io_bytes"].as_u64() > Some(0), "{document}");
    }
}

#[test]
fn the_file_of_an_interrupted_run_holds_the_report() {
    let dir = Dir::new();
    for (name, status) in [("INT", 130), ("TERM", 143)] {
        let ran = stopped(&dir, &format!("--output=out --output-format=json {JOB}"), 1 << 20, name);
        ran.assert_status(status);
        assert_eq!(ran.stdout, "");
        let document: serde_json::Value = serde_json::from_slice(&dir.read("out")).unwrap();
        assert!(document["jobs"][0]["write"]["io_bytes"].as_u64() > Some(0), "{document}");
        let ran = stopped(&dir, &format!("--output=out {JOB}"), 1 << 20, name);
        ran.assert_status(status);
        assert!(dir.text("out").contains("  WRITE: bw="), "{}", dir.text("out"));
    }
}

#[test]
fn jobs_that_sleep_or_wait_stop_as_well() {
    let line = format!(
        "--output-format=json {JOB} --name=thinks --size=1m --filename=t --rw=write --thinktime=100s \
         --name=slow --size=1m --filename=s --rw=write --rate=1k --name=delayed --size=1m --filename=d --rw=write \
         --startdelay=100 --name=next --stonewall --size=1m --filename=n --rw=write"
    );
    let dir = Dir::new();
    let ran = stopped(&dir, &line, 1 << 20, "INT");
    ran.assert_status(130);
    let document = ran.json();
    assert_eq!(document["jobs"].as_array().map(Vec::len), Some(5), "{document}");
    assert!(document["jobs"][0]["write"]["io_bytes"].as_u64() > Some(0), "{document}");
    assert_eq!(document["jobs"][4]["write"]["io_bytes"], 0, "a job that never started");
}

#[test]
fn layout_is_stopped_too() {
    let dir = Dir::new();
    let line = "--output-format=json --name=lays --filename=f --rw=read --bs=64k --size=4g --fallocate=none";
    let ran = stopped(&dir, line, 4 << 20, "TERM");
    ran.assert_status(143);
    assert_eq!(ran.json()["jobs"][0]["read"]["io_bytes"], 0);
}

/// The kernel does not count what an engine moves without a call for each I/O; a job beside it tells.
#[test]
fn a_queue_in_flight_is_drained_first() {
    for engine in ["libaio", "io_uring", "mmap"] {
        let dir = Dir::new();
        let line = format!(
            "--output-format=json {JOB} --name=queue --filename=q --rw=write --bs=4k --size=1m --time_based \
             --runtime=60 --ioengine={engine} --iodepth=32 --buffer_pattern=0x7e"
        );
        let ran = stopped(&dir, &line, 8 << 20, "INT");
        if ran.said().contains("set up engine") {
            common::skip(&common::this_test(), &format!("the kernel refuses {engine}"));
            continue;
        }
        let document = ran.assert_status(130).json();
        let (error, written) = (&document["jobs"][1]["error"], &document["jobs"][1]["write"]);
        assert_eq!(*error, 0, "{document}");
        assert_eq!(written["io_bytes"].as_u64(), written["total_ios"].as_u64().map(|ios| ios * 4096));
        let begun = dir.read("q").chunks(4096).all(|block| block.iter().all(|byte| *byte == block[0]));
        assert!(begun, "a block that was written in part");
    }
}

#[test]
fn an_engine_without_files_stops_too() {
    let dir = Dir::new();
    let line = "--output-format=json --name=a --ioengine=null --rw=read --size=1m --time_based --runtime=60 --thread";
    let running = start(fiord(dir.path(), line));
    let tasks = format!("/proc/{}/task", running.0.id());
    until("the worker's thread is there", || fs::read_dir(&tasks).is_ok_and(|tasks| tasks.count() > 1));
    let told = Instant::now();
    signal(running.0.id(), "INT");
    let ran = finish(running);
    assert!(told.elapsed() < STOP_MAX, "took {:?} to stop", told.elapsed());
    ran.assert_status(130);
    assert_eq!(ran.json()["jobs"][0]["jobname"], "a");
}
