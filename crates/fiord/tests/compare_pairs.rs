//! `fiord compare` on pairs of real runs: what is the same is not called different, and a tenth less is.
//!
//! Invariant: a machine that is not said to be idle is a skip, because everything else that runs is a difference.

#![allow(clippy::print_stderr, reason = "the figures of the pairs are the result that people read")]

use std::fs;

use fiord_testing::need;
use serde_json::Value;

use crate::common::control_group::{ControlGroup, ReadLimit};
use crate::common::{Dir, direct_works_in, finish, fiord, helper, start};

const PAIRS: usize = 10;
/// Of ten pairs, how many must be judged as they were made.
const RIGHT_MIN: usize = 9;

/// The disk under a directory as `MAJOR:MINOR`: limits are for whole disks.
fn disk(dir: &Dir) -> Result<String, String> {
    let number = helper("findmnt", &["-no", "MAJ:MIN", "--target", &dir.path().to_string_lossy()])?;
    let of = |part: &str| fs::read_to_string(format!("/sys/dev/block/{}/{part}", number.trim()));
    let path = if of("partition").is_ok() { "../dev" } else { "dev" };
    of(path).map(|text| text.trim().to_string()).map_err(|error| format!("no single disk below it: {error}"))
}

/// Reads a laid-out file for ten seconds at most at this rate, and stores the run as `tag`. The reads per second.
fn read(dir: &Dir, group: &ControlGroup, limit: u64, tag: &str) -> f64 {
    group.limit_reads(&disk(dir).unwrap(), ReadLimit::IosPerSecond(limit)).unwrap();
    let line = format!(
        "--name=a --filename=f --size=512m --rw=randread --bs=4k --direct=1 --ioengine=libaio --iodepth=32 --time_based \
         --runtime=10 --output-format=json --tag={tag}"
    );
    let mut command = fiord(dir.path(), &line);
    command.env("XDG_STATE_HOME", dir.join("state"));
    finish(start(group.inside(&command))).assert_success().json()["jobs"][0]["read"]["iops"].as_f64().unwrap()
}

/// Whether any figure of two stored runs is called better or worse.
fn differ(dir: &Dir, from: &str, to: &str) -> bool {
    let mut command = fiord(dir.path(), &format!("compare {from} {to} --json"));
    command.env("XDG_STATE_HOME", dir.join("state"));
    let document: Value = finish(start(command)).assert_success().json();
    let rows = document["rows"].as_array().unwrap();
    let verdicts = rows.iter().map(|row| row["verdict"].as_str().unwrap());
    let differing: Vec<&Value> = rows
        .iter()
        .zip(verdicts)
        .filter(|(_, verdict)| matches!(*verdict, "better" | "worse"))
        .map(|(row, _)| row)
        .collect();
    for row in &differing {
        eprintln!("{from} {to}: {row}");
    }
    !differing.is_empty()
}

/// `FIORD_IDLE=1 cargo test -p fiord --test it compare_pairs -- --nocapture` on a machine with nothing else to do: 7 minutes.
#[test]
fn equal_runs_are_the_same_and_a_tenth_less_is_not() {
    need!(fiord_testing::idle_machine());
    let dir = Dir::new();
    need!(direct_works_in(dir.path()));
    need!(disk(&dir));
    let group = need!(ControlGroup::for_io("pairs"));
    const UNLIMITED: u64 = u32::MAX as u64;
    let limit = (read(&dir, &group, UNLIMITED, "first") / 3.0) as u64;
    let differing = |kind: &str, one: u64, other: u64| {
        let pairs = (0..PAIRS).map(|pair| [format!("{kind}-{pair}a"), format!("{kind}-{pair}b")]);
        pairs
            .filter(|[from, to]| {
                read(&dir, &group, one, from);
                read(&dir, &group, other, to);
                differ(&dir, from, to)
            })
            .count()
    };
    let same = PAIRS - differing("same", UNLIMITED, UNLIMITED);
    let less = differing("less", limit, limit * 9 / 10);
    eprintln!("{same} of {PAIRS} equal pairs are the same; {less} of {PAIRS} with a tenth less differ");
    assert!(same >= RIGHT_MIN && less >= RIGHT_MIN, "{same} and {less} of {PAIRS}");
}
