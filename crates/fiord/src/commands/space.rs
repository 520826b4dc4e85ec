//! The options of studies that let the user choose how much space they use.
//!
//! Invariant: one declaration for all of them.

use super::parse;
use crate::study;

/// Space, and the options of all studies.
#[derive(clap::Args, Debug)]
#[group(skip)]
pub(super) struct SizedStudy {
    /// Space to use, at most 1/8 of the free space
    #[arg(long, default_value = "1G", value_parser = parse::size)]
    pub size: u64,
    #[command(flatten)]
    pub options: study::Options,
}
