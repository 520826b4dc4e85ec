//! How fiord's own subcommands read their options and answer `--help`.
//!
//! Invariant: help goes to standard output and exits with 0; every error goes to standard error after the name of its
//! subcommand, `fiord show: …`, and ends it with a status. No subcommand has code of its own for either.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{ArgMatches, Parser};
use fiord_report::path::visible_lines;
use fiord_session::SessionError;
use fiord_store::StoreError;
use fiord_worker::Failure;

use crate::config;
use crate::hint;
use crate::layout;
use crate::output::{self, say};
use crate::status;
use crate::subcommand::Subcommands;

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

impl From<SessionError> for CommandError {
    fn from(SessionError { why, is_refused }: SessionError) -> CommandError {
        CommandError { why, status: if is_refused { status::REFUSED } else { status::FAILED } }
    }
}

impl From<StoreError> for CommandError {
    fn from(why: StoreError) -> CommandError {
        CommandError::from(why.to_string())
    }
}

/// The options of a subcommand. They are read, completed and explained by the same declaration.
pub(crate) trait Invocation: Parser {
    /// Reads the options from the arguments that follow the subcommand's name.
    ///
    /// # Errors
    /// The page of `--help`, or what is wrong with the arguments.
    fn read(arguments: &[OsString]) -> Result<Self, clap::Error> {
        parsed(arguments)
    }

    /// Does what they ask for; returns the exit status. `subcommands` is the list that contains this one.
    ///
    /// # Errors
    /// What is wrong, and what to do about it.
    fn run(self, subcommands: &Subcommands) -> Result<ExitCode, CommandError>;
}

/// The options of this type in these arguments.
///
/// # Errors
/// The page of `--help`, or what is wrong with the arguments.
pub(crate) fn parsed<O: Parser>(arguments: &[OsString]) -> Result<O, clap::Error> {
    O::from_arg_matches(&matches(O::command, arguments)?)
}

/// The arguments of a command. Not generic, like all that subcommands have alike: there are two dozen of them.
fn matches(command: fn() -> clap::Command, arguments: &[OsString]) -> Result<ArgMatches, clap::Error> {
    let command = command();
    // Pages of nested subcommands name the whole command line up to them.
    let name = command.get_name().to_string();
    // A missing subcommand is an error like a missing argument, instead of the help page on standard error.
    let command =
        config::with_defaults(command).no_binary_name(true).bin_name(name).arg_required_else_help(false);
    command.try_get_matches_from(arguments)
}

/// Runs a subcommand on the arguments that follow its name.
pub(crate) fn run<I: Invocation>(arguments: &[OsString], subcommands: &Subcommands) -> ExitCode {
    let ended = match I::read(arguments) {
        Ok(invocation) => invocation.run(subcommands),
        Err(why) => not_read(why, I::command),
    };
    ended.unwrap_or_else(|why| failed(&why, I::command))
}

/// Shows the page of help that was asked for.
///
/// # Errors
/// What is wrong with the arguments, if that is why they were not read.
fn not_read(why: clap::Error, command: fn() -> clap::Command) -> Result<ExitCode, CommandError> {
    match why.use_stderr() {
        true => Err(wrong_usage(why, &command())),
        false => print(layout::fitted(&why.render().to_string())),
    }
}

fn failed(CommandError { why, status }: &CommandError, command: fn() -> clap::Command) -> ExitCode {
    say(&format!("{}: {why}\n", command().get_name()));
    ExitCode::from(*status)
}

fn wrong_usage(mut wrong: clap::Error, command: &clap::Command) -> CommandError {
    hint::improve(&mut wrong, command);
    let text = wrong.render().to_string();
    CommandError::from(text.strip_prefix("error: ").unwrap_or(&text).trim_end_matches('\n').to_string())
}

/// Prints a page for people, whose names and texts may have escape sequences that a terminal must not interpret.
///
/// # Errors
/// It could not be written.
pub(crate) fn print_text(page: &str) -> Result<ExitCode, CommandError> {
    print(visible_lines(page))
}

/// Prints a page to standard output. It may hold names that are not UTF-8.
///
/// # Errors
/// It could not be written.
pub(crate) fn print(page: impl AsRef<[u8]>) -> Result<ExitCode, CommandError> {
    Ok(output::print(page.as_ref()).map(|()| ExitCode::SUCCESS)?)
}
