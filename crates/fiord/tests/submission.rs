//! How I/Os reach the engine: batches, overlaps, and threads that execute them for the job.
//!
//! Invariant: what is asserted follows from the options, not from how fast the machine is.

use std::time::Duration;

use fiord_testing::{need, skip, skipped};
use serde_json::Value;

use crate::common::Dir;
use crate::common::stalling::{Stall, Stalling};

/// The report of a run in a directory of its own.
fn json(line: &str) -> Value {
    let ran = Dir::new().run(&format!("--output-format=json {line}"));
    ran.assert_success().json()
}

/// The share of a bucket of one of a job's tables, in percent.
fn share(options: &str, table: &str, bucket: &str) -> f64 {
    let document = json(&format!("--name=a --filename=f --rw=randread --bs=4k {options}"));
    document["jobs"][0][table][bucket].as_f64().unwrap()
}

// divergence: `iodepth_batch` without
/// As in fio, and as described in the help, docs/divergences.md and ARCHITECTURE.md. The whole queue completes before
/// it is refilled, so that only the option decides how many I/Os a call submits.
#[test]
fn a_call_submits_as_many_ios_as_iodepth_batch_says() {
    for engine in ["libaio", "io_uring"] {
        let line = "--name=a --filename=f --size=64k --rw=read";
        if Dir::new().run(&format!("{line} --ioengine={engine}")).status != Some(0) {
            skipped(format_args!("the kernel refuses {engine}"));
            continue;
        }
        for (batch, bucket) in [
            ("", "4"),
            ("--iodepth_batch=1", "4"),
            ("--iodepth_batch=4", "4"),
            ("--iodepth_batch=8", "8"),
            ("--iodepth_batch_submit=16", "16"),
            ("--iodepth_batch=0", "32"),
            ("--iodepth_batch_submit=0", "32"),
        ] {
            let options =
                format!("--size=1m --ioengine={engine} --iodepth=32 --iodepth_batch_complete_min=32 {batch}");
            assert_eq!(share(&options, "iodepth_submit", bucket), 100.0, "{options}");
        }
    }
}

// divergence: `IO depths` of a batch
#[test]
fn the_depth_of_a_batch_is_that_of_the_queue_with_it() {
    let options =
        "--size=1m --ioengine=libaio --iodepth=32 --iodepth_batch_complete_min=32 --iodepth_batch=8";
    // Four batches fill the queue: 8, 16, 24 and 32 are in flight.
    for (bucket, percent) in [("8", 25.0), ("16", 50.0), ("32", 25.0)] {
        assert_eq!(share(options, "iodepth_level", bucket), percent, "{bucket}");
    }
}

#[test]
fn overlapping_ios_are_not_in_flight_together_if_serialized() {
    let line = "--size=4k --io_size=256k --norandommap --ioengine=io_uring --iodepth=8";
    if Dir::new().run("--name=a --filename=f --size=4k --rw=read --ioengine=io_uring").status != Some(0) {
        skip!("the kernel refuses io_uring");
    }
    for mode in ["randread", "randwrite", "randrw"] {
        let options = format!("{line} --rw={mode}");
        assert_eq!(share(&format!("{options} --serialize_overlap=1"), "iodepth_level", "1"), 100.0, "{mode}");
        assert!(share(&options, "iodepth_level", "8") > 50.0, "{mode} without it");
        let blocks = format!("{options} --size=16k --serialize_overlap=1");
        assert_eq!(
            share(&blocks, "iodepth_level", "8"),
            0.0,
            "{mode}: four blocks, so at most four in flight"
        );
    }
}

// divergence: `serialize_overlap` with `io_submit_mode=offload`
/// The first read takes two seconds in the file system, which answers the other job's read of the same block after it.
#[test]
fn overlapping_ios_of_two_offloaded_jobs_are_in_flight_together() {
    let dir = Dir::new();
    let stall = Stall { bytes: 4096, at_read: 0, lasts: Duration::from_secs(2) };
    let _mount = need!(Stalling::mount(&dir, stall));
    let line = "--output-format=json --filename=stalling/data --rw=read --bs=4k --direct=1 --ioengine=psync \
                --io_submit_mode=offload --serialize_overlap=1 --name=a --name=b";
    let document = dir.run(line).assert_success().json();
    for job in [0, 1] {
        let read = &document["jobs"][job]["read"];
        assert!(read["clat_ns"]["max"].as_u64() > Some(1_000_000_000), "from the issue on: {read}");
    }
}

// divergence: `io_submit_mode=offload`
#[test]
fn an_offloaded_job_reports_one_io_per_thread_and_waits_in_the_total_latency() {
    let line = "--size=256k --rw=randrw --iodepth=8 --io_submit_mode=offload";
    for engine in ["psync", "sync", "mmap", "null", "libaio"] {
        let document = json(&format!("--name=a --filename=f --bs=4k --ioengine={engine} {line}"));
        let job = &document["jobs"][0];
        assert_eq!(job["error"], 0, "{engine}");
        for (table, bucket) in [("iodepth_level", "1"), ("iodepth_submit", "4"), ("iodepth_complete", "4")] {
            assert_eq!(job[table][bucket], 100.0, "{engine}: {table}");
        }
        let figure = |direction: &str, name: &str, key: &str| job[direction][name][key].as_f64().unwrap();
        let ios: f64 =
            ["read", "write"].map(|direction| job[direction]["total_ios"].as_f64().unwrap()).iter().sum();
        assert_eq!(ios, 64.0, "{engine}");
        for direction in ["read", "write"] {
            assert_eq!(figure(direction, "slat_ns", "N"), 0.0, "{engine}: nothing is submitted");
            assert_eq!(figure(direction, "clat_ns", "N"), figure(direction, "lat_ns", "N"), "{engine}");
            assert!(figure(direction, "lat_ns", "mean") > figure(direction, "clat_ns", "mean"), "{engine}");
        }
    }
}

/// An engine that cannot queue a sync blocks in it: its latency is neither that of the submission nor nothing.
#[test]
fn a_job_that_syncs_each_write_spends_its_time_in_the_latency_of_syncs() {
    for engine in ["psync", "libaio", "io_uring"] {
        let line = format!("--ioengine={engine} --rw=write --bs=4k --size=128k --fdatasync=1");
        if engine != "psync" && Dir::new().run(&format!("--name=a {line}")).status != Some(0) {
            skipped(format_args!("the kernel refuses {engine}"));
            continue;
        }
        let document = json(&format!("--name=a {line}"));
        let job = &document["jobs"][0];
        let latency = &job["sync"]["lat_ns"];
        assert_eq!(
            (job["sync"]["total_ios"].as_u64(), latency["N"].as_u64()),
            (Some(31), Some(31)),
            "{engine}"
        );
        let synced_ms = latency["mean"].as_f64().unwrap() * 31.0 / 1e6;
        let runtime_ms = job["job_runtime"].as_f64().unwrap();
        if runtime_ms < 10.0 {
            skipped(format_args!("a sync takes no time here: 31 in {runtime_ms} ms"));
            continue;
        }
        assert!(synced_ms > 0.5 * runtime_ms, "{engine}: {synced_ms} ms of {runtime_ms} ms");
    }
}

#[test]
fn an_offloaded_job_writes_each_block() {
    let dir = Dir::new();
    for engine in ["psync", "sync", "vsync", "pvsync2", "mmap"] {
        dir.write(engine, vec![0; 1 << 20]);
        let line =
            format!("--name=a --filename={engine} --size=1m --bs=4k --rw=randwrite --buffer_pattern=0x5a");
        let options =
            format!("--ioengine={engine} --iodepth=8 --io_submit_mode=offload --fsync=16 --end_fsync=1");
        dir.run(&format!("{line} {options}")).assert_success();
        assert!(dir.read(engine) == vec![0x5a; 1 << 20], "{engine}");
    }
}

/// Beside fio there is no such case: it hangs now and then.
#[test]
fn offloaded_jobs_of_one_flow_keep_its_proportions() {
    let common =
        "--filename=f --rw=randread --bs=4k --size=8m --ioengine=psync --iodepth=4 --io_submit_mode=offload";
    let rated = "--name=a --flow=2 --io_size=400k --rate_iops=500";
    let document = json(&format!("{common} {rated} --name=b --flow=1 --io_size=200k"));
    for (job, ios) in document["jobs"].as_array().unwrap().iter().zip([100, 50]) {
        assert_eq!(job["read"]["total_ios"], ios, "{}", job["jobname"]);
        let runtime_ms = job["job_runtime"].as_u64().unwrap();
        assert!(
            runtime_ms >= 170,
            "{} ended after {runtime_ms} ms, before the rate of the first allows",
            job["jobname"]
        );
    }
}
