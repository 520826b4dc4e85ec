//! Zoned devices of three drivers, with fio beside fiord.
//!
//! Invariant: the device accepts every write, and holds what fio's run of the same job leaves there.

use std::process::Command;
use std::time::{Duration, Instant};

use fiord_guest::{Finished, NullBlk, ScsiDebug, fio, fiord, nvme, start};

use crate::guest;

/// Type, condition and written sectors of each zone, as blkzone reports them.
pub fn zones(path: &str) -> Vec<String> {
    let out = Command::new("blkzone").args(["report", path]).output().expect("blkzone runs");
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

pub fn reset(path: &str) {
    assert!(Command::new("blkzone").args(["reset", path]).status().expect("blkzone runs").success());
}

/// Makes the first zones full, all of which were empty.
fn finish(path: &str, count: u32) {
    let status = Command::new("blkzone").args(["finish", "--count", &count.to_string(), path]).status();
    assert!(status.expect("blkzone runs").success());
}

/// Resets the zones from this sector on.
fn reset_from(path: &str, sector: &str) {
    let status = Command::new("blkzone").args(["reset", "--offset", sector, path]).status();
    assert!(status.expect("blkzone runs").success());
}

fn writes(run: &Finished) -> [serde_json::Value; 2] {
    assert_eq!(run.code, Some(0), "{run:?}");
    let job = run.job().expect("a report");
    [job["write"]["total_ios"].clone(), job["write"]["io_bytes"].clone()]
}

/// Both programs run a sequential write on the same device, which looks the same afterwards.
fn fills_as_fio(path: &str, size: &str) {
    let (target, size) = (format!("--filename={path}"), format!("--size={size}"));
    let args = ["--name=z", &target, &size, "--zonemode=zbd", "--direct=1", "--rw=write", "--bs=256k"];
    reset(path);
    let theirs = writes(&fio(&args).expect("fio runs"));
    let zones_of_theirs = zones(path);
    reset(path);
    let ours = writes(&fiord(&args).expect("fiord runs"));
    assert_eq!(ours, theirs);
    assert_eq!(zones(path), zones_of_theirs);
    // Full zones are reset before they are written again.
    assert_eq!(writes(&fiord(&args).expect("fiord runs")), theirs);
}

/// Two jobs write to the same zones at random, queued.
fn takes_random_writes(path: &str) {
    let target = format!("--filename={path}");
    let args = ["--name=r", &target, "--zonemode=zbd", "--direct=1", "--rw=randwrite", "--bs=64k"];
    let more = ["--ioengine=libaio", "--iodepth=4", "--numjobs=2", "--group_reporting", "--number_ios=60"];
    let run = fiord(&[&args[..], &more].concat()).expect("fiord runs");
    assert_eq!(writes(&run)[0], 120, "{run:?}");
}

#[test]
fn a_zoned_nvme_namespace_is_written_as_by_fio() {
    guest!();
    let path = nvme("zoned").expect("the machine has one");
    fills_as_fio(&path, "16m");
    takes_random_writes(&path);
}

#[test]
fn a_zoned_memory_disk_is_written_as_by_fio() {
    guest!();
    let attributes = [("zoned", "1"), ("zone_size", "4"), ("zone_capacity", "3"), ("zone_max_open", "3")];
    let disk = NullBlk::new("zoned", 32, &attributes).unwrap();
    fills_as_fio(&disk.path(), "12m");
    takes_random_writes(&disk.path());
}

/// What was trimmed, and the zones after it.
fn trimmed(run: &Finished, path: &str) -> (serde_json::Value, Vec<String>) {
    assert_eq!(run.code, Some(0), "{run:?}");
    let job = run.job().expect("a report");
    (serde_json::json!([job["trim"]["total_ios"], job["trim"]["io_bytes"]]), zones(path))
}

#[test]
fn zones_are_trimmed_as_by_fio() {
    guest!();
    let disk = NullBlk::new("ztrims", 4, &[("zoned", "1"), ("zone_size", "1")]).unwrap();
    let path = disk.path();
    let target = format!("--filename={path}");
    let common = ["--name=z", &target, "--zonemode=zbd", "--direct=1"];
    for rw in ["--rw=trim", "--rw=randtrim"] {
        let trim = [&common[..], &[rw, "--bs=1m"]].concat();
        let [theirs, ours] = [fio as fn(&[&str]) -> _, fiord].map(|program| {
            finish(&path, 2);
            trimmed(&program(&trim).expect("it runs"), &path)
        });
        assert_eq!(ours, theirs, "{rw}");
        assert!(ours.1.iter().all(|zone| zone.contains("(em)")), "{ours:?}");
    }
    let part = fiord(&[&common[..], &["--rw=trim", "--bs=64k"]].concat()).expect("fiord runs");
    assert_eq!(part.code, Some(1), "{part:?}");
    assert!(part.stderr.contains("is not the zone size"), "{}", part.stderr);
    let both = fiord(&[&common[..], &["--rw=trimwrite", "--bs=1m"]].concat()).expect("fiord runs");
    assert_eq!(writes(&both)[1], 4 << 20, "{both:?}");
    assert!(zones(&path).iter().all(|zone| zone.contains("(fu)")), "{:?}", zones(&path));
}

#[test]
fn what_is_written_in_zones_is_verified_before_they_are_reset_and_later_by_both_programs() {
    guest!();
    let attributes = [("zoned", "1"), ("zone_size", "1"), ("zone_max_open", "2")];
    let disk = NullBlk::new("zverify", 3, &attributes).unwrap();
    let target = format!("--filename={}", disk.path());
    let common = ["--name=z", &target, "--zonemode=zbd", "--direct=1", "--bs=64k", "--verify=crc32c"];
    let queued =
        ["--rw=randwrite", "--loops=2", "--ioengine=libaio", "--iodepth=4", "--verify_header_format=3.33"];
    let run = fiord(&[&common[..], &queued].concat()).expect("fiord runs");
    assert_eq!(writes(&run)[0], 96, "{run:?}");
    let job = run.job().unwrap();
    assert_eq!(job["read"]["total_ios"], 96, "each write is read back: {run:?}");
    let read = [&common[..], &["--rw=read"]].concat();
    let blocks = [fio(&read), fiord(&read)].map(|run| {
        let run = run.expect("it runs");
        assert_eq!(run.code, Some(0), "{run:?}");
        run.job().unwrap()["read"]["total_ios"].as_u64()
    });
    assert!(blocks[0] == blocks[1] && blocks[0] >= Some(16), "{blocks:?}");
}

#[test]
fn zones_are_reset_early_as_by_fio() {
    guest!();
    let disk = NullBlk::new("zearly", 2, &[("zoned", "1"), ("zone_size", "1")]).unwrap();
    let path = disk.path();
    let target = format!("--filename={path}");
    // In one zone, the order in which zones are drawn does not matter.
    let common =
        ["--name=z", &target, "--zonemode=zbd", "--direct=1", "--rw=randwrite", "--bs=64k", "--size=1m"];
    let early = ["--loops=3", "--zone_reset_threshold=0.5", "--zone_reset_frequency=0.2"];
    let all = [&common[..], &early].concat();
    let [theirs, ours] = [fio as fn(&[&str]) -> _, fiord].map(|program| {
        reset(&path);
        assert_eq!(writes(&program(&all).expect("it runs"))[0], 48);
        zones(&path)
    });
    assert_eq!(ours, theirs);
    assert!(!ours[0].contains("(fu)"), "it was reset early, and not when it was full: {ours:?}");
}

#[test]
fn sequential_writes_reset_a_zone_early_as_by_fio() {
    guest!();
    let disk = NullBlk::new("zseq", 2, &[("zoned", "1"), ("zone_size", "1")]).unwrap();
    let path = disk.path();
    let target = format!("--filename={path}");
    let common = ["--name=z", &target, "--zonemode=zbd", "--direct=1", "--rw=write", "--bs=64k", "--size=1m"];
    let early = ["--loops=2", "--zone_reset_threshold=0.5", "--zone_reset_frequency=0.2"];
    let all = [&common[..], &early].concat();
    let [theirs, ours] = [fio as fn(&[&str]) -> _, fiord].map(|program| {
        reset(&path);
        assert_eq!(writes(&program(&all).expect("it runs"))[0], 32);
        zones(&path)
    });
    assert_eq!(ours, theirs);
}

// divergence: `zonemode=zbd` at random, where
#[test]
fn what_lies_between_capacity_and_end_of_zones_is_read_and_not_written() {
    guest!();
    let attributes = [("zoned", "1"), ("zone_size", "4"), ("zone_capacity", "3")];
    let disk = NullBlk::new("zcap", 32, &attributes).unwrap();
    let path = disk.path();
    let target = format!("--filename={path}");
    let common = ["--name=z", &target, "--zonemode=zbd", "--direct=1", "--bs=64k"];
    let run = fiord(&[&common[..], &["--rw=randwrite", "--size=4z"]].concat()).expect("fiord runs");
    assert_eq!(writes(&run)[1], 12 << 20);
    let full = |zones: &[String]| zones.iter().filter(|zone| zone.contains("(fu)")).count();
    assert_eq!(full(&zones(&path)), 4, "none was reset: {:?}", zones(&path));
    let beyond = [&common[..], &["--rw=read", "--size=8z", "--read_beyond_wp=1"]].concat();
    let [theirs, ours] = [fio(&beyond), fiord(&beyond)].map(|run| {
        let run = run.expect("it runs");
        assert_eq!(run.code, Some(0), "{run:?}");
        run.job().unwrap()["read"]["io_bytes"].clone()
    });
    assert_eq!((&ours, &ours), (&theirs, &serde_json::json!(32 << 20)));
    // The device's own zones are left out, whose length the job does not give.
    reset(&path);
    let run = fiord(&[&common[..], &["--rw=write", "--size=8z", "--io_size=9m", "--zoneskip=4m"]].concat());
    assert_eq!(writes(&run.expect("fiord runs"))[1], 9 << 20);
    let written: Vec<bool> = zones(&path).iter().map(|zone| zone.contains("(fu)")).collect();
    assert_eq!(written[..6], [true, false, true, false, true, false]);
    let blind = ["--name=z", &target, "--direct=1", "--rw=write", "--bs=64k", "--size=4m"];
    let failed = fiord(&blind).expect("fiord runs");
    assert!(failed.code == Some(1) && failed.stderr.contains("zonemode=zbd"), "{failed:?}");
}

/// Waits for a state of the zones that a job brings about.
pub fn wait_for(path: &str, what: &str, is_so: impl Fn(&[String]) -> bool) {
    let since = Instant::now();
    loop {
        let now = zones(path);
        if is_so(&now) {
            return;
        }
        assert!(since.elapsed() < Duration::from_secs(120), "{what}: {now:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_zone_with_part_of_a_failed_write_goes_on_from_there_if_the_job_recovers() {
    guest!();
    const PART: &str = "wptr 0x000100";
    // The disk takes requests of 64 KiB, so that a write of four fails after two of them.
    let attributes = [("zoned", "1"), ("zone_size", "1"), ("max_sectors", "128")];
    let disk = NullBlk::new("zrecover", 4, &attributes).unwrap();
    let path = disk.path();
    let target = format!("--filename={path}");
    let args = ["--name=z", &target, "--zonemode=zbd", "--direct=1", "--ioengine=psync", "--rw=write"];
    let more = ["--bs=256k", "--continue_on_error=write", "--rate_iops=50"];
    let all = [&args[..], &more].concat();
    for recovers in [true, false] {
        reset(&path);
        // The middle of the second zone; the block is good again after it has failed.
        disk.set("badblocks", "+2304-2304").unwrap();
        let ends = match recovers {
            true => ["--recover_zbd_write_error=1", "--time_based", "--runtime=600"],
            false => ["--recover_zbd_write_error=0", "--io_size=25m", "--size=4m"],
        };
        let running = start(&[&all[..], &ends].concat()).expect("fiord starts");
        wait_for(&path, "a part of the write is there", |zones| zones[1].contains(PART));
        disk.set("badblocks", "-2304-2304").unwrap();
        let run = if recovers {
            wait_for(&path, "it goes on", |zones| !zones[1].contains(PART) && !zones[2].contains("(em)"));
            running.interrupt().expect("it ends")
        } else {
            running.wait().expect("it ends")
        };
        let job = run.job().expect("a report");
        assert_eq!(job["first_error"], 5, "EIO: {run:?}");
        assert!(job["total_err"].as_u64() > Some(0), "{run:?}");
        let now = zones(&path);
        // A job that went on may be interrupted between the reset of this zone, in a later pass, and its next write: the reset
        // comes before the wait for the rate, the write after it.
        assert!(recovers || now[2].contains("(em)"), "{now:?}");
        // Before 6.10 the kernel issues all requests of a write, and those that begin where the zone is now succeed.
        if recovers || fiord_guest::kernel_release().version >= (6, 10) {
            assert_eq!(now[1].contains(PART), !recovers, "{now:?}");
        }
    }
}

#[test]
fn a_host_aware_disk_is_an_ordinary_one_for_kernels_that_show_it_so() {
    guest!();
    let disk = ScsiDebug::new(&["dev_size_mb=16", "zbc=aware", "zone_size_mb=4", "zone_nr_conv=1"]).unwrap();
    let zoned = format!("/sys/block/{}/queue/zoned", disk.path().trim_start_matches("/dev/"));
    let model = std::fs::read_to_string(&zoned).unwrap();
    let target = format!("--filename={}", disk.path());
    let args = ["--name=z", &target, "--zonemode=zbd", "--direct=1", "--rw=write", "--bs=512k"];
    let run = fiord(&[&args[..], &["--offset=4m", "--size=8m"]].concat()).expect("fiord runs");
    match model.trim() {
        "host-aware" => assert_eq!(writes(&run)[1], 8 << 20),
        // Linux dropped host-aware zones in 6.8. Both programs emulate zones on what is an ordinary disk then.
        _ => {
            assert!(run.stderr.contains("is not zoned, and zonesize"), "{model}: {run:?}");
            let emulated = [&args[..], &["--offset=4m", "--size=8m", "--zonesize=4m"]].concat();
            let [theirs, ours] = [fio(&emulated), fiord(&emulated)].map(|run| writes(&run.expect("it runs")));
            assert_eq!(ours, theirs);
            assert_eq!(ours[1], 8 << 20);
        }
    }
}

#[test]
fn a_zoned_scsi_disk_is_written_as_by_fio() {
    guest!();
    let disk =
        ScsiDebug::new(&["dev_size_mb=64", "zbc=managed", "zone_size_mb=4", "zone_nr_conv=1"]).unwrap();
    takes_random_writes(&disk.path());
    // Behind the conventional zone, on zones that are empty again.
    reset_from(&disk.path(), "8192");
    let target = format!("--filename={}", disk.path());
    let args = ["--name=z", &target, "--zonemode=zbd", "--direct=1", "--rw=write", "--bs=512k"];
    let run = fiord(&[&args[..], &["--offset=4m", "--size=8m"]].concat()).expect("fiord runs");
    assert_eq!(writes(&run)[1], 8 << 20);
    let full = zones(&disk.path()).iter().filter(|zone| zone.contains("(fu)")).count();
    assert!(full >= 2, "{:?}", zones(&disk.path()));
}

#[test]
fn buffered_writes_and_too_many_open_zones_are_refused() {
    guest!();
    let target = format!("--filename={}", nvme("zoned").expect("the machine has one"));
    let common = ["--name=z", &target, "--zonemode=zbd", "--rw=write", "--bs=64k"];
    let buffered = fiord(&common).expect("fiord runs");
    assert_eq!(buffered.code, Some(1), "{buffered:?}");
    assert!(buffered.stderr.contains("direct=1"), "{}", buffered.stderr);
    let open = fiord(&[&common[..], &["--direct=1", "--max_open_zones=9"]].concat()).expect("fiord runs");
    assert_eq!(open.code, Some(1), "{open:?}");
    assert!(open.stderr.contains("allows 4 open zones"), "{}", open.stderr);
}
