//! A job whose name contradicts its access pattern.
//!
//! Invariant: only words that are one of fio's own for a pattern count, so that a name in plain words is never held
//! against a job.

use fiord_options::job;
use fiord_plan::{Direction, Job, Pattern};
use fiord_report::{Code, Finding, path};

use crate::subject;

/// The words that name a pattern: whether it is random or sequential, and its directions.
const WORDS: [(&str, Option<bool>, [bool; 2]); 11] = [
    ("randread", Some(true), [true, false]),
    ("randwrite", Some(true), [false, true]),
    ("randrw", Some(true), [true, true]),
    ("seqread", Some(false), [true, false]),
    ("seqwrite", Some(false), [false, true]),
    ("seqrw", Some(false), [true, true]),
    ("random", Some(true), [false, false]),
    ("sequential", Some(false), [false, false]),
    ("read", None, [true, false]),
    ("write", None, [false, true]),
    ("rw", None, [true, true]),
];

/// The first word of the name that contradicts the job.
pub(super) fn contradicts(job: &Job) -> Option<Finding> {
    let directions = match job.access.pattern {
        Pattern::Only(Direction::Read) => [true, false],
        Pattern::Only(Direction::Write) => [false, true],
        Pattern::Mixed => [true, true],
        Pattern::Only(Direction::Trim) | Pattern::TrimThenWrite => return None,
    };
    let name = path::text(&job.name).to_ascii_lowercase();
    let words: Vec<&str> = name.split(|letter: char| !letter.is_ascii_alphanumeric()).collect();
    let said = || words.iter().filter_map(|word| WORDS.iter().find(|(known, ..)| known == word));
    // A name with several directions (`read-after-write`) describes a sequence, not a pattern.
    let of_directions = said().filter(|(_, _, directions)| *directions != [false; 2]).count();
    let wrong = |(_, random, said): &&(&str, Option<bool>, [bool; 2])| {
        let other_way = of_directions == 1 && *said != [false; 2] && *said != directions;
        other_way || random.is_some_and(|random| random != job.access.random)
    };
    let (word, ..) = said().find(wrong)?;
    let sentence = format!("its name suggests {word}, but its rw is {}", job.presentation.mode);
    Some(
        Finding::new(Code::NameContradicts, subject::job(job), sentence, "correct rw, or rename the job")
            .of_option(job::Access::rw),
    )
}

#[cfg(test)]
mod tests {
    use crate::testing::plan;

    use super::*;

    fn found(name: &'static str, rw: &str) -> bool {
        let plan = plan(&[(name, &[("rw", rw)])]);
        contradicts(&plan.jobs[0]).is_some()
    }

    #[test]
    fn a_name_that_contradicts_the_pattern_is_found() {
        for (name, rw) in [
            ("randwrite", "randread"),
            ("4k-randread-qd32", "read"),
            ("seqread", "randread"),
            ("write_test", "read"),
            ("random", "write"),
            ("Read", "randrw"),
        ] {
            assert!(found(name, rw), "{name} {rw}");
        }
    }

    #[test]
    fn a_name_that_agrees_or_says_nothing_is_not() {
        for (name, rw) in [
            ("randwrite", "randwrite"),
            ("read", "randread"),
            ("rand-read", "randread"),
            ("job1", "write"),
            ("spread", "write"),
            ("read-while-write", "read"),
            ("rw", "randrw"),
            ("trim", "trim"),
        ] {
            assert!(!found(name, rw), "{name} {rw}");
        }
    }
}
