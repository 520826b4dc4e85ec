//! What the disks under a run did while it ran.
//!
//! Invariant: figures are of whole disks. A partition's I/O is counted on its disk, and a device made of others
//! carries those others' figures as its members, as fio has it.

use fiord_sys::clock;
use fiord_sys::stat;
use fiord_sys::sysfs::{BlockDevice, IoCounters, Sysfs};
use std::io;
use std::path::Path;

use crate::target::nearest_existing;

/// A disk's counters at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskCounters {
    /// The kernel's counters since boot.
    pub counters: IoCounters,
    /// When they were read, in nanoseconds of the monotonic clock.
    pub taken_ns: u64,
}

impl DiskCounters {
    /// Reads the counters of the disk of this name, now.
    pub fn read(name: &str) -> io::Result<DiskCounters> {
        DiskCounters::of(&Sysfs::default().block_device(name)?)
    }

    fn of(device: &BlockDevice) -> io::Result<DiskCounters> {
        Ok(DiskCounters { counters: device.counters()?, taken_ns: clock::monotonic_ns() })
    }

    /// What the disk did from `earlier` until now.
    #[must_use]
    pub fn since(&self, earlier: &DiskCounters) -> DiskFigures {
        let (new, old) = (&self.counters, &earlier.counters);
        let busy_ms = new.busy_ms.saturating_sub(old.busy_ms);
        let elapsed_ms = self.taken_ns.saturating_sub(earlier.taken_ns) as f64 / 1e6;
        let util_percent = if elapsed_ms > 0.0 { 100.0 * busy_ms as f64 / elapsed_ms } else { 0.0 };
        DiskFigures {
            read_ios: new.read_ios.saturating_sub(old.read_ios),
            write_ios: new.write_ios.saturating_sub(old.write_ios),
            read_sectors: new.read_sectors.saturating_sub(old.read_sectors),
            write_sectors: new.write_sectors.saturating_sub(old.write_sectors),
            read_merges: new.read_merges.saturating_sub(old.read_merges),
            write_merges: new.write_merges.saturating_sub(old.write_merges),
            read_ticks_ms: new.read_ms.saturating_sub(old.read_ms),
            write_ticks_ms: new.write_ms.saturating_sub(old.write_ms),
            in_queue_ms: new.in_queue_ms.saturating_sub(old.in_queue_ms),
            // The kernel counts busy time in whole ticks of its timer and may be one ahead.
            util_percent: util_percent.min(100.0),
        }
    }
}

/// What a disk did between two moments: the figures of fio's `Disk stats`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DiskFigures {
    /// Reads completed.
    pub read_ios: u64,
    /// Writes completed.
    pub write_ios: u64,
    /// Sectors of 512 bytes read.
    pub read_sectors: u64,
    /// Sectors of 512 bytes written.
    pub write_sectors: u64,
    /// Reads merged with another before they reached the device.
    pub read_merges: u64,
    /// Writes merged with another before they reached the device.
    pub write_merges: u64,
    /// Time reads took, summed over them, in milliseconds.
    pub read_ticks_ms: u64,
    /// Time writes took, summed over them, in milliseconds.
    pub write_ticks_ms: u64,
    /// Time all requests took, summed over them, in milliseconds.
    pub in_queue_ms: u64,
    /// Share of the time that the disk had something to do, 0 to 100.
    pub util_percent: f64,
}

/// A disk and what it did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DiskUse {
    /// The kernel's name, `vda`.
    pub name: String,
    /// What it did.
    pub figures: DiskFigures,
    /// The disks it is made of, and what they did.
    pub members: Vec<DiskUse>,
}

/// The whole disk that holds `path`, or would hold it; `None` where there is none (tmpfs, NFS, btrfs, overlay), or
/// where `/sys` does not show it.
pub fn disk_under(path: &Path) -> Option<BlockDevice> {
    let found = stat::stat(&nearest_existing(path)).ok()?;
    let number = if found.kind == stat::Kind::Block { found.special } else { found.device };
    Sysfs::default().block_device_of(number).ok().map(|device| device.disk())
}

/// Disks whose counters were read when a run began.
#[derive(Clone, Debug)]
pub struct DiskWatch {
    watched: Vec<Watched>,
}

#[derive(Clone, Debug)]
struct Watched {
    device: BlockDevice,
    start: DiskCounters,
    members: Vec<Watched>,
}

impl DiskWatch {
    /// Starts watching the disks under these files, each once, in order of first appearance. Files that are not there
    /// yet count for the directory they will be in.
    pub fn start<P: AsRef<Path>>(paths: impl IntoIterator<Item = P>) -> DiskWatch {
        DiskWatch::over(paths.into_iter().filter_map(|path| disk_under(path.as_ref())))
    }

    fn over(disks: impl Iterator<Item = BlockDevice>) -> DiskWatch {
        let mut watched: Vec<Watched> = Vec::new();
        for disk in disks {
            if watched.iter().all(|known| known.device != disk) {
                watched.extend(Watched::start(disk));
            }
        }
        DiskWatch { watched }
    }

    /// What the disks have done since. One that has vanished meanwhile is left out.
    pub fn so_far(&self) -> Vec<DiskUse> {
        self.watched.iter().filter_map(Watched::so_far).collect()
    }

    /// Whether no disk was found.
    pub fn is_empty(&self) -> bool {
        self.watched.is_empty()
    }
}

impl Watched {
    fn start(device: BlockDevice) -> Option<Watched> {
        let start = DiskCounters::of(&device).ok()?;
        let members = device.slaves().iter().filter_map(|slave| Watched::start(slave.disk())).collect();
        Some(Watched { device, start, members })
    }

    fn so_far(&self) -> Option<DiskUse> {
        let now = DiskCounters::of(&self.device).ok()?;
        Some(DiskUse {
            name: self.device.name().to_owned(),
            figures: now.since(&self.start),
            members: self.members.iter().filter_map(Watched::so_far).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{LoopDevice, TempDir};

    fn at(taken_ms: u64, counters: IoCounters) -> DiskCounters {
        DiskCounters { counters, taken_ns: taken_ms * 1_000_000 }
    }

    #[test]
    fn figures_are_differences_and_the_share_of_the_time_between() {
        let before = IoCounters { read_ios: 100, busy_ms: 1000, in_queue_ms: 50, ..IoCounters::default() };
        let after = IoCounters { read_ios: 150, busy_ms: 1250, in_queue_ms: 80, ..IoCounters::default() };
        let figures = at(3000, after).since(&at(2000, before));
        assert_eq!((figures.read_ios, figures.in_queue_ms), (50, 30));
        assert!((figures.util_percent - 25.0).abs() < 1e-9);
    }

    #[test]
    fn a_disk_is_never_busier_than_always() {
        let busy = IoCounters { busy_ms: 11, ..IoCounters::default() };
        let figures = at(10, busy).since(&at(0, IoCounters::default()));
        assert_eq!(figures.util_percent, 100.0);
        assert_eq!(at(5, busy).since(&at(5, busy)).util_percent, 0.0, "no time, no share");
        assert_eq!(at(5, IoCounters::default()).since(&at(0, busy)).util_percent, 0.0, "counters were reset");
    }

    #[test]
    fn a_directory_without_a_disk_has_none() {
        assert_eq!(disk_under(Path::new("/proc/self/status")), None);
        assert!(DiskWatch::start(["/proc", "/sys"]).is_empty());
    }

    #[test]
    fn a_written_loop_device_is_counted_once() {
        let dir = TempDir::new("activity");
        let device = match LoopDevice::new(&dir, 1 << 20) {
            Ok(device) => device,
            Err(why) => {
                println!("skipped: {why}");
                return;
            }
        };
        let watch = DiskWatch::start([&device.path, &device.path]);
        let file = std::fs::File::options().write(true).open(&device.path).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, &[1u8; 8192], 0).unwrap();
        file.sync_all().unwrap();
        let uses = watch.so_far();
        assert_eq!(uses.len(), 1);
        assert_eq!(Some(uses[0].name.as_str()), device.path.file_name().and_then(|name| name.to_str()));
        assert_eq!(uses[0].figures.write_sectors, 16);
        assert!(DiskCounters::read(&uses[0].name).unwrap().counters.write_sectors >= 16);
    }
}
