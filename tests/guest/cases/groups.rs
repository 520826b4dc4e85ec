//! The weight of a job's control group of version 2 (`cgroup_weight`).
//!
//! Invariant: the groups are made by fiord, and go with the case.

use std::fs;
use std::path::Path;
use std::process::Command;

use fiord_guest::{ScsiDebug, fiord};

use crate::guest;

/// Where the guest has the hierarchy of version 2.
const ROOT: &str = "/sys/fs/cgroup";

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
    let disk = ScsiDebug::new(&["dev_size_mb=16"]).expect("a disk");
    let path = disk.path();
    let name = path.rsplit('/').next().expect("a name");
    fs::write(format!("/sys/block/{name}/queue/scheduler"), "bfq").expect("the disk has the scheduler");
    let group = Group("fiord-weight");
    let filename = format!("--filename={path}");
    let options = ["--name=a", &filename, "--direct=1", "--rw=read", "--bs=64k", "--size=1m"];
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
