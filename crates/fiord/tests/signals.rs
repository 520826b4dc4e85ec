//! Runs that are stopped by a signal: the measurements are reported, and the exit status names the signal.
//!
//! Invariant: a run is stopped only once it has moved bytes, so that there is something to report.

use std::os::unix::process::ExitStatusExt;
use std::time::{Duration, Instant};

use fiord_testing::skipped;

use crate::common::{Dir, Ran, finish, fiord, signal, start, until, until_moved, until_working};

/// The documented second to stop, and three more for a machine that is busy with other tests.
const STOP_MAX: Duration = Duration::from_secs(4);

const JOB: &str = "--name=job --filename=f --rw=write --bs=4k --size=1m --time_based --runtime=60";

/// Starts a run, stops it once it has moved this much, and checks that it ends in time.
fn stopped(dir: &Dir, line: &str, moved_bytes: u64, name: &str) -> Ran {
    let running = start(fiord(dir.path(), line));
    until_moved(&running, moved_bytes);
    let sent = Instant::now();
    signal(running.0.id(), name);
    let ran = finish(running);
    assert!(sent.elapsed() < STOP_MAX, "took {:?} to stop", sent.elapsed());
    ran
}

#[test]
fn an_interrupt_ends_with_a_report_and_130() {
    let ran = stopped(&Dir::new(), JOB, 1 << 20, "INT");
    ran.assert_status(130).assert_prints(&["  WRITE: bw=", "     issued rwts: total=0,"]);
    assert!(!ran.stdout.contains("issued rwts: total=0,0,"), "nothing measured: {ran:?}");
}

#[test]
fn a_request_to_terminate_ends_with_a_report_and_143() {
    stopped(&Dir::new(), JOB, 1 << 20, "TERM").assert_status(143).assert_prints(&["  WRITE: bw="]);
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
fn layout_is_stopped_as_well() {
    let dir = Dir::new();
    let line = "--output-format=json --name=lays --filename=f --rw=read --bs=64k --size=4g --fallocate=none";
    let ran = stopped(&dir, line, 4 << 20, "TERM");
    ran.assert_status(143);
    assert_eq!(ran.json()["jobs"][0]["read"]["io_bytes"], 0);
    assert!(!dir.join("f").exists(), "half a file");
}

/// The kernel does not count the bytes of an engine without system calls for I/O, so a second job shows progress.
#[test]
fn a_queue_in_flight_is_drained_first() {
    for engine in ["libaio", "io_uring", "mmap"] {
        let dir = Dir::new();
        let line = format!(
            "--output-format=json {JOB} --name=queue --filename=q --rw=write --bs=4k --size=1m --time_based \
             --runtime=60 --ioengine={engine} --iodepth=32 --buffer_pattern=0x7e"
        );
        let ran = stopped(&dir, &line, 8 << 20, "INT");
        if ran.all_output().contains("set up engine") {
            skipped(format_args!("the kernel refuses {engine}"));
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
fn an_engine_without_files_stops_as_well() {
    let dir = Dir::new();
    let line = "--output-format=json --name=a --ioengine=null --rw=read --size=1m --time_based --runtime=60 --thread";
    let running = start(fiord(dir.path(), line));
    until_working(&running, "a");
    let sent = Instant::now();
    signal(running.0.id(), "INT");
    let ran = finish(running);
    assert!(sent.elapsed() < STOP_MAX, "took {:?} to stop", sent.elapsed());
    ran.assert_status(130);
    assert_eq!(ran.json()["jobs"][0]["jobname"], "a");
}

// divergence: SIGHUP, SIGALRM
/// Closed terminals, limits, timers: each would end the process by default, and fio then loses its report.
#[test]
fn every_signal_that_ends_a_process_ends_a_run_with_its_report() {
    let dir = Dir::new();
    for (name, number) in [("HUP", 1), ("USR2", 12), ("ALRM", 14), ("XCPU", 24), ("VTALRM", 26), ("IO", 29)] {
        let ran = stopped(&dir, &format!("--output=out --output-format=json {JOB}"), 1 << 20, name);
        ran.assert_status(128 + number);
        let document: serde_json::Value = serde_json::from_slice(&dir.read("out")).unwrap();
        assert!(document["jobs"][0]["write"]["io_bytes"].as_u64() > Some(0), "{name}: {document}");
    }
}

#[test]
fn a_hang_up_that_is_ignored_stays_so() {
    let dir = Dir::new();
    let mut command = crate::common::with_own_history("sh");
    let line = format!("trap '' HUP; exec \"$0\" --output-format=json {JOB}");
    command.args(["-c", &line, env!("CARGO_BIN_EXE_fiord")]).current_dir(dir.path());
    let running = start(command);
    until_moved(&running, 1 << 20);
    signal(running.0.id(), "HUP");
    until_moved(&running, 4 << 20);
    signal(running.0.id(), "TERM");
    finish(running).assert_status(143);
}

// divergence: SIGQUIT
#[test]
fn a_quit_ends_the_process_without_a_report() {
    let dir = Dir::new();
    let mut command = crate::common::with_own_history("sh");
    // A test may have been started where the signal is ignored; its core dump is not wanted.
    let line = format!("ulimit -c 0; exec env --default-signal=QUIT \"$0\" --output=out {JOB}");
    command.args(["-c", &line, env!("CARGO_BIN_EXE_fiord")]).current_dir(dir.path());
    let mut running = start(command);
    until_moved(&running, 1 << 20);
    signal(running.0.id(), "QUIT");
    assert_eq!(running.0.wait().unwrap().signal(), Some(3));
    assert_eq!(dir.text("out").matches("(groupid=").count(), 0, "{}", dir.text("out"));
}

// divergence: SIGUSR1
#[test]
fn a_status_is_printed_on_request_and_the_run_continues() {
    let dir = Dir::new();
    for (format, mark) in [("json", "\"fio version\""), ("normal", ": (groupid="), ("terse", "3;fio-")] {
        let running = start(fiord(dir.path(), &format!("--output=out --output-format={format} {JOB}")));
        until_moved(&running, 1 << 20);
        signal(running.0.id(), "USR1");
        let printed = || dir.text("out").matches(mark).count();
        until("the status is there", || printed() == 1);
        signal(running.0.id(), "INT");
        finish(running).assert_status(130);
        assert_eq!(printed(), 2, "the status and the report: {}", dir.text("out"));
    }
}

// divergence: SIGXFSZ
#[test]
fn a_file_that_grows_beyond_its_limit_fails_only_its_job() {
    let dir = Dir::new();
    let mut command = std::process::Command::new("sh");
    let line = "ulimit -f 2048; exec \"$0\" --output-format=json --name=large --filename=large --rw=write --bs=64k \
                --size=8m --fallocate=none --name=small --filename=small --rw=write --bs=64k --size=256k";
    command.args(["-c", line, env!("CARGO_BIN_EXE_fiord")]).current_dir(dir.path());
    command.env("XDG_STATE_HOME", dir.join("state"));
    let ran = finish(start(command));
    let document = ran.assert_status(1).json();
    let figures =
        |job: usize| (document["jobs"][job]["error"].as_i64(), &document["jobs"][job]["write"]["io_bytes"]);
    assert_eq!(figures(0).0, Some(27), "EFBIG: {document}");
    assert_eq!(figures(1), (Some(0), &serde_json::json!(256 << 10)), "{document}");
}

/// SIGXFSZ would end the process without a word.
#[test]
fn a_page_and_a_history_beyond_the_limit_of_files_are_refused_in_words() {
    let dir = Dir::new();
    dir.run("--output=r.json --output-format=json --name=a --ioengine=null --size=1m").assert_success();
    let limited = |line: &str| {
        let mut command = std::process::Command::new("sh");
        command.args(["-c", "ulimit -f 1; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_fiord")]);
        command.args(line.split(' ')).current_dir(dir.path()).env("XDG_STATE_HOME", dir.join("state"));
        finish(start(command))
    };
    limited("report r.json -o page.html").assert_status(1).assert_prints(&["page.html", "EFBIG"]);
    assert!(!dir.join("page.html").exists());
    limited("--name=a --ioengine=null --size=1m").assert_status(0).assert_prints(&["READ: bw=", "history"]);
    let listed = limited("history");
    assert!(listed.status.is_some_and(|status| status <= 2), "{listed:?}");
}

// divergence: SIGINT, SIGTERM
/// fio prints the line whatever the format, also where its JSON then cannot be read.
#[test]
fn the_end_by_a_signal_is_reported_except_to_programs() {
    let dir = Dir::new();
    for (format, is_said) in
        [("normal", true), ("terse", true), ("json,normal", true), ("json", false), ("json+", false)]
    {
        for to_file in [false, true] {
            let output = if to_file { "--output=out" } else { "" };
            let ran = stopped(&dir, &format!("{output} --output-format={format} {JOB}"), 1 << 20, "TERM");
            let text = if to_file { dir.text("out") } else { ran.stdout.clone() };
            let times = text.lines().filter(|line| *line == "fio: terminating on signal 15").count();
            assert_eq!(times, usize::from(is_said), "{format}: {text}");
            assert_eq!(ran.stderr, "", "{format}");
        }
    }
}

/// Of a study of one run, everything that was measured is in that run.
#[test]
fn the_run_of_a_study_that_is_ended_by_a_signal_is_reported_and_recorded() {
    let job = "--name=job --rw=randread --bs=4k --size=8m --direct=0";
    for (study, thread) in [
        ("quick --size=8M --time=5m".to_string(), "sequential-read"),
        ("matrix --bs=4k --rw=randread --size=8M --time=50s".to_string(), "4k-randread"),
        ("check etcd --time=5m".to_string(), "appends-of-2300"),
        ("capacity --p99=10ms --size=8M --time=10m".to_string(), "without-a-rate"),
        (format!("sweep {job} --over iodepth=1 --time=50s"), "job"),
        (format!("profile {job} --time=50s"), "job"),
    ] {
        let dir = Dir::new();
        let repeat = if study.starts_with("capacity") { "" } else { "--repeat=1" };
        let (name, options) = study.split_once(' ').unwrap();
        let mut command = fiord(dir.path(), &format!("{name} --trust=on --json {repeat} {options}"));
        command.env("XDG_STATE_HOME", dir.join("state"));
        let running = start(command);
        until_working(&running, thread);
        signal(running.0.id(), "INT");
        let ran = finish(running);
        ran.assert_status(130).assert_prints(&[&format!("fiord {name}: after 0 of ")]);
        let document = ran.json();
        // That of a search is not among its rows: it has no rate.
        let of_search = &document["targets"][0]["unpaced_iops"];
        let is_reported = document["rows"].as_array().unwrap().len() == 1 || of_search.as_u64() > Some(0);
        assert!(is_reported || name == "profile", "{document}");
        assert!(name != "profile" || document["variants"].as_array().unwrap().len() == 1, "{document}");
        let conclusion = document["conclusion"].as_str().unwrap_or_default();
        let concludes =
            !["CANNOT TELL, because ", "No verdict"].iter().any(|none| conclusion.starts_with(none));
        assert!(conclusion.is_empty() || !concludes, "{conclusion}");
        let findings = document["findings"].as_array().unwrap();
        assert!(findings.iter().any(|finding| finding["code"] == "interrupted"), "{document}");
        let mut shown = fiord(dir.path(), "show last");
        shown.env("XDG_STATE_HOME", dir.join("state"));
        let text = finish(start(shown)).assert_success().stdout.clone();
        assert_eq!(text.matches("signal 2").count(), 2, "the study and its run: {text}");
    }
}
