//! What identifies a device, so that a command can be about this one and no other.
//!
//! Invariant: names that the kernel gives in the order in which it finds devices (`sda`, `loop3`) are no identity.

use std::fs;
use std::io;
use std::path::Path;

use fiord_sys::blkdev;
use fiord_sys::file::{self, OpenHow};
use fiord_sys::stat::{self, InodeKind};
use fiord_sys::sysfs::{BlockDevice, Sysfs};

/// The identity of a device or file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceIdentity {
    /// What identifies it: serial number, then WWN; the UUID of a mapped device or RAID; the backing file of a loop device;
    /// the real path of a file; of any other device its number and size, `254:0:1073741824`. At least one. That of a
    /// partition is its disk's, followed by `-part1`.
    pub words: Vec<String>,
    /// Its model, if it has one.
    pub model: Option<String>,
    /// Its size in bytes.
    pub size_bytes: u64,
}

impl DeviceIdentity {
    /// Of the block device or regular file at this path, links followed.
    ///
    /// # Errors
    /// The kernel's; or it is neither.
    pub fn of(path: &Path) -> io::Result<DeviceIdentity> {
        let found = stat::stat(path)?;
        match found.kind {
            InodeKind::Regular => {
                let real = fs::canonicalize(path)?.display().to_string();
                Ok(DeviceIdentity { words: vec![real], model: None, size_bytes: found.size_bytes })
            }
            InodeKind::Block => {
                let device = Sysfs::default().block_device_of(found.special)?;
                let open = file::open(path, &OpenHow { nonblocking: true, ..OpenHow::READ })?;
                Ok(DeviceIdentity::of_device(&device, blkdev::size_bytes(&open)?))
            }
            _ => Err(io::Error::from(io::ErrorKind::InvalidInput)),
        }
    }

    /// Whether this word identifies it.
    pub fn is(&self, word: &str) -> bool {
        self.words.iter().any(|known| known == word)
    }

    fn of_device(device: &BlockDevice, size_bytes: u64) -> DeviceIdentity {
        let disk = device.disk();
        let part = device.attribute("partition").map_or_else(String::new, |number| format!("-part{number}"));
        let mut words: Vec<String> = Vec::new();
        for word in serial(&disk).into_iter().chain(unique(&disk)).map(|word| word + &part) {
            if !words.contains(&word) {
                words.push(word);
            }
        }
        if words.is_empty() {
            let number = device.number().unwrap_or_default();
            words.push(format!("{}:{}:{size_bytes}", number.major, number.minor));
        }
        DeviceIdentity { words, model: disk.attribute("device/model"), size_bytes }
    }
}

/// The serial number: NVMe and MMC, virtio, SCSI and SATA.
fn serial(disk: &BlockDevice) -> Option<String> {
    let named = ["device/serial", "serial"].iter().find_map(|file| disk.attribute(file));
    named.or_else(|| {
        // The page has four bytes before the number.
        let page = fs::read(disk.directory().join("device/vpd_pg80")).ok()?;
        let text = String::from_utf8_lossy(page.get(4..)?).trim_matches([' ', '\0']).to_string();
        Some(text).filter(|text| !text.is_empty())
    })
}

/// What else is unique to it: a WWN, a UUID, a backing file with its offset.
fn unique(disk: &BlockDevice) -> Option<String> {
    if let Some(file) = disk.attribute("loop/backing_file") {
        let offset = disk.attribute("loop/offset").filter(|offset| offset != "0");
        return Some(offset.map_or_else(|| file.clone(), |offset| format!("{file}+{offset}")));
    }
    ["wwid", "device/wwid", "dm/uuid", "md/uuid"].iter().find_map(|file| disk.attribute(file))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{LoopDevice, MadeUp, TempDir};

    #[test]
    fn serial_and_wwn_are_found_where_each_kind_of_device_has_them() {
        let machine = MadeUp::new();
        let place = |name: &str| format!("pci/{name}");
        for (number, name) in ["nvme0n1", "vda", "sda", "dm-0", "loop0", "zram0"].iter().enumerate() {
            machine.disk(&place(name), &format!("9:{number}"), 8);
        }
        machine.attributes(
            "nvme0n1",
            &[("device/serial", "S1  \n"), ("wwid", "eui.0025"), ("device/model", "X")],
        );
        machine.attributes("vda", &[("serial", "virtual-1")]);
        machine.attributes(
            "sda",
            &[("device/vpd_pg80", "\0\u{1}\0\u{8}  WD-77  "), ("device/wwid", "naa.5000")],
        );
        machine.attributes("dm-0", &[("dm/uuid", "LVM-abc")]);
        machine.attributes("loop0", &[("loop/backing_file", "/images/a"), ("loop/offset", "512")]);
        let words = |name: &str| {
            let device = machine.system(&[]).sysfs.block_device(name).unwrap();
            DeviceIdentity::of_device(&device, 4096).words
        };
        assert_eq!(words("nvme0n1"), ["S1", "eui.0025"]);
        assert_eq!(words("vda"), ["virtual-1"]);
        assert_eq!(words("sda"), ["WD-77", "naa.5000"]);
        assert_eq!(words("dm-0"), ["LVM-abc"]);
        assert_eq!(words("loop0"), ["/images/a+512"]);
        assert_eq!(words("zram0"), ["9:5:4096"]);
    }

    #[test]
    fn a_partition_is_not_its_disk() {
        let machine = MadeUp::new();
        machine.disk("vdb", "9:1", 8).partition("vdb", "vdb1", "9:2").attributes("vdb", &[("serial", "A")]);
        let device = machine.system(&[]).sysfs.block_device("vdb1").unwrap();
        assert_eq!(DeviceIdentity::of_device(&device, 4096).words, ["A-part1"]);
    }

    #[test]
    fn a_loop_device_is_its_backing_file() {
        let dir = TempDir::new("identity");
        let device = fiord_testing::need!(LoopDevice::new(&dir, 1 << 20));
        let identity = DeviceIdentity::of(&device.path).unwrap();
        let backing = dir.path.join("backing");
        assert_eq!(
            (identity.words.clone(), identity.size_bytes),
            (vec![backing.display().to_string()], 1 << 20)
        );
        assert!(identity.is(&backing.display().to_string()) && !identity.is("loop0") && !identity.is(""));
        assert_eq!(DeviceIdentity::of(&backing).unwrap().words, identity.words);
        assert!(DeviceIdentity::of(&dir.path).is_err());
    }
}
