//! A stage of CI, which passes, fails or is skipped with a reason.
//!
//! Invariant: every test that ran or was skipped is counted once, and a stage counts as one more.

use std::process::Command;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use crate::stage_times::Times;
use crate::tally::{Counts, Tally};
use crate::{machine, repo};

/// Lines of a stage's failures that the summary repeats.
const FAILURE_LINES_MAX: usize = 80;

/// The length of the last line about a stage that failed, in characters.
const VERDICT_LENGTH_MAX: usize = 400;

/// The result of a stage.
#[derive(Debug)]
pub enum StageResult {
    Passed(Tally),
    Failed(Tally, String),
    Skipped(String),
}

impl StageResult {
    /// The result of work without tests of its own.
    pub fn of(result: Result<(), String>) -> StageResult {
        match result {
            Ok(()) => StageResult::Passed(Tally::default()),
            Err(why) => StageResult::Failed(Tally::default(), why),
        }
    }

    /// This result and that of a second part of the stage. A part that was skipped counts as one skipped test of the other.
    pub fn and(self, other: StageResult) -> StageResult {
        use StageResult::{Failed, Passed, Skipped};
        match (self, other) {
            (Passed(a), Passed(b)) => Passed(a.with(b)),
            (Passed(a), Failed(b, why)) | (Failed(a, why), Passed(b)) => Failed(a.with(b), why),
            (Failed(a, first), Failed(b, second)) => Failed(a.with(b), format!("{first}\n{second}")),
            (Skipped(first), Skipped(second)) => Skipped(format!("{first}; {second}")),
            (Passed(a), Skipped(why)) | (Skipped(why), Passed(a)) => Passed(a.with(Tally::skipped(why))),
            (Failed(a, error), Skipped(why)) | (Skipped(why), Failed(a, error)) => {
                Failed(a.with(Tally::skipped(why)), error)
            }
        }
    }
}

/// How much a stage does that is too long to be done whole at each commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// The part that the commit chooses, so that all parts have their turn.
    OfCommit,
    All,
}

impl Share {
    /// Those of these that it has: of the share of a commit, one in `shares` of them.
    pub fn choose<T>(self, all: impl IntoIterator<Item = T>, shares: usize) -> Result<Vec<T>, String> {
        let first = match self {
            Share::All => return Ok(all.into_iter().collect()),
            Share::OfCommit => repo::commit_number()? % shares as u64,
        };
        let first = usize::try_from(first).unwrap_or_default();
        Ok(all.into_iter().skip(first).step_by(shares).collect())
    }
}

/// Everything that has run so far.
#[derive(Default)]
pub struct Stages {
    results: Mutex<Vec<Ended>>,
}

/// A stage that has ended.
struct Ended {
    name: &'static str,
    took: Duration,
    /// The share of the processors' time that was used meanwhile, by this and by other programs; `None` if the kernel does
    /// not say.
    busy_percent: Option<f64>,
    result: StageResult,
}

impl Stages {
    /// Runs one stage now.
    pub fn run(&self, name: &'static str, work: impl FnOnce() -> StageResult) {
        println!("\n=== {name}");
        let (start, before) = (Instant::now(), machine::cpu_ticks());
        let result = work();
        let busy_percent = machine::busy_percent_since(before);
        match &result {
            StageResult::Failed(_, why) => println!("{name}: failed: {why}"),
            StageResult::Skipped(why) => println!("{name}: skipped: {why}"),
            StageResult::Passed(_) => {}
        }
        println!("=== end of {name}");
        self.results().push(Ended { name, took: start.elapsed(), busy_percent, result });
    }

    fn results(&self) -> MutexGuard<'_, Vec<Ended>> {
        self.results.lock().expect("a stage that has ended was pushed")
    }

    /// The stages that passed, and their times.
    pub fn passed(&self) -> Vec<(&'static str, Duration)> {
        let results = self.results();
        let passed = results.iter().filter(|stage| matches!(stage.result, StageResult::Passed(_)));
        passed.map(|stage| (stage.name, stage.took)).collect()
    }

    /// Prints once more why stages failed, since a log may be kept by its end alone.
    fn print_failures(&self) {
        for Ended { name, result, .. } in self.results().iter() {
            let StageResult::Failed(tally, why) = result else { continue };
            tally.failures.iter().take(FAILURE_LINES_MAX).for_each(|line| println!("{name}: {line}"));
            println!("{name}: failed: {why}");
        }
    }

    /// A line for each stage that failed: why. One before it for each of its tests that failed, with its message.
    fn verdicts(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for Ended { name, result, .. } in self.results().iter() {
            let StageResult::Failed(tally, why) = result else { continue };
            let of_test = |test: &String| format!("FAILED {name}: {test}: {}", tally.message_of(test));
            lines.extend(tally.failed.iter().map(of_test));
            lines.push(format!("FAILED {name}: {}", why.lines().collect::<Vec<_>>().join("; ")));
        }
        lines.iter().map(|line| line.chars().take(VERDICT_LENGTH_MAX).collect()).collect()
    }

    /// Prints why tests were skipped, one line per stage, why stages failed, and the sum as the last line; returns whether
    /// nothing failed. The line of a stage has its time, and how busy the processors were. A stage that took much longer
    /// than `recorded` is reported as slow.
    pub fn summary(&self, recorded: &Times) -> bool {
        println!();
        let mut sum = Counts::default();
        let mut lines = Vec::new();
        for Ended { name, took, busy_percent, result } in self.results().iter() {
            let (word, counts) = match result {
                StageResult::Passed(tally) => {
                    ("passed".to_string(), Counts { passed: tally.counts.passed + 1, ..tally.counts })
                }
                StageResult::Failed(tally, _) => {
                    ("FAILED".to_string(), Counts { failed: tally.counts.failed + 1, ..tally.counts })
                }
                StageResult::Skipped(why) => {
                    (format!("skipped: {why}"), Counts { skipped: 1, ..Counts::default() })
                }
            };
            if let StageResult::Passed(tally) | StageResult::Failed(tally, _) = result {
                tally.reasons.iter().for_each(|reason| println!("skipped: {reason}"));
                let passed_alone =
                    |test| println!("unsteady: {name}: {test}: failed beside others, not alone");
                tally.unsteady.iter().for_each(passed_alone);
            }
            let remark =
                recorded.remark(name, *took).map_or_else(String::new, |remark| format!(", {remark}"));
            let busy = busy_percent.map_or_else(String::new, |busy| format!("{busy:.0} %"));
            lines.push(format!("{name:<18} {:>7.1} s {busy:>6}  {word}{remark}", took.as_secs_f64()));
            sum += counts;
        }
        lines.iter().for_each(|line| println!("{line}"));
        self.print_failures();
        self.verdicts().iter().for_each(|line| println!("{line}"));
        println!("{} passed, {} failed, {} skipped", sum.passed, sum.failed, sum.skipped);
        sum.failed == 0
    }
}

/// Runs a command with inherited output.
pub fn command(mut command: Command) -> Result<(), String> {
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{command:?}: {status}")),
        Err(error) => Err(format!("{command:?}: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_parts_of_a_stage_count() {
        let tally =
            |passed, failed| Tally { counts: Counts { passed, failed, skipped: 0 }, ..Tally::default() };
        let both = StageResult::Passed(tally(3, 0)).and(StageResult::Failed(tally(1, 2), "why".to_string()));
        let StageResult::Failed(sum, why) = both else { panic!("a part failed") };
        assert_eq!((sum.counts, why.as_str()), (Counts { passed: 4, failed: 2, skipped: 0 }, "why"));
        let half = StageResult::Skipped("no kernel".to_string()).and(StageResult::Passed(tally(3, 0)));
        let StageResult::Passed(sum) = half else { panic!("a part passed") };
        assert_eq!(
            (sum.counts, sum.reasons),
            (Counts { passed: 3, failed: 0, skipped: 1 }, vec!["no kernel".to_string()])
        );
    }

    #[test]
    fn the_last_lines_name_the_tests_that_failed_and_are_short() {
        let report = "failures:\n---- a::b stdout ----\nthread 'a::b' panicked at a.rs:1:2:\nwrong\nfailures:\n    a::b";
        let failures = report.lines().map(String::from).collect();
        let tally = Tally { failed: vec!["a::b".to_string()], failures, ..Tally::default() };
        let why = format!("cargo test: exit status: 101\n{}", "x".repeat(1000));
        let result = StageResult::Failed(tally, why);
        let ended = Ended { name: "guest", took: Duration::ZERO, busy_percent: None, result };
        let [of_test, of_stage] = &Stages { results: Mutex::new(vec![ended]) }.verdicts()[..] else {
            panic!("a stage failed, with one test")
        };
        assert_eq!(of_test, "FAILED guest: a::b: thread 'a::b' panicked at a.rs:1:2: wrong");
        assert!(of_stage.starts_with("FAILED guest: cargo test: exit status: 101; xx"), "{of_stage}");
        assert_eq!(of_stage.len(), VERDICT_LENGTH_MAX);
    }
}
