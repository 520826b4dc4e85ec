//! What is recorded of a run, and how runs are selected.
//!
//! Invariant: a run that is part of a study, or of a run on hosts, names that as its parent; these have no parent.

use std::fmt;
use std::str::FromStr;

use fiord_report::RunReport;

use crate::headline::Headline;

/// A job run, or a kind of study.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunKind {
    /// Jobs from a command line or job files, as fio runs them.
    Fio,
    /// The same on several hosts: its parts are the runs of the hosts, each called as its host.
    Hosts,
    /// A study that profiles a target quickly.
    Quick,
    /// A study of every combination of some settings.
    Matrix,
    /// A study of one setting over a range.
    Sweep,
    /// A study that compares measurements with limits.
    Check,
    /// The report or study of another machine, as the document that it was imported from.
    Import,
    /// A kind that only a newer fiord knows, by its name.
    Other(String),
}

impl RunKind {
    const KNOWN: [RunKind; 7] = [
        RunKind::Fio,
        RunKind::Hosts,
        RunKind::Quick,
        RunKind::Matrix,
        RunKind::Sweep,
        RunKind::Check,
        RunKind::Import,
    ];

    /// Its name in the history.
    pub fn name(&self) -> &str {
        match self {
            RunKind::Fio => "fio",
            RunKind::Hosts => "hosts",
            RunKind::Quick => "quick",
            RunKind::Matrix => "matrix",
            RunKind::Sweep => "sweep",
            RunKind::Check => "check",
            RunKind::Import => "import",
            RunKind::Other(name) => name,
        }
    }

    /// The kind with this name.
    pub fn from_name(name: String) -> RunKind {
        RunKind::KNOWN.into_iter().find(|kind| kind.name() == name).unwrap_or(RunKind::Other(name))
    }
}

/// The facts of a run other than its measurements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunFacts {
    /// Its kind.
    pub kind: RunKind,
    /// The study, or the run on hosts, that it is part of.
    pub parent: Option<i64>,
    /// Its title in lists.
    pub title: String,
    /// The command line, quoted for a shell.
    pub command: String,
    /// Absolute paths of the targets.
    pub targets: Vec<String>,
    /// The machine's name; empty if it was imported and is not known.
    pub host: String,
    /// The version of fiord that ran it; empty if another program did.
    pub fiord_version: String,
    /// When it started, in milliseconds since the epoch.
    pub started_ms: u64,
    /// Local time minus UTC then, in seconds.
    pub utc_offset_s: i32,
    /// How long it took, in milliseconds.
    pub elapsed_ms: u64,
    /// How it ended; `None` until then, and for a study that was killed.
    pub exit_status: Option<u8>,
    /// The name that its user gave it (`--tag`).
    pub tag: Option<String>,
    /// The release of the kernel, if it is known.
    pub kernel: Option<String>,
}

impl RunFacts {
    /// The machine's name, for people.
    pub fn host_shown(&self) -> &str {
        if self.host.is_empty() { "an unknown host" } else { &self.host }
    }
}

/// A run to record.
#[derive(Clone, Debug)]
pub struct Draft<'a> {
    /// Its facts.
    pub facts: RunFacts,
    /// Its report, and the text before it; `None` for a study.
    pub printed: Option<Printed<'a>>,
    /// The heading of a study: what it will do, and where.
    pub heading: Option<&'a str>,
    /// The conclusion of a study, or a document that is imported.
    pub summary: Option<Conclusion>,
}

/// Everything that a run's output is rendered from.
#[derive(Clone, Copy, Debug)]
pub struct Printed<'a> {
    /// The text before the run, which is printed only with the normal format.
    pub headings: &'a str,
    /// The result.
    pub report: &'a RunReport,
}

/// The conclusion of a study, made by the study and opaque here.
#[derive(Clone, Debug, PartialEq)]
pub struct Conclusion {
    /// For programs.
    pub json: String,
    /// For people.
    pub text: String,
    /// Its figures in lists.
    pub headline: Headline,
}

/// A line of the list.
#[derive(Clone, Debug, PartialEq)]
pub struct HistoryEntry {
    /// Its number, which is never reused.
    pub id: i64,
    /// Its facts.
    pub facts: RunFacts,
    /// Its figures; those of its subject for a study.
    pub headline: Headline,
}

/// A recorded run.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored {
    /// Its line in the list.
    pub entry: HistoryEntry,
    /// The heading of a study; `None` for a run.
    pub heading: Option<String>,
    /// The text before the run, and its result; `None` for a study.
    pub printed: Option<(String, RunReport)>,
    /// The conclusion of a study, the report of a run on hosts, or the document that was imported; `None` for a run, and
    /// for what did not end.
    pub summary: Option<Conclusion>,
}

/// What a study is about, beside its kind and its options: by that it is found again, whatever names its devices have then.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StudyIdentity {
    /// What identifies the device of each target, such as its serial number and its WWN, in order.
    pub devices: Vec<Vec<String>>,
    /// The earlier runs whose preconditioning it keeps, by target and block size.
    pub kept: Vec<KeptRun>,
}

/// An earlier run whose preconditioning a study kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeptRun {
    /// On which of its targets, counted from 0.
    pub target: usize,
    /// The block size with which that run wrote, in bytes.
    pub block_bytes: u64,
    /// The number of that run.
    pub run: i64,
}

/// Which runs to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Parts of this study; `None`: runs that are not part of any.
    pub parent: Option<i64>,
    /// A target, or a directory above it, as an absolute path.
    pub target: Option<String>,
    /// At most this many, the newest.
    pub limit: Option<u32>,
}

/// Selects a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunSelector {
    /// By its number.
    Id(i64),
    /// This many before the newest, not counting parts of studies.
    Last(u32),
}

impl FromStr for RunSelector {
    type Err = String;

    fn from_str(text: &str) -> Result<RunSelector, String> {
        let counted = text.strip_prefix("last").map(|rest| match rest.strip_prefix('~') {
            Some(count) => count.parse().map(RunSelector::Last).ok(),
            None => rest.is_empty().then_some(RunSelector::Last(0)),
        });
        let which = counted.unwrap_or_else(|| text.parse().ok().filter(|id| *id > 0).map(RunSelector::Id));
        which.ok_or_else(|| {
            format!("{text:?} names no run; use its number, last, or last~2 (two before the last)")
        })
    }
}

/// Checks a name that a run is to be found by.
///
/// # Errors
/// Why it cannot be one, and what to write instead.
pub fn check_tag(tag: &str) -> Result<(), String> {
    let wrong = |why: &str| Err(format!("{tag:?} {why}; write a name such as before, or build-7"));
    let is_plain = |c: char| c.is_alphanumeric() || "-_.+@".contains(c);
    match tag {
        "" => wrong("is empty"),
        _ if tag.parse::<RunSelector>().is_ok() || tag.parse::<i64>().is_ok() => {
            wrong("is how runs are counted")
        }
        _ if tag.starts_with(['-', '.']) || !tag.chars().all(is_plain) => {
            wrong("has other characters than letters, digits and -_.+@, or begins with one of -.")
        }
        _ => Ok(()),
    }
}

impl fmt::Display for RunSelector {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunSelector::Id(id) => write!(out, "{id}"),
            RunSelector::Last(0) => out.write_str("last"),
            RunSelector::Last(before) => write!(out, "last~{before}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_a_newer_fiord_keep_their_name() {
        for kind in RunKind::KNOWN.into_iter().chain([RunKind::Other("replay".to_owned())]) {
            assert_eq!(RunKind::from_name(kind.name().to_owned()), kind);
        }
    }

    #[test]
    fn a_tag_cannot_be_taken_for_a_number_or_a_file() {
        for tag in ["before", "build-7", "v1.2", "Größe"] {
            assert_eq!(check_tag(tag), Ok(()), "{tag}");
        }
        for tag in ["", "7", "0", "last", "last~2", "a/b", "-x", ".x", "a b", "a,b", "a\n"] {
            assert!(check_tag(tag).is_err(), "{tag:?}");
        }
    }

    #[test]
    fn runs_are_named_by_number_or_from_the_newest() {
        for (text, which) in
            [("12", RunSelector::Id(12)), ("last", RunSelector::Last(0)), ("last~2", RunSelector::Last(2))]
        {
            assert_eq!(text.parse(), Ok(which));
            assert_eq!(which.to_string(), text);
        }
        for text in ["", "0", "-1", "last~", "last2", "lastly", "first", "1.5"] {
            assert!(text.parse::<RunSelector>().is_err(), "{text}");
        }
    }
}
