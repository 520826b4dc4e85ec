//! A path that a job is to read or write: what it is, how large, on what, and under which conditions.
//!
//! Invariant: probing opens nothing but block devices and regular files, for reading, and never waits: a pipe is not
//! opened, and a path that leads nowhere is a fact and not an error.

use fiord_sys::blkdev;
use fiord_sys::file::{self, OpenHow};
use fiord_sys::procfs::Mount;
use fiord_sys::stat::{self, DeviceNumber, DirectSupport, Kind, Stat};
use fiord_sys::sysfs::{BlockDevice, Queue, Sysfs};
use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use crate::claims::Claim;
use crate::signature;
use crate::users::Users;

/// What kind of thing a path leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetKind {
    /// A file in a file system.
    Regular,
    /// A block device.
    Block,
    /// A character device.
    Char,
    /// A directory.
    Directory,
    /// A named pipe.
    Pipe,
    /// A socket, or something newer.
    Other,
    /// Nothing yet.
    Absent,
}

impl TargetKind {
    /// What something existing is.
    pub(crate) fn of(kind: Kind) -> TargetKind {
        match kind {
            Kind::Regular => TargetKind::Regular,
            Kind::Block => TargetKind::Block,
            Kind::Char => TargetKind::Char,
            Kind::Directory => TargetKind::Directory,
            Kind::Fifo => TargetKind::Pipe,
            Kind::Other => TargetKind::Other,
        }
    }
}

/// The file system that a path lies on, or would lie on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSystemFacts {
    /// Its type, `ext4`; a hexadecimal number where it has no name here.
    pub type_name: String,
    /// Where it is mounted, where the mount table tells.
    pub mount_point: Option<PathBuf>,
    /// What was mounted, where the mount table tells: `/dev/vda`, a server's name, or a word of the file system's own.
    pub source: Option<PathBuf>,
    /// The options of the mount and of the file system, where the mount table tells: `rw,relatime,discard`.
    pub options: Option<String>,
    /// Mounted read-only.
    pub read_only: bool,
    /// Its size in bytes.
    pub total_bytes: u64,
    /// Free bytes, those kept for root included.
    pub free_bytes: u64,
    /// Bytes free for anybody.
    pub available_bytes: u64,
}

/// What is known about a target before it is touched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetFacts {
    /// The path as it was given.
    pub path: PathBuf,
    /// What it leads to, symbolic links followed.
    pub kind: TargetKind,
    /// Size of a regular file or block device, in bytes; `None` for what has none, or where a device may not be opened.
    pub size_bytes: Option<u64>,
    /// Bytes set aside for a regular file; less than its size where it is sparse.
    pub allocated_bytes: Option<u64>,
    /// The number of a device; of a file, the number of the device that holds it.
    pub device: Option<DeviceNumber>,
    /// The file system of a regular file or directory, or of the nearest existing directory above what is absent.
    pub file_system: Option<FileSystemFacts>,
    /// Where a directory on the way is missing: the first such.
    pub missing_directory: Option<PathBuf>,
    /// The unit the device under it is addressed in, in bytes.
    pub logical_block_bytes: Option<u32>,
    /// The unit the device under it writes without reading first, in bytes.
    pub physical_block_bytes: Option<u32>,
    /// Whether direct I/O works, and with what alignment.
    pub direct: DirectSupport,
    /// Writing is impossible: the file system is mounted read-only, or the device takes no writes.
    pub read_only: bool,
    /// Who else has a block device or a regular file; empty for everything else.
    pub claims: Vec<Claim>,
    /// Of a directory, and of what is absent: what is made there stands among the nodes of devices, in `/dev` or wherever
    /// the kernel's file system of devices is mounted. A file system of its own below `/dev` (`/dev/shm`) is none of that.
    pub among_devices: bool,
    /// Of what is absent among devices: what there is in the nearest directory, sorted.
    pub neighbours: Vec<PathBuf>,
    /// The whole disk under it, by the kernel's name, whose counters tell what it did.
    pub disk: Option<String>,
    /// That disk's queue.
    pub queue: Option<Queue>,
}

impl TargetFacts {
    /// The alignment that offsets and lengths of direct I/O need, in bytes: what the kernel says, or else the device's
    /// logical block, or else unknown.
    pub fn direct_offset_bytes(&self) -> Option<u32> {
        match self.direct {
            DirectSupport::Aligned(alignment) => Some(alignment.offset_bytes),
            DirectSupport::Unsupported => None,
            DirectSupport::Unknown => self.logical_block_bytes,
        }
    }

    /// The alignment that buffers of direct I/O need, in bytes, found likewise.
    pub fn direct_memory_bytes(&self) -> Option<u32> {
        match self.direct {
            DirectSupport::Aligned(alignment) => Some(alignment.memory_bytes),
            DirectSupport::Unsupported => None,
            DirectSupport::Unknown => self.logical_block_bytes,
        }
    }

    /// Claims by somebody who uses the device at this moment.
    pub fn live_claims(&self) -> impl Iterator<Item = &Claim> {
        self.claims.iter().filter(|claim| claim.is_live())
    }
}

/// The prober. What many targets have in common, mounts and disks, it looks at once.
#[derive(Debug, Default)]
pub struct Prober {
    users: OnceCell<Users>,
    disks: RefCell<BTreeMap<DeviceNumber, Option<Disk>>>,
}

/// What lies under files of one device number.
#[derive(Clone, Debug)]
struct Disk {
    name: String,
    queue: Queue,
}

impl Disk {
    fn of(device: &BlockDevice) -> Disk {
        Disk { name: device.disk().name().to_owned(), queue: device.queue() }
    }
}

impl Prober {
    /// Finds out about `path`. An error is a path that cannot be looked at: no permission on the way, a loop of
    /// links, a name that is too long, something on the way that is no directory.
    pub fn probe(&self, path: &Path) -> io::Result<TargetFacts> {
        match stat::stat(path) {
            Ok(found) => Ok(self.existing(path, &found)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.absent(path),
            Err(error) => Err(error),
        }
    }

    fn existing(&self, path: &Path, found: &Stat) -> TargetFacts {
        let mut facts = nothing(path);
        facts.kind = TargetKind::of(found.kind);
        match facts.kind {
            TargetKind::Block => {
                block_device(&mut facts, found.special);
                facts.claims = self.users().on(path, found);
                let what = signature::of_device(path).ok().flatten();
                facts.claims.extend(what.map(|what| Claim::Holds { what }));
            }
            TargetKind::Char => facts.device = Some(found.special),
            TargetKind::Regular => {
                facts.size_bytes = Some(found.size_bytes);
                facts.allocated_bytes = Some(found.allocated_bytes);
                self.on_file_system(&mut facts, path, found.device);
                facts.direct = direct_support(path);
                facts.claims = self.users().on(path, found);
            }
            _ => self.on_file_system(&mut facts, path, found.device),
        }
        facts
    }

    fn absent(&self, given: &Path) -> io::Result<TargetFacts> {
        let mut facts = nothing(given);
        // What is made through a link that leads nowhere is made where the link points to.
        let path = &end_of_links(given);
        let above = nearest_existing(path);
        let found = stat::stat(&above)?;
        if found.kind != Kind::Directory {
            return Err(io::Error::from(io::ErrorKind::NotADirectory));
        }
        facts.missing_directory = first_missing(path, &above);
        self.on_file_system(&mut facts, &above, found.device);
        if facts.among_devices {
            facts.neighbours = entries(&above);
        }
        Ok(facts)
    }

    fn on_file_system(&self, facts: &mut TargetFacts, path: &Path, device: DeviceNumber) {
        facts.device = Some(device);
        facts.file_system = self.file_system_facts(path, device);
        facts.among_devices =
            facts.kind != TargetKind::Regular && is_among_devices(path, facts.file_system.as_ref());
        facts.read_only = facts.file_system.as_ref().is_some_and(|system| system.read_only);
        if let Some(disk) = self.disk(device) {
            on_disk(facts, disk);
        }
    }

    fn disk(&self, number: DeviceNumber) -> Option<Disk> {
        let look = || Sysfs::default().block_device_of(number).ok().map(|device| Disk::of(&device));
        self.disks.borrow_mut().entry(number).or_insert_with(look).clone()
    }

    fn file_system_facts(&self, path: &Path, device: DeviceNumber) -> Option<FileSystemFacts> {
        file_system_facts(path, device, &self.users().system().mounts)
    }

    fn users(&self) -> &Users {
        self.users.get_or_init(Users::read)
    }
}

fn nothing(path: &Path) -> TargetFacts {
    TargetFacts {
        path: path.to_owned(),
        kind: TargetKind::Absent,
        size_bytes: None,
        allocated_bytes: None,
        device: None,
        file_system: None,
        missing_directory: None,
        logical_block_bytes: None,
        physical_block_bytes: None,
        direct: DirectSupport::Unknown,
        read_only: false,
        claims: Vec::new(),
        among_devices: false,
        neighbours: Vec::new(),
        disk: None,
        queue: None,
    }
}

fn block_device(facts: &mut TargetFacts, number: DeviceNumber) {
    let path = facts.path.clone();
    let device = Sysfs::default().block_device_of(number).ok();
    facts.device = Some(number);
    facts.size_bytes = device.as_ref().and_then(|device| device.size_bytes().ok());
    facts.read_only = device.as_ref().is_some_and(BlockDevice::is_read_only);
    facts.direct = direct_support(&path);
    if let Some(device) = &device {
        on_disk(facts, Disk::of(device));
    }
    // The device's own word goes before the file tree's, which a container may hide.
    if let Ok(open) = file::open(&path, &OpenHow { nonblocking: true, ..OpenHow::READ }) {
        facts.size_bytes = blkdev::size_bytes(&open).ok().or(facts.size_bytes);
        facts.logical_block_bytes = blkdev::logical_block_bytes(&open).ok().or(facts.logical_block_bytes);
        facts.physical_block_bytes = blkdev::physical_block_bytes(&open).ok().or(facts.physical_block_bytes);
        facts.read_only = blkdev::is_read_only(&open).unwrap_or(facts.read_only);
    }
}

fn on_disk(facts: &mut TargetFacts, disk: Disk) {
    let Disk { name, queue } = disk;
    facts.disk = Some(name);
    facts.logical_block_bytes = u32::try_from(queue.logical_block_bytes).ok();
    facts.physical_block_bytes = u32::try_from(queue.physical_block_bytes).ok();
    facts.queue = Some(queue);
}

/// The file system that an existing `path` lies on; `None` where it cannot be asked.
pub(crate) fn file_system_facts(
    path: &Path,
    device: DeviceNumber,
    mounts: &[Mount],
) -> Option<FileSystemFacts> {
    let system = stat::file_system(path).ok()?;
    let mount = mount_of(path, device, mounts);
    let by_number = || system.type_name().map_or_else(|| format!("{:#x}", system.magic), str::to_owned);
    Some(FileSystemFacts {
        type_name: mount.map_or_else(by_number, |mount| mount.fs_type.clone()),
        mount_point: mount.map(|mount| mount.point.clone()),
        source: mount.map(|mount| mount.source.clone()),
        options: mount.map(|mount| mount.options.clone()),
        read_only: system.read_only,
        total_bytes: system.total_bytes,
        free_bytes: system.free_bytes,
        available_bytes: system.available_bytes,
    })
}

/// The mount that a path lies on: the longest mount point above it, and the last of several there. One with the file's
/// own device number is preferred; btrfs gives files a number that no mount has.
fn mount_of<'a>(path: &Path, device: DeviceNumber, mounts: &'a [Mount]) -> Option<&'a Mount> {
    let real = std::fs::canonicalize(path).ok()?;
    let above = || mounts.iter().filter(|mount| real.starts_with(&mount.point));
    let depth = |mount: &&Mount| mount.point.components().count();
    above().filter(|mount| mount.device == device).max_by_key(depth).or_else(|| above().max_by_key(depth))
}

/// What the kernel tells about direct I/O, or, where it does not tell, whether a direct open works at all.
fn direct_support(path: &Path) -> DirectSupport {
    let told = stat::direct_support(path).unwrap_or(DirectSupport::Unknown);
    if told != DirectSupport::Unknown {
        return told;
    }
    let how = OpenHow { direct: true, nonblocking: true, ..OpenHow::READ };
    match file::open(path, &how) {
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => DirectSupport::Unsupported,
        _ => DirectSupport::Unknown,
    }
}

/// The path itself, or the nearest thing above it that is there.
pub(crate) fn nearest_existing(path: &Path) -> PathBuf {
    // A name alone is in the current directory, which has an empty path as its parent.
    let named =
        |above: &Path| if above.as_os_str().is_empty() { PathBuf::from(".") } else { above.to_owned() };
    path.ancestors().map(named).find(|above| stat::stat(above).is_ok()).unwrap_or_else(|| PathBuf::from("/"))
}

/// Where a chain of symbolic links that leads to nothing ends: the path that would be made by opening it.
fn end_of_links(path: &Path) -> PathBuf {
    // As many as the kernel follows.
    const LINKS_MAX: usize = 40;
    let mut end = path.to_owned();
    for _ in 0..LINKS_MAX {
        let Ok(target) = std::fs::read_link(&end) else { break };
        end = end.parent().map_or_else(|| target.clone(), |above| above.join(&target));
    }
    end
}

/// Whether what is made in this directory would stand among the nodes of devices. By the type of the file system, and by
/// the path as well: in a container `/dev` is an ordinary file system.
fn is_among_devices(directory: &Path, system: Option<&FileSystemFacts>) -> bool {
    let dev = Path::new("/dev");
    let of_devices = system.is_some_and(|system| ["devtmpfs", "devfs"].contains(&system.type_name.as_str()));
    let mount_point = system.and_then(|system| system.mount_point.as_deref());
    let is_below = std::fs::canonicalize(directory).is_ok_and(|real| real.starts_with(dev));
    let has_its_own = mount_point.is_some_and(|point| point.starts_with(dev) && point != dev);
    of_devices || (is_below && !has_its_own)
}

/// Whether making what is absent would make it among the nodes of devices.
pub(crate) fn would_stand_among_devices(absent: &Path, mounts: &[Mount]) -> bool {
    let above = nearest_existing(&end_of_links(absent));
    let Ok(found) = stat::stat(&above) else { return false };
    is_among_devices(&above, file_system_facts(&above, found.device, mounts).as_ref())
}

/// What a directory holds, sorted; nothing where it cannot be read.
fn entries(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    found.sort_unstable();
    found
}

/// The first directory missing between `above`, which is there, and `path`; `None` if only the last name is missing.
fn first_missing(path: &Path, above: &Path) -> Option<PathBuf> {
    let is_above = |dir: &Path| dir == above || (dir.as_os_str().is_empty() && above == Path::new("."));
    path.ancestors().skip(1).take_while(|dir| !is_above(dir)).last().map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{LoopDevice, TempDir, mount};
    use std::process::Command;

    #[test]
    fn a_file_is_described() {
        let dir = TempDir::new("target");
        let path = dir.path.join("file");
        std::fs::write(&path, [1u8; 5000]).unwrap();
        let facts = Prober::default().probe(&path).unwrap();
        assert_eq!((facts.kind, facts.size_bytes), (TargetKind::Regular, Some(5000)));
        assert!(!facts.read_only && facts.claims.is_empty() && facts.missing_directory.is_none());
        let system = facts.file_system.unwrap();
        assert!(system.available_bytes <= system.total_bytes && !system.type_name.is_empty());
        assert!(path.canonicalize().unwrap().starts_with(system.mount_point.unwrap()));
    }

    #[test]
    fn what_is_absent_lies_on_its_nearest_directory() {
        let dir = TempDir::new("absent");
        let file = Prober::default().probe(&dir.path.join("file")).unwrap();
        assert_eq!((file.kind, file.size_bytes, file.missing_directory), (TargetKind::Absent, None, None));
        assert_eq!(
            file.file_system.unwrap().mount_point,
            Prober::default().probe(&dir.path).unwrap().file_system.unwrap().mount_point
        );
        let deep = Prober::default().probe(&dir.path.join("a/b/file")).unwrap();
        assert_eq!(deep.missing_directory, Some(dir.path.join("a")));
        let bare = Prober::default().probe(Path::new("no-such-file-here")).unwrap();
        assert_eq!((bare.kind, bare.missing_directory), (TargetKind::Absent, None));
        let below = Prober::default().probe(Path::new("no-such-dir-here/file")).unwrap();
        assert_eq!(below.missing_directory, Some(PathBuf::from("no-such-dir-here")));
    }

    #[test]
    fn what_targets_share_is_told_of_each() {
        let dir = TempDir::new("shared");
        let (one, other) = (dir.path.join("one"), dir.path.join("other"));
        let prober = Prober::default();
        let first = prober.probe(&one).unwrap();
        let second = prober.probe(&other).unwrap();
        let shared = |facts: &TargetFacts| {
            let system = facts.file_system.as_ref().map(|system| system.mount_point.clone());
            (facts.device, system, facts.disk.clone(), facts.queue.clone(), facts.logical_block_bytes)
        };
        assert_eq!(shared(&first), shared(&second));
        assert_eq!(shared(&second), shared(&Prober::default().probe(&other).unwrap()));
        assert_eq!(second.path, other);
    }

    #[test]
    fn a_file_on_the_way_is_an_error() {
        let dir = TempDir::new("not-a-dir");
        std::fs::write(dir.path.join("file"), b"").unwrap();
        let error = Prober::default().probe(&dir.path.join("file/below")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotADirectory);
    }

    #[test]
    fn other_kinds_are_told_apart_without_opening_them() {
        assert_eq!(Prober::default().probe(Path::new("/dev/null")).unwrap().kind, TargetKind::Char);
        assert_eq!(Prober::default().probe(Path::new("/")).unwrap().kind, TargetKind::Directory);
        let dir = TempDir::new("pipe");
        let pipe = dir.path.join("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let facts = Prober::default().probe(&pipe).unwrap();
        assert_eq!((facts.kind, facts.size_bytes), (TargetKind::Pipe, None));
    }

    #[test]
    fn the_deepest_and_latest_mount_counts() {
        let mounts = [
            mount("1:1", "/", "ext4", "none"),
            mount("1:2", "/proc", "old", "none"),
            mount("1:3", "/proc", "proc", "none"),
            mount("1:4", "/pro", "no", "none"),
        ];
        let of = |path, minor| mount_of(Path::new(path), DeviceNumber { major: 1, minor }, &mounts).unwrap();
        assert_eq!(of("/proc/self", 9).fs_type, "proc");
        assert_eq!(of("/proc/self", 2).fs_type, "old");
        assert_eq!(of("/", 1).fs_type, "ext4");
    }

    #[test]
    fn a_loop_device_has_a_size_blocks_and_a_disk() {
        let dir = TempDir::new("target-loop");
        let device = match LoopDevice::new(&dir, 1 << 20) {
            Ok(device) => device,
            Err(why) => {
                println!("skipped: {why}");
                return;
            }
        };
        let facts = Prober::default().probe(&device.path).unwrap();
        assert_eq!((facts.kind, facts.size_bytes), (TargetKind::Block, Some(1 << 20)));
        assert!(facts.logical_block_bytes.unwrap() >= 512);
        assert!(facts.direct_offset_bytes().unwrap() >= 512);
        assert_eq!(facts.disk.as_deref(), device.path.file_name().and_then(|name| name.to_str()));
        assert_eq!((facts.claims.len(), facts.read_only), (0, false));
        assert!(facts.file_system.is_none() && facts.queue.is_some());
    }

    #[test]
    fn alignment_is_what_the_kernel_says_or_the_devices_block() {
        let mut facts = nothing(Path::new("x"));
        assert_eq!(facts.direct_offset_bytes(), None);
        facts.logical_block_bytes = Some(4096);
        assert_eq!(facts.direct_offset_bytes(), Some(4096));
        facts.direct = DirectSupport::Aligned(stat::DirectAlignment { memory_bytes: 4, offset_bytes: 512 });
        assert_eq!((facts.direct_memory_bytes(), facts.direct_offset_bytes()), (Some(4), Some(512)));
        facts.direct = DirectSupport::Unsupported;
        assert_eq!(facts.direct_memory_bytes(), None);
    }

    #[test]
    fn what_is_absent_below_dev_would_stand_among_devices() {
        let dir = TempDir::new("among");
        let dangling = dir.path.join("dangling");
        std::os::unix::fs::symlink("/dev/fiord-no-such-link", &dangling).unwrap();
        let relative = dir.path.join("relative");
        std::os::unix::fs::symlink("dangling", &relative).unwrap();
        let probe = |path: &Path| Prober::default().probe(path).unwrap();
        for path in [
            Path::new("/dev/fiord-no-such"),
            Path::new("/dev/mapper/fiord-no-such"),
            Path::new("/dev/disk/by-id/fiord-no-such"),
            Path::new("/dev/../dev/fiord-no-such"),
            Path::new("/proc/self/root/dev/fiord-no-such"),
            &dangling,
            &relative,
        ] {
            let facts = probe(path);
            assert_eq!((facts.kind, facts.among_devices), (TargetKind::Absent, true), "{}", path.display());
        }
        let null = PathBuf::from("/dev/null");
        assert!(probe(Path::new("/dev/fiord-no-such")).neighbours.contains(&null));
        assert!(probe(Path::new("/dev")).among_devices);
        assert!(!probe(Path::new("/dev/null")).among_devices);
        for path in [dir.path.join("file"), dir.path.join("dev/file"), dir.path.clone()] {
            assert!(!probe(&path).among_devices, "{}", path.display());
        }
        if probe(Path::new("/dev/shm"))
            .file_system
            .is_some_and(|it| it.mount_point == Some("/dev/shm".into()))
        {
            assert!(!probe(Path::new("/dev/shm/fiord-no-such")).among_devices);
        } else {
            println!("skipped: /dev/shm is no file system of its own here");
        }
    }

    #[test]
    fn a_directory_is_among_devices_by_its_file_system_or_by_its_path() {
        let facts = |type_name: &str, point: &str| FileSystemFacts {
            type_name: type_name.into(),
            mount_point: Some(point.into()),
            source: None,
            options: None,
            read_only: false,
            total_bytes: 0,
            free_bytes: 0,
            available_bytes: 0,
        };
        let is = |dir: &str, type_name: &str, point: &str| {
            is_among_devices(Path::new(dir), Some(&facts(type_name, point)))
        };
        assert!(is("/", "devtmpfs", "/jail/dev") && is("/dev", "tmpfs", "/dev") && is("/dev", "ext4", "/"));
        assert!(!is("/dev", "tmpfs", "/dev/shm") && !is("/", "ext4", "/"));
    }
}
