//! `fiord help`: the list of subcommands, or the page of one of them.
//!
//! Invariant: every line comes from the list it is given; an unknown name gets a suggestion and status 1.

use std::ffi::{OsStr, OsString};
use std::process::ExitCode;

use fiord_options::{Lookup, table};

use crate::arguments;
use crate::subcommand::Subcommands;

/// Lists fiord's own subcommands, or explains one of them
#[derive(clap::Parser)]
#[command(name = "fiord help")]
struct Options {
    /// Subcommand to explain
    #[arg(value_name = "SUBCOMMAND")]
    name: Option<String>,
}

/// Prints the list, or the subcommand's own page.
pub(crate) fn run(arguments: &[OsString], subcommands: &Subcommands) -> ExitCode {
    arguments::run(arguments, |options: Options| {
        let Some(name) = options.name else { return arguments::print(list(subcommands)) };
        match subcommands.named(OsStr::new(&name)) {
            Some(known) => Ok((known.run)(&[OsString::from("--help")])),
            None => Err(unknown(&name, subcommands).into()),
        }
    })
}

/// The subcommands, and where to find the rest.
fn list(subcommands: &Subcommands) -> String {
    let overview = subcommands.overview();
    format!(
        "fiord measures storage. Its own commands:\n\n{overview}\n`fiord help SUBCOMMAND` explains one of them. Any \
         other argument is a job file\nor an option of fio's: `fiord --help` lists those, `fiord --cmdhelp=OPTION`\n\
         explains one.\n"
    )
}

fn unknown(name: &str, subcommands: &Subcommands) -> String {
    let meant = match subcommands.nearest(OsStr::new(name)) {
        Some(nearest) => format!("; did you mean {nearest:?}?"),
        None if matches!(table::find_job_option(name, false, &[]), Lookup::Found(_)) => {
            format!(", but a job option is: fiord --cmdhelp={name}")
        }
        None => "; fiord help lists them".to_string(),
    };
    format!("no subcommand is called {name:?}{meant}")
}
