//! The project's chores, `cargo x CHORE`: what CI runs is what a contributor runs.
//!
//! Invariant: a chore exits with 0 only if everything it checked is in order.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a chore prints to the terminal")]

mod arm;
mod bench;
mod browser;
mod cache;
mod ci;
mod compat;
mod dist;
mod editors;
mod fleet;
mod fmt;
mod fuzz;
mod gen_pages;
mod gpu;
mod guest;
mod install;
mod instructions;
mod kube;
mod machine;
mod marked;
mod mutants;
mod packages;
mod process;
mod repo;
mod schemas;
mod servers;
mod site;
mod stage;
mod stage_times;
mod tally;
mod targets;
mod test_run;
mod tidy;
mod unused;
mod wheel;

use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

const HELP: &str = "cargo x CHORE

  ci [--install] [--record] [STAGE…]
                          everything CI checks, or the stages named; --install first installs what they need, --record
                          stores their times in bench/ci.json
  fmt                     format every file, also those that only a macro declares
  gen                     write the generated pages in docs/ and ARCHITECTURE.md's table
  compat [FILTER]         build fiord and compare it with fio, case by case (FIO=, FIORD= name the programs)
  fuzz [TARGET] [SECS]    run the fuzz targets, each for SECS seconds (5)
  gpu DIRECTORY           the tests of libcufile that move data, on an NVIDIA GPU and a disk of this machine
  guest ['COMMAND']       boot an emulated machine with NVMe, zoned and SCSI disks and run COMMAND, or a shell, in it
                          (--install, --release; --help says more)
  fleet [NAME]            runs on many hosts, which are processes and ssh servers of this machine
  kube [NAME]             the same on pods of a real API server, as far as one machine can be a cluster (--build; --help says more)
  servers [NAME]          the engines that talk to servers, each against a real one that the tests start on this machine
                          (--install, --release; --help says more)
  dist [ARTEFACT…]        the static binary, and the archive, packages and container image made of it (--help says more)
  browser [BINARY]        pages of runs in headless Chromium: axe-core, errors, screenshots in target/browser
  site                    the documents as a site, in target/site/out (cargo x ci --install site installs MkDocs)
  targets [TARGET]        check that fiord compiles for aarch64, riscv64 and armv7 (--install; --help says more)
  tidy                    dependencies between crates, lengths, headers
  unused                  items that nothing but tests uses, in any crate
  bench [--quick] [ROW…]  fiord against fio, pair by pair; writes the raw results to bench/runs/ (FIO=, FIORD= and
                          PEAK=, fio's t/io_uring, name the programs); `bench fleet`: many hosts, and their controller
  instructions [--record] instructions per I/O against those in bench/instructions.json; --record writes them there
";

/// The directory of the history of fiord's runs that chores make: they are none of whoever works here.
const STATE: &str = "XDG_STATE_HOME";

/// Replaces this program by itself with a history of its own and no config file, which all that it starts inherits.
fn with_own_history() -> Result<(), String> {
    let own = repo::target_dir().join("state");
    if std::env::var_os(STATE).is_some_and(|state| state == own) {
        return Ok(());
    }
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    // It returns only if it fails.
    let why = Command::new(program)
        .args(std::env::args_os().skip(1))
        .env("XDG_CONFIG_HOME", own.join("no-config"))
        .env(STATE, own)
        .exec();
    Err(why.to_string())
}

fn main() -> ExitCode {
    if let Err(why) = with_own_history() {
        eprintln!("{why}");
        return ExitCode::FAILURE;
    }
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (chore, rest) = match args.split_first() {
        Some((chore, rest)) => (chore.as_str(), rest),
        None => ("help", &[][..]),
    };
    let outcome = match chore {
        "ci" => ci::run(rest),
        "fmt" => fmt::run(),
        "gen" => gen_pages::run(),
        "compat" => compat::run(rest),
        "dist" => dist::run(rest),
        "fuzz" => fuzz::run(rest),
        "gpu" => gpu::run(rest),
        "guest" => guest::run(rest),
        "fleet" => fleet::run(rest),
        "kube" => kube::run(rest),
        "servers" => servers::run(rest),
        "targets" => targets::run(rest),
        "tidy" => tidy::run(),
        "browser" => browser::run(rest),
        "unused" => unused::run(),
        "site" => site::run(),
        "bench" => bench::run(rest),
        bench::one::CHORE => bench::one::run(rest),
        bench::peer::SINK_CHORE => bench::peer::run_sink(),
        "instructions" => instructions::run(rest),
        "help" | "--help" | "-h" => {
            print!("{HELP}");
            Ok(())
        }
        other => Err(format!("unknown chore {other:?}\n\n{HELP}")),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}
