//! `fiord quick`: a profile of a disk in half a minute.
//!
//! Invariant: writes only to scratch files; a file or device given as the target is only read,
//! unless `--overwrite` identifies it.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use fiord_lab::quick::Quick;
use fiord_session::study::target::Space;

use super::parse;
use super::space::SizedStudy;
use crate::arguments::{CommandError, Invocation};
use crate::study;
use crate::subcommand::Subcommands;

/// Profiles a disk in half a minute: sequential and random reads and writes,
/// and synced appends.
#[derive(clap::Parser)]
#[command(name = "fiord quick", verbatim_doc_comment, after_help = EXAMPLES)]
pub(super) struct Options {
    /// Directories to test in, or files or devices to read
    /// from; several are measured in turn and compared
    #[arg(value_name = "TARGET", default_value = ".", verbatim_doc_comment)]
    targets: Vec<PathBuf>,
    /// Total time of all runs
    #[arg(long, default_value = "28s", value_parser = parse::positive_duration)]
    time: Duration,
    #[command(flatten)]
    overwriting: study::Overwriting,
    #[command(flatten)]
    study: SizedStudy,
}

const EXAMPLES: &str = "\
Examples:
  fiord quick                     the disk under this directory
  fiord quick --time=2m /mnt/data
  fiord quick --json /dev/nvme0n1  only reads, from the device
";

impl study::OnHosts for Options {
    fn options(&mut self) -> &mut study::Options {
        &mut self.study.options
    }
}

impl Invocation for Options {
    fn run(self, _: &Subcommands) -> Result<ExitCode, CommandError> {
        study::at_all(
            &self.targets,
            "quick",
            Space::AtMost(self.study.size),
            &self.overwriting,
            &self.study.options,
            |target| Ok(Quick::new(target.clone(), self.time, self.study.options.repeat)),
        )
    }
}
