//! Runs the cases as trials of libtest-mimic, and counts their outcomes.
//!
//! Invariant: every selected case agrees, disagrees, is not built or is skipped, and is counted once.

use std::collections::BTreeSet;
use std::fmt;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use libtest_mimic::{Arguments, Completion, Failed, Trial};

use crate::case::{Case, Check, Contents};
use crate::drive::{Programs, Unable};
use crate::pending::Pending;
use crate::program::Pair;

/// How many cases run at a time by default (`--test-threads`) on each processor: most of a case is waiting.
const THREADS_PER_PROCESSOR: usize = 3;

/// How often a case is run at most until fio does what the case rests on.
const RUNS_MAX: usize = 3;

/// The outcome of a case.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Agrees,
    /// What differs, or why the programs could not be compared.
    Disagrees(String),
    /// What fiord reports as not built.
    NotBuilt(String),
    /// What the machine lacks.
    Skipped(String),
}

/// The number of cases with each outcome.
#[derive(Debug, Default)]
struct Counts {
    agree: usize,
    disagree: usize,
    not_built: usize,
    skipped: usize,
}

impl Counts {
    fn add(&mut self, outcome: &Outcome) {
        let count = match outcome {
            Outcome::Agrees => &mut self.agree,
            Outcome::Disagrees(_) => &mut self.disagree,
            Outcome::NotBuilt(_) => &mut self.not_built,
            Outcome::Skipped(_) => &mut self.skipped,
        };
        *count += 1;
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counts { agree, disagree, not_built, skipped } = self;
        write!(f, "{agree} agree, {disagree} disagree, {not_built} not built, {skipped} skipped")
    }
}

/// Runs the cases selected on the command line, like libtest.
///
/// # Errors
/// If two cases have the same name, one can hang fio, or pending.txt names an unknown one.
pub fn main(cases: Vec<Case>, pending: &str) -> Result<ExitCode, String> {
    let mut args = Arguments::from_args();
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    args.test_threads.get_or_insert(processors * THREADS_PER_PROCESSOR);
    let pending = Arc::new(Pending::parse(pending)?);
    check_names(&cases, &pending)?;
    check_that_fio_ends(&cases)?;
    let programs = Arc::new(Programs::find());
    let counts = Arc::new(Mutex::new(Counts::default()));
    let trials = cases.into_iter().map(|case| {
        let (programs, pending, counts) = (programs.clone(), pending.clone(), counts.clone());
        Trial::ignorable_test(case.name.clone(), move || {
            let outcome = match programs.as_ref() {
                Ok(programs) => run(&case, programs, &pending),
                Err(unable) => outcome_of(unable.clone()),
            };
            counts.lock().unwrap_or_else(PoisonError::into_inner).add(&outcome);
            completion(&case.name, outcome)
        })
    });
    let conclusion = libtest_mimic::run(&args, trials.collect());
    if !args.list {
        #[allow(clippy::print_stdout, reason = "the runner prints results")]
        {
            println!("compat: {}\n", counts.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }
    Ok(conclusion.exit_code())
}

/// The outcome for libtest-mimic; a case that did not run is recorded as skipped.
fn completion(name: &str, outcome: Outcome) -> Result<Completion, Failed> {
    let why = match outcome {
        Outcome::Agrees => return Ok(Completion::Completed),
        Outcome::Disagrees(why) => return Err(why.into()),
        Outcome::NotBuilt(what) => format!("not built: {what}"),
        Outcome::Skipped(why) => why,
    };
    fiord_testing::record(name, &why);
    Ok(Completion::ignored_with(why))
}

fn check_names(cases: &[Case], pending: &Pending) -> Result<(), String> {
    let names: Vec<&str> = cases.iter().map(|case| case.name.as_str()).collect();
    let mut seen = BTreeSet::new();
    if let Some(twice) = names.iter().find(|name| !seen.insert(**name)) {
        return Err(format!("two cases have the name {twice}"));
    }
    match pending.unknown(&names).next() {
        Some(entry) => Err(format!("pending.txt: no case has the name {entry}")),
        None => Ok(()),
    }
}

/// Debian's fio hangs now and then with `io_submit_mode=offload`, so jobs that it would run are not cases.
fn check_that_fio_ends(cases: &[Case]) -> Result<(), String> {
    let offloads = |text: &String| text.contains("io_submit_mode=offload");
    let hangs = |case: &&Case| {
        let in_files = case.files.iter().any(|(_, contents)| match contents {
            Contents::Text(text) => offloads(text),
            Contents::Binary(_) | Contents::Bytes(_) => false,
        });
        let runs = !case.args.iter().any(|arg| arg == "--parse-only");
        runs && (in_files || case.args.iter().any(offloads))
    };
    match cases.iter().find(hangs) {
        Some(case) => Err(format!(
            "{}: fio hangs now and then with io_submit_mode=offload; test fiord alone (crates/fiord/tests/submission.rs)",
            case.name
        )),
        None => Ok(()),
    }
}

fn outcome_of(unable: Unable) -> Outcome {
    match unable {
        Unable::Lacks(what) => Outcome::Skipped(what),
        Unable::Failed(why) => Outcome::Disagrees(why),
    }
}

fn run(case: &Case, programs: &Programs, pending: &Pending) -> Outcome {
    let pair = match run_both(case, programs) {
        Ok(pair) => pair,
        Err(outcome) => return outcome,
    };
    let is_pending = pending.contains(&case.name);
    let not_built = pair.fiord.not_built().filter(|_| is_pending || case.may_be_unbuilt);
    match not_built {
        Some(what) => Outcome::NotBuilt(what),
        None => judge(hold(case, &case.checks, &pair), is_pending),
    }
}

/// Runs both programs, again if fio does not do what the case rests on.
fn run_both(case: &Case, programs: &Programs) -> Result<Pair, Outcome> {
    let mut runs = 1;
    loop {
        let pair = programs.run(case).map_err(outcome_of)?;
        match hold(case, &case.premises, &pair) {
            Ok(()) => return Ok(pair),
            Err(why) if runs == RUNS_MAX => return Err(Outcome::Disagrees(why)),
            Err(_) => runs += 1,
        }
    }
}

/// The outcome of a comparison that took place.
fn judge(compared: Result<(), String>, is_pending: bool) -> Outcome {
    match compared {
        Ok(()) if is_pending => {
            Outcome::Disagrees("agrees now: remove it from tests/compat/pending.txt".to_string())
        }
        Ok(()) => Outcome::Agrees,
        Err(why) => Outcome::Disagrees(why),
    }
}

/// Whether these checks of a case hold.
fn hold(case: &Case, checks: &[Check], pair: &Pair) -> Result<(), String> {
    checks.iter().try_for_each(|check| check(pair)).map_err(|why| {
        let args = case.args.join(" ");
        format!("{why}\n  args: {args}\n  fio: {}\n  fiord: {}", pair.fio.output(), pair.fiord.output())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pending_case_fails_unless_fiord_reports_it_as_not_built() {
        assert_eq!(judge(Ok(()), false), Outcome::Agrees);
        assert!(matches!(judge(Ok(()), true), Outcome::Disagrees(why) if why.contains("pending.txt")));
        for is_pending in [false, true] {
            let timed_out = Unable::Failed("still running".to_string());
            assert_eq!(outcome_of(timed_out), Outcome::Disagrees("still running".to_string()));
            assert_eq!(judge(Err("x".to_string()), is_pending), Outcome::Disagrees("x".to_string()));
        }
    }

    #[test]
    fn a_case_that_can_hang_fio_is_refused() {
        let case = |args: &str| crate::case("a", format!("--name=a --size=4k {args}"));
        let refused = check_that_fio_ends(&[case(""), case("--io_submit_mode=offload")]);
        assert!(refused.is_err_and(|why| why.starts_with("a: fio hangs")));
        assert_eq!(check_that_fio_ends(&[case("--io_submit_mode=offload --parse-only")]), Ok(()));
    }

    #[test]
    fn each_outcome_is_counted_separately() {
        let mut counts = Counts::default();
        let what = String::new;
        for outcome in
            [Outcome::NotBuilt(what()), Outcome::Agrees, Outcome::Skipped(what()), Outcome::NotBuilt(what())]
        {
            counts.add(&outcome);
        }
        assert_eq!(counts.to_string(), "1 agree, 0 disagree, 2 not built, 1 skipped");
    }
}
