//! `/proc`: memory, mounts, swap, processor time, and the kernel's release.
//!
//! Invariant: each file has one pure parser from its text to values, which ignores lines and fields it does not know,
//! and one reader that calls it.

use crate::counter_file::CounterFile;
use crate::map;
use crate::stat::{self, DeviceNumber, InodeKind};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::iter::Sum;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// Memory, from `/proc/meminfo`, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryInfo {
    /// Total memory managed by the kernel.
    pub total_bytes: u64,
    /// Unused.
    pub free_bytes: u64,
    /// Available without swapping.
    pub available_bytes: u64,
    /// The default size of a huge page.
    pub huge_page_bytes: u64,
    /// Huge pages of that size, reserved.
    pub huge_pages_total: u64,
    /// Huge pages of that size, unused.
    pub huge_pages_free: u64,
}

/// Reads `/proc/meminfo`.
pub fn memory() -> io::Result<MemoryInfo> {
    Ok(parse_memory(&fs::read_to_string("/proc/meminfo")?))
}

fn parse_memory(text: &str) -> MemoryInfo {
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        let mut words = line.unwrap_or("").split_whitespace();
        let number: u64 = words.next().and_then(|word| word.parse().ok()).unwrap_or(0);
        if words.next() == Some("kB") { number * 1024 } else { number }
    };
    MemoryInfo {
        total_bytes: field("MemTotal"),
        free_bytes: field("MemFree"),
        available_bytes: field("MemAvailable"),
        huge_page_bytes: field("Hugepagesize"),
        huge_pages_total: field("HugePages_Total"),
        huge_pages_free: field("HugePages_Free"),
    }
}

/// How much of the page cache is not on a disk, and how much may be, in pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DirtyPages {
    /// To be written to a disk.
    pub dirty_pages: u64,
    /// Being written to a disk.
    pub writeback_pages: u64,
    /// From here on the kernel writes them back by itself.
    pub background_pages: u64,
    /// The most that there may be.
    pub limit_pages: u64,
}

/// `/proc/vmstat`, to be read repeatedly; `None` if it cannot be opened.
pub fn dirty_pages() -> Option<CounterFile<DirtyPages>> {
    CounterFile::open("/proc/vmstat", parse_dirty_pages)
}

fn parse_dirty_pages(text: &str) -> Option<DirtyPages> {
    let field = |name: &str| {
        text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
    };
    Some(DirtyPages {
        dirty_pages: field("nr_dirty")?,
        writeback_pages: field("nr_writeback")?,
        background_pages: field("nr_dirty_background_threshold")?,
        limit_pages: field("nr_dirty_threshold")?,
    })
}

/// For how long some task has waited for a resource, in microseconds, from a file as `/proc/pressure/memory`, to be read
/// repeatedly; `None` if the kernel does not count it.
pub fn pressure_us(file: impl AsRef<Path>) -> Option<CounterFile<u64>> {
    CounterFile::open(file, parse_pressure)
}

/// `some avg10=0.00 avg60=0.00 avg300=0.00 total=150004080`.
fn parse_pressure(text: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix("some ")?.rsplit_once("total=")?.1.trim().parse().ok())
}

/// One line of `/proc/self/mountinfo`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// The device number of files on it; file systems without a block device have an anonymous one, with major number 0.
    pub device: DeviceNumber,
    /// The part of the file system that is mounted here; `/` unless it is a bind mount or a subvolume.
    pub root: PathBuf,
    /// The mount point.
    pub point: PathBuf,
    /// The file system's type, `ext4`.
    pub fs_type: String,
    /// The source: `/dev/vda`, or a name that the file system chooses.
    pub source: PathBuf,
    /// The options of the mount and of the file system, each once, separated by commas: `rw,relatime,discard`.
    pub options: String,
    /// Read-only, by the mount or by the file system.
    pub read_only: bool,
}

#[cfg(test)]
impl Mount {
    /// A mount for tests, of a file system without a block device.
    pub(crate) fn made_up(fs_type: &str, root: &str, point: &str, options: &str) -> Mount {
        Mount {
            device: DeviceNumber { major: 0, minor: 1 },
            root: root.into(),
            point: point.into(),
            fs_type: fs_type.into(),
            source: "none".into(),
            options: options.into(),
            read_only: false,
        }
    }
}

/// Reads `/proc/self/mountinfo`; later mounts cover earlier ones.
pub fn mounts() -> io::Result<Vec<Mount>> {
    Ok(fs::read_to_string("/proc/self/mountinfo")?.lines().filter_map(parse_mount).collect())
}

/// `36 35 98:0 /root /mnt rw,noatime master:1 - ext3 /dev/root rw,errors=continue`, with any number of words between
/// the options and the dash.
fn parse_mount(line: &str) -> Option<Mount> {
    let (left, right) = line.split_once(" - ")?;
    let mut left = left.split(' ').skip(2);
    let (device, root, point, options) = (left.next()?, left.next()?, left.next()?, left.next()?);
    let mut right = right.split(' ');
    let (fs_type, source) = (right.next()?, right.next()?);
    let super_options = right.next().unwrap_or("");
    let mut all: Vec<&str> = Vec::new();
    for option in options.split(',').chain(super_options.split(',')).filter(|option| !option.is_empty()) {
        if !all.contains(&option) {
            all.push(option);
        }
    }
    Some(Mount {
        device: parse_device(device)?,
        root: unescape(root),
        point: unescape(point),
        fs_type: fs_type.to_owned(),
        source: unescape(source),
        options: unescape(&all.join(",")).to_string_lossy().into_owned(),
        read_only: all.contains(&"ro"),
    })
}

/// `254:0`.
pub(crate) fn parse_device(text: &str) -> Option<DeviceNumber> {
    let (major, minor) = text.trim().split_once(':')?;
    Some(DeviceNumber { major: major.parse().ok()?, minor: minor.parse().ok()? })
}

/// Blanks and backslashes are escaped as a backslash and three octal digits.
fn unescape(text: &str) -> PathBuf {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let digits = bytes.get(at + 1..at + 4).and_then(|digits| std::str::from_utf8(digits).ok());
        match (bytes[at], digits.and_then(|digits| u8::from_str_radix(digits, 8).ok())) {
            (b'\\', Some(byte)) => {
                out.push(byte);
                at += 4;
            }
            (byte, _) => {
                out.push(byte);
                at += 1;
            }
        }
    }
    PathBuf::from(OsString::from_vec(out))
}

/// The devices and files in use as swap, from `/proc/swaps`.
pub fn swaps() -> io::Result<Vec<PathBuf>> {
    match fs::read_to_string("/proc/swaps") {
        Ok(text) => Ok(parse_swaps(&text)),
        // A kernel without swap has no such file.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

fn parse_swaps(text: &str) -> Vec<PathBuf> {
    text.lines().skip(1).filter_map(|line| line.split_whitespace().next()).map(unescape).collect()
}

/// A processor's time since boot, from a line of `/proc/stat`, in ticks (usually 10 ms each).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTicks {
    /// User mode, including niced processes.
    pub user: u64,
    /// Kernel, including interrupts.
    pub system: u64,
    /// Interrupts, hard and soft, which `system` includes.
    pub interrupt: u64,
    /// Idle.
    pub idle: u64,
    /// Idle with I/O outstanding.
    pub io_wait: u64,
    /// Stolen: used by the hypervisor for other guests.
    pub steal: u64,
}

impl CpuTicks {
    /// Those counted after `earlier`.
    pub fn since(&self, earlier: &CpuTicks) -> CpuTicks {
        CpuTicks {
            user: self.user.saturating_sub(earlier.user),
            system: self.system.saturating_sub(earlier.system),
            interrupt: self.interrupt.saturating_sub(earlier.interrupt),
            idle: self.idle.saturating_sub(earlier.idle),
            io_wait: self.io_wait.saturating_sub(earlier.io_wait),
            steal: self.steal.saturating_sub(earlier.steal),
        }
    }

    /// All of them.
    pub fn all(&self) -> u64 {
        self.user + self.system + self.steal + self.unused()
    }

    /// Those in which nothing ran, whether I/O was outstanding or not.
    pub fn unused(&self) -> u64 {
        self.idle + self.io_wait
    }
}

impl<'a> Sum<&'a CpuTicks> for CpuTicks {
    fn sum<I: Iterator<Item = &'a CpuTicks>>(all: I) -> CpuTicks {
        all.fold(CpuTicks::default(), |sum, one| CpuTicks {
            user: sum.user + one.user,
            system: sum.system + one.system,
            interrupt: sum.interrupt + one.interrupt,
            idle: sum.idle + one.idle,
            io_wait: sum.io_wait + one.io_wait,
            steal: sum.steal + one.steal,
        })
    }
}

/// Reads each processor's time from `/proc/stat`: its number, and its ticks.
pub fn each_cpu_ticks() -> io::Result<Vec<(u32, CpuTicks)>> {
    Ok(parse_each_cpu_ticks(&fs::read_to_string("/proc/stat")?))
}

/// The same, to be read repeatedly; `None` if it cannot be opened.
pub fn cpu_ticks_file() -> Option<CounterFile<Vec<(u32, CpuTicks)>>> {
    CounterFile::open("/proc/stat", |text| Some(parse_each_cpu_ticks(text)))
}

fn parse_each_cpu_ticks(text: &str) -> Vec<(u32, CpuTicks)> {
    let processor = |line: &str| {
        let (number, figures) = line.strip_prefix("cpu")?.split_once(' ')?;
        Some((number.parse().ok()?, ticks(figures)))
    };
    text.lines().filter_map(processor).collect()
}

fn ticks(figures: &str) -> CpuTicks {
    let numbers: Vec<u64> = figures.split_whitespace().map_while(|word| word.parse().ok()).collect();
    let at = |index: usize| numbers.get(index).copied().unwrap_or(0);
    let interrupt = at(5) + at(6);
    CpuTicks {
        user: at(0) + at(1),
        system: at(2) + interrupt,
        interrupt,
        idle: at(3),
        io_wait: at(4),
        steal: at(7),
    }
}

/// What the machine has done since boot, from `/proc/stat`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MachineActivity {
    /// Each processor's time: its number, and its ticks.
    pub processors: Vec<(u32, CpuTicks)>,
    /// Context switches of all processors.
    pub context_switches: u64,
    /// Interrupts of all processors.
    pub interrupts: u64,
}

/// `/proc/stat` as a whole, to be read repeatedly; `None` if it cannot be opened.
pub fn machine_activity() -> Option<CounterFile<MachineActivity>> {
    CounterFile::open("/proc/stat", |text| Some(parse_machine_activity(text)))
}

fn parse_machine_activity(text: &str) -> MachineActivity {
    let first = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.and_then(|figures| figures.split_whitespace().next()?.parse().ok()).unwrap_or(0)
    };
    MachineActivity {
        processors: parse_each_cpu_ticks(text),
        context_switches: first("ctxt"),
        interrupts: first("intr"),
    }
}

/// What the kernel has moved to and from swap since boot, in bytes; `None` if it does not count that.
pub fn swapped_bytes() -> Option<u64> {
    let text = fs::read_to_string("/proc/vmstat").ok()?;
    let pages =
        |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
    Some((pages("pswpin ")? + pages("pswpout ")?) * map::page_bytes() as u64)
}

/// What this process and its threads, those that have ended included, have had moved, from `/proc/self/io`, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessIo {
    /// Read from block devices and servers on its behalf: what a cache held is not in it.
    pub read_bytes: u64,
    /// Written to them on its behalf, or made dirty in the page cache.
    pub write_bytes: u64,
}

/// Reads `/proc/self/io`.
///
/// # Errors
/// The kernel does not count it, or `/proc` cannot be read.
pub fn process_io() -> io::Result<ProcessIo> {
    Ok(parse_process_io(&fs::read_to_string("/proc/self/io")?))
}

fn parse_process_io(text: &str) -> ProcessIo {
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
    };
    ProcessIo { read_bytes: field("read_bytes"), write_bytes: field("write_bytes") }
}

/// What the disks and the network interfaces of this machine have moved, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MachineTraffic {
    /// Read from disks. What a partition or a stacked device moves is counted again.
    pub disks_read_bytes: u64,
    /// Written to disks.
    pub disks_written_bytes: u64,
    /// Received by all interfaces of this network namespace but the loopback.
    pub received_bytes: u64,
    /// Sent by them.
    pub sent_bytes: u64,
}

/// Reads `/proc/diskstats` and `/proc/net/dev`.
///
/// # Errors
/// One of them cannot be read.
pub fn machine_traffic() -> io::Result<MachineTraffic> {
    Ok(parse_machine_traffic(
        &fs::read_to_string("/proc/diskstats")?,
        &fs::read_to_string("/proc/self/net/dev")?,
    ))
}

fn parse_machine_traffic(disks: &str, interfaces: &str) -> MachineTraffic {
    const SECTOR_BYTES: u64 = 512;
    let sum = |lines: &mut dyn Iterator<Item = &str>, field: usize| -> u64 {
        lines.filter_map(|line| line.split_whitespace().nth(field)?.parse::<u64>().ok()).sum()
    };
    let of_interfaces = |field: usize| {
        let counted = interfaces.lines().filter_map(|line| line.split_once(':'));
        sum(&mut counted.filter(|(name, _)| name.trim() != "lo").map(|(_, counters)| counters), field)
    };
    MachineTraffic {
        disks_read_bytes: sum(&mut disks.lines(), 5) * SECTOR_BYTES,
        disks_written_bytes: sum(&mut disks.lines(), 9) * SECTOR_BYTES,
        received_bytes: of_interfaces(0),
        sent_bytes: of_interfaces(8),
    }
}

/// How long the thread that opens it has waited for a processor, in nanoseconds; `None` if the kernel does not count it.
pub fn waited_for_processor_ns() -> Option<CounterFile<u64>> {
    CounterFile::open("/proc/thread-self/schedstat", |text| text.split_whitespace().nth(1)?.parse().ok())
}

/// Who may use io_uring (`kernel.io_uring_disabled`): 0 all, 1 a group and root, 2 nobody; `None` before Linux 6.6.
pub fn io_uring_disabled() -> Option<u8> {
    line("/proc/sys/kernel/io_uring_disabled").ok()?.parse().ok()
}

/// What users without `CAP_PERFMON` may measure (`kernel.perf_event_paranoid`): from 2 on, not the kernel.
pub fn perf_event_paranoid() -> Option<i32> {
    line("/proc/sys/kernel/perf_event_paranoid").ok()?.parse().ok()
}

/// The unique id of this boot.
pub fn boot_id() -> io::Result<String> {
    line("/proc/sys/kernel/random/boot_id")
}

/// The processor model, if `/proc/cpuinfo` names one.
pub fn cpu_model() -> Option<String> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    crate::cpu_model::cpu_model(&text)
}

/// Other processes that have mapped this character device, as `NUMBER (NAME)`: those whose mappings this one may read.
/// `name` is the kernel's of the device.
pub fn others_mapping(name: &str, device: DeviceNumber) -> Vec<String> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let others = ids.filter(|id| *id != std::process::id() && has_mapped(*id, name, device));
    let shown = |id: u32| format!("{id} ({})", line(&format!("/proc/{id}/comm")).unwrap_or_default());
    others.map(shown).collect()
}

fn has_mapped(id: u32, name: &str, device: DeviceNumber) -> bool {
    let Ok(text) = fs::read_to_string(format!("/proc/{id}/maps")) else { return false };
    let paths = text.lines().filter_map(|line| line.split_once('/')).map(|(_, path)| path);
    // In the process's own tree of files.
    let root = Path::new("/proc").join(id.to_string()).join("root");
    let mut found = paths.filter(|path| path.ends_with(name)).map(|path| root.join(path));
    found.any(|path| stat::stat(&path).is_ok_and(|it| it.kind == InodeKind::Char && it.special == device))
}

fn line(path: &str) -> io::Result<String> {
    Ok(fs::read_to_string(path)?.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn memory_is_read_in_bytes_and_pages_as_a_count() {
        let text = "MemTotal:       24684096 kB\nMemFree:  12 kB\nHugePages_Total:       3\n\
                    HugePages_Free:        1\nHugepagesize:       2048 kB\nMemAvailable:  odd\n";
        let expected = MemoryInfo {
            total_bytes: 24_684_096 * 1024,
            free_bytes: 12 * 1024,
            huge_page_bytes: 2 << 20,
            huge_pages_total: 3,
            huge_pages_free: 1,
            ..MemoryInfo::default()
        };
        assert_eq!(parse_memory(text), expected);
        assert!(memory().unwrap().total_bytes > 0);
    }

    #[test]
    fn a_mount_is_parsed_with_any_optional_fields() {
        let line =
            r"36 35 98:0 /sub /mnt/my\040disk rw,noatime master:1 shared:2 - ext3 /dev/root rw,errors=x";
        let expected = Mount {
            device: DeviceNumber { major: 98, minor: 0 },
            root: PathBuf::from("/sub"),
            point: PathBuf::from("/mnt/my disk"),
            fs_type: "ext3".into(),
            source: PathBuf::from("/dev/root"),
            options: "rw,noatime,errors=x".into(),
            read_only: false,
        };
        assert_eq!(parse_mount(line), Some(expected));
        let bare = parse_mount("1 0 0:5 / /x ro - tmpfs none rw").unwrap();
        assert!(bare.read_only);
        let twice =
            parse_mount(r"1 0 0:5 / /x rw,relatime - overlay o rw,relatime,upperdir=/a\040b").unwrap();
        assert_eq!(twice.options, "rw,relatime,upperdir=/a b");
        assert!(parse_mount("1 0 0:5 / /x rw - ext4 /dev/a ro,relatime").unwrap().read_only);
        assert_eq!(parse_mount("1 0 0:5 / /x rw,errors=remount-ro"), None);
    }

    #[test]
    fn who_has_mapped_a_device_is_found() {
        use crate::map::{Mapping, Protection, Sharing};
        use std::os::fd::AsFd;

        let zero = fs::File::open("/dev/zero").unwrap();
        let number = stat::fstat(&zero).unwrap().special;
        let own = std::process::id();
        let mapping = Mapping::of_file(zero.as_fd(), 0, 4096, Protection::Read, Sharing::Private).unwrap();
        assert!(has_mapped(own, "zero", number));
        assert!(!has_mapped(own, "zero", DeviceNumber { minor: number.minor + 1, ..number }));
        assert!(others_mapping("zero", number).iter().all(|other| !other.starts_with(&format!("{own} "))));
        drop(mapping);
        assert!(!has_mapped(own, "zero", number));
    }

    #[test]
    fn this_machine_has_a_root() {
        assert!(mounts().unwrap().iter().any(|mount| mount.point == Path::new("/")));
    }

    #[test]
    fn backslashes_that_are_not_escapes_are_kept() {
        assert_eq!(unescape(r"a\011b\134c"), PathBuf::from("a\tb\\c"));
        assert_eq!(unescape(r"a\9zz\04"), PathBuf::from(r"a\9zz\04"));
    }

    #[test]
    fn what_is_swapped_is_whole_pages() {
        assert!(swapped_bytes().is_none_or(|bytes| bytes % map::page_bytes() as u64 == 0));
    }

    #[test]
    fn swaps_are_the_first_words_below_the_title() {
        let text =
            "Filename\t\t\tType\t\tSize\n/dev/sda2   partition\t8388604\t0\t-2\n/swap\\040file file 1 0 -3\n";
        assert_eq!(parse_swaps(text), [PathBuf::from("/dev/sda2"), PathBuf::from("/swap file")]);
        assert_eq!(parse_swaps(""), Vec::<PathBuf>::new());
        swaps().unwrap();
    }

    #[test]
    fn each_processor_has_a_line_of_its_own() {
        let each =
            parse_each_cpu_ticks("cpu  10 1 20 300 4 5 6 7\ncpu0 1 2 3 4 5 6 7 8\ncpu3 0 0 0 9\nintr 1 2\n");
        let first = CpuTicks { user: 3, system: 16, interrupt: 13, idle: 4, io_wait: 5, steal: 8 };
        assert_eq!(each, [(0, first), (3, CpuTicks { idle: 9, ..CpuTicks::default() })]);
        assert!(!each_cpu_ticks().unwrap().is_empty());
        assert!(!cpu_ticks_file().unwrap().read().unwrap().is_empty());
    }

    #[test]
    fn context_switches_and_interrupts_are_those_of_all_processors() {
        let text = "cpu  1 2 3\ncpu0 1 2 3 4\nintr 474 0 5\nctxt 836\nsoftirq 9 9\n";
        let activity = parse_machine_activity(text);
        assert_eq!(
            (activity.context_switches, activity.interrupts, activity.processors.len()),
            (836, 474, 1)
        );
        assert_eq!(parse_machine_activity("ctxt\nintr x\n"), MachineActivity::default());
        assert!(machine_activity().unwrap().read().unwrap().context_switches > 0);
    }

    #[test]
    fn a_process_is_charged_for_what_devices_moved() {
        let text = "rchar: 9\nread_bytes: 4096\nwrite_bytes: 512\ncancelled_write_bytes: 7\n";
        assert_eq!(parse_process_io(text), ProcessIo { read_bytes: 4096, write_bytes: 512 });
    }

    #[test]
    fn dirty_pages_and_their_limits_are_read() {
        let text = "nr_dirty 5\nnr_writeback 7\nnr_dirty_threshold 400\nnr_dirty_background_threshold 200\n";
        let pages =
            DirtyPages { dirty_pages: 5, writeback_pages: 7, background_pages: 200, limit_pages: 400 };
        assert_eq!(parse_dirty_pages(text), Some(pages));
        assert_eq!(parse_dirty_pages("nr_dirty 5\n"), None);
        assert!(dirty_pages().unwrap().read().unwrap().limit_pages > 0);
    }

    #[test]
    fn pressure_is_the_time_that_some_task_waited() {
        let text = "some avg10=0.00 avg60=0.36 avg300=0.73 total=2274\nfull avg10=0.00 total=72\n";
        assert_eq!(parse_pressure(text), Some(2274));
        assert_eq!(parse_pressure(""), None);
        assert!(pressure_us("/nowhere").is_none());
    }

    #[test]
    fn traffic_is_that_of_all_disks_and_interfaces() {
        let disks = "   8       0 sda 10 0 200 5 20 0 400 9 0 7 7\n   8       1 sda1 1 0 2 5 2 0 4 9 0 7 7\n";
        let interfaces = "Inter-|   Receive\n face |bytes\n    lo: 900 1 0 0 0 0 0 0 900 1 0 0 0 0 0 0\n  eth0: 30 1 0 0 0 0 \
                          0 0 50 1 0 0 0 0 0 0\n";
        let expected = MachineTraffic {
            disks_read_bytes: 202 * 512,
            disks_written_bytes: 404 * 512,
            received_bytes: 30,
            sent_bytes: 50,
        };
        assert_eq!(parse_machine_traffic(disks, interfaces), expected);
        assert!(machine_traffic().is_ok());
    }
}
