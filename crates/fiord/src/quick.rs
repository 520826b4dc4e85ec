//! `fiord quick`: the portrait of a disk in half a minute.
//!
//! Invariant: writes go to files of its own; a file or device that is named is only read.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use fiord_lab::quick::Quick;

use crate::{amount, study, subcommand};

/// Portrays a disk in half a minute: sequential and random, reads and writes,
/// and synced appends.
#[derive(clap::Parser)]
#[command(name = "fiord quick", verbatim_doc_comment)]
struct Options {
    /// A directory; or a file or device, which is only read
    #[arg(default_value = ".")]
    target: PathBuf,
    /// Time for all runs together
    #[arg(long, default_value = "28s", value_parser = amount::time_to_take)]
    time: Duration,
    /// Space to use; an eighth of the free at most
    #[arg(long, default_value = "1G", value_parser = amount::size)]
    size: u64,
    #[command(flatten)]
    study: study::Options,
}

/// Runs the study.
pub(crate) fn run(arguments: &[OsString]) -> ExitCode {
    let options: Options = match subcommand::read(arguments) {
        Ok(options) => options,
        Err(code) => return code,
    };
    study::at(&options.target, "quick", options.size, &options.study, |site| {
        Ok(Quick::new(site.clone(), options.time))
    })
}
