//! The pages a user asks for instead of a run: `--help`, `--version`, `--cmdhelp`, `--enghelp`, and `fiord help`.
//!
//! Invariant: every page is made from the table of options, the list of engines and the list of subcommands.

use std::ffi::{OsStr, OsString};
use std::process::ExitCode;

use fiord_options::program::ProgramOptions;
use fiord_options::{Lookup, reference, table};

use crate::version::FIO_VERSION;
use crate::{subcommand, subcommands};

/// Lists fiord's own subcommands, or tells all of one of them.
#[derive(clap::Parser)]
#[command(name = "fiord help")]
struct Options {
    /// The one to tell of
    #[arg(value_name = "SUBCOMMAND")]
    name: Option<String>,
}

/// Prints the list, or the subcommand's own page.
pub(crate) fn run(arguments: &[OsString]) -> ExitCode {
    let options: Options = match subcommand::read(arguments) {
        Ok(options) => options,
        Err(code) => return code,
    };
    let Some(name) = options.name else { return subcommand::print(Ok(list())) };
    match subcommands::named(OsStr::new(&name)) {
        Some(known) => (known.run)(&[OsString::from("--help")]),
        None => subcommand::print(Err(unknown(&name))),
    }
}

/// The subcommands, and where the rest is told.
fn list() -> String {
    let overview = subcommands::overview();
    format!(
        "fiord measures storage. Of its own:\n\n{overview}\n`fiord help SUBCOMMAND` tells all of one. Anything else \
         is a job file or an\noption of fio's: `fiord --help` lists those, `fiord --cmdhelp=OPTION` tells\nof one.\n"
    )
}

fn unknown(name: &str) -> String {
    let meant = match subcommands::nearest(name) {
        Some(nearest) => format!("; did you mean {nearest:?}?"),
        None if matches!(table::find_job_option(name, false, &[]), Lookup::Found(_)) => {
            format!(", but an option of jobs is: fiord --cmdhelp={name}")
        }
        None => "; fiord help lists them".to_string(),
    };
    format!("help: no subcommand is called {name:?}{meant}")
}

/// The page asked for, or what is wrong with the question; `None` when a run is wanted. Under fio's own name the pages
/// are fio's.
pub(crate) fn asked_for(options: &ProgramOptions, called_as_fio: bool) -> Option<Result<String, String>> {
    if options.version.0 {
        return Some(Ok(format!("{FIO_VERSION}\n")));
    }
    if options.help.0 {
        let fios = format!("{FIO_VERSION}\n{}", reference::help());
        return Some(Ok(if called_as_fio { fios } else { ours() + &fios }));
    }
    if let Some(question) = &options.cmdhelp {
        return Some(Ok(reference::cmdhelp(question.0.as_deref())));
    }
    if let Some(question) = &options.enghelp {
        let engines: Vec<&str> = fiord_engine::registry::infos().iter().map(|info| info.name).collect();
        return Some(reference::enghelp(question.0.as_deref(), &engines));
    }
    None
}

/// What fiord does besides what fio does.
fn ours() -> String {
    let overview = subcommands::overview();
    format!(
        "fiord measures storage. Of its own:\n\n{overview}\nEach has --help. And what fio does, with fio's options:\n\n"
    )
}
