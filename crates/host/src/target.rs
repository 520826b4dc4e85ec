//! A path that a job is to read or write: its type, its size, its storage, and its restrictions.
//!
//! Invariant: probing opens only block devices and regular files, for reading, and never waits: a pipe is not opened. A
//! path that does not exist is a fact, not an error.

use fiord_device::RequestQueue;
use fiord_sys::blkdev;
use fiord_sys::extents;
use fiord_sys::file::{self, OpenHow};
use fiord_sys::procfs::Mount;
use fiord_sys::stat::{self, DeviceNumber, DirectSupport, InodeKind, Stat};
use fiord_sys::sysfs::{BlockBehind, BlockDevice, Sysfs};
use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use crate::claims::Claim;
use crate::file_system::{
    FileSystemFacts, end_of_links, file_system_facts, is_among_devices, named_directory, nearest_existing,
};
use crate::quota::quota_at;
use crate::signature;
use crate::users::Users;

/// The type of a target.
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
    /// The type of an existing file.
    pub(crate) fn of(kind: InodeKind) -> TargetKind {
        match kind {
            InodeKind::Regular => TargetKind::Regular,
            InodeKind::Block => TargetKind::Block,
            InodeKind::Char => TargetKind::Char,
            InodeKind::Directory => TargetKind::Directory,
            InodeKind::Fifo => TargetKind::Pipe,
            InodeKind::Other => TargetKind::Other,
        }
    }
}

/// What is known about a target before the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetFacts {
    /// The path as given.
    pub path: PathBuf,
    /// Its type, with symbolic links followed.
    pub kind: TargetKind,
    /// Size of a regular file or block device, in bytes; `None` for other types, or if the device may not be opened.
    pub size_bytes: Option<u64>,
    /// Bytes allocated for a regular file; less than its size if it is sparse.
    pub allocated_bytes: Option<u64>,
    /// Bytes of these below its size that were never written, so that reading them does not reach the device; `None` if
    /// the file system does not say, or if there is data that has not reached the device yet.
    pub unwritten_bytes: Option<u64>,
    /// The number of a device; of a file, the number of the device that holds it.
    pub device: Option<DeviceNumber>,
    /// The file system of a regular file or directory, or of the nearest existing directory above a missing path.
    pub file_system: Option<FileSystemFacts>,
    /// The first missing directory of the path, if one is missing.
    pub missing_directory: Option<PathBuf>,
    /// The unit in which the device below it is addressed, in bytes.
    pub logical_block_bytes: Option<u32>,
    /// The unit that the device below it writes without reading first, in bytes.
    pub physical_block_bytes: Option<u32>,
    /// Whether direct I/O works, and with what alignment.
    pub direct: DirectSupport,
    /// Writing is impossible: the file system is mounted read-only, or the device is read-only.
    pub read_only: bool,
    /// Other users of a block device or a regular file; empty for other types.
    pub claims: Vec<Claim>,
    /// For a directory and a missing path: whether a file created there would be among the device nodes, in `/dev` or
    /// wherever devtmpfs is mounted. A separate file system below `/dev` (`/dev/shm`) does not count.
    pub among_devices: bool,
    /// For a missing path among the device nodes: the names in the nearest existing directory, sorted.
    pub neighbours: Vec<PathBuf>,
    /// The whole disk below it, by the kernel's name, whose counters show its activity.
    pub disk: Option<String>,
    /// That disk's queue.
    pub queue: Option<RequestQueue>,
    /// The block device whose contents a character device leads to.
    pub behind: Option<BlockBehind>,
}

impl TargetFacts {
    /// For a path that does not exist.
    pub fn absent(path: &Path) -> TargetFacts {
        TargetFacts {
            path: path.to_owned(),
            kind: TargetKind::Absent,
            size_bytes: None,
            allocated_bytes: None,
            unwritten_bytes: None,
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
            behind: None,
        }
    }

    /// The alignment that offsets and lengths of direct I/O need, in bytes: as reported by the kernel, otherwise the
    /// device's logical block, otherwise unknown.
    pub fn direct_offset_bytes(&self) -> Option<u32> {
        match self.direct {
            DirectSupport::Aligned(alignment) => Some(alignment.offset_bytes),
            DirectSupport::Unsupported => None,
            DirectSupport::Unknown => self.logical_block_bytes,
        }
    }

    /// The alignment that buffers of direct I/O need, in bytes, determined in the same way.
    pub fn direct_memory_bytes(&self) -> Option<u32> {
        match self.direct {
            DirectSupport::Aligned(alignment) => Some(alignment.memory_bytes),
            DirectSupport::Unsupported => None,
            DirectSupport::Unknown => self.logical_block_bytes,
        }
    }

    /// The claims of current users of the device.
    pub fn live_claims(&self) -> impl Iterator<Item = &Claim> {
        self.claims.iter().filter(|claim| claim.is_live())
    }
}

/// Probes targets. What they have in common, mounts and disks, is read once.
#[derive(Debug, Default)]
pub struct Prober {
    users: OnceCell<Users>,
    disks: RefCell<BTreeMap<DeviceNumber, Option<Disk>>>,
}

/// The storage below files of one device number.
#[derive(Clone, Debug)]
struct Disk {
    name: String,
    queue: RequestQueue,
}

impl Disk {
    fn of(device: &BlockDevice) -> Disk {
        Disk { name: device.disk().name().to_owned(), queue: device.queue() }
    }
}

impl Prober {
    /// Probes `path`. It is an error if the path cannot be examined: no permission for a directory, a loop of links, a
    /// name that is too long, a component that is not a directory.
    pub fn probe(&self, path: &Path) -> io::Result<TargetFacts> {
        let is_absent = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
        match stat::not_a_link(path) {
            Ok(Some(found)) => Ok(self.existing(path, &found)),
            Ok(None) => match stat::stat(path) {
                Ok(found) => Ok(self.existing(path, &found)),
                // A file created through a dangling link is created where the link points to.
                Err(error) if is_absent(&error) => self.absent(path, &end_of_links(path)),
                Err(error) => Err(error),
            },
            Err(error) if is_absent(&error) => self.absent(path, path),
            Err(error) => Err(error),
        }
    }

    fn existing(&self, path: &Path, found: &Stat) -> TargetFacts {
        let mut facts = TargetFacts::absent(path);
        facts.kind = TargetKind::of(found.kind);
        match facts.kind {
            TargetKind::Block => {
                block_device(&mut facts, found.special);
                facts.claims = self.users().on(path, found);
                let what = signature::of_head(path).ok().flatten();
                facts.claims.extend(what.map(|what| Claim::Holds { what }));
            }
            TargetKind::Char => self.char_device(&mut facts, path, found),
            TargetKind::Regular => {
                facts.size_bytes = Some(found.size_bytes);
                facts.allocated_bytes = Some(found.allocated_bytes);
                facts.unwritten_bytes = unwritten_bytes(path, found.size_bytes);
                self.on_file_system(&mut facts, self.file_system_of_file(path, found), found.device);
                pay(&mut facts);
                facts.direct = direct_support(path);
                facts.claims = self.users().on(path, found);
            }
            _ => {
                let file_system = file_system_facts(path, found.device, self.mounts());
                facts.among_devices = is_among_devices(path, file_system.as_ref());
                self.on_file_system(&mut facts, file_system, found.device);
            }
        }
        facts
    }

    /// A character device leads to storage past the block device that may be in use.
    fn char_device(&self, facts: &mut TargetFacts, path: &Path, found: &Stat) {
        facts.device = Some(found.special);
        let Ok(device) = Sysfs::default().char_device_of(found.special) else { return };
        let behind = device.blocks_behind();
        if behind.is_empty() && !device.is_memory() {
            return;
        }
        facts.claims = self.users().on(path, found);
        let what = |block: &BlockBehind| signature::of_head(&block.path).ok().flatten();
        facts.claims.extend(behind.iter().filter_map(what).map(|what| Claim::Holds { what }));
        facts.behind = behind.into_iter().find(|block| block.is_present);
        if let Some(disk) = facts.behind.as_ref().and_then(|block| self.disk(block.number)) {
            on_disk(facts, disk);
        }
    }

    /// Of a path that would be created as `path`.
    fn absent(&self, given: &Path, path: &Path) -> io::Result<TargetFacts> {
        let mut facts = TargetFacts::absent(given);
        let directory = named_directory(path.parent().unwrap_or(path));
        let (above, found) =
            nearest_existing(directory).ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        if found.kind != InodeKind::Directory {
            return Err(io::Error::from(io::ErrorKind::NotADirectory));
        }
        facts.missing_directory = first_missing(path, above);
        let directory = self.users().directory(above, &found);
        facts.among_devices = directory.is_among_devices;
        self.on_file_system(&mut facts, directory.file_system.clone(), found.device);
        if facts.among_devices {
            facts.neighbours = entries(above);
        }
        Ok(facts)
    }

    fn on_file_system(
        &self,
        facts: &mut TargetFacts,
        file_system: Option<FileSystemFacts>,
        device: DeviceNumber,
    ) {
        facts.device = Some(device);
        facts.file_system = file_system;
        facts.read_only = facts.file_system.as_ref().is_some_and(|system| system.read_only);
        if let Some(disk) = self.disk(device) {
            on_disk(facts, disk);
        }
    }

    fn disk(&self, number: DeviceNumber) -> Option<Disk> {
        let look = || Sysfs::default().block_device_of(number).ok().map(|device| Disk::of(&device));
        self.disks.borrow_mut().entry(number).or_insert_with(look).clone()
    }

    /// The file system of a regular file: that of its directory, unless it is elsewhere.
    fn file_system_of_file(&self, path: &Path, found: &Stat) -> Option<FileSystemFacts> {
        let above = named_directory(path.parent().unwrap_or(path));
        let of_above = || {
            let is_link = std::fs::read_link(path).is_ok();
            let above_found = stat::stat(above).ok().filter(|it| !is_link && it.device == found.device)?;
            let directory = self.users().directory(above, &above_found);
            (!directory.is_mounted_over(path, self.mounts())).then(|| directory.file_system.clone())
        };
        of_above().unwrap_or_else(|| file_system_facts(path, found.device, self.mounts()))
    }

    fn mounts(&self) -> &[Mount] {
        &self.users().system().mounts
    }

    fn users(&self) -> &Users {
        self.users.get_or_init(Users::read)
    }
}

/// What is written into a file counts for its own owner and project, not for those of new files beside it.
fn pay(facts: &mut TargetFacts) {
    if let Some(system) = facts.file_system.as_mut() {
        let options = system.options.as_deref().unwrap_or_default();
        system.quota = quota_at(&facts.path, &system.type_name, options);
    }
}

/// What was allocated for a file and never written. Extents to which pages are yet to be written count as unwritten until
/// they are, so that nothing is known while there are such pages.
fn unwritten_bytes(path: &Path, size_bytes: u64) -> Option<u64> {
    let file = file::open(path, &OpenHow { nonblocking: true, ..OpenHow::READ }).ok()?;
    let unwritten = extents::unwritten_bytes(&file, size_bytes).ok()??;
    let is_known = unwritten == 0 || extents::has_unflushed_pages(&file).is_ok_and(|unflushed| !unflushed);
    is_known.then_some(unwritten)
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
    // What the device itself reports takes precedence over `/sys`, which a container may hide.
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

/// What the kernel reports about direct I/O; if it reports nothing, whether the file can be opened for it.
fn direct_support(path: &Path) -> DirectSupport {
    let reported = stat::direct_support(path).unwrap_or(DirectSupport::Unknown);
    if reported != DirectSupport::Unknown {
        return reported;
    }
    let how = OpenHow { direct: true, nonblocking: true, ..OpenHow::READ };
    match file::open(path, &how) {
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => DirectSupport::Unsupported,
        _ => DirectSupport::Unknown,
    }
}

/// The names in a directory, sorted; none if it cannot be read.
fn entries(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    found.sort_unstable();
    found
}

/// The first missing directory between `above`, which exists, and `path`; `None` if only the last name is missing.
fn first_missing(path: &Path, above: &Path) -> Option<PathBuf> {
    let is_above = |dir: &Path| dir == above || (dir.as_os_str().is_empty() && above == Path::new("."));
    path.ancestors().skip(1).take_while(|dir| !is_above(dir)).last().map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{LoopDevice, TempDir};
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
    fn facts_that_targets_share_are_in_the_facts_of_each() {
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
    fn other_types_are_distinguished_without_opening_them() {
        assert_eq!(Prober::default().probe(Path::new("/dev/null")).unwrap().kind, TargetKind::Char);
        assert_eq!(Prober::default().probe(Path::new("/")).unwrap().kind, TargetKind::Directory);
        let dir = TempDir::new("pipe");
        let pipe = dir.path.join("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let facts = Prober::default().probe(&pipe).unwrap();
        assert_eq!((facts.kind, facts.size_bytes), (TargetKind::Pipe, None));
    }

    #[test]
    fn a_loop_device_has_a_size_blocks_and_a_disk() {
        let dir = TempDir::new("target-loop");
        let device = fiord_testing::need!(LoopDevice::new(&dir, 1 << 20));
        let facts = Prober::default().probe(&device.path).unwrap();
        assert_eq!((facts.kind, facts.size_bytes), (TargetKind::Block, Some(1 << 20)));
        assert!(facts.logical_block_bytes.unwrap() >= 512);
        assert!(facts.direct_offset_bytes().unwrap() >= 512);
        assert_eq!(facts.disk.as_deref(), device.path.file_name().and_then(|name| name.to_str()));
        assert_eq!((facts.claims.len(), facts.read_only), (0, false));
        assert!(facts.file_system.is_none() && facts.queue.is_some());
    }

    #[test]
    fn alignment_is_the_kernels_or_the_devices_block() {
        let mut facts = TargetFacts::absent(Path::new("x"));
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
            fiord_testing::skipped("/dev/shm is not a file system of its own here");
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
            quota: None,
        };
        let is = |dir: &str, type_name: &str, point: &str| {
            is_among_devices(Path::new(dir), Some(&facts(type_name, point)))
        };
        assert!(is("/", "devtmpfs", "/jail/dev") && is("/dev", "tmpfs", "/dev") && is("/dev", "ext4", "/"));
        assert!(!is("/dev", "tmpfs", "/dev/shm") && !is("/", "ext4", "/"));
    }
}
