//! A block device: all its properties that matter for a benchmark's figures.
//!
//! Invariant: read only from `/sys` and the kernel's lists, which any user may read, but for what a mapped device is made of,
//! which the device mapper tells root; the device is not opened.

use fiord_device::Device;
use fiord_sys::device_mapper::first_target;
use fiord_sys::procfs::{self, Mount};
use fiord_sys::sysfs::{BlockDevice, Sysfs};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use crate::claims::{self, Claim};
use crate::file_system::{FileSystemFacts, file_system_facts};
use crate::pci::PciDevice;

/// What is known about a block device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceFacts {
    /// Its properties.
    pub device: Device,
    /// The users of it or of a partition of it, as far as the kernel lists them: mounts, swap, devices built on it.
    pub claims: Vec<Claim>,
    /// The file systems on it and on its partitions, each once, at its shortest mount point.
    pub file_systems: Vec<FileSystemFacts>,
    /// Whether it is a loop device whose I/O, direct I/O too, goes through the page cache of its backing file.
    pub caches_in_memory: bool,
    /// The PCI device that it is, or is attached to.
    pub pci: Option<PciDevice>,
}

impl DeviceFacts {
    /// The kind of the pool below thin volumes.
    pub const THIN_POOL: &str = "thin-pool";
}

/// What any user can read: the tree of devices, and which of them are mounted or used as swap.
#[derive(Clone, Debug)]
pub struct System {
    /// The tree of devices.
    pub sysfs: Sysfs,
    /// What is mounted.
    pub mounts: Vec<Mount>,
    /// Devices and files in use as swap.
    pub swaps: Vec<PathBuf>,
}

impl System {
    /// Of this machine; a list that cannot be read is empty.
    pub fn read() -> System {
        System {
            sysfs: Sysfs::default(),
            mounts: procfs::mounts().unwrap_or_default(),
            swaps: procfs::swaps().unwrap_or_default(),
        }
    }

    /// Every whole device that has a size, by name. A device without a size cannot be read or written.
    ///
    /// # Errors
    /// The kernel's, where its list of block devices cannot be read.
    pub fn devices(&self) -> io::Result<Vec<DeviceFacts>> {
        let facts = self.sysfs.disks()?.into_iter().map(|device| DeviceFacts::of(&device, self));
        Ok(facts.filter(|facts| facts.device.size_bytes > 0).collect())
    }
}

impl DeviceFacts {
    /// Of one device.
    pub fn of(device: &BlockDevice, system: &System) -> DeviceFacts {
        DeviceFacts {
            device: describe(device),
            claims: claims_on(device, system),
            file_systems: file_systems(device, system),
            caches_in_memory: device.attribute("loop/dio").is_some_and(|direct| direct == "0"),
            pci: pci_device(&device.disk()),
        }
    }

    /// Its usual place below `/dev`.
    pub fn path(&self) -> PathBuf {
        Path::new("/dev").join(self.device.name.replace('!', "/"))
    }

    /// Its users in short form: a mount point, `swap`, or the name of a device built on it; prefixed with the name of
    /// the partition if that is used.
    pub fn users(&self) -> Vec<String> {
        self.claims.iter().filter_map(|claim| self.user(claim)).collect()
    }

    fn user(&self, claim: &Claim) -> Option<String> {
        let (device, what) = match claim {
            Claim::Mounted { device, point } => (device, point.display().to_string()),
            Claim::Swap { device } => (device, "swap".to_owned()),
            Claim::Held { device, holder } => (device, holder.clone()),
            Claim::Mapped { .. }
            | Claim::Exclusive
            | Claim::Holds { .. }
            | Claim::Backs { .. }
            | Claim::BackedBy { .. } => return None,
        };
        let whole = *device == self.path();
        let name = device.file_name().unwrap_or_default().to_string_lossy();
        Some(if whole { what } else { format!("{name}: {what}") })
    }
}

/// The properties of a device, read from its directory.
pub(crate) fn describe(device: &BlockDevice) -> Device {
    let disk = device.disk();
    let backing_file = device.attribute("loop/backing_file").map(OsString::from);
    Device {
        name: device.name().to_owned(),
        kind: kind(device),
        transport: transport(&disk),
        model: model(&disk).or_else(|| Some(Path::new(backing_file.as_ref()?).display().to_string())),
        backing_file,
        size_bytes: device.size_bytes().unwrap_or(0),
        read_only: device.is_read_only(),
        // -1 is the kernel's word for none.
        numa_node: disk.attribute("device/numa_node").and_then(|node| node.parse().ok()),
        queue: device.queue(),
    }
}

/// Derived from the names that drivers give their devices; the identifier of a mapped device names its creator, and a
/// RAID has its level.
fn kind(device: &BlockDevice) -> String {
    const DRIVERS: [(&str, &str); 9] = [
        ("loop", "loop"),
        ("zram", "zram"),
        ("ram", "ram"),
        ("nullb", "null"),
        ("sr", "rom"),
        ("nbd", "nbd"),
        ("rbd", "rbd"),
        ("drbd", "drbd"),
        ("pmem", "pmem"),
    ];
    if device.is_partition() {
        return "part".to_owned();
    }
    if let Some(level) = device.attribute("md/level") {
        return level;
    }
    let uuid = device.attribute("dm/uuid");
    if is_thin_pool(device, uuid.as_deref()) {
        return DeviceFacts::THIN_POOL.to_owned();
    }
    if let Some(uuid) = uuid {
        return uuid.split('-').next().unwrap_or("dm").to_lowercase();
    }
    let name = device.name();
    if name.starts_with("dm-") {
        return "dm".to_owned();
    }
    let driven = |row: &&(&str, &str)| {
        name.strip_prefix(row.0).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    DRIVERS.iter().find(driven).map_or("disk", |row| row.1).to_owned()
}

/// Whether this is a pool below thin volumes. LVM names the one that is below each of its volumes; of others, which may have
/// no identifier, the device mapper knows it.
fn is_thin_pool(device: &BlockDevice, uuid: Option<&str>) -> bool {
    match uuid {
        Some(uuid) if uuid.starts_with("LVM-") => uuid.ends_with("-tpool"),
        _ => {
            let number = device.number().filter(|_| device.name().starts_with("dm-"));
            number.and_then(|number| first_target(number).ok()).is_some_and(|name| name == "thin-pool")
        }
    }
}

/// The bus nearest to the disk in the path of its directory.
fn transport(disk: &BlockDevice) -> Option<String> {
    const BUSES: [(&str, &str); 10] = [
        ("nvme", "nvme"),
        ("virtio", "virtio"),
        ("usb", "usb"),
        ("ata", "sata"),
        ("end_device-", "sas"),
        ("session", "iscsi"),
        ("rport-", "fc"),
        ("mmc", "mmc"),
        ("vbd-", "xen"),
        ("VMBUS:", "hyperv"),
    ];
    let above = disk.directory().parent()?.components().rev();
    let bus = above
        .filter_map(|part| part.as_os_str().to_str())
        .find_map(|part| BUSES.iter().find(|row| part.starts_with(row.0)).map(|row| row.1))?;
    // An NVMe disk may be attached over a network.
    let controller = disk.name().rsplit_once('n').map_or("", |(controller, _)| controller);
    let transport = || disk.attribute("device/transport");
    let transport_by_path = || disk.attribute(&format!("device/{controller}/transport"));
    let fabric = transport().or_else(transport_by_path).filter(|fabric| bus == "nvme" && fabric != "pcie");
    Some(fabric.map_or_else(|| bus.to_owned(), |fabric| format!("nvme-{fabric}")))
}

/// The PCI device of a disk, or of the controller of an NVMe disk that is below a subsystem of the kernel's own.
fn pci_device(disk: &BlockDevice) -> Option<PciDevice> {
    let of_controller = || {
        let controller = disk.directory().join("device").join(disk.name().rsplit_once('n')?.0);
        PciDevice::above(&controller.canonicalize().ok()?)
    };
    PciDevice::above(disk.directory()).or_else(of_controller)
}

fn model(disk: &BlockDevice) -> Option<String> {
    let named = || ["device/model", "device/name", "dm/name"].iter().find_map(|file| disk.attribute(file));
    // The file lists all algorithms, the one in use in brackets.
    let compression = || {
        let all = disk.attribute("comp_algorithm")?;
        Some(all.split_once('[')?.1.split_once(']')?.0.to_owned())
    };
    named().or_else(compression)
}

/// The claims in the kernel's lists. The mount table names one device of a btrfs; the others are in use as well.
pub(crate) fn claims_on(device: &BlockDevice, system: &System) -> Vec<Claim> {
    let number = device.number().unwrap_or_default();
    let mut claims = claims::listed(&device.path(), Some(device), number, &system.mounts, &system.swaps);
    for part in with_partitions(device) {
        let others = system.sysfs.btrfs_members(&part).into_iter().filter(|member| *member != part);
        for mount in others.filter_map(|member| mount_from(&member, system)) {
            claims.push(Claim::Mounted { device: part.path(), point: mount.point.clone() });
        }
    }
    claims
}

/// Mounted file systems of the device and of its partitions.
fn file_systems(device: &BlockDevice, system: &System) -> Vec<FileSystemFacts> {
    let parts = with_partitions(device);
    let mounts = parts.iter().filter_map(|part| mount_from(part, system));
    mounts
        .filter_map(|mount| file_system_facts(&mount.point, mount.device, std::slice::from_ref(mount)))
        .collect()
}

/// Where the device is mounted: the shortest mount point of several.
fn mount_from<'s>(device: &BlockDevice, system: &'s System) -> Option<&'s Mount> {
    let number = device.number()?;
    let mounted = system.mounts.iter().filter(|mount| claims::is_of(mount, number));
    mounted.min_by_key(|mount| mount.point.components().count())
}

fn with_partitions(device: &BlockDevice) -> Vec<BlockDevice> {
    std::iter::once(device.clone()).chain(device.partitions()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{LoopDevice, MadeUp, TempDir, mount};

    #[test]
    fn a_disk_is_described_from_its_files() {
        let machine = MadeUp::new();
        machine.disk("pci0000:00/ata1/host0/block/sda", "8:0", 2048).attributes(
            "sda",
            &[
                ("device/model", "Spinning Rust 4000\n"),
                ("device/queue_depth", "32\n"),
                ("device/numa_node", "-1\n"),
                ("queue/rotational", "1\n"),
                ("queue/scheduler", "none [bfq]\n"),
            ],
        );
        let facts = machine.facts("sda", &[]);
        assert_eq!((facts.device.kind.as_str(), facts.device.transport.as_deref()), ("disk", Some("sata")));
        assert_eq!(facts.device.model.as_deref(), Some("Spinning Rust 4000"));
        assert_eq!((facts.device.size_bytes, facts.device.numa_node), (1 << 20, None));
        assert_eq!((facts.device.queue.rotational, facts.device.queue.device_depth), (true, Some(32)));
        assert!(facts.users().is_empty() && !facts.device.read_only);
    }

    #[test]
    fn kinds_are_named_by_driver_maker_and_level() {
        let machine = MadeUp::new();
        for (number, (name, attribute, text, kind)) in [
            ("loop3", "", "", "loop"),
            ("zram0", "comp_algorithm", "lzo [lzo-rle] lz4", "zram"),
            ("ram1", "", "", "ram"),
            ("nullb0", "", "", "null"),
            ("sr0", "", "", "rom"),
            ("srx", "", "", "disk"),
            ("dm-0", "dm/uuid", "LVM-abc", "lvm"),
            ("dm-3", "dm/uuid", "LVM-abc-tpool", "thin-pool"),
            ("dm-4", "dm/uuid", "LVM-abc-tdata", "lvm"),
            ("dm-1", "dm/uuid", "CRYPT-LUKS2-abc", "crypt"),
            ("dm-2", "dm/name", "made-by-hand", "dm"),
            ("md0", "md/level", "raid10", "raid10"),
            ("nvme0n1", "", "", "disk"),
        ]
        .into_iter()
        .enumerate()
        {
            machine.disk(name, &format!("200:{number}"), 8);
            if !attribute.is_empty() {
                machine.attributes(name, &[(attribute, text)]);
            }
            assert_eq!(machine.facts(name, &[]).device.kind, kind, "{name}");
        }
        assert_eq!(machine.facts("zram0", &[]).device.model.as_deref(), Some("lzo-rle"));
        assert_eq!(machine.facts("dm-2", &[]).device.model.as_deref(), Some("made-by-hand"));
    }

    #[test]
    fn the_nearest_bus_and_the_network_behind_it_are_named() {
        let machine = MadeUp::new();
        for (number, (dir, expected)) in [
            ("pci0/usb2/2-1/host6/target6/block/sdb", Some("usb")),
            ("pci0/virtio1/block/vda", Some("virtio")),
            ("pci0/virtio2/host0/block/sdc", Some("virtio")),
            ("platform/host7/session1/target7/block/sdd", Some("iscsi")),
            ("pci0/nvme/nvme0/nvme0n1", Some("nvme")),
            ("virtual/block/md0", None),
        ]
        .into_iter()
        .enumerate()
        {
            machine.disk(dir, &format!("201:{number}"), 8);
            let name = dir.rsplit('/').next().unwrap();
            assert_eq!(machine.facts(name, &[]).device.transport.as_deref(), expected, "{dir}");
        }
        machine.attributes("nvme0n1", &[("device/transport", "pcie")]);
        assert_eq!(machine.facts("nvme0n1", &[]).device.transport.as_deref(), Some("nvme"));
        machine.attributes("nvme0n1", &[("device/transport", "tcp")]);
        assert_eq!(machine.facts("nvme0n1", &[]).device.transport.as_deref(), Some("nvme-tcp"));
    }

    #[test]
    fn the_users_of_a_disk_are_listed_in_short() {
        let machine = MadeUp::new();
        machine.disk("sda", "200:0", 8).partition("sda", "sda1", "200:1").partition("sda", "sda2", "200:2");
        machine.disk("md0", "200:9", 8).member("md0", "sda2");
        let mounts = [mount("200:1", "/boot", "ext4", "/dev/none")];
        let facts = machine.facts("sda", &mounts);
        assert_eq!(facts.users(), ["sda1: /boot", "sda2: md0"]);
        assert_eq!(machine.facts("sda1", &mounts).users(), ["/boot"]);
    }

    #[test]
    fn every_device_of_a_btrfs_is_in_use() {
        let machine = MadeUp::new();
        machine.disk("sdb", "200:16", 8).disk("sdc", "200:32", 8);
        machine.write("fs/btrfs/uuid/devices/sdb", "").write("fs/btrfs/uuid/devices/sdc", "");
        let mounts = [mount("200:16", "/data", "btrfs", "/dev/none")];
        assert_eq!(machine.facts("sdc", &mounts).users(), ["/data"]);
        assert_eq!(machine.facts("sdb", &mounts).users(), ["/data"]);
    }

    #[test]
    fn what_has_no_size_is_left_out() {
        let machine = MadeUp::new();
        machine.disk("loop0", "200:0", 0).disk("sda", "200:1", 8).partition("sda", "sda1", "200:2");
        let names: Vec<String> =
            machine.system(&[]).devices().unwrap().into_iter().map(|facts| facts.device.name).collect();
        assert_eq!(names, ["sda"]);
    }

    #[test]
    fn a_file_system_is_described_with_each_option_once() {
        let machine = MadeUp::new();
        machine.disk("sda", "200:0", 8);
        let mounts = [mount("200:0", "/proc", "ext4", "/dev/none"), mount("200:0", "/", "ext4", "/dev/none")];
        let systems = machine.facts("sda", &mounts).file_systems;
        assert_eq!(systems.len(), 1);
        assert_eq!(systems[0].mount_point.as_deref(), Some(Path::new("/")));
        assert_eq!((systems[0].type_name.as_str(), systems[0].options.as_deref()), ("ext4", Some("rw")));
    }

    #[test]
    fn a_loop_device_names_its_file() {
        let dir = TempDir::new("device-loop");
        let device = fiord_testing::need!(LoopDevice::new(&dir, 1 << 20));
        let facts = System::read().devices().unwrap();
        let ours = facts.iter().find(|facts| facts.path() == device.path).unwrap();
        assert_eq!((ours.device.kind.as_str(), ours.device.size_bytes), ("loop", 1 << 20));
        assert_eq!(ours.device.backing_file.as_deref(), Some(dir.path.join("backing").as_os_str()));
        assert_eq!(ours.device.model.as_deref(), dir.path.join("backing").to_str());
    }
}
