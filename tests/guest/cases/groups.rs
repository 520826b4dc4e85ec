//! The weight of a job's control group of version 2 (`cgroup_weight`).
//!
//! Invariant: the groups are made by fiord, and go with the case.

use std::fs;
use std::path::Path;
use std::process::Command;

use fiord_guest::fiord;

use crate::guest;

/// Where the guest has the hierarchy of version 2.
const ROOT: &str = "/sys/fs/cgroup";
const SCHEDULER: &str = "/sys/block/sda/queue/scheduler";

/// The scheduler of the SCSI disk, as it was before.
struct Scheduler(String);

impl Scheduler {
    fn set(name: &str) -> Scheduler {
        let listed = fs::read_to_string(SCHEDULER).expect("the disk has schedulers");
        let before = listed.split(['[', ']']).nth(1).expect("one is in brackets").to_string();
        fs::write(SCHEDULER, name).expect("the scheduler is there");
        Scheduler(before)
    }
}

impl Drop for Scheduler {
    fn drop(&mut self) {
        let _ = fs::write(SCHEDULER, &self.0);
    }
}

/// Removes a group that was to stay.
struct Group(&'static str);

impl Group {
    fn file(&self, name: &str) -> Option<String> {
        let text = fs::read_to_string(Path::new(ROOT).join(self.0).join(name)).ok()?;
        Some(text.trim().to_string())
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(Path::new(ROOT).join(self.0));
    }
}

#[test]
fn a_job_has_its_weight_in_version_2_of_control_groups() {
    guest!();
    assert!(Command::new("modprobe").arg("bfq").status().unwrap().success());
    let _scheduler = Scheduler::set("bfq");
    let group = Group("fiord-weight");
    let options = ["--name=a", "--filename=/dev/sda", "--direct=1", "--rw=read", "--bs=64k", "--size=1m"];
    let weight = ["--cgroup=fiord-weight", "--cgroup_weight=321", "--cgroup_nodelete=1"];
    let ran = fiord(&[&options[..], &weight].concat()).expect("fiord runs");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    // The kernel has both: the one of its cost model, and the scheduler's.
    assert_eq!(group.file("io.weight").as_deref(), Some("default 321"));
    let of_scheduler = group.file("io.bfq.weight").unwrap_or_default();
    assert!(of_scheduler.ends_with("321"), "{of_scheduler}");
    let charged = group.file("io.stat").unwrap_or_default();
    let bytes = charged.split_whitespace().find_map(|word| word.strip_prefix("rbytes=")?.parse::<u64>().ok());
    assert_eq!(bytes, Some(1 << 20), "its I/O is charged to the group: {charged}");
    drop(group);
    let ran = fiord(&[&options[..], &weight[..2]].concat()).expect("fiord runs");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!Path::new(ROOT).join("fiord-weight").exists(), "it goes with the run");
}
