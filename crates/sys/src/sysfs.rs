//! `/sys`: processors, memory nodes and block devices as the kernel lists them.
//!
//! Invariant: everything is read below one root directory, so that a test can hand in a made-up machine; nothing is
//! cached.

use crate::stat::DeviceNumber;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

pub mod block;

pub use block::{BlockDevice, IoCounters, Queue};

/// The tree of facts, usually at `/sys`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sysfs {
    root: PathBuf,
}

impl Default for Sysfs {
    fn default() -> Sysfs {
        Sysfs::at("/sys")
    }
}

impl Sysfs {
    /// A tree somewhere else.
    pub fn at(root: impl Into<PathBuf>) -> Sysfs {
        Sysfs { root: root.into() }
    }

    /// The processors that are online, in order.
    pub fn online_cpus(&self) -> io::Result<Vec<u32>> {
        self.list("devices/system/cpu/online")
    }

    /// The memory nodes that are online, in order.
    pub fn online_nodes(&self) -> io::Result<Vec<u32>> {
        self.list("devices/system/node/online")
    }

    /// The processors of a memory node, in order.
    pub fn node_cpus(&self, node: u32) -> io::Result<Vec<u32>> {
        self.list(&format!("devices/system/node/node{node}/cpulist"))
    }

    /// The block device of this name (`vda`, `vda1`, `dm-0`).
    pub fn block_device(&self, name: &str) -> io::Result<BlockDevice> {
        BlockDevice::at(&self.root.join("class/block").join(name))
    }

    /// The block device with this number. `NotFound` where there is none, as for file systems without one.
    pub fn block_device_of(&self, number: DeviceNumber) -> io::Result<BlockDevice> {
        BlockDevice::at(&self.root.join("dev/block").join(number.to_string()))
    }

    /// Every whole block device, by name; partitions are found below their disks.
    pub fn disks(&self) -> io::Result<Vec<BlockDevice>> {
        let dir = self.root.join("class/block");
        let mut disks = Vec::new();
        for entry in fs::read_dir(dir)? {
            // One that has gone since the directory was read is not there.
            disks.extend(BlockDevice::at(&entry?.path()).ok().filter(|device| !device.is_partition()));
        }
        disks.sort_unstable_by(|left, right| natural(left.name()).cmp(&natural(right.name())));
        Ok(disks)
    }

    /// The loop devices that have something behind them, in no order.
    pub fn loop_devices(&self) -> Vec<BlockDevice> {
        let entries = fs::read_dir(self.root.join("class/block")).into_iter().flatten().flatten();
        let in_use = |entry: &fs::DirEntry| entry.path().join("loop/backing_file").exists();
        let loops = entries.filter(|entry| entry.file_name().as_encoded_bytes().starts_with(b"loop"));
        // One that has gone since the directory was read is not there.
        loops.filter(in_use).filter_map(|entry| BlockDevice::at(&entry.path()).ok()).collect()
    }

    /// All devices of the btrfs that `device` is a part of, itself among them; none where it is part of no mounted one.
    pub fn btrfs_members(&self, device: &BlockDevice) -> Vec<BlockDevice> {
        let systems = fs::read_dir(self.root.join("fs/btrfs")).into_iter().flatten().flatten();
        let members = systems.map(|system| names_in(&system.path().join("devices")));
        let ours = members.into_iter().find(|names| names.iter().any(|name| name == device.name()));
        ours.into_iter().flatten().filter_map(|name| self.block_device(&name).ok()).collect()
    }

    fn list(&self, file: &str) -> io::Result<Vec<u32>> {
        let text = fs::read_to_string(self.root.join(file))?;
        parse_list(&text)
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, format!("{file}: {text:?}")))
    }
}

/// What a directory holds, by name; nothing where there is none.
fn names_in(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut names: Vec<_> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort_unstable();
    names
}

/// A name with its number apart, so that `loop10` comes after `loop9`.
fn natural(name: &str) -> (&str, u64) {
    let word = name.trim_end_matches(|c: char| c.is_ascii_digit());
    (word, name[word.len()..].parse().unwrap_or(0))
}

/// Numbers and ranges between commas: `0-3,5`. Empty text is an empty list.
pub fn parse_list(text: &str) -> Option<Vec<u32>> {
    let mut members = Vec::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        members.extend(first.parse::<u32>().ok()?..=last.parse().ok()?);
    }
    Some(members)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::MadeUpSysfs;

    #[test]
    fn lists_are_numbers_and_ranges() {
        assert_eq!(parse_list("0-3,5\n"), Some(vec![0, 1, 2, 3, 5]));
        assert_eq!(parse_list("\n"), Some(vec![]));
        assert_eq!(parse_list("7"), Some(vec![7]));
        assert_eq!(parse_list("1-x"), None);
    }

    #[test]
    fn this_machine_has_a_processor() {
        assert!(!Sysfs::default().online_cpus().unwrap().is_empty());
    }

    #[test]
    fn disks_are_listed_by_number_and_without_their_partitions() {
        let machine = MadeUpSysfs::new();
        for (name, number) in [("loop10", "7:10"), ("sda", "8:0"), ("loop9", "7:9")] {
            machine.disk(name, number);
        }
        machine.partition("sda", "sda1", "8:1");
        let disks = Sysfs::at(&machine.root).disks().unwrap();
        assert_eq!(disks.iter().map(BlockDevice::name).collect::<Vec<_>>(), ["loop9", "loop10", "sda"]);
    }

    #[test]
    fn loop_devices_are_those_with_something_behind_them() {
        let machine = MadeUpSysfs::new();
        machine.disk("loop0", "7:0").disk("loop1", "7:1").disk("sda", "8:0");
        machine.write("devices/loop1/loop/backing_file", "/srv/image\n");
        let loops = Sysfs::at(&machine.root).loop_devices();
        assert_eq!(loops.iter().map(BlockDevice::name).collect::<Vec<_>>(), ["loop1"]);
    }

    #[test]
    fn a_btrfs_names_all_its_devices() {
        let machine = MadeUpSysfs::new();
        machine.disk("sdb", "8:16").disk("sdc", "8:32").disk("sdd", "8:48");
        for name in ["sdc", "sdb"] {
            machine.write(&format!("fs/btrfs/some-uuid/devices/{name}"), "");
        }
        machine.write("fs/btrfs/features/raid1c34", "0");
        let sysfs = Sysfs::at(&machine.root);
        let members = |name: &str| sysfs.btrfs_members(&sysfs.block_device(name).unwrap());
        assert_eq!(members("sdc").iter().map(BlockDevice::name).collect::<Vec<_>>(), ["sdb", "sdc"]);
        assert_eq!(members("sdd"), []);
    }

    #[test]
    fn a_number_nobody_has_is_not_found() {
        let number = DeviceNumber { major: 0, minor: 12_345 };
        assert_eq!(Sysfs::default().block_device_of(number).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
