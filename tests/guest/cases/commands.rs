//! SCSI commands through the `sg` driver, and raw flash memory.
//!
//! Invariant: counts are those of Debian's fio on the same device; the block device holds what was written.

use std::process::Command;

use fiord_guest::{Finished, ScsiDebug, fiord, nvme};
use serde_json::{Value, json};

use crate::compared::{both, bytes};
use crate::guest;

/// I/Os and bytes of each direction.
fn counts(run: &Finished) -> Value {
    let job = run.job().unwrap_or_default();
    let of = |direction: &str| json!([job[direction]["total_ios"], job[direction]["io_bytes"]]);
    json!([of("read"), of("write"), of("trim")])
}

#[test]
fn a_scsi_disk_is_driven_as_by_fio_through_both_of_its_devices() {
    guest!();
    let disk = ScsiDebug::new(&["dev_size_mb=64", "lbpu=1", "lbpws=1"]).unwrap();
    for path in [disk.character_device().unwrap(), disk.path()] {
        let target = format!("--filename={path}");
        for load in [&["--rw=write", "--verify=crc32c"][..], &["--rw=randtrim", "--iodepth_batch=4"]] {
            let args =
                [&["--name=s", "--ioengine=sg", &target, "--bs=8k", "--size=256k", "--iodepth=8"], load];
            let [theirs, ours] = both(&args.concat());
            assert_eq!((ours.code, counts(&ours)), (Some(0), counts(&theirs)), "{path} {load:?} {ours:?}");
        }
    }
}

#[test]
fn the_disk_holds_what_was_written_and_trimmed() {
    guest!();
    let disk = ScsiDebug::new(&["dev_size_mb=64", "lbpu=1", "lbprz=1"]).unwrap();
    for path in [disk.character_device().unwrap(), disk.path()] {
        let target = format!("--filename={path}");
        let common = ["--name=s", "--ioengine=sg", &target, "--bs=8k", "--size=128k", "--iodepth=32"];
        let write = ["--rw=randwrite", "--buffer_pattern=0x5a", "--writefua=1", "--fsync=8", "--hipri"];
        let run = fiord(&[&common[..], &write].concat()).unwrap();
        assert_eq!(run.code, Some(0), "{run:?}");
        assert_eq!(bytes(&disk.path(), 0, 128), vec![0x5a; 128 << 10]);
        let run = fiord(&[&common[..], &["--rw=randtrim", "--iodepth_batch=16"]].concat()).unwrap();
        assert_eq!(
            (run.code, run.job().unwrap()["trim"]["total_ios"].as_u64()),
            (Some(0), Some(16)),
            "{run:?}"
        );
        assert_eq!(bytes(&disk.path(), 0, 128), vec![0; 128 << 10]);
    }
}

#[test]
fn each_kind_of_write_does_what_its_command_does() {
    guest!();
    let disk = ScsiDebug::new(&["dev_size_mb=16", "lbpws=1", "lbprz=1"]).unwrap();
    let target = format!("--filename={}", disk.character_device().unwrap());
    let run = |mode: &str, pattern: &str| {
        let (mode, pattern) = (format!("--sg_write_mode={mode}"), format!("--buffer_pattern={pattern}"));
        let args =
            ["--name=s", "--ioengine=sg", &target, "--bs=4k", "--size=16k", "--rw=write", &mode, &pattern];
        let [theirs, ours] = both(&args);
        // Debian's fio does not know all words.
        let is_known = !theirs.stderr.contains("valid values");
        assert!(!is_known || theirs.code == ours.code, "{mode}: {theirs:?} {ours:?}");
        ours
    };
    for mode in ["write", "write_and_verify", "write_same"] {
        // This kernel's scsi_debug may not know the command: then neither program can use it.
        let wrote = run(mode, "0x11");
        match wrote.code {
            Some(0) => assert_eq!(bytes(&disk.path(), 0, 16), vec![0x11; 16 << 10], "{mode}"),
            _ => assert!(mode != "write" && wrote.stderr.contains("the disk refused"), "{wrote:?}"),
        }
        assert_eq!(run("write", "0x22").code, Some(0));
    }
    assert_eq!(run("verify_bytchk_00", "0x33").code, Some(0));
    assert_eq!(run("verify_bytchk_01", "0x22").code, Some(0));
    let differs = run("verify_bytchk_01", "0x33");
    assert!(
        differs.code != Some(0) && differs.stderr.contains("the data on the disk are others"),
        "{differs:?}"
    );
    assert_eq!(run("write_same_ndob", "0x44").code, Some(0));
    assert_eq!(bytes(&disk.path(), 0, 16), vec![0; 16 << 10]);
}

#[test]
fn errors_of_the_medium_end_the_job_or_are_counted() {
    guest!();
    // Sectors 0x1234 to 0x123d cannot be read.
    let disk = ScsiDebug::new(&["dev_size_mb=16", "opts=2"]).unwrap();
    let target = format!("--filename={}", disk.character_device().unwrap());
    let read = ["--name=s", "--ioengine=sg", &target, "--rw=read", "--bs=4k", "--offset=2m", "--size=1m"];
    let ended = fiord(&[&read[..], &["--iodepth=4"]].concat()).unwrap();
    assert!(ended.code != Some(0) && ended.stderr.contains("medium"), "{ended:?}");
    let load = [&read[..], &["--iodepth=4", "--continue_on_error=io"]].concat();
    // Two blocks of 8 sectors contain them.
    let of = |run: &Finished| {
        let job = run.job().unwrap_or_default();
        [&job["total_err"], &job["read"]["io_bytes"]].map(Value::as_u64)
    };
    let [theirs, ours] = both(&load);
    assert_eq!((of(&ours), of(&theirs)), ([Some(2), Some(254 << 12)], of(&ours)), "{ours:?} {theirs:?}");
}

#[test]
fn the_character_device_of_a_mounted_disk_is_not_written_to() {
    guest!();
    let disk = ScsiDebug::new(&["dev_size_mb=64"]).unwrap();
    let run = |program: &str, args: &[&str]| Command::new(program).args(args).status().unwrap().success();
    if !run("mkfs.ext4", &["-q", "-F", &disk.path()]) {
        fiord_testing::skip!("no mkfs.ext4");
    }
    let (point, target) = ("/run/fiord-sg", format!("--filename={}", disk.character_device().unwrap()));
    std::fs::create_dir_all(point).unwrap();
    assert!(run("mount", &[&disk.path(), point]));
    let refused = fiord(&["--name=s", "--ioengine=sg", &target, "--rw=write", "--size=64k"]).unwrap();
    assert!(run("umount", &[point]));
    let message = format!("{} is mounted at {point}", disk.path());
    assert!(refused.code == Some(2) && refused.stderr.contains(&message), "{refused:?}");
}

#[test]
fn flash_is_written_erased_and_verified_as_by_fio() {
    guest!();
    let modprobe = |args: &[&str]| Command::new("modprobe").args(args).status().unwrap().success();
    if !modprobe(&["mtdram", "total_size=1024", "erase_size=64"]) {
        fiord_testing::skip!("the kernel has no mtdram");
    }
    let common = ["--name=m", "--ioengine=mtd", "--filename=/dev/mtd0", "--bs=64k", "--size=512k"];
    for load in [&["--rw=write", "--verify=crc32c"][..], &["--rw=trimwrite", "--skip_bad=1"], &["--rw=trim"]]
    {
        let [theirs, ours] = both(&[&common[..], load].concat());
        assert_eq!((ours.code, counts(&ours)), (Some(0), counts(&theirs)), "{load:?} {ours:?} {theirs:?}");
    }
    // Erased flash has all bits set; what was not trimmed is as it was written.
    let pattern = ["--rw=write", "--buffer_pattern=0x0f"];
    assert_eq!(fiord(&[&common[..], &pattern].concat()).unwrap().code, Some(0));
    let trim = ["--rw=trim", "--offset=64k", "--size=64k"];
    assert_eq!(fiord(&[&common[..4], &trim].concat()).unwrap().code, Some(0));
    let flash = std::fs::read("/dev/mtd0").unwrap();
    assert!(flash[..64 << 10].iter().all(|byte| *byte == 0x0f));
    assert!(flash[64 << 10..128 << 10].iter().all(|byte| *byte == 0xff));
    assert!(flash[128 << 10..512 << 10].iter().all(|byte| *byte == 0x0f));
    let whole =
        fiord(&["--name=m", "--ioengine=mtd", "--filename=/dev/mtd0", "--rw=read", "--bs=64k"]).unwrap();
    assert_eq!(
        whole.job().unwrap()["read"]["io_bytes"],
        1 << 20,
        "the size comes from the device: {whole:?}"
    );
    for option in ["--end_fsync=1", "--fsync_on_close=1"] {
        let write = [
            "--name=m",
            "--ioengine=mtd",
            "--filename=/dev/mtd0",
            "--rw=trimwrite",
            "--bs=64k",
            "--size=128k",
        ];
        let run = fiord(&[&write[..], &[option]].concat()).unwrap();
        assert_eq!(run.code, Some(0), "the device has no fsync: {option} {run:?}");
    }
    assert!(modprobe(&["-r", "mtdram"]));
}

#[test]
fn character_devices_without_fsync_are_closed_as_by_fio() {
    guest!();
    let disk = ScsiDebug::new(&["dev_size_mb=16"]).unwrap();
    let namespace = nvme("plain").unwrap().replace("/dev/nvme", "/dev/ng");
    for (engine, path) in [("sg", disk.character_device().unwrap()), ("io_uring_cmd", namespace)] {
        for option in ["--end_fsync=1", "--fsync_on_close=1"] {
            let (engine, target) = (format!("--ioengine={engine}"), format!("--filename={path}"));
            let args = ["--name=c", &engine, &target, "--rw=write", "--bs=4k", "--size=16k", option];
            let [theirs, ours] = both(&args);
            assert_eq!((ours.code, counts(&ours)), (Some(0), counts(&theirs)), "{engine} {option} {ours:?}");
        }
    }
}
