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

    /// The file that removes the device when `1` is written to it.
    pub fn delete_file(&self) -> PathBuf {
        PathBuf::from(format!("/sys/block/{}/device/delete", self.name))
    }
}

impl Drop for ScsiDebug {
    fn drop(&mut self) {
        let _ = run("modprobe", &["-r", "scsi_debug"]);
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
        let _ = run("dmsetup", &["remove", "--noudevsync", "--noudevrules", &self.name]);
    }
}

fn run(program: &str, args: &[&str]) -> Result<(), String> {
    let mut command = Command::new(program);
    let out = command.args(args).output().map_err(|error| format!("{program}: {error}"))?;
    match out.status.success() {
        true => Ok(()),
        false => Err(format!("{program} {}: {}", args.join(" "), String::from_utf8_lossy(&out.stderr))),
    }
}
