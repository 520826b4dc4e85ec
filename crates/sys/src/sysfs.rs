//! `/sys`: processors, memory nodes and block devices as the kernel lists them.
//!
//! Invariant: everything is read below one root directory, so that a test can provide a synthetic one; nothing is
//! cached.

use crate::counter_file::CounterFile;
use crate::stat::DeviceNumber;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

pub mod block;
pub mod char_device;
mod power;

pub use block::BlockDevice;
pub use char_device::{BlockBehind, CharDevice};
pub use power::PowerSource;

/// The sysfs tree, usually at `/sys`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sysfs {
    root: PathBuf,
}

/// How fast a processor may run, in kHz.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frequency {
    /// What chooses the frequency: `performance`, `powersave`, `schedutil`.
    pub governor: String,
    /// What sets it: `intel_pstate`, `acpi-cpufreq`.
    pub driver: String,
    /// The lowest that may be chosen.
    pub scaling_min_khz: u64,
    /// The highest that may be chosen.
    pub scaling_max_khz: u64,
    /// The highest of the processor.
    pub hardware_max_khz: u64,
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

    /// How fast a processor may run; `None` where the kernel does not govern it, as in most virtual machines.
    pub fn frequency(&self, cpu: u32) -> Option<Frequency> {
        let dir = self.root.join(format!("devices/system/cpu/cpu{cpu}/cpufreq"));
        let text = |file: &str| text_in(&dir, file);
        let khz = |file: &str| text(file)?.parse().ok();
        Some(Frequency {
            governor: text("scaling_governor")?,
            driver: text("scaling_driver")?,
            scaling_min_khz: khz("scaling_min_freq")?,
            scaling_max_khz: khz("scaling_max_freq")?,
            hardware_max_khz: khz("cpuinfo_max_freq")?,
        })
    }

    /// The highest frequency that may be chosen for a processor now, in kHz; `None` as for `frequency`.
    pub fn frequency_khz_max(&self, cpu: u32) -> Option<u64> {
        let file = self.root.join(format!("devices/system/cpu/cpu{cpu}/cpufreq/scaling_max_freq"));
        fs::read_to_string(file).ok()?.trim().parse().ok()
    }

    /// How often processors were slowed down because they were too hot, since boot; `None` where the kernel does not count
    /// it, as in most virtual machines.
    pub fn thermal_throttles(&self) -> Option<u64> {
        let cpus = self.online_cpus().ok()?.into_iter();
        let counts = cpus.flat_map(|cpu| {
            let dir = self.root.join(format!("devices/system/cpu/cpu{cpu}/thermal_throttle"));
            ["core_throttle_count", "package_throttle_count"].map(|file| dir.join(file))
        });
        let counts = counts.filter_map(|file| fs::read_to_string(file).ok()?.trim().parse::<u64>().ok());
        counts.reduce(|sum, one| sum + one)
    }

    /// How far the kernel slows processors down in order to cool them, 0 for not at all: one file for each device that
    /// does so (a limit on frequency, or forced idleness), to be read repeatedly.
    pub fn processor_cooling(&self) -> Vec<CounterFile<i64>> {
        /// The types of such devices, or how they begin.
        const TYPES: [&str; 5] =
            ["Processor", "cpufreq-", "thermal-cpufreq-", "cpuidle-", "intel_powerclamp"];
        let slows = |dir: &PathBuf| {
            let kind = fs::read_to_string(dir.join("type")).unwrap_or_default();
            TYPES.iter().any(|known| kind.starts_with(known))
        };
        let devices = self.thermal("cooling_device").into_iter().filter(slows);
        devices.filter_map(|dir| CounterFile::open(dir.join("cur_state"), parse_number)).collect()
    }

    /// Temperatures in thousandths of a degree Celsius, to be read repeatedly: of the thermal zones that slow processors
    /// down when they are too hot.
    pub fn temperatures(&self) -> Vec<CounterFile<i64>> {
        let slows = |dir: &PathBuf| {
            block::names_in(dir)
                .iter()
                .filter(|name| name.ends_with("_type"))
                .any(|name| fs::read_to_string(dir.join(name)).is_ok_and(|kind| kind.trim() == "passive"))
        };
        let zones = self.thermal("thermal_zone").into_iter().filter(slows);
        zones.filter_map(|dir| CounterFile::open(dir.join("temp"), parse_number)).collect()
    }

    /// The directories of thermal devices whose names begin like this; no more of them than a reading may cost.
    fn thermal(&self, prefix: &str) -> Vec<PathBuf> {
        const DEVICES_MAX: usize = 32;
        let dir = self.root.join("class/thermal");
        let names = block::names_in(&dir).into_iter().filter(|name| name.starts_with(prefix));
        names.take(DEVICES_MAX).map(|name| dir.join(name)).collect()
    }

    /// The directory of the PCI device at this address (`0000:41:00.0`).
    pub fn pci_device(&self, address: &str) -> io::Result<PathBuf> {
        self.root.join("bus/pci/devices").join(address).canonicalize()
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
            // It may have been removed since the directory was read.
            disks.extend(BlockDevice::at(&entry?.path()).ok().filter(|device| !device.is_partition()));
        }
        disks.sort_unstable_by(|left, right| natural(left.name()).cmp(&natural(right.name())));
        Ok(disks)
    }

    /// The loop devices that have a backing file, in no order.
    pub fn loop_devices(&self) -> Vec<BlockDevice> {
        let entries = fs::read_dir(self.root.join("class/block")).into_iter().flatten().flatten();
        let in_use = |entry: &fs::DirEntry| entry.path().join("loop/backing_file").exists();
        let loops = entries.filter(|entry| entry.file_name().as_encoded_bytes().starts_with(b"loop"));
        // It may have been removed since the directory was read.
        loops.filter(in_use).filter_map(|entry| BlockDevice::at(&entry.path()).ok()).collect()
    }

    /// All devices of the btrfs that `device` belongs to, including itself; none if it belongs to no mounted btrfs.
    pub fn btrfs_members(&self, device: &BlockDevice) -> Vec<BlockDevice> {
        let systems = fs::read_dir(self.root.join("fs/btrfs")).into_iter().flatten().flatten();
        let members = systems.map(|system| block::names_in(&system.path().join("devices")));
        let ours = members.into_iter().find(|names| names.iter().any(|name| name == device.name()));
        ours.into_iter().flatten().filter_map(|name| self.block_device(&name).ok()).collect()
    }

    fn list(&self, file: &str) -> io::Result<Vec<u32>> {
        let text = fs::read_to_string(self.root.join(file))?;
        parse_list(&text)
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, format!("{file}: {text:?}")))
    }
}

/// A name split from its number, so that `loop10` sorts after `loop9`.
fn natural(name: &str) -> (&str, u64) {
    let word = name.trim_end_matches(|c: char| c.is_ascii_digit());
    (word, name[word.len()..].parse().unwrap_or(0))
}

/// The text of a file in a directory, without space around it.
fn text_in(dir: &Path, file: &str) -> Option<String> {
    fs::read_to_string(dir.join(file)).ok().map(|text| text.trim().to_owned())
}

fn parse_number(text: &str) -> Option<i64> {
    text.trim().parse().ok()
}

/// Numbers and ranges separated by commas: `0-3,5`. Empty text is an empty list.
fn parse_list(text: &str) -> Option<Vec<u32>> {
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
    fn frequencies_are_read_where_the_kernel_governs_them() {
        let made_up = MadeUpSysfs::new();
        let files = [
            ("scaling_governor", "powersave\n"),
            ("scaling_driver", "acpi-cpufreq\n"),
            ("scaling_min_freq", "800000\n"),
            ("scaling_max_freq", "2000000\n"),
            ("cpuinfo_max_freq", "3600000\n"),
        ];
        for (file, text) in files {
            made_up.write(&format!("devices/system/cpu/cpu1/cpufreq/{file}"), text);
        }
        let sysfs = Sysfs::at(&made_up.root);
        let found = sysfs
            .frequency(1)
            .map(|of| (of.governor, of.scaling_min_khz, of.scaling_max_khz, of.hardware_max_khz));
        assert_eq!(found, Some(("powersave".to_owned(), 800_000, 2_000_000, 3_600_000)));
        assert_eq!(sysfs.frequency(0), None);
        assert_eq!((sysfs.frequency_khz_max(1), sysfs.frequency_khz_max(0)), (Some(2_000_000), None));
    }

    #[test]
    fn processors_that_were_too_hot_are_counted() {
        let made_up = MadeUpSysfs::new();
        made_up.write("devices/system/cpu/online", "0-1\n");
        let sysfs = Sysfs::at(&made_up.root);
        assert_eq!(sysfs.thermal_throttles(), None);
        made_up.write("devices/system/cpu/cpu0/thermal_throttle/core_throttle_count", "3\n");
        made_up.write("devices/system/cpu/cpu1/thermal_throttle/package_throttle_count", "4\n");
        assert_eq!(sysfs.thermal_throttles(), Some(7));
    }

    #[test]
    fn only_devices_and_zones_that_slow_processors_down_are_watched() {
        let made_up = MadeUpSysfs::new();
        let sysfs = Sysfs::at(&made_up.root);
        assert!(sysfs.processor_cooling().is_empty() && sysfs.temperatures().is_empty());
        for (device, kind, state) in [("0", "Fan", "4"), ("1", "Processor", "0"), ("2", "cpufreq-cpu0", "3")]
        {
            made_up.write(&format!("class/thermal/cooling_device{device}/type"), kind);
            made_up.write(&format!("class/thermal/cooling_device{device}/cur_state"), state);
        }
        for (zone, trip, temperature) in [("0", "critical", "45000"), ("1", "passive", "71500")] {
            made_up.write(&format!("class/thermal/thermal_zone{zone}/type"), "acpitz");
            made_up
                .write(&format!("class/thermal/thermal_zone{zone}/trip_point_0_type"), &format!("{trip}\n"));
            made_up.write(&format!("class/thermal/thermal_zone{zone}/temp"), temperature);
        }
        let mut states: Vec<i64> =
            sysfs.processor_cooling().iter_mut().filter_map(CounterFile::read).collect();
        states.sort_unstable();
        assert_eq!(states, [0, 3]);
        let mut temperatures = sysfs.temperatures();
        assert_eq!(temperatures.iter_mut().filter_map(CounterFile::read).collect::<Vec<_>>(), [71_500]);
    }

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
    fn loop_devices_are_those_with_a_backing_file() {
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
    fn an_unknown_number_is_not_found() {
        let number = DeviceNumber { major: 0, minor: 12_345 };
        assert_eq!(Sysfs::default().block_device_of(number).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
