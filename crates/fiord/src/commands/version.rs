//! `fiord version`: the version, and the version of fio it is compatible with.
//!
//! Invariant: one fact per line; `--json` gives the same facts.

use std::process::ExitCode;

use fiord_session::run::version::{FIO_VERSION, FIORD_VERSION};

use crate::arguments::{self, CommandError, Invocation};
use crate::subcommand::Subcommands;

/// Prints the version of fiord, and of the fio it is compatible with
#[derive(clap::Parser)]
#[command(name = "fiord version", after_help = EXAMPLES)]
pub(super) struct Options {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  fiord version
  fiord version --json
";

impl Invocation for Options {
    fn run(self, _: &Subcommands) -> Result<ExitCode, CommandError> {
        arguments::print(if self.json {
            format!("{{\n  \"fiord\" : \"{FIORD_VERSION}\",\n  \"compatible with\" : \"{FIO_VERSION}\"\n}}\n")
        } else {
            format!("fiord {FIORD_VERSION}\ncompatible with {FIO_VERSION}\n")
        })
    }
}
