//! `cargo x fleet`: fiord on many hosts, which are processes and ssh servers of this machine.
//!
//! Invariant: no host beside this one is reached: servers listen on loopback, in a network of their own.

use std::path::Path;
use std::process::Command;

use crate::stage::{self, StageResult};
use crate::{compat, install, packages, repo, test_run};

const HELP: &str = "cargo x fleet [--install] [NAME…]

Runs the tests of runs on many hosts. NAME is part of the name of a test (ssh, command); without one all run.

  --install   installs the packages that they need first (as root, or through sudo)
";

/// `cargo x fleet [--install] [NAME…]`
pub fn run(args: &[String]) -> Result<(), String> {
    let mut tests = command(&compat::binary(false)?, None);
    for arg in args {
        match arg.as_str() {
            "--install" => packages::install(install::FLEET),
            "--help" | "-h" => {
                print!("{HELP}");
                return Ok(());
            }
            flag if flag.starts_with('-') => return Err(format!("{flag}: unknown argument\n\n{HELP}")),
            name => drop(tests.arg(name)),
        }
    }
    stage::command(tests)
}

/// The cases in `tests/fleet`.
pub fn stage(fiord: &Path) -> StageResult {
    test_run::tests(|alone| command(fiord, alone))
}

/// Runs the tests, or one of them, with this binary, a few at a time: each has several hosts.
fn command(fiord: &Path, alone: Option<&str>) -> Command {
    let mut command = repo::cargo(&["test", "--workspace", "--test", "fleet", "--", "--test-threads=2"]);
    command.args(alone.iter().flat_map(|name| ["--exact", name])).env("FIORD", fiord);
    command
}
