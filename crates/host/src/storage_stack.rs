//! The storage stack below a path: file, file system, partition, device, and its members, down to the physical devices.
//!
//! Invariant: a layer's parent is the nearest one before it whose depth is one less; the first layer is the path
//! itself.

use fiord_sys::stat::{self, DeviceNumber, InodeKind};
use fiord_sys::sysfs::BlockDevice;
use std::io;
use std::path::{Path, PathBuf};

use crate::device::{DeviceFacts, System};
use crate::file_system::{FileSystemFacts, file_system_facts};
use crate::target::TargetKind;

/// More levels than any storage has: a limit in case two devices name each other.
const DEPTH_MAX: usize = 32;

/// From a path down to the physical devices, in reading order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorageStack {
    /// The layers.
    pub layers: Vec<Layer>,
}

/// One level of storage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    /// The number of levels above it.
    pub depth: usize,
    /// The kind of layer.
    pub kind: LayerKind,
}

/// The kind of a layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LayerKind {
    /// A file, directory or device node: the target, the backing file of a loop device, the upper layer of an overlay.
    Path {
        /// Its path.
        path: PathBuf,
        /// Its type.
        kind: TargetKind,
        /// A regular file's size in bytes.
        size_bytes: Option<u64>,
        /// Bytes that its file system has allocated for it.
        allocated_bytes: Option<u64>,
    },
    /// A file system.
    FileSystem(Box<FileSystemFacts>),
    /// A block device.
    Device(Box<DeviceFacts>),
    /// This machine's memory.
    Memory,
    /// Another machine, by the name that was mounted.
    Server(String),
}

impl StorageStack {
    /// Follows an existing path.
    ///
    /// # Errors
    /// That of `stat`: the path does not exist, or is not accessible.
    pub fn of(path: &Path, system: &System) -> io::Result<StorageStack> {
        let mut walk = Walk { system, layers: Vec::new() };
        walk.path(path, 0)?;
        Ok(StorageStack { layers: walk.layers })
    }

    /// The devices of the stack, each once.
    pub fn devices(&self) -> Vec<&DeviceFacts> {
        let mut devices: Vec<&DeviceFacts> = Vec::new();
        for layer in &self.layers {
            if let LayerKind::Device(facts) = &layer.kind
                && devices.iter().all(|known| known.device.name != facts.device.name)
            {
                devices.push(facts);
            }
        }
        devices
    }

    /// The devices of the stack, each once, and the names of those directly below each.
    pub fn devices_and_below(&self) -> Vec<(&DeviceFacts, Vec<&str>)> {
        let mut found: Vec<(&DeviceFacts, Vec<&str>)> = Vec::new();
        // The devices on the way from the path to the current layer, with their depths.
        let mut above: Vec<(usize, &str)> = Vec::new();
        for Layer { depth, kind } in &self.layers {
            let LayerKind::Device(facts) = kind else { continue };
            let name = facts.device.name.as_str();
            above.retain(|(upper, _)| upper < depth);
            if let Some((_, upper)) = above.last()
                && let Some((_, below)) = found.iter_mut().find(|(known, _)| known.device.name == *upper)
                && !below.contains(&name)
            {
                below.push(name);
            }
            above.push((*depth, name));
            if found.iter().all(|(known, _)| known.device.name != name) {
                found.push((facts, Vec::new()));
            }
        }
        found
    }

    /// Whether it ends at a file system below which nothing is seen: no device, no memory, no server.
    pub fn is_hidden(&self) -> bool {
        let is_file_system = |layer: &Layer| matches!(layer.kind, LayerKind::FileSystem(_));
        let is_seen = |layer: &Layer| {
            matches!(layer.kind, LayerKind::Device(_) | LayerKind::Memory | LayerKind::Server(_))
        };
        self.layers.iter().any(is_file_system) && !self.layers.iter().any(is_seen)
    }

    /// The file systems of the stack, each once.
    pub fn file_systems(&self) -> Vec<&FileSystemFacts> {
        let mut systems: Vec<&FileSystemFacts> = Vec::new();
        for layer in &self.layers {
            if let LayerKind::FileSystem(facts) = &layer.kind
                && systems.iter().all(|known| known.mount_point != facts.mount_point)
            {
                systems.push(facts);
            }
        }
        systems
    }
}

struct Walk<'s> {
    system: &'s System,
    layers: Vec<Layer>,
}

impl Walk<'_> {
    fn push(&mut self, depth: usize, kind: LayerKind) {
        self.layers.push(Layer { depth, kind });
    }

    fn path(&mut self, path: &Path, depth: usize) -> io::Result<()> {
        let found = stat::stat(path)?;
        let is_regular = found.kind == InodeKind::Regular;
        let kind = LayerKind::Path {
            path: path.to_owned(),
            kind: TargetKind::of(found.kind),
            size_bytes: is_regular.then_some(found.size_bytes),
            allocated_bytes: is_regular.then_some(found.allocated_bytes),
        };
        self.push(depth, kind);
        match found.kind {
            InodeKind::Block => self.number(found.special, depth + 1),
            // Data written to a character device, a pipe or a socket does not go to the file system that contains its
            // node.
            InodeKind::Regular | InodeKind::Directory => self.file_system(path, found.device, depth + 1),
            InodeKind::Char | InodeKind::Fifo | InodeKind::Other => {}
        }
        Ok(())
    }

    /// A path named by another layer. It may be out of sight: in another namespace, deleted, or not readable.
    fn path_of_below(&mut self, path: &Path, depth: usize) {
        if depth > DEPTH_MAX || self.path(path, depth).is_err() {
            let kind = LayerKind::Path {
                path: path.to_owned(),
                kind: TargetKind::Absent,
                size_bytes: None,
                allocated_bytes: None,
            };
            self.push(depth, kind);
        }
    }

    fn file_system(&mut self, path: &Path, number: DeviceNumber, depth: usize) {
        let Some(facts) = file_system_facts(path, number, &self.system.mounts) else { return };
        let (kind, source) = (facts.type_name.clone(), facts.source.clone().unwrap_or_default());
        let upper = layer(&facts);
        self.push(depth, LayerKind::FileSystem(Box::new(facts)));
        match kind.as_str() {
            "tmpfs" | "ramfs" | "hugetlbfs" | "devtmpfs" => self.push(depth + 1, LayerKind::Memory),
            "overlay" => {
                if let Some(upper) = upper {
                    self.path_of_below(&upper, depth + 1);
                }
            }
            _ => {
                let devices = self.devices_of(&kind, &source, number);
                if devices.is_empty()
                    && let Some(server) = server(&kind, &source)
                {
                    self.push(depth + 1, LayerKind::Server(server));
                }
                for device in devices {
                    self.device(&device, depth + 1);
                }
            }
        }
    }

    /// The devices of a file system: the one with the files' device number, or, if that is artificial, what was mounted
    /// and all that belongs to it.
    fn devices_of(&self, kind: &str, source: &Path, number: DeviceNumber) -> Vec<BlockDevice> {
        let sysfs = &self.system.sysfs;
        if let Ok(device) = sysfs.block_device_of(number) {
            return vec![device];
        }
        // bcachefs names all its devices, with colons between them.
        let text = source.to_string_lossy();
        let found = text.split(':').filter_map(|part| stat::stat(Path::new(part)).ok());
        let numbers = found.filter(|found| found.kind == InodeKind::Block).map(|found| found.special);
        let devices: Vec<BlockDevice> =
            numbers.filter_map(|number| sysfs.block_device_of(number).ok()).collect();
        let members = match devices.first() {
            Some(first) if kind == "btrfs" => sysfs.btrfs_members(first),
            _ => Vec::new(),
        };
        if members.is_empty() { devices } else { members }
    }

    fn number(&mut self, number: DeviceNumber, depth: usize) {
        if let Ok(device) = self.system.sysfs.block_device_of(number) {
            self.device(&device, depth);
        }
    }

    fn device(&mut self, device: &BlockDevice, depth: usize) {
        if depth > DEPTH_MAX {
            return;
        }
        let facts = DeviceFacts::of(device, self.system);
        let (backing_file, in_memory) =
            (facts.device.backing_file.clone(), matches!(facts.device.kind.as_str(), "zram" | "ram"));
        self.push(depth, LayerKind::Device(Box::new(facts)));
        if device.is_partition() {
            self.device(&device.disk(), depth + 1);
        }
        for slave in device.slaves() {
            self.device(&slave, depth + 1);
        }
        if let Some(file) = backing_file {
            self.path_of_below(Path::new(&file), depth + 1);
        }
        if in_memory {
            self.push(depth + 1, LayerKind::Memory);
        }
    }
}

/// The directory that receives an overlay's writes, or, if it is read-only, the first that it reads.
fn layer(facts: &FileSystemFacts) -> Option<PathBuf> {
    let options = facts.options.as_deref()?;
    let option = |name: &str| options.split(',').find_map(|option| option.strip_prefix(name));
    let lower = || option("lowerdir=").and_then(|dirs| dirs.split(':').next());
    option("upperdir=").or_else(lower).map(PathBuf::from)
}

/// The other end of a file system over a network.
fn server(kind: &str, source: &Path) -> Option<String> {
    const NETWORK: [&str; 10] =
        ["nfs", "nfs4", "cifs", "smb2", "smb3", "ceph", "lustre", "9p", "virtiofs", "fuse.sshfs"];
    (NETWORK.contains(&kind) && !source.as_os_str().is_empty()).then(|| source.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{MadeUp, TempDir, mount};
    use fiord_sys::procfs::Mount;

    /// `depth:name` of each layer.
    fn shape(stack: &StorageStack) -> Vec<String> {
        let name = |kind: &LayerKind| match kind {
            LayerKind::Path { path, kind, .. } => {
                format!("{} {kind:?}", path.file_name().unwrap_or_default().to_string_lossy())
            }
            LayerKind::FileSystem(facts) => facts.type_name.clone(),
            LayerKind::Device(facts) => facts.device.name.clone(),
            LayerKind::Memory => "memory".to_owned(),
            LayerKind::Server(name) => name.clone(),
        };
        stack.layers.iter().map(|layer| format!("{}:{}", layer.depth, name(&layer.kind))).collect()
    }

    /// A real directory, with a file `data` in it, and the number of the device that holds it: the made-up machine
    /// gives that number to a device of its own.
    fn held() -> (TempDir, String) {
        let dir = TempDir::new("stack");
        std::fs::write(dir.path.join("data"), b"twelve bytes").unwrap();
        let number = stat::stat(&dir.path).unwrap().device.to_string();
        (dir, number)
    }

    fn with_options(mount: Mount, options: String) -> Mount {
        Mount { options, ..mount }
    }

    #[test]
    fn a_file_is_followed_through_volume_raid_and_partitions_to_the_disks() {
        let (dir, number) = held();
        let machine = MadeUp::new();
        machine.disk("sda", "200:0", 8).partition("sda", "sda1", "200:1");
        machine.disk("sdb", "200:16", 8).partition("sdb", "sdb1", "200:17");
        machine.disk("md0", "200:90", 8).member("md0", "sda1").member("md0", "sdb1");
        machine.disk("dm-0", &number, 8).member("dm-0", "md0");
        let system = machine.system(&[mount(&number, "/", "xfs", "/dev/none")]);
        let stack = StorageStack::of(&dir.path.join("data"), &system).unwrap();
        assert_eq!(
            shape(&stack),
            ["0:data Regular", "1:xfs", "2:dm-0", "3:md0", "4:sda1", "5:sda", "4:sdb1", "5:sdb"]
        );
        assert!(matches!(stack.layers[0].kind, LayerKind::Path { size_bytes: Some(12), .. }));
        assert_eq!(stack.devices().len(), 6);
        assert_eq!(stack.file_systems().len(), 1);
    }

    #[test]
    fn each_device_names_those_directly_below_it_once() {
        let (dir, number) = held();
        let machine = MadeUp::new();
        machine.disk("sda", "200:0", 8).partition("sda", "sda1", "200:1").partition("sda", "sda2", "200:2");
        machine.disk("loop0", "200:99", 8).attributes("loop0", &[("loop/backing_file", "/proc/version")]);
        machine
            .disk("dm-0", &number, 8)
            .member("dm-0", "sda1")
            .member("dm-0", "sda2")
            .member("dm-0", "loop0");
        let stack = StorageStack::of(&dir.path, &machine.system(&[])).unwrap();
        let found: Vec<(String, String)> = stack
            .devices_and_below()
            .into_iter()
            .map(|(facts, below)| (facts.device.name.clone(), below.join(" ")))
            .collect();
        let expected =
            [("dm-0", "loop0 sda1 sda2"), ("loop0", ""), ("sda1", "sda"), ("sda", ""), ("sda2", "sda")];
        assert_eq!(found, expected.map(|(name, below)| (name.to_string(), below.to_string())));
    }

    #[test]
    fn a_loop_device_is_above_the_device_that_holds_its_file() {
        let (dir, number) = held();
        let machine = MadeUp::new();
        machine.disk("sdb", &number, 8).disk("loop0", "200:1", 8);
        machine.attributes("loop0", &[("loop/backing_file", dir.path.join("data").to_str().unwrap())]);
        let system = machine.system(&[mount(&number, "/", "ext4", "/dev/none")]);
        let mut walk = Walk { system: &system, layers: Vec::new() };
        walk.device(&system.sysfs.block_device("loop0").unwrap(), 0);
        let stack = StorageStack { layers: walk.layers };
        let below: Vec<Vec<&str>> = stack.devices_and_below().into_iter().map(|(_, below)| below).collect();
        assert_eq!(below, [vec!["sdb"], vec![]]);
    }

    #[test]
    fn two_partitions_of_one_disk_lead_to_it_twice_and_list_it_once() {
        let (dir, number) = held();
        let machine = MadeUp::new();
        machine.disk("sda", "200:0", 8).partition("sda", "sda1", "200:1").partition("sda", "sda2", "200:2");
        machine.disk("dm-0", &number, 8).member("dm-0", "sda1").member("dm-0", "sda2");
        let stack = StorageStack::of(&dir.path, &machine.system(&[])).unwrap();
        assert_eq!(shape(&stack)[2..], ["2:dm-0", "3:sda1", "4:sda", "3:sda2", "4:sda"]);
        let names: Vec<_> = stack.devices().iter().map(|facts| facts.device.name.as_str()).collect();
        assert_eq!(names, ["dm-0", "sda1", "sda", "sda2"]);
    }

    #[test]
    fn a_loop_device_leads_to_its_file_or_says_that_it_is_out_of_sight() {
        let (dir, number) = held();
        let machine = MadeUp::new();
        machine.disk("loop0", &number, 8);
        // The file stands outside of what the made-up machine has, or else it would lie on itself.
        machine.attributes("loop0", &[("loop/backing_file", "/proc/version")]);
        let mounts = [mount("0:9", "/proc", "proc", "proc"), mount(&number, "/", "ext4", "/dev/none")];
        let stack = StorageStack::of(&dir.path, &machine.system(&mounts)).unwrap();
        assert_eq!(shape(&stack)[1..], ["1:ext4", "2:loop0", "3:version Regular", "4:proc"]);
        machine.attributes("loop0", &[("loop/backing_file", "/no/such (deleted)")]);
        let stack = StorageStack::of(&dir.path, &machine.system(&mounts)).unwrap();
        assert_eq!(shape(&stack)[2..], ["2:loop0", "3:such (deleted) Absent"]);
    }

    #[test]
    fn a_device_below_itself_ends_the_stack() {
        let (dir, number) = held();
        let machine = MadeUp::new();
        machine.disk("loop0", &number, 8);
        machine.attributes("loop0", &[("loop/backing_file", dir.path.join("data").to_str().unwrap())]);
        let stack = StorageStack::of(&dir.path, &machine.system(&[])).unwrap();
        assert!(stack.layers.len() > DEPTH_MAX && stack.layers.len() < 2 * DEPTH_MAX);
        assert_eq!(stack.devices().len(), 1);
    }

    #[test]
    fn an_overlay_leads_to_the_directory_that_takes_its_writes() {
        let (dir, number) = held();
        let machine = MadeUp::new();
        machine.disk("sda", &number, 8);
        let (merged, upper) = (dir.path.join("merged"), dir.path.join("upper"));
        for dir in [&merged, &upper] {
            std::fs::create_dir(dir).unwrap();
        }
        let overlay = mount(&number, merged.to_str().unwrap(), "overlay", "overlay");
        let root = mount(&number, "/", "ext4", "/dev/none");
        let over = |options: String| {
            let system = machine.system(&[root.clone(), with_options(overlay.clone(), options)]);
            shape(&StorageStack::of(&merged, &system).unwrap())
        };
        let expected = ["0:merged Directory", "1:overlay", "2:upper Directory", "3:ext4", "4:sda"];
        assert_eq!(over(format!("rw,lowerdir=/proc:/sys,upperdir={},workdir=/w", upper.display())), expected);
        assert_eq!(over(format!("ro,lowerdir={}:/sys", upper.display())), expected);
        assert_eq!(over("rw".to_owned()), expected[..2]);
    }

    #[test]
    fn what_has_no_device_ends_in_memory_or_on_a_server() {
        let (dir, number) = held();
        let machine = MadeUp::new();
        let on = |fs_type: &str, source: &str| {
            let system = machine.system(&[mount(&number, "/", fs_type, source)]);
            shape(&StorageStack::of(&dir.path, &system).unwrap())[1..].to_vec()
        };
        assert_eq!(on("tmpfs", "none"), ["1:tmpfs", "2:memory"]);
        assert_eq!(on("nfs4", "nas:/export"), ["1:nfs4", "2:nas:/export"]);
        assert_eq!(on("zfs", "tank/data"), ["1:zfs"]);
    }

    #[test]
    fn nothing_lies_below_a_character_device_and_a_missing_path_is_an_error() {
        let system = MadeUp::new().system(&[]);
        assert_eq!(shape(&StorageStack::of(Path::new("/dev/null"), &system).unwrap()), ["0:null Char"]);
        let error = StorageStack::of(Path::new("/no/such"), &system).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_disk_in_memory_is_reported_as_memory() {
        let (dir, number) = held();
        let machine = MadeUp::new();
        machine.disk("zram0", &number, 8);
        assert_eq!(
            shape(&StorageStack::of(&dir.path, &machine.system(&[])).unwrap())[2..],
            ["2:zram0", "3:memory"]
        );
    }
}
