//! Trims of devices that support them, and of one that does not.
//!
//! Invariant: fiord issues and counts what fio does.

use fiord_guest::{KernelTrace, NullBlk, ScsiDebug, fio, fiord, nvme};

use crate::guest;

/// Both programs trim the disk in random order; returns the figures of the job that must agree.
fn both(path: &str, extra: &[&str]) -> [serde_json::Value; 2] {
    let target = format!("--filename={path}");
    let args = [&["--name=t", &target, "--bs=64k", "--size=4m"][..], extra].concat();
    [fio(&args).expect("fio runs"), fiord(&args).expect("fiord runs")].map(|run| {
        assert_eq!(run.code, Some(0), "{run:?}");
        let job = run.job().expect("a report");
        serde_json::json!([job["trim"]["total_ios"], job["trim"]["io_bytes"], job["write"]["io_bytes"]])
    })
}

#[test]
fn a_scsi_disk_is_trimmed_as_by_fio() {
    guest!();
    let disk = ScsiDebug::new(&["dev_size_mb=64", "lbpu=1", "lbpws=1"]).unwrap();
    for rw in ["--rw=trim", "--rw=randtrim", "--rw=trimwrite"] {
        let [theirs, ours] = both(&disk.path(), &[rw]);
        assert_eq!(theirs, ours, "{rw}");
    }
}

#[test]
fn trimmed_blocks_of_a_memory_disk_read_as_zeroes() {
    guest!();
    let disk = NullBlk::new("trims", 64, &[("discard", "1")]).unwrap();
    let target = format!("--filename={}", disk.path());
    let common = ["--name=t", &target, "--bs=4k", "--size=64k", "--direct=1"];
    let fill = [&common[..], &["--rw=write", "--verify=pattern", "--verify_pattern=0xa5", "--do_verify=0"]];
    assert_eq!(fiord(&fill.concat()).expect("fiord runs").code, Some(0));
    assert_eq!(fiord(&[&common[..], &["--rw=trim"]].concat()).expect("fiord runs").code, Some(0));
    let zeroes = ["--rw=read", "--verify=pattern", "--verify_pattern=0x00"];
    let read = fiord(&[&common[..], &zeroes].concat()).expect("fiord runs");
    assert_eq!(read.code, Some(0), "{read:?}");
}

// divergence: trims on a block device that takes no discards
#[test]
fn a_disk_that_only_writes_zeroes_is_trimmed_with_them() {
    guest!();
    let disk = ScsiDebug::new(&["dev_size_mb=16", "lbpu=0", "lbpws=0", "lbpws10=0"]).unwrap();
    let queue = format!("/sys/block/{}/queue", disk.path().trim_start_matches("/dev/"));
    let limit = |name: &str| std::fs::read_to_string(format!("{queue}/{name}")).unwrap().trim().to_string();
    if limit("discard_max_bytes") != "0" || limit("write_zeroes_max_bytes") == "0" {
        fiord_testing::skip!("this kernel's scsi_debug writes no zeroes, or takes discards as well");
    }
    let target = format!("--filename={}", disk.path());
    let common = ["--name=t", &target, "--bs=64k", "--size=1m", "--direct=1"];
    let fill = [&common[..], &["--rw=write", "--verify=pattern", "--verify_pattern=0xa5", "--do_verify=0"]];
    assert_eq!(fiord(&fill.concat()).expect("fiord runs").code, Some(0));
    let run = fiord(&[&common[..], &["--rw=randtrim"]].concat()).expect("fiord runs");
    assert_eq!((run.code, run.job().unwrap()["trim"]["total_ios"].as_u64()), (Some(0), Some(16)), "{run:?}");
    let zeroes = ["--rw=read", "--verify=pattern", "--verify_pattern=0x00"];
    let read = fiord(&[&common[..], &zeroes].concat()).expect("fiord runs");
    assert_eq!(read.code, Some(0), "{read:?}");
}

#[test]
fn a_disk_without_trims_fails_the_job_in_both_programs() {
    guest!();
    let disk = NullBlk::new("notrims", 16, &[]).unwrap();
    let target = format!("--filename={}", disk.path());
    let args = ["--name=t", &target, "--rw=trim", "--bs=4k", "--size=64k"];
    let theirs = fio(&args).expect("fio runs");
    let ours = fiord(&args).expect("fiord runs");
    assert_ne!(theirs.code, Some(0), "{theirs:?}");
    assert_ne!(ours.code, Some(0), "{ours:?}");
    assert!(ours.stderr.contains("trims"), "names the disk: {ours:?}");
}

/// How many entries of this kind a run of fiord puts into rings, and how many are there at the same time.
fn in_rings(kind: &str, args: &[&str]) -> (usize, usize) {
    let trace = KernelTrace::start(&[
        "io_uring/io_uring_submit_req|io_uring_submit_sqe",
        "io_uring/io_uring_complete",
    ])
    .expect("tracefs");
    let run = fiord(args).expect("fiord runs");
    assert_eq!(run.code, Some(0), "{run:?}");
    let (mut count, mut now, mut most) = (0, 0_usize, 0);
    for line in trace.end().expect("tracefs") {
        if line.contains(&format!("opcode {kind},")) {
            (count, now) = (count + 1, now + 1);
            most = most.max(now);
        } else if line.contains("io_uring_complete:") {
            now = now.saturating_sub(1);
        }
    }
    (count, most)
}

#[test]
fn trims_and_syncs_are_queued_in_the_ring() {
    guest!();
    let disk = NullBlk::new("queued", 4, &[("discard", "1")]).unwrap();
    let of = |name: &str| format!("--filename={name}");
    let deep =
        ["--name=t", "--ioengine=io_uring", "--bs=64k", "--size=2m", "--iodepth=16", "--iodepth_batch=16"];
    for (path, kind) in [(disk.path(), "URING_CMD"), ("/run/fiord-holes".to_string(), "FALLOCATE")] {
        let target = of(&path);
        let fill = ["--rw=write", "--buffer_pattern=0xa5"];
        assert_eq!(fiord(&[&deep[..], &[&target], &fill].concat()).expect("fiord runs").code, Some(0));
        let (count, at_once) = in_rings(kind, &[&deep[..], &[&target, "--rw=randtrim"]].concat());
        if kind == "URING_CMD" && fiord_guest::kernel_release().version < (6, 12) {
            assert!(count <= 1, "{path}: this kernel queues no discards, but {count} are in the ring");
        } else {
            // The kernel was asked once whether it queues discards.
            assert!(
                matches!(count, 32 | 33) && at_once > 1,
                "{path}: {count} in the ring, {at_once} at once"
            );
        }
        let left = std::fs::read(&path).unwrap();
        assert!(left[..2 << 20].iter().all(|byte| *byte == 0), "{path}: not all that was queued was done");
        let (count, _) = in_rings("FSYNC", &[&deep[..], &[&target, "--rw=write", "--fsync=4"]].concat());
        assert_eq!(count, 7, "{path}: 32 writes with a sync after every fourth but the last");
    }
    let _ = std::fs::remove_file("/run/fiord-holes");
}

#[test]
fn a_polled_ring_trims_with_calls_of_its_own() {
    guest!();
    let target = format!("--filename={}", nvme("plain").expect("the machine has one"));
    let args =
        ["--name=t", "--ioengine=io_uring", "--direct=1", "--hipri=1", "--bs=64k", "--size=1m", &target];
    let run = fiord(&[&args[..], &["--rw=trimwrite"]].concat()).expect("fiord runs");
    let job = run.job().unwrap();
    let counts = [&job["trim"]["total_ios"], &job["write"]["total_ios"]].map(serde_json::Value::as_u64);
    assert_eq!((run.code, counts), (Some(0), [Some(16), Some(16)]), "{run:?}");
}
