//! fiord: takes fio's job files and command lines, and runs them.
//!
//! Invariant: the exit status says how it went: 0 well; 1 wrong input or a failed job; 2 refused for safety;
//! 128 + N ended by signal N.

mod assemble;
mod bandwidth;
mod check;
mod clocktest;
mod crctest;
mod devices;
mod engines;
mod environment;
mod facts;
mod fio;
mod help;
mod history;
mod idle;
mod keep;
mod live;
mod logs;
mod matrix;
mod output;
mod quick;
mod self_cost;
mod settings;
mod show;
mod study;
mod subcommand;
mod sweep;
mod version;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use fiord_sys::clock::TscClock;

fn main() -> ExitCode {
    // The calibration of the clock begins, and goes on beside everything up to the first I/O.
    TscClock::note();
    let arguments: Vec<OsString> = std::env::args_os().collect();
    // A reader that goes away ends a write with an error instead of the process.
    let _ = fiord_sys::signal::ignore_broken_pipes();
    match subcommand(&arguments) {
        Some(run) => run(&arguments[2..]),
        None => fio::run(&arguments, called_as_fio(&arguments)),
    }
}

/// A subcommand of fiord's own.
type Subcommand = fn(&[OsString]) -> ExitCode;

/// The subcommand asked for. Called as `fio` there is none, and a job file of that name comes first.
fn subcommand(arguments: &[OsString]) -> Option<Subcommand> {
    const SUBCOMMANDS: &[(&str, Subcommand)] = &[
        ("check", check::run),
        ("devices", devices::run),
        ("engines", engines::run),
        ("history", history::run),
        ("matrix", matrix::run),
        ("quick", quick::run),
        ("show", show::run),
        ("sweep", sweep::run),
        ("version", version::run),
    ];
    let word = arguments.get(1)?;
    if called_as_fio(arguments) || Path::new(word).exists() {
        return None;
    }
    SUBCOMMANDS.iter().find(|(name, _)| word == *name).map(|(_, run)| *run)
}

/// Whether the program stands in for fio under its name, and does nothing that fio does not.
fn called_as_fio(arguments: &[OsString]) -> bool {
    let name = arguments.first().and_then(|path| Path::new(path).file_name());
    name.is_some_and(|name| name == "fio")
}
