//! How fiord's own subcommands read their options and answer `--help`.
//!
//! Invariant: help goes to standard output and exits with 0; every error goes to standard error after the name of its
//! subcommand, `fiord show: …`, and ends it with a status. No subcommand has code of its own for either.

use std::cell::RefCell;
use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Command, Parser};
use fiord_store::StoreError;
use fiord_worker::Failure;

use crate::layout;
use crate::output::{self, say};
use crate::status;

/// The format of a subcommand's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Text,
    Json,
    Csv,
    Markdown,
}

/// The options that choose the format, for subcommands that print tables.
#[derive(clap::Args, Debug)]
#[group(skip)]
pub(crate) struct Forms {
    /// Print JSON (described in docs/json.md)
    #[arg(long, conflicts_with_all = ["csv", "markdown"])]
    json: bool,
    /// Print CSV with every column
    #[arg(long, conflicts_with = "markdown")]
    csv: bool,
    /// Print the table as Markdown
    #[arg(long)]
    markdown: bool,
}

impl Forms {
    /// The format that was chosen.
    pub(crate) fn chosen(&self) -> Form {
        match self {
            Forms { json: true, .. } => Form::Json,
            Forms { csv: true, .. } => Form::Csv,
            Forms { markdown: true, .. } => Form::Markdown,
            _ => Form::Text,
        }
    }
}

/// Why a subcommand failed, without its name, and the status to exit with.
#[derive(Debug)]
pub(crate) struct CommandError {
    pub why: String,
    pub status: u8,
}

impl From<String> for CommandError {
    fn from(why: String) -> CommandError {
        CommandError { why, status: status::FAILED }
    }
}

impl From<Failure> for CommandError {
    fn from(failure: Failure) -> CommandError {
        let status = if failure.unsafe_target { status::REFUSED } else { status::FAILED };
        CommandError { why: failure.to_string(), status }
    }
}

impl From<StoreError> for CommandError {
    fn from(why: StoreError) -> CommandError {
        CommandError::from(why.to_string())
    }
}

thread_local! {
    /// What `run` leaves here instead of running the subcommand, while `declaration` asks for it.
    static DECLARED: RefCell<Asked> = const { RefCell::new(Asked::No) };
}

/// Whether a declaration is asked for, and the answer.
enum Asked {
    No,
    Yes,
    Answered(Box<Command>),
}

/// The options, help and examples that a subcommand declares. Every subcommand reads its options by `run`, so that the
/// list of subcommands need not name their types; `None` is one that does not.
pub(crate) fn declaration(subcommand: fn(&[OsString]) -> ExitCode) -> Option<Command> {
    DECLARED.replace(Asked::Yes);
    let _ = subcommand(&[]);
    match DECLARED.replace(Asked::No) {
        Asked::Answered(command) => Some(*command),
        Asked::No | Asked::Yes => None,
    }
}

/// Runs a subcommand on the arguments that follow its name. `body` returns the exit status, or what is wrong and what to
/// do about it.
pub(crate) fn run<O: Parser>(
    arguments: &[OsString],
    body: impl FnOnce(O) -> Result<ExitCode, CommandError>,
) -> ExitCode {
    if DECLARED.with_borrow(|asked| matches!(asked, Asked::Yes)) {
        DECLARED.replace(Asked::Answered(Box::new(O::command())));
        return ExitCode::SUCCESS;
    }
    let name = O::command().get_name().to_string();
    // Pages of nested subcommands name the whole command line up to them.
    // A missing subcommand is an error like a missing argument, instead of the help page on standard error.
    let command = O::command().no_binary_name(true).bin_name(&name).arg_required_else_help(false);
    let matches = command.try_get_matches_from(arguments);
    let ended = match matches.and_then(|matches| O::from_arg_matches(&matches)) {
        Ok(options) => body(options),
        Err(wrong) if wrong.use_stderr() => Err(wrong_usage(&wrong)),
        Err(help) => print(layout::fitted(&help.render().to_string())),
    };
    ended.unwrap_or_else(|CommandError { why, status }| {
        say(&format!("{name}: {why}\n"));
        ExitCode::from(status)
    })
}

fn wrong_usage(wrong: &clap::Error) -> CommandError {
    let text = wrong.render().to_string();
    CommandError::from(text.strip_prefix("error: ").unwrap_or(&text).trim_end_matches('\n').to_string())
}

/// Prints a page to standard output. It may hold names that are not UTF-8.
///
/// # Errors
/// It could not be written.
pub(crate) fn print(page: impl AsRef<[u8]>) -> Result<ExitCode, CommandError> {
    Ok(output::print(page.as_ref()).map(|()| ExitCode::SUCCESS)?)
}
