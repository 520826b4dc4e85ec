//! Formats the code, and checks that it is formatted.
//!
//! Invariant: every file of the workspace is formatted, also those that rustfmt does not find because a macro declares
//! them.

use crate::{repo, stage, tidy};

/// `cargo x fmt`: formats every file.
pub fn run() -> Result<(), String> {
    format(&[])
}

/// Checks every file; the differences go to standard output.
pub fn check() -> Result<(), String> {
    format(&["--check"])
}

fn format(flags: &[&str]) -> Result<(), String> {
    let found = stage::command(repo::cargo(&[&["fmt", "--all"], flags].concat()));
    let files = tidy::files_found_by_macros()?;
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    // rustfmt.toml has the edition, so that rustfmt formats a file as cargo does. Without a file it would wait for input.
    let declared_by_macros = match files.as_slice() {
        [] => Ok(()),
        files => stage::command(repo::command("rustfmt", &[flags, files].concat())),
    };
    found.and(declared_by_macros)
}
