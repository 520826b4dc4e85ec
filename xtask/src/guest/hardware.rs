//! What the emulated machine is made of: its processor, its disks and its persistent memory.
//!
//! Invariant: each disk has a serial number, by which the guest knows it.

use std::fmt::Write as _;
use std::fs::File;
use std::io;
use std::path::PathBuf;

use super::power_cut::{self, DiskServer};

/// QEMU 7.2 emulated `cmpxchg16b` wrongly if an interrupt came between (the kernel panics with a double fault), which newer
/// ones may do; protection keys and five levels of page tables only cost time.
const PROCESSOR: &str = "max,cx16=off,la57=off,pku=off";

/// The length of an NVMe disk.
const IMAGE_BYTES: u64 = 64 << 20;

/// An NVMe disk.
#[derive(Debug)]
struct NvmeDisk {
    /// Its serial number.
    serial: &'static str,
    /// Properties of the subsystem that it is in, if that is not one of its own making, from a comma on.
    subsystem: Option<&'static str>,
    /// Properties of its controller, from a comma on.
    controller: &'static str,
    /// Properties of its namespace, from a comma on.
    namespace: &'static str,
}

impl NvmeDisk {
    /// One without anything special.
    const fn plain(serial: &'static str) -> NvmeDisk {
        NvmeDisk { serial, subsystem: None, controller: "", namespace: "" }
    }
}

/// The NVMe disks. The critical warning of the worn one is bit 2: its reliability is degraded.
const DISKS: [NvmeDisk; 7] = [
    NvmeDisk::plain("plain"),
    NvmeDisk {
        // Appends of 4 KiB times 2 to the power of this.
        controller: ",zoned.zasl=5",
        namespace: ",zoned=true,zoned.zone_size=8M,zoned.zone_capacity=6M,zoned.max_open=4,zoned.max_active=4",
        ..NvmeDisk::plain("zoned")
    },
    NvmeDisk { controller: ",smart_critical_warning=4", ..NvmeDisk::plain("worn") },
    NvmeDisk { namespace: ",logical_block_size=4096,physical_block_size=4096", ..NvmeDisk::plain("wide") },
    NvmeDisk { namespace: ",ms=8,mset=0,pi=1,pil=1", ..NvmeDisk::plain("guarded") },
    NvmeDisk {
        namespace: ",logical_block_size=4096,physical_block_size=4096,ms=16,mset=1,pi=1,pil=1,pif=2",
        ..NvmeDisk::plain("mixed")
    },
    NvmeDisk {
        // In two groups, of which an identifier has the number in its first bit.
        subsystem: Some(",fdp=on,fdp.runs=16M,fdp.nrg=2,fdp.nruh=8"),
        namespace: ",fdp.ruhs=3-4",
        ..NvmeDisk::plain("placed")
    },
];

/// Modules of persistent memory: the first serves as a block device, the second is mapped as a whole (`setup.sh`).
const MEMORY_MODULES: [&str; 2] = ["nvdimm0", "nvdimm1"];

/// The length of each: the unit in which the kernel adds memory.
const MEMORY_MODULE_BYTES: u64 = 128 << 20;

/// What a machine has.
#[derive(Debug)]
pub struct Hardware {
    /// Where the contents of its disks and memory are.
    pub dir: PathBuf,
    /// Whether the disks are there that a power cut is about.
    pub had_power_cut: bool,
}

impl Hardware {
    /// The serial numbers of the NVMe disks.
    pub fn disks(&self) -> impl Iterator<Item = &'static str> {
        let cached = power_cut::DISKS.iter().map(|disk| disk.serial).filter(|_| self.had_power_cut);
        DISKS.iter().map(|disk| disk.serial).chain(cached)
    }

    /// The contents of a disk or of a module of memory.
    pub fn image(&self, name: &str) -> PathBuf {
        self.dir.join(format!("{name}.img"))
    }

    /// Creates the contents of all, which are zeroes.
    pub fn create_images(&self) -> io::Result<()> {
        for disk in self.disks() {
            File::create(self.image(disk))?.set_len(IMAGE_BYTES)?;
        }
        for module in MEMORY_MODULES {
            File::create(self.image(module))?.set_len(MEMORY_MODULE_BYTES)?;
        }
        Ok(())
    }

    /// The emulator's arguments. The disks of a power cut are served by these, or else are their images.
    pub fn arguments(&self, servers: &[DiskServer]) -> String {
        let raw = |disk: &str| format!("{},format=raw", self.image(disk).display());
        let mut devices = format!("-cpu {PROCESSOR}");
        for NvmeDisk { serial, subsystem, controller, namespace } in &DISKS {
            let mut of_subsystem = String::new();
            if let Some(properties) = subsystem {
                let _ = write!(devices, " -device nvme-subsys,id=s-{serial}{properties}");
                of_subsystem = format!(",subsys=s-{serial}");
            }
            let _ = write!(
                devices,
                " -drive file={},id=d-{serial},if=none,discard=unmap \
                 -device nvme,serial={serial},id={serial}{of_subsystem}{controller} \
                 -device nvme-ns,drive=d-{serial},bus={serial}{namespace}",
                raw(serial)
            );
        }
        for disk in power_cut::DISKS.iter().map(|disk| disk.serial).filter(|_| self.had_power_cut) {
            let server = servers.iter().find(|server| server.serial == disk);
            let file = server.map_or_else(|| raw(disk), |server| format!("{},format=raw", server.address()));
            let _ = write!(
                devices,
                " -drive file={file},id=d-{disk},if=none -device nvme,serial={disk},drive=d-{disk}"
            );
        }
        devices += &self.management();
        devices += " -machine nvdimm=on -m 1G,slots=2,maxmem=2G";
        for module in MEMORY_MODULES {
            let _ = write!(
                devices,
                " -object memory-backend-file,id=m-{module},share=on,mem-path={},size={MEMORY_MODULE_BYTES} \
                 -device nvdimm,id={module},memdev=m-{module}",
                self.image(module).display()
            );
        }
        devices
    }

    /// The interface to a management controller, which answers through a serial port that the guest itself has: a case says
    /// what it answers.
    fn management(&self) -> String {
        let socket = self.dir.join("bmc");
        let socket = socket.display();
        format!(
            " -chardev socket,id=c-bmc,path={socket},server=on,wait=off -device ipmi-bmc-extern,id=bmc,chardev=c-bmc \
             -device isa-ipmi-kcs,bmc=bmc -chardev socket,id=c-bmc-end,path={socket} \
             -device virtio-serial-pci,id=bmc-bus -device virtserialport,bus=bmc-bus.0,chardev=c-bmc-end,name=bmc"
        )
    }
}

/// Whether the compiler's flags suit a processor that is emulated.
pub fn portable() -> Result<(), String> {
    let flags = std::env::var("RUSTFLAGS").unwrap_or_default();
    match flags.contains("target-cpu") {
        true => Err(format!(
            "RUSTFLAGS={flags}: the emulated processor has not all instructions of this one; leave target-cpu out"
        )),
        false => Ok(()),
    }
}
