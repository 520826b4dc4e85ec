//! A directory of a case.
//!
//! Invariant: it is new, and removed with everything in it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A directory, removed when dropped.
#[derive(Debug)]
pub struct Directory(PathBuf);

impl Directory {
    /// A new one. Its path is short, because the path of a socket has at most 107 bytes.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn new() -> Result<Directory, String> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("fiord-s{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Directory(path))
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The path of an entry.
    pub fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Writes a file; its path.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, name: &str, text: &str) -> Result<PathBuf, String> {
        let path = self.join(name);
        std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(path)
    }

    /// The text of a file; empty if there is none.
    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.join(name)).unwrap_or_default()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
