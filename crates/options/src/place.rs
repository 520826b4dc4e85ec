//! Where a setting stands, and what is wrong with it.
//!
//! Invariant: every `Problem` a user sees names a place, so that it can be found without searching.

use std::fmt;
use std::sync::Arc;

/// What a setting was read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// The command line; the "line" is 1 and columns count bytes of the arguments joined by one space.
    CommandLine(Arc<str>),
    /// A job file (or `-`), by the name the user gave.
    File(Arc<str>),
    /// A default or a value derived from other options.
    Derived,
}

/// A position in a source. Lines and columns count from 1; columns count bytes. Line 0 is the source as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The text the position lies in.
    pub source: Source,
    /// Line, from 1; 0 for all of them.
    pub line: u32,
    /// Column in bytes, from 1.
    pub column: u32,
}

impl Place {
    /// The place of things nobody typed.
    pub fn derived() -> Place {
        Place { source: Source::Derived, line: 0, column: 0 }
    }

    /// All of a source that is called so.
    pub fn all_of(name: &str) -> Place {
        Place { source: Source::File(Arc::from(name)), line: 0, column: 0 }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.source {
            Source::CommandLine(_) => write!(out, "command line:{}:{}", self.line, self.column),
            Source::File(name) if self.line == 0 => write!(out, "{name}"),
            Source::File(name) => write!(out, "{name}:{}:{}", self.line, self.column),
            Source::Derived => write!(out, "defaults"),
        }
    }
}

/// Whether a problem stops the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// Said, and the run goes on (unless `--strict`): fiord's own, of what fio passes over in silence.
    Warning,
    /// Said, and the run goes on (unless `--strict` or `--warnings-fatal`): fio warns of it, too.
    FiosWarning,
    /// The run does not start; exit status 1.
    Error,
}

/// One thing wrong with what the user wrote: what, where, why, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Stops the run or not.
    pub severity: Severity,
    /// Where it stands.
    pub place: Place,
    /// The option concerned, as the table spells it; empty when no option is.
    pub option: String,
    /// What is wrong, one sentence, without a final full stop. Names the value where there is one.
    pub message: String,
    /// What to do about it (`did you mean "iodepth"?`, `allowed: 1..65536`); empty when the message says it.
    pub remedy: String,
}

impl Problem {
    /// A problem that stops the run.
    pub fn error(
        place: Place,
        option: &str,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Problem {
        let (message, remedy) = (message.into(), remedy.into());
        Problem { severity: Severity::Error, place, option: option.to_string(), message, remedy }
    }

    /// A problem that is only said.
    pub fn warning(
        place: Place,
        option: &str,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Problem {
        Problem { severity: Severity::Warning, ..Problem::error(place, option, message, remedy) }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Warning | Severity::FiosWarning => "warning",
            Severity::Error => "error",
        };
        write!(out, "{}: {severity}: ", self.place)?;
        if !self.option.is_empty() {
            write!(out, "{}: ", self.option)?;
        }
        write!(out, "{}", self.message)?;
        if !self.remedy.is_empty() {
            write!(out, "\n  {}", self.remedy)?;
        }
        Ok(())
    }
}
