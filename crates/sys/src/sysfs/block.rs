//! The directory of one block device: its relations to others, its queue, its counters.
//!
//! Invariant: a `BlockDevice` names a directory that existed when it was made; everything is read anew on each call.

use crate::procfs::parse_device;
use crate::stat::DeviceNumber;
use fiord_device::{DiskCounters, RequestQueue};
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The unit the kernel counts sizes and transfers in here, whatever the device's own block size.
const SECTOR_BYTES: u64 = 512;

/// A disk, a partition, or a device composed of others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockDevice {
    name: String,
    dir: PathBuf,
}

/// The counters of a `stat` file, in the order of the kernel's `Documentation/block/stat.rst`; the later ones are
/// missing on older kernels.
fn parse_counters(text: &str) -> Option<DiskCounters> {
    let numbers: Vec<u64> = text.split_whitespace().map_while(|word| word.parse().ok()).collect();
    if numbers.len() < 11 {
        return None;
    }
    let at = |index: usize| numbers.get(index).copied().unwrap_or(0);
    Some(DiskCounters {
        read_ios: at(0),
        read_merges: at(1),
        read_sectors: at(2),
        read_ms: at(3),
        write_ios: at(4),
        write_merges: at(5),
        write_sectors: at(6),
        write_ms: at(7),
        in_flight: at(8),
        busy_ms: at(9),
        in_queue_ms: at(10),
        discard_ios: at(11),
        discard_sectors: at(13),
        flush_ios: at(15),
    })
}

impl BlockDevice {
    /// The device whose directory `path` leads to, usually by a symbolic link.
    pub(super) fn at(path: &Path) -> io::Result<BlockDevice> {
        let dir = fs::canonicalize(path)?;
        let name = dir.file_name().map(|name| name.to_string_lossy().into_owned());
        let name = name.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        Ok(BlockDevice { name, dir })
    }

    /// Its name in the kernel, `vda1`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its usual place below `/dev`.
    pub fn path(&self) -> PathBuf {
        // A slash in a device's name is an exclamation mark here.
        Path::new("/dev").join(self.name.replace('!', "/"))
    }

    /// Its directory, links resolved: the buses it is attached to, from the root down.
    pub fn directory(&self) -> &Path {
        &self.dir
    }

    /// The text of one file of its directory (`dm/name`), without blanks around it; `None` where there is none.
    pub fn attribute(&self, file: &str) -> Option<String> {
        self.text(file).filter(|text| !text.is_empty())
    }

    /// Its number.
    pub fn number(&self) -> Option<DeviceNumber> {
        parse_device(&self.text("dev")?)
    }

    /// Its size in bytes.
    pub fn size_bytes(&self) -> io::Result<u64> {
        let text = fs::read_to_string(self.dir.join("size"))?;
        let sectors: u64 = text.trim().parse().map_err(|_| bad("size", &text))?;
        Ok(sectors * SECTOR_BYTES)
    }

    /// Whether it takes no writes.
    pub fn is_read_only(&self) -> bool {
        self.number_in::<u32>("ro").is_some_and(|flag| flag != 0)
    }

    /// Whether it is a part of a disk.
    pub fn is_partition(&self) -> bool {
        self.dir.join("partition").exists()
    }

    /// The whole disk: itself, unless it is a partition.
    pub fn disk(&self) -> BlockDevice {
        let parent = self.dir.parent().filter(|_| self.is_partition());
        parent.and_then(|dir| BlockDevice::at(dir).ok()).unwrap_or_else(|| self.clone())
    }

    /// Its partitions, by name, each of which begins with that of the disk.
    pub fn partitions(&self) -> Vec<BlockDevice> {
        let names = self.names_in("").into_iter().filter(|name| name.starts_with(&self.name));
        let below = names.filter(|name| self.dir.join(name).join("partition").exists());
        below.filter_map(|name| BlockDevice::at(&self.dir.join(name)).ok()).collect()
    }

    /// The devices it is composed of, by name: the members of a RAID, the devices below a logical volume.
    pub fn slaves(&self) -> Vec<BlockDevice> {
        self.devices_in("slaves")
    }

    /// The devices composed of it, by name.
    pub fn holders(&self) -> Vec<BlockDevice> {
        self.devices_in("holders")
    }

    /// Its counters since boot. Before Linux 6.4 the kernel does not count the I/Os of a disk of an NVMe subsystem, but
    /// those of the paths to it.
    pub fn counters(&self) -> io::Result<DiskCounters> {
        let own = self.own_counters()?;
        if own != DiskCounters::default() || !self.name.starts_with("nvme") || self.is_partition() {
            return Ok(own);
        }
        let of_paths =
            self.waiting_in().iter().map(BlockDevice::own_counters).collect::<io::Result<Vec<_>>>()?;
        Ok(DiskCounters::sum(of_paths.iter()))
    }

    fn own_counters(&self) -> io::Result<DiskCounters> {
        let text = fs::read_to_string(self.dir.join("stat"))?;
        parse_counters(&text).ok_or_else(|| bad("stat", &text))
    }

    /// The temperature of an NVMe disk, in degrees Celsius, if the kernel shows its sensor (Linux 5.5, `CONFIG_NVME_HWMON`).
    /// The kernel asks the disk by its administrative queue, at most once a second. Other disks are not asked: one behind
    /// ATA empties its queue of I/O for the question.
    pub fn temperature_celsius(&self) -> Option<i32> {
        if !self.name.starts_with("nvme") {
            return None;
        }
        // The sensor belongs to the controller, or in earlier kernels to its PCI device.
        let places = ["", "/hwmon", "/device/hwmon"];
        let controllers = self.controllers();
        let places =
            controllers.iter().flat_map(|controller| places.map(|place| format!("{controller}{place}")));
        let sensors = places.flat_map(|place| {
            let names = self.names_in(&place).into_iter().filter(|name| name.starts_with("hwmon"));
            names.map(move |name| format!("{place}/{name}/temp1_input"))
        });
        let thousandths: i64 = sensors.into_iter().find_map(|file| self.number_in(&file))?;
        (thousandths / 1000).try_into().ok()
    }

    /// The directories of an NVMe disk's controllers, below its own: of the one that it belongs to, or those of a subsystem,
    /// which has a path to the disk by each of them.
    fn controllers(&self) -> Vec<String> {
        let is_controller = |name: &String| {
            name.strip_prefix("nvme")
                .is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
        };
        let of_subsystem = self.names_in("device").into_iter().filter(is_controller);
        let of_subsystem: Vec<String> = of_subsystem.map(|name| format!("device/{name}")).collect();
        if of_subsystem.is_empty() { vec!["device".to_string()] } else { of_subsystem }
    }

    /// The disks in whose queues the I/Os of this one wait: itself, or those by which an NVMe subsystem reaches it
    /// (`nvme0c1n1`), which the kernel hides.
    fn waiting_in(&self) -> Vec<BlockDevice> {
        let of_nvme = self.name.rsplit_once('n').filter(|(subsystem, _)| subsystem.starts_with("nvme"));
        let Some((subsystem, namespace)) = of_nvme else { return vec![self.clone()] };
        let is_path = |name: &String| {
            let rest = name.strip_prefix(subsystem).and_then(|rest| rest.strip_prefix('c'));
            rest.and_then(|rest| rest.rsplit_once('n')).is_some_and(|(_, number)| number == namespace)
        };
        let of_controller = |controller: String| {
            let names = self.names_in(&controller).into_iter().filter(is_path);
            let places = names.map(|name| self.dir.join(&controller).join(name));
            places.filter_map(|place| BlockDevice::at(&place).ok()).collect::<Vec<_>>()
        };
        let paths: Vec<BlockDevice> = self.controllers().into_iter().flat_map(of_controller).collect();
        if paths.is_empty() { vec![self.clone()] } else { paths }
    }

    /// The queue of the disk.
    pub fn queue(&self) -> RequestQueue {
        let disk = self.disk();
        let bytes = |file: &str| disk.number_in::<u64>(&format!("queue/{file}"));
        let text = |file: &str| disk.text(&format!("queue/{file}")).unwrap_or_default();
        // Those of all paths are alike.
        let waiting = disk.waiting_in().swap_remove(0);
        let (scheduler, schedulers) = parse_schedulers(&waiting.text("queue/scheduler").unwrap_or_default());
        RequestQueue {
            logical_block_bytes: bytes("logical_block_size").unwrap_or(SECTOR_BYTES),
            physical_block_bytes: bytes("physical_block_size").unwrap_or(SECTOR_BYTES),
            minimum_io_bytes: bytes("minimum_io_size").unwrap_or(0),
            optimal_io_bytes: bytes("optimal_io_size").unwrap_or(0),
            max_request_bytes: bytes("max_sectors_kb").unwrap_or(0) * 1024,
            // The file holds a mask: the alignment less one.
            dma_alignment_bytes: bytes("dma_alignment").map(|mask| mask + 1),
            discard_granularity_bytes: bytes("discard_granularity").unwrap_or(0),
            discard_max_bytes: bytes("discard_max_bytes").unwrap_or(0),
            rotational: bytes("rotational") == Some(1),
            requests: waiting.number_in("queue/nr_requests").unwrap_or(0),
            hardware_queues: waiting.names_in("mq").len() as u64,
            device_depth: disk.number_in("device/queue_depth"),
            read_ahead_bytes: bytes("read_ahead_kb").unwrap_or(0) * 1024,
            scheduler,
            schedulers,
            write_back_cache: text("write_cache") == "write back",
            forced_unit_access: bytes("fua") == Some(1),
            zoned: text("zoned"),
            polls: bytes("io_poll") == Some(1),
        }
    }

    /// Zones that the disk can have open at once; `None` without a limit. Linux 6.1 shows none of a disk of an NVMe subsystem,
    /// but those of the paths to it.
    pub(crate) fn open_zones_max(&self) -> Option<u32> {
        let of_path = self.waiting_in().swap_remove(0);
        // A zone that is written in part is active, whether the device holds it open or has closed it.
        let files = ["queue/max_open_zones", "queue/max_active_zones"];
        let limits = [self, &of_path].into_iter().flat_map(|disk| files.map(|file| disk.number_in(file)));
        limits.flatten().filter(|zones| *zones > 0).min()
    }

    /// Selects the scheduler of the disk. `EINVAL` if the kernel has none of that name; needs a privilege (`EACCES`).
    pub fn set_scheduler(&self, name: &OsStr) -> io::Result<()> {
        self.disk().waiting_in().iter().try_for_each(|disk| {
            let file = disk.dir.join("queue/scheduler");
            // Not created where it is missing: then this is not a queue with a scheduler.
            let mut file = fs::OpenOptions::new().write(true).truncate(true).open(file)?;
            file.write_all(name.as_encoded_bytes())
        })
    }

    fn devices_in(&self, dir: &str) -> Vec<BlockDevice> {
        let dir_path = self.dir.join(dir);
        self.names_in(dir).iter().filter_map(|name| BlockDevice::at(&dir_path.join(name)).ok()).collect()
    }

    fn names_in(&self, dir: &str) -> Vec<String> {
        names_in(&self.dir.join(dir))
    }

    fn text(&self, file: &str) -> Option<String> {
        fs::read_to_string(self.dir.join(file)).ok().map(|text| text.trim().to_owned())
    }

    fn number_in<T: FromStr>(&self, file: &str) -> Option<T> {
        self.text(file)?.parse().ok()
    }
}

/// `none [mq-deadline] kyber`: the one in brackets is active.
fn parse_schedulers(text: &str) -> (Option<String>, Vec<String>) {
    let mut active = None;
    let all = text.split_whitespace().map(|word| {
        let inner = word.strip_prefix('[').and_then(|word| word.strip_suffix(']'));
        if let Some(inner) = inner {
            active = Some(inner.to_owned());
        }
        inner.unwrap_or(word).to_owned()
    });
    let all = all.collect();
    (active, all)
}

fn bad(file: &str, text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{file}: {text:?}"))
}

/// The entries of a directory, by name; none if there is no such directory.
pub(super) fn names_in(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut names: Vec<_> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort_unstable();
    names
}

#[cfg(test)]
mod tests {
    use super::super::Sysfs;
    use super::*;
    use crate::testing::MadeUpSysfs;

    #[test]
    fn counters_of_every_age_of_kernel_are_read() {
        let old = parse_counters(" 1 2 3 4 5 6 7 8 9 10 11\n").unwrap();
        assert_eq!(
            (old.read_ms, old.write_ios, old.in_flight, old.busy_ms, old.in_queue_ms),
            (4, 5, 9, 10, 11)
        );
        assert_eq!((old.discard_ios, old.flush_ios), (0, 0));
        let new = parse_counters("1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17").unwrap();
        assert_eq!((new.discard_ios, new.discard_sectors, new.flush_ios), (12, 14, 16));
        assert_eq!(parse_counters("1 2 3"), None);
    }

    #[test]
    fn the_scheduler_in_brackets_is_active() {
        let (active, all) = parse_schedulers("none [mq-deadline] kyber");
        assert_eq!(active.as_deref(), Some("mq-deadline"));
        assert_eq!(all, ["none", "mq-deadline", "kyber"]);
        assert_eq!(parse_schedulers("none").0, None);
    }

    #[test]
    fn partitions_and_members_lead_to_each_other() {
        let machine = MadeUpSysfs::new();
        machine.disk("sda", "8:0").partition("sda", "sda1", "8:1").disk("md0", "9:0").member("md0", "sda1");
        let sysfs = Sysfs::at(&machine.root);
        let part = sysfs.block_device_of(DeviceNumber { major: 8, minor: 1 }).unwrap();
        assert_eq!((part.name(), part.is_partition(), part.disk().name()), ("sda1", true, "sda"));
        assert_eq!(part.holders()[0].name(), "md0");
        assert_eq!(part.number(), Some(DeviceNumber { major: 8, minor: 1 }));
        let disk = sysfs.block_device("sda").unwrap();
        assert_eq!(disk.disk(), disk);
        assert_eq!(disk.partitions(), std::slice::from_ref(&part));
        assert_eq!(sysfs.block_device("md0").unwrap().slaves(), [part]);
        assert!(disk.holders().is_empty());
    }

    #[test]
    fn a_queue_is_the_disks_and_missing_files_are_no_error() {
        let machine = MadeUpSysfs::new();
        machine.disk("sda", "8:0").partition("sda", "sda1", "8:1");
        for (file, text) in [
            ("logical_block_size", "4096\n"),
            ("dma_alignment", "511\n"),
            ("rotational", "1\n"),
            ("scheduler", "[none]\n"),
            ("write_cache", "write back\n"),
            ("read_ahead_kb", "128\n"),
            ("fua", "1\n"),
        ] {
            machine.write(&format!("devices/sda/queue/{file}"), text);
        }
        machine.write("devices/sda/device/queue_depth", "32\n");
        for queue in ["0", "1"] {
            machine.write(&format!("devices/sda/mq/{queue}/nr_tags"), "64\n");
        }
        let queue = Sysfs::at(&machine.root).block_device("sda1").unwrap().queue();
        assert_eq!((queue.logical_block_bytes, queue.physical_block_bytes), (4096, 512));
        assert_eq!(queue.dma_alignment_bytes, Some(512));
        assert!(queue.rotational && queue.write_back_cache && !queue.polls);
        assert!(queue.forced_unit_access);
        assert_eq!((queue.hardware_queues, queue.device_depth, queue.requests), (2, Some(32), 0));
        assert_eq!(queue.read_ahead_bytes, 128 << 10);
        assert_eq!((queue.scheduler.as_deref(), queue.zoned.as_str()), (Some("none"), ""));
    }

    #[test]
    fn a_disk_of_an_nvme_subsystem_has_the_queues_counters_and_temperature_of_its_paths() {
        let machine = MadeUpSysfs::new();
        machine.disk("nvme3n1", "259:3");
        for (file, text) in [
            ("nvme3n1/queue/scheduler", "none"),
            ("nvme3n1/device/nvme0/hwmon1/temp1_input", "38850"),
            ("nvme3n1/device/nvme0/nvme3c0n1/queue/scheduler", "[none] kyber"),
            ("nvme3n1/device/nvme0/nvme3c0n1/queue/nr_requests", "1023"),
            ("nvme3n1/device/nvme0/nvme3c0n1/mq/0/nr_tags", "1023"),
            ("nvme3n1/device/nvme1/nvme3c1n1/queue/scheduler", "[none] kyber"),
            ("nvme3n1/device/nvme1/nvme3c1n2/queue/scheduler", "[none] kyber"),
            ("nvme3n1/queue/max_open_zones", "0"),
            ("nvme3n1/device/nvme0/nvme3c0n1/queue/max_open_zones", "6"),
            ("nvme3n1/device/nvme0/nvme3c0n1/queue/max_active_zones", "5"),
            ("nvme3n1/stat", "0 0 0 0 0 0 0 0 0 0 0"),
            ("nvme3n1/device/nvme0/nvme3c0n1/stat", "5 0 40 1 7 0 56 2 0 3 3"),
            ("nvme3n1/device/nvme1/nvme3c1n1/stat", "1 0 8 1 0 0 0 0 0 1 1"),
        ] {
            machine.write(&format!("devices/{file}"), text);
        }
        let disk = Sysfs::at(&machine.root).block_device("nvme3n1").unwrap();
        let queue = disk.queue();
        assert_eq!(
            (queue.requests, queue.hardware_queues, queue.scheduler.as_deref()),
            (1023, 1, Some("none"))
        );
        assert_eq!((disk.temperature_celsius(), disk.open_zones_max()), (Some(38), Some(5)));
        let counters = disk.counters().unwrap();
        assert_eq!((counters.read_ios, counters.read_sectors, counters.write_ios), (6, 48, 7));
        machine.write("devices/nvme3n1/stat", "9 0 72 1 0 0 0 0 0 1 1");
        assert_eq!(disk.counters().unwrap().read_ios, 9, "from Linux 6.4 on");
        disk.set_scheduler(OsStr::new("kyber")).unwrap();
        let scheduler = |path: &str| {
            std::fs::read_to_string(machine.root.join("devices/nvme3n1").join(path).join("queue/scheduler"))
                .unwrap()
        };
        let of_paths =
            ["device/nvme0/nvme3c0n1", "device/nvme1/nvme3c1n1", "device/nvme1/nvme3c1n2"].map(scheduler);
        assert_eq!(of_paths, ["kyber", "kyber", "[none] kyber"], "the last is a path to another disk");
        assert_eq!(scheduler(""), "none");
    }

    #[test]
    fn only_nvme_disks_are_asked_for_their_temperature() {
        let machine = MadeUpSysfs::new();
        machine.disk("nvme0n1", "259:0").disk("nvme1n1", "259:1").disk("nvme2n1", "259:2").disk("sda", "8:0");
        for (file, text) in [
            ("nvme0n1/device/hwmon3/temp1_input", "41850\n"),
            ("nvme1n1/device/device/hwmon/hwmon0/temp1_input", "-1500\n"),
            ("sda/device/hwmon/hwmon1/temp1_input", "30000\n"),
        ] {
            machine.write(&format!("devices/{file}"), text);
        }
        let of = |name: &str| Sysfs::at(&machine.root).block_device(name).unwrap().temperature_celsius();
        assert_eq!(
            [of("nvme0n1"), of("nvme1n1"), of("nvme2n1"), of("sda")],
            [Some(41), Some(-1), None, None]
        );
    }

    #[test]
    fn a_scheduler_is_set_on_the_disk() {
        let machine = MadeUpSysfs::new();
        machine.disk("sda", "8:0").partition("sda", "sda1", "8:1");
        let part = Sysfs::at(&machine.root).block_device("sda1").unwrap();
        assert!(part.set_scheduler("bfq".as_ref()).is_err(), "no such file is made");
        machine.write("devices/sda/queue/scheduler", "[none] bfq");
        part.set_scheduler("bfq".as_ref()).unwrap();
        assert_eq!(std::fs::read_to_string(machine.root.join("devices/sda/queue/scheduler")).unwrap(), "bfq");
    }

    #[test]
    fn names_with_slashes_are_found_below_dev() {
        let machine = MadeUpSysfs::new();
        machine.disk("cciss!c0d0", "104:0");
        let device = Sysfs::at(&machine.root).block_device("cciss!c0d0").unwrap();
        assert_eq!(device.path(), Path::new("/dev/cciss/c0d0"));
    }
}
