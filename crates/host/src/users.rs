//! The current users of a device or a file, direct or through loop devices.
//!
//! Invariant: every way in which bytes written to the target could reach something in use is followed: up from the
//! target to the loop devices that it backs, and down to its own backing file or device. Each loop device is visited
//! once.

use fiord_sys::blkdev;
use fiord_sys::file::{self, OpenHow};
use fiord_sys::procfs;
use fiord_sys::stat::{self, DeviceNumber, Identity, InodeKind, Stat};
use fiord_sys::sysfs::BlockDevice;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::claims::{self, Claim};
use crate::device::{System, claims_on};
use crate::directories::{Directories, Directory};
use crate::file_system::{end_of_links, named_directory, nearest_existing};

/// What is in use, as far as the kernel reports it: read once, queried for many targets.
#[derive(Clone, Debug)]
pub struct Users {
    system: System,
    loops: Vec<LoopBacking>,
    /// Devices that this process has claimed itself.
    ours: Vec<DeviceNumber>,
    directories: Directories,
}

/// A loop device and its backing file or device.
#[derive(Clone, Debug)]
struct LoopBacking {
    device: BlockDevice,
    number: DeviceNumber,
    below: Identity,
    /// The name of that when the device was set up.
    file: PathBuf,
}

impl LoopBacking {
    fn of(device: BlockDevice) -> Option<LoopBacking> {
        let number = device.number()?;
        let file = PathBuf::from(device.attribute("loop/backing_file")?);
        // The name is useless if the file was removed, or is in another mount namespace. The device itself knows the
        // file, but reports it only to privileged users.
        let below =
            reported_backing(&device.path(), number).or_else(|| Some(stat::stat(&file).ok()?.identity()))?;
        Some(LoopBacking { device, number, below, file })
    }
}

/// The backing file that the loop device with this number reports.
fn reported_backing(path: &Path, number: DeviceNumber) -> Option<Identity> {
    let open = file::open(path, &OpenHow { nonblocking: true, ..OpenHow::READ }).ok()?;
    let is_it =
        stat::fstat(&open).is_ok_and(|found| found.kind == InodeKind::Block && found.special == number);
    blkdev::loop_backing(&open).ok().filter(|_| is_it)
}

impl Users {
    /// Of this machine, now.
    pub fn read() -> Users {
        Users::of(System::read())
    }

    /// Of a machine whose lists were read.
    pub fn of(system: System) -> Users {
        let loops = system.sysfs.loop_devices().into_iter().filter_map(LoopBacking::of).collect();
        Users { system, loops, ours: Vec::new(), directories: Directories::default() }
    }

    /// Of this machine, now, apart from this process, which has claimed these devices.
    pub fn beside(ours: Vec<DeviceNumber>) -> Users {
        Users { ours, ..Users::read() }
    }

    /// The devices that this process has claimed itself.
    pub fn ours(&self) -> &[DeviceNumber] {
        &self.ours
    }

    /// Whether creating a missing file would create it among the device nodes.
    pub fn would_stand_among_devices(&self, absent: &Path) -> bool {
        self.is_place_among_devices(&end_of_links(absent))
    }

    /// The same of a path that is known to be no link.
    pub fn is_place_among_devices(&self, path: &Path) -> bool {
        // The path itself is missing, unless it came to be in the meantime.
        let above = nearest_existing(named_directory(path.parent().unwrap_or(path)));
        above.is_some_and(|(above, found)| self.directory(above, &found).is_among_devices)
    }

    /// What the files of a directory with this metadata have in common.
    pub(crate) fn directory(&self, path: &Path, found: &Stat) -> Arc<Directory> {
        self.directories.of(path, found, &self.system.mounts)
    }

    /// What the kernel listed.
    pub fn system(&self) -> &System {
        &self.system
    }

    /// The users of the block device or regular file at `path`, or of the storage behind a character device; other types
    /// have none. Block devices that are in no
    /// list are opened for reading, to see whether they are claimed. `found` has to be the metadata of `path`.
    pub fn on(&self, path: &Path, found: &Stat) -> Vec<Claim> {
        let known = found.identity();
        let mut seen = vec![known];
        match found.kind {
            InodeKind::Block => self.on_device(path, found.special, &mut seen),
            InodeKind::Regular => self.on_file(path, known, &mut seen),
            InodeKind::Char => self.on_char_device(path, found.special, &mut seen),
            _ => Vec::new(),
        }
    }

    /// The regular files that are in use, as swap or behind a loop device, each with a reason.
    pub fn files(&self) -> Vec<(Identity, Claim)> {
        let swaps = self.system.swaps.iter().map(PathBuf::as_path);
        let names = swaps.filter_map(|path| Some((path, stat::stat(path).ok()?.identity())));
        let behind = self.loops.iter().map(|one| (one.file.as_path(), one.below));
        let files = names.chain(behind).filter(|(_, known)| matches!(known, Identity::Inode { .. }));
        let used = files.filter_map(|(path, known)| {
            let claim = self.on_file(path, known, &mut vec![known]).into_iter().next()?;
            Some((known, claim))
        });
        used.collect()
    }

    fn on_file(&self, path: &Path, known: Identity, seen: &mut Vec<Identity>) -> Vec<Claim> {
        let is_it = |swap: &PathBuf| stat::stat(swap).is_ok_and(|found| found.identity() == known);
        let is_swap = self.system.swaps.iter().any(is_it);
        let mut claims: Vec<Claim> =
            is_swap.then(|| Claim::Swap { device: path.to_owned() }).into_iter().collect();
        claims.extend(self.behind(known, seen));
        claims
    }

    fn on_device(&self, path: &Path, number: DeviceNumber, seen: &mut Vec<Identity>) -> Vec<Claim> {
        let mut claims = self.above_device(path, number, seen);
        if let Ok(device) = self.system.sysfs.block_device_of(number) {
            claims.extend(self.within(&device, seen));
        }
        claims
    }

    /// The users of the storage that a character device leads to.
    fn on_char_device(&self, path: &Path, number: DeviceNumber, seen: &mut Vec<Identity>) -> Vec<Claim> {
        let Ok(device) = self.system.sysfs.char_device_of(number) else { return Vec::new() };
        let held = |holder: String| Claim::Held { device: path.to_owned(), holder };
        let mut claims: Vec<Claim> = device.holders().into_iter().map(held).collect();
        if device.is_memory() {
            let mapped = |process: String| Claim::Mapped { device: path.to_owned(), process };
            claims.extend(procfs::others_mapping(device.name(), number).into_iter().map(mapped));
        }
        for block in device.blocks_behind() {
            seen.push(Identity::Device { block: true, number: block.number });
            claims.extend(self.on_device(&block.path, block.number, seen));
        }
        claims
    }

    /// The users of the device, of its partitions, or of devices built on them.
    fn above_device(&self, path: &Path, number: DeviceNumber, seen: &mut Vec<Identity>) -> Vec<Claim> {
        let device = self.system.sysfs.block_device_of(number).ok();
        let mut claims = match &device {
            Some(device) => claims_on(device, &self.system),
            None => claims::listed(path, None, number, &self.system.mounts, &self.system.swaps),
        };
        // A write to a partition is a write to its disk, and vice versa.
        let others = device.iter().flat_map(|device| [device.partitions(), vec![device.disk()]].concat());
        let mut numbers: Vec<DeviceNumber> = others.filter_map(|other| other.number()).collect();
        numbers.retain(|other| *other != number);
        numbers.insert(0, number);
        let is_ours = numbers.iter().any(|number| self.ours.contains(number));
        if claims.is_empty() && !is_ours && claims::is_exclusively_open(path) {
            claims.push(Claim::Exclusive);
        }
        for number in numbers {
            claims.extend(self.behind(Identity::Device { block: true, number }, seen));
        }
        claims
    }

    /// The users of the loop devices that this backs.
    fn behind(&self, known: Identity, seen: &mut Vec<Identity>) -> Vec<Claim> {
        let mut claims = Vec::new();
        for one in self.loops.iter().filter(|one| one.below == known) {
            let itself = Identity::Device { block: true, number: one.number };
            if seen.contains(&itself) {
                continue;
            }
            seen.push(itself);
            let device = one.device.path();
            let of_it = self.above_device(&device, one.number, seen).into_iter().map(Box::new);
            claims.extend(of_it.map(|claim| Claim::Backs { device: device.clone(), claim }));
        }
        claims
    }

    /// Other users of the device's backing file or device. Members of a mapped device are not checked, because other
    /// users of a member have another part of it; a loop device uses all of its backing file or device.
    fn within(&self, device: &BlockDevice, seen: &mut Vec<Identity>) -> Vec<Claim> {
        let disk = device.disk();
        let mut claims = Vec::new();
        let number = disk.number();
        // A member of a mapped device belongs to that device.
        seen.extend(number.map(|number| Identity::Device { block: true, number }));
        for one in self.loops.iter().filter(|one| Some(one.number) == number) {
            if seen.contains(&one.below) {
                continue;
            }
            seen.push(one.below);
            let of_it = match one.below {
                Identity::Device { number, .. } => {
                    self.on_device(&self.place_of(number, &one.file), number, seen)
                }
                known @ Identity::Inode { .. } => self.on_file(&one.file, known, seen),
            };
            let what = || one.file.clone();
            claims.extend(
                of_it.into_iter().map(|claim| Claim::BackedBy { what: what(), claim: Box::new(claim) }),
            );
        }
        disk.slaves().iter().for_each(|member| claims.extend(self.within(member, seen)));
        claims
    }

    /// A name that certainly leads to the device: the given one, unless it belongs to another device by now.
    fn place_of(&self, number: DeviceNumber, given: &Path) -> PathBuf {
        let is_it = |path: &Path| stat::stat(path).is_ok_and(|found| found.special == number);
        match self.system.sysfs.block_device_of(number) {
            Ok(device) if is_it(&device.path()) => device.path(),
            _ => given.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{LoopDevice, MadeUp, TempDir, mount};
    use std::process::Command;

    fn number(minor: u32) -> DeviceNumber {
        DeviceNumber { major: 200, minor }
    }

    fn reasons(claims: &[Claim]) -> Vec<String> {
        claims.iter().map(ToString::to_string).collect()
    }

    /// The reasons found for the device of this number on a made-up machine.
    fn of_device(users: &Users, minor: u32) -> Vec<String> {
        let known = Identity::Device { block: true, number: number(minor) };
        reasons(&users.on_device(Path::new("/no/such"), number(minor), &mut vec![known]))
    }

    /// A machine with `/dev/loop9990` over a file, and `/dev/loop9991` over it as well: numbers that no device of this machine has.
    fn over_one_file(dir: &TempDir) -> MadeUp {
        let file = dir.path.join("image");
        std::fs::write(&file, b"image").unwrap();
        let machine = MadeUp::new();
        for (name, at) in [("loop9990", "200:90"), ("loop9991", "200:91")] {
            machine.disk(name, at, 8).attributes(name, &[("loop/backing_file", file.to_str().unwrap())]);
        }
        machine
    }

    #[test]
    fn a_file_behind_a_mounted_loop_device_is_in_use_by_every_name() {
        let dir = TempDir::new("users-file");
        let machine = over_one_file(&dir);
        let (file, link, hard) = (dir.path.join("image"), dir.path.join("link"), dir.path.join("hard"));
        std::os::unix::fs::symlink(&file, &link).unwrap();
        std::fs::hard_link(&file, &hard).unwrap();
        let free = Users::of(machine.system(&[]));
        let users = Users::of(machine.system(&[mount("200:90", "/mnt", "ext4", "/dev/none")]));
        for name in [&file, &link, &hard] {
            let found = stat::stat(name).unwrap();
            assert_eq!(free.on(name, &found), [], "a loop device that nobody uses is nobody's");
            assert_eq!(
                reasons(&users.on(name, &found)),
                ["it backs /dev/loop9990, and /dev/loop9990 is mounted at /mnt"]
            );
        }
        assert_eq!(users.files().first().map(|used| used.0), Some(stat::stat(&file).unwrap().identity()));
        assert_eq!(free.files(), []);
    }

    #[test]
    fn a_loop_device_is_in_use_when_another_of_the_same_file_is() {
        let dir = TempDir::new("users-loop");
        let machine = over_one_file(&dir);
        let users = Users::of(machine.system(&[mount("200:90", "/mnt", "ext4", "/dev/none")]));
        assert_eq!(of_device(&users, 90), ["/dev/loop9990 is mounted at /mnt"]);
        let file = dir.path.join("image");
        let expected = format!(
            "it is backed by {}, and it backs /dev/loop9990, and /dev/loop9990 is mounted at /mnt",
            file.display()
        );
        assert_eq!(of_device(&users, 91), [expected]);
    }

    #[test]
    fn a_swap_file_is_in_use_and_so_is_a_loop_device_over_it() {
        let dir = TempDir::new("users-swap");
        let machine = over_one_file(&dir);
        let file = dir.path.join("image");
        let mut system = machine.system(&[]);
        system.swaps = vec![file.clone()];
        let users = Users::of(system);
        let in_use = format!("{} is in use as swap", file.display());
        assert_eq!(reasons(&users.on(&file, &stat::stat(&file).unwrap())), [in_use.as_str()]);
        assert_eq!(of_device(&users, 91), [format!("it is backed by {}, and {in_use}", file.display())]);
    }

    #[test]
    fn devices_made_of_each_other_come_to_an_end() {
        let dir = TempDir::new("users-ring");
        let machine = over_one_file(&dir);
        machine.disk("dm-0", "200:1", 8).member("dm-0", "loop9990");
        let users = Users::of(machine.system(&[]));
        assert_eq!(of_device(&users, 90), ["/dev/loop9990 is a part of dm-0"]);
        let expected = ["it is backed by", "it backs /dev/loop9990, and", "/dev/loop9990 is a part of dm-0"]
            .map(str::to_owned);
        let reasons = of_device(&users, 91);
        assert!(reasons.len() == 1 && expected.iter().all(|part| reasons[0].contains(part)), "{reasons:?}");
        assert_eq!(
            of_device(&users, 1),
            [] as [String; 0],
            "a mapped device is free although its members are not"
        );
    }

    #[test]
    fn a_disk_and_its_partitions_are_in_use_together() {
        let dir = TempDir::new("users-parts");
        let machine = over_one_file(&dir);
        machine.disk("sda", "200:0", 8).partition("sda", "sda1", "200:1").partition("sda", "sda2", "200:2");
        let mounted = machine.system(&[mount("200:1", "/mnt", "ext4", "/dev/none")]);
        let users = Users::of(mounted);
        assert_eq!(of_device(&users, 0), ["/dev/sda1 is mounted at /mnt"]);
        assert_eq!(of_device(&users, 1), ["/dev/sda1 is mounted at /mnt"]);
        assert_eq!(of_device(&users, 2), [] as [String; 0], "its neighbour is another's");
    }

    #[test]
    fn a_real_loop_device_is_free_until_it_is_formatted_and_mounted() {
        let dir = TempDir::new("users-real");
        let device = fiord_testing::need!(LoopDevice::new(&dir, 8 << 20));
        let (file, claims) =
            (dir.path.join("backing"), |path: &Path| Users::read().on(path, &stat::stat(path).unwrap()));
        assert_eq!((claims(&device.path), claims(&file)), (vec![], vec![]));
        let open = file::open(&device.path, &OpenHow { exclusive: true, ..OpenHow::READ }).unwrap();
        let behind = |claim: Claim| Claim::Backs { device: device.path.clone(), claim: Box::new(claim) };
        assert_eq!(
            (claims(&device.path), claims(&file)),
            (vec![Claim::Exclusive], vec![behind(Claim::Exclusive)])
        );
        drop(open);
        if !Command::new("mkfs.ext4").arg("-q").arg(&device.path).status().is_ok_and(|done| done.success()) {
            fiord_testing::skip!("no mkfs.ext4");
        }
        let point = dir.path.join("mounted");
        std::fs::create_dir(&point).unwrap();
        if !Command::new("mount").arg(&device.path).arg(&point).status().is_ok_and(|done| done.success()) {
            fiord_testing::skip!("mounting is not allowed here");
        }
        let found = (claims(&device.path), claims(&file), claims::is_exclusively_open(&device.path));
        assert!(Command::new("umount").arg(&point).status().unwrap().success());
        let mounted = Claim::Mounted { device: device.path.clone(), point };
        assert_eq!(found, (vec![mounted.clone()], vec![behind(mounted)], true));
    }
}
