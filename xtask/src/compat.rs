//! Runs tests/compat against a freshly built fiord.
//!
//! Invariant: the suite is told which binary it drives; it never picks up a stale one.

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

/// Where a release build leaves fiord.
pub fn release_binary() -> PathBuf {
    repo::target_dir().join("release/fiord")
}

/// The suite, on the binary given.
pub fn command(binary: &Path, args: &[String]) -> Command {
    let mut command = repo::cargo(&["test", "-p", "fiord-compat", "--", "--quiet"]);
    command.args(args).env("FIORD", binary);
    command
}
