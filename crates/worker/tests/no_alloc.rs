//! No loop allocates, whatever a plan asks of it.
//!
//! Invariant: a field or variant that is added to the plan fails here, at compile time or run time, until a case covers
//! it or it is listed as irrelevant to the loops.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "tests panic with a message when something is wrong"
)]

#[allow(dead_code, reason = "shared with the other tests of this crate")]
mod common;
#[path = "no_alloc/coverage.rs"]
mod coverage;
#[path = "no_alloc/options.rs"]
mod options;
mod verified;

use std::backtrace::Backtrace;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use common::{CallCounter, TempFile};
use fiord_engine::EngineDefinition;
use fiord_engine::engines::{Null, Psync};
use fiord_plan::{Direction, Job, Plan};
use fiord_sys::allocator::ObservedAllocator;

/// Requests made in a loop, with their backtraces. An allocator must not panic, so the test does.
static FOUND: Mutex<Vec<String>> = Mutex::new(Vec::new());

#[global_allocator]
static ALLOCATOR: ObservedAllocator = ObservedAllocator(|request| {
    if fiord_worker::leave_no_alloc() {
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

/// The requests to the allocator in loops while `work` ran; one test at a time.
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

/// Runs a job while a watcher requests snapshots; returns its violation, if any, and whether it did any I/O: a job
/// that did none tested nothing. It runs again if its time was over before a busy machine let it begin.
fn offence(name: &str, job: &Job, may_fail: bool) -> (Option<String>, bool) {
    let idle = Some(format!("{name}: did no I/O"));
    let mut result = offence_of_one(name, job, may_fail);
    for _ in 0..2 {
        if result.0 != idle {
            break;
        }
        result = offence_of_one(name, job, may_fail);
    }
    result
}

fn offence_of_one(name: &str, job: &Job, may_fail: bool) -> (Option<String>, bool) {
    let (mut failure, mut ran) = (None, false);
    let found = found_during(|| {
        let mut watcher =
            CallCounter { snapshot_every: Some(Duration::from_millis(1)), ..CallCounter::default() };
        let result = fiord_worker::run(
            &Arc::new(Plan { jobs: vec![job.clone()], trigger: None }),
            fiord_worker::ENGINES,
            &mut watcher,
        );
        let worker = &result.workers[0];
        failure = worker.failure.as_ref().map(ToString::to_string);
        let ios: u64 = worker.stats.directions.iter().map(|direction| direction.ios).sum();
        ran = ios + worker.stats.errors_total > 0;
    });
    if !found.is_empty() {
        return (Some(format!("{name}: {}", found.join("\n"))), ran);
    }
    let offence = match failure {
        Some(why) if may_fail => {
            if !ran {
                fiord_testing::skipped(format!("{name}: {why}"));
            }
            None
        }
        Some(why) => Some(format!("{name}: {why}")),
        None if !ran => Some(format!("{name}: did no I/O")),
        None => None,
    };
    (offence, ran || may_fail)
}

fn assert_no_offences(offences: impl IntoIterator<Item = String>) {
    let offences: Vec<String> = offences.into_iter().collect();
    assert!(offences.is_empty(), "{} runs:\n{}", offences.len(), offences.join("\n\n"));
}

#[test]
fn an_allocation_in_a_loop_is_found() {
    let mut kept = Vec::new();
    let mut found = |work: &mut dyn FnMut(&mut Vec<u8>)| {
        found_during(|| fiord_worker::no_alloc(|| work(std::hint::black_box(&mut kept)))).len()
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
                // A file system may punch no holes, and an engine may be unavailable here.
                let trims = pattern.includes(Direction::Trim) && engine.descriptor.touches_files();
                let may_be_missing = engine.descriptor.queueing.is_queued();
                // An engine of its own kind may have writes only.
                let lacks_directions = !engine.descriptor.transfers_data();
                offences.extend(offence(&name, &job, trims || may_be_missing || lacks_directions).0);
            }
        }
    }
    assert_no_offences(offences);
}

#[test]
fn no_option_makes_a_loop_allocate_and_each_is_exercised_in_both_loops() {
    let dir = TempDir::new("options");
    let file = TempFile(dir.0.join("file"));
    let mut offences = Vec::new();
    let mut coverage = coverage::Coverage::default();
    for tried in options::all() {
        for (engine, is_queued) in [(Psync::planned(()), false), (Null::planned(()), true)] {
            let mut base = options::base(engine, &file);
            if is_queued {
                base.depth = options::queue(8);
            }
            let mut job = base.clone();
            (tried.change)(&mut job);
            let name = format!("{}, {}", tried.name, if is_queued { "queued" } else { "sync" });
            let (offence, ran) = offence(&name, &job, tried.may_fail);
            offences.extend(offence);
            if ran {
                coverage.note(coverage::Run { name: &tried.name, is_queued }, &base, &job);
            }
        }
    }
    assert_no_offences(offences);
    assert_eq!(coverage.complaints(), [""; 0]);
}
