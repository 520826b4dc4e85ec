//! `fiord matrix`: block sizes by patterns.
//!
//! Invariant: writes go to files of its own; a file or device that is named is only read.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use fiord_lab::matrix::{BlockSize, Matrix};

use crate::{amount, study, subcommand};

/// Measures block sizes by patterns: IOPS, throughput and the 99th percentile of
/// each.
#[derive(clap::Parser)]
#[command(name = "fiord matrix", verbatim_doc_comment)]
struct Options {
    /// A directory; or a file or device, which is only read
    #[arg(default_value = ".")]
    target: PathBuf,
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
    /// Time for all runs together
    #[arg(long, default_value = "1m", value_parser = amount::time_to_take)]
    time: Duration,
    /// Space to use; an eighth of the free at most
    #[arg(long, default_value = "1G", value_parser = amount::size)]
    size: u64,
    #[command(flatten)]
    study: study::Options,
}

fn block(text: &str) -> Result<BlockSize, String> {
    match amount::size(text)? {
        0 => Err("a block has at least a byte".to_string()),
        bytes => Ok(BlockSize { text: text.to_string(), bytes }),
    }
}

/// Runs the study.
pub(crate) fn run(arguments: &[OsString]) -> ExitCode {
    let options: Options = match subcommand::read(arguments) {
        Ok(options) => options,
        Err(code) => return code,
    };
    study::at(&options.target, "matrix", options.size, &options.study, |site| {
        Matrix::new(site.clone(), &options.bs, &options.rw, options.depth, options.time)
    })
}
