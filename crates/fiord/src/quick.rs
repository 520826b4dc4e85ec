//! `fiord quick`: the portrait of a disk in half a minute.
//!
//! Invariant: writes go to a file of its own; a file or device that is named is only read.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use fiord_lab::quick::Quick;

use crate::output::say;
use crate::study::{self, site};
use crate::subcommand::{self, EXIT_FAILED};

/// Most of a disk that the runs use.
const SIZE_BYTES: u64 = 1 << 30;

/// Portrays a disk in half a minute: sequential and random, reads and writes,
/// and synced appends.
#[derive(clap::Parser)]
#[command(name = "fiord quick", verbatim_doc_comment)]
struct Options {
    /// A directory, a file or a device; the last two are only read
    #[arg(default_value = ".")]
    target: PathBuf,
    /// Seconds for all runs together
    #[arg(long, default_value_t = 28, value_name = "SECONDS")]
    time: u64,
    #[command(flatten)]
    study: study::Options,
}

/// Runs the study.
pub(crate) fn run(arguments: &[OsString]) -> ExitCode {
    let options: Options = match subcommand::read(arguments) {
        Ok(options) => options,
        Err(code) => return code,
    };
    let (site, _own) = match site::at(&options.target, "quick", SIZE_BYTES) {
        Ok(found) => found,
        Err(why) => {
            say(&format!("fiord quick: {why}\n"));
            return ExitCode::from(EXIT_FAILED);
        }
    };
    let heading = site.heading.clone();
    study::carry_out(&Quick::new(site, options.time), &heading, &options.study)
}
