//! Keeps a run in the history once it has been reported.
//!
//! Invariant: whatever becomes of the history, the report is out and the exit status decided before it is opened.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use fiord_plan::{FileKind, Plan};
use fiord_report::RunReport;
use fiord_report::path::text;
use fiord_store::{Draft, Facts, History, Kind, Printed, StoreError, Summary};
use fiord_sys::clock;
use fiord_worker::{Door, Failure};

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
    pub(crate) fn new<A: AsRef<OsStr>>(arguments: &[A], host: &str) -> Keeper {
        let words = std::iter::once(OsStr::new("fiord")).chain(arguments.iter().map(AsRef::as_ref));
        Keeper {
            command: words.map(quoted).collect::<Vec<_>>().join(" "),
            host: host.to_string(),
            started_ms: clock::realtime_ms(),
        }
    }

    /// Keeps the run, or says why it is not kept.
    pub(crate) fn keep(self, plan: &Plan, headings: &str, report: &RunReport, exit_status: u8) {
        let facts = Facts {
            title: title(plan),
            targets: targets(&files(plan)),
            elapsed_ms: report.timestamp_ms.saturating_sub(self.started_ms),
            exit_status: Some(exit_status),
            ..self.facts(Kind::Fio)
        };
        let draft =
            Draft { facts, printed: Some(Printed { headings, report }), heading: None, summary: None };
        if let Err(why) = open().and_then(|mut history| told(history.keep(&draft))) {
            say_not_kept("run", &why);
        }
    }

    /// What is known when it starts.
    fn facts(&self, kind: Kind) -> Facts {
        Facts {
            kind,
            parent: None,
            title: String::new(),
            command: self.command.clone(),
            targets: Vec::new(),
            host: self.host.clone(),
            fiord_version: env!("CARGO_PKG_VERSION").to_string(),
            started_ms: self.started_ms,
            utc_offset_s: clock::utc_offset_s(),
            elapsed_ms: 0,
            exit_status: None,
        }
    }
}

/// A study that is kept while it goes on: itself when it begins, each run when it has ended, and what it found.
pub(crate) struct StudyKeeper {
    keeper: Keeper,
    history: History,
    study: i64,
    /// Whether it works at a place of its own, and not on what its jobs name.
    has_place: bool,
}

impl StudyKeeper {
    /// Keeps that a study of this kind begins at `target`, where it has one, and what it said before; or says why it is
    /// not kept.
    pub(crate) fn begin(
        kind: &str,
        purpose: &str,
        target: Option<&Path>,
        heading: &str,
        host: &str,
    ) -> Option<StudyKeeper> {
        let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
        let keeper = Keeper::new(&arguments, host);
        let facts = Facts {
            title: format!("{kind}: {purpose}"),
            targets: target.map(self::target).into_iter().collect(),
            ..keeper.facts(Kind::from_name(kind.to_string()))
        };
        let kept = open().and_then(|mut history| {
            let study =
                told(history.keep(&Draft { facts, printed: None, heading: Some(heading), summary: None }))?;
            Ok((history, study))
        });
        match kept {
            Ok((history, study)) => Some(StudyKeeper { keeper, history, study, has_place: target.is_some() }),
            Err(why) => {
                say_not_kept("study", &why);
                None
            }
        }
    }

    /// Keeps which files its runs work on, where it has no place of its own; or says why they are not kept.
    pub(crate) fn works_on(&mut self, files: &BTreeSet<PathBuf>) {
        if self.has_place {
            return;
        }
        if let Err(why) = told(self.history.add_targets(self.study, &targets(files))) {
            say_not_kept("study's target", &why);
        }
    }

    /// Keeps one of its runs, whose report says when it ended.
    ///
    /// # Errors
    /// Why it is not kept.
    pub(crate) fn keep(
        &mut self,
        name: &str,
        plan: &Plan,
        headings: &str,
        report: &RunReport,
    ) -> Result<(), String> {
        let started_ms = report.jobs.iter().map(|job| job.start_ms).min().unwrap_or(report.timestamp_ms);
        let facts = Facts {
            parent: Some(self.study),
            title: name.to_string(),
            targets: targets(&files(plan)),
            started_ms,
            elapsed_ms: report.timestamp_ms.saturating_sub(started_ms),
            exit_status: Some(0),
            ..self.keeper.facts(Kind::Fio)
        };
        let draft =
            Draft { facts, printed: Some(Printed { headings, report }), heading: None, summary: None };
        told(self.history.keep(&draft)).map(|_| ())
    }

    /// Keeps what it found; or says why that is not kept.
    pub(crate) fn conclude(mut self, exit_status: u8, summary: &Summary) {
        let elapsed_ms = clock::realtime_ms().saturating_sub(self.keeper.started_ms);
        if let Err(why) = told(self.history.conclude(self.study, elapsed_ms, exit_status, summary)) {
            say_not_kept("study's result", &why);
        }
    }
}

/// The history, made if there is none.
fn open() -> Result<History, String> {
    place().and_then(|path| told(History::open(&path)))
}

fn told<T>(result: Result<T, StoreError>) -> Result<T, String> {
    result.map_err(|error| error.to_string())
}

/// Says that something is missing from the history, which fails nothing.
pub(crate) fn say_not_kept(what: &str, why: &str) {
    say(&format!("fiord: this {what} is not kept in the history (--no-history keeps none): {why}\n"));
}

/// Where the history lies.
pub(crate) fn place() -> Result<PathBuf, String> {
    let path = fiord_store::default_path(|name| std::env::var_os(name))
        .ok_or_else(|| "neither XDG_STATE_HOME nor HOME says where it belongs".to_string())?;
    // A database would be made on whatever is there, also on a device.
    let refused = |failure: Failure| format!("{}: {}", path.display(), failure.reason());
    Door::default().may_write(&path).map_err(refused)?;
    Ok(path)
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

/// What a run reads or writes.
pub(crate) fn files(plan: &Plan) -> BTreeSet<PathBuf> {
    let files = plan.jobs.iter().flat_map(|job| &job.files.list).filter(|file| file.kind != FileKind::None);
    files.map(|file| file.path.clone()).collect()
}

/// The same as they are kept, of many files their directories.
fn targets(files: &BTreeSet<PathBuf>) -> Vec<String> {
    let many = files.len() > FILES_MAX;
    let places = files.iter().map(|file| if many { file.parent().unwrap_or(file) } else { file.as_path() });
    let places: BTreeSet<String> = places.map(target).collect();
    places.into_iter().collect()
}

/// A file, device or directory as it is kept, and looked for: its absolute path with all links followed, so that it is
/// the same by whichever name it was called.
pub(crate) fn target(path: &Path) -> String {
    name_of(&real(&absolute(path)))
}

/// The path from the root, links and all.
pub(crate) fn absolute(path: &Path) -> PathBuf {
    match path.as_os_str().is_empty() {
        true => std::env::current_dir().unwrap_or_default(),
        false => std::path::absolute(path).unwrap_or_else(|_| path.to_owned()),
    }
}

/// The path with the links followed that are there; the file itself may be gone.
fn real(path: &Path) -> PathBuf {
    match (std::fs::canonicalize(path), path.parent(), path.file_name()) {
        (Ok(real), ..) => real,
        (Err(_), Some(parent), Some(name)) => real(parent).join(name),
        (Err(_), ..) => path.to_owned(),
    }
}

/// An absolute path as it is kept: its own text. A name that is not UTF-8 stands behind a second slash, with its bytes as
/// `\xff`, so that it is no other path's.
pub(crate) fn name_of(path: &Path) -> String {
    let mut name = String::new();
    for part in path.components().filter(|part| *part != Component::RootDir) {
        let part = part.as_os_str();
        name += if part.to_str().is_none() { "//" } else { "/" };
        name += &text(part);
    }
    if name.is_empty() { "/".to_string() } else { name }
}

/// A word as a shell takes it; what is no readable text as a shell writes its bytes.
fn quoted(word: &OsStr) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "%+,-./:=@_".contains(c);
    match word.to_str() {
        Some(text) if !text.is_empty() && text.chars().all(plain) => text.to_string(),
        Some(text) if !text.chars().any(char::is_control) => format!("'{}'", text.replace('\'', r"'\''")),
        _ => {
            let byte = |byte: &u8| match byte {
                b'\\' | b'\'' => format!("\\{}", char::from(*byte)),
                b' '..=b'~' => char::from(*byte).to_string(),
                other => format!("\\x{other:02x}"),
            };
            format!("$'{}'", word.as_bytes().iter().map(byte).collect::<String>())
        }
    }
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
            assert_eq!(quoted(OsStr::new(word)), expected);
        }
        assert_eq!(quoted(OsStr::from_bytes(b"a\n'\xff")), r"$'a\x0a\'\xff'");
    }
}
