//! What happens to the time while a run goes on: steps of the time of day, and tasks that stand still with the machine.
//!
//! Invariant: the time of day is stepped back by as much as it was stepped forward.

#![allow(clippy::unwrap_used, reason = "what a case needs and does not get fails it")]

use std::fs;
use std::process::Command;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use fiord_guest::{Finished, start};
use serde_json::Value;

use crate::guest;

/// 200 reads a second for five seconds, so that it waits often.
const PACED: [&str; 7] = [
    "--name=paced",
    "--ioengine=null",
    "--rate_iops=200",
    "--bs=4k",
    "--size=1g",
    "--time_based",
    "--runtime=5s",
];

/// A run in the middle of which something else happens.
fn run_during(args: &[&str], happens: impl FnOnce()) -> Finished {
    let running = start(args).and_then(|running| running.at_work("paced")).expect("it is at work");
    happens();
    running.wait().expect("it ends")
}

fn set_time(step: &str) {
    let ran = Command::new("date").args(["--set", step]).output();
    assert!(ran.as_ref().is_ok_and(|ran| ran.status.success()), "{step}: {ran:?}");
}

/// The codes of the findings of a run.
fn codes(run: &Finished) -> Vec<String> {
    let report = run.report().expect("a report");
    let findings = report["findings"].as_array().cloned().unwrap_or_default();
    findings.iter().filter_map(|finding| finding["code"].as_str().map(String::from)).collect()
}

/// The rate that the report states is that of its reads in its run time, which is neither cut off nor an hour long.
fn assert_times_agree(run: &Finished) {
    assert_eq!(run.code, Some(0), "{run:?}");
    let job = run.job().unwrap();
    let read = |name: &str| job["read"][name].as_f64().unwrap();
    let (ios, runtime_ms) = (read("total_ios"), read("runtime"));
    assert!((5_000.0..100_000.0).contains(&runtime_ms), "{job}");
    assert!(ios >= 100.0 && (read("iops") - ios / runtime_ms * 1e3).abs() < 1.0, "{job}");
}

// divergence: `clocksource=gettimeofday` and a step of the time of day
#[test]
fn a_step_of_the_time_of_day_changes_neither_run_time_nor_rate() {
    guest!();
    for source in ["gettimeofday", "clock_gettime", "cpu"] {
        for step in ["+1 hour", "-1 hour"] {
            let clock = format!("--clocksource={source}");
            let run = run_during(&[&PACED[..], &[&clock]].concat(), || set_time(step));
            assert_times_agree(&run);
            assert!(!codes(&run).iter().any(|code| code == "suspended"), "{source} {step}: {run:?}");
        }
    }
}

/// The kernel freezes all tasks and then wakes up, as when the machine is put to sleep: what follows, the sleep of the devices,
/// the emulated ones do not survive.
#[test]
fn a_run_that_is_frozen_with_the_machine_is_found() {
    guest!();
    let began = Instant::now();
    let (mut longest_s, mut delay_s): (f64, u32) = (0.0, 10);
    let run = run_during(&[&PACED[..], &["--runtime=30s"]].concat(), || {
        // The kernel counts its seconds in loops, which may run ten times as fast as when it calibrated them.
        while longest_s < 3.0 && began.elapsed() < Duration::from_secs(20) {
            longest_s = longest_s.max(longest_pause(|| freeze_machine(delay_s)).as_secs_f64());
            delay_s *= 3;
        }
    });
    let total_s = began.elapsed().as_secs_f64();
    let report = run.report().unwrap();
    let is_suspended = |finding: &&Value| finding["code"] == "suspended";
    let found = report["findings"].as_array().and_then(|all| all.iter().find(is_suspended)).cloned();
    let found = found.unwrap_or_else(|| panic!("frozen for {longest_s} s: {}", report["findings"]));
    let stood_s = crate::findings::figure(&found, "suspended_s").expect("for how long");
    assert!(stood_s > longest_s - 0.5 && stood_s < total_s, "frozen for {longest_s} s of {total_s}: {found}");
    assert_times_agree(&run);
}

/// Freezes all tasks but this one for so many seconds as the kernel counts them.
fn freeze_machine(delay_s: u32) {
    fs::write("/sys/module/suspend/parameters/pm_test_delay", delay_s.to_string()).expect("they can be set");
    fs::write("/sys/power/pm_test", "freezer").expect("the kernel has tests of its sleep");
    fs::write("/sys/power/state", "freeze").expect("it sleeps");
    fs::write("/sys/power/pm_test", "none").expect("it is restored");
}

/// For how long another thread, which is frozen as the run is, stood still at most while this happens.
fn longest_pause(happens: impl FnOnce()) -> Duration {
    let (over, is_over) = channel::<()>();
    let watcher = thread::spawn(move || {
        let (mut last, mut longest) = (Instant::now(), Duration::ZERO);
        while is_over.recv_timeout(Duration::from_millis(50)) == Err(RecvTimeoutError::Timeout) {
            longest = longest.max(last.elapsed());
            last = Instant::now();
        }
        longest.max(last.elapsed())
    });
    happens();
    drop(over);
    watcher.join().expect("it looks at the time")
}
