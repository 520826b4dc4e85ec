//! A job whose name contradicts its access pattern, block size, queue depth or kind of I/O.
//!
//! Invariant: only words that are usual for one of these count, so that a name in plain words is never held against a
//! job.

use fiord_options::{Spec, job};
use fiord_plan::{Direction, Job, Pattern};
use fiord_report::table::shown_bytes;
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

/// A number after one of these, in the same word or the next, is a queue depth.
const DEPTH_WORDS: [&str; 2] = ["qd", "iodepth"];

/// The same for a block size.
const BLOCK_WORDS: [&str; 1] = ["bs"];

/// The first part of the name that contradicts the job: its pattern, block size, queue depth, or kind of I/O.
pub(super) fn contradicts(job: &Job) -> Option<Finding> {
    let name = path::text(&job.name).to_ascii_lowercase();
    let words: Vec<&str> =
        name.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let checks = [pattern, block_size, depth, direct];
    let Contradiction { option, said, is } = checks.iter().find_map(|check| check(job, &words))?;
    let sentence = format!("its name suggests {said}, but its {} is {is}", option.name);
    let remedy = "correct the option, or rename the job";
    Some(Finding::new(Code::NameContradicts, subject::job(job), sentence, remedy).of_option(option))
}

/// What a name says of an option, and what the option is.
struct Contradiction {
    option: &'static Spec,
    said: String,
    is: String,
}

fn pattern(job: &Job, words: &[&str]) -> Option<Contradiction> {
    let directions = match job.access.pattern {
        Pattern::Only(Direction::Read) => [true, false],
        Pattern::Only(Direction::Write) => [false, true],
        Pattern::Mixed => [true, true],
        Pattern::Only(Direction::Trim) | Pattern::TrimThenWrite => return None,
    };
    let said = || words.iter().filter_map(|word| WORDS.iter().find(|(known, ..)| known == word));
    // A name with several directions (`read-after-write`) describes a sequence, not a pattern.
    let of_directions = said().filter(|(_, _, directions)| *directions != [false; 2]).count();
    let wrong = |(_, random, said): &&(&str, Option<bool>, [bool; 2])| {
        let other_way = of_directions == 1 && *said != [false; 2] && *said != directions;
        other_way || random.is_some_and(|random| random != job.access.random)
    };
    let (word, ..) = said().find(wrong)?;
    Some(Contradiction {
        option: job::Access::rw,
        said: (*word).to_string(),
        is: job.presentation.mode.clone(),
    })
}

/// A block size: after `bs`, or beside the name of a pattern (`4k-randread`). A job with several has none to compare.
fn block_size(job: &Job, words: &[&str]) -> Option<Contradiction> {
    let used = Direction::ALL.into_iter().filter(|direction| job.issues(*direction));
    let mut sizes = used.map(|direction| job.presentation.block_bytes[direction.index()]);
    let (least, most) = sizes.next()?;
    if least != most || sizes.any(|other| other != (least, most)) {
        return None;
    }
    let is_pattern = |at: Option<usize>| {
        at.and_then(|at| words.get(at)).is_some_and(|word| WORDS.iter().any(|(known, ..)| known == word))
    };
    let limits = &job.limits;
    let is_amount = |bytes: u64| [limits.loop_bytes, limits.pass_bytes].contains(&bytes);
    let said = words.iter().enumerate().find_map(|(at, word)| match numbered(words, at, &BLOCK_WORDS) {
        Some(text) => text.parse().ok().or_else(|| bytes(text)),
        None if is_pattern(at.checked_sub(1)) || is_pattern(Some(at + 1)) => {
            bytes(word).filter(|said| said.is_power_of_two() && !is_amount(*said))
        }
        None => None,
    })?;
    (said != least).then(|| Contradiction {
        option: job::Blocks::bs,
        said: format!("blocks of {}", shown_bytes(said)),
        is: shown_bytes(least),
    })
}

fn depth(job: &Job, words: &[&str]) -> Option<Contradiction> {
    let asked = job.presentation.requested_iodepth;
    let said: u32 = (0..words.len()).find_map(|at| numbered(words, at, &DEPTH_WORDS)?.parse().ok())?;
    (said != asked).then(|| Contradiction {
        option: job::Queue::iodepth,
        said: format!("a queue depth of {said}"),
        is: asked.to_string(),
    })
}

fn direct(job: &Job, words: &[&str]) -> Option<Contradiction> {
    let says = |word: &str| words.contains(&word);
    let said = match (says("direct"), says("buffered")) {
        (true, false) => true,
        (false, true) => false,
        _ => return None,
    };
    (subject::does_io(job) && said != job.files.direct).then(|| Contradiction {
        option: job::Access::direct,
        said: format!("{} I/O", if said { "direct" } else { "buffered" }),
        is: u8::from(job.files.direct).to_string(),
    })
}

/// What follows one of these words, in the same word or as the next, if it begins with a digit.
fn numbered<'w>(words: &[&'w str], at: usize, of: &[&str]) -> Option<&'w str> {
    let rest = of.iter().find_map(|prefix| words[at].strip_prefix(prefix))?;
    let text = if rest.is_empty() { words.get(at + 1).copied()? } else { rest };
    text.starts_with(|letter: char| letter.is_ascii_digit()).then_some(text)
}

/// The bytes of `4k`, `128k` or `1m`, with or without `b` or `ib` after it.
fn bytes(word: &str) -> Option<u64> {
    let word = word.strip_suffix("ib").or_else(|| word.strip_suffix('b')).unwrap_or(word);
    let (number, shift) = match word.strip_suffix('k') {
        Some(number) => (number, 10),
        None => (word.strip_suffix('m')?, 20),
    };
    number.parse::<u64>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use crate::testing::plan;

    use super::*;

    fn found(name: &'static str, rw: &str) -> bool {
        contradicts(&plan(&[(name, &[("rw", rw)])]).jobs[0]).is_some()
    }

    fn sentence(name: &'static str, options: &[(&'static str, &str)]) -> Option<String> {
        let common = [("ioengine", "libaio"), ("filename", "/data/f"), ("size", "64m")];
        let options: Vec<(&'static str, &str)> = common.iter().chain(options).copied().collect();
        contradicts(&plan(&[(name, &options)]).jobs[0]).map(|finding| finding.sentence)
    }

    #[test]
    fn a_name_with_another_block_size_depth_or_kind_of_io_is_found() {
        let options = [("rw", "randread"), ("bs", "8k"), ("iodepth", "4"), ("direct", "1")];
        for (name, said) in [
            ("randread-4k", "blocks of 4KiB, but its bs is 8KiB"),
            ("128kib_randread", "blocks of 128KiB, but its bs is 8KiB"),
            ("job-bs=512", "blocks of 512B, but its bs is 8KiB"),
            ("bs1m", "blocks of 1MiB, but its bs is 8KiB"),
            ("8k-randread-qd32", "a queue depth of 32, but its iodepth is 4"),
            ("iodepth=1", "a queue depth of 1, but its iodepth is 4"),
            ("buffered", "buffered I/O, but its direct is 1"),
        ] {
            let expected = format!("its name suggests {said}");
            assert_eq!(sentence(name, &options), Some(expected), "{name}");
        }
        assert!(sentence("direct", &[("rw", "read")]).is_some());
    }

    #[test]
    fn numbers_that_stand_for_something_else_or_agree_are_not_held_against_a_job() {
        let options = [("rw", "randread"), ("bs", "8k"), ("iodepth", "4"), ("direct", "1")];
        for name in [
            "8k-randread-qd4",
            "randread-8kb-direct",
            "randread-64m",
            "randread-3k",
            "disk-4k-sectors",
            "raid5-64k-chunk",
            "qd",
            "bs",
            "direct-or-buffered",
            "randread-1",
        ] {
            assert_eq!(sentence(name, &options), None, "{name}");
        }
        let mixed = [("rw", "randread"), ("bsrange", "4k-64k")];
        assert_eq!(sentence("randread-8k", &mixed), None, "several sizes");
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
