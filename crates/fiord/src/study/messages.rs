//! Findings of a study: about its target, about options as typed, and of all its runs.
//!
//! Invariant: none is repeated or lost. Warnings about options are printed to a terminal at once, so that the study can
//! be stopped; all findings are in its report.

use std::path::Path;

use fiord_findings::merge;
use fiord_options::Problem;
use fiord_report::{Finding, Subject};

use crate::output::remark;
use crate::run::assemble;

/// The findings so far.
#[derive(Debug, Default)]
pub(super) struct Messages {
    /// The first of each kind, and the names of the runs that have it.
    all: Vec<(Finding, Vec<String>)>,
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
            remark(&format!("{problem}\n\n"));
            self.all.push((assemble::of_problem(problem), Vec::new()));
            self.problems.push(problem.clone());
        }
    }

    /// Adds findings about the target.
    pub(super) fn target(&mut self, findings: &[Finding]) {
        self.all.extend(findings.iter().map(|finding| (finding.clone(), Vec::new())));
    }

    /// Adds the findings of a run, except warnings about its options as typed, which were added when it was planned.
    pub(super) fn run<'f>(&mut self, name: &str, findings: impl IntoIterator<Item = &'f Finding>) {
        let typed =
            |finding: &&Finding| finding.code.is_about_text() && matches!(finding.subject, Subject::Place(_));
        for finding in findings.into_iter().filter(|finding| !typed(finding)) {
            match self.known(finding) {
                // Two files of one run.
                Some(known) if self.all[known].1.last().is_some_and(|last| last == name) => {}
                Some(known) => self.all[known].1.push(name.to_string()),
                None => self.all.push((finding.clone(), vec![name.to_string()])),
            }
        }
    }

    /// All of them, the worst first; one of several runs has the names of those.
    pub(super) fn findings(&self) -> Vec<Finding> {
        let named = |(finding, runs): &(Finding, Vec<String>)| {
            let of_runs = !finding.code.is_about_text() && !runs.is_empty();
            let sentence = match runs.len() {
                _ if !of_runs => finding.sentence.clone(),
                1 => format!("{} ({})", finding.sentence, runs[0]),
                count => format!("{} ({}, and {})", finding.sentence, runs[0], more_runs(count - 1)),
            };
            Finding { sentence, ..finding.clone() }
        };
        merge(self.all.iter().map(named))
    }

    /// The index of a finding of the same kind: about the same option with the same words, wherever it was typed, or
    /// about the same target or one beside it, device or machine. Findings about jobs and runs, whose names differ, are represented by
    /// the first.
    fn known(&self, finding: &Finding) -> Option<usize> {
        use Subject::{Device, Job, Machine, Place, Run, Target};
        let same = |known: &Finding| {
            let subjects = match (&known.subject, &finding.subject) {
                (Job(_) | Run | Place(_), Job(_) | Run | Place(_)) | (Machine, Machine) => true,
                (Target(one), Target(other)) => {
                    one == other || (known.sentence == finding.sentence && is_beside(one, other))
                }
                (Device(one), Device(other)) => one == other,
                _ => false,
            };
            let words = !finding.code.is_about_text() || known.sentence == finding.sentence;
            known.code == finding.code && known.option == finding.option && subjects && words
        };
        self.all.iter().position(|(known, _)| same(known))
    }
}

/// Whether files are in the same directory, as the scratch files of a study are.
fn is_beside(one: &Path, other: &Path) -> bool {
    one.parent().is_some_and(|parent| Some(parent) == other.parent())
}

fn more_runs(count: usize) -> String {
    if count == 1 { "1 more run".to_string() } else { format!("{count} more runs") }
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
