//! What fiord's own subcommands have in common: how their options are read, and what becomes of a question for help.
//!
//! Invariant: a mistake is told on standard error and ends with `status::FAILED`, a page of help goes to standard output and
//! ends with 0; neither has a line of code in a subcommand.

use std::ffi::OsString;
use std::io;
use std::process::ExitCode;

use clap::Parser;
use fiord_sys::tty;

use crate::output::{Output, say};
use crate::status;

/// The width of text that does not go to a terminal.
pub(crate) const WIDTH: usize = 80;

/// Columns there are for text on standard output.
pub(crate) fn width() -> usize {
    tty::columns(io::stdout()).map_or(WIDTH, usize::from)
}

/// How a subcommand shows what it found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Text,
    Json,
    Csv,
    Markdown,
}

/// The options that choose the form, for subcommands that have tables.
#[derive(clap::Args, Debug)]
#[group(skip)]
pub(crate) struct Forms {
    /// Print JSON (described in docs/json.md)
    #[arg(long, conflicts_with_all = ["csv", "markdown"])]
    json: bool,
    /// Print CSV: every column, a row for every line
    #[arg(long, conflicts_with = "markdown")]
    csv: bool,
    /// Print the table as Markdown
    #[arg(long)]
    markdown: bool,
}

impl Forms {
    /// The one that was chosen.
    pub(crate) fn chosen(&self) -> Form {
        match self {
            Forms { json: true, .. } => Form::Json,
            Forms { csv: true, .. } => Form::Csv,
            Forms { markdown: true, .. } => Form::Markdown,
            _ => Form::Text,
        }
    }
}

/// Runs a subcommand of these options on what stands behind its name. It answers what to print, or what is wrong and
/// what to do about it.
pub(crate) fn run<O: Parser>(
    arguments: &[OsString],
    body: impl FnOnce(O) -> Result<String, String>,
) -> ExitCode {
    match read::<O>(arguments) {
        Ok(options) => print(body(options)),
        Err(code) => code,
    }
}

/// The options of a subcommand; otherwise all is said, and this is the status to end with.
pub(crate) fn read<O: Parser>(arguments: &[OsString]) -> Result<O, ExitCode> {
    let matches = O::command().no_binary_name(true).try_get_matches_from(arguments);
    matches.and_then(|matches| O::from_arg_matches(&matches)).map_err(|error| {
        let text = error.render().to_string();
        if error.use_stderr() {
            let name = O::command().get_name().to_string();
            say(&format!("{name}: {}", text.strip_prefix("error: ").unwrap_or(&text)));
            ExitCode::from(status::FAILED)
        } else {
            print(Ok(text))
        }
    })
}

/// Prints what was asked for, or says why it cannot be had.
pub(crate) fn print(page: Result<String, String>) -> ExitCode {
    let written = page.and_then(|text| {
        let mut output = Output::stdout();
        output.write(&text);
        output.finish().map_err(|error| format!("standard output: {error}"))
    });
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            say(&format!("fiord: {why}\n"));
            ExitCode::from(status::FAILED)
        }
    }
}
