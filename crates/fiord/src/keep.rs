//! Keeps a run in the history once it has been reported.
//!
//! Invariant: whatever becomes of the history, the report is out and the exit status decided before it is opened.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use fiord_plan::{FileKind, Plan};
use fiord_report::RunReport;
use fiord_store::{Draft, Facts, History, Kind, Printed};
use fiord_sys::clock;

use crate::output::say;

/// Job names in a title; a list has no room for more.
const NAMES_MAX: usize = 3;
/// Targets that are kept one by one; of more, the directories they are in.
const FILES_MAX: usize = 16;

/// A run that will be kept when it ends.
pub(crate) struct Keeper {
    command: String,
    host: String,
    started_ms: u64,
}

impl Keeper {
    /// Of a run that starts now, by these arguments.
    pub(crate) fn new(arguments: &[String], host: &str) -> Keeper {
        let words = std::iter::once("fiord").chain(arguments.iter().map(String::as_str));
        Keeper {
            command: words.map(quoted).collect::<Vec<_>>().join(" "),
            host: host.to_string(),
            started_ms: clock::realtime_ms(),
        }
    }

    /// Keeps the run, or says why it is not kept.
    pub(crate) fn keep(self, plan: &Plan, headings: &str, report: &RunReport, exit_status: u8) {
        let facts = Facts {
            kind: Kind::Fio,
            parent: None,
            title: title(plan),
            command: self.command,
            targets: targets(plan),
            host: self.host,
            fiord_version: env!("CARGO_PKG_VERSION").to_string(),
            started_ms: self.started_ms,
            utc_offset_s: report.utc_offset_s,
            elapsed_ms: report.timestamp_ms.saturating_sub(self.started_ms),
            exit_status: Some(exit_status),
        };
        let draft = Draft { facts, printed: Some(Printed { headings, report }), summary: None };
        let kept = place().and_then(|path| {
            let mut history = History::open(&path).map_err(|error| error.to_string())?;
            history.keep(&draft).map_err(|error| error.to_string())
        });
        if let Err(why) = kept {
            say(&format!("fiord: this run is not kept in the history (--no-history keeps none): {why}\n"));
        }
    }
}

/// Where the history lies.
pub(crate) fn place() -> Result<PathBuf, String> {
    fiord_store::default_path(|name| std::env::var_os(name))
        .ok_or_else(|| "neither XDG_STATE_HOME nor HOME says where it belongs".to_string())
}

/// The jobs' names, each once.
fn title(plan: &Plan) -> String {
    let mut names: Vec<&str> = Vec::new();
    let mut seen = BTreeSet::new();
    names.extend(plan.jobs.iter().map(|job| job.name.as_str()).filter(|name| seen.insert(*name)));
    let rest = names.len().saturating_sub(NAMES_MAX);
    names.truncate(NAMES_MAX);
    let names = names.join(", ");
    if rest > 0 { format!("{names} and {rest} more") } else { names }
}

/// What was read or written, as absolute paths.
fn targets(plan: &Plan) -> Vec<String> {
    let files = plan.jobs.iter().flat_map(|job| &job.files.list).filter(|file| file.kind != FileKind::None);
    let files: BTreeSet<&Path> = files.map(|file| file.path.as_path()).collect();
    let many = files.len() > FILES_MAX;
    let shown = files.into_iter().map(|file| if many { file.parent().unwrap_or(file) } else { file });
    let absolute = |path: &Path| match path.as_os_str().is_empty() {
        true => std::env::current_dir().unwrap_or_default(),
        false => std::path::absolute(path).unwrap_or_else(|_| path.to_owned()),
    };
    let shown: BTreeSet<PathBuf> = shown.map(absolute).collect();
    shown.iter().map(|path| path.to_string_lossy().into_owned()).collect()
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "%+,-./:=@_".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_string();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_can_be_pasted_into_a_shell() {
        for (word, expected) in [
            ("--name=a", "--name=a"),
            ("", "''"),
            ("a b", "'a b'"),
            ("$HOME", "'$HOME'"),
            ("it's", r"'it'\''s'"),
        ] {
            assert_eq!(quoted(word), expected);
        }
    }
}
