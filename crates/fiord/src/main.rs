//! fiord: takes fio's job files and command lines, and runs them.
//!
//! Invariant: the exit status says how it went, in the terms of `status.rs`.

mod amount;
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
mod status;
mod study;
mod subcommand;
mod subcommands;
mod sweep;
mod version;

use std::ffi::OsString;
use std::process::ExitCode;

use fiord_sys::clock::TscClock;
use fiord_sys::reserve::{self, Reserved};

/// A shortage of memory ends the job that meets it, and not the program.
#[global_allocator]
static ALLOCATOR: Reserved = Reserved;

fn main() -> ExitCode {
    // The calibration of the clock begins, and goes on beside everything up to the first I/O.
    TscClock::note();
    reserve::spare_address_space();
    let arguments: Vec<OsString> = std::env::args_os().collect();
    // A reader that goes away ends a write with an error instead of the process.
    let _ = fiord_sys::signal::ignore_broken_pipes();
    match subcommands::asked_for(&arguments) {
        Some(subcommand) => (subcommand.run)(&arguments[2..]),
        None => fio::run(&arguments, subcommands::called_as_fio(&arguments)),
    }
}
