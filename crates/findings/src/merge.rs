//! Findings from all sources, as a report has them: of the jobs and files of one run, or of the runs of a study.
//!
//! Invariant: of findings of one kind there is the first, which says how many more there are; the worst kind is first.

use std::path::Path;

use fiord_report::finding::ordered;
use fiord_report::{Code, Finding, Subject};

/// Findings by their kind.
#[derive(Debug, Default)]
pub struct Merged {
    kinds: Vec<Kind>,
}

/// Findings that say the same.
#[derive(Debug)]
struct Kind {
    first: Finding,
    /// What else of the same run they are about.
    others: Vec<Subject>,
    /// The runs of a study that have them.
    runs: Vec<String>,
}

impl Merged {
    /// Adds a finding of a run that is not one of several, or of none.
    pub fn add(&mut self, finding: Finding) {
        match self.kinds.iter_mut().find(|kind| are_same(&kind.first, &finding)) {
            Some(kind) if kind.first.subject == finding.subject => {}
            Some(kind) if kind.others.contains(&finding.subject) => {}
            Some(kind) => kind.others.push(finding.subject),
            None => self.kinds.push(Kind::of(finding)),
        }
    }

    /// Adds a finding of the run of this name.
    pub fn add_of_run(&mut self, run: &str, finding: &Finding) {
        let known = self.kinds.iter().position(|kind| are_same(&kind.first, finding));
        let index = known.unwrap_or_else(|| {
            self.kinds.push(Kind::of(finding.clone()));
            self.kinds.len() - 1
        });
        let runs = &mut self.kinds[index].runs;
        // Two files of one run.
        if runs.last().is_none_or(|last| last != run) {
            runs.push(run.to_string());
        }
    }

    /// All of them, each kind once and the worst first. If a warning and another finding are about the same option, the
    /// finding takes the place of the warning.
    pub fn findings(&self) -> Vec<Finding> {
        let (warnings, mut findings): (Vec<Finding>, Vec<Finding>) =
            self.kinds.iter().map(Kind::finding).partition(|finding| finding.code.is_about_text());
        let mut others = Vec::new();
        for warning in warnings {
            let same = |known: &&mut Finding| !known.option.is_empty() && known.option == warning.option;
            match findings.iter_mut().find(same).filter(|_| warning.code == Code::Option) {
                Some(known) if matches!(warning.subject, Subject::Place(_)) => {
                    known.subject = warning.subject
                }
                Some(_) => {}
                None => others.push(warning),
            }
        }
        findings.extend(others);
        ordered(&mut findings);
        findings
    }
}

impl Kind {
    fn of(first: Finding) -> Kind {
        Kind { first, others: Vec::new(), runs: Vec::new() }
    }

    /// The first, with the number of the others.
    fn finding(&self) -> Finding {
        let mut sentence = self.first.sentence.clone();
        if !self.others.is_empty() {
            let noun = match self.first.subject {
                Subject::Place(_) => "place",
                Subject::Target(_) => "target",
                Subject::Host(_) => "host",
                Subject::Job(_) | Subject::Run | Subject::Device(_) | Subject::Machine => "job",
            };
            sentence += &format!(" (and {})", more(self.others.len(), noun));
        }
        match self.runs.as_slice() {
            _ if self.first.code.is_about_text() => {}
            [] => {}
            [only] => sentence += &format!(" ({only})"),
            [first, others @ ..] => sentence += &format!(" ({first}, and {})", more(others.len(), "run")),
        }
        Finding { sentence, ..self.first.clone() }
    }
}

/// `1 more job`, `2 more jobs`.
pub fn more(count: usize, noun: &str) -> String {
    format!("{count} more {noun}{}", if count == 1 { "" } else { "s" })
}

/// The findings of a run from all sources.
pub fn merge(all: impl IntoIterator<Item = Finding>) -> Vec<Finding> {
    let all: Vec<Finding> = all.into_iter().collect();
    // What was to be expected, and came true.
    let has_stopped = |subject: &Subject| {
        all.iter().any(|finding| finding.code == Code::StoppedBySize && finding.subject == *subject)
    };
    let mut merged = Merged::default();
    let expected = |finding: &&Finding| finding.code != Code::StopsEarly || !has_stopped(&finding.subject);
    all.iter().filter(expected).for_each(|finding| merged.add(finding.clone()));
    merged.findings()
}

/// Whether findings are of one kind: of the same code, about the same option, and about jobs, runs or places, or about the
/// same target or one beside it, device or machine. Where a code has several sentences, and one subject may have them all,
/// their words must be the same.
fn are_same(one: &Finding, other: &Finding) -> bool {
    use Subject::{Device, Job, Machine, Place, Run, Target};
    let are_equal = one.sentence == other.sentence;
    let subjects = match (&one.subject, &other.subject) {
        (Job(_) | Run | Place(_), Job(_) | Run | Place(_)) => !one.code.is_about_text() || are_equal,
        (Target(path), Target(theirs)) if path != theirs => {
            are_equal && is_beside(path.as_ref(), theirs.as_ref())
        }
        (Target(_), Target(_)) | (Machine, Machine) => have_same_words(&one.sentence, &other.sentence),
        (Device(name), Device(theirs)) => name == theirs && have_same_words(&one.sentence, &other.sentence),
        _ => false,
    };
    one.code == other.code && one.option == other.option && subjects
}

/// Whether sentences differ in figures alone.
pub fn have_same_words(one: &str, other: &str) -> bool {
    fn words(sentence: &str) -> impl Iterator<Item = &str> {
        sentence.split_whitespace().filter(|word| !word.contains(|each: char| each.is_ascii_digit()))
    }
    words(one).eq(words(other))
}

/// Whether files are in the same directory, as those of a job or the scratch files of a study are.
fn is_beside(one: &Path, other: &Path) -> bool {
    one.parent().is_some_and(|parent| Some(parent) == other.parent())
}

#[cfg(test)]
mod tests {
    use super::*;
    use fiord_options::job;

    #[test]
    fn findings_merge_across_sections_and_files_and_say_how_many_there_are() {
        let depth = |job: &str, sentence: &str| {
            Finding::new(Code::DepthNotReached, Subject::Job(job.into()), sentence, "r")
        };
        let target = |path: &str, sentence: &str| {
            Finding::new(Code::Unwritten, Subject::Target(path.into()), sentence, "")
        };
        let device =
            |sentence: &str| Finding::new(Code::HostLimits, Subject::Device("sda".into()), sentence, "");
        let sentences = |all: Vec<Finding>| -> Vec<String> {
            merge(all)
                .into_iter()
                .map(|finding| format!("{}: {}", finding.subject, finding.sentence))
                .collect()
        };
        let sections =
            (0..24).map(|number| depth(&format!("s{number}"), &format!("{number} of 32"))).collect();
        assert_eq!(sentences(sections), ["job s0: 0 of 32 (and 23 more jobs)"]);
        assert_eq!(sentences(vec![depth("a", "1 of 32"); 32]), ["job a: 1 of 32"], "clones");
        let two = vec![depth("a", "1 of 32"), depth("b", "2 of 32"), depth("b", "2 of 32")];
        assert_eq!(sentences(two), ["job a: 1 of 32 (and 1 more job)"]);
        let files = vec![target("/d/a", "holes"), target("/d/b", "holes"), target("/e/c", "holes")];
        assert_eq!(sentences(files), ["/d/a: holes (and 1 more target)", "/e/c: holes"]);
        // Different limits of one device are different findings, and so are different uses of a target.
        let limits = vec![device("reads to 1MiB"), device("writes to 1MiB"), device("reads to 2MiB")];
        assert_eq!(sentences(limits), ["device sda: reads to 1MiB", "device sda: writes to 1MiB"]);
        assert_eq!(sentences(vec![target("/a", "mounted"), target("/a", "open")]).len(), 2);
        // Warnings of the same words at several places.
        let place = |line: usize, sentence: &str| {
            Finding::new(Code::Option, Subject::Place(format!("a.fio:{line}:1")), sentence, "")
        };
        let places = vec![place(1, "no effect"), place(5, "no effect"), place(9, "cut")];
        assert_eq!(sentences(places), ["a.fio:1:1: no effect (and 1 more place)", "a.fio:9:1: cut"]);
    }

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
