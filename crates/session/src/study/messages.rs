//! Findings of a study: about its target, about options as typed, and of all its runs.
//!
//! Invariant: none is repeated or lost.

use fiord_findings::Merged;
use fiord_options::Problem;
use fiord_report::{Finding, Subject};

use crate::run::assemble;

/// The findings so far.
#[derive(Debug, Default)]
pub(super) struct Messages {
    all: Merged,
    /// Warnings about options as typed.
    problems: Vec<Problem>,
}

impl Messages {
    /// Adds warnings about options, with their place in what was typed.
    pub(super) fn problems<'p>(&mut self, problems: impl IntoIterator<Item = &'p Problem>) {
        for problem in problems {
            if self.problems.iter().any(|known| problem.repeats(known)) {
                continue;
            }
            self.all.add(assemble::of_problem(problem));
            self.problems.push(problem.clone());
        }
    }

    /// The warnings about options as typed, each once.
    pub(super) fn warnings(&self) -> &[Problem] {
        &self.problems
    }

    /// Adds findings about the target.
    pub(super) fn target(&mut self, findings: &[Finding]) {
        findings.iter().for_each(|finding| self.all.add(finding.clone()));
    }

    /// Adds the findings of a run, except warnings about its options as typed, which were added when it was planned.
    pub(super) fn run<'f>(&mut self, name: &str, findings: impl IntoIterator<Item = &'f Finding>) {
        let typed =
            |finding: &&Finding| finding.code.is_about_text() && matches!(finding.subject, Subject::Place(_));
        let of_run = findings.into_iter().filter(|finding| !typed(finding));
        of_run.for_each(|finding| self.all.add_of_run(name, finding));
    }

    /// All of them, the worst first; one of several runs has the names of those.
    pub(super) fn findings(&self) -> Vec<Finding> {
        self.all.findings()
    }
}

#[cfg(test)]
mod tests {
    use fiord_report::Code;

    use super::*;
    use fiord_options::job;

    #[test]
    fn a_warning_of_every_run_is_kept_once() {
        let warning = |job: &str, sentence: &str| {
            Finding::new(Code::Option, Subject::Job(job.to_string()), sentence, "")
                .of_option(job::Access::fsync)
        };
        let mut messages = Messages::default();
        messages.run("1", &[warning("a", "late"), warning("b", "late"), warning("b", "later")]);
        assert_eq!(messages.findings(), [warning("a", "late"), warning("b", "later")]);
    }

    #[test]
    fn a_finding_of_several_runs_names_the_first_and_says_how_many_more() {
        let finding =
            |sentence: &str| Finding::new(Code::FewSamples, Subject::Job("a".to_string()), sentence, "");
        let void = Finding::new(Code::InMemory, Subject::Target("/x".into()), "memory", "");
        let beside = Finding { subject: Subject::Target("/y".into()), ..void.clone() };
        let mut messages = Messages::default();
        messages.target(std::slice::from_ref(&void));
        messages.run("bs=4k", &[finding("8 of 10")]);
        messages.run("bs=8k", &[void.clone(), beside.clone(), finding("8 of 11")]);
        let sentences: Vec<String> =
            messages.findings().into_iter().map(|finding| finding.sentence).collect();
        assert_eq!(sentences, ["memory (bs=8k)", "8 of 10 (bs=4k, and 1 more run)"]);
        // What is elsewhere may be on another disk.
        messages.run("bs=8k", &[Finding { subject: Subject::Target("/z/y".into()), ..void }]);
        assert_eq!(messages.findings().len(), 3);
    }
}
