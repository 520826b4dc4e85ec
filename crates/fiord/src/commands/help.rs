//! `fiord help`: the list of subcommands, or the page of one of them.
//!
//! Invariant: every line comes from the list it is given; an unknown name gets a suggestion and status 1.

use std::ffi::OsString;
use std::process::ExitCode;

use fiord_sys::tty;

use crate::arguments::{self, CommandError, Invocation};
use crate::output::{self, say};
use crate::subcommand::Subcommands;
use crate::{declaration, manual, status};

/// Lists fiord's own subcommands, or explains one of them
#[derive(clap::Parser)]
#[command(name = "fiord help", after_help = EXAMPLES)]
pub(super) struct Options {
    /// Subcommand to explain
    #[arg(value_name = "SUBCOMMAND")]
    name: Option<String>,
    /// Print the manual page in full; for example to `man -l -`
    #[arg(long)]
    man: bool,
    /// Print JSON: subcommands with their options (described in docs/json.md)
    #[arg(long, conflicts_with = "man")]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  fiord help
  fiord help quick
  fiord help --man quick | man -l -
  fiord help --json quick
";

impl Invocation for Options {
    fn run(self, subcommands: &Subcommands) -> Result<ExitCode, CommandError> {
        let Some(name) = self.name else {
            return arguments::print(match (self.man, self.json) {
                (true, _) => manual::of_fiord(subcommands),
                (_, true) => declaration::json(subcommands.0),
                _ => page(subcommands),
            });
        };
        match subcommands.named(name.as_ref()) {
            Some(known) if self.man => arguments::print(manual::of(known)),
            Some(known) if self.json => arguments::print(declaration::json([known])),
            Some(known) => Ok((known.run)(&[OsString::from("--help")], subcommands)),
            None => Err(subcommands.unknown(name.as_ref()).into()),
        }
    }
}

/// The first page: the subcommands, examples, and where fio's options are.
fn page(subcommands: &Subcommands) -> String {
    let (lines, others) = subcommands.main_ones();
    format!(
        "fiord measures storage on Linux. `fiord help SUBCOMMAND` explains one of these:\n{lines}More: {others}.\n\n\
         {FIRST_STEPS}"
    )
}

/// The end of the first page.
const FIRST_STEPS: &str = "\
Examples:
  fiord quick                        profile the disk under this directory
  fiord --name=a --rw=randread --size=1g --runtime=10s      a job, as with fio

Job files and options are fio's: see `fiord --help`, `fiord --cmdhelp=OPTION`.
";

/// Prints the first page. As with fio, nothing to do is an error, which a terminal sees by the page.
pub(crate) fn without_arguments(subcommands: &Subcommands) -> ExitCode {
    let printed = output::print(page(subcommands).as_bytes());
    let why = printed.err().or_else(|| {
        let asks = "no arguments: name a subcommand, a job file, or the options of a job";
        (!tty::stderr_is_terminal()).then(|| asks.to_string())
    });
    if let Some(why) = why {
        say(&format!("fiord: {why}\n"));
    }
    ExitCode::from(status::FAILED)
}
