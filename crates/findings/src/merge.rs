//! Findings of one run from all sources, as its report has them.
//!
//! Invariant: no finding is repeated; the worst is first.

use fiord_report::finding::ordered;
use fiord_report::{Code, Finding, Subject};

/// All findings, each once and the worst first. If a warning and another finding are about the same option, the finding
/// takes the place of the warning.
pub fn merge(all: impl IntoIterator<Item = Finding>) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    for finding in all {
        if !findings.contains(&finding) {
            findings.push(finding);
        }
    }
    // What was to be expected, and came true.
    let stopped: Vec<Subject> = findings
        .iter()
        .filter(|finding| finding.code == Code::StoppedBySize)
        .map(|finding| finding.subject.clone())
        .collect();
    findings.retain(|finding| finding.code != Code::StopsEarly || !stopped.contains(&finding.subject));
    let (warnings, mut findings): (Vec<Finding>, Vec<Finding>) =
        findings.into_iter().partition(|finding| finding.code.is_about_text());
    let mut others = Vec::new();
    for warning in warnings {
        let same = |known: &&mut Finding| !known.option.is_empty() && known.option == warning.option;
        match findings.iter_mut().find(same).filter(|_| warning.code == Code::Option) {
            Some(known) if matches!(warning.subject, Subject::Place(_)) => known.subject = warning.subject,
            Some(_) => {}
            None => others.push(warning),
        }
    }
    findings.extend(others);
    ordered(&mut findings);
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use fiord_options::job;

    #[test]
    fn a_warning_gives_its_place_to_the_finding_about_the_same_option() {
        let job = || Subject::Job("a".to_string());
        let place = Subject::Place("a.fio:3:1".to_string());
        let depth = Finding::new(Code::SyncEngineDepth, job(), "x", "y").of_option(job::Queue::iodepth);
        let warning = Finding::new(Code::Option, place.clone(), "z", "").of_option(job::Queue::iodepth);
        let other = Finding::new(Code::Option, place.clone(), "z", "").of_option(job::Blocks::bs);
        let void = Finding::new(Code::InMemory, job(), "m", "");
        let all = [depth.clone(), warning, other.clone(), void.clone(), void.clone()];
        let placed = Finding { subject: place, ..depth.clone() };
        assert_eq!(merge(all), [void, placed, other]);
        // Nobody typed it.
        let warning = Finding::new(Code::Option, Subject::Run, "z", "").of_option(job::Queue::iodepth);
        assert_eq!(merge([depth.clone(), warning]), [depth]);
        assert_eq!(merge([]), []);
    }

    #[test]
    fn a_warning_of_another_kind_stands_beside_the_finding_about_the_same_option() {
        let place = || Subject::Place("a.fio:3:1".to_string());
        let unit = Finding::new(Code::KibIs1000, place(), "u", "").of_option(job::Blocks::bs);
        let misaligned =
            Finding::new(Code::Misaligned, Subject::Job("a".into()), "m", "").of_option(job::Blocks::bs);
        let warning = Finding::new(Code::Option, place(), "z", "").of_option(job::Amount::size);
        let size = Finding::new(Code::ValueCut, place(), "v", "").of_option(job::Amount::size);
        let all = [unit.clone(), misaligned.clone(), size.clone(), warning.clone()];
        assert_eq!(merge(all), [misaligned, unit, size, warning]);
    }

    #[test]
    fn a_job_that_stopped_at_its_size_is_not_said_to_be_about_to() {
        let of = |code: Code, name: &str| Finding::new(code, Subject::Job(name.into()), "s", "");
        let all = [of(Code::StopsEarly, "a"), of(Code::StopsEarly, "b"), of(Code::StoppedBySize, "a")];
        assert_eq!(merge(all.clone()), [all[1].clone(), all[2].clone()]);
    }
}
