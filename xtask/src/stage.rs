//! A stage of CI: something that runs, takes time, and passes, fails or is skipped with a reason.
//!
//! Invariant: every test that ran or was skipped is counted once, and a stage counts as one more.

use std::fs;
use std::io::{BufRead, BufReader};
use std::ops::AddAssign;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::repo;

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

/// How a stage ended.
#[derive(Debug)]
pub enum Ending {
    Passed(Counts),
    Failed(Counts, String),
    Skipped(String),
}

impl Ending {
    /// The ending of work without tests of its own.
    pub fn of(result: Result<(), String>) -> Ending {
        match result {
            Ok(()) => Ending::Passed(Counts::default()),
            Err(why) => Ending::Failed(Counts::default(), why),
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

    /// Prints one line per stage and the sum as the last line; whether nothing failed.
    pub fn summary(&self, reasons: &[String]) -> bool {
        println!();
        for reason in reasons {
            println!("skipped: {reason}");
        }
        let mut sum = Counts::default();
        for (name, took, ending) in &self.ended {
            let (word, counts) = match ending {
                Ending::Passed(counts) => {
                    ("passed".to_string(), Counts { passed: counts.passed + 1, ..*counts })
                }
                Ending::Failed(counts, _) => {
                    ("FAILED".to_string(), Counts { failed: counts.failed + 1, ..*counts })
                }
                Ending::Skipped(why) => {
                    (format!("skipped: {why}"), Counts { skipped: 1, ..Counts::default() })
                }
            };
            println!("{name:<8} {:>7.1} s  {word}", took.as_secs_f64());
            sum += counts;
        }
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

/// Runs a command that prints libtest's summaries, and counts them. Output goes through as it comes.
pub fn tests(mut command: Command) -> Ending {
    let shown = format!("{command:?}");
    let mut child = match command.stdout(Stdio::piped()).spawn() {
        Ok(child) => child,
        Err(error) => return Ending::Failed(Counts::default(), format!("{shown}: {error}")),
    };
    let mut counts = Counts::default();
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            println!("{line}");
            counts += summary_line(&line).unwrap_or_default();
        }
    }
    match child.wait() {
        Ok(status) if status.success() => Ending::Passed(counts),
        Ok(status) => Ending::Failed(counts, format!("{shown}: {status}")),
        Err(error) => Ending::Failed(counts, format!("{shown}: {error}")),
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

/// The file that tests append `NAME: REASON` to when they cannot run here (no loop device, no root).
///
/// libtest knows no such outcome, so a test that returns early would count as passed: it says so here instead.
pub struct Skips(PathBuf);

impl Skips {
    /// The variable that tells tests where the file is.
    pub const VARIABLE: &str = "FIORD_SKIPS";

    /// An empty file.
    pub fn new() -> Result<Skips, String> {
        let path = repo::target_dir().join("skipped-tests.txt");
        fs::create_dir_all(repo::target_dir()).map_err(|error| error.to_string())?;
        fs::write(&path, "").map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Skips(path))
    }

    /// The command, told about the file.
    pub fn tell(&self, mut command: Command) -> Command {
        command.env(Skips::VARIABLE, &self.0);
        command
    }

    /// One line per test that did not run.
    pub fn reasons(&self) -> Vec<String> {
        let text = fs::read_to_string(&self.0).unwrap_or_default();
        text.lines().map(String::from).collect()
    }
}

/// Moves tests that said they did not run from the passed to the skipped.
pub fn uncount(ending: Ending, reasons: usize) -> Ending {
    let moved = |counts: Counts| Counts {
        passed: counts.passed.saturating_sub(reasons as u64),
        skipped: counts.skipped + reasons as u64,
        ..counts
    };
    match ending {
        Ending::Passed(counts) => Ending::Passed(moved(counts)),
        Ending::Failed(counts, why) => Ending::Failed(moved(counts), why),
        Ending::Skipped(why) => Ending::Skipped(why),
    }
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
    fn a_test_that_said_it_did_not_run_is_not_counted_as_passed() {
        let Ending::Passed(counts) = uncount(Ending::Passed(Counts { passed: 5, failed: 0, skipped: 1 }), 2)
        else {
            panic!("the ending changed");
        };
        assert_eq!(counts, Counts { passed: 3, failed: 0, skipped: 3 });
    }
}
