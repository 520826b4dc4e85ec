//! An NVMe disk: queued, polled.
//!
//! Invariant: what a job says it transferred is what the kernel counted.

use std::fs;

use fiord_guest::{fio, fiord, nvme};

use crate::guest;

/// The disk without zones.
pub fn disk() -> String {
    nvme("plain").expect("the machine has one")
}

/// Sectors that the kernel has read from and written to the disk, or to the hidden path to it (`nvme0c0n1`): before
/// Linux 6.4 these are not counted for a disk that could have several paths.
pub fn sectors() -> [u64; 2] {
    let disk = disk().replace("/dev/", "");
    let (subsystem, namespace) = disk.rsplit_once('n').expect("a name such as nvme0n1");
    let all = fs::read_dir("/sys/block").expect("sysfs").flatten();
    let mut names = all.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let is_path = |name: &String| {
        name.starts_with(&format!("{subsystem}c")) && name.ends_with(&format!("n{namespace}"))
    };
    let counted = names.find(is_path).unwrap_or_else(|| disk.clone());
    let text = fs::read_to_string(format!("/sys/block/{counted}/stat")).expect("the disk is there");
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

/// Interrupts that the queues for I/O of the disk have raised.
fn interrupts() -> u64 {
    let serial =
        |name: &str| fs::read_to_string(format!("/sys/class/nvme/{name}/serial")).unwrap_or_default();
    let controllers = fs::read_dir("/sys/class/nvme").expect("the driver is loaded").flatten();
    let names = controllers.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let name = names.into_iter().find(|name| serial(name).trim() == "plain").expect("the machine has one");
    let text = fs::read_to_string("/proc/interrupts").expect("procfs is mounted");
    let of_queue = |line: &&str| {
        let queue = line.split_whitespace().last().and_then(|last| last.strip_prefix(&format!("{name}q")));
        // Queue 0 is for admin commands.
        queue.is_some_and(|queue| queue != "0")
    };
    let counts = |line: &str| -> u64 {
        line.split_whitespace().skip(1).map_while(|word| word.parse::<u64>().ok()).sum()
    };
    text.lines().filter(of_queue).map(counts).sum()
}

#[test]
fn polled_reads_raise_no_interrupts() {
    guest!();
    let [block, character] = [disk(), disk().replace("/dev/nvme", "/dev/ng")];
    for (engine, target) in [("io_uring", &block), ("io_uring_cmd", &character)] {
        let words = [format!("--ioengine={engine}"), format!("--filename={target}")];
        let load = ["--name=p", "--rw=randread", "--bs=4k", "--size=1m", &words[0], &words[1], "--direct=1"];
        let [waiting, polled] = [&[][..], &["--hipri"]].map(|hipri| {
            let before = interrupts();
            let run = fiord(&[&load[..], hipri].concat()).expect("fiord runs");
            assert_eq!(run.code, Some(0), "{run:?}");
            assert_eq!(run.job().unwrap()["read"]["total_ios"], 256);
            interrupts() - before
        });
        // One for each read, but for those that were completed together; opening the disk reads a little too.
        assert!(waiting >= 128 && polled < 64, "{engine}: {waiting} interrupts, {polled} when polled");
    }
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
