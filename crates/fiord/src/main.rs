//! fiord: takes fio's job files and command lines, and runs them.
//!
//! Invariant: the exit status is one of those in `status.rs`.

#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)
)]
#![cfg_attr(not(test), warn(clippy::disallowed_methods, reason = "files go through the target opener"))]

mod arguments;
mod commands;
mod config;
mod crash;
mod declaration;
mod fio;
mod gate;
mod hint;
mod hosts;
mod keep;
mod layout;
mod live;
mod manual;
mod metrics;
mod output;
mod output_file;
mod pods;
mod profile;
mod reach;
mod record;
mod results;
mod status;
mod status_line;
mod study;
mod subcommand;
mod tracepoints;
mod watch;

use std::ffi::OsString;
use std::process::{self, ExitCode};

use fiord_session::run::attended;
use fiord_sys::clock::CounterClock;
use fiord_sys::reserve::{self, Reserved};

/// When memory runs short, the job that needs it fails, not the program.
#[global_allocator]
static ALLOCATOR: Reserved = Reserved;

fn main() -> ExitCode {
    // Starts calibrating the clock, which goes on in parallel with everything up to the first I/O.
    CounterClock::note();
    reserve::spare_address_space();
    let arguments: Vec<OsString> = std::env::args_os().collect();
    // When a reader goes away or a file becomes too long, the write fails instead of the process.
    let _ = fiord_sys::signal::fail_writes_by_errno();
    // If it fails, they have an effect from the start of the run on.
    let _ = fiord_sys::signal::heed_stop_requests();
    attended::give_up_by(|unanswered| {
        output::say(&format!("fiord: {unanswered}\n"));
        process::exit(i32::from(status::of_signal(unanswered.signal)))
    });
    if let Err(why) = config::load(&arguments, fio::is_called_by(&arguments)) {
        output::say(&why);
        return ExitCode::from(status::FAILED);
    }
    // The first word may be a job file.
    attended::begin();
    let code = match commands::asked_for(&arguments) {
        Some(subcommand) => {
            attended::end();
            (subcommand.run)(&arguments[2..], &commands::ALL)
        }
        None if arguments.len() <= 1 && !fio::is_called_by(&arguments) => commands::without_arguments(),
        None => fio::run(&arguments, &commands::ALL),
    };
    attended::end();
    output::release();
    code
}
