//! Runs tests/compat against a freshly built fiord.
//!
//! Invariant: the suite is given the binary to drive; it never uses a stale one.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{repo, stage};

/// `cargo x compat [ARGUMENT OF THE SUITE…]`; FIORD=PATH drives that binary instead of building one.
pub fn run(args: &[String]) -> Result<(), String> {
    let binary = match std::env::var_os("FIORD") {
        Some(path) => PathBuf::from(path),
        None => {
            stage::command(repo::cargo(&["build", "--release", "-p", "fiord"]))?;
            release_binary()
        }
    };
    stage::command(command(&binary, args))
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
