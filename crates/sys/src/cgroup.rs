//! The control groups of this process: the limits on its processor time, its I/O and its memory, in both versions of
//! the kernel's interface.
//!
//! Invariant: a limit of any group on the way to the root counts, because the kernel applies all of them; a group that
//! cannot be read has no limit.

use crate::counter_file::CounterFile;
use crate::procfs::{self, Mount, parse_device};
use crate::stat::DeviceNumber;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

/// The directories of this process's groups, from its own to the root: of version 2, and of the controllers `cpu`, `blkio`
/// and `memory` of version 1.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Groups {
    unified: Vec<PathBuf>,
    cpu: Vec<PathBuf>,
    blkio: Vec<PathBuf>,
    memory: Vec<PathBuf>,
}

/// A limit on memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryLimit {
    /// The limit.
    pub limit_bytes: u64,
    /// What cannot be reclaimed of what is used: the page cache does not count.
    pub used_bytes: u64,
}

impl MemoryLimit {
    /// What is left.
    pub fn left_bytes(&self) -> u64 {
        self.limit_bytes.saturating_sub(self.used_bytes)
    }
}

/// A limit on I/O to a device, per second.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IoLimit {
    /// The device, a whole disk.
    pub device: DeviceNumber,
    /// What is limited, in the kernel's words: `rbps`, `wbps`, `riops`, `wiops`.
    pub what: String,
    /// Bytes or I/Os per second.
    pub per_s: u64,
}

impl Groups {
    /// Those of this process.
    ///
    /// # Errors
    /// `/proc` cannot be read.
    pub fn read() -> io::Result<Groups> {
        Ok(Groups::of(&fs::read_to_string("/proc/self/cgroup")?, &procfs::mounts()?))
    }

    /// Lines of `/proc/self/cgroup` are `4:memory:/a/b`; of version 2 `0::/a/b`.
    fn of(text: &str, mounts: &[Mount]) -> Groups {
        let mut groups = Groups::default();
        for line in text.lines() {
            let mut fields = line.splitn(3, ':');
            let (Some(_), Some(controllers), Some(path)) = (fields.next(), fields.next(), fields.next())
            else {
                continue;
            };
            if controllers.is_empty() {
                groups.unified = directories(path, mounts, |mount| mount.fs_type == "cgroup2");
            }
            let version_1 =
                [("cpu", &mut groups.cpu), ("blkio", &mut groups.blkio), ("memory", &mut groups.memory)];
            for (controller, into) in version_1 {
                if controllers.split(',').any(|word| word == controller) {
                    *into = directories(path, mounts, |mount| {
                        mount.fs_type == "cgroup" && mount.options.split(',').any(|word| word == controller)
                    });
                }
            }
        }
        groups
    }

    /// The directory of this process's own group of version 2.
    pub(crate) fn unified_own(&self) -> Option<PathBuf> {
        self.unified.first().cloned()
    }

    /// For how long the limits on processor time have stopped threads of these groups, in microseconds since the groups
    /// were made; `None` where the kernel does not count it.
    pub fn throttled_us(&self) -> Option<u64> {
        let of = |directories: &[PathBuf], key: &str, per_us: u64| {
            let counted = directories.iter().filter_map(|directory| {
                let text = fs::read_to_string(directory.join("cpu.stat")).ok()?;
                Some(field(&text, key)? / per_us)
            });
            counted.reduce(|sum, one| sum + one)
        };
        let (unified, cpu) = (of(&self.unified, "throttled_usec", 1), of(&self.cpu, "throttled_time", 1000));
        unified.into_iter().chain(cpu).reduce(|sum, one| sum + one)
    }

    /// How many processors' time these groups may use, the smallest limit of all; `None` without a limit.
    pub fn processors(&self) -> Option<f64> {
        let text = |directory: &PathBuf, file: &str| fs::read_to_string(directory.join(file)).ok();
        let unified = self.unified.iter().filter_map(|directory| parse_cpu_max(&text(directory, "cpu.max")?));
        let cpu = self.cpu.iter().filter_map(|directory| {
            let period = text(directory, "cpu.cfs_period_us")?;
            parse_cpu_max(&format!("{} {period}", text(directory, "cpu.cfs_quota_us")?.trim()))
        });
        unified.chain(cpu).min_by(f64::total_cmp)
    }

    /// The limit on memory of the group that has least left; `None` without a limit.
    pub fn memory(&self) -> Option<MemoryLimit> {
        let of = |directory: &PathBuf, file: &str, key: &str| {
            let number = |file: &str| fs::read_to_string(directory.join(file)).ok();
            let limit_bytes = number(file)?.trim().parse().ok()?;
            Some(MemoryLimit { limit_bytes, used_bytes: field(&number("memory.stat")?, key)? })
        };
        let unified = self.unified.iter().filter_map(|directory| of(directory, "memory.max", "anon"));
        // Of version 1 the largest number of pages is no limit.
        let version_1 =
            self.memory.iter().filter_map(|directory| of(directory, "memory.limit_in_bytes", "total_rss"));
        let version_1 = version_1.filter(|limit| limit.limit_bytes < 1 << 62);
        unified.chain(version_1).min_by_key(MemoryLimit::left_bytes)
    }

    /// For how long some task of this process's own group has waited for a resource (`cpu`, `io`, `memory`), in
    /// microseconds since the group was made; `None` in version 1.
    pub fn pressure_us(&self, resource: &str) -> Option<CounterFile<u64>> {
        procfs::pressure_us(self.unified.first()?.join(format!("{resource}.pressure")))
    }

    /// The limits on I/O, those of the nearest group first.
    pub fn io_limits(&self) -> Vec<IoLimit> {
        let text = |directory: &PathBuf, file: &str| fs::read_to_string(directory.join(file)).ok();
        let mut limits = Vec::new();
        for text in self.unified.iter().filter_map(|directory| text(directory, "io.max")) {
            limits.extend(text.lines().flat_map(parse_io_max));
        }
        for (what, file, ..) in THROTTLES {
            for text in self.blkio.iter().filter_map(|directory| text(directory, file)) {
                limits.extend(text.lines().filter_map(|line| parse_throttle(line, what)));
            }
        }
        limits
    }
}

/// A limit of any group of this machine, and what the group has done since it was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitedGroup {
    /// The group below the root of its hierarchy: `/system.slice/db.service`.
    pub group: PathBuf,
    /// Its limit.
    pub limit: IoLimit,
    /// Bytes or I/Os, whichever is limited, of the group and of those below it.
    pub done: u64,
}

/// The files of version 1 by what they limit, and what counts it: file of the limit, file of the count, its word.
const THROTTLES: [(&str, &str, &str, &str); 4] = [
    ("rbps", "blkio.throttle.read_bps_device", "blkio.throttle.io_service_bytes_recursive", "Read"),
    ("wbps", "blkio.throttle.write_bps_device", "blkio.throttle.io_service_bytes_recursive", "Write"),
    ("riops", "blkio.throttle.read_iops_device", "blkio.throttle.io_serviced_recursive", "Read"),
    ("wiops", "blkio.throttle.write_iops_device", "blkio.throttle.io_serviced_recursive", "Write"),
];

/// The counters of version 2 by what is limited.
const COUNTERS: [(&str, &str); 4] =
    [("rbps", "rbytes"), ("wbps", "wbytes"), ("riops", "rios"), ("wiops", "wios")];

/// The limits on I/O of all groups of this machine that can be read.
pub fn limited_groups() -> Vec<LimitedGroup> {
    let has_io =
        |mount: &Mount| mount.fs_type == "cgroup2" || mount.options.split(',').any(|word| word == "blkio");
    let mut found = Vec::new();
    for_each_group(has_io, |directory, group| found.extend(limits_in(directory, group)));
    found
}

/// Calls `visit` with the directory and the name of each group of the hierarchies that are wanted.
fn for_each_group(is_wanted: impl Fn(&Mount) -> bool, mut visit: impl FnMut(&Path, &Path)) {
    for mount in hierarchies().iter().filter(|mount| is_wanted(mount)) {
        let mut directories = vec![mount.point.clone()];
        while let Some(directory) = directories.pop() {
            visit(&directory, &group_of(&directory, mount));
            let entries = fs::read_dir(&directory).into_iter().flatten().flatten();
            let below = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
            directories.extend(below.map(|entry| entry.path()));
        }
    }
}

/// Where control groups are mounted.
fn hierarchies() -> Vec<Mount> {
    let mut mounts = procfs::mounts().unwrap_or_default();
    mounts.retain(|mount| mount.fs_type == "cgroup2" || mount.fs_type == "cgroup");
    mounts
}

/// The name of the group with this directory. In a container the mount may begin below the root of the hierarchy.
fn group_of(directory: &Path, mount: &Mount) -> PathBuf {
    mount.root.join(directory.strip_prefix(&mount.point).unwrap_or(directory))
}

/// The name of a group that exists, given by it (`/system.slice/db.service`) or by its directory
/// (`/sys/fs/cgroup/system.slice/db.service`).
pub fn named(path: &Path) -> Option<PathBuf> {
    let is_group = |directory: &Path| {
        let leads_up = directory.components().any(|part| part == Component::ParentDir);
        !leads_up && directory.join("cgroup.procs").exists()
    };
    let mounts = hierarchies();
    let by_directory = mounts.iter().filter(|mount| path.starts_with(&mount.point) && is_group(path));
    // The hierarchy of version 2 may be mounted below those of version 1.
    if let Some(mount) = by_directory.max_by_key(|mount| mount.point.as_os_str().len()) {
        return Some(group_of(path, mount));
    }
    let inside = |mount: &Mount| {
        let below = path.strip_prefix(&mount.root).or(path.strip_prefix("/")).unwrap_or(path);
        is_group(&mount.point.join(below)).then(|| mount.root.join(below))
    };
    mounts.iter().find_map(inside)
}

/// The groups of containers whose identifier begins with this text, each once; those inside a container are left out.
/// Their last part is the identifier (`/docker/ID`), or has it behind a dash (`docker-ID.scope`).
pub fn of_container(id: &str) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    for_each_group(
        |_| true,
        |_, group| {
            let is_it = is_of_container(group, id)
                && !group.ancestors().skip(1).any(|above| is_of_container(above, id));
            if is_it && !found.iter().any(|known| known == group) {
                found.push(group.to_path_buf());
            }
        },
    );
    found
}

/// The container whose group this is, or is above it: as much of its identifier as `docker ps` prints.
pub fn container_of(group: &str) -> Option<&str> {
    /// What engines give to each; shorter words may be anything.
    const DIGITS: usize = 64;
    let mut whole = group.split('/').filter_map(identifier).filter(|id| id.len() == DIGITS);
    whole.next().map(|id| &id[..12])
}

/// The identifier that the last part of a container's group has, or may have.
fn identifier(name: &str) -> Option<&str> {
    let name = name.strip_suffix(".scope").unwrap_or(name);
    let (runtime, own) = name.rsplit_once('-').unwrap_or(("", name));
    // Podman's monitor of a container is beside it.
    let is_monitor = runtime.ends_with("conmon");
    (!is_monitor && own.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(own)
}

fn is_of_container(group: &Path, id: &str) -> bool {
    /// Fewer digits are part of many words.
    const DIGITS_MIN: usize = 8;
    let own = group.file_name().and_then(|name| identifier(name.to_str()?)).unwrap_or_default();
    id.len() >= DIGITS_MIN && own.starts_with(id)
}

fn limits_in(directory: &Path, group: &Path) -> Vec<LimitedGroup> {
    let text = |file: &str| fs::read_to_string(directory.join(file)).unwrap_or_default();
    let limited = |limit: IoLimit, done: Option<u64>| LimitedGroup {
        group: group.to_path_buf(),
        limit,
        done: done.unwrap_or(0),
    };
    let mut found = Vec::new();
    for limit in text("io.max").lines().flat_map(parse_io_max) {
        let counter = COUNTERS.iter().find(|(what, _)| *what == limit.what).map(|(_, counter)| *counter);
        let done = counter.and_then(|counter| counted(&text("io.stat"), limit.device, counter));
        found.push(limited(limit, done));
    }
    for (what, limits, counts, word) in THROTTLES {
        for limit in text(limits).lines().filter_map(|line| parse_throttle(line, what)) {
            let done = serviced(&text(counts), limit.device, word);
            found.push(limited(limit, done));
        }
    }
    found
}

/// `8:16 rbytes=1459200 wbytes=314773504 rios=192 wios=353 dbytes=0 dios=0`.
fn counted(text: &str, device: DeviceNumber, counter: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("{device} ")))?;
    line.split(' ').find_map(|word| word.strip_prefix(counter)?.strip_prefix('=')?.parse().ok())
}

/// `8:16 Read 1459200`.
fn serviced(text: &str, device: DeviceNumber, word: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(&format!("{device} {word} "))?.trim().parse().ok())
}

/// The directory of a group and of those above it, below where the hierarchy is mounted.
fn directories(group: &str, mounts: &[Mount], is_it: impl Fn(&Mount) -> bool) -> Vec<PathBuf> {
    let Some(mount) = mounts.iter().rev().find(|mount| is_it(mount)) else { return Vec::new() };
    // In a container the mount may begin below the root of the hierarchy.
    let inside = Path::new(group).strip_prefix(&mount.root).unwrap_or(Path::new(""));
    inside.ancestors().map(|part| mount.point.join(part)).collect()
}

fn field(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')?.trim().parse().ok())
}

/// `50000 100000`: so many microseconds in each period of so many; without a limit `max` or `-1`.
fn parse_cpu_max(text: &str) -> Option<f64> {
    let (quota_us, period_us) = text.trim().split_once(' ')?;
    let (quota_us, period_us): (u64, u64) = (quota_us.parse().ok()?, period_us.trim().parse().ok()?);
    (period_us > 0).then(|| quota_us as f64 / period_us as f64)
}

/// `8:16 rbps=2097152 wbps=max riops=max wiops=120`.
fn parse_io_max(line: &str) -> Vec<IoLimit> {
    let mut words = line.split(' ');
    let Some(device) = words.next().and_then(parse_device) else { return Vec::new() };
    let limit = |word: &str| {
        let (what, per_s) = word.split_once('=')?;
        Some(IoLimit { device, what: what.to_owned(), per_s: per_s.parse().ok()? })
    };
    words.filter_map(limit).collect()
}

/// `8:16 2097152`.
fn parse_throttle(line: &str, what: &str) -> Option<IoLimit> {
    let (device, per_s) = line.split_once([' ', '\t'])?;
    let per_s = per_s.trim().parse().ok()?;
    Some(IoLimit { device: parse_device(device)?, what: what.to_owned(), per_s })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_found_from_the_own_one_to_the_root() {
        let mounts = [
            Mount::made_up("cgroup2", "/", "/sys/fs/cgroup", "rw"),
            Mount::made_up("cgroup", "/docker/x", "/cg/cpu", "rw,cpu,cpuacct"),
            Mount::made_up("cgroup", "/", "/cg/blkio", "rw,blkio"),
        ];
        let groups = Groups::of("5:cpu,cpuacct:/docker/x/y\n4:blkio:/\nodd\n0::/a/b\n", &mounts);
        let paths = |all: &[&str]| all.iter().map(PathBuf::from).collect::<Vec<_>>();
        assert_eq!(groups.unified, paths(&["/sys/fs/cgroup/a/b", "/sys/fs/cgroup/a", "/sys/fs/cgroup/"]));
        assert_eq!(groups.cpu, paths(&["/cg/cpu/y", "/cg/cpu/"]));
        assert_eq!(groups.blkio, paths(&["/cg/blkio/"]));
        assert_eq!(Groups::of("0::/a\n", &[]), Groups::default());
    }

    #[test]
    fn limits_are_read_in_both_versions_and_max_is_none() {
        let limit = |what: &str, per_s| IoLimit {
            device: DeviceNumber { major: 8, minor: 16 },
            what: what.to_owned(),
            per_s,
        };
        let line = "8:16 rbps=2097152 wbps=max riops=max wiops=120";
        assert_eq!(parse_io_max(line), [limit("rbps", 2_097_152), limit("wiops", 120)]);
        assert_eq!(parse_throttle("8:16 2097152", "wbps"), Some(limit("wbps", 2_097_152)));
        assert_eq!((parse_io_max("odd"), parse_throttle("Total 1", "wbps")), (Vec::new(), None));
    }

    #[test]
    fn what_a_limited_group_has_done_is_counted_in_both_versions() {
        let directory = std::env::temp_dir().join(format!("fiord-groups-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let write = |file: &str, text: &str| fs::write(directory.join(file), text).unwrap();
        write("io.max", "8:16 rbps=max wbps=1000 riops=max wiops=max\n");
        write("io.stat", "8:1 wbytes=7\n8:16 rbytes=3 wbytes=900 rios=1 wios=2 dbytes=0 dios=0\n");
        write("blkio.throttle.read_iops_device", "8:1 50\n");
        write("blkio.throttle.io_serviced_recursive", "8:1 Read 20\n8:1 Write 3\nTotal 23\n");
        let found = limits_in(&directory, Path::new("/db"));
        fs::remove_dir_all(&directory).unwrap();
        let shown: Vec<_> =
            found.iter().map(|of| (of.limit.what.as_str(), of.limit.per_s, of.done)).collect();
        assert_eq!(shown, [("wbps", 1000, 900), ("riops", 50, 20)]);
        assert!(limited_groups().iter().all(|of| of.group.is_absolute()));
    }

    #[test]
    fn a_group_is_found_by_name_by_directory_and_by_its_container() {
        let mount = Mount::made_up("cgroup2", "/docker/x", "/cg", "rw");
        assert_eq!(group_of(Path::new("/cg/a"), &mount), Path::new("/docker/x/a"));
        assert_eq!(group_of(Path::new("/cg"), &mount), Path::new("/docker/x/"));
        assert_eq!((named(Path::new("/fiord/no-such-group")), named(Path::new("/proc/1"))), (None, None));
        for mount in hierarchies().iter().filter(|mount| mount.point.join("cgroup.procs").exists()) {
            assert_eq!(named(&mount.point), Some(mount.root.clone()), "{mount:?}");
        }
        let id = "3f4a9c0d11e2";
        for group in
            ["/docker/3f4a9c0d11e2", "/system.slice/docker-3f4a9c0d11e2aa.scope", "/m/libpod-3f4a9c0d11e2"]
        {
            assert!(is_of_container(Path::new(group), id), "{group}");
        }
        for other in [
            "/",
            "/docker",
            "/docker/3f4a9c0d11ff",
            "/libpod-conmon-3f4a9c0d11e2.scope",
            "/a/b-3f4a9c0d11e2z",
        ] {
            assert!(!is_of_container(Path::new(other), id), "{other}");
        }
        assert!(!is_of_container(Path::new("/docker/3f4a9c0d11e2"), "3f"), "a word");
        assert!(of_container("no-such-container").is_empty());
    }

    #[test]
    fn a_group_below_that_of_a_container_is_of_it_as_well() {
        let id = "3f4a9c0d11e2".to_string() + &"0".repeat(52);
        for group in [
            format!("/docker/{id}"),
            format!("/system.slice/docker-{id}.scope/init"),
            format!("/kubepods/burstable/pod1b2c/{id}"),
            format!("/machine.slice/libpod-{id}.scope"),
        ] {
            assert_eq!(container_of(&group), Some("3f4a9c0d11e2"), "{group}");
        }
        let others =
            ["/".to_string(), "/docker/3f4a9c0d11e2".to_string(), format!("/libpod-conmon-{id}.scope")];
        assert!(others.iter().all(|other| container_of(other).is_none()), "{others:?}");
    }

    #[test]
    fn a_share_of_processors_is_a_quota_in_a_period() {
        assert_eq!(parse_cpu_max("50000 100000\n"), Some(0.5));
        assert_eq!(parse_cpu_max("400000 100000\n"), Some(4.0));
        for none in ["max 100000\n", "-1 100000\n", "", "5000 0"] {
            assert_eq!(parse_cpu_max(none), None, "{none:?}");
        }
    }

    #[test]
    fn time_stopped_is_one_field() {
        let text = "nr_periods 3\nnr_throttled 1\nthrottled_time 5000\nthrottled_usec 7\n";
        assert_eq!((field(text, "throttled_time"), field(text, "throttled_usec")), (Some(5000), Some(7)));
        assert_eq!(field(text, "throttled"), None);
        let groups = Groups::read().unwrap();
        groups.io_limits();
        assert!(groups.memory().is_none_or(|limit| limit.left_bytes() > 0));
    }
}
