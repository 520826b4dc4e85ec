//! What was downloaded for the emulated machine.
//!
//! Invariant: a directory of unpacked packages is there with all of them, or not at all.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::repo;

/// Shared by all clones of the repository.
pub fn cache() -> PathBuf {
    let home = || PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".cache");
    std::env::var_os("XDG_CACHE_HOME").map_or_else(home, PathBuf::from).join("fiord/guest")
}

/// Unpacks packages into a directory, which exists only with all of them. `fetch` puts their files into the directory that it
/// is given.
pub fn unpack(dir: &Path, fetch: impl FnOnce(&Path) -> Result<(), String>) -> Result<(), String> {
    let incomplete = dir.with_extension("incomplete");
    let failed = |error: io::Error| format!("{}: {error}", incomplete.display());
    let _ = fs::remove_dir_all(&incomplete);
    fs::create_dir_all(&incomplete).map_err(failed)?;
    fetch(&incomplete)?;
    let files = fs::read_dir(&incomplete).map_err(failed)?.flatten().map(|entry| entry.path());
    for file in files.filter(|path| path.extension().is_some_and(|extension| extension == "deb")) {
        let unpacked = repo::command("dpkg", &["-x", &file.to_string_lossy(), &incomplete.to_string_lossy()]);
        repo::output_of(unpacked)?;
        fs::remove_file(&file).map_err(failed)?;
    }
    let _ = fs::remove_dir_all(dir);
    fs::rename(&incomplete, dir).map_err(failed)
}
