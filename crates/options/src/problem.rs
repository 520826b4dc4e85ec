//! Problems in the user's input.
//!
//! Invariant: decisions depend on the kind, the option and the place of a problem; its text is only shown.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fmt;
use std::path::Path;

use crate::place::Place;
use crate::shown::shown;
use crate::table::Spec;

/// Whether a problem stops the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProblemLevel {
    /// Printed, and the run continues (unless `--strict`). fio does not warn of it.
    Warning,
    /// Printed, and the run continues (unless `--strict` or `--warnings-fatal`). fio warns of it, too.
    FiosWarning,
    /// The run does not start; exit status 1.
    Error,
}

/// What kind of problem it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProblemKind {
    /// A job file, an included file, the file of a pattern, or a part of the system cannot be read.
    Unreadable,
    /// A job file is not laid out as one: a header, an include, a line before the first section.
    Syntax,
    /// No option, section or job has this name, or several options could be meant.
    UnknownName,
    /// The option does not apply where it was written: it is one of another engine, or of the command line.
    Misplaced,
    /// A value is missing, or given to an option that takes none.
    ValueCount,
    /// An environment variable is not set.
    UnsetVariable,
    /// The value is not one that the option takes.
    InvalidValue,
    /// The value is read differently from what it seems to mean.
    ReadDifferently,
    /// A unit of powers of 1024, such as `KiB`, means one of powers of 1000.
    DecimalUnit,
    /// A `;` or `#` within the value began a comment, and the value ends before it.
    ValueCut,
    /// fio supports it, and fiord does not yet.
    NotBuilt,
    /// fio supports it, on some system or with some library, and fiord never will.
    Unsupported,
    /// The option has no effect, here or at all.
    NoEffect,
    /// Two options contradict each other.
    Conflict,
    /// Another value is used than the one given.
    Adjusted,
    /// This machine has no such CPU or memory node.
    NotOnMachine,
    /// Another option forbids it: `--readonly`, `--max-jobs`, `allow_file_create=0`.
    Forbidden,
    /// The target does not exist, or is not of a kind that can be used.
    Target,
    /// The path is in use, and would be overwritten.
    InUse,
    /// The part of the target that would be used is empty, too small, or behind its end.
    Extent,
    /// Blocks or offsets are not multiples of what direct I/O needs.
    Misaligned,
}

/// One problem in the user's input: what, where, why, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Problem {
    /// Stops the run or not.
    pub level: ProblemLevel,
    /// What kind it is.
    pub kind: ProblemKind,
    /// Where it is.
    pub place: Place,
    /// The option concerned, if one is.
    pub option: Option<&'static Spec>,
    /// The job concerned, if it is a problem of one.
    pub job: Option<Box<OsStr>>,
    /// The file or device concerned, if the problem is one of several that the job uses.
    pub path: Option<Box<Path>>,
    message: Box<str>,
    remedy: Box<str>,
}

/// Each problem once, in their order: sections and clones that inherit a mistake repeat it.
pub fn without_repeats(problems: impl IntoIterator<Item = Problem>) -> Vec<Problem> {
    let mut known = HashSet::new();
    problems.into_iter().filter(|problem| known.insert(problem.clone())).collect()
}

impl Problem {
    /// A problem that stops the run. The message says what is wrong in one sentence, without a final full stop, and
    /// names the value if there is one. The remedy says what to do about it (`did you mean "iodepth"?`,
    /// `allowed: 1..65536`); it is empty if the message says so.
    pub fn error(
        kind: ProblemKind,
        place: Place,
        option: impl Into<Option<&'static Spec>>,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Problem {
        let (message, remedy) = (message.into().into(), remedy.into().into());
        let (level, option) = (ProblemLevel::Error, option.into());
        Problem { level, kind, place, option, job: None, path: None, message, remedy }
    }

    /// The same about this job.
    #[must_use]
    pub fn of_job(self, name: &OsStr) -> Problem {
        Problem { job: Some(name.into()), ..self }
    }

    /// The same about this file or device.
    #[must_use]
    pub fn of_path(self, path: &Path) -> Problem {
        Problem { path: Some(path.into()), ..self }
    }

    /// The same at another place.
    #[must_use]
    pub fn at(self, place: Place) -> Problem {
        Problem { place, ..self }
    }

    /// The same, only printed.
    #[must_use]
    pub fn as_warning(self) -> Problem {
        Problem { level: ProblemLevel::Warning, ..self }
    }

    /// The same, only printed, as fio does, too.
    #[must_use]
    pub fn as_fios_warning(self) -> Problem {
        Problem { level: ProblemLevel::FiosWarning, ..self }
    }

    /// What is wrong, and with which job.
    pub fn message(&self) -> String {
        match &self.job {
            Some(job) => format!("job {}: {}", shown(job), self.message),
            None => self.message.to_string(),
        }
    }

    /// What to do about it; empty if the message says so.
    pub fn remedy(&self) -> &str {
        &self.remedy
    }

    /// Whether it repeats another one: it is equal, or it is the same kind of problem with the same option, job and
    /// path, and both are about settings that the user did not type. The runs of a study differ in such settings.
    pub fn repeats(&self, other: &Problem) -> bool {
        let what = |problem: &Problem| (problem.level, problem.kind, problem.option);
        let whose = |problem: &Problem| (problem.job.clone(), problem.path.clone());
        let is_derived = !self.place.is_typed() && !other.place.is_typed();
        self == other || (is_derived && what(self) == what(other) && whose(self) == whose(other))
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let level = match self.level {
            ProblemLevel::Warning | ProblemLevel::FiosWarning => "warning",
            ProblemLevel::Error => "error",
        };
        write!(out, "{}: {level}: ", self.place)?;
        if let Some(option) = self.option {
            write!(out, "{}: ", option.name)?;
        }
        write!(out, "{}", self.message())?;
        if !self.remedy.is_empty() {
            write!(out, "\n  {}", self.remedy)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::Origin;
    use crate::table::job::{Blocks, Queue};

    #[test]
    fn the_job_is_named_before_the_message() {
        let typed = Place { source: Origin::CommandLine, line: 1, column: 7 };
        let problem = Problem::error(ProblemKind::Conflict, typed, Blocks::bs, "too long", "shorten it");
        let problem = problem.of_job(OsStr::new("a\n"));
        assert_eq!(problem.to_string(), "command line:1:7: error: bs: job a\\n: too long\n  shorten it");
        assert_eq!(problem.message(), "job a\\n: too long");
    }

    #[test]
    fn problems_of_one_kind_with_settings_that_were_not_typed_are_repetitions() {
        let first = Problem::error(ProblemKind::NoEffect, Place::derived(), Queue::iodepth, "16 is 1", "")
            .as_warning();
        let of_run = |name: &str, words: &str| {
            Problem::error(ProblemKind::NoEffect, Place::all_of(name), Queue::iodepth, words, "").as_warning()
        };
        assert!(of_run("run 2", "32 is 1").repeats(&first));
        assert!(of_run("run 2", "32 is 1").repeats(&of_run("run 3", "64 is 1")));
        let same = || of_run("run 2", "16 is 1");
        let others = [
            Problem { kind: ProblemKind::Conflict, ..same() },
            Problem { option: Some(Blocks::bs), ..same() },
            Problem { job: Some(OsStr::new("a").into()), ..same() },
            Problem { path: Some(Path::new("/a").into()), ..same() },
            Problem { level: ProblemLevel::Error, ..same() },
        ];
        for (index, other) in others.iter().enumerate() {
            assert!(!other.repeats(&first), "{index}");
        }
        let typed = |column| {
            let place = Place { source: Origin::CommandLine, line: 1, column };
            Problem { place, ..same() }
        };
        assert!(typed(4).repeats(&typed(4)) && !typed(4).repeats(&typed(5)));
        assert!(!typed(4).repeats(&Problem { message: "32 is 1".into(), ..typed(4) }));
    }
}
