//! Character devices that lead to storage, past the block devices that may be in use: those of NVMe namespaces, of SCSI
//! disks and of flash memory.
//!
//! Invariant: of any other character device nothing is said.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::Sysfs;
use super::block::{BlockDevice, names_in};
use crate::stat::DeviceNumber;

/// The kernel's number of the block devices over flash memory (`mtdblock`).
const MTD_BLOCK_MAJOR: u32 = 31;

/// A character device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CharDevice {
    /// In the kernel: `ng0n1`, `sg0`, `mtd0`, `dax0.0`.
    name: String,
    dir: PathBuf,
    sysfs: Sysfs,
}

/// A block device with the contents that a character device leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockBehind {
    /// Its usual place below `/dev`.
    pub path: PathBuf,
    /// Its number.
    pub number: DeviceNumber,
    /// Whether it is there; flash memory can be mounted without it, by its number.
    pub is_present: bool,
}

impl BlockBehind {
    fn of(device: &BlockDevice) -> Option<BlockBehind> {
        Some(BlockBehind { path: device.path(), number: device.number()?, is_present: true })
    }
}

impl Sysfs {
    /// The character device with this number.
    ///
    /// # Errors
    /// `NotFound` where there is none.
    pub fn char_device_of(&self, number: DeviceNumber) -> io::Result<CharDevice> {
        let dir = fs::canonicalize(self.root.join("dev/char").join(number.to_string()))?;
        let name = dir.file_name().map(|name| name.to_string_lossy().into_owned());
        let name = name.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        Ok(CharDevice { name, dir, sysfs: self.clone() })
    }
}

impl CharDevice {
    /// Its name in the kernel.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it is persistent memory, which programs map.
    pub fn is_memory(&self) -> bool {
        self.name.starts_with("dax")
    }

    /// The number in one file of its directory.
    pub fn number_in(&self, file: &str) -> Option<u64> {
        fs::read_to_string(self.dir.join(file)).ok()?.trim().parse().ok()
    }

    /// The block devices whose contents it leads to.
    pub fn blocks_behind(&self) -> Vec<BlockBehind> {
        let flash = self.flash();
        if !flash.is_empty() {
            return flash.into_iter().map(|index| self.block_of_flash(index)).collect();
        }
        // A namespace has the same numbers in both names.
        let namespace = self.name.strip_prefix("ng").filter(|rest| is_namespace(rest));
        let named = namespace.map(|rest| format!("nvme{rest}"));
        let names = named.map_or_else(|| names_in(&self.dir.join("device/block")), |name| vec![name]);
        let devices = names.iter().filter_map(|name| self.sysfs.block_device(name).ok());
        devices.filter_map(|device| BlockBehind::of(&device)).collect()
    }

    /// The devices of the kernel that are built on it: `ubi0`.
    pub fn holders(&self) -> Vec<String> {
        let flash = self.flash();
        let class = self.sysfs.root.join("class/ubi");
        let number = |name: &String| {
            let text = fs::read_to_string(class.join(name).join("mtd_num")).ok()?;
            text.trim().parse::<u32>().ok()
        };
        let holds = |name: &String| number(name).is_some_and(|number| flash.contains(&number));
        names_in(&class).into_iter().filter(holds).collect()
    }

    /// The numbers of the flash devices that share its memory: itself, those it is a part of, and its parts.
    fn flash(&self) -> Vec<u32> {
        let Some(own) = flash_number(&self.name) else { return Vec::new() };
        let above = self.dir.ancestors().skip(1).filter_map(Path::file_name);
        let above = above.filter_map(|name| flash_number(&name.to_string_lossy()));
        let below = names_in(&self.dir);
        let below = below.iter().filter_map(|name| flash_number(name));
        let mut numbers: Vec<u32> = std::iter::once(own).chain(above).chain(below).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }

    fn block_of_flash(&self, index: u32) -> BlockBehind {
        let name = format!("mtdblock{index}");
        let present = self.sysfs.block_device(&name).ok().and_then(|device| BlockBehind::of(&device));
        present.unwrap_or_else(|| BlockBehind {
            path: Path::new("/dev").join(&name),
            number: DeviceNumber { major: MTD_BLOCK_MAJOR, minor: index },
            is_present: false,
        })
    }
}

/// Whether this is `XnY`.
fn is_namespace(text: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.split_once('n').is_some_and(|(controller, namespace)| is_number(controller) && is_number(namespace))
}

/// The number in `mtd0` and `mtd0ro`.
fn flash_number(name: &str) -> Option<u32> {
    let number = name.strip_prefix("mtd")?;
    number.strip_suffix("ro").unwrap_or(number).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::MadeUpSysfs;
    use std::os::unix::fs::symlink;

    fn char_device(made_up: &MadeUpSysfs, place: &str, number: &str) {
        made_up.write(&format!("devices/{place}/dev"), number);
        std::fs::create_dir_all(made_up.root.join("dev/char")).unwrap();
        symlink(made_up.root.join("devices").join(place), made_up.root.join("dev/char").join(number))
            .unwrap();
    }

    fn behind(made_up: &MadeUpSysfs, major: u32, minor: u32) -> Vec<(String, String, bool)> {
        let sysfs = Sysfs::at(&made_up.root);
        let blocks = sysfs.char_device_of(DeviceNumber { major, minor }).unwrap().blocks_behind();
        let shown = |block: BlockBehind| {
            (block.path.display().to_string(), block.number.to_string(), block.is_present)
        };
        blocks.into_iter().map(shown).collect()
    }

    #[test]
    fn a_namespace_and_a_scsi_disk_have_one_block_device_each() {
        let made_up = MadeUpSysfs::new();
        made_up.disk("nvme0n1", "259:0").disk("sda", "8:0");
        char_device(&made_up, "nvme0/ng0n1", "240:0");
        char_device(&made_up, "target/sg0", "21:0");
        char_device(&made_up, "nvme0", "241:0");
        std::fs::create_dir_all(made_up.root.join("devices/target/sg0/device/block/sda")).unwrap();
        assert_eq!(behind(&made_up, 240, 0), [("/dev/nvme0n1".to_string(), "259:0".to_string(), true)]);
        assert_eq!(behind(&made_up, 21, 0), [("/dev/sda".to_string(), "8:0".to_string(), true)]);
        assert_eq!(behind(&made_up, 241, 0), [], "a controller is not a namespace");
        assert!(Sysfs::at(&made_up.root).char_device_of(DeviceNumber { major: 1, minor: 3 }).is_err());
    }

    #[test]
    fn flash_memory_is_in_use_through_its_parts_and_through_what_it_is_a_part_of() {
        let made_up = MadeUpSysfs::new();
        made_up.disk("mtdblock1", "31:1");
        char_device(&made_up, "mtd/mtd0", "90:0");
        char_device(&made_up, "mtd/mtd0/mtd1", "90:2");
        char_device(&made_up, "mtd/mtd2ro", "90:5");
        made_up.write("class/ubi/ubi7/mtd_num", "1\n");
        let both = [
            ("/dev/mtdblock0".to_string(), "31:0".to_string(), false),
            ("/dev/mtdblock1".to_string(), "31:1".to_string(), true),
        ];
        assert_eq!((behind(&made_up, 90, 0), behind(&made_up, 90, 2)), (both.to_vec(), both.to_vec()));
        assert_eq!(behind(&made_up, 90, 5), [("/dev/mtdblock2".to_string(), "31:2".to_string(), false)]);
        let holders = |minor| {
            Sysfs::at(&made_up.root).char_device_of(DeviceNumber { major: 90, minor }).unwrap().holders()
        };
        assert_eq!((holders(0), holders(5)), (vec!["ubi7".to_string()], vec![]));
    }
}
