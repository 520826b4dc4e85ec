//! `/sys`: processors, memory nodes and block devices as the kernel lists them.
//!
//! Invariant: everything is read below one root directory, so that a test can hand in a made-up machine; nothing is
//! cached.

use crate::stat::DeviceNumber;
use std::fs;
use std::io;
use std::path::PathBuf;

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

    fn list(&self, file: &str) -> io::Result<Vec<u32>> {
        let text = fs::read_to_string(self.root.join(file))?;
        parse_list(&text)
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, format!("{file}: {text:?}")))
    }
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
    fn a_number_nobody_has_is_not_found() {
        let number = DeviceNumber { major: 0, minor: 12_345 };
        assert_eq!(Sysfs::default().block_device_of(number).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
