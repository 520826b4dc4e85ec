//! Runs the cases, a few at a time, and prints what libtest would.
//!
//! Invariant: every case that the filter leaves ends as passed, failed, pending or skipped, and is counted once.
#![allow(clippy::print_stdout, reason = "the runner's output is what it is for")]

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use crate::case::Case;
use crate::pending::Pending;
use crate::program::{Programs, SKIPPED};

const THREADS: usize = 2;

enum Ending {
    Passed,
    Failed(String),
    Pending(String),
    Skipped(String),
}

/// What the command line asks for: libtest's arguments, as far as they matter here.
#[derive(Default)]
struct Request {
    filters: Vec<String>,
    skip: Vec<String>,
    exact: bool,
    list: bool,
    quiet: bool,
    threads: Option<usize>,
}

impl Request {
    fn parse(args: impl Iterator<Item = String>) -> Result<Request, String> {
        let mut request = Request::default();
        let mut args = args;
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--exact" => request.exact = true,
                "--list" => request.list = true,
                "--quiet" | "-q" => request.quiet = true,
                "--nocapture" | "--no-capture" | "--show-output" => {}
                "--skip" => request.skip.extend(args.next()),
                "--test-threads" => request.threads = args.next().and_then(|count| count.parse().ok()),
                other if other.starts_with("--test-threads=") => {
                    request.threads = other.split('=').nth(1).and_then(|count| count.parse().ok());
                }
                other if other.starts_with('-') => return Err(format!("{other}: not understood here")),
                other => request.filters.push(other.to_string()),
            }
        }
        Ok(request)
    }

    fn wants(&self, name: &str) -> bool {
        let matches =
            |filter: &String| if self.exact { name == filter } else { name.contains(filter.as_str()) };
        (self.filters.is_empty() || self.filters.iter().any(matches)) && !self.skip.iter().any(matches)
    }
}

/// Runs what the command line asks for; whether nothing failed.
pub fn main(cases: Vec<Case>, pending: &str) -> bool {
    let asked =
        Request::parse(std::env::args().skip(1)).and_then(|request| Ok((request, Pending::parse(pending)?)));
    let (request, pending) = match asked {
        Ok(both) => both,
        Err(why) => {
            println!("{why}");
            return false;
        }
    };
    if let Err(why) = check_names(&cases, &pending) {
        println!("{why}");
        return false;
    }
    let total = cases.len();
    let cases: Vec<Case> = cases.into_iter().filter(|case| request.wants(&case.name)).collect();
    if request.list {
        cases.iter().for_each(|case| println!("{}: test", case.name));
        return true;
    }
    println!("\nrunning {} tests", cases.len());
    let start = Instant::now();
    let endings = match Programs::find() {
        Ok(programs) => run_all(&cases, &programs, &pending, &request),
        Err(why) => {
            println!("all skipped: {why}");
            cases.iter().map(|_| Ending::Skipped(why.clone())).collect()
        }
    };
    summary(&cases, &endings, total, start)
}

fn check_names(cases: &[Case], pending: &Pending) -> Result<(), String> {
    let names: Vec<&str> = cases.iter().map(|case| case.name.as_str()).collect();
    let mut seen = BTreeSet::new();
    if let Some(twice) = names.iter().find(|name| !seen.insert(**name)) {
        return Err(format!("two cases are called {twice}"));
    }
    match pending.unknown(&names).next() {
        Some(entry) => Err(format!("pending.txt: no case is called {entry}")),
        None => Ok(()),
    }
}

fn run_all(cases: &[Case], programs: &Programs, pending: &Pending, request: &Request) -> Vec<Ending> {
    let next = AtomicUsize::new(0);
    let endings: Mutex<Vec<(usize, Ending)>> = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..request.threads.unwrap_or(THREADS).max(1) {
            scope.spawn(|| {
                while let Some((index, case)) = Some(next.fetch_add(1, Ordering::Relaxed))
                    .and_then(|index| cases.get(index).map(|case| (index, case)))
                {
                    let ending = run_one(case, programs, pending);
                    print_ending(&case.name, &ending, request.quiet);
                    if let Ok(mut endings) = endings.lock() {
                        endings.push((index, ending));
                    }
                }
            });
        }
    });
    let mut endings = endings.into_inner().unwrap_or_default();
    endings.sort_by_key(|(index, _)| *index);
    endings.into_iter().map(|(_, ending)| ending).collect()
}

fn run_one(case: &Case, programs: &Programs, pending: &Pending) -> Ending {
    let verdict = catch_unwind(AssertUnwindSafe(|| compare(case, programs)))
        .unwrap_or_else(|_| Err("the comparison panicked".to_string()));
    match (verdict, pending.reason(&case.name)) {
        (Ok(()), None) => Ending::Passed,
        (Ok(()), Some(_)) => {
            Ending::Failed("passes now: take it out of tests/compat/pending.txt".to_string())
        }
        (Err(why), _) if why.starts_with(SKIPPED) => Ending::Skipped(why[SKIPPED.len()..].to_string()),
        (Err(_), Some(reason)) => Ending::Pending(reason.to_string()),
        (Err(why), None) => Ending::Failed(why),
    }
}

fn compare(case: &Case, programs: &Programs) -> Result<(), String> {
    let pair = programs.run(case)?;
    for check in &case.checks {
        check(&pair).map_err(|why| {
            if why.starts_with(SKIPPED) {
                return why;
            }
            let args = case.args.join(" ");
            format!("{why}\n  args: {args}\n  fio: {}\n  fiord: {}", pair.fio.said(), pair.fiord.said())
        })?;
    }
    Ok(())
}

fn print_ending(name: &str, ending: &Ending, quiet: bool) {
    match ending {
        Ending::Passed if quiet => {}
        Ending::Passed => println!("test {name} ... ok"),
        Ending::Failed(_) => println!("test {name} ... FAILED"),
        Ending::Pending(reason) => println!("test {name} ... pending: {reason}"),
        Ending::Skipped(reason) => println!("test {name} ... skipped: {reason}"),
    }
}

fn summary(cases: &[Case], endings: &[Ending], total: usize, start: Instant) -> bool {
    let (mut passed, mut failed, mut ignored) = (0, 0, 0);
    for (case, ending) in cases.iter().zip(endings) {
        match ending {
            Ending::Passed => passed += 1,
            Ending::Pending(_) | Ending::Skipped(_) => ignored += 1,
            Ending::Failed(why) => {
                failed += 1;
                println!("\n---- {} ----\n{why}", case.name);
            }
        }
    }
    let word = if failed == 0 { "ok" } else { "FAILED" };
    println!(
        "\ntest result: {word}. {passed} passed; {failed} failed; {ignored} ignored; 0 measured; {} filtered out; \
         finished in {:.2}s",
        total - cases.len(),
        start.elapsed().as_secs_f64()
    );
    failed == 0
}
