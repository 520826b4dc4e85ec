//! One section while its jobs are planned: its options, and where each of them was written.
//!
//! Invariant: a problem names the place of the option it is about, or of the section when the option was not given.

use fiord_options::job::JobOptions;
use fiord_options::{Given, Problem, ProblemKind, Section, Spec};

use crate::engine::{EngineDescriptor, Engines};

/// A section, resolved.
pub(crate) struct ResolvedSection<'a> {
    /// The section as read.
    pub parsed: &'a Section,
    /// Its options.
    pub options: &'a JobOptions,
    /// What was given, and where.
    pub given: &'a Given<'a>,
    /// The engines that are built in.
    pub engines: Engines,
}

impl ResolvedSection<'_> {
    /// The job's engine; `None` for one that is not built in, which `resolve` has reported.
    pub fn engine(&self) -> Option<&'static EngineDescriptor> {
        self.engines.find(self.options.queue.ioengine)
    }

    /// Whether the option was given.
    pub fn is_given(&self, option: &Spec) -> bool {
        self.given.get(option).is_some()
    }

    /// A problem with an option, which stops the run.
    pub fn error(
        &self,
        kind: ProblemKind,
        option: &'static Spec,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Problem {
        let place = match self.given.get(option) {
            Some(setting) => setting.value_place.clone(),
            None => self.parsed.place.clone(),
        };
        Problem::error(kind, place, option, message, remedy).of_job(&self.parsed.name)
    }
}
