//! `fiord agent`: the other end of `--hosts`.
//!
//! Invariant: standard output is the stream to the controller; nothing else is printed there.

use std::process::ExitCode;

use crate::arguments::{CommandError, Invocation};
use crate::subcommand::Subcommands;

/// Runs what a controller (fiord with --hosts) sends on standard input, and
/// answers on standard output. It is started by the controller, and ends with
/// it. See docs/hosts.md.
#[derive(clap::Parser)]
#[command(name = "fiord agent", verbatim_doc_comment, after_help = EXAMPLES)]
pub(super) struct Options {
    /// Remove this program's own file first: it was copied for one run
    #[arg(long)]
    remove: bool,
}

const EXAMPLES: &str = "\
Examples:
  fiord job.fio --hosts=c1,c2 --via='docker exec -i {host} {agent}'
  fiord --name=a --size=1g --hosts=a,b --via={agent}   two agents, on this machine
";

impl Invocation for Options {
    fn run(self, _: &Subcommands) -> Result<ExitCode, CommandError> {
        fiord_remote::agent::run(self.remove)?;
        Ok(ExitCode::SUCCESS)
    }
}
