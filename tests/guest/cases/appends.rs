//! Zone Append through a ring to the zoned NVMe namespace.
//!
//! Invariant: what a job counts is what the write pointers say, and the places that it logs are those of the data.

use std::fs;
use std::process::Command;

use fiord_guest::{Finished, fiord, nvme, start};

use crate::compared::bytes;
use crate::guest;
use crate::zones::{reset, wait_for, zones};

/// The zone append size limit of the machine's disk.
const LIMIT: &str = "128k";

fn disk() -> String {
    nvme("zoned").expect("the machine has it")
}

fn words(more: &[&'static str]) -> Vec<String> {
    let target = format!("--filename={}", disk().replace("/dev/nvme", "/dev/ng"));
    let all =
        ["--name=a", "--ioengine=io_uring_cmd", "--zonemode=zbd", "--write_mode=zone_append", "--bs=64k"];
    all.iter().chain(more).map(ToString::to_string).chain([target]).collect()
}

fn appends(more: &[&'static str]) -> Finished {
    let words = words(more);
    fiord(&words.iter().map(String::as_str).collect::<Vec<_>>()).expect("fiord runs")
}

/// Sectors written to each zone that is neither empty nor full.
fn pointers() -> Vec<u64> {
    let pointer = |line: &String| {
        let hex = line.split_once("wptr 0x")?.1.split(' ').next()?;
        u64::from_str_radix(hex, 16).ok().filter(|sectors| *sectors > 0 && !line.contains("(fu)"))
    };
    zones(&disk()).iter().filter_map(pointer).collect()
}

#[test]
fn one_zone_has_as_many_appends_in_flight_as_the_job_and_says_where_they_went() {
    guest!();
    reset(&disk());
    let log = ["--write_lat_log=/run/appends", "--log_offset=1", "--buffer_pattern=0x5c"];
    let load = ["--rw=write", "--size=1z", "--io_size=4m", "--iodepth=8"];
    let run = appends(&[&load[..], &log].concat());
    let job = run.job().expect("a report");
    assert_eq!((run.code, job["write"]["io_bytes"].as_u64()), (Some(0), Some(4 << 20)), "{run:?}");
    assert!(job["iodepth_level"]["8"].as_f64() > Some(50.0), "{run:?}");
    assert_eq!(pointers(), [(4 << 20) / 512]);
    assert!(bytes(&disk(), 0, 4096).iter().all(|byte| *byte == 0x5c));
    let logged = fs::read_to_string("/run/appends_lat.1.log").expect("a log");
    let place = |line: &str| line.split(", ").nth(4).and_then(|place| place.parse::<u64>().ok());
    let mut places: Vec<u64> = logged.lines().filter_map(place).collect();
    places.sort_unstable();
    assert_eq!(places, (0..64).map(|number| number << 16).collect::<Vec<_>>());
}

#[test]
fn appends_fill_zones_and_reset_them_in_the_next_pass() {
    guest!();
    reset(&disk());
    for rw in ["--rw=write", "--rw=randwrite"] {
        let run = appends(&[rw, "--size=2z", "--loops=2", "--iodepth=16"]);
        let job = run.job().expect("a report");
        assert_eq!((run.code, job["write"]["io_bytes"].as_u64()), (Some(0), Some(24 << 20)), "{run:?}");
        let full = zones(&disk()).iter().filter(|line| line.contains("(fu)")).count();
        assert_eq!((full, pointers()), (2, vec![]), "{rw}");
    }
    reset(&disk());
    let both =
        ["--rw=randwrite", "--size=4z", "--number_ios=60", "--iodepth=8", "--numjobs=2", "--group_reporting"];
    let run = appends(&both);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(pointers().iter().sum::<u64>(), 2 * 60 * 128, "{run:?}");
}

#[test]
fn appends_that_cannot_be_are_refused_and_those_that_fail_are_errors() {
    guest!();
    let refused =
        |run: Finished, why: &str| assert!(run.code != Some(0) && run.stderr.contains(why), "{run:?}");
    let plain =
        format!("--filename={}", nvme("plain").expect("the machine has it").replace("/dev/nvme", "/dev/ng"));
    let on_plain = ["--name=a", "--ioengine=io_uring_cmd", &plain, "--write_mode=zone_append", "--rw=write"];
    let zoned = ["--zonemode=zbd", "--zonesize=1m", "--bs=64k", "--size=1m"];
    refused(fiord(&[&on_plain[..], &zoned].concat()).expect("fiord runs"), "needs a zoned namespace");
    refused(appends(&["--rw=write", "--size=1z", "--verify=md5"]), "write_mode=zone_append");
    reset(&disk());
    let run = appends(&["--rw=write", "--size=1z", "--bs=256k"]);
    refused(run, "zone append size limit");
    assert_eq!(pointers(), Vec::<u64>::new(), "more than {LIMIT} at once");
    // The zone becomes full behind the job's back.
    let slow = words(&["--rw=write", "--size=1z", "--iodepth=4", "--rate_iops=20"]);
    let running = start(&slow.iter().map(String::as_str).collect::<Vec<_>>()).expect("fiord starts");
    wait_for(&disk(), "the job has begun", |zones| !zones[0].contains("(em)"));
    let finish = Command::new("blkzone").args(["finish", "--force", "--count", "1", &disk()]).status();
    assert!(finish.expect("blkzone runs").success());
    let run = running.wait().expect("it ends");
    assert_eq!(run.job().expect("a report")["error"], 121, "EREMOTEIO: {run:?}");
    assert!(run.stderr.contains("full"), "{run:?}");
    reset(&disk());
}
