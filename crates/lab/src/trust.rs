//! What findings about its runs leave of a study's conclusion.
//!
//! Invariant: nothing is concluded from a run whose figures are void.

use fiord_report::Finding;

use crate::step::StepResult;
use crate::study::StudyResult;
use crate::verdict::Verdict;

/// The result, or, if the figures of any run that was judged are void, that nothing can be concluded, and why. The reason
/// has the figures of the first of `all` runs that has it, as the list of findings does.
pub(crate) fn concluded(result: StudyResult, judged: &[StepResult], all: &[StepResult]) -> StudyResult {
    match judged.iter().find_map(StepResult::void_finding) {
        // A study that measured nothing, or not all of it, concludes nothing anyway.
        Some(finding) if !result.conclusion.is_empty() => StudyResult {
            conclusion: cannot_tell(&because(first_like(finding, all))),
            verdict: Some(Verdict::Undecided),
            ..result
        },
        _ => result,
    }
}

/// The first finding of these runs with the same code and subject.
fn first_like<'f>(finding: &'f Finding, all: &'f [StepResult]) -> &'f Finding {
    let is_like = |other: &&Finding| (other.code, &other.subject) == (finding.code, &finding.subject);
    all.iter().flat_map(|run| &run.report.findings).find(is_like).unwrap_or(finding)
}

/// A reason in the middle of a sentence, which names what it is about.
pub(crate) fn because(finding: &Finding) -> String {
    let (sentence, code, subject) =
        (finding.sentence.replace('\n', "; "), finding.code.name(), &finding.subject);
    match sentence.strip_prefix("it ") {
        Some(rest) => format!("{subject} {rest} ({code})"),
        None => format!("{sentence} ({code}, {subject})"),
    }
}

/// The conclusion of a study that cannot draw one.
pub(crate) fn cannot_tell(why: &str) -> String {
    format!("{}, because {why}.", Verdict::Undecided.word())
}

#[cfg(test)]
mod tests {
    use fiord_report::{Code, RunReport, Subject};

    use super::*;

    fn ran(findings: Vec<Finding>) -> StepResult {
        StepResult { step: 0, report: RunReport { findings, ..RunReport::default() } }
    }

    #[test]
    fn one_void_run_is_enough_for_no_conclusion() {
        let conclusion =
            || StudyResult { conclusion: "This disk is fast.".to_string(), ..StudyResult::default() };
        let finding =
            |code, sentence: &str| Finding::new(code, Subject::Device("sda".to_string()), sentence, "");
        let note = finding(Code::FewSamples, "few");
        let concluded = |result, runs: &[StepResult]| concluded(result, runs, runs);
        assert_eq!(concluded(conclusion(), &[ran(vec![note.clone()])]), conclusion());
        let shared = finding(Code::DiskShared, "other programs transferred 2GiB");
        let result = concluded(conclusion(), &[ran(vec![note]), ran(vec![shared.clone()])]);
        assert_eq!(
            result.conclusion,
            "CANNOT TELL, because other programs transferred 2GiB (disk-shared, device sda)."
        );
        assert_eq!(result.verdict, Some(Verdict::Undecided));
        let memory = Finding::new(Code::InMemory, Subject::Target("/x".into()), "it is in memory", "");
        assert_eq!(because(&memory), "/x is in memory (in-memory)");
        let nothing = StudyResult::default();
        assert_eq!(concluded(nothing.clone(), &[ran(vec![shared])]), nothing);
    }

    #[test]
    fn a_reason_has_the_figures_that_the_list_of_findings_has() {
        let shared = |amount: &str| {
            let sentence = format!("other programs transferred {amount}");
            ran(vec![Finding::new(Code::DiskShared, Subject::Device("sda".to_string()), sentence, "")])
        };
        let result = StudyResult { conclusion: "This disk is fast.".to_string(), ..StudyResult::default() };
        let result = concluded(result, &[shared("3GiB")], &[shared("2GiB"), shared("3GiB")]);
        assert!(result.conclusion.contains("transferred 2GiB"), "{}", result.conclusion);
    }
}
