//! What the unit tests of this crate share: a directory and a loop device that clean up after themselves.
//!
//! Invariant: compiled for tests only.

use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

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
