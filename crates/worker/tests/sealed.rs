//! No loop allocates, whatever a plan asks of it.
//!
//! Invariant: a field or a variant that is added to the plan does not compile here, or fails, until it is tried or said
//! to be none of the loop's.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "tests panic when something is wrong, and say what"
)]

#[allow(dead_code, reason = "shared with the other tests of this room")]
mod common;
#[path = "sealed/coverage.rs"]
mod coverage;
#[path = "sealed/options.rs"]
mod options;

use std::backtrace::Backtrace;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use common::{Silent, TempFile};
use fiord_plan::{Direction, EngineSettings, Job, Plan};
use fiord_sys::allocator::Watched;

/// Requests made in a loop: what, and from where. An allocator must not panic, so it is the test that does.
static FOUND: Mutex<Vec<String>> = Mutex::new(Vec::new());

#[global_allocator]
static ALLOCATOR: Watched = Watched(|request| {
    if fiord_worker::break_seal() {
        let found = format!("{request:?} by\n{}", ours(&Backtrace::force_capture()));
        lock(&FOUND).push(found);
    }
});

/// The lines of a backtrace that are fiord's.
fn ours(backtrace: &Backtrace) -> String {
    let text = backtrace.to_string();
    let lines: Vec<&str> = text.lines().filter(|line| line.contains("fiord_")).collect();
    lines.join("\n")
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What was asked of the allocator in loops while `work` ran; one test at a time.
fn found_during(work: impl FnOnce()) -> Vec<String> {
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = lock(&TURN);
    work();
    std::mem::take(&mut *lock(&FOUND))
}

/// A directory for the files of one test, removed afterwards.
struct TempDir(std::path::PathBuf);

impl TempDir {
    fn new(name: &str) -> TempDir {
        let path = std::env::temp_dir().join(format!("fiord-sealed-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        TempDir(path)
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs a job with somebody asking for snapshots, and says what it did that it must not.
fn offence(name: &str, job: &Job, may_fail: bool) -> Option<String> {
    let mut failure = None;
    let found = found_during(|| {
        let mut watcher = Silent { snapshot_every: Some(Duration::from_millis(1)), ..Silent::default() };
        let result = fiord_worker::run(&Arc::new(Plan { jobs: vec![job.clone()] }), &mut watcher);
        failure = result.workers[0].failure.as_ref().map(ToString::to_string);
    });
    if !found.is_empty() {
        return Some(format!("{name}: {}", found.join("\n")));
    }
    match failure {
        Some(why) if may_fail => println!("{name}: ended early: {why}"),
        Some(why) => return Some(format!("{name}: {why}")),
        None => {}
    }
    None
}

fn assert_innocent(offences: impl IntoIterator<Item = String>) {
    let offences: Vec<String> = offences.into_iter().collect();
    assert!(offences.is_empty(), "{} runs:\n{}", offences.len(), offences.join("\n\n"));
}

#[test]
fn an_allocation_in_a_loop_is_found() {
    let mut kept = Vec::new();
    let mut found = |work: &mut dyn FnMut(&mut Vec<u8>)| {
        found_during(|| fiord_worker::sealed(|| work(std::hint::black_box(&mut kept)))).len()
    };
    assert_eq!(found(&mut |kept| kept.push(1)), 1);
    assert_eq!(found(&mut |kept| kept[0] = 2), 0);
    assert_eq!(found(&mut |kept| kept.reserve(1000)), 1, "memory that grows");
    assert_eq!(found(&mut |kept| drop(std::mem::take(kept))), 1, "memory that is given back");
    let outside = found_during(|| drop(std::hint::black_box(vec![1_u8])));
    assert_eq!(outside, [""; 0]);
}

#[test]
fn no_engine_allocates_in_its_loop_in_any_direction() {
    let dir = TempDir::new("engines");
    let file = TempFile(dir.0.join("file"));
    let mut offences = Vec::new();
    for engine in options::engines() {
        for pattern in options::patterns() {
            for random in [false, true] {
                let mut job = options::base(engine.clone(), &file);
                job.access.pattern = pattern;
                job.access.random = random;
                let name = format!("{} {pattern:?} random={random}", engine.name());
                // A regular file is not trimmed, and an engine may be missing here.
                let trims = pattern.includes(Direction::Trim) && engine != EngineSettings::Null;
                let may_be_missing = matches!(engine, EngineSettings::Libaio(_) | EngineSettings::IoUring(_));
                offences.extend(offence(&name, &job, trims || may_be_missing));
            }
        }
    }
    assert_innocent(offences);
}

#[test]
fn no_option_makes_a_loop_allocate() {
    let dir = TempDir::new("options");
    let file = TempFile(dir.0.join("file"));
    let mut offences = Vec::new();
    for tried in options::all() {
        for (loop_name, engine) in [("sync", EngineSettings::Psync), ("queued", EngineSettings::Null)] {
            let mut job = options::base(engine, &file);
            if loop_name == "queued" {
                job.depth = options::queue(8);
            }
            (tried.change)(&mut job);
            offences.extend(offence(&format!("{}, {loop_name}", tried.name), &job, tried.may_fail));
        }
    }
    assert_innocent(offences);
}

#[test]
fn every_option_that_touches_the_loop_is_tried() {
    let file = TempFile::new("coverage");
    let base = options::base(EngineSettings::Psync, &file);
    let mut coverage = coverage::Coverage::default();
    for tried in options::all() {
        let mut job = base.clone();
        (tried.change)(&mut job);
        coverage.note(&base, &job);
    }
    for engine in options::engines() {
        coverage.note(&base, &options::base(engine, &file));
    }
    assert_eq!(coverage.complaints(), [""; 0]);
}
