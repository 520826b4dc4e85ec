//! One block device's directory: its place among others, its queue, its counters.
//!
//! Invariant: a `BlockDevice` names a directory that existed when it was made; everything is read anew on each call.

use crate::procfs::parse_device;
use crate::stat::DeviceNumber;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The unit the kernel counts sizes and transfers in here, whatever the device's own block size.
pub const SECTOR_BYTES: u64 = 512;

/// A disk, a partition, or a device made of others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockDevice {
    name: String,
    dir: PathBuf,
}

/// What a device's request queue is like, in bytes where not said otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Queue {
    /// The unit the device is addressed in.
    pub logical_block_bytes: u64,
    /// The unit the device writes without reading first.
    pub physical_block_bytes: u64,
    /// The smallest size it likes.
    pub minimum_io_bytes: u64,
    /// The size it likes best; 0 for no preference.
    pub optimal_io_bytes: u64,
    /// The largest request the kernel sends; larger ones are split.
    pub max_request_bytes: u64,
    /// Alignment of buffers for direct I/O, where the kernel tells (6.0 and later).
    pub dma_alignment_bytes: Option<u64>,
    /// The unit of discards; 0 where the device has none.
    pub discard_granularity_bytes: u64,
    /// The largest discard; 0 where the device has none.
    pub discard_max_bytes: u64,
    /// Whether it turns.
    pub rotational: bool,
    /// Requests the queue holds; 0 where the device is given I/O without one.
    pub requests: u64,
    /// Queues that processors can fill side by side; 0 where the device is given I/O without one.
    pub hardware_queues: u64,
    /// Commands the device itself takes at a time, where its driver tells (SCSI, SATA).
    pub device_depth: Option<u64>,
    /// What is read ahead of a sequential buffered reader.
    pub read_ahead_bytes: u64,
    /// The scheduler in charge.
    pub scheduler: Option<String>,
    /// All schedulers it could have.
    pub schedulers: Vec<String>,
    /// Whether writes may sit in a volatile cache (`write back`).
    pub write_back_cache: bool,
    /// Whether a single write can be told to be durable (FUA); otherwise that costs a flush of the whole cache.
    pub forced_unit_access: bool,
    /// The zone model: `none`, `host-aware`, `host-managed`.
    pub zoned: String,
    /// Whether polled completions work.
    pub polls: bool,
}

/// A device's counters since boot, from its `stat` file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IoCounters {
    /// Reads completed.
    pub read_ios: u64,
    /// Reads joined to another before they were sent.
    pub read_merges: u64,
    /// Sectors (512 bytes) read.
    pub read_sectors: u64,
    /// Time reads took, summed over them, in milliseconds.
    pub read_ms: u64,
    /// Writes completed.
    pub write_ios: u64,
    /// Writes joined to another before they were sent.
    pub write_merges: u64,
    /// Sectors (512 bytes) written.
    pub write_sectors: u64,
    /// Time writes took, summed over them, in milliseconds.
    pub write_ms: u64,
    /// Requests sent and not yet completed.
    pub in_flight: u64,
    /// Time during which the device had anything to do, in milliseconds.
    pub busy_ms: u64,
    /// Time all requests took, summed over them, in milliseconds.
    pub in_queue_ms: u64,
    /// Discards completed (4.18 and later).
    pub discard_ios: u64,
    /// Sectors (512 bytes) discarded.
    pub discard_sectors: u64,
    /// Flushes completed (5.5 and later).
    pub flush_ios: u64,
}

impl IoCounters {
    /// The figures of a `stat` file, in the order of the kernel's `Documentation/block/stat.rst`; the later ones are
    /// missing on older kernels.
    fn parse(text: &str) -> Option<IoCounters> {
        let numbers: Vec<u64> = text.split_whitespace().map_while(|word| word.parse().ok()).collect();
        if numbers.len() < 11 {
            return None;
        }
        let at = |index: usize| numbers.get(index).copied().unwrap_or(0);
        Some(IoCounters {
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

    /// Its directory, links resolved: the buses it hangs on, from the root down.
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

    /// Its partitions, by name.
    pub fn partitions(&self) -> Vec<BlockDevice> {
        let names = self.names_in("");
        let below = names.iter().filter(|name| self.dir.join(name).join("partition").exists());
        below.filter_map(|name| BlockDevice::at(&self.dir.join(name)).ok()).collect()
    }

    /// The devices it is made of, by name: the members of a RAID, the volumes below a logical one.
    pub fn slaves(&self) -> Vec<BlockDevice> {
        self.devices_in("slaves")
    }

    /// The devices made of it, by name.
    pub fn holders(&self) -> Vec<BlockDevice> {
        self.devices_in("holders")
    }

    /// Its counters since boot.
    pub fn counters(&self) -> io::Result<IoCounters> {
        let text = fs::read_to_string(self.dir.join("stat"))?;
        IoCounters::parse(&text).ok_or_else(|| bad("stat", &text))
    }

    /// The queue of the disk.
    pub fn queue(&self) -> Queue {
        let disk = self.disk();
        let bytes = |file: &str| disk.number_in::<u64>(&format!("queue/{file}"));
        let text = |file: &str| disk.text(&format!("queue/{file}")).unwrap_or_default();
        let (scheduler, schedulers) = parse_schedulers(&text("scheduler"));
        Queue {
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
            requests: bytes("nr_requests").unwrap_or(0),
            hardware_queues: disk.names_in("mq").len() as u64,
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

    /// Puts another scheduler in charge of the disk. `EINVAL` where the kernel has none of that name; a privilege is
    /// needed (`EACCES`).
    pub fn set_scheduler(&self, name: &str) -> io::Result<()> {
        let file = self.disk().dir.join("queue/scheduler");
        // Not created where it is missing: then this is no queue with a scheduler.
        let mut file = fs::OpenOptions::new().write(true).truncate(true).open(file)?;
        file.write_all(name.as_bytes())
    }

    fn devices_in(&self, dir: &str) -> Vec<BlockDevice> {
        let dir_path = self.dir.join(dir);
        self.names_in(dir).iter().filter_map(|name| BlockDevice::at(&dir_path.join(name)).ok()).collect()
    }

    fn names_in(&self, dir: &str) -> Vec<String> {
        super::names_in(&self.dir.join(dir))
    }

    fn text(&self, file: &str) -> Option<String> {
        fs::read_to_string(self.dir.join(file)).ok().map(|text| text.trim().to_owned())
    }

    fn number_in<T: FromStr>(&self, file: &str) -> Option<T> {
        self.text(file)?.parse().ok()
    }
}

/// `none [mq-deadline] kyber`: the one in brackets is in charge.
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

#[cfg(test)]
mod tests {
    use super::super::Sysfs;
    use super::*;
    use crate::testing::MadeUpSysfs;

    #[test]
    fn counters_of_every_age_of_kernel_are_read() {
        let old = IoCounters::parse(" 1 2 3 4 5 6 7 8 9 10 11\n").unwrap();
        assert_eq!(
            (old.read_ms, old.write_ios, old.in_flight, old.busy_ms, old.in_queue_ms),
            (4, 5, 9, 10, 11)
        );
        assert_eq!((old.discard_ios, old.flush_ios), (0, 0));
        let new = IoCounters::parse("1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17").unwrap();
        assert_eq!((new.discard_ios, new.discard_sectors, new.flush_ios), (12, 14, 16));
        assert_eq!(IoCounters::parse("1 2 3"), None);
    }

    #[test]
    fn the_scheduler_in_brackets_is_in_charge() {
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
    fn a_scheduler_is_set_on_the_disk() {
        let machine = MadeUpSysfs::new();
        machine.disk("sda", "8:0").partition("sda", "sda1", "8:1");
        let part = Sysfs::at(&machine.root).block_device("sda1").unwrap();
        assert!(part.set_scheduler("bfq").is_err(), "no such file is made");
        machine.write("devices/sda/queue/scheduler", "[none] bfq");
        part.set_scheduler("bfq").unwrap();
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
