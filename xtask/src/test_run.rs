//! Running a command that runs tests, and counting them.
//!
//! Invariant: a test that ended is counted, even if its program does not come to print its sums. A command that prints
//! nothing for a long time is ended, and what it waited for is printed.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::process;
use crate::repo;
use crate::stage::StageResult;
use crate::tally::{Counts, Tally};

/// How long a command may print nothing until it is taken for hung. The longest that one is silent is while cargo compiles,
/// which has been seen to take six minutes.
const SILENCE_MAX: Duration = Duration::from_secs(20 * 60);

/// How long the output of a command that was killed may stay open.
const CLOSED_WITHIN: Duration = Duration::from_secs(10);

/// How many tests that failed are run again.
const RUN_AGAIN_MAX: usize = 5;

/// The exit status of `cargo test` if tests failed.
const TESTS_FAILED: i32 = 101;

/// The length of a command in a message, in characters.
const SHOWN_LENGTH_MAX: usize = 160;

/// A command that has run tests.
#[derive(Debug)]
pub struct TestRun {
    /// Its tests.
    pub tally: Tally,
    /// The tests that had ended in a program that did not come to print its sums.
    pub cut_off: Vec<String>,
    status: Result<ExitStatus, String>,
    shown: String,
    /// The test that ran when it ended, if its program runs one at a time.
    ran: Option<String>,
    /// The last line that it printed as an error.
    last_error: Option<String>,
}

impl TestRun {
    /// Its exit status; `None` if it has none.
    pub fn code(&self) -> Option<i32> {
        self.status.as_ref().ok().and_then(ExitStatus::code)
    }

    /// Whether it ran at least one test, and none failed.
    fn passed(&self) -> bool {
        let Counts { passed, failed, skipped } = self.tally.counts;
        self.code() == Some(0) && failed == 0 && passed + skipped > 0
    }

    /// Whether it ended as `cargo test` does if tests failed, and every failure is that of a test that has a name.
    fn failed_by_tests_alone(&self) -> bool {
        let Tally { counts, failed, .. } = &self.tally;
        let is_named = !failed.is_empty() && failed.len() as u64 == counts.failed;
        self.code() == Some(TESTS_FAILED) && is_named && self.cut_off.is_empty()
    }

    /// Whether it passed.
    pub fn result(self) -> StageResult {
        let TestRun { tally, status, shown, ran, last_error, .. } = self;
        let why = match status {
            Ok(status) if status.success() => return StageResult::Passed(tally),
            Ok(status) => format!("{shown}: {status}"),
            Err(why) => format!("{shown}: {why}"),
        };
        let ran = ran.map(|test| format!("{test} had not ended"));
        let lines: Vec<String> = [Some(why), ran, last_error].into_iter().flatten().collect();
        StageResult::Failed(tally, lines.join("\n"))
    }
}

/// Whether the tests that a command runs pass; see `run`. The command is given the name of one test if it is to run no
/// other.
pub fn tests(command: impl Fn(Option<&str>) -> Command) -> StageResult {
    or_alone(run(command(None)), |name| Ok(run(command(Some(name)))))
}

/// The result of tests that have run. What a busy machine kept from passing passes when it runs alone: the few tests that
/// failed are run once more, one by one, and those that pass now are named by the summary. More of them are no sign of a busy
/// machine.
pub fn or_alone(mut all: TestRun, run_alone: impl Fn(&str) -> Result<TestRun, String>) -> StageResult {
    let failed = all.tally.failed.clone();
    if !all.failed_by_tests_alone() || failed.len() > RUN_AGAIN_MAX {
        return all.result();
    }
    for name in &failed {
        println!("\n{name} failed beside other tests. Alone:");
        match run_alone(name) {
            Ok(alone) if alone.passed() => all.tally.failed_only_beside_others(name, alone.tally),
            Ok(_) => {}
            Err(why) => println!("{name}: {why}"),
        }
    }
    match all.tally.failed.is_empty() {
        true => StageResult::Passed(all.tally),
        false => all.result(),
    }
}

/// Runs a command that runs tests. Its output is passed on; skipped tests and their reasons are in the record that they
/// write (`fiord_testing`).
pub fn run(command: Command) -> TestRun {
    run_within(SILENCE_MAX, command)
}

fn run_within(silence_max: Duration, mut command: Command) -> TestRun {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let record = repo::target_dir().join(format!("skips-{}-{count}", std::process::id()));
    // Left by an earlier process with the same number.
    let _ = fs::remove_file(&record);
    let shown = shortened(&format!("{command:?}"));
    command.env(fiord_testing::RECORD, &record).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut output = Output::default();
    let (status, last_error) = match command.spawn() {
        Ok(mut child) => pass_on(&mut child, silence_max, &mut output),
        Err(error) => (Err(error.to_string()), None),
    };
    let skips = fiord_testing::recorded(&record);
    let _ = fs::remove_file(&record);
    let (status, skips) = match skips {
        Ok(skips) => (status, skips),
        Err(error) => (Err(format!("{}: {error}", record.display())), Vec::new()),
    };
    let cut_off: Vec<String> = output.unsummed.iter().map(|(name, _)| name.clone()).collect();
    let tally =
        Tally { failed: output.failed, failures: output.failures, ..Tally::of(output.counts, &skips) };
    TestRun { tally, cut_off, status, shown, ran: output.running, last_error }
}

/// Prints what a command prints until it ends; returns its status and its last error. One that prints nothing for this long
/// is ended.
fn pass_on(
    child: &mut Child,
    silence_max: Duration,
    output: &mut Output,
) -> (Result<ExitStatus, String>, Option<String>) {
    let errors = child.stderr.take().map(|stderr| std::thread::spawn(|| last_line_of(stderr)));
    let lines = child.stdout.take().map(lines_of);
    let mut hung = None;
    while let Some(lines) = &lines {
        match lines.recv_timeout(if hung.is_some() { CLOSED_WITHIN } else { silence_max }) {
            Ok(line) => {
                println!("{line}");
                output.read(line);
            }
            Err(RecvTimeoutError::Disconnected) => break,
            // By a process that has no parent in the command any more.
            Err(RecvTimeoutError::Timeout) if hung.is_some() => break,
            Err(RecvTimeoutError::Timeout) => hung = Some(end(child, silence_max)),
        }
    }
    output.end();
    let status = child.wait().map_err(|error| error.to_string());
    match hung {
        Some(why) => (Err(why), None),
        None => (status, errors.and_then(|errors| JoinHandle::join(errors).ok().flatten())),
    }
}

/// Prints what a command that is silent waits for, and kills it with all that it has started; returns why.
fn end(child: &Child, silence: Duration) -> String {
    let processes = process::descendants(child.id());
    println!("Nothing was printed for {} s. What runs, and what each thread waits for:", silence.as_secs());
    for process in &processes {
        println!("  {process}");
    }
    process::kill(&processes);
    format!("killed after it had printed nothing for {} s", silence.as_secs())
}

/// The lines of a stream, as they come.
fn lines_of(stream: impl Read + Send + 'static) -> Receiver<String> {
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || text_lines(stream).try_for_each(|line| send.send(line)));
    receive
}

/// The lines of a stream. What is not UTF-8 is replaced.
fn text_lines(stream: impl Read) -> impl Iterator<Item = String> {
    let lines = BufReader::new(stream).split(b'\n').map_while(Result::ok);
    lines.map(|line| String::from_utf8_lossy(&line).into_owned())
}

/// Passes a stream of errors on to this program's; returns its last line that is not empty.
fn last_line_of(stream: impl Read) -> Option<String> {
    let lines = text_lines(stream).inspect(|line| eprintln!("{line}"));
    lines.filter(|line| !line.trim().is_empty()).last()
}

/// The begin of a command, in which the cases of a stage may be listed.
fn shortened(command: &str) -> String {
    match command.char_indices().nth(SHOWN_LENGTH_MAX) {
        Some((end, _)) => format!("{}…", &command[..end]),
        None => command.to_string(),
    }
}

/// What test programs print: libtest's, and libtest-mimic's.
#[derive(Debug, Default)]
struct Output {
    counts: Counts,
    /// Tests of the program that runs, which has not printed its sums.
    unsummed: Vec<(String, Counts)>,
    /// The test of the last line, which is not complete.
    running: Option<String>,
    failed: Vec<String>,
    /// The lines from `failures:` to the sums of each program.
    failures: Vec<String>,
    is_in_failures: bool,
}

impl Output {
    fn read(&mut self, line: String) {
        if let Some(sums) = sums_of(&line) {
            self.counts += sums;
            self.unsummed.clear();
            self.is_in_failures = false;
            return;
        }
        self.running =
            line.strip_prefix("test ").and_then(|rest| rest.strip_suffix(" ... ")).map(String::from);
        if let Some((name, counts)) = ended_test(&line) {
            if counts.failed > 0 {
                self.failed.push(name.to_string());
            }
            self.unsummed.push((name.to_string(), counts));
        }
        self.is_in_failures |= line == "failures:";
        if self.is_in_failures && !line.is_empty() {
            self.failures.push(line);
        }
    }

    /// Counts what a program had done that was cut off.
    fn end(&mut self) {
        for (_, counts) in &self.unsummed {
            self.counts += *counts;
        }
    }
}

/// The figures of `test result: ok. 3 passed; 0 failed; 1 ignored; …`.
fn sums_of(line: &str) -> Option<Counts> {
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

/// The name of a test that has ended, and how: `test a::b ... ok`.
fn ended_test(line: &str) -> Option<(&str, Counts)> {
    let (name, outcome) = line.strip_prefix("test ")?.split_once(" ... ")?;
    let one = Counts::default();
    let counts = match outcome.split([',', ' ']).next()? {
        "ok" => Counts { passed: 1, ..one },
        "FAILED" => Counts { failed: 1, ..one },
        "ignored" => Counts { skipped: 1, ..one },
        _ => return None,
    };
    Some((name.trim_end(), counts))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Output {
        let mut output = Output::default();
        text.lines().for_each(|line| output.read(line.to_string()));
        output.end();
        output
    }

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn libtest_summaries_are_counted() {
        let line = "test result: FAILED. 12 passed; 3 failed; 4 ignored; 0 measured; 0 filtered out; finished in 0.1s";
        assert_eq!(sums_of(line), Some(Counts { passed: 12, failed: 3, skipped: 4 }));
        assert_eq!(sums_of("test a ... ok"), None);
    }

    #[test]
    fn what_programs_report_of_failed_tests_is_kept() {
        let output = read(
            "test a ... FAILED\n\nfailures:\n\n---- a stdout ----\nat a.rs:1\n\nfailures:\n    a\n\n\
             test result: FAILED. 0 passed; 1 failed\ntest b ... ok\ntest result: ok. 1 passed",
        );
        assert_eq!(output.failures, ["failures:", "---- a stdout ----", "at a.rs:1", "failures:", "    a"]);
        assert_eq!(output.failed, ["a"]);
        assert_eq!(output.counts, Counts { passed: 1, failed: 1, skipped: 0 });
    }

    #[test]
    fn tests_of_a_program_that_is_cut_off_are_counted() {
        let output = read("test a ... ok\ntest b ... ignored, no disk\ntest c ... FAILED\ntest d ... ");
        assert_eq!(output.counts, Counts { passed: 1, failed: 1, skipped: 1 });
        let names: Vec<&str> = output.unsummed.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["a", "b", "c"]);
    }

    #[test]
    fn a_skip_reaches_the_tally_through_the_record() {
        let line = format!(
            r#"printf 'it-1\ta\tno disk\n' >> "${}"; echo "test result: ok. 2 passed; 0 failed""#,
            fiord_testing::RECORD
        );
        let StageResult::Passed(tally) = run(shell(&line)).result() else { panic!("the command succeeds") };
        assert_eq!(tally.counts, Counts { passed: 1, failed: 0, skipped: 1 });
        assert_eq!(tally.reasons, ["it: a: no disk"]);
    }

    #[test]
    fn a_few_tests_that_failed_are_run_again_alone() {
        let suite = "test a ... FAILED\ntest b ... FAILED\ntest c ... ok\n\
                     test result: FAILED. 1 passed; 2 failed\n";
        let result = |alone: &'static str| {
            tests(move |name| match name {
                None => shell(&format!("printf '{suite}'; exit 101")),
                Some("a") => shell("printf 'test a ... ok\ntest result: ok. 1 passed; 0 failed\n'"),
                Some(_) => shell(alone),
            })
        };
        let StageResult::Passed(tally) = result("echo 'test result: ok. 1 passed; 0 failed'") else {
            panic!("both passed alone")
        };
        assert_eq!(tally.counts, Counts { passed: 3, failed: 0, skipped: 0 });
        assert_eq!(tally.unsteady, ["a", "b"]);
        for not_passed in
            ["echo 'test result: FAILED. 0 passed; 1 failed'; exit 101", "echo 'test result: ok. 0 passed'"]
        {
            let StageResult::Failed(tally, _) = result(not_passed) else { panic!("b failed alone") };
            assert_eq!((tally.counts.failed, &tally.failed[..]), (1, &["b".to_string()][..]));
        }
    }

    #[test]
    fn a_program_that_failed_without_a_name_is_not_run_again() {
        let crashes = "printf 'test a ... FAILED\ntest b ... '; exit 101";
        let not_compiled = "exit 101";
        let many: String = (0..=RUN_AGAIN_MAX).map(|test| format!("test {test} ... FAILED\n")).collect();
        let many = format!("printf '{many}test result: FAILED. 0 passed; 6 failed\n'; exit 101");
        for script in [crashes, not_compiled, &many] {
            let result = tests(|name| match name {
                None => shell(script),
                Some(name) => panic!("{name} is run again"),
            });
            assert!(matches!(result, StageResult::Failed(..)), "{script}");
        }
    }

    #[test]
    fn text_that_is_not_utf_8_does_not_end_the_output() {
        let ended = run(shell(r"printf 'a \377\ntest result: ok. 2 passed\n'"));
        assert_eq!((ended.code(), ended.tally.counts.passed), (Some(0), 2));
    }

    #[test]
    fn a_command_that_hangs_is_killed_with_what_it_started() {
        let script = "echo 'test a ... ok'; printf 'test b ... '; sleep 1000 & sleep 1001; echo ok";
        let ended = run_within(Duration::from_secs(2), shell(script));
        assert_eq!((ended.tally.counts.passed, &ended.cut_off[..]), (1, &["a".to_string()][..]));
        let StageResult::Failed(_, why) = ended.result() else { panic!("it did not pass") };
        assert!(why.ends_with("killed after it had printed nothing for 2 s\nb had not ended"), "{why}");
    }

    #[test]
    fn a_failure_ends_with_the_last_error_and_its_command_is_short() {
        let script = format!("echo first >&2; echo 'last one' >&2; exit 3; # {}", "x".repeat(1000));
        let ended = run(shell(&script));
        assert_eq!(ended.code(), Some(3));
        let StageResult::Failed(_, why) = ended.result() else { panic!("it did not pass") };
        assert!(why.ends_with("…: exit status: 3\nlast one") && why.len() < 300, "{why}");
    }
}
