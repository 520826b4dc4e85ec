//! What the unit tests of this crate share: directories, loop devices and made-up machines that clean up after themselves.
//!
//! Invariant: compiled for tests only.

use fiord_sys::procfs::Mount;
use fiord_sys::stat::DeviceNumber;
use fiord_sys::sysfs::Sysfs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::device::{DeviceFacts, System};

static NEXT: AtomicU32 = AtomicU32::new(0);

/// An empty directory, removed with all it holds on drop.
pub(crate) struct TempDir {
    pub(crate) path: PathBuf,
}

impl TempDir {
    pub(crate) fn new(label: &str) -> TempDir {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("fiord-host-{}-{label}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).unwrap();
        TempDir { path }
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// A loop device over a file of zeros in a directory, detached on drop.
pub(crate) struct LoopDevice {
    pub(crate) path: PathBuf,
}

impl LoopDevice {
    /// Needs root and `losetup`; the error says what is missing.
    pub(crate) fn new(dir: &TempDir, size_bytes: u64) -> Result<LoopDevice, String> {
        let backing = dir.path.join("backing");
        let file = std::fs::File::create(&backing).map_err(|error| error.to_string())?;
        file.set_len(size_bytes).map_err(|error| error.to_string())?;
        let output = Command::new("losetup").args(["--find", "--show"]).arg(&backing).output();
        let output = output.map_err(|error| format!("losetup: {error}"))?;
        if !output.status.success() {
            return Err(format!("losetup: {}", String::from_utf8_lossy(&output.stderr).trim()));
        }
        Ok(LoopDevice { path: PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()) })
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let _ = Command::new("losetup").arg("--detach").arg(&self.path).status();
    }
}

/// `254:0`.
fn number(text: &str) -> DeviceNumber {
    let (major, minor) = text.split_once(':').unwrap();
    DeviceNumber { major: major.parse().unwrap(), minor: minor.parse().unwrap() }
}

/// A line of the mount table, without options of note.
pub(crate) fn mount(device: &str, point: &str, fs_type: &str, source: &str) -> Mount {
    Mount {
        device: number(device),
        root: "/".into(),
        point: point.into(),
        fs_type: fs_type.into(),
        source: source.into(),
        options: "rw".into(),
        read_only: false,
    }
}

/// A made-up machine: a directory that looks like `/sys`, removed on drop.
pub(crate) struct MadeUp {
    dir: TempDir,
}

impl MadeUp {
    pub(crate) fn new() -> MadeUp {
        let dir = TempDir::new("sysfs");
        for part in ["class/block", "dev/block"] {
            std::fs::create_dir_all(dir.path.join(part)).unwrap();
        }
        MadeUp { dir }
    }

    pub(crate) fn write(&self, file: &str, text: &str) -> &MadeUp {
        let path = self.dir.path.join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        self
    }

    /// A disk at a place below `devices`; its name is the last part.
    pub(crate) fn disk(&self, place: &str, number: &str, sectors: u64) -> &MadeUp {
        let place = format!("devices/{place}");
        let name = Path::new(&place).file_name().unwrap().to_str().unwrap();
        self.write(&format!("{place}/dev"), number).write(&format!("{place}/size"), &sectors.to_string());
        for list in ["slaves", "holders"] {
            std::fs::create_dir_all(self.dir.path.join(&place).join(list)).unwrap();
        }
        for link in [format!("class/block/{name}"), format!("dev/block/{number}")] {
            symlink(self.dir.path.join(&place), self.dir.path.join(link)).unwrap();
        }
        self
    }

    /// A partition of a disk directly below `devices`.
    pub(crate) fn partition(&self, disk: &str, name: &str, number: &str) -> &MadeUp {
        self.write(&format!("devices/{disk}/{name}/partition"), "1");
        self.disk(&format!("{disk}/{name}"), number, 4)
    }

    /// Files of a device that is there already.
    pub(crate) fn attributes(&self, name: &str, files: &[(&str, &str)]) -> &MadeUp {
        for (file, text) in files {
            self.write(&format!("class/block/{name}/{file}"), text);
        }
        self
    }

    /// Makes `part` a member of `whole`.
    pub(crate) fn member(&self, whole: &str, part: &str) -> &MadeUp {
        let dir = |name: &str| std::fs::canonicalize(self.dir.path.join("class/block").join(name)).unwrap();
        symlink(dir(part), dir(whole).join("slaves").join(part)).unwrap();
        symlink(dir(whole), dir(part).join("holders").join(whole)).unwrap();
        self
    }

    /// A link at a place below its root, to another place there.
    pub(crate) fn link(&self, at: &str, to: &str) -> &MadeUp {
        let at = self.dir.path.join(at);
        std::fs::create_dir_all(at.parent().unwrap()).unwrap();
        symlink(self.dir.path.join(to), at).unwrap();
        self
    }

    /// The machine with this mount table.
    pub(crate) fn system(&self, mounts: &[Mount]) -> System {
        System { sysfs: Sysfs::at(&self.dir.path), mounts: mounts.to_vec(), swaps: Vec::new() }
    }

    /// What is found out about one of its devices.
    pub(crate) fn facts(&self, name: &str, mounts: &[Mount]) -> DeviceFacts {
        let system = self.system(mounts);
        DeviceFacts::of(&system.sysfs.block_device(name).unwrap(), &system)
    }
}
