//! What the disks under a run did while it ran, and what the devices under its files are.
//!
//! Invariant: as in fio, figures are those of whole disks. A partition's I/O is counted on its disk, and a device made
//! of others has their figures as its members.

use fiord_device::{CounterSample, DeviceUse, DiskCounters, DiskUse};
use fiord_sys::clock;
use fiord_sys::stat::{DeviceNumber, InodeKind};
use fiord_sys::sysfs::BlockDevice;
use std::io;
use std::path::{Path, PathBuf};

use crate::device::System;
use crate::file_system::nearest_existing;
use crate::samples::Samples;
use crate::storage_stack::StorageStack;

/// A device's counters at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CounterReading {
    /// Since boot.
    counters: DiskCounters,
    /// When they were read, in nanoseconds of the monotonic clock.
    taken_ns: u64,
}

impl CounterReading {
    fn of(device: &BlockDevice) -> io::Result<CounterReading> {
        Ok(CounterReading { counters: device.counters()?, taken_ns: clock::monotonic_ns() })
    }

    fn elapsed_ns(&self, since: &CounterReading) -> u64 {
        self.taken_ns.saturating_sub(since.taken_ns)
    }
}

/// The existing part of a path, and the number of the device that holds it, or that it is.
fn holder(path: &Path) -> Option<(&Path, DeviceNumber)> {
    let (path, found) = nearest_existing(path)?;
    let number = if found.kind == InodeKind::Block { found.special } else { found.device };
    Some((path, number))
}

/// Disks and devices whose counters were read when a run began.
#[derive(Clone, Debug)]
pub struct DiskWatch {
    disks: Vec<WatchedDisk>,
    devices: Vec<WatchedDevice>,
}

/// A disk, and those it is made of.
#[derive(Clone, Debug)]
struct WatchedDisk {
    device: BlockDevice,
    start: CounterReading,
    members: Vec<WatchedDisk>,
}

/// A device of the storage under a file.
#[derive(Clone, Debug)]
struct WatchedDevice {
    device: BlockDevice,
    start: CounterReading,
    /// Its activity and its samples are filled in at the end.
    known: DeviceUse,
    samples: Samples<CounterSample>,
}

impl DiskWatch {
    /// Starts watching the storage below these files, each disk and device once, in order of first appearance. For
    /// files that do not exist yet, the directory they will be in is used.
    pub fn start<P: AsRef<Path>>(paths: impl IntoIterator<Item = P>) -> DiskWatch {
        let mut holders: Vec<(PathBuf, DeviceNumber)> = Vec::new();
        for path in paths {
            let found = holder(path.as_ref());
            if let Some((path, number)) =
                found.filter(|(_, found)| holders.iter().all(|(_, known)| known != found))
            {
                holders.push((path.to_owned(), number));
            }
        }
        let system = System::read();
        let of_number = |number: &DeviceNumber| system.sysfs.block_device_of(*number).ok();
        let mut disks: Vec<WatchedDisk> = Vec::new();
        for disk in holders.iter().filter_map(|(_, number)| of_number(number)).map(|device| device.disk()) {
            if disks.iter().all(|known| known.device != disk) {
                disks.extend(WatchedDisk::start(disk));
            }
        }
        let mut devices: Vec<WatchedDevice> = Vec::new();
        for stack in holders.iter().filter_map(|(path, _)| StorageStack::of(path, &system).ok()) {
            add_devices(&mut devices, &stack, &system);
        }
        DiskWatch { disks, devices }
    }

    /// Keeps the counters of the devices as they are now; called about once a second.
    pub fn sample(&mut self) {
        self.devices.iter_mut().for_each(WatchedDevice::sample);
    }

    /// The activity of the disks since then, as fio counts it. A disk that has vanished is left out.
    pub fn so_far(&self) -> Vec<DiskUse> {
        self.disks.iter().filter_map(WatchedDisk::so_far).collect()
    }

    /// The devices below the files and their activity since then, from those that hold the files down to the disks. A
    /// device that has vanished has no activity since it was last seen.
    pub fn devices(&self) -> Vec<DeviceUse> {
        self.devices.iter().map(WatchedDevice::so_far).collect()
    }
}

/// Adds the devices of a stack that are not among the watched ones yet.
fn add_devices(devices: &mut Vec<WatchedDevice>, stack: &StorageStack, system: &System) {
    let found = stack.devices_and_below();
    for (facts, below) in &found {
        let name = facts.device.name.as_str();
        // A file system may be on several devices: those that no other device is built on.
        let holds_files = found.iter().all(|(_, below)| !below.contains(&name));
        if let Some(known) = devices.iter_mut().find(|known| known.known.device.name == name) {
            known.known.holds_files |= holds_files;
            continue;
        }
        let Ok(device) = system.sysfs.block_device(name) else { continue };
        let Ok(start) = CounterReading::of(&device) else { continue };
        let known = DeviceUse {
            device: facts.device.clone(),
            holds_files,
            below: below.iter().map(|name| (*name).to_owned()).collect(),
            start: start.counters,
            end: start.counters,
            elapsed_ns: 0,
            lifetime_written_bytes: None,
            samples: Vec::new(),
            power: None,
        };
        devices.push(WatchedDevice { device, start, known, samples: Samples::default() });
    }
}

impl WatchedDisk {
    fn start(device: BlockDevice) -> Option<WatchedDisk> {
        let start = CounterReading::of(&device).ok()?;
        let members = device.slaves().iter().filter_map(|slave| WatchedDisk::start(slave.disk())).collect();
        Some(WatchedDisk { device, start, members })
    }

    fn so_far(&self) -> Option<DiskUse> {
        let now = CounterReading::of(&self.device).ok()?;
        let done = now.counters.since(&self.start.counters);
        Some(DiskUse {
            name: self.device.name().to_owned(),
            done,
            util_percent: done.busy_percent(now.elapsed_ns(&self.start)),
            members: self.members.iter().filter_map(WatchedDisk::so_far).collect(),
        })
    }
}

impl WatchedDevice {
    fn sample(&mut self) {
        let WatchedDevice { device, start, samples, .. } = self;
        samples.take(|| {
            let now = CounterReading::of(device).ok()?;
            Some(CounterSample {
                elapsed_ns: now.elapsed_ns(start),
                counters: now.counters,
                temperature_celsius: device.temperature_celsius(),
            })
        });
    }

    fn so_far(&self) -> DeviceUse {
        let now = CounterReading::of(&self.device).unwrap_or(self.start);
        DeviceUse {
            end: now.counters,
            elapsed_ns: now.elapsed_ns(&self.start),
            samples: self.samples.all().to_vec(),
            ..self.known.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{LoopDevice, TempDir};

    #[test]
    fn a_directory_without_a_disk_has_none() {
        assert!(DiskWatch::start(["/proc", "/sys"]).so_far().is_empty());
    }

    #[test]
    fn a_written_loop_device_is_counted_once() {
        let dir = TempDir::new("activity");
        let device = fiord_testing::need!(LoopDevice::new(&dir, 1 << 20));
        let mut watch = DiskWatch::start([&device.path, &device.path]);
        watch.sample();
        let file = std::fs::File::options().write(true).open(&device.path).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, &[1u8; 8192], 0).unwrap();
        file.sync_all().unwrap();
        let uses = watch.so_far();
        assert_eq!(uses.len(), 1);
        assert_eq!(Some(uses[0].name.as_str()), device.path.file_name().and_then(|name| name.to_str()));
        assert_eq!(uses[0].done.write_sectors, 16);
        // The device itself, and what holds its backing file, as far as the kernel shows that.
        let devices = watch.devices();
        let names: Vec<&str> = devices.iter().map(|used| used.device.name.as_str()).collect();
        let used = &devices[0];
        assert_eq!((names[0], used.holds_files), (uses[0].name.as_str(), true), "{names:?}");
        assert_eq!((used.device.kind.as_str(), used.device.size_bytes), ("loop", 1 << 20));
        assert_eq!(used.done().write_sectors, 16);
        assert_eq!(used.samples.len(), 1);
        assert_eq!(used.samples[0].counters.write_sectors, used.start.write_sectors);
        assert!(used.elapsed_ns > 0 && used.end.write_sectors == used.start.write_sectors + 16);
        for lower in &devices[1..] {
            assert!(!lower.holds_files, "{names:?}");
            assert!(devices.iter().any(|upper| upper.below.contains(&lower.device.name)), "{names:?}");
        }
    }
}
