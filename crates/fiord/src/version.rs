//! `fiord version`: what this program is, and which fio it stands in for.
//!
//! Invariant: one fact a line; `--json` gives the same facts.

use std::ffi::OsString;
use std::process::ExitCode;

use crate::subcommand;

/// The fio whose options and outputs are followed, as `--version` says it.
pub(crate) const FIO_VERSION: &str = "fio-3.42";

/// Says what this program is, and which fio it stands in for.
#[derive(clap::Parser)]
#[command(name = "fiord version")]
struct Options {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Prints the version.
pub(crate) fn run(arguments: &[OsString]) -> ExitCode {
    let version = env!("CARGO_PKG_VERSION");
    subcommand::run(arguments, |options: Options| {
        Ok(if options.json {
            format!("{{\n  \"fiord\" : \"{version}\",\n  \"compatible with\" : \"{FIO_VERSION}\"\n}}\n")
        } else {
            format!("fiord {version}\ncompatible with {FIO_VERSION}\n")
        })
    })
}
