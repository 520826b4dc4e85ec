//! A stage of CI: something that runs, takes time, and passes, fails or is skipped with a reason.
//!
//! Invariant: every test that ran or was skipped is counted once, and a stage counts as one more.

use std::io::{BufRead, BufReader};
use std::ops::AddAssign;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How many checks passed, failed and were skipped.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    pub passed: u64,
    pub failed: u64,
    pub skipped: u64,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        let Counts { passed, failed, skipped } = other;
        self.passed += passed;
        self.failed += failed;
        self.skipped += skipped;
    }
}

/// What the tests of a stage came to.
#[derive(Debug, Default)]
pub struct Tally {
    pub counts: Counts,
    /// `NAME: REASON` for each that was skipped.
    pub reasons: Vec<String>,
}

/// How a stage ended.
#[derive(Debug)]
pub enum Ending {
    Passed(Tally),
    Failed(Tally, String),
    Skipped(String),
}

impl Ending {
    /// The ending of work without tests of its own.
    pub fn of(result: Result<(), String>) -> Ending {
        match result {
            Ok(()) => Ending::Passed(Tally::default()),
            Err(why) => Ending::Failed(Tally::default(), why),
        }
    }
}

/// Everything that has run so far.
#[derive(Default)]
pub struct Stages {
    ended: Vec<(&'static str, Duration, Ending)>,
}

impl Stages {
    /// Runs one stage now.
    pub fn run(&mut self, name: &'static str, work: impl FnOnce() -> Ending) {
        println!("\n=== {name}");
        let start = Instant::now();
        let ending = work();
        match &ending {
            Ending::Failed(_, why) => println!("{name}: failed: {why}"),
            Ending::Skipped(why) => println!("{name}: skipped: {why}"),
            Ending::Passed(_) => {}
        }
        self.ended.push((name, start.elapsed(), ending));
    }

    /// Prints why tests were skipped, one line per stage, and the sum as the last line; whether nothing failed.
    pub fn summary(&self) -> bool {
        println!();
        let mut sum = Counts::default();
        let mut lines = Vec::new();
        for (name, took, ending) in &self.ended {
            let (word, counts) = match ending {
                Ending::Passed(tally) => {
                    ("passed".to_string(), Counts { passed: tally.counts.passed + 1, ..tally.counts })
                }
                Ending::Failed(tally, _) => {
                    ("FAILED".to_string(), Counts { failed: tally.counts.failed + 1, ..tally.counts })
                }
                Ending::Skipped(why) => {
                    (format!("skipped: {why}"), Counts { skipped: 1, ..Counts::default() })
                }
            };
            if let Ending::Passed(tally) | Ending::Failed(tally, _) = ending {
                tally.reasons.iter().for_each(|reason| println!("skipped: {reason}"));
            }
            lines.push(format!("{name:<12} {:>7.1} s  {word}", took.as_secs_f64()));
            sum += counts;
        }
        lines.iter().for_each(|line| println!("{line}"));
        println!("{} passed, {} failed, {} skipped", sum.passed, sum.failed, sum.skipped);
        sum.failed == 0
    }
}

/// Runs a command whose output goes straight through.
pub fn command(mut command: Command) -> Result<(), String> {
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{command:?}: {status}")),
        Err(error) => Err(format!("{command:?}: {error}")),
    }
}

/// Runs a command that prints as libtest does with `--show-output`, and counts. Output goes through as it comes,
/// except what passing tests print.
pub fn tests(mut command: Command) -> Ending {
    let shown = format!("{command:?}");
    let mut child = match command.stdout(Stdio::piped()).spawn() {
        Ok(child) => child,
        Err(error) => return Ending::Failed(Tally::default(), format!("{shown}: {error}")),
    };
    let mut reader = Reader::default();
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            if reader.read(&line) {
                println!("{line}");
            }
        }
    }
    match child.wait() {
        Ok(status) if status.success() => Ending::Passed(reader.tally),
        Ok(status) => Ending::Failed(reader.tally, format!("{shown}: {status}")),
        Err(error) => Ending::Failed(reader.tally, format!("{shown}: {error}")),
    }
}

/// Reads libtest's output.
///
/// libtest knows no test that finds that it cannot run here, so such a test prints `skipped: WHY` and passes; it is
/// moved from the passed to the skipped.
#[derive(Default)]
struct Reader {
    tally: Tally,
    /// Inside what passing tests have printed.
    in_successes: bool,
    /// The passing test whose output is being read; empty once it has been counted as skipped.
    test: String,
    /// How many have been since the last summary, which counts them as passed.
    skipped: u64,
}

impl Reader {
    /// Takes a line; whether it is worth showing.
    fn read(&mut self, line: &str) -> bool {
        if let Some(counts) = summary_line(line) {
            let skipped = std::mem::take(&mut self.skipped);
            let passed = counts.passed.saturating_sub(skipped);
            self.tally.counts += Counts { passed, skipped: counts.skipped + skipped, ..counts };
            self.in_successes = false;
            return true;
        }
        match line {
            "successes:" => self.in_successes = true,
            "failures:" => self.in_successes = false,
            _ => {}
        }
        if let Some((name, ending)) = line.strip_prefix("test ").and_then(|rest| rest.split_once(" ... ")) {
            let reason = ["pending: ", "skipped: "].iter().find_map(|start| ending.strip_prefix(start));
            self.tally.reasons.extend(reason.map(|reason| format!("{name}: {reason}")));
        }
        if self.in_successes {
            self.read_success(line);
        }
        !self.in_successes
    }

    fn read_success(&mut self, line: &str) {
        if let Some(name) = line.strip_prefix("---- ").and_then(|rest| rest.strip_suffix(" stdout ----")) {
            self.test = name.to_string();
        }
        let Some(why) = line.strip_prefix("skipped: ") else { return };
        if !self.test.is_empty() {
            let name = std::mem::take(&mut self.test);
            self.tally.reasons.push(format!("{name}: {why}"));
            self.skipped += 1;
        }
    }
}

/// The figures of `test result: ok. 3 passed; 0 failed; 1 ignored; …`.
fn summary_line(line: &str) -> Option<Counts> {
    let (_, figures) = line.trim().strip_prefix("test result: ")?.split_once(". ")?;
    let mut counts = Counts::default();
    for part in figures.split(';') {
        let Some((figure, word)) = part.trim().split_once(' ') else { continue };
        let figure = figure.parse().unwrap_or(0);
        match word {
            "passed" => counts.passed = figure,
            "failed" => counts.failed = figure,
            "ignored" => counts.skipped = figure,
            _ => {}
        }
    }
    Some(counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libtest_summaries_are_counted() {
        let line = "test result: FAILED. 12 passed; 3 failed; 4 ignored; 0 measured; 0 filtered out; finished in 0.1s";
        assert_eq!(summary_line(line), Some(Counts { passed: 12, failed: 3, skipped: 4 }));
        assert_eq!(summary_line("test a ... ok"), None);
    }

    #[test]
    fn a_test_that_says_it_was_skipped_is_not_counted_as_passed() {
        let mut reader = Reader::default();
        let text = "test a ... ok\n\nsuccesses:\n\n---- b stdout ----\nskipped: no loop device\nskipped: again\n\n\
                    successes:\n    a\n    b\n\ntest result: ok. 2 passed; 0 failed; 0 ignored; 0 measured\n\
                    test c ... pending: not built\ntest result: ok. 0 passed; 0 failed; 1 ignored; 0 measured";
        let shown: Vec<&str> = text.lines().filter(|line| reader.read(line)).collect();
        assert_eq!(reader.tally.counts, Counts { passed: 1, failed: 0, skipped: 2 });
        assert_eq!(reader.tally.reasons, ["b: no loop device", "c: not built"]);
        assert_eq!(shown.len(), 5, "{shown:?}");
    }

    #[test]
    fn why_a_test_failed_is_shown_although_others_have_passed() {
        let mut reader = Reader::default();
        let text = "successes:\n\n---- a stdout ----\nchatter\n\nsuccesses:\n    a\n\nfailures:\n\n\
                    ---- b stdout ----\nwhy\n\ntest result: FAILED. 1 passed; 1 failed; 0 ignored";
        let shown: Vec<&str> = text.lines().filter(|line| reader.read(line)).collect();
        assert!(shown.contains(&"why") && !shown.contains(&"chatter"), "{shown:?}");
    }
}
