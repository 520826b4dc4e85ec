//! `fiord version`: the version, and the version of fio it is compatible with.
//!
//! Invariant: one fact per line; `--json` gives the same facts.

use std::ffi::OsString;
use std::process::ExitCode;

use crate::arguments;
use crate::run::version::{FIO_VERSION, FIORD_VERSION};

/// Prints the version of fiord, and of the fio it is compatible with
#[derive(clap::Parser)]
#[command(name = "fiord version", after_help = EXAMPLES)]
struct Options {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  fiord version
  fiord version --json
";

/// Prints the version.
pub(crate) fn run(arguments: &[OsString]) -> ExitCode {
    arguments::run(arguments, |options: Options| {
        arguments::print(if options.json {
            format!("{{\n  \"fiord\" : \"{FIORD_VERSION}\",\n  \"compatible with\" : \"{FIO_VERSION}\"\n}}\n")
        } else {
            format!("fiord {FIORD_VERSION}\ncompatible with {FIO_VERSION}\n")
        })
    })
}
