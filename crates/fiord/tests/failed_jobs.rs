//! Jobs that fail while others run: what runs, what is reported, and the exit status under either name.
//!
//! Invariant: one job's error does not affect the figures of others; a danger to data stops all.

use std::os::unix::fs::symlink;
use std::process::Command;

use fiord_testing::need;
use serde_json::Value;

use crate::common::{Dir, Mount, Ran, finish, start};

/// Runs a link called `fio`.
fn as_fio(dir: &Dir, line: &str) -> Ran {
    let link = dir.path().join("fio");
    if !link.exists() {
        symlink(env!("CARGO_BIN_EXE_fiord"), &link).unwrap();
    }
    let mut command = Command::new(&link);
    command.args(line.split_whitespace()).current_dir(dir.path());
    finish(start(command))
}

fn errors(document: &Value) -> Vec<(&str, i64)> {
    let of = |job: &'_ Value| job["error"].as_i64().unwrap();
    let jobs = document["jobs"].as_array().unwrap();
    jobs.iter().map(|job| (job["jobname"].as_str().unwrap(), of(job))).collect()
}

const BESIDE: &str = "--size=64k --name=one --ioengine=null --name=bad --filename=no --allow_file_create=0 \
                      --name=other --ioengine=null";

#[test]
fn other_jobs_run_and_the_report_has_the_error() {
    let dir = Dir::new();
    let ran = dir.run(&format!("--no-history --output-format=json {BESIDE}"));
    ran.assert_status(1);
    let document = ran.json();
    assert_eq!(errors(&document), [("one", 0), ("bad", 2), ("other", 0)]);
    assert_eq!(document["jobs"][2]["read"]["io_bytes"], 64 << 10);
    let bad = &document["jobs"][1];
    assert_eq!(bad["read"]["total_ios"], 0);
    assert!(bad.get("latency_depth").is_none(), "fio has none of a job that never began: {bad}");
    let findings = document["findings"].as_array().unwrap();
    let reason =
        findings.iter().find(|one| one["option"] == "allow_file_create").expect("why it did not run");
    assert!(
        reason["subject"].as_str().is_some_and(|place| place.starts_with("command line:1:")),
        "{document}"
    );
    assert!(ran.stderr.contains("error: allow_file_create: job bad: no does not exist"), "{ran:?}");
    assert!(ran.stderr.starts_with("command line:1:"), "its place: {ran:?}");
    let text = dir.run(&format!("--no-history {BESIDE}"));
    text.assert_status(1).assert_prints(&[
        "bad: (groupid=0, jobs=1): err= 2 (plan: ",
        "one: (groupid=0",
        "other: (",
    ]);
}

// divergence: the exit status of a run with failed jobs
#[test]
fn the_status_is_the_number_of_failed_jobs_under_the_name_fio() {
    let dir = Dir::new();
    for (jobs, status) in [(1, 1), (3, 3), (255, 255), (256, 255), (300, 255)] {
        let line = format!(
            "--output-format=json --name=good --ioengine=null --size=4k --name=bad --filename=no --size=4k \
             --allow_file_create=0 --numjobs={jobs}"
        );
        as_fio(&dir, &line).assert_status(status);
        dir.run(&format!("--no-history {line}")).assert_status(1);
    }
    as_fio(&dir, "--name=good --ioengine=null --size=4k").assert_status(0);
}

// divergence: `fio: pid=
/// In the normal text and with terse, where readers of fio's text search for it; not into `--output`, not before JSON.
#[test]
fn a_failed_job_gets_a_line_in_fios_words() {
    let dir = Dir::new();
    dir.write("d", "x");
    let line = "--no-history --name=bad --filename=d --rw=read --size=4k --max_latency=1ns --bs=1 --size=1";
    let has = |text: &str| text.lines().any(|line| line.starts_with("fio: pid=") && line.contains("/file:"));
    for (format, expected) in
        [("normal", true), ("terse", true), ("json,normal", true), ("json", false), ("json+", false)]
    {
        let ran = dir.run(&format!("--output-format={format} {line}"));
        assert_eq!(has(&ran.assert_status(1).stdout), expected, "{format}: {ran:?}");
        let ran = dir.run(&format!("--output=out --output-format={format} {line}"));
        assert!(!has(&ran.assert_status(1).stdout) && !has(&dir.text("out")), "{format}: {ran:?}");
    }
}

#[test]
fn a_full_file_system_is_reported_in_fios_words() {
    let dir = Dir::new();
    let mount = need!(Mount::tmpfs(&dir, "size=1m"));
    let place = mount.path.display();
    let ran = dir.run(&format!(
        "--no-history --name=full --directory={place} --rw=write --size=4m --fallocate=none --runtime=1h"
    ));
    ran.assert_status(1);
    let line = ran.stdout.lines().find(|text| text.starts_with("fio: pid=")).unwrap_or_default();
    assert!(line.contains(", err=28/file:") && line.ends_with("error=No space left on device"), "{ran:?}");
    assert!(line.contains(".0.0:1048576, func=write, "), "the file and the offset: {line}");
}

// divergence: contradictory options (`rate`
#[test]
fn wrong_options_stop_all_jobs() {
    let dir = Dir::new();
    for wrong in ["--directory=gone", "--rate=1m --rate_iops=5", "--iodepth=x"] {
        let ran = as_fio(&dir, &format!("--output-format=json --size=4k --name=one --name=bad {wrong}"));
        assert_eq!(ran.assert_status(1).stdout, "", "{ran:?}");
        assert!(!dir.path().join("one.0.0").exists(), "{wrong}");
    }
}

#[test]
fn a_study_does_not_start_with_only_some_of_its_jobs() {
    let dir = Dir::new();
    let line = "sweep --no-history --size=64k --ioengine=null --over iodepth=1,2 --name=one --name=bad --ioengine=psync \
                --filename=no --allow_file_create=0";
    let ran = dir.run(line);
    assert_ne!(ran.status, Some(0), "{ran:?}");
    ran.assert_prints(&["no does not exist"]);
}

/// It fails at its first I/O, in its ramp: a shorter ramp would not help.
#[test]
fn a_failed_job_has_no_findings_about_its_figures() {
    let dir = Dir::new();
    let line = "--no-history --output-format=json --rw=write --bs=4k --size=64k --ramp_time=1h --ioengine=libaio \
                --iodepth=16 --rate_iops=1000";
    let codes = |file: &str, status: i32| -> Vec<String> {
        let ran = dir.run(&format!("{line} --name=a --filename={file}"));
        let document = ran.assert_status(status).json();
        let findings = document["findings"].as_array().into_iter().flatten();
        findings.map(|finding| finding["code"].as_str().unwrap().to_string()).collect()
    };
    assert_eq!(codes("/dev/full", 1), [""; 0]);
    let sound = codes("f", 0);
    let expected = ["ended-in-ramp", "buffered-async", "closed-loop-rate"];
    assert!(expected.iter().all(|code| sound.iter().any(|found| found == code)), "{sound:?}");
}

#[test]
fn what_many_sections_have_in_common_is_said_once() {
    let dir = Dir::new();
    let sections = |file: fn(usize) -> String| -> String {
        (0..24).map(|number| format!(" --name=s{number} --numjobs=2 --filename={}", file(number))).collect()
    };
    let line = "--no-history --rw=write --bs=4k --size=64k --ioengine=psync --iodepth=8";
    let ran = dir.run(&format!("{line}{}", sections(|_| "/dev/full".to_string())));
    let failures: Vec<&str> = ran.assert_status(1).stderr.lines().collect();
    let [first, others] = failures[..] else { panic!("{failures:?}") };
    assert!(first.starts_with("fiord: job s0: write /dev/full at offset 0"), "{first}");
    assert_eq!(others, "fiord: 47 more jobs failed in the same way");
    let ran = dir.run(&format!("{line} --output-format=json{}", sections(|number| format!("f{number}"))));
    let document = ran.assert_success().json();
    let of = |code: &str| -> Vec<&Value> {
        document["findings"].as_array().unwrap().iter().filter(|finding| finding["code"] == code).collect()
    };
    let depth = of("sync-engine-depth");
    assert_eq!(depth.len(), 1, "{document}");
    assert_eq!(
        depth[0]["sentence"],
        "the engine psync is synchronous: the queue depth stays at 1 of 8 (and 23 more jobs)"
    );
    assert_eq!(of("concurrent-writers").len() + of("overlapping-sequential").len(), 1, "{document}");
}
