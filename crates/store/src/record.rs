//! What is kept of a run, and how runs are asked for.
//!
//! Invariant: a run that is a part of a study names it as its parent; studies are no part of anything.

use std::fmt;
use std::str::FromStr;

use fiord_report::RunReport;

use crate::Headline;

/// What kind of thing was run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Jobs from a command line or job files, as fio runs them.
    Fio,
    /// A study: one quick look at a target.
    Quick,
    /// A study: every combination of some settings.
    Matrix,
    /// A study: one setting along a range.
    Sweep,
    /// A study: measured against what was promised or measured before.
    Check,
    /// What only a later fiord knows, by its name.
    Other(String),
}

impl Kind {
    const KNOWN: [Kind; 5] = [Kind::Fio, Kind::Quick, Kind::Matrix, Kind::Sweep, Kind::Check];

    /// Its name in the history.
    pub fn name(&self) -> &str {
        match self {
            Kind::Fio => "fio",
            Kind::Quick => "quick",
            Kind::Matrix => "matrix",
            Kind::Sweep => "sweep",
            Kind::Check => "check",
            Kind::Other(name) => name,
        }
    }

    /// The kind of this name.
    pub fn from_name(name: String) -> Kind {
        Kind::KNOWN.into_iter().find(|kind| kind.name() == name).unwrap_or(Kind::Other(name))
    }
}

/// What there is to know of a run besides what it measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// What kind.
    pub kind: Kind,
    /// The study it is a part of.
    pub parent: Option<i64>,
    /// What a list calls it.
    pub title: String,
    /// The command line, quoted for a shell.
    pub command: String,
    /// Absolute paths of what was read or written.
    pub targets: Vec<String>,
    /// The machine's name.
    pub host: String,
    /// The fiord that ran it.
    pub fiord_version: String,
    /// When it started, in milliseconds since the epoch.
    pub started_ms: u64,
    /// Local time minus UTC then, in seconds.
    pub utc_offset_s: i32,
    /// How long it took, in milliseconds.
    pub elapsed_ms: u64,
    /// How it ended; `None` while it has not, which is what a study that was killed looks like.
    pub exit_status: Option<u8>,
}

/// A run to keep.
#[derive(Clone, Debug)]
pub struct Draft<'a> {
    /// What it is.
    pub facts: Facts,
    /// What was measured, and the text before it. A study has none of its own.
    pub printed: Option<Printed<'a>>,
    /// What a study says before it begins: what it will do, and where.
    pub heading: Option<&'a str>,
    /// What a study concludes.
    pub summary: Option<Summary>,
}

/// All that a run's output is made from.
#[derive(Clone, Copy, Debug)]
pub struct Printed<'a> {
    /// The text before the run, which stands beside the normal format only.
    pub headings: &'a str,
    /// The result.
    pub report: &'a RunReport,
}

/// What a study concludes, made by the study and not looked into here.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// For programs.
    pub json: String,
    /// For people.
    pub text: String,
    /// The figures a list shows of it.
    pub headline: Headline,
}

/// A line of the list.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Its number, never given again.
    pub id: i64,
    /// What it is.
    pub facts: Facts,
    /// Its figures; a study has those it is about.
    pub headline: Headline,
}

/// A run as it was kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored {
    /// Its line in the list.
    pub entry: Entry,
    /// What a study said before it began; `None` for a run.
    pub heading: Option<String>,
    /// The text before the run, and its result; `None` for a study.
    pub printed: Option<(String, RunReport)>,
    /// What a study concludes; `None` for a run, and for a study that did not end.
    pub summary: Option<Summary>,
}

/// Which runs to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// The study whose parts are wanted; without one, what is no part of any.
    pub parent: Option<i64>,
    /// A target, or a directory above it, as an absolute path.
    pub target: Option<String>,
    /// At most so many, the newest.
    pub limit: Option<u32>,
}

/// Which run is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// The one of this number.
    Id(i64),
    /// The newest but so many, parts of studies not counted.
    Last(u32),
}

impl FromStr for Which {
    type Err = String;

    fn from_str(text: &str) -> Result<Which, String> {
        let counted = text.strip_prefix("last").map(|rest| match rest.strip_prefix('~') {
            Some(count) => count.parse().map(Which::Last).ok(),
            None => rest.is_empty().then_some(Which::Last(0)),
        });
        let which = counted.unwrap_or_else(|| text.parse().ok().filter(|id| *id > 0).map(Which::Id));
        which.ok_or_else(|| format!("{text:?} names no run; give its number, last, or last~2 for two before"))
    }
}

impl fmt::Display for Which {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Which::Id(id) => write!(out, "{id}"),
            Which::Last(0) => out.write_str("last"),
            Which::Last(before) => write!(out, "last~{before}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_a_later_fiord_keep_their_name() {
        for kind in Kind::KNOWN.into_iter().chain([Kind::Other("replay".to_owned())]) {
            assert_eq!(Kind::from_name(kind.name().to_owned()), kind);
        }
    }

    #[test]
    fn runs_are_named_by_number_or_from_the_newest() {
        for (text, which) in [("12", Which::Id(12)), ("last", Which::Last(0)), ("last~2", Which::Last(2))] {
            assert_eq!(text.parse(), Ok(which));
            assert_eq!(which.to_string(), text);
        }
        for text in ["", "0", "-1", "last~", "last2", "lastly", "first", "1.5"] {
            assert!(text.parse::<Which>().is_err(), "{text}");
        }
    }
}
