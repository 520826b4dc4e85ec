//! Options of time, order, rates and reports, from the command line to what a run does and says.
//!
//! Invariant: a run's pace is judged by counts that its options bound from above; how fast the machine is decides
//! nothing here.

#![allow(clippy::unwrap_used, reason = "tests panic when something is wrong")]

mod common;

use common::{Dir, Ran};
use serde_json::Value;

/// A job that moves no bytes, for as long as its `runtime`.
const NULL: &str = "--ioengine=null --size=1g --bs=4k --time_based";

fn json(line: &str) -> Value {
    Dir::new().run(&format!("--output-format=json {line}")).assert_success().json()
}

fn jobs(document: &Value) -> &[Value] {
    document["jobs"].as_array().unwrap()
}

fn ios(job: &Value, direction: &str) -> u64 {
    job[direction]["total_ios"].as_u64().unwrap()
}

#[test]
fn a_limited_direction_does_not_hold_back_the_other() {
    let document = json(&format!("{NULL} --name=a --rw=randrw --rate=,1m --runtime=300ms"));
    let (reads, writes) = (ios(&jobs(&document)[0], "read"), ios(&jobs(&document)[0], "write"));
    assert!(writes <= 256 / 3 + 20, "{writes} writes of 4 KiB at 1 MiB/s in 0.3 s");
    assert!(reads > 10 * writes, "{reads} reads beside {writes} writes");
    let document =
        json(&format!("{NULL} --name=a --rw=rw --rwmixread=90 --rate_iops=1000,500 --runtime=300ms"));
    let (reads, writes) = (ios(&jobs(&document)[0], "read"), ios(&jobs(&document)[0], "write"));
    assert!(reads <= 320 && writes <= 170, "{reads} reads, {writes} writes");
    assert!(writes * 3 > reads, "{reads} reads, {writes} writes: the mix decides instead of the rates");
}

#[test]
fn pauses_come_after_so_many_ios_however_deep_the_queue() {
    for (options, per_pause) in [
        ("", 1),
        ("--iodepth=16", 1),
        ("--iodepth=16 --thinktime_blocks=8", 8),
        ("--iodepth=16 --thinktime_blocks=8 --thinktime_blocks_type=issue", 8),
        ("--iodepth=4 --thinktime_blocks=40 --thinktime_spin=1ms", 40),
        ("--thinktime_iotime=10s --thinktime_blocks=5", 5),
    ] {
        let document = json(&format!("{NULL} --name=a --rw=read --runtime=200ms --thinktime=10ms {options}"));
        let done = ios(&jobs(&document)[0], "read");
        // Twenty pauses fit; a late end adds a few.
        assert!(done >= per_pause && done <= 24 * per_pause, "{options}: {done} I/Os");
    }
}

#[test]
fn a_job_below_its_least_rate_fails_after_fios_grace() {
    let line = format!(
        "{NULL} --name=a --rw=read --rate_iops_min=1000 --thinktime=20ms --rate_cycle=100 --runtime=60"
    );
    let ran = Dir::new().run(&format!("--output-format=json {line}"));
    ran.assert_status(1).assert_says(&["rate_iops_min=1000 not met, got "]);
    let job = &ran.json()["jobs"][0];
    assert_eq!(job["error"], 5);
    assert!(job["job_runtime"].as_u64() >= Some(2000), "{}", job["job_runtime"]);
}

#[test]
fn a_queue_is_counted_at_the_depth_its_batches_reach() {
    let document = json("--name=a --ioengine=null --rw=read --size=64m --iodepth=16");
    let job = &jobs(&document)[0];
    assert!(job["iodepth_level"]["16"].as_f64() > Some(95.0), "{}", job["iodepth_level"]);
    assert_eq!(job["iodepth_complete"]["0"], 0.0, "looks that found nothing are no calls");
    let document =
        json("--name=a --ioengine=null --rw=read --size=64m --iodepth=16 --iodepth_batch_submit=4");
    assert!(jobs(&document)[0]["iodepth_submit"]["4"].as_f64() > Some(99.0));
}

#[test]
fn commands_around_a_job_leave_their_output_and_stop_nothing() {
    let dir = Dir::new();
    dir.write(
        "job.fio",
        "[a]\nioengine=null\nsize=64k\nexec_prerun=echo before && exit 3\nexec_postrun=echo after\n",
    );
    let ran = dir.run("job.fio");
    ran.assert_success().assert_says(&["Warnings:\n  job a: exec_prerun: ", "a.prerun.txt"]);
    assert!(!ran.stdout.contains("exec_postrun"), "{ran:?}");
    assert_eq!(
        (dir.text("a.prerun.txt").as_str(), dir.text("a.postrun.txt").as_str()),
        ("before\n", "after\n")
    );
}

#[test]
fn warnings_stand_behind_fios_text_and_in_a_list_of_their_own() {
    let dir = Dir::new();
    let line = "--name=a --rw=read --size=64k --bs=4k --iodepth=8";
    let text = dir.run(line).assert_success().stdout.clone();
    let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("no {what:?} in {text}"));
    assert!(at("Run status group 0") < at("\nWarnings:\n") && text.ends_with('\n'));
    let document = json(line);
    let warning = &document["warnings"][0];
    assert_eq!(warning["code"], "iodepth", "{document}");
    assert!(warning["place"].as_str().unwrap().starts_with("command line:1:"), "{warning}");
    assert!(warning["message"].as_str().unwrap().contains("queue depth stays at 1"), "{warning}");
    let document = json("--name=a --rw=read --size=64k --bs=4k");
    assert!(document.get("warnings").is_none(), "nothing to warn of: {document}");
}

#[test]
fn fatal_warnings_are_those_of_fio() {
    let dir = Dir::new();
    let line = "--warnings-fatal --name=a --rw=read --size=64k --bs=4k";
    dir.run(&format!("{line} --iodepth=8")).assert_success();
    dir.run(&format!("{line} --time_based")).assert_status(1).assert_says(&["time_based"]);
}

#[test]
fn only_a_limit_that_was_given_limits_the_jobs() {
    let line = "--name=a --ioengine=null --size=4k --rw=read --group_reporting --output-format=json";
    let dir = Dir::new();
    dir.run(&format!("--max-jobs=3 {line} --numjobs=4")).assert_status(1).assert_says(&["max-jobs"]);
    dir.run(&format!("--max-jobs=4 {line} --numjobs=4")).assert_success();
    // fio's own limit is 4096.
    let document = dir.run(&format!("{line} --numjobs=4100")).assert_success().json();
    assert_eq!(ios(&jobs(&document)[0], "read"), 4100);
}

#[test]
fn the_processors_idleness_follows_the_report() {
    let dir = Dir::new();
    let line = format!("{NULL} --name=a --rw=read --runtime=100ms");
    let ran: Ran = dir.run(&format!("--idle-prof=percpu {line}"));
    ran.assert_success().assert_says(&[
        "\nCPU idleness:\n  system: ",
        "\n  percpu: ",
        "\n  unit work: mean=",
    ]);
    let document = json(&format!("--idle-prof=percpu {line}"));
    let idleness = &document["cpu_idleness"];
    for key in ["system", "cpu-0", "unit_mean", "unit_stddev"] {
        assert!(idleness[key].is_f64(), "{key} in {idleness}");
    }
    assert!((0.0..=100.0).contains(&idleness["system"].as_f64().unwrap()), "{idleness}");
    let document = json(&format!("--idle-prof=system {line}"));
    assert!(document["cpu_idleness"].get("cpu-0").is_none());
    let ran = dir.run("--idle-prof=calibrate");
    assert!(ran.assert_success().stdout.starts_with("CPU idleness:\n  unit work: mean="), "{ran:?}");
}

#[test]
fn the_bandwidth_of_all_jobs_together_is_logged() {
    let dir = Dir::new();
    let line = format!("{NULL} --name=a --rw=rw --runtime=300ms --numjobs=2 --bwavgtime=100 --bandwidth-log");
    dir.run(&line).assert_success();
    for (name, direction) in [("read", "0"), ("write", "1")] {
        let text = dir.text(&format!("agg-{name}_bw.log"));
        assert!(text.lines().count() >= 2, "{text}");
        for line in text.lines() {
            let columns: Vec<&str> = line.split(", ").collect();
            assert_eq!(
                (columns.len(), columns[2], columns[3], columns[4]),
                (5, direction, "0", "0"),
                "{line}"
            );
        }
        let value = |line: &str| line.split(", ").nth(1).unwrap().parse::<u64>().unwrap();
        assert!(text.lines().any(|line| value(line) > 0), "{text}");
    }
    assert_eq!(dir.text("agg-trim_bw.log"), "");
    std::fs::create_dir(dir.join("away")).unwrap();
    std::fs::create_dir(dir.join("away/agg-read_bw.log")).unwrap();
    let ran = common::run(&dir.join("away"), &line);
    ran.assert_status(1).assert_says(&["agg-read_bw.log"]);
}

#[test]
fn a_scheduler_is_set_on_the_disk_under_the_job() {
    let dir = Dir::new();
    let device = need!(common::LoopDevice::new(&dir, 1 << 20));
    let queue = format!("/sys/block/{}/queue/scheduler", device.path.trim_start_matches("/dev/"));
    let before = need!(std::fs::read_to_string(&queue).map_err(|error| error.to_string()));
    if !before.contains("mq-deadline") {
        return common::skip(&common::this_test(), "the kernel has no scheduler mq-deadline");
    }
    let other = if before.contains("[mq-deadline]") { "none" } else { "mq-deadline" };
    let line = format!("--name=a --filename={} --rw=read --size=64k --ioscheduler", device.path);
    dir.run(&format!("{line}={other}")).assert_success();
    let after = std::fs::read_to_string(&queue).unwrap();
    assert!(after.contains(&format!("[{other}]")), "{after}");
    let ran = dir.run(&format!("{line}=no-such-one"));
    ran.assert_status(1).assert_says(&["ioscheduler=no-such-one", "EINVAL", "mq-deadline"]);
    // A file in memory lies on no disk.
    let memory = need!(Dir::under(std::path::Path::new("/dev/shm")));
    memory.run("--name=a --filename=f --rw=read --size=64k --ioscheduler=no-such-one").assert_success();
}

#[test]
fn throughput_is_sampled_at_its_intervals_and_not_at_all_when_switched_off() {
    let run = |options: &str| {
        let document = json(&format!("{NULL} --name=a --rw=read --runtime=400ms {options}"));
        jobs(&document)[0]["read"].clone()
    };
    let read = run("--bwavgtime=100 --iopsavgtime=200");
    let samples = |read: &Value, kind: &str| read[kind].as_u64().unwrap();
    assert!((3..=5).contains(&samples(&read, "bw_samples")), "{read}");
    assert!((1..=3).contains(&samples(&read, "iops_samples")), "{read}");
    let read = run("--disable_bw_measurement=1 --bwavgtime=100 --iopsavgtime=100");
    assert_eq!((samples(&read, "bw_samples"), samples(&read, "iops_samples")), (0, 0));
    // Samples need no clock of the worker.
    let read = run("--gtod_reduce=1 --bwavgtime=100 --ramp_time=100ms");
    assert!(samples(&read, "bw_samples") >= 2 && read["clat_ns"]["N"] == 0, "{read}");
}
