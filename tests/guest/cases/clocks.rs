//! What happens to the time while a run goes on: steps of the time of day, and tasks that stand still with the machine.
//!
//! Invariant: the time of day is stepped back by as much as it was stepped forward.

#![allow(clippy::unwrap_used, reason = "what a case needs and does not get fails it")]

use std::fs;
use std::process::Command;
use std::time::Instant;

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

/// The kernel freezes all tasks for ten seconds, as when the machine is put to sleep, and then wakes up: what follows, the
/// sleep of the devices, the emulated ones do not survive.
#[test]
fn a_run_that_is_frozen_with_the_machine_is_found() {
    guest!();
    // A slow machine takes seconds until the tasks are frozen, and the kernel counts its ten in loops, which may run several
    // times as fast as when it calibrated them.
    fs::write("/sys/module/suspend/parameters/pm_test_delay", "10").expect("they can be set");
    let mut slept_s = 0.0;
    let run = run_during(&[&PACED[..], &["--runtime=30s"]].concat(), || {
        fs::write("/sys/power/pm_test", "freezer").expect("the kernel has tests of its sleep");
        let before = Instant::now();
        fs::write("/sys/power/state", "freeze").expect("it sleeps");
        slept_s = before.elapsed().as_secs_f64();
        fs::write("/sys/power/pm_test", "none").expect("it is restored");
    });
    let report = run.report().unwrap();
    let is_suspended = |finding: &&Value| finding["code"] == "suspended";
    let found = report["findings"].as_array().and_then(|all| all.iter().find(is_suspended)).cloned();
    let found = found.unwrap_or_else(|| panic!("{report}"));
    let stood_s = crate::findings::figure(&found, "suspended_s").expect("for how long");
    assert!(stood_s >= 2.0 && stood_s < slept_s + 1.0, "the kernel slept for {slept_s} s: {found}");
    assert_times_agree(&run);
}
