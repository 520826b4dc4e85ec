//! What the unit tests of this crate share: files, loop devices and made-up machines that clean up after themselves.
//!
//! Invariant: compiled for tests only.

use std::fs::File;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

static NEXT: AtomicU32 = AtomicU32::new(0);

/// A path nobody else uses, in the directory for temporary files.
pub(crate) fn temp_path(label: &str) -> PathBuf {
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("fiord-sys-{}-{label}-{number}", std::process::id()))
}

/// An empty file open for reading and writing, unlinked on drop.
pub(crate) struct TempFile {
    pub(crate) file: File,
    pub(crate) path: PathBuf,
}

impl TempFile {
    pub(crate) fn new(label: &str) -> TempFile {
        let path = temp_path(label);
        let file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
        TempFile { file, path }
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// A loop device over a temporary file, detached on drop.
pub(crate) struct LoopDevice {
    pub(crate) path: PathBuf,
    pub(crate) backing: TempFile,
}

impl LoopDevice {
    /// Needs root and `losetup`; the error says what is missing.
    pub(crate) fn new(size_bytes: u64) -> Result<LoopDevice, String> {
        let backing = TempFile::new("loop");
        backing.file.set_len(size_bytes).map_err(|error| error.to_string())?;
        let output = Command::new("losetup").args(["--find", "--show"]).arg(&backing.path).output();
        let output = output.map_err(|error| format!("losetup: {error}"))?;
        if !output.status.success() {
            return Err(format!("losetup: {}", String::from_utf8_lossy(&output.stderr).trim()));
        }
        let path = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
        Ok(LoopDevice { path, backing })
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let _ = Command::new("losetup").arg("--detach").arg(&self.path).status();
    }
}

/// A made-up machine: a directory that looks like `/sys`, removed on drop.
pub(crate) struct MadeUpSysfs {
    pub(crate) root: PathBuf,
}

impl MadeUpSysfs {
    pub(crate) fn new() -> MadeUpSysfs {
        let root = temp_path("sysfs");
        for dir in ["class/block", "dev/block", "devices"] {
            std::fs::create_dir_all(root.join(dir)).unwrap();
        }
        MadeUpSysfs { root }
    }

    pub(crate) fn write(&self, file: &str, text: &str) {
        let path = self.root.join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub(crate) fn disk(&self, name: &str, number: &str) -> &MadeUpSysfs {
        self.device(&format!("devices/{name}"), name, number)
    }

    pub(crate) fn partition(&self, disk: &str, name: &str, number: &str) -> &MadeUpSysfs {
        self.write(&format!("devices/{disk}/{name}/partition"), "1\n");
        self.device(&format!("devices/{disk}/{name}"), name, number)
    }

    /// Makes `part` a member of `whole`.
    pub(crate) fn member(&self, whole: &str, part: &str) -> &MadeUpSysfs {
        let dir = |name: &str| std::fs::canonicalize(self.root.join("class/block").join(name)).unwrap();
        symlink(dir(part), dir(whole).join("slaves").join(part)).unwrap();
        symlink(dir(whole), dir(part).join("holders").join(whole)).unwrap();
        self
    }

    fn device(&self, dir: &str, name: &str, number: &str) -> &MadeUpSysfs {
        self.write(&format!("{dir}/dev"), &format!("{number}\n"));
        for list in ["slaves", "holders"] {
            std::fs::create_dir_all(self.root.join(dir).join(list)).unwrap();
        }
        for link in [format!("class/block/{name}"), format!("dev/block/{number}")] {
            symlink(self.root.join(dir), self.root.join(link)).unwrap();
        }
        self
    }
}

impl Drop for MadeUpSysfs {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.root);
    }
}
