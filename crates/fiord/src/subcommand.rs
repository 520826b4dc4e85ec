//! The description of a subcommand, and lookup by name.
//!
//! Invariant: knows no command; the one list of them is in `commands/mod.rs`, and `main` passes it on.

use std::ffi::{OsStr, OsString};
use std::process::ExitCode;

use clap::Command;
use fiord_options::shown::shown;
use fiord_options::suggest;
use fiord_options::{Lookup, table};

use crate::hint;

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

    /// The command line that was probably meant by a word that is no subcommand: `fiord quick`.
    pub(crate) fn meant(&self, word: &OsStr) -> Option<String> {
        let word = word.to_str()?;
        let nearest = || suggest::nearest(word, self.0.iter().map(|subcommand| subcommand.name));
        hint::meant("fiord", word).or_else(|| nearest().map(|name| format!("fiord {name}")))
    }

    /// That a word is no subcommand, and what was probably meant.
    pub(crate) fn unknown(&self, word: &OsStr) -> String {
        let meant = match self.meant(word) {
            Some(meant) => format!("; did you mean `{meant}`?"),
            None if is_job_option(word) => format!(", but a job option is: fiord --cmdhelp={}", shown(word)),
            None => "; `fiord help` lists them".to_string(),
        };
        format!("no subcommand is called {:?}{meant}", shown(word))
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

fn is_job_option(word: &OsStr) -> bool {
    word.to_str().is_some_and(|name| matches!(table::find_job_option(name, false, &[]), Lookup::Found(_)))
}

fn line(subcommand: &Subcommand) -> String {
    let Subcommand { name, takes, summary, .. } = subcommand;
    format!("  fiord {:<22} {summary}\n", format!("{name} {takes}"))
}
