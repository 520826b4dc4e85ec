//! Runs tests/compat against a freshly built fiord.
//!
//! Invariant: the suite is given the binary to drive; it never uses a stale one.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{repo, stage};

/// `cargo x compat [ARGUMENT OF THE SUITE…]`; FIORD=PATH drives that binary instead of building one.
pub fn run(args: &[String]) -> Result<(), String> {
    stage::command(command(&binary(true)?, args))
}

/// The binary that `FIORD` names, or one built now.
pub fn binary(release: bool) -> Result<PathBuf, String> {
    if let Some(path) = std::env::var_os("FIORD") {
        return std::path::absolute(&path).map_err(|error| format!("{}: {error}", path.display()));
    }
    let mut build = repo::cargo(&["build", "-p", "fiord"]);
    if release {
        build.arg("--release");
    }
    stage::command(build)?;
    Ok(if release { release_binary() } else { repo::target_dir().join("debug/fiord") })
}

/// The path of fiord in a release build.
pub fn release_binary() -> PathBuf {
    repo::target_dir().join("release/fiord")
}

/// Runs the suite on this binary.
pub fn command(binary: &Path, args: &[String]) -> Command {
    let mut command = repo::cargo(&["test", "-p", "fiord-compat", "--", "--quiet"]);
    command.args(args).env("FIORD", binary);
    command
}
