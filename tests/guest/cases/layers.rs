//! `fiord watch` of what is above disks: an array that is resynchronised, and a mapped device that delays its reads.
//!
//! Invariant: arrays and devices are gone with their case.

#![allow(clippy::unwrap_used, reason = "what a case needs and does not get fails it")]

use std::fs;
use std::process::{Child, Command, Stdio};

use fiord_guest::{DeviceMapper, NullBlk};
use serde_json::Value;

use crate::guest;

/// An array of two mirrors without metadata, which the kernel synchronises.
struct Mirrors {
    disks: [NullBlk; 2],
}

impl Mirrors {
    const MIB: u32 = 96;
    const SETTINGS: &str = "/sys/block/md0/md";

    fn new() -> Mirrors {
        for module in ["md-mod", "raid1"] {
            assert!(Command::new("modprobe").arg(module).status().unwrap().success(), "{module}");
        }
        fs::write("/sys/module/md_mod/parameters/new_array", "md0").unwrap();
        let mirrors = Mirrors {
            disks: ["mirror1", "mirror2"].map(|name| NullBlk::new(name, Mirrors::MIB, &[]).unwrap()),
        };
        let kib = (Mirrors::MIB << 10).to_string();
        for (file, value) in
            [("metadata_version", "none"), ("level", "raid1"), ("raid_disks", "2"), ("component_size", &kib)]
        {
            Mirrors::set(file, value);
        }
        for (slot, disk) in mirrors.names().iter().enumerate() {
            // Requests as small as those of other work.
            fs::write(format!("/sys/block/{disk}/queue/max_sectors_kb"), "64").unwrap();
            Mirrors::set("new_dev", fs::read_to_string(format!("/sys/block/{disk}/dev")).unwrap().trim());
            Mirrors::set(&format!("dev-{disk}/slot"), &slot.to_string());
        }
        Mirrors::set("resync_start", "0");
        Mirrors::set("array_state", "active");
        Mirrors::set("sync_speed_max", "4000");
        mirrors
    }

    fn names(&self) -> [String; 2] {
        self.disks.each_ref().map(|disk| disk.path().trim_start_matches("/dev/").to_string())
    }

    fn set(file: &str, value: &str) {
        let path = format!("{}/{file}", Mirrors::SETTINGS);
        fs::write(&path, value).unwrap_or_else(|error| panic!("{path}: {value}: {error}"));
    }
}

impl Drop for Mirrors {
    fn drop(&mut self) {
        for (file, value) in [("sync_action", "frozen"), ("array_state", "clear")] {
            let _ = fs::write(format!("{}/{file}", Mirrors::SETTINGS), value);
        }
    }
}

fn fiord() -> Command {
    let mut fiord = Command::new(std::env::var_os("FIORD").expect("FIORD names the binary"));
    fiord.current_dir("/run").env("XDG_STATE_HOME", "/run/state");
    fiord
}

/// Reads of 4 KiB at random, until it is dropped.
struct Reader(Child);

impl Reader {
    fn of(target: &str, options: &[&str]) -> Reader {
        let mut reads = fiord();
        reads.args(["--name=r", "--rw=randread", "--bs=4k", "--direct=1", "--runtime=1h", "--time_based"]);
        reads.arg(format!("--filename={target}")).args(options).stdout(Stdio::null());
        Reader(reads.spawn().expect("fiord runs"))
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What watching these seconds found.
fn watched(target: &str, seconds: u32) -> Value {
    let ran = fiord().args(["watch", target, "--json", &format!("--for={seconds}s")]).output().unwrap();
    assert!(ran.status.success(), "{ran:?}");
    serde_json::from_slice(&ran.stdout).unwrap()
}

/// The sentences of this conclusion.
fn said<'d>(document: &'d Value, code: &str) -> Vec<&'d str> {
    let found = document["conclusions"].as_array().unwrap().iter().filter(|found| found["code"] == code);
    found.map(|found| found["sentence"].as_str().unwrap()).collect()
}

#[test]
fn a_resync_is_named_on_both_mirrors_and_nobody_else_is() {
    guest!();
    let mirrors = Mirrors::new();
    let target = "/dev/md0";
    let reader = Reader::of(target, &["--rate_iops=5"]);
    let document = watched(target, 10);
    let found = said(&document, "resync");
    let state = fs::read_to_string("/proc/mdstat").unwrap_or_default();
    for disk in mirrors.names() {
        let is_of =
            |said: &&&str| said.starts_with("The resync of md0, ") && said.ends_with(&format!("of {disk}."));
        assert_eq!(found.iter().filter(is_of).count(), 1, "{disk}: {document:#} {state}");
    }
    assert!(!document["verdict"].as_str().unwrap().contains("fiord ("), "{document:#}");

    // An array that does only what it is asked for.
    Mirrors::set("sync_action", "frozen");
    drop(reader);
    let _reader = Reader::of(target, &[]);
    let document = watched(target, 5);
    assert_eq!(said(&document, "resync"), [""; 0], "{document:#}");
    let rows = document["devices"].as_array().unwrap();
    let array = rows.iter().find(|row| row["device"] == "md0").unwrap();
    assert!(array["requests"].as_u64() > Some(0), "it is not idle: {document:#}");
}

#[test]
fn a_layer_that_delays_its_reads_is_told_from_the_disk_below() {
    guest!();
    assert!(Command::new("modprobe").arg("dm-delay").status().unwrap().success());
    let disk = NullBlk::new("below", 64, &[]).unwrap();
    let delayed = |ms: u32| {
        let table = format!("0 {} delay {} 0 {ms}", 64 << 11, disk.path());
        DeviceMapper::new(&format!("delayed-{ms}"), &table).unwrap()
    };
    for (ms, is_slow) in [(100, true), (0, false)] {
        let device = delayed(ms);
        let reader = Reader::of(&device.path(), &["--ioengine=libaio", "--iodepth=8"]);
        let document = watched(&device.path(), 8);
        drop(reader);
        let found = said(&document, "slow-layer");
        assert_eq!(found.len(), usize::from(is_slow), "{ms} ms: {document:#}");
        assert!(
            found.iter().all(|said| said.starts_with("dm-") && said.contains(" and those of below ")),
            "{found:?}"
        );
    }
}
