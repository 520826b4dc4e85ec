//! `fiord matrix`: block sizes by access patterns.
//!
//! Invariant: writes only to scratch files; a file or device given as the target is only read,
//! unless `--overwrite` identifies it.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use fiord_lab::matrix::{BlockSize, Matrix};
use fiord_session::study::target::Space;

use super::parse;
use super::space::SizedStudy;
use crate::arguments::{CommandError, Invocation};
use crate::study;
use crate::subcommand::Subcommands;

/// Measures each combination of block size and access pattern: IOPS, throughput
/// and the 99th percentile of latency.
#[derive(clap::Parser)]
#[command(name = "fiord matrix", verbatim_doc_comment, after_help = EXAMPLES)]
pub(super) struct Options {
    /// Directories to test in, or files or devices to read
    /// from; several are measured in turn and compared
    #[arg(value_name = "TARGET", default_value = ".", verbatim_doc_comment)]
    targets: Vec<PathBuf>,
    /// Block sizes
    #[arg(long, default_value = "4k,64k,1M", value_delimiter = ',', value_name = "LIST", value_parser = block)]
    bs: Vec<BlockSize>,
    /// Patterns
    #[arg(
        long,
        default_value = "randrw,randread,randwrite,read,write",
        value_delimiter = ',',
        value_name = "LIST"
    )]
    rw: Vec<String>,
    /// I/Os in flight
    #[arg(long, default_value_t = 32, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    depth: u32,
    #[command(flatten)]
    overwriting: study::Overwriting,
    /// Total time of all runs
    #[arg(long, default_value = "1m", value_parser = parse::positive_duration)]
    time: Duration,
    #[command(flatten)]
    study: SizedStudy,
}

const EXAMPLES: &str = "\
Examples:
  fiord matrix /mnt
  fiord matrix --bs=4k,16k --rw=randread,randwrite --depth=1 /mnt
  fiord matrix --csv --rw=randread /dev/nvme0n1
";

fn block(text: &str) -> Result<BlockSize, String> {
    match parse::size(text)? {
        0 => Err("a block has at least one byte".to_string()),
        bytes => Ok(BlockSize { text: text.to_string(), bytes }),
    }
}

impl study::OnHosts for Options {
    fn options(&mut self) -> &mut study::Options {
        &mut self.study.options
    }
}

impl Invocation for Options {
    fn run(self, _: &Subcommands) -> Result<ExitCode, CommandError> {
        study::at_all(
            &self.targets,
            "matrix",
            Space::AtMost(self.study.size),
            &self.overwriting,
            &self.study.options,
            |target| {
                let repeat = self.study.options.repeat;
                Matrix::new(target.clone(), &self.bs, &self.rw, self.depth, self.time, repeat)
            },
        )
    }
}
