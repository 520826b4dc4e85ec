//! Documents of many jobs: what is held in memory beside the report does not grow with them.
//!
//! Invariant: what is counted is what is allocated and not freed, never time.

#![allow(clippy::unwrap_used, reason = "tests panic when something is wrong")]

use std::sync::atomic::{AtomicI64, Ordering};

use fiord_sys::allocator::{ObservedAllocator, Request};

/// What is allocated now, and the most of it. A block that grows counts again.
static LIVE: AtomicI64 = AtomicI64::new(0);
static MOST: AtomicI64 = AtomicI64::new(0);

#[global_allocator]
static ALLOCATOR: ObservedAllocator = ObservedAllocator(count);

fn count(request: Request) {
    let change = if request == Request::Allocate { 1 } else { -1 };
    let live = LIVE.fetch_add(change, Ordering::Relaxed) + change;
    MOST.fetch_max(live, Ordering::Relaxed);
}

fn document(jobs: usize) -> String {
    let figures: String = (0..40).map(|number| format!("\"{number}\" : [{number}],")).collect();
    let job = |number| format!("{{ {figures} \"jobname\" : \"job{number}\", \"error\" : 0 }}");
    let jobs: Vec<String> = (0..jobs).map(job).collect();
    format!("{{ \"fio version\" : \"fio-3.42\", \"jobs\" : [ {} ] }}", jobs.join(", "))
}

/// How many blocks more than those of the result were allocated at a time.
fn excess<T>(jobs: usize, read: impl Fn(&str) -> T) -> i64 {
    let text = document(jobs);
    MOST.store(LIVE.load(Ordering::Relaxed), Ordering::Relaxed);
    let result = read(&text);
    let excess = MOST.load(Ordering::Relaxed) - LIVE.load(Ordering::Relaxed);
    drop(result);
    excess
}

/// The only test of this program: others would allocate beside it.
#[test]
fn one_job_at_a_time_is_held_as_values() {
    let report = |text: &str| {
        let reports = fiord_import::read(text).unwrap();
        assert_eq!(reports[0].jobs.len(), text.matches("jobname").count());
        reports
    };
    let (few, many) = (excess(20, report), excess(2000, report));
    assert!(few > 40 && many < few + 500, "{few} blocks with 20 jobs, {many} with 2000");
    // Nor to find out that a report is no study.
    let study = excess(2000, |text: &str| fiord_import::study::read(text).unwrap());
    assert!(study < 500, "{study} blocks");
}
