//! Reports that a lost controller left behind.
//!
//! Invariant: a report there is whole, or is not there under its name.

use std::fs;
use std::io;
use std::path::PathBuf;

use fiord_store::state_path;

/// The directory of them.
pub(crate) const NAME: &str = "spool";

/// The name of the file with the report of a run on a host, `RUN-HOST`.
pub(crate) fn file_name(run: &str) -> String {
    run.replace(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-', "_")
}

/// Keeps a report under this name in `$XDG_STATE_HOME/fiord/spool`.
///
/// # Errors
/// Those of the file system, or there is no state directory.
#[allow(clippy::disallowed_methods, reason = "a file of the state directory, made anew")]
pub(crate) fn keep(run: &str, report: &[u8]) -> io::Result<PathBuf> {
    let path =
        state_path(|name| std::env::var_os(name), NAME).map(|directory| directory.join(file_name(run)));
    let path = path.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory)?;
    }
    let unfinished = path.with_extension("tmp");
    fs::write(&unfinished, report)?;
    fs::rename(&unfinished, &path)?;
    Ok(path)
}
