//! `fiord version`: what this program is, and which fio it stands in for.
//!
//! Invariant: one fact a line; `--json` gives the same facts.

use std::ffi::OsString;
use std::process::ExitCode;

use crate::output::{Output, say};

/// The fio whose options and outputs are followed, as `--version` says it.
pub(crate) const FIO_VERSION: &str = "fio-3.42";

/// Prints the version.
pub(crate) fn run(arguments: &[OsString]) -> ExitCode {
    let version = env!("CARGO_PKG_VERSION");
    let mut output = Output::stdout();
    match arguments {
        [] => output.write(&format!("fiord {version}\ncompatible with {FIO_VERSION}\n")),
        [flag] if flag == "--json" => output.write(&format!(
            "{{\n  \"fiord\" : \"{version}\",\n  \"compatible with\" : \"{FIO_VERSION}\"\n}}\n"
        )),
        _ => {
            say("fiord version: takes no argument but --json\n");
            return ExitCode::from(1);
        }
    }
    ExitCode::SUCCESS
}
