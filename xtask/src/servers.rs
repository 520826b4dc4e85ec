//! `cargo x servers`: the engines that talk to servers, each against a real one.
//!
//! Invariant: the tests start every server themselves, on loopback and in a directory of its own, and kill it; no server
//! of this machine is used or changed.

use std::path::Path;
use std::process::Command;

use crate::stage::{self, StageResult};
use crate::{compat, install, packages, repo, test_run};

const HELP: &str = "cargo x servers [--install] [--release] [NAME…]

Runs the tests of the engines that talk to servers: fiord, and Debian's fio beside it, against servers that the tests
start on loopback with a free port and a directory of its own, and kill when they end. NAME is the name of a server (nbd,
http, radosgw, ceph, gluster, iscsi, nfs) or part of the name of a test; without one all run. A test whose server is not installed is skipped, and says
which package it needs. fiord is the binary just built (FIORD=PATH: that one).

  --install   installs the packages of all servers first (as root, or through sudo)
  --release   takes the release build of fiord instead of the debug build

For example:
  cargo x servers nbd
";

/// How many cases run at a time on each processor: nearly all of a case is waiting, for servers to start and for clients
/// that take seconds to leave.
const THREADS_PER_PROCESSOR: usize = 4;

/// `cargo x servers [--install] [--release] [NAME…]`
pub fn run(args: &[String]) -> Result<(), String> {
    let (flags, names): (Vec<&String>, Vec<&String>) = args.iter().partition(|arg| arg.starts_with('-'));
    let mut release = false;
    for flag in flags {
        match flag.as_str() {
            "--install" => packages::install(install::SERVERS),
            "--release" => release = true,
            "--help" | "-h" => {
                print!("{HELP}");
                return Ok(());
            }
            other => return Err(format!("{other}: unknown argument\n\n{HELP}")),
        }
    }
    let mut tests = command(&compat::binary(release)?, None);
    tests.args(names);
    stage::command(tests)
}

/// The cases in `tests/servers`.
pub fn stage(fiord: &Path) -> StageResult {
    test_run::tests(|alone| command(fiord, alone))
}

/// Runs the tests, or one of them, with this binary.
fn command(fiord: &Path, alone: Option<&str>) -> Command {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = format!("--test-threads={}", processors * THREADS_PER_PROCESSOR);
    let mut command = repo::cargo(&["test", "--workspace", "--test", "servers", "--", &threads]);
    command.args(alone.iter().flat_map(|name| ["--exact", name])).env("FIORD", fiord);
    command
}
