//! PCI devices: where they are attached, and what their links do.
//!
//! Invariant: what the kernel does not say, as of devices of virtual machines, is not known.

use std::fmt;
use std::fs;
use std::path::Path;

use fiord_sys::sysfs::Sysfs;

/// A PCI device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PciDevice {
    /// Its address: `0000:41:00.0`.
    pub address: String,
    /// The address of the root port above it; its own if there is none.
    pub root_port: String,
    /// The NUMA node it is attached to, if there are several.
    pub numa_node: Option<u32>,
    /// Its link as it is, and the best that the device itself could do.
    pub link: Option<[PciLink; 2]>,
}

/// A PCIe link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PciLink {
    /// In tenths of a gigatransfer per second.
    pub rate: u32,
    /// How many lanes it has.
    pub lanes: u32,
}

impl fmt::Display for PciLink {
    /// `16.0 GT/s x4`
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}.{} GT/s x{}", self.rate / 10, self.rate % 10, self.lanes)
    }
}

impl PciDevice {
    /// The device at this address.
    pub fn at(address: &str, sysfs: &Sysfs) -> Option<PciDevice> {
        PciDevice::above(&sysfs.pci_device(address).ok()?)
    }

    /// The last one in the path of a directory, which has no links in it.
    pub(crate) fn above(dir: &Path) -> Option<PciDevice> {
        let mut above = dir.ancestors().filter(|dir| address(dir).is_some());
        let device = above.next()?;
        let own = address(device)?;
        let text = |file: &str| fs::read_to_string(device.join(file)).ok();
        let link = |rate: &str, lanes: &str| {
            // Without a link there are 0 or 255 lanes.
            let lanes = text(lanes)?.trim().parse().ok().filter(|lanes| (1..=32).contains(lanes))?;
            Some(PciLink { rate: tenths(&text(rate)?)?, lanes })
        };
        let ends = link("current_link_speed", "current_link_width");
        let ends = ends.zip(link("max_link_speed", "max_link_width"));
        Some(PciDevice {
            address: own.to_owned(),
            root_port: above.last().and_then(address).unwrap_or(own).to_owned(),
            // -1 is the kernel's word for none.
            numa_node: text("numa_node").and_then(|node| node.trim().parse().ok()),
            link: ends.map(|(is, could)| [is, could]),
        })
    }
}

/// The address that is the name of a directory.
fn address(dir: &Path) -> Option<&str> {
    let name = dir.file_name()?.to_str()?;
    let is_part = |byte: u8| byte.is_ascii_hexdigit() || matches!(byte, b':' | b'.');
    let is_one = name.matches(':').count() == 2 && name.matches('.').count() == 1;
    (is_one && name.bytes().all(is_part)).then_some(name)
}

/// `16.0 GT/s PCIe`, of older kernels `8 GT/s`, in tenths.
fn tenths(text: &str) -> Option<u32> {
    let number = text.split(' ').next()?;
    let (whole, tenths) = number.split_once('.').unwrap_or((number, "0"));
    Some(u32::from(whole.parse::<u16>().ok()?) * 10 + u32::from(tenths.parse::<u8>().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::MadeUp;

    const DISK: &str = "pci0000:40/0000:40:01.1/0000:41:00.0/nvme/nvme0/nvme0n1";

    /// A machine whose disk has a link.
    fn machine(link: [&str; 4]) -> MadeUp {
        let machine = MadeUp::new();
        machine.disk(DISK, "259:0", 2048);
        let device = "devices/pci0000:40/0000:40:01.1/0000:41:00.0";
        let files = ["current_link_speed", "current_link_width", "max_link_speed", "max_link_width"];
        for (file, text) in files.into_iter().zip(link) {
            machine.write(&format!("{device}/{file}"), text);
        }
        machine.write(&format!("{device}/numa_node"), "1\n");
        machine
    }

    #[test]
    fn a_disk_has_the_link_of_its_controller_and_the_port_above() {
        let found =
            machine(["8.0 GT/s PCIe\n", "2\n", "16.0 GT/s PCIe\n", "4\n"]).facts("nvme0n1", &[]).pci.unwrap();
        assert_eq!((found.address.as_str(), found.root_port.as_str()), ("0000:41:00.0", "0000:40:01.1"));
        assert_eq!(found.numa_node, Some(1));
        assert_eq!(found.link.unwrap().map(|link| link.to_string()), ["8.0 GT/s x2", "16.0 GT/s x4"]);
        let older = machine(["2.5 GT/s\n", "1\n", "8 GT/s\n", "4\n"]).facts("nvme0n1", &[]).pci.unwrap();
        assert_eq!(older.link.unwrap().map(|link| link.rate), [25, 80]);
    }

    #[test]
    fn a_virtual_device_has_no_link_and_a_virtual_disk_is_no_pci_device() {
        for none in [
            ["Unknown\n", "0\n", "Unknown\n", "0\n"],
            ["2.5 GT/s PCIe\n", "255\n", "2.5 GT/s PCIe\n", "255\n"],
        ] {
            assert_eq!(machine(none).facts("nvme0n1", &[]).pci.unwrap().link, None);
        }
        let machine = machine(["", "", "", ""]);
        machine.disk("virtual/block/loop0", "7:0", 4).disk(
            "pci0000:00/0000:00:05.0/virtio1/block/vda",
            "254:0",
            4,
        );
        assert_eq!(machine.facts("loop0", &[]).pci, None);
        let attached = machine.facts("vda", &[]).pci.unwrap();
        assert_eq!((attached.root_port, attached.numa_node), ("0000:00:05.0".to_string(), None));
    }

    /// With more than one path to it, a disk is below a subsystem of the kernel's own.
    #[test]
    fn a_disk_of_an_nvme_subsystem_has_the_link_of_its_controller() {
        let machine = machine(["16.0 GT/s PCIe\n", "4\n", "16.0 GT/s PCIe\n", "4\n"]);
        machine.disk("virtual/nvme-subsystem/nvme-subsys3/nvme3n1", "259:3", 2048);
        machine.write("devices/pci0000:40/0000:40:01.1/0000:41:00.0/nvme/nvme3/cntlid", "1");
        machine.link(
            "devices/virtual/nvme-subsystem/nvme-subsys3/nvme3n1/device/nvme3",
            "devices/pci0000:40/0000:40:01.1/0000:41:00.0/nvme/nvme3",
        );
        assert_eq!(machine.facts("nvme3n1", &[]).pci.unwrap().address, "0000:41:00.0");
    }

    #[test]
    fn a_gpu_is_found_by_its_address() {
        let machine = machine(["2.5 GT/s PCIe\n", "16\n", "32.0 GT/s PCIe\n", "16\n"]);
        machine.link("bus/pci/devices/0000:41:00.0", "devices/pci0000:40/0000:40:01.1/0000:41:00.0");
        let gpu = PciDevice::at("0000:41:00.0", &machine.system(&[]).sysfs).unwrap();
        assert_eq!(gpu.root_port, "0000:40:01.1");
        assert_eq!(PciDevice::at("0000:42:00.0", &machine.system(&[]).sysfs), None);
    }
}
