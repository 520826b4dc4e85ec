//! A stage of CI, which passes, fails or is skipped with a reason.
//!
//! Invariant: every test that ran or was skipped is counted once, and a stage counts as one more.

use std::fs;
use std::io::{BufRead, BufReader};
use std::ops::AddAssign;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use fiord_testing::Skip;

use crate::machine;
use crate::repo;
use crate::stage_times::Times;

/// Lines of a stage's failures that the summary repeats.
const FAILURE_LINES_MAX: usize = 80;

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

/// The results of a stage's tests.
#[derive(Debug, Default)]
pub struct Tally {
    pub counts: Counts,
    /// `NAME: REASON` for each that was skipped.
    pub reasons: Vec<String>,
    /// What the test programs reported of the tests that failed, line by line.
    pub failures: Vec<String>,
}

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

/// Everything that has run so far.
#[derive(Default)]
pub struct Stages {
    results: Vec<Ended>,
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
    pub fn run(&mut self, name: &'static str, work: impl FnOnce() -> StageResult) {
        println!("\n=== {name}");
        let (start, before) = (Instant::now(), machine::cpu_ticks());
        let result = work();
        let busy_percent = machine::busy_percent_since(before);
        match &result {
            StageResult::Failed(_, why) => println!("{name}: failed: {why}"),
            StageResult::Skipped(why) => println!("{name}: skipped: {why}"),
            StageResult::Passed(_) => {}
        }
        self.results.push(Ended { name, took: start.elapsed(), busy_percent, result });
    }

    /// The stages that passed, and their times.
    pub fn passed(&self) -> Vec<(&'static str, Duration)> {
        let passed = self.results.iter().filter(|stage| matches!(stage.result, StageResult::Passed(_)));
        passed.map(|stage| (stage.name, stage.took)).collect()
    }

    /// Prints once more why stages failed, since a log may be kept by its end alone.
    fn print_failures(&self) {
        for Ended { name, result, .. } in &self.results {
            let StageResult::Failed(tally, why) = result else { continue };
            tally.failures.iter().take(FAILURE_LINES_MAX).for_each(|line| println!("{name}: {line}"));
            println!("{name}: failed: {why}");
        }
    }

    /// Prints why tests were skipped, one line per stage, and the sum as the last line; returns whether nothing failed.
    /// The line has the stage's time, and how busy the processors were. A stage that took much longer than `recorded` is
    /// reported as slow.
    pub fn summary(&self, recorded: &Times) -> bool {
        println!();
        let mut sum = Counts::default();
        let mut lines = Vec::new();
        for Ended { name, took, busy_percent, result } in &self.results {
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
            }
            let remark =
                recorded.remark(name, *took).map_or_else(String::new, |remark| format!(", {remark}"));
            let busy = busy_percent.map_or_else(String::new, |busy| format!("{busy:.0} %"));
            lines.push(format!("{name:<18} {:>7.1} s {busy:>6}  {word}{remark}", took.as_secs_f64()));
            sum += counts;
        }
        self.print_failures();
        lines.iter().for_each(|line| println!("{line}"));
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

/// Runs a command that runs tests, and counts them. Its output is passed on; skipped tests and their reasons are in the
/// record that they write (`fiord_testing`).
pub fn tests(mut command: Command) -> StageResult {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let record = repo::target_dir().join(format!("skips-{}-{count}", std::process::id()));
    // Left by an earlier process with the same number.
    let _ = fs::remove_file(&record);
    let shown = format!("{command:?}");
    let mut child = match command.env(fiord_testing::RECORD, &record).stdout(Stdio::piped()).spawn() {
        Ok(child) => child,
        Err(error) => return StageResult::Failed(Tally::default(), format!("{shown}: {error}")),
    };
    let mut summaries = Counts::default();
    let mut failures = Failures::default();
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            println!("{line}");
            summaries += summary_line(&line).unwrap_or_default();
            failures.read(line);
        }
    }
    let status = child.wait();
    let skips = fiord_testing::recorded(&record);
    let _ = fs::remove_file(&record);
    let counted = match &skips {
        Ok(skips) => Tally::of(summaries, skips),
        Err(_) => Tally { counts: summaries, ..Tally::default() },
    };
    let tally = Tally { failures: failures.lines, ..counted };
    match (status, skips) {
        (Ok(status), Ok(_)) if status.success() => StageResult::Passed(tally),
        (Ok(status), Ok(_)) => StageResult::Failed(tally, format!("{shown}: {status}")),
        (Err(error), _) => StageResult::Failed(tally, format!("{shown}: {error}")),
        (_, Err(error)) => StageResult::Failed(tally, format!("{}: {error}", record.display())),
    }
}

impl Tally {
    /// One test that was skipped.
    fn skipped(why: String) -> Tally {
        let counts = Counts { skipped: 1, ..Counts::default() };
        Tally { counts, reasons: vec![why], failures: Vec::new() }
    }

    /// The tests of both.
    fn with(mut self, other: Tally) -> Tally {
        let Tally { counts, reasons, failures } = other;
        self.counts += counts;
        self.reasons.extend(reasons);
        self.failures.extend(failures);
        self
    }

    /// Counts from summaries and skips: libtest counts a test that skipped itself as passed, libtest-mimic as ignored.
    fn of(summaries: Counts, skips: &[Skip]) -> Tally {
        let Counts { passed, failed, skipped: ignored } = summaries;
        let skipped = ignored.max(skips.len() as u64);
        let passed = (passed + ignored).saturating_sub(skipped);
        let reasons = skips.iter().map(|Skip { program, test, why }| {
            // Cargo adds a hash to the name of a test program.
            let program = program.rsplit_once('-').map_or(program.as_str(), |(name, _)| name);
            format!("{program}: {test}: {why}")
        });
        let counts = Counts { passed, failed, skipped };
        Tally { counts, reasons: reasons.collect(), failures: Vec::new() }
    }
}

/// The lines from `failures:` to the summary of each test program.
#[derive(Default)]
struct Failures {
    inside: bool,
    lines: Vec<String>,
}

impl Failures {
    fn read(&mut self, line: String) {
        self.inside = (self.inside || line == "failures:") && !line.starts_with("test result: ");
        if self.inside && !line.is_empty() {
            self.lines.push(line);
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
    fn what_programs_report_of_failed_tests_is_kept() {
        let mut failures = Failures::default();
        let output = "test a ... FAILED\n\nfailures:\n\n---- a stdout ----\nat a.rs:1\n\nfailures:\n    a\n\n\
                      test result: FAILED. 0 passed\ntest b ... ok\ntest result: ok. 1 passed";
        output.lines().for_each(|line| failures.read(line.to_string()));
        assert_eq!(failures.lines, ["failures:", "---- a stdout ----", "at a.rs:1", "failures:", "    a"]);
    }

    #[test]
    fn a_test_that_recorded_a_skip_is_not_counted_as_passed() {
        let skip = |test: &str| Skip {
            program: "it-0123abcd".to_string(),
            test: test.to_string(),
            why: "no loop device".to_string(),
        };
        let counts = |passed, skipped| Counts { passed, failed: 1, skipped };
        let libtest = Tally::of(counts(5, 0), &[skip("a"), skip("b")]);
        assert_eq!(libtest.counts, counts(3, 2));
        assert_eq!(libtest.reasons, ["it: a: no loop device", "it: b: no loop device"]);
        let mimic = Tally::of(counts(3, 2), &[skip("a"), skip("b")]);
        assert_eq!(mimic.counts, counts(3, 2));
        assert_eq!(Tally::of(counts(3, 2), &[]).counts, counts(3, 2), "ignored without a record");
    }

    #[test]
    fn a_skip_reaches_the_tally_through_the_record() {
        let mut command = Command::new("sh");
        let line = format!(
            r#"printf 'it-1\ta\tno disk\n' >> "${}"; echo "test result: ok. 2 passed; 0 failed""#,
            fiord_testing::RECORD
        );
        command.args(["-c", &line]);
        let StageResult::Passed(tally) = tests(command) else { panic!("the command succeeds") };
        assert_eq!(tally.counts, Counts { passed: 1, failed: 0, skipped: 1 });
        assert_eq!(tally.reasons, ["it: a: no disk"]);
    }
}
