//! Runs tests/compat against a freshly built fiord.
//!
//! Invariant: the suite is given the binary to drive; it never uses a stale one.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::stage::{self, StageResult};
use crate::{repo, test_run};

/// `cargo x compat [ARGUMENT OF THE SUITE…]`; FIORD=PATH drives that binary instead of building one.
pub fn run(args: &[String]) -> Result<(), String> {
    let mut tests = command(&binary(true)?);
    tests.arg("--quiet").args(args);
    stage::command(tests)
}

/// The whole suite.
pub fn stage(binary: &Path) -> StageResult {
    test_run::tests(|alone| {
        let mut tests = command(binary);
        tests.args(alone.iter().flat_map(|name| ["--exact", name]));
        tests
    })
}

/// The binary that `FIORD` names, or one built now.
pub fn binary(release: bool) -> Result<PathBuf, String> {
    match std::env::var_os("FIORD") {
        Some(path) => std::path::absolute(&path).map_err(|error| format!("{}: {error}", path.display())),
        None => build(release),
    }
}

/// A binary built now.
pub fn build(release: bool) -> Result<PathBuf, String> {
    // What is handed out has its own features alone; the tests share those of the workspace.
    let args: &[&str] = if release {
        &["build", "--release", "-p", "fiord"]
    } else {
        &["build", "--workspace", "--bin", "fiord"]
    };
    stage::command(repo::cargo(args))?;
    Ok(repo::target_dir().join(if release { "release/fiord" } else { "debug/fiord" }))
}

/// The binary that the tests were built with.
pub fn built() -> Result<PathBuf, String> {
    let binary = repo::target_dir().join("debug/fiord");
    match binary.exists() {
        true => Ok(binary),
        false => Err(format!("{} was not built", binary.display())),
    }
}

/// Runs the suite on this binary.
fn command(binary: &Path) -> Command {
    let mut command = repo::cargo(&["test", "--workspace", "--test", "compat", "--"]);
    command.env("FIORD", binary);
    command
}
