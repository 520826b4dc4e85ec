//! fiord's own overhead: the time per I/O on the null engine, in the loops that run jobs.
//!
//! Invariant: no file is touched, no thread is started and a limited number of I/Os are done; the best round counts, in
//! processor time of this thread, because other load on the machine can only make rounds longer.

use std::hint::black_box;

use fiord_engine::EngineDefinition;
use fiord_engine::contract::{Arena, Slot};
use fiord_engine::engines::{Null, null::NullEngine};
use fiord_plan::job::Limits;
use fiord_plan::{Depth, Job};
use fiord_stats::Capped;
use fiord_stats::LogEntries;
use fiord_sys::clock::{self, Clock};
use fiord_sys::memory::{MemorySource, Region};

use crate::failure::Failure;
use crate::files::locks::Locks;
use crate::files::target_opener::TargetOpener;
use crate::files::zones::ZoneTables;
use crate::hot::end::End;
use crate::hot::work::Work;
use crate::job::assembly::{Common, Shown, assemble};
use crate::job::timer::Timer;
use crate::live::{Live, PublishedLock};
use crate::log_sink::LogSink;
use crate::timekeepers::Timekeepers;

/// I/Os of a round: less than a millisecond.
const ROUND_IOS: u64 = 1 << 13;
/// Maximum and minimum number of rounds of a loop: the first one has cold caches.
const ROUNDS_MAX: u64 = 8;
const ROUNDS_MIN: u64 = 3;
/// No further round of a loop begins after this time: the whole stays under 50 ms on an idle machine, including the clock's
/// calibration.
const ROUNDS_NS: u64 = 10_000_000;
/// Readings of the clock in a row, and rows.
const READINGS: u64 = 1 << 12;
const READING_ROWS: u32 = 4;

/// fiord's own overhead on this machine in nanoseconds, each the best of several rounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SelfCost {
    /// Per I/O in the loop of the synchronous engines.
    pub sync_ns_per_io: f64,
    /// Per I/O in the loop of the queued engines.
    pub queued_ns_per_io: f64,
    /// The queue depth of that loop.
    pub queued_depth: u32,
    /// Per reading of the clock that the loops used.
    pub clock_read_ns: f64,
    /// I/Os done for the measurement, at most 2^17: two loops, 8 rounds of 2^13.
    pub ios: u64,
}

/// Measures both loops on the calling thread for a job like `job` on the null engine: at its depth, and at depth 1.
///
/// # Errors
/// If such a job cannot run: no memory for its buffers, or files too small for one I/O.
pub fn self_cost(job: &Job) -> Result<SelfCost, Failure> {
    let one_by_one = Depth { max: 1, submit: 1, complete_min: 1, complete_max: None, low: 1 };
    let sync =
        best(&bounded(job, one_by_one), |timer, engine, work, slots| timer.run_sync(engine, work, slots))?;
    let queued = best(&bounded(job, job.depth), |timer, engine, work, slots| {
        timer.run_queued(engine, work, slots, job.depth)
    })?;
    Ok(SelfCost {
        sync_ns_per_io: sync.ns_per_io,
        queued_ns_per_io: queued.ns_per_io,
        queued_depth: job.depth.max,
        clock_read_ns: reading_ns(Timer::of(job.measure.clock, &Timekeepers::of([job]))?),
        ios: sync.ios + queued.ios,
    })
}

/// What an I/O costs on the null engine, in nanoseconds, each the best of several rounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct IoCost {
    /// All of it.
    pub ns: f64,
    /// What of it lies between I/Os and is in no latency: drawing operations, preparing buffers, statistics, logs.
    pub own_ns: f64,
}

/// Measures what an I/O of `job` costs on the null engine, on the calling thread: in the loop of the queued engines if it is
/// deeper than 1, else in that of the synchronous ones. If it has logs, they are recorded and discarded. A round ends after
/// its `number_ios`, or after 2^13.
///
/// # Errors
/// If such a job cannot run: no memory for its buffers, or files too small for one I/O.
pub fn cost_per_io(job: &Job) -> Result<IoCost, Failure> {
    let bounded = bounded(job, job.depth);
    let rounds = match job.depth.max {
        1 => best(&bounded, |timer, engine, work, slots| timer.run_sync(engine, work, slots)),
        _ => best(&bounded, |timer, engine, work, slots| timer.run_queued(engine, work, slots, job.depth)),
    };
    rounds.map(|rounds| IoCost { ns: rounds.ns_per_io, own_ns: rounds.own_ns_per_io.min(rounds.ns_per_io) })
}

/// The job for one round.
fn bounded(job: &Job, depth: Depth) -> Job {
    let limits = Limits {
        loop_bytes: u64::MAX,
        loops: 1,
        number_ios: Some(job.limits.number_ios.unwrap_or(ROUND_IOS).min(ROUND_IOS)),
        runtime_ns: None,
        time_based: false,
        ramp_ns: 0,
        ramp_bytes: 0,
        ..job.limits
    };
    Job { engine: Null::planned(()), depth, limits, ..job.clone() }
}

/// A receiver of logs that keeps nothing.
struct Discarded;

impl LogSink for Discarded {
    fn block_ios(&self) -> usize {
        usize::capped(ROUND_IOS)
    }

    fn spare(&mut self) -> Option<LogEntries> {
        Some(LogEntries::default())
    }

    fn take(&mut self, _entries: LogEntries) {}
}

/// Totals of the rounds.
struct Rounds {
    ns_per_io: f64,
    own_ns_per_io: f64,
    ios: u64,
}

/// One round of them.
struct Round {
    /// I/Os done, at least one.
    ios: u64,
    /// Processor time of the thread, and its own work between I/Os by the loop's clock, in nanoseconds.
    took_ns: u64,
    own_ns: u64,
}

/// The best of several rounds.
fn best(
    job: &Job,
    body: impl for<'arena> Fn(Timer<'_>, &mut NullEngine<'arena>, &mut Work<'_>, Vec<Slot<'arena>>) -> End,
) -> Result<Rounds, Failure> {
    let mut rounds = Rounds { ns_per_io: f64::INFINITY, own_ns_per_io: f64::INFINITY, ios: 0 };
    let began_ns = clock::monotonic_ns();
    for number in 0..ROUNDS_MAX {
        if number >= ROUNDS_MIN && clock::monotonic_ns() - began_ns > ROUNDS_NS {
            break;
        }
        let Round { ios, took_ns, own_ns } = round(job, &body)?;
        rounds.ns_per_io = rounds.ns_per_io.min(took_ns as f64 / ios as f64);
        rounds.own_ns_per_io = rounds.own_ns_per_io.min(own_ns as f64 / ios as f64);
        rounds.ios += ios;
    }
    Ok(rounds)
}

/// One round.
fn round(
    job: &Job,
    body: impl for<'arena> Fn(Timer<'_>, &mut NullEngine<'arena>, &mut Work<'_>, Vec<Slot<'arena>>) -> End,
) -> Result<Round, Failure> {
    let (depth, bytes) = (job.depth.max, usize::capped(job.buffers.bytes.max(1)));
    let align_bytes = usize::capped(job.buffers.align_bytes.max(1));
    let length = Arena::region_bytes(depth, bytes, align_bytes);
    let region = Region::allocate(&MemorySource::Malloc, length, align_bytes.next_power_of_two())
        .map_err(|error| Failure::memory("allocate buffers", &error))?;
    Arena::with(region, depth, bytes, align_bytes, |arena| run_once(job, NullEngine::new(arena), body))
}

/// One round on an engine that is set up.
fn run_once<'arena>(
    job: &Job,
    mut engine: NullEngine<'arena>,
    body: impl Fn(Timer<'_>, &mut NullEngine<'arena>, &mut Work<'_>, Vec<Slot<'arena>>) -> End,
) -> Result<Round, Failure> {
    let (live, published, opener) = (Live::default(), PublishedLock::default(), TargetOpener::default());
    let (zones, locks) = (ZoneTables::default(), Locks::default());
    let shown = Shown { live: &live, published: &published };
    let common = Common { opener: &opener, zones: &zones, locks: &locks };
    let (mut work, slots) = assemble(job, shown, common, None, &mut engine)?;
    if let Some(logs) = &job.logs {
        work.recorder.log_to(logs, Box::new(Discarded));
    }
    work.open_files(&mut engine)?;
    let keepers = Timekeepers::of([job]);
    let timer = Timer::of(job.measure.clock, &keepers)?;
    let began_ns = clock::thread_cpu_ns();
    let end = body(timer, &mut engine, &mut work, slots);
    work.recorder.flush();
    let took_ns = clock::thread_cpu_ns() - began_ns;
    if let End::Failed(failure) = end {
        return Err(*failure);
    }
    match live.counters().ios.iter().sum() {
        0 => Err(Failure::other("measure itself", "the job has no I/O to do".to_string())),
        ios => Ok(Round { ios, took_ns, own_ns: work.own.work_ns() }),
    }
}

/// The cost of one reading of this clock, in nanoseconds.
fn reading_ns(timer: Timer<'_>) -> f64 {
    match timer {
        Timer::Counter(clock) => best_reading_ns(clock),
        Timer::Other(clock) | Timer::WithGpu(clock, _) => best_reading_ns(clock),
        Timer::None => 0.0,
    }
}

fn best_reading_ns(clock: impl Clock) -> f64 {
    let row_ns = |_| {
        let began_ns = clock::thread_cpu_ns();
        (0..READINGS).for_each(|_| {
            black_box(clock.now_ns());
        });
        clock::thread_cpu_ns() - began_ns
    };
    let best_ns = (0..READING_ROWS).map(row_ns).min().unwrap_or_default();
    best_ns as f64 / READINGS as f64
}
