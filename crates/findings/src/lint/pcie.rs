//! Where disks and GPUs are attached, and what their links do.
//!
//! Invariant: what is said of a link is what the kernel says of it. The rate of a GPU's link is not judged: it falls while
//! the GPU is idle.

use fiord_host::{DeviceFacts, PciDevice};
use fiord_report::{Code, Finding, Subject};

/// What is found about a disk, and about the GPUs that its bytes go to.
pub(super) fn of(disk: &DeviceFacts, gpus: &[PciDevice]) -> Vec<Finding> {
    let far = gpus.iter().find_map(|gpu| far(disk, gpu));
    let narrow = gpus.iter().filter_map(|gpu| slow(&gpu.address, gpu, false));
    of_disk(disk).into_iter().chain(far).chain(narrow).collect()
}

/// The link of a disk that could be faster.
pub(super) fn of_disk(disk: &DeviceFacts) -> Option<Finding> {
    // Others share the link of a controller.
    let pci = disk.pci.as_ref().filter(|_| disk.device.transport.as_deref() == Some("nvme"))?;
    slow(&disk.device.name, pci, true)
}

/// A link with fewer lanes than the device has, or with a lower rate.
fn slow(name: &str, device: &PciDevice, judges_rate: bool) -> Option<Finding> {
    let [is, could] = device.link?;
    (is.lanes < could.lanes || judges_rate && is.rate < could.rate).then(|| {
        let sentence = format!("its PCIe link does {is}, and the device could do {could}");
        let remedy = "use a slot of that rate and width, or lift what limits this one (`lspci -vv`, firmware settings)";
        Finding::new(Code::PcieLink, Subject::Device(name.to_string()), sentence, remedy)
    })
}

/// A GPU that is not near a disk.
fn far(disk: &DeviceFacts, gpu: &PciDevice) -> Option<Finding> {
    let (pci, address) = (disk.pci.as_ref()?, &gpu.address);
    let sentence = match (pci.numa_node, gpu.numa_node) {
        (Some(own), Some(other)) if own != other => {
            format!("it is on NUMA node {own}, and the GPU {address} on {other}: bytes pass both processors")
        }
        _ if pci.root_port != gpu.root_port => {
            format!("it and the GPU {address} are not behind one PCIe switch: bytes pass the processor")
        }
        _ => return None,
    };
    let remedy = "`nvidia-smi topo -m` and `lspci -tv` show which disks are near which GPU (gpu_dev_ids)";
    Some(Finding::new(Code::GpuFar, Subject::Device(disk.device.name.clone()), sentence, remedy))
}

#[cfg(test)]
mod tests {
    use fiord_host::{LayerKind, PciLink};

    use crate::testing::on_device;

    use super::*;

    fn disk(transport: &str, pci: Option<PciDevice>) -> DeviceFacts {
        let mut stack = on_device("disk", false);
        let LayerKind::Device(facts) = stack.layers.remove(0).kind else { unreachable!() };
        let mut facts = *facts;
        facts.device.transport = Some(transport.to_string());
        DeviceFacts { pci, ..facts }
    }

    /// Behind a port of a node, with links of these rates and lanes.
    fn device(port: &str, node: Option<u32>, links: [(u32, u32); 2]) -> PciDevice {
        PciDevice {
            address: "0000:41:00.0".to_string(),
            root_port: port.to_string(),
            numa_node: node,
            link: Some(links.map(|(rate, lanes)| PciLink { rate, lanes })),
        }
    }

    const BEST: [(u32, u32); 2] = [(160, 4); 2];

    #[test]
    fn a_link_that_could_be_faster_is_found() {
        let found = |transport, links| {
            of_disk(&disk(transport, Some(device("a", None, links)))).map(|finding| finding.sentence)
        };
        let sentence = "its PCIe link does 8.0 GT/s x2, and the device could do 16.0 GT/s x4";
        assert_eq!(found("nvme", [(80, 2), (160, 4)]).as_deref(), Some(sentence));
        assert!(
            found("nvme", [(160, 2), (160, 4)]).is_some() && found("nvme", [(80, 4), (160, 4)]).is_some()
        );
        assert_eq!(found("nvme", BEST), None);
        assert_eq!(found("sata", [(80, 2), (160, 4)]), None, "the link of a controller of many disks");
        assert_eq!(of_disk(&disk("nvme", None)), None);
    }

    #[test]
    fn a_gpu_is_far_on_another_node_or_behind_another_port() {
        let codes = |gpu: PciDevice| -> Vec<(Code, String)> {
            let near = disk("nvme", Some(device("a", Some(0), BEST)));
            of(&near, &[gpu]).into_iter().map(|finding| (finding.code, finding.sentence)).collect()
        };
        assert_eq!(codes(device("a", Some(0), BEST)), []);
        let node = "it is on NUMA node 0, and the GPU 0000:41:00.0 on 1: bytes pass both processors";
        assert_eq!(codes(device("b", Some(1), BEST)), [(Code::GpuFar, node.to_string())]);
        let port = "it and the GPU 0000:41:00.0 are not behind one PCIe switch: bytes pass the processor";
        assert_eq!(codes(device("b", None, BEST)), [(Code::GpuFar, port.to_string())]);
        assert_eq!(codes(device("a", Some(0), [(25, 16), (320, 16)])), [], "it is idle");
        let lanes = "its PCIe link does 2.5 GT/s x8, and the device could do 32.0 GT/s x16";
        assert_eq!(codes(device("a", Some(0), [(25, 8), (320, 16)])), [(Code::PcieLink, lanes.to_string())]);
    }
}
