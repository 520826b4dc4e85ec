//! Writes that name a placement, on a drive with flexible data placement.
//!
//! Invariant: what a write named is what the driver sent, and what the drive counted as nvme-cli shows it.

#![allow(clippy::unwrap_used, reason = "what a case needs and does not get fails it")]

use std::fs;
use std::process::Command;

use fiord_guest::{Finished, KernelTrace, fiord, nvme};
use serde_json::Value;

use crate::guest;

/// Blocks of 512 bytes in a write of a job below.
const BLOCKS: u64 = 8;

/// Writes of a job below.
const WRITES: usize = 12;

/// The drive's placement identifiers in its order, and how many blocks fit into the unit that each writes to now.
fn room() -> Vec<(u64, u64)> {
    let disk = nvme("placed").unwrap();
    let out = Command::new("nvme").args(["fdp", "status", "--output-format=json", &disk]).output().unwrap();
    let status: Value = serde_json::from_slice(&out.stdout).unwrap();
    let handles = status["ruhss"].as_array().unwrap().iter();
    handles.map(|handle| (handle["pid"].as_u64().unwrap(), handle["ruamw"].as_u64().unwrap())).collect()
}

fn writes(serial: &str, options: &[&str]) -> Finished {
    let target = format!("--filename={}", nvme(serial).unwrap().replace("/dev/nvme", "/dev/ng"));
    let job = ["--name=p", "--ioengine=io_uring_cmd", &target, "--rw=write", "--bs=4k", "--size=48k"];
    fiord(&[&job[..], options].concat()).unwrap()
}

/// The placements that the writes of a job named, which are of this type, in their order.
fn named(directive: &str, options: &[&str]) -> Vec<u64> {
    let trace = KernelTrace::start(&["nvme/nvme_setup_cmd"]).unwrap();
    let run = writes("placed", options);
    let lines = trace.end().unwrap();
    assert_eq!(run.code, Some(0), "{options:?}: {run:?}");
    let of_write = |line: &String| {
        let fields = line.split_once("cmd=(nvme_cmd_write ")?.1.to_string();
        assert!(fields.contains(&format!("ctrl={directive},")), "{options:?}: {fields}");
        let number = fields.split_once("dsmgmt=")?.1.split([',', ')']).next()?.to_string();
        number.parse::<u64>().ok().map(|word| word >> 16)
    };
    let named: Vec<u64> = lines.iter().filter_map(of_write).collect();
    assert_eq!(named.len(), WRITES, "{options:?}: {lines:#?}");
    named
}

/// What the drive wrote by each identifier during a job, in blocks.
fn placed(options: &[&str]) -> Vec<u64> {
    let before = room();
    let run = writes("placed", options);
    assert_eq!(run.code, Some(0), "{options:?}: {run:?}");
    before.iter().zip(room()).map(|((_, before), (_, after))| before - after).collect()
}

#[test]
fn a_drive_places_writes_as_the_job_says() {
    guest!();
    let each = WRITES as u64 * BLOCKS / 4;
    assert_eq!(placed(&[]).iter().sum::<u64>(), WRITES as u64 * BLOCKS, "without a placement, by the first");
    assert_eq!(placed(&["--fdp=1"]), [each; 4]);
    assert_eq!(placed(&["--dataplacement=fdp", "--plids=1,3", "--iodepth=4"]), [0, 2 * each, 0, 2 * each]);
    let random = placed(&["--fdp=1", "--fdp_pli=2-3", "--fdp_pli_select=random"]);
    assert!(random[..2] == [0, 0] && random[2] + random[3] == 4 * each, "{random:?}");
    assert!(random[2] > 0 && random[3] > 0, "{random:?}");
    // 3 writes of the first 12 KiB, 4 of the next 16, and the rest where writes without a placement go.
    fs::write("/run/scheme", "0, 12288, 2\n12288, 28672, 1\n").unwrap();
    let by_offset = ["--dataplacement=fdp", "--plid_select=scheme", "--dp_scheme=/run/scheme"];
    assert_eq!(placed(&by_offset), [5 * BLOCKS, 4 * BLOCKS, 3 * BLOCKS, 0]);
}

#[test]
fn the_driver_sends_the_directive_of_the_job() {
    guest!();
    let all: Vec<u64> = room().into_iter().map(|(identifier, _)| identifier).collect();
    assert_eq!(all, [0, 16384, 1, 16385]);
    assert_eq!(named("0x20", &["--fdp=1"]), all.repeat(WRITES / all.len()));
    assert_eq!(named("0x20", &["--fdp=1", "--plids=3"]), [16385; WRITES]);
    assert_eq!(named("0x10", &["--dataplacement=streams", "--plids=5-7"]), [5, 6, 7].repeat(WRITES / 3));
    assert_eq!(named("0x0", &[]), [0; WRITES]);
}

#[test]
fn a_placement_that_is_not_there_is_refused_before_anything_is_written() {
    guest!();
    fs::write("/run/scheme", "0, 12288, 4\n").unwrap();
    for (serial, options, why) in [
        ("placed", &["--fdp=1", "--plids=4"][..], "there is no placement 4: the namespace has 4"),
        (
            "placed",
            &["--fdp=1", "--plid_select=scheme", "--dp_scheme=/run/scheme"],
            "/run/scheme:1: there is no",
        ),
        ("plain", &["--fdp=1"], "flexible data placement is not enabled"),
    ] {
        let run = writes(serial, options);
        assert!(run.code != Some(0) && run.stderr.contains(why), "{options:?}: {run:?}");
        assert_eq!(run.job().unwrap()["write"]["total_ios"], 0, "{options:?}: {run:?}");
    }
}
