//! Devices that a case sets up and that go with it.
//!
//! Invariant: a device is removed when its value is dropped, so that each case begins with the machine's own devices.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A null_blk made through configfs.
#[derive(Debug)]
pub struct NullBlk {
    name: String,
}

impl NullBlk {
    /// A memory disk of `size_mb` with these attributes.
    ///
    /// # Errors
    /// What configfs refused.
    pub fn new(name: &str, size_mb: u32, attributes: &[(&str, &str)]) -> Result<NullBlk, String> {
        let dir = Path::new("/sys/kernel/config/nullb").join(name);
        fs::create_dir(&dir).map_err(|error| format!("{}: {error}", dir.display()))?;
        let disk = NullBlk { name: name.to_string() };
        let size = size_mb.to_string();
        let all = [("size", size.as_str()), ("memory_backed", "1")];
        for (attribute, value) in all.iter().chain(attributes).chain(&[("power", "1")]) {
            disk.set(attribute, value)?;
        }
        Ok(disk)
    }

    /// Sets an attribute in configfs.
    ///
    /// # Errors
    /// What configfs refused.
    pub fn set(&self, attribute: &str, value: &str) -> Result<(), String> {
        let file = Path::new("/sys/kernel/config/nullb").join(&self.name).join(attribute);
        fs::write(&file, value).map_err(|error| format!("{}: {error}", file.display()))
    }

    /// The device file.
    pub fn path(&self) -> String {
        format!("/dev/{}", self.name)
    }
}

impl Drop for NullBlk {
    fn drop(&mut self) {
        // A case that fails leaves it mounted.
        let _ = run("umount", &["--lazy", &self.path()]);
        let _ = fs::remove_dir(Path::new("/sys/kernel/config/nullb").join(&self.name));
    }
}

/// The disk of scsi_debug, which has one set of parameters at a time.
#[derive(Debug)]
pub struct ScsiDebug {
    name: String,
}

impl ScsiDebug {
    /// Loads the module again with these parameters.
    ///
    /// # Errors
    /// If that fails, or no disk appears.
    pub fn new(parameters: &[&str]) -> Result<ScsiDebug, String> {
        // Loaded by the machine's own setup.
        let _ = run("modprobe", &["-r", "scsi_debug"]);
        let all: Vec<&str> = ["scsi_debug", "delay=0"].iter().chain(parameters).copied().collect();
        run("modprobe", &all)?;
        let disk = |name: &str| {
            let vendor = fs::read_to_string(format!("/sys/block/{name}/device/model")).ok()?;
            vendor.trim().starts_with("scsi_debug").then(|| name.to_string())
        };
        let names = fs::read_dir("/sys/block").map_err(|error| error.to_string())?.flatten();
        let found = names.filter_map(|entry| disk(&entry.file_name().to_string_lossy())).next();
        Ok(ScsiDebug { name: found.ok_or("scsi_debug has no disk")? })
    }

    /// The device file.
    pub fn path(&self) -> String {
        format!("/dev/{}", self.name)
    }

    /// Its character device.
    ///
    /// # Errors
    /// If it has none.
    pub fn character_device(&self) -> Result<String, String> {
        let directory = format!("/sys/block/{}/device/scsi_generic", self.name);
        let name = only_entry(Path::new(&directory)).ok_or_else(|| format!("{directory}: modprobe sg"))?;
        Ok(format!("/dev/{name}"))
    }

    /// Whether it answers no command from now on.
    ///
    /// # Errors
    /// What the module refused.
    pub fn ignore_commands(&self, ignores: bool) -> Result<(), String> {
        // Of every command, what is `opts=4`: it is never answered.
        for (parameter, value) in
            [("opts", if ignores { "4" } else { "0" }), ("every_nth", if ignores { "1" } else { "0" })]
        {
            let file = format!("/sys/bus/pseudo/drivers/scsi_debug/{parameter}");
            fs::write(&file, value).map_err(|error| format!("{file}: {error}"))?;
        }
        Ok(())
    }

    /// The file that removes the device when `1` is written to it.
    pub fn delete_file(&self) -> PathBuf {
        PathBuf::from(format!("/sys/block/{}/device/delete", self.name))
    }
}

impl Drop for ScsiDebug {
    fn drop(&mut self) {
        // Commands that were never answered are in use until the kernel gives up on them.
        for _ in 0..120 {
            if run("modprobe", &["-r", "scsi_debug"]).is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_secs(1));
        }
    }
}

/// The name of the only, or first, entry of a directory.
fn only_entry(directory: &Path) -> Option<String> {
    let entry = fs::read_dir(directory).ok()?.flatten().next()?;
    Some(entry.file_name().to_string_lossy().into_owned())
}

/// Flash in memory; there is one at a time.
#[derive(Debug)]
pub struct Flash;

impl Flash {
    /// NAND of 16 MiB with blocks of 16 KiB and these parameters of nandsim.
    ///
    /// # Errors
    /// If the module cannot be loaded.
    pub fn nand(parameters: &[&str]) -> Result<Flash, String> {
        let all = ["nandsim", "first_id_byte=0x20", "second_id_byte=0x33"];
        run("modprobe", &[&all[..], parameters].concat())?;
        Ok(Flash)
    }

    /// The device file.
    pub fn path(&self) -> String {
        "/dev/mtd0".to_string()
    }
}

impl Drop for Flash {
    fn drop(&mut self) {
        let _ = run("modprobe", &["-r", "nandsim"]);
    }
}

/// An NVMe disk over a disk in memory, which can be stopped, can fail, and can be taken away.
#[derive(Debug)]
pub struct NvmeLoop {
    name: String,
    controller: PathBuf,
    below: DeviceMapper,
    memory: NullBlk,
    size_mib: u32,
}

/// The kernel's own NVMe target.
const TARGET: &str = "/sys/kernel/config/nvmet";

/// How the kernel's NVMe driver reaches the kernel's NVMe target.
struct Transport {
    modules: &'static [&'static str],
    /// Attributes of the target's port.
    port: &'static [(&'static str, &'static str)],
    /// Where the driver finds it.
    address: &'static str,
}

/// Debian's 6.1 has no nvme-loop.
const TRANSPORTS: [Transport; 2] = [
    Transport { modules: &["nvme-loop"], port: &[("addr_trtype", "loop")], address: "transport=loop" },
    Transport {
        modules: &["nvme-tcp", "nvmet-tcp"],
        port: &[
            ("addr_trtype", "tcp"),
            ("addr_adrfam", "ipv4"),
            ("addr_traddr", "127.0.0.1"),
            ("addr_trsvcid", "4420"),
        ],
        address: "transport=tcp,traddr=127.0.0.1,trsvcid=4420",
    },
];

impl Transport {
    /// The first that this kernel has.
    fn load() -> Result<&'static Transport, String> {
        let mut failed = Err("there is no transport".to_string());
        for transport in &TRANSPORTS {
            let loaded = transport.modules.iter().try_for_each(|module| run("modprobe", &[module]));
            match loaded {
                Ok(()) => return Ok(transport),
                Err(why) => failed = Err(why),
            }
        }
        failed
    }
}

/// Writes a file of the kernel.
fn set(file: impl AsRef<Path>, value: &str) -> Result<(), String> {
    fs::write(&file, value).map_err(|error| format!("{} = {value}: {error}", file.as_ref().display()))
}

impl NvmeLoop {
    /// A disk of this size.
    ///
    /// # Errors
    /// What the kernel refused.
    pub fn new(name: &str, size_mib: u32) -> Result<NvmeLoop, String> {
        let transport = Transport::load()?;
        let memory = NullBlk::new(&format!("{name}-memory"), size_mib, &[])?;
        let below = DeviceMapper::new(&format!("{name}-below"), &linear(&memory, size_mib))?;
        let (subsystem, port) =
            (Path::new(TARGET).join("subsystems").join(name), Path::new(TARGET).join("ports/1"));
        let namespace = subsystem.join("namespaces/1");
        for directory in [&subsystem, &namespace, &port] {
            fs::create_dir(directory).map_err(|error| format!("{}: {error}", directory.display()))?;
        }
        set(subsystem.join("attr_allow_any_host"), "1")?;
        set(namespace.join("device_path"), &below.path())?;
        set(namespace.join("enable"), "1")?;
        for (attribute, value) in transport.port {
            set(port.join(attribute), value)?;
        }
        std::os::unix::fs::symlink(&subsystem, port.join("subsystems").join(name))
            .map_err(|error| error.to_string())?;
        set("/dev/nvme-fabrics", &format!("{},nqn={name}", transport.address))?;
        let controllers = fs::read_dir("/sys/class/nvme").map_err(|error| error.to_string())?.flatten();
        let is_own =
            |path: &PathBuf| fs::read_to_string(path.join("subsysnqn")).is_ok_and(|nqn| nqn.trim() == name);
        let controller =
            controllers.map(|entry| entry.path()).find(is_own).ok_or("the controller did not appear")?;
        Ok(NvmeLoop { name: name.to_string(), controller, below, memory, size_mib })
    }

    /// The character device of its namespace.
    ///
    /// # Errors
    /// If it has none.
    pub fn character_device(&self) -> Result<String, String> {
        let number =
            self.controller.to_string_lossy().rsplit_once("nvme").map(|(_, number)| number.to_string());
        let path = format!("/dev/ng{}n1", number.unwrap_or_default());
        for _ in 0..100 {
            if Path::new(&path).exists() {
                return Ok(path);
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        Err(format!("{path} did not appear"))
    }

    /// Takes it away from the machine.
    ///
    /// # Errors
    /// What the kernel refused.
    pub fn disconnect(&self) -> Result<(), String> {
        set(self.controller.join("delete_controller"), "1")
    }

    /// Whether commands wait for ever from now on.
    ///
    /// # Errors
    /// What dmsetup says.
    pub fn suspend(&self, waits: bool) -> Result<(), String> {
        let action = if waits { "suspend" } else { "resume" };
        run("dmsetup", &[action, "--noudevsync", "--noflush", &self.below.name])
    }

    /// Makes all that lies behind this place fail.
    ///
    /// # Errors
    /// What dmsetup says.
    pub fn fail_from_mib(&self, start_mib: u32) -> Result<(), String> {
        let (start, rest) = (start_mib << 11, (self.size_mib - start_mib) << 11);
        let table = format!("{}{start} {rest} error\n", linear(&self.memory, start_mib));
        let file = "/run/fiord-table";
        set(file, &table)?;
        run("dmsetup", &["reload", &self.below.name, file])?;
        run("dmsetup", &["resume", "--noudevsync", &self.below.name])
    }
}

/// A table of the first part of a disk.
fn linear(disk: &NullBlk, size_mib: u32) -> String {
    format!("0 {} linear {} 0\n", size_mib << 11, disk.path())
}

impl Drop for NvmeLoop {
    fn drop(&mut self) {
        // Fails if it is gone already.
        let _ = self.disconnect();
        let (subsystem, port) =
            (Path::new(TARGET).join("subsystems").join(&self.name), Path::new(TARGET).join("ports/1"));
        let namespace = subsystem.join("namespaces/1");
        let _ = fs::remove_file(port.join("subsystems").join(&self.name));
        let _ = set(namespace.join("enable"), "0");
        for directory in [&port, &namespace, &subsystem] {
            let _ = fs::remove_dir(directory);
        }
    }
}

/// The NVMe disk with this serial number, by its kernel name, which varies.
pub fn nvme(serial: &str) -> Option<String> {
    let path = fs::canonicalize(format!("/dev/nvme-{serial}")).ok()?;
    Some(path.to_string_lossy().into_owned())
}

/// A device-mapper device.
#[derive(Debug)]
pub struct DeviceMapper {
    name: String,
}

impl DeviceMapper {
    /// A device with this table, in dmsetup's form.
    ///
    /// # Errors
    /// What dmsetup says.
    pub fn new(name: &str, table: &str) -> Result<DeviceMapper, String> {
        let mut dmsetup = Command::new("dmsetup");
        dmsetup
            .args(["create", name, "--noudevsync", "--noudevrules"])
            .stdin(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = dmsetup.spawn().map_err(|error| format!("dmsetup: {error}"))?;
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(table.as_bytes()).map_err(|error| format!("dmsetup: {error}"))?;
        }
        let out = child.wait_with_output().map_err(|error| format!("dmsetup: {error}"))?;
        if !out.status.success() {
            return Err(format!("dmsetup create {name}: {}", String::from_utf8_lossy(&out.stderr)));
        }
        // Nothing else makes device files in the guest.
        let device = DeviceMapper { name: name.to_string() };
        run("dmsetup", &["mknodes", name])?;
        Ok(device)
    }

    /// The device file.
    pub fn path(&self) -> String {
        format!("/dev/mapper/{}", self.name)
    }
}

impl Drop for DeviceMapper {
    fn drop(&mut self) {
        // The guest's udev may still read it, and slowly: that fails from now on.
        let options = ["remove", "--force", "--retry", "--noudevsync", "--noudevrules"];
        let _ = run("dmsetup", &[&options[..], &[&self.name]].concat());
        // Its file would be that of the next device with its number.
        let _ = run("dmsetup", &["mknodes"]);
    }
}

pub(crate) fn run(program: &str, args: &[&str]) -> Result<(), String> {
    let mut command = Command::new(program);
    let out = command.args(args).output().map_err(|error| format!("{program}: {error}"))?;
    match out.status.success() {
        true => Ok(()),
        false => Err(format!("{program} {}: {}", args.join(" "), String::from_utf8_lossy(&out.stderr))),
    }
}

/// A file system that maps its files directly to persistent memory, on the machine's device for that.
#[derive(Debug)]
pub struct PersistentFiles {
    had_bad_part: std::cell::Cell<bool>,
}

impl PersistentFiles {
    const DISK: &'static str = "pmem0";

    /// Makes it, and mounts it.
    ///
    /// # Errors
    /// If a program fails.
    pub fn mount() -> Result<PersistentFiles, String> {
        let files = PersistentFiles { had_bad_part: false.into() };
        let (device, directory) = (format!("/dev/{}", PersistentFiles::DISK), files.directory());
        run("mkfs.ext4", &["-q", "-F", "-b", "4096", &device])?;
        fs::create_dir_all(directory).map_err(|error| format!("{directory}: {error}"))?;
        run("mount", &["-o", "dax", &device, directory])?;
        Ok(files)
    }

    /// Where its files are.
    pub fn directory(&self) -> &'static str {
        "/run/fiord-pmem"
    }

    /// The path of a file.
    pub fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.directory())
    }

    /// Declares this block of 4 KiB of a file, which is less than 2 MiB long, to be damaged: its memory is not mapped any more.
    ///
    /// # Errors
    /// If the block is not found, or what the kernel refused.
    pub fn damage(&self, path: &str, block: u64) -> Result<(), String> {
        run("sync", &[])?;
        let out = Command::new("filefrag").args(["-b4096", "-v", path]).output();
        let out = out.map_err(|error| format!("filefrag: {error}"))?;
        let text = String::from_utf8_lossy(&out.stdout);
        let place =
            text.lines().filter_map(extent).find(|(first, last, _)| (*first..=*last).contains(&block));
        let (first, _, physical) = place.ok_or_else(|| format!("{path}: no block {block} in {text}"))?;
        let file = format!("/sys/block/{}/badblocks", PersistentFiles::DISK);
        let part = format!("{} 8", (physical + block - first) * 8);
        self.had_bad_part.set(true);
        fs::write(&file, &part).map_err(|error| format!("{file}: {part}: {error}"))
    }
}

/// The first and last block of an extent in a file, and the first on the disk, in a line of filefrag: `0: 0.. 255: 34816.. …`.
fn extent(line: &str) -> Option<(u64, u64, u64)> {
    let numbers: Vec<&str> = line.split([':', '.', ' ']).filter(|word| !word.is_empty()).take(4).collect();
    match numbers[..] {
        [_number, first, last, physical] => {
            Some((first.parse().ok()?, last.parse().ok()?, physical.parse().ok()?))
        }
        _ => None,
    }
}

impl Drop for PersistentFiles {
    fn drop(&mut self) {
        let _ = run("umount", &[self.directory()]);
        if self.had_bad_part.get() {
            // The driver knows only of the module's own bad parts when it begins anew.
            let driver = Path::new("/sys/bus/nd/drivers/nd_pmem");
            let entries = fs::read_dir(driver).into_iter().flatten().flatten();
            let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
            for name in names.filter(|name| name.starts_with("pfn")).collect::<Vec<_>>() {
                for action in ["unbind", "bind"] {
                    let _ = fs::write(driver.join(action), &name);
                }
            }
        }
    }
}
