//! The description of a subcommand, and lookup by name.
//!
//! Invariant: knows no command; the one list of them is in `commands/mod.rs`, and `main` passes it on.

use std::ffi::{OsStr, OsString};
use std::process::ExitCode;

use clap::Command;
use fiord_options::suggest;

/// One of fiord's own subcommands.
pub(crate) struct Subcommand {
    pub name: &'static str,
    /// Its options, help and examples: what completions and manual pages are made of.
    pub declaration: fn() -> Command,
    /// Runs it on the arguments that follow its name. The list is the one that contains it.
    pub run: fn(&[OsString], &Subcommands) -> ExitCode,
    /// Its arguments, as shown in the overview.
    pub takes: &'static str,
    /// What it does, in a few words.
    pub summary: &'static str,
    /// Whether it measures or shows measurements; the first page has the others by name alone.
    pub is_main: bool,
}

/// A list of subcommands.
pub(crate) struct Subcommands(pub &'static [Subcommand]);

impl Subcommands {
    /// The subcommand of this name.
    pub(crate) fn named(&self, word: &OsStr) -> Option<&'static Subcommand> {
        self.0.iter().find(|subcommand| word == subcommand.name)
    }

    /// The subcommand whose name is most similar to `word`, if any is similar enough.
    pub(crate) fn nearest(&self, word: &OsStr) -> Option<&'static str> {
        suggest::nearest(word.to_str()?, self.0.iter().map(|subcommand| subcommand.name))
    }

    /// All of them, one per line.
    pub(crate) fn overview(&self) -> String {
        self.0.iter().map(line).collect()
    }

    /// The main ones, one per line, and the names of the others.
    pub(crate) fn main_ones(&self) -> (String, String) {
        let lines = self.0.iter().filter(|subcommand| subcommand.is_main).map(line).collect();
        let others = self.0.iter().filter(|subcommand| !subcommand.is_main);
        (lines, others.map(|subcommand| subcommand.name).collect::<Vec<_>>().join(", "))
    }
}

fn line(subcommand: &Subcommand) -> String {
    let Subcommand { name, takes, summary, .. } = subcommand;
    format!("  fiord {:<22} {summary}\n", format!("{name} {takes}"))
}
