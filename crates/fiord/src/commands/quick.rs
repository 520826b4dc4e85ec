//! `fiord quick`: a profile of a disk in half a minute.
//!
//! Invariant: writes only to scratch files; a file or device given as the target is only read.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use fiord_lab::quick::Quick;

use super::parse;
use super::space::SizedStudy;
use crate::{arguments, study};

/// Profiles a disk in half a minute: sequential and random reads and writes,
/// and synced appends.
#[derive(clap::Parser)]
#[command(name = "fiord quick", verbatim_doc_comment, after_help = EXAMPLES)]
struct Options {
    /// Directories to test in, or files or devices to read
    /// from; several are measured in turn and compared
    #[arg(value_name = "TARGET", default_value = ".", verbatim_doc_comment)]
    targets: Vec<PathBuf>,
    /// Total time of all runs
    #[arg(long, default_value = "28s", value_parser = parse::positive_duration)]
    time: Duration,
    #[command(flatten)]
    study: SizedStudy,
}

const EXAMPLES: &str = "\
Examples:
  fiord quick                     the disk under this directory
  fiord quick --time=2m /mnt/data
  fiord quick --json /dev/nvme0n1  only reads, from the device
";

/// Runs the study.
pub(crate) fn run(arguments: &[OsString]) -> ExitCode {
    arguments::run(arguments, |options: Options| {
        study::at_all(&options.targets, "quick", options.study.size, &options.study.options, |target| {
            Ok(Quick::new(target.clone(), options.time, options.study.options.repeat))
        })
    })
}
