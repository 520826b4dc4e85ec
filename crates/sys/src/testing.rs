//! What the unit tests of this crate share: a file that cleans up after itself.
//!
//! Invariant: compiled for tests only.

use std::fs::File;
use std::path::PathBuf;
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
