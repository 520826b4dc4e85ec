//! What disks report about their own health, where they can be asked: the health log of NVMe disks, SMART of ATA disks, the
//! log pages of SCSI disks; and the power state of NVMe disks.
//!
//! Invariant: only a whole disk that is known to be of such a kind is asked. It is opened for reading only, and closed
//! again; what cannot be asked has no health.

use std::fs::File;
use std::io;

use fiord_device::HealthLog;
use fiord_device::nvme_power::PowerState;
use fiord_sys::nvme::{nvme_health, nvme_power_state};
use fiord_sys::scsi::{ata_health, scsi_health};
use fiord_sys::sysfs::{BlockDevice, Sysfs};

use crate::device::describe;

/// The health of a disk at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    /// The disk, by the kernel's name.
    pub device: String,
    /// What it reports.
    pub log: HealthLog,
    /// The power state that it is in, if it has such states and tells them.
    pub power: Option<PowerState>,
}

/// How a disk is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    Nvme,
    Ata,
    Scsi,
}

/// The health of those of these devices that report it.
pub fn health<'d>(devices: impl IntoIterator<Item = &'d str>) -> Vec<Health> {
    let sysfs = Sysfs::default();
    let of = |name: &str| {
        let device = sysfs.block_device(name).ok()?;
        let (log, power) = ask(&device, protocol(&device)?).ok()?;
        Some(Health { device: name.to_owned(), log, power })
    };
    devices.into_iter().filter_map(of).collect()
}

fn ask(device: &BlockDevice, protocol: Protocol) -> io::Result<(HealthLog, Option<PowerState>)> {
    let file = File::open(device.path())?;
    Ok(match protocol {
        Protocol::Nvme => (nvme_health(&file)?, nvme_power_state(&file).ok()),
        Protocol::Ata => (ata_health(&file)?, None),
        Protocol::Scsi => (scsi_health(&file)?, None),
    })
}

/// The protocol of a whole disk; `None` for everything else, and for disks behind USB, because some of their bridges stop
/// to work after a command that they do not know.
fn protocol(device: &BlockDevice) -> Option<Protocol> {
    /// Peripheral device types of SCSI: disks, and zoned disks that the host manages.
    const DISK_TYPES: [&str; 2] = ["0", "20"];
    let known = describe(device);
    let is_numbered = |prefix: &str| device.name().strip_prefix(prefix).is_some_and(|rest| !rest.is_empty());
    if device.is_partition() || known.transport.as_deref() == Some("usb") {
        return None;
    }
    if is_numbered("nvme") {
        return Some(Protocol::Nvme);
    }
    let is_disk = device.attribute("device/type").is_some_and(|kind| DISK_TYPES.contains(&kind.as_str()));
    if !is_numbered("sd") || !is_disk {
        return None;
    }
    // The vendor that layers between SCSI and ATA give to every ATA disk.
    let is_ata = device.attribute("device/vendor").is_some_and(|vendor| vendor == "ATA");
    Some(if is_ata { Protocol::Ata } else { Protocol::Scsi })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::MadeUp;

    #[test]
    fn what_is_no_disk_of_a_known_kind_has_no_health() {
        assert_eq!(health(["loop0", "nvme-not-there", "null"]), []);
    }

    #[test]
    fn a_whole_disk_is_asked_by_its_protocol_and_nothing_else_is() {
        let machine = MadeUp::new();
        let disk = |place: &str, number: &str, name: &str, kind: &str, vendor: &str| {
            machine.disk(place, number, 8);
            machine.attributes(name, &[("device/type", kind), ("device/vendor", vendor)]);
        };
        disk("pci/ata1/host0/block/sda", "8:0", "sda", "0\n", "ATA     \n");
        disk("pci/host1/end_device-1:0/block/sdb", "8:16", "sdb", "0\n", "SEAGATE \n");
        disk("pci/usb1/1-1/host2/block/sdc", "8:32", "sdc", "0\n", "ATA     \n");
        disk("pci/host3/block/sdd", "8:48", "sdd", "5\n", "ATA     \n");
        disk("pci/host4/block/sr0", "11:0", "sr0", "5\n", "ATA     \n");
        machine.disk("sde", "8:64", 8).partition("sde", "sde1", "8:65");
        machine.attributes("sde1", &[("device/type", "0\n")]);
        machine.disk("nvme0n1", "259:0", 8).partition("nvme0n1", "nvme0n1p1", "259:1");
        machine.disk("dm-0", "253:0", 8).disk("vda", "254:0", 8).disk("loop0", "7:0", 8);
        let system = machine.system(&[]);
        let of = |name: &str| protocol(&system.sysfs.block_device(name).unwrap());
        assert_eq!(of("sda"), Some(Protocol::Ata));
        assert_eq!(of("sdb"), Some(Protocol::Scsi));
        assert_eq!(of("nvme0n1"), Some(Protocol::Nvme));
        for name in ["sdc", "sdd", "sr0", "sde", "sde1", "nvme0n1p1", "dm-0", "vda", "loop0"] {
            assert_eq!(of(name), None, "{name}");
        }
    }
}
