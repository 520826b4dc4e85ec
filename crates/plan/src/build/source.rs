//! One section while it is made into jobs: its options, and where each of them was written.
//!
//! Invariant: a problem names the place of the option it is about, or of the section when the option was not given.

use fiord_options::job::JobOptions;
use fiord_options::{Given, Problem, Section, Severity};

/// A section, resolved.
pub(crate) struct Source<'a> {
    /// The section as read.
    pub section: &'a Section,
    /// Its options.
    pub options: &'a JobOptions,
    /// What was given, and where.
    pub given: &'a Given,
}

impl Source<'_> {
    /// Whether the option of this canonical name was given at all.
    pub fn is_given(&self, option: &str) -> bool {
        self.given.get(option).is_some()
    }

    /// A problem with an option, which stops the run.
    pub fn error(&self, option: &str, message: impl Into<String>, remedy: impl Into<String>) -> Problem {
        self.problem(Severity::Error, option, message.into(), remedy.into())
    }

    /// Something to say about an option.
    pub fn warning(&self, option: &str, message: impl Into<String>, remedy: impl Into<String>) -> Problem {
        self.problem(Severity::Warning, option, message.into(), remedy.into())
    }

    /// Something to say about an option that fio says, too.
    pub fn fios_warning(
        &self,
        option: &str,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Problem {
        self.problem(Severity::FiosWarning, option, message.into(), remedy.into())
    }

    fn problem(&self, severity: Severity, option: &str, message: String, remedy: String) -> Problem {
        let place = match self.given.get(option) {
            Some(setting) => setting.value_place.clone(),
            None => self.section.place.clone(),
        };
        Problem {
            severity,
            place,
            option: option.to_string(),
            message: format!("job {}: {message}", self.section.name),
            remedy,
        }
    }
}

/// Which of these options was given last.
pub(crate) fn last_given(source: &Source<'_>, options: &[&str]) -> Option<&'static str> {
    source.given.iter().map(|setting| setting.spec.name).filter(|name| options.contains(name)).last()
}
