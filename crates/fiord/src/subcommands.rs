//! The one list of fiord's own subcommands: how each is run, and what it does.
//!
//! Invariant: whoever dispatches, lists or suggests subcommands reads this list.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::ExitCode;

use fiord_options::suggest;

use crate::{check, devices, engines, help, history, matrix, quick, show, sweep, version};

/// A subcommand of fiord's own.
pub(crate) struct Subcommand {
    name: &'static str,
    /// Runs it on the arguments behind its name.
    pub run: fn(&[OsString]) -> ExitCode,
    /// What it takes, for people.
    takes: &'static str,
    /// What it does, in a few words.
    summary: &'static str,
}

/// In the order of a newcomer's questions.
const SUBCOMMANDS: &[Subcommand] = &[
    of("quick", quick::run, "[TARGET]", "what a disk is good for, in half a minute"),
    of("devices", devices::run, "[TARGET]", "the disks, and what they mean for a benchmark"),
    of("check", check::run, "PROFILE [DIR]", "whether a disk carries etcd, rocksdb or oltp"),
    of("matrix", matrix::run, "[TARGET]", "block sizes by patterns, as one table"),
    of("sweep", sweep::run, "... --over K=V", "a job over values of its options, and the knee"),
    of("history", history::run, "", "the runs there were"),
    of("show", show::run, "ID", "one of them again, in any format"),
    of("engines", engines::run, "", "what works here, and fiord's own cost"),
    of("version", version::run, "", "what this program is"),
    of("help", help::run, "[SUBCOMMAND]", "this list, or all of one of them"),
];

const fn of(
    name: &'static str,
    run: fn(&[OsString]) -> ExitCode,
    takes: &'static str,
    summary: &'static str,
) -> Subcommand {
    Subcommand { name, run, takes, summary }
}

/// The subcommand asked for. Called as `fio` there is none, and a job file of that name comes first.
pub(crate) fn asked_for(arguments: &[OsString]) -> Option<&'static Subcommand> {
    let word = arguments.get(1)?;
    if called_as_fio(arguments) || Path::new(word).exists() {
        return None;
    }
    named(word)
}

/// The subcommand of this name.
pub(crate) fn named(word: &OsStr) -> Option<&'static Subcommand> {
    SUBCOMMANDS.iter().find(|subcommand| word == subcommand.name)
}

/// Whether the program stands in for fio under its name, and does nothing that fio does not.
pub(crate) fn called_as_fio(arguments: &[OsString]) -> bool {
    let name = arguments.first().and_then(|path| Path::new(path).file_name());
    name.is_some_and(|name| name == "fio")
}

/// The name that was probably meant by a word that is none.
pub(crate) fn nearest(word: &str) -> Option<&'static str> {
    suggest::nearest(word, SUBCOMMANDS.iter().map(|subcommand| subcommand.name))
}

/// All of them, a line each.
pub(crate) fn overview() -> String {
    let line = |subcommand: &Subcommand| {
        let Subcommand { name, takes, summary, .. } = subcommand;
        format!("  fiord {:<22} {summary}\n", format!("{name} {takes}"))
    };
    SUBCOMMANDS.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_overview_fits_a_terminal() {
        assert!(overview().lines().all(|line| line.chars().count() <= 80), "{}", overview());
        assert_eq!(overview().lines().count(), SUBCOMMANDS.len());
    }

    #[test]
    fn a_slip_is_understood_and_a_job_file_is_not_taken_for_one() {
        assert_eq!(nearest("qiuck"), Some("quick"));
        assert_eq!(nearest("randread.fio"), None);
    }
}
