//! Runs a loop on the calling thread, on operations from a test's source.
//!
//! Invariant: every allocation in a loop is recorded on every engine, except for the scripted engine's own lists.

use std::cell::RefCell;

use fiord_engine::contract::{Arena, Engine, QueuedEngine, Slot, SyncEngine};
use fiord_engine::scripted::{Answer, FakeClock, Script, Scripted, Seen};
use fiord_plan::{Depth, Job, Op, Plan};
use fiord_stats::{JobStats, LogEntries};
use fiord_sys::allocator::ObservedAllocator;
use fiord_sys::clock::Clock;
use fiord_sys::memory::{MemorySource, Region};
use fiord_workload::{OperationSource, Source};

use crate::alloc_guard::leave_no_alloc;
use crate::files::target_opener::TargetOpener;
use crate::flow::FlowMember;
use crate::hot::block_tracker::BlockTracker;
use crate::hot::end::End;
use crate::hot::own_time::OwnTime;
use crate::hot::work::Work;
use crate::hot::{queued, sync};
use crate::job::assembly::{Shown, assemble_from};
use crate::live::{Counters, Live, PublishedLock};
use crate::log_sink::LogSink;

thread_local! {
    static FOUND: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

#[global_allocator]
static ALLOCATOR: ObservedAllocator = ObservedAllocator(|request| {
    if leave_no_alloc() {
        FOUND.with_borrow_mut(|found| found.push(format!("{request:?}")));
    }
});

/// A receiver of logs that takes its time for each block of them.
pub(super) struct SlowSink {
    pub(super) clock: FakeClock,
    pub(super) work_ns: u64,
    pub(super) block_ios: usize,
}

impl LogSink for SlowSink {
    fn block_ios(&self) -> usize {
        self.block_ios
    }

    fn spare(&mut self) -> Option<LogEntries> {
        Some(LogEntries::default())
    }

    fn take(&mut self, _entries: LogEntries) {
        self.clock.advance(self.work_ns);
    }
}

/// The two loops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loop {
    Sync,
    Queued,
}

pub const LOOPS: [Loop; 2] = [Loop::Sync, Loop::Queued];

/// The results of a loop.
pub struct Ran {
    pub end: End,
    pub stats: JobStats,
    /// What of the loop's time was no I/O.
    pub own: OwnTime,
    /// The live counters, and the number of all completed operations.
    pub completions: u64,
    pub counters: Counters,
    /// Requests to the allocator while the loop ran.
    pub found: Vec<String>,
    /// Messages of ignored errors.
    pub passed_over: Vec<String>,
}

/// A clock that advances only when the engine or a waiting loop advances it.
#[derive(Clone, Copy)]
struct Moved<'a> {
    clock: &'a FakeClock,
    /// How late sleeps end.
    late_ns: u64,
    /// How long a reading takes.
    reading_ns: u64,
}

impl Clock for Moved<'_> {
    const RUNNING: bool = true;

    fn now_ns(&self) -> u64 {
        self.clock.advance(self.reading_ns);
        self.clock.now_ns()
    }

    fn sleep_ns(&self, ns: u64) {
        self.clock.advance(ns + self.late_ns);
    }

    fn poll_ns(&self, ns: u64) {
        self.clock.advance(ns);
    }
}

/// A queue of `depth`, submitted and reaped one by one.
pub fn queue(depth: u32) -> Depth {
    Depth { max: depth, submit: 1, complete_min: 1, complete_max: None, low: depth }
}

/// Calls `body` with buffers for a job.
pub fn with_arena<R>(job: &Job, body: impl for<'arena> FnOnce(Arena<'arena>) -> R) -> R {
    let (depth, bytes) = (job.depth.max, job.buffers.bytes as usize);
    let length = Arena::region_bytes(depth, bytes, 4096);
    let region = Region::allocate(&MemorySource::Malloc, length, 4096).unwrap();
    Arena::with(region, depth, bytes, 4096, body)
}

/// Runs the loop of the synchronous engines.
pub fn run_sync<'arena, E: SyncEngine<'arena>>(
    mut engine: E,
    clock: impl Clock,
    job: &Job,
    source: Box<dyn OperationSource>,
) -> Ran {
    run(job, Source::Other(source), None, &mut engine, |engine, work, mut slots| {
        sync::run(engine, clock, work, &mut slots[0])
    })
}

/// Runs the loop of the queued engines.
pub fn run_queued<'arena, E: QueuedEngine<'arena>>(
    mut engine: E,
    clock: impl Clock,
    job: &Job,
    source: Box<dyn OperationSource>,
) -> Ran {
    run(job, Source::Other(source), None, &mut engine, |engine, work, slots| {
        queued::run(engine, clock, work, slots, job.depth)
    })
}

fn run<'arena, E: Engine<'arena>>(
    job: &Job,
    source: Source,
    logs: Option<Box<dyn LogSink>>,
    engine: &mut E,
    body: impl FnOnce(&mut E, &mut Work<'_>, Vec<Slot<'arena>>) -> End,
) -> Ran {
    let (live, published, opener) = (Live::default(), PublishedLock::default(), TargetOpener::default());
    let (mut work, slots) =
        assemble_from(source, job, Shown { live: &live, published: &published }, &opener, engine);
    if let Some(blocks) = BlockTracker::of(job).unwrap() {
        work.track_blocks(blocks);
    }
    if let (Some(plan), Some(sink)) = (&job.logs, logs) {
        work.recorder.log_to(plan, sink);
    }
    let plan = Plan { jobs: vec![job.clone()], trigger: None };
    if let Some(flow) = FlowMember::all(&plan).remove(0) {
        work.join_flow(flow);
    }
    work.open_files(engine).unwrap();
    FOUND.with_borrow_mut(Vec::clear);
    let end = body(engine, &mut work, slots);
    let found = FOUND.with_borrow_mut(std::mem::take);
    work.count_unserved(&end);
    let stats = *work.recorder.conclude(job.engine.descriptor, &fiord_sys::thread::Usage::default());
    work.files.close_all(engine).unwrap();
    let passed_over = work.errors.into_lines();
    let own = work.own;
    Ran { end, stats, own, passed_over, found, completions: live.completions(), counters: live.counters() }
}

/// Runs a source on the scripted engine, where `script` gives the n-th operation's outcome; also returns what the
/// engine saw.
pub fn run_scripted(
    which: Loop,
    job: &Job,
    source: Box<dyn OperationSource>,
    script: Script,
) -> (Ran, Vec<Seen>) {
    run_scripted_late(which, job, source, script, 0)
}

/// The same, where each sleep ends so much late.
pub fn run_scripted_late(
    which: Loop,
    job: &Job,
    source: Box<dyn OperationSource>,
    script: Script,
    late_ns: u64,
) -> (Ran, Vec<Seen>) {
    let clock = FakeClock::default();
    let mut job = job.clone();
    job.depth = queue(if which == Loop::Sync { 1 } else { 4 });
    with_arena(&job, |arena| {
        let engine = Scripted::new(script, clock.clone(), arena);
        let journal = engine.journal();
        let ran = match which {
            Loop::Sync => run_sync(engine, Moved { clock: &clock, late_ns, reading_ns: 0 }, &job, source),
            Loop::Queued => run_queued(engine, Moved { clock: &clock, late_ns, reading_ns: 0 }, &job, source),
        };
        (ran, journal.seen())
    })
}

/// How long a reading of the clock takes in `run_timed`.
pub const READING_NS: u64 = 10;

/// Runs a source on the scripted engine, with a clock whose readings take time, and whose hand is in `clock`.
pub fn run_timed(
    which: Loop,
    job: &Job,
    (source, logs): (Source, Option<Box<dyn LogSink>>),
    clock: &FakeClock,
    script: Script,
) -> (Ran, Vec<Seen>) {
    with_arena(job, |arena| {
        let mut engine = Scripted::new(script, clock.clone(), arena);
        let journal = engine.journal();
        let moved = Moved { clock, late_ns: 0, reading_ns: READING_NS };
        let ran = run(job, source, logs, &mut engine, |engine, work, mut slots| match which {
            Loop::Sync => sync::run(engine, moved, work, &mut slots[0]),
            Loop::Queued => queued::run(engine, moved, work, slots, job.depth),
        });
        (ran, journal.seen())
    })
}

/// Runs a source on the queued loop, on a scripted engine that cannot queue what is not a transfer.
pub fn run_blocking(job: &Job, source: Box<dyn OperationSource>, script: Script) -> Ran {
    let clock = FakeClock::default();
    with_arena(job, |arena| {
        let engine = Scripted::new(script, clock.clone(), arena).blocking();
        run_queued(engine, Moved { clock: &clock, late_ns: 0, reading_ns: 0 }, job, source)
    })
}

/// Every operation succeeds in full after this time.
pub fn whole(delay_ns: u64) -> Script {
    Box::new(move |_, op: &Op| Answer::whole(op, delay_ns))
}
