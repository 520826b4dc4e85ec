//! NVMe commands through a ring to the character devices of namespaces.
//!
//! Invariant: what the character device was given is what the block device holds, where there is one; counts are those of
//! Debian's fio.

use std::fs;
use std::process::Command;

use fiord_guest::{Finished, KernelTrace, fiord, nvme};
use serde_json::{Value, json};

use crate::compared::{both, bytes};
use crate::guest;

/// The character device of the disk with this serial number.
fn namespace(serial: &str) -> String {
    nvme(serial).expect("the machine has it").replace("/dev/nvme", "/dev/ng")
}

fn words<'a>(target: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["--name=c", "--ioengine=io_uring_cmd", target], more].concat()
}

/// I/Os and bytes of each direction, and the error.
fn counts(run: &Finished) -> Value {
    let job = run.job().expect("a report");
    let of = |direction: &str| json!([job[direction]["total_ios"], job[direction]["io_bytes"]]);
    json!([of("read"), of("write"), of("trim"), job["error"]])
}

#[test]
fn counts_are_those_of_fio_on_short_and_long_blocks() {
    guest!();
    for serial in ["plain", "wide"] {
        let target = format!("--filename={}", namespace(serial));
        for rw in ["--rw=randread", "--rw=write"] {
            let load = [rw, "--bs=8k", "--size=256k", "--iodepth=4", "--verify=crc32c"];
            let [theirs, ours] = both(&words(&target, &load[..if rw == "--rw=write" { 5 } else { 4 }]));
            assert_eq!((counts(&theirs), theirs.code), (counts(&ours), ours.code), "{serial}: {ours:?}");
            assert_eq!(ours.code, Some(0), "{ours:?}");
        }
    }
}

#[test]
fn the_block_device_holds_what_was_written_and_trimmed() {
    guest!();
    let disk = nvme("plain").unwrap();
    let target = format!("--filename={}", namespace("plain"));
    let pattern = ["--rw=write", "--bs=16k", "--size=64k", "--offset=128k", "--buffer_pattern=0xa5"];
    for ring in [
        &["--iodepth=4"][..],
        &["--fixedbufs", "--registerfiles", "--fsync=1"],
        &["--nonvectored=0", "--force_async=2"],
        &["--hipri", "--writefua=1"],
        &["--sqthread_poll=1"],
    ] {
        let run = fiord(&words(&target, &[&pattern[..], ring].concat())).expect("fiord runs");
        assert_eq!(run.code, Some(0), "{ring:?}: {run:?}");
        assert_eq!(bytes(&disk, 128, 64), vec![0xa5; 64 << 10], "{ring:?}");
        let trim = ["--rw=trim", "--bs=16k", "--size=64k", "--offset=128k"];
        let run = fiord(&words(&target, &[&trim[..], ring].concat())).expect("fiord runs");
        assert_eq!(
            (run.code, run.job().unwrap()["trim"]["total_ios"].as_u64()),
            (Some(0), Some(4)),
            "{run:?}"
        );
        assert_eq!(bytes(&disk, 128, 64), vec![0; 64 << 10], "{ring:?}");
    }
}

#[test]
fn zeroes_and_uncorrectable_blocks_are_written_by_their_commands() {
    guest!();
    let disk = nvme("plain").unwrap();
    let target = format!("--filename={}", namespace("plain"));
    let place = ["--bs=4k", "--size=16k", "--offset=256k"];
    let write = |more: &[&str]| fiord(&words(&target, &[&place[..], &["--rw=write"], more].concat()));
    assert_eq!(write(&["--buffer_pattern=0x77"]).unwrap().code, Some(0));
    let run = write(&["--write_mode=zeroes"]).unwrap();
    assert_eq!((run.code, run.job().unwrap()["write"]["total_ios"].as_u64()), (Some(0), Some(4)), "{run:?}");
    assert_eq!(bytes(&disk, 256, 16), vec![0; 16 << 10]);
    let run = write(&["--write_mode=verify"]).unwrap();
    assert_eq!(run.code, Some(0), "{run:?}");
    let all =
        commands(&words(&target, &[&place[..], &["--rw=write", "--write_mode=write/50:zeroes/"]].concat()));
    let count = |name: &str| all.iter().filter(|line| line.split(' ').next() == Some(name)).count();
    assert_eq!((count("write"), count("write_zeroes")), (2, 2), "{all:#?}");
    // The emulator has no Write Uncorrectable.
    let run = write(&["--write_mode=uncor"]).unwrap();
    assert_ne!(run.code, Some(0), "{run:?}");
    assert!(run.stderr.contains("the controller does not have this command"), "{run:?}");
}

/// The commands that the driver sends for a run of fiord on a namespace of 512-byte blocks: a command's name, and the fields
/// that the driver prints of it.
fn commands(args: &[&str]) -> Vec<String> {
    let trace = KernelTrace::start(&["nvme/nvme_setup_cmd"]).expect("tracefs");
    let run = fiord(args).expect("fiord runs");
    let lines = trace.end().expect("tracefs");
    assert_eq!(run.code, Some(0), "{run:?}");
    let of_io = lines.iter().filter(|line| !line.contains("qid=0,"));
    let named = |line: &String| {
        let command = line.split_once("cmd=(")?.1.trim_end_matches(')');
        // Linux 6.1 has no name for Verify.
        Some(command.trim_start_matches("nvme_cmd_").replacen("0xc ", "verify ", 1))
    };
    of_io.filter_map(named).collect()
}

#[test]
fn the_driver_sends_the_commands_and_flags_of_the_job() {
    guest!();
    let plain = format!("--filename={}", namespace("plain"));
    let guarded = format!("--filename={}", namespace("guarded"));
    let place = ["--bs=4k", "--size=16k", "--offset=512k"];
    let sent = |target: &str, load: &[&str], command: &str, flags: &str| {
        let all = commands(&words(target, &[&place[..], load].concat()));
        let of_kind = |line: &&String| line.split(' ').next() == Some(command) && line.contains(flags);
        assert_eq!(all.iter().filter(of_kind).count(), 4, "{load:?}: {command} {flags} in {all:#?}");
        all
    };
    // Force unit access is bit 14 of the control field, deallocation bit 9, the checks bits 10 to 13.
    let all = sent(&plain, &["--rw=write", "--writefua=1", "--fsync=2"], "write", "len=7, ctrl=0x4000");
    assert_eq!(
        all.iter().filter(|line| line.starts_with("flush")).count(),
        1,
        "not after the last: {all:#?}"
    );
    sent(&plain, &["--rw=write", "--readfua=1"], "write", "ctrl=0x0,");
    sent(&plain, &["--rw=read", "--readfua=1"], "read", "ctrl=0x4000");
    sent(&plain, &["--rw=write", "--write_mode=zeroes", "--deac=1"], "write_zeroes", "ctrl=0x200");
    sent(&plain, &["--rw=write", "--write_mode=verify"], "verify", "");
    sent(&plain, &["--rw=trim"], "dsm", "nr=0, attributes=4");
    let checks = "--pi_chk=GUARD,REFTAG";
    sent(&guarded, &["--rw=write", checks], "write", "ctrl=0x3400");
    sent(&guarded, &["--rw=read", checks, "--pi_act=0", "--md_per_io_size=64"], "read", "ctrl=0x1400");
}

#[test]
fn metadata_and_protection_information_are_inserted_made_and_checked() {
    guest!();
    for (serial, bs, own_bs) in [("guarded", "4096", "4096"), ("mixed", "8192", "8224")] {
        let target = format!("--filename={}", namespace(serial));
        let checks = "--pi_chk=GUARD,REFTAG,APPTAG";
        let verify = ["--rw=write", "--size=200k", "--verify=crc32c", "--iodepth=4", checks];
        let write = ["--rw=write", "--size=200k", "--iodepth=4", checks];
        let inserted = format!("--bs={bs}");
        let run = fiord(&words(&target, &[&verify[..], &[&inserted]].concat())).expect("fiord runs");
        assert_eq!(run.code, Some(0), "inserted by the controller: {run:?}");
        let own = [format!("--bs={own_bs}"), "--pi_act=0".to_string(), "--md_per_io_size=64".to_string()];
        let own: Vec<&str> = own.iter().map(String::as_str).collect();
        let run = fiord(&words(&target, &[&write[..], &own].concat())).expect("fiord runs");
        assert_eq!(run.code, Some(0), "made by the job: {run:?}");
        let read = ["--rw=read", "--size=200k", "--iodepth=4", checks];
        let run = fiord(&words(&target, &[&read[..], &own].concat())).expect("fiord runs");
        assert_eq!(run.code, Some(0), "checked by both: {run:?}");
        if serial == "mixed" {
            let run = fiord(&words(&target, &[&verify[..], &own].concat())).expect("fiord runs");
            assert!(run.stderr.contains("use pi_chk="), "metadata are not data of the job: {run:?}");
        }
        // The controller wrote another tag than is now expected.
        let read = ["--rw=read", "--size=64k", "--apptag=7", checks];
        let run = fiord(&words(&target, &[&read[..], &own].concat())).expect("fiord runs");
        assert!(run.code != Some(0) && run.stderr.contains("protection information"), "{run:?}");
    }
}

// divergence: `direct=1` with `ioengine=io_uring_cmd`
#[test]
fn commands_are_direct_whatever_the_job_says() {
    guest!();
    let target = format!("--filename={}", namespace("plain"));
    let read = ["--rw=read", "--bs=4k", "--size=16k", "--direct=1"];
    let [theirs, ours] = both(&words(&target, &read));
    assert!(theirs.code != Some(0) && ours.code == Some(0), "{theirs:?} {ours:?}");
}

#[test]
fn room_for_metadata_that_is_missing_and_parts_of_blocks_are_explained() {
    guest!();
    let target = format!("--filename={}", namespace("guarded"));
    let run = fiord(&words(&target, &["--rw=read", "--bs=4k", "--size=16k", "--pi_act=0"])).unwrap();
    assert!(run.code != Some(0) && run.stderr.contains("md_per_io_size="), "{run:?}");
    let target = format!("--filename={}", namespace("wide"));
    let run = fiord(&words(&target, &["--rw=read", "--bs=512", "--size=16k"])).unwrap();
    assert!(run.code != Some(0) && run.stderr.contains("blocks of 4096 bytes"), "{run:?}");
    let target = format!("--filename={}", nvme("plain").unwrap());
    let run = fiord(&words(&target, &["--rw=read", "--bs=4k", "--size=16k"])).unwrap();
    assert!(run.code != Some(0) && run.stderr.contains(&namespace("plain")), "{run:?}");
}

#[test]
fn zones_are_written_and_reset_by_commands() {
    guest!();
    let target = format!("--filename={}", namespace("zoned"));
    // Another case may have left zones that are written in part, at whose pointers a job goes on.
    let reset = Command::new("blkzone").args(["reset", &nvme("zoned").unwrap()]).status();
    assert!(reset.is_ok_and(|status| status.success()));
    let zoned = ["--zonemode=zbd", "--bs=64k", "--size=2z"];
    let run = fiord(&words(&target, &[&zoned[..], &["--rw=write", "--verify=crc32c"]].concat())).unwrap();
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(run.job().unwrap()["write"]["io_bytes"], 12 << 20);
    let full = zones_in_state("fu");
    let run = fiord(&words(&target, &[&zoned[..], &["--rw=trim", "--bs=8m"]].concat())).unwrap();
    assert_eq!((run.code, run.job().unwrap()["trim"]["total_ios"].as_u64()), (Some(0), Some(2)), "{run:?}");
    assert!(full >= 2 && zones_in_state("fu") == full - 2, "{full}");
}

/// How many zones of the zoned disk blkzone shows in this state.
fn zones_in_state(state: &str) -> usize {
    let disk = nvme("zoned").expect("the machine has it");
    let out = Command::new("blkzone").args(["report", &disk]).output().expect("blkzone runs");
    String::from_utf8_lossy(&out.stdout).matches(&format!("({state})")).count()
}

#[test]
fn the_character_device_of_a_disk_in_use_is_not_written_to() {
    guest!();
    let disk = nvme("worn").unwrap();
    let target = format!("--filename={}", namespace("worn"));
    let run = |program: &str, args: &[&str]| Command::new(program).args(args).status().unwrap().success();
    if !run("mkfs.ext4", &["-q", "-F", &disk]) {
        fiord_testing::skip!("no mkfs.ext4");
    }
    let point = "/run/fiord-mounted";
    fs::create_dir_all(point).unwrap();
    assert!(run("mount", &[&disk, point]));
    let write = ["--rw=write", "--bs=4k", "--size=64k"];
    let refused = fiord(&words(&target, &write)).unwrap();
    let read = fiord(&words(&target, &["--rw=read", "--bs=4k", "--size=64k"])).unwrap();
    assert!(run("umount", &[point]));
    let message = format!("{disk} is mounted at {point}");
    assert!(refused.code == Some(2) && refused.stderr.contains(&message), "{refused:?}");
    assert_eq!(read.code, Some(0), "{read:?}");
    // While a job writes, nobody mounts it.
    let long = ["--rw=write", "--bs=4k", "--size=1m", "--time_based", "--runtime=20"];
    let writes = fiord_guest::start(&words(&target, &long)).and_then(|writes| writes.at_work("c")).unwrap();
    let mounted = run("mount", &[&disk, point]);
    let ended = writes.interrupt().unwrap();
    assert!(!mounted, "{ended:?}");
    assert!(ended.job().unwrap()["write"]["total_ios"].as_u64().unwrap() > 0, "{ended:?}");
}

#[test]
fn what_was_written_is_compared_by_the_drive() {
    guest!();
    let disk = nvme("plain").unwrap();
    let target = format!("--filename={}", namespace("plain"));
    let load = ["--rw=randwrite", "--bs=4k", "--size=32k", "--offset=1m", "--iodepth=4", "--verify=crc32c"];
    let compare = [&load[..], &["--verify_mode=compare"]].concat();
    for (serial, more) in [("plain", &[][..]), ("guarded", &["--pi_act=0", "--md_per_io_size=64"])] {
        let target = format!("--filename={}", namespace(serial));
        for (mode, reads, compares) in [("--verify_mode=read", 8, 0), ("--verify_mode=compare", 0, 8)] {
            let all = commands(&words(&target, &[&load[..], more, &[mode]].concat()));
            // The kernel reads the disk ahead as well.
            let is_own = |line: &&String| !line.contains("len=255,");
            let is = |line: &&String, name: &str| line.split(' ').next() == Some(name);
            let count = |name: &str| all.iter().filter(is_own).filter(|line| is(line, name)).count();
            assert_eq!(
                (count("read"), count("compare"), count("write")),
                (reads, compares, 8),
                "{mode}: {all:#?}"
            );
        }
    }
    // A block that is changed before it is compared: the last are written after seconds.
    let trim = [&["--rw=trim"], &load[1..5]].concat();
    assert_eq!(fiord(&words(&target, &trim)).unwrap().code, Some(0));
    let slow =
        fiord_guest::start(&words(&target, &[&compare[..], &["--rw=write", "--rate_iops=1"]].concat()));
    let slow = slow.unwrap();
    while bytes(&disk, 1024, 4).iter().all(|byte| *byte == 0) && slow.memory_bytes().is_some() {
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    let changed = std::fs::File::options().write(true).open(&disk).and_then(|file| {
        use std::os::unix::fs::FileExt as _;
        file.write_all_at(&[0x77; 4096], 1 << 20)?;
        file.sync_all()
    });
    changed.unwrap();
    let ran = slow.wait().unwrap();
    assert!(ran.code != Some(0) && ran.stderr.contains("verify_mode=compare"), "{ran:?}");
    // A job that has not written the blocks does not know all of their bytes.
    let read = [&["--rw=read"], &compare[1..]].concat();
    let refused = fiord(&words(&target, &read)).unwrap();
    assert!(refused.code == Some(1) && refused.stderr.contains("verify_mode"), "{refused:?}");
}

#[test]
fn a_trim_has_as_many_ranges_as_the_job_says() {
    guest!();
    let disk = nvme("plain").unwrap();
    let target = format!("--filename={}", namespace("plain"));
    let place = ["--bs=4k", "--size=80k", "--offset=2m", "--iodepth=2"];
    let write = [&place[..], &["--rw=write", "--buffer_pattern=0xa5"]].concat();
    for rw in ["--rw=trim", "--rw=randtrim"] {
        assert_eq!(fiord(&words(&target, &write)).unwrap().code, Some(0));
        assert_eq!(bytes(&disk, 2048, 80), vec![0xa5; 80 << 10]);
        let all = commands(&words(&target, &[&place[..], &[rw, "--num_range=8"]].concat()));
        let lists: Vec<&String> = all.iter().filter(|line| line.starts_with("dsm ")).collect();
        let with = |ranges: &str| lists.iter().filter(|line| line.contains(ranges)).count();
        // 20 blocks: twice 8 ranges, and the 4 that are left. The driver prints the number that the command has, one less.
        assert_eq!((lists.len(), with("nr=7,"), with("nr=3,")), (3, 2, 1), "{rw}: {all:#?}");
        assert_eq!(bytes(&disk, 2048, 80), vec![0; 80 << 10], "{rw}");
    }
    let run =
        fiord(&words(&target, &[&place[..], &["--rw=randtrim", "--num_range=4", "--number_ios=3"]].concat()));
    let run = run.unwrap();
    let job = run.job().unwrap();
    assert_eq!(
        (&job["trim"]["total_ios"], &job["trim"]["io_bytes"]),
        (&json!(3), &json!(48 << 10)),
        "{run:?}"
    );
    let refused =
        fiord(&words(&target, &[&place[..], &["--rw=randtrim", "--num_range=257"]].concat())).unwrap();
    assert!(refused.code == Some(1) && refused.stderr.contains("at most 256 ranges"), "{refused:?}");
}
