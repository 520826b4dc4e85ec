//! An NVMe disk: queued, polled.
//!
//! Invariant: what a job says it transferred is what the kernel counted.

use std::fs;

use fiord_guest::{fio, fiord, nvme};

use crate::guest;

/// The disk without zones.
fn disk() -> String {
    nvme("plain").expect("the machine has one")
}

/// Sectors that the kernel has read from and written to the disk.
fn sectors() -> [u64; 2] {
    let text =
        fs::read_to_string(disk().replace("/dev/", "/sys/block/") + "/stat").expect("the disk is there");
    let fields: Vec<u64> = text.split_whitespace().filter_map(|field| field.parse().ok()).collect();
    [fields[2], fields[6]]
}

#[test]
fn a_queued_write_and_its_reading_back_agree_with_the_kernel() {
    guest!();
    let before = sectors();
    let target = format!("--filename={}", disk());
    let args = ["--name=q", &target, "--ioengine=io_uring", "--direct=1", "--iodepth=8"];
    let all = [&args[..], &["--rw=write", "--bs=16k", "--size=1m", "--verify=crc32c"]].concat();
    let run = fiord(&all).expect("fiord runs");
    assert_eq!(run.code, Some(0), "{run:?}");
    let job = run.job().unwrap();
    assert_eq!(job["write"]["io_bytes"], 1 << 20);
    assert_eq!(job["read"]["io_bytes"], 1 << 20);
    let after = sectors();
    assert_eq!(after[1] - before[1], 2048);
    // Opening the disk reads from it too.
    assert!(after[0] - before[0] >= 2048, "{before:?} {after:?}");
}

#[test]
fn polled_reads_are_completed() {
    guest!();
    let target = format!("--filename={}", disk());
    let args = ["--name=p", &target, "--ioengine=io_uring", "--hipri=1", "--direct=1"];
    let all = [&args[..], &["--rw=randread", "--bs=4k", "--size=1m", "--iodepth=4"]].concat();
    let run = fiord(&all).expect("fiord runs");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(run.job().unwrap()["read"]["total_ios"], 256);
}

#[test]
fn each_program_verifies_what_the_other_wrote() {
    guest!();
    let target = format!("--filename={}", disk());
    let common = ["--name=v", "--direct=1", "--bs=4k", "--size=256k", "--verify=sha256", &target];
    let write = [&common[..], &["--rw=write", "--do_verify=0"]].concat();
    let read = [&common[..], &["--rw=read"]].concat();
    let old = ["--verify_header_format=3.33"];
    assert_eq!(fio(&write).expect("fio runs").code, Some(0));
    assert_eq!(fiord(&read).expect("fiord runs").code, Some(0));
    assert_eq!(fiord(&[&write[..], &old].concat()).expect("fiord runs").code, Some(0));
    assert_eq!(fio(&read).expect("fio runs").code, Some(0));
}
