//! fiord's own cost: what an I/O takes when nothing is done, in the loops that run jobs.
//!
//! Invariant: no file and no thread is touched, and at most `IOS_MAX` I/Os are done; the best round counts, because
//! whatever else the machine does only makes rounds longer.

use std::hint::black_box;
use std::sync::Mutex;

use fiord_engine::Null;
use fiord_engine::contract::{Arena, Slot};
use fiord_plan::job::Limits;
use fiord_plan::{Depth, EngineSettings, Job};
use fiord_sys::clock::{self, Clock, OsClock};
use fiord_sys::memory::{Region, Source};

use crate::door::Door;
use crate::failure::Failure;
use crate::hot::{End, Work};
use crate::life::{Timer, assemble};
use crate::live::Live;

/// I/Os of a round: under a millisecond's worth.
const ROUND_IOS: u64 = 1 << 13;
/// Rounds of a loop at most.
const ROUNDS_MAX: u64 = 8;
/// No further round of a loop begins after so long: all of it stays under 50 ms, calibrating the clock included.
const ROUNDS_NS: u64 = 10_000_000;
/// Readings of the clock in a row, and rows.
const READINGS: u64 = 1 << 12;
const READING_ROWS: u32 = 4;

/// I/Os it takes at most to measure the cost of both loops.
pub const IOS_MAX: u64 = 2 * ROUND_IOS * ROUNDS_MAX;

/// fiord's own nanoseconds on this machine, each the best of several rounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SelfCost {
    /// Of an I/O in the loop of the synchronous engines.
    pub sync_ns_per_io: f64,
    /// Of an I/O in the loop of the queued engines.
    pub queued_ns_per_io: f64,
    /// How deep that loop's queue was.
    pub queued_depth: u32,
    /// Of one reading of the clock the loops used.
    pub clock_read_ns: f64,
    /// I/Os it took to find out, at most `IOS_MAX`.
    pub ios: u64,
}

/// Measures both loops, in the calling thread, for a job like `job` on the null engine: at its depth, and one by one.
///
/// # Errors
/// When a job like it cannot be run: no memory for its buffers, or files with no room for an I/O.
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
        clock_read_ns: reading_ns(Timer::of(job.measure.clock)),
        ios: sync.ios + queued.ios,
    })
}

/// The job for one round.
fn bounded(job: &Job, depth: Depth) -> Job {
    let limits = Limits {
        loop_bytes: u64::MAX,
        loops: 1,
        number_ios: Some(ROUND_IOS),
        runtime_ns: None,
        time_based: false,
        ramp_ns: 0,
        ramp_bytes: 0,
        ..job.limits
    };
    Job { engine: EngineSettings::Null, depth, limits, ..job.clone() }
}

/// What rounds came to.
struct Rounds {
    ns_per_io: f64,
    ios: u64,
}

/// The best of several rounds.
fn best(
    job: &Job,
    body: impl Fn(Timer, &mut Null, &mut Work<'_>, Vec<Slot>) -> End,
) -> Result<Rounds, Failure> {
    let mut rounds = Rounds { ns_per_io: f64::INFINITY, ios: 0 };
    let began_ns = clock::monotonic_ns();
    for number in 0..ROUNDS_MAX {
        if number > 0 && clock::monotonic_ns() - began_ns > ROUNDS_NS {
            break;
        }
        let (ios, took_ns) = round(job, &body)?;
        rounds.ns_per_io = rounds.ns_per_io.min(took_ns as f64 / ios as f64);
        rounds.ios += ios;
    }
    Ok(rounds)
}

/// One round: the I/Os done, at least one, and the nanoseconds they took.
fn round(
    job: &Job,
    body: impl Fn(Timer, &mut Null, &mut Work<'_>, Vec<Slot>) -> End,
) -> Result<(u64, u64), Failure> {
    let (depth, bytes) = (job.depth.max, job.buffers.bytes.max(1) as usize);
    let align_bytes = job.buffers.align_bytes.max(1) as usize;
    let length = Arena::region_bytes(depth, bytes, align_bytes);
    let region = Region::allocate(&Source::Malloc, length, align_bytes.next_power_of_two())
        .map_err(|error| Failure::memory("allocate buffers", &error))?;
    let mut engine = Null::new(Arena::new(region, depth, bytes, align_bytes));
    let (live, snapshot, door) = (Live::default(), Mutex::default(), Door::default());
    let (mut work, slots) = assemble(job, &live, &snapshot, &door, &mut engine)?;
    work.open_files(&mut engine)?;
    let timer = Timer::of(job.measure.clock);
    let began_ns = clock::monotonic_ns();
    let end = body(timer, &mut engine, &mut work, slots);
    work.recorder.settle();
    let took_ns = clock::monotonic_ns() - began_ns;
    if let End::Failed(failure) = end {
        return Err(*failure);
    }
    match live.counters().ios.iter().sum() {
        0 => Err(Failure::other("measure itself", "the job has no I/O to do".to_string())),
        ios => Ok((ios, took_ns)),
    }
}

/// What one reading of this clock takes, in nanoseconds.
fn reading_ns(timer: Timer) -> f64 {
    match timer {
        Timer::Tsc(clock) => best_reading_ns(clock),
        Timer::Os => best_reading_ns(OsClock),
        Timer::TimeOfDay(clock) => best_reading_ns(clock),
        Timer::None => 0.0,
    }
}

fn best_reading_ns(clock: impl Clock) -> f64 {
    let row_ns = |_| {
        let began_ns = clock::monotonic_ns();
        (0..READINGS).for_each(|_| {
            black_box(clock.now_ns());
        });
        clock::monotonic_ns() - began_ns
    };
    let best_ns = (0..READING_ROWS).map(row_ns).min().unwrap_or_default();
    best_ns as f64 / READINGS as f64
}
