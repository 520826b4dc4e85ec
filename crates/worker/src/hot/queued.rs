//! The loop of the queued engines: up to `depth` operations in flight.
//!
//! Invariant: data plane. Every slot is in exactly one place: free, or in flight inside the engine. No allocation,
//! no lock, no formatting; three clock reads per round, however many I/Os a round moves.

use fiord_engine::contract::{Completion, Outcome, QueuedEngine, Slot, Wait};
use fiord_plan::{Action, Depth, Direction, Op};
use fiord_sys::clock::{self, Clock};

use super::{End, Refilled, Verdict, Work};
use crate::failure::Failure;
use crate::record::Stamps;

/// What the loop knows of an operation in flight.
#[derive(Clone, Copy)]
struct Flight {
    /// As the stream made it.
    op: Op,
    /// What of it the engine has now.
    rest: Op,
    start_ns: u64,
    issue_ns: u64,
}

/// The loop's own state: who is where.
struct Sky {
    free: Vec<Slot>,
    flights: Vec<Option<Flight>>,
    /// Slots queued since the last submission.
    queued: Vec<usize>,
    done: Vec<Completion>,
    in_flight: u32,
    /// Of them, those made since the last submission.
    new: u32,
}

impl Sky {
    fn new(slots: Vec<Slot>) -> Sky {
        let depth = slots.len();
        Sky {
            free: slots,
            flights: vec![None; depth],
            queued: Vec::with_capacity(depth),
            done: Vec::with_capacity(depth),
            in_flight: 0,
            new: 0,
        }
    }
}

/// Runs `work` on `engine` until it ends, and leaves nothing in flight.
pub(crate) fn run<E: QueuedEngine, C: Clock>(
    engine: &mut E,
    clock: C,
    work: &mut Work<'_>,
    slots: Vec<Slot>,
    depth: Depth,
) -> End {
    let mut sky = Sky::new(slots);
    let end = fly(engine, clock, work, &mut sky, depth);
    match drain(engine, clock, work, &mut sky) {
        Some(failed) if !matches!(end, End::Failed(_)) => failed,
        _ => end,
    }
}

fn fly<E: QueuedEngine, C: Clock>(
    engine: &mut E,
    clock: C,
    work: &mut Work<'_>,
    sky: &mut Sky,
    depth: Depth,
) -> End {
    let mut now_ns = clock.now_ns();
    work.begin(now_ns, C::RUNNING);
    loop {
        if work.is_due(now_ns)
            && let Some(end) = work.attend(now_ns, C::RUNNING)
        {
            return end;
        }
        let filled = match fill(engine, clock, work, sky, depth, now_ns) {
            Ok(filled) => filled,
            Err(end) => return end,
        };
        if let Some(end) = submit(engine, clock, work, sky) {
            return end;
        }
        let (floor, wait) = match filled {
            Filled::Exhausted if sky.in_flight == 0 => return End::Complete,
            Filled::Exhausted => (0, Wait::Block),
            Filled::Full => {
                (depth.low.min(depth.max - 1), if depth.complete_min == 0 { Wait::Poll } else { Wait::Block })
            }
            Filled::Held(ns) if sky.in_flight == 0 => {
                clock::sleep_until_ns(clock::monotonic_ns() + work.nap_ns(ns, now_ns));
                now_ns = clock.now_ns();
                continue;
            }
            Filled::Held(ns) => (depth.max, Wait::For(work.nap_ns(ns, now_ns))),
            Filled::Batch => (depth.max, Wait::Poll),
        };
        loop {
            match reap(engine, clock, work, sky, depth, wait) {
                Ok(at_ns) => now_ns = at_ns,
                Err(end) => return end,
            }
            if wait != Wait::Block || sky.in_flight <= floor || !matches!(filled, Filled::Full) {
                break;
            }
        }
    }
}

/// Why no more was queued.
enum Filled {
    /// Every slot is in flight.
    Full,
    /// A batch is due.
    Batch,
    /// The next operation has to wait this many nanoseconds.
    Held(u64),
    /// The stream has ended.
    Exhausted,
}

/// Queues operations on free slots until a batch is full or something holds.
#[inline]
fn fill<E: QueuedEngine, C: Clock>(
    engine: &mut E,
    clock: C,
    work: &mut Work<'_>,
    sky: &mut Sky,
    depth: Depth,
    now_ns: u64,
) -> Result<Filled, End> {
    let mut start_ns = now_ns;
    while let Some(mut slot) = sky.free.pop() {
        let Some(op) = work.ops.next() else {
            sky.free.push(slot);
            match work.refill(engine, now_ns, C::RUNNING, sky.in_flight)? {
                Refilled::Ready => continue,
                Refilled::ReadyLater => {
                    start_ns = clock.now_ns();
                    continue;
                }
                Refilled::Blocked => return Ok(Filled::Full),
                Refilled::Exhausted => return Ok(Filled::Exhausted),
            }
        };
        if work.gate.is_some()
            && let Some(ns) = work.held(&op)
        {
            work.ops.put_back();
            sky.free.push(slot);
            return Ok(Filled::Held(ns));
        }
        if work.refills && op.action == Action::Transfer(Direction::Write) {
            let buffer = &mut engine.arena().bytes_mut(&mut slot)[..op.length_bytes as usize];
            work.filler.before_write(buffer, op.offset_bytes);
            start_ns = clock.now_ns();
        }
        let index = slot.index();
        if let Err(slot) = engine.queue(op, slot) {
            work.ops.put_back();
            sky.free.push(slot);
            return Ok(Filled::Full);
        }
        sky.flights[index] = Some(Flight { op, rest: op, start_ns, issue_ns: start_ns });
        sky.queued.push(index);
        sky.in_flight += 1;
        sky.new += 1;
        if work.gate.is_some() {
            work.pass(&op);
        }
        if sky.queued.len() >= depth.submit as usize && !sky.free.is_empty() {
            return Ok(Filled::Batch);
        }
    }
    Ok(Filled::Full)
}

/// Hands what was queued to the kernel and stamps it.
#[inline]
fn submit<E: QueuedEngine, C: Clock>(
    engine: &mut E,
    clock: C,
    work: &mut Work<'_>,
    sky: &mut Sky,
) -> Option<End> {
    if sky.queued.is_empty() {
        return None;
    }
    let taken = match engine.submit() {
        Ok(taken) => taken,
        Err(error) => return Some(Failure::system("submit", &error).into()),
    };
    work.recorder.stats.submit.record(taken);
    work.recorder.stats.depth.record_many(sky.in_flight, u64::from(std::mem::take(&mut sky.new)));
    let issue_ns = clock.now_ns();
    for index in sky.queued.drain(..) {
        if let Some(flight) = &mut sky.flights[index] {
            flight.issue_ns = issue_ns;
        }
    }
    None
}

/// Takes what has ended; returns the time.
#[inline]
fn reap<E: QueuedEngine, C: Clock>(
    engine: &mut E,
    clock: C,
    work: &mut Work<'_>,
    sky: &mut Sky,
    depth: Depth,
    wait: Wait,
) -> Result<u64, End> {
    let min = if wait == Wait::Poll { 0 } else { depth.complete_min.clamp(1, sky.in_flight.max(1)) };
    let max = depth.complete_max.max(min);
    engine.reap(min, max, wait, &mut sky.done).map_err(|error| Failure::system("reap", &error))?;
    let end_ns = clock.now_ns();
    // A look in passing that finds nothing is no call to reap; one that `iodepth_batch_complete_min=0` asks for is.
    if !sky.done.is_empty() || wait != Wait::Poll || depth.complete_min == 0 {
        work.recorder.stats.complete.record(sky.done.len() as u32);
    }
    while let Some(completion) = sky.done.pop() {
        land(engine, work, sky, completion, end_ns, C::RUNNING)?;
    }
    Ok(end_ns)
}

/// One operation has ended: count it, or see what to do about it.
#[inline]
fn land<E: QueuedEngine>(
    engine: &mut E,
    work: &mut Work<'_>,
    sky: &mut Sky,
    completion: Completion,
    end_ns: u64,
    clocked: bool,
) -> Result<(), End> {
    let Completion { slot, outcome } = completion;
    let index = slot.index();
    let Some(Flight { op, rest, start_ns, issue_ns }) = sky.flights[index] else {
        unreachable!("the engine completed an operation nobody queued");
    };
    let whole = match op.action {
        Action::Transfer(_) => Outcome::Done(rest.length_bytes),
        _ => Outcome::Done(0),
    };
    if outcome != whole {
        match work.judge(&rest, outcome) {
            Verdict::Continue(left) => return requeue(engine, sky, slot, left),
            Verdict::Skip => {
                sky.in_flight -= 1;
                sky.free.push(slot);
                return Ok(());
            }
            Verdict::Stop(end) => {
                work.count_partial(&op, rest.buffer_offset_bytes);
                sky.in_flight -= 1;
                sky.free.push(slot);
                return Err(end);
            }
        }
    }
    sky.in_flight -= 1;
    sky.free.push(slot);
    work.count(&op, op.length_bytes);
    if clocked {
        work.recorder.reaped(&op, Stamps { start_ns, issue_ns, end_ns });
        if let Some(end) = work.too_slow(&op, end_ns.saturating_sub(issue_ns)) {
            return Err(end);
        }
    }
    Ok(())
}

/// A short transfer goes on behind what it did.
#[cold]
fn requeue<E: QueuedEngine>(engine: &mut E, sky: &mut Sky, slot: Slot, left: Op) -> Result<(), End> {
    let index = slot.index();
    if let Some(flight) = &mut sky.flights[index] {
        flight.rest = left;
    }
    engine
        .queue(left, slot)
        .map_err(|_| Failure::other("queue", "the engine has no room for the rest of a short transfer"))?;
    sky.queued.push(index);
    Ok(())
}

/// Waits for everything in flight.
fn drain<E: QueuedEngine, C: Clock>(
    engine: &mut E,
    clock: C,
    work: &mut Work<'_>,
    sky: &mut Sky,
) -> Option<End> {
    let all = Depth { max: 1, submit: 1, complete_min: 1, complete_max: u32::MAX, low: 0 };
    let mut failed = None;
    while sky.in_flight > 0 {
        if let Some(end) = submit(engine, clock, work, sky) {
            return Some(end);
        }
        let before = sky.in_flight;
        if let Err(end) = reap(engine, clock, work, sky, all, Wait::Block) {
            if sky.in_flight == before {
                return Some(end);
            }
            failed = failed.or(Some(end));
        }
    }
    failed
}
