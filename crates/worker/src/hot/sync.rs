//! The loop of the synchronous engines: one operation at a time.
//!
//! Invariant: data plane. No allocation, no lock, no formatting; one clock read per I/O, because the end of one is
//! the start of the next.

use fiord_engine::contract::{Outcome, Slot, SyncEngine};
use fiord_plan::{Action, Direction, Op};
use fiord_sys::clock::Clock;

use super::{End, Refilled, Verdict, Work};

/// The operations that need their buffers filled.
const WRITE: Action = Action::Transfer(Direction::Write);

/// Runs `work` on `engine` until it ends.
pub(crate) fn run<E: SyncEngine, C: Clock>(
    engine: &mut E,
    clock: C,
    work: &mut Work<'_>,
    slot: &mut Slot,
) -> End {
    let (paced, refills) = (work.gate.is_some(), work.refills);
    let mut now_ns = clock.now_ns();
    work.begin(now_ns, C::RUNNING);
    loop {
        match work.refill(engine, now_ns, C::RUNNING, 0) {
            Ok(Refilled::Ready) => {}
            Ok(Refilled::ReadyLater) => now_ns = clock.now_ns(),
            Ok(Refilled::Exhausted | Refilled::Blocked) => return End::Complete,
            Err(end) => return end,
        }
        while let Some(op) = work.ops.next() {
            if work.is_due(now_ns)
                && let Some(end) = work.attend(now_ns, C::RUNNING)
            {
                return end;
            }
            if paced || (refills && op.action == WRITE) {
                if let Some(end) = prepare(engine, clock, work, slot, &op) {
                    return end;
                }
                now_ns = clock.now_ns();
            }
            let outcome = engine.execute(op, slot);
            let mut end_ns = clock.now_ns();
            if outcome == done(&op) {
                work.count(&op, op.length_bytes);
            } else {
                match finish(engine, work, slot, op, outcome) {
                    Ok(Finished::Whole) => end_ns = clock.now_ns(),
                    Ok(Finished::Skipped) => {
                        now_ns = clock.now_ns();
                        continue;
                    }
                    Err(end) => return end,
                }
            }
            if C::RUNNING {
                work.recorder.executed(&op, now_ns, end_ns);
                if let Some(end) = work.too_slow(&op, end_ns.saturating_sub(now_ns)) {
                    return end;
                }
            }
            now_ns = end_ns;
        }
    }
}

/// What an operation that went well returns.
#[inline]
fn done(op: &Op) -> Outcome {
    match op.action {
        Action::Transfer(_) => Outcome::Done(op.length_bytes),
        _ => Outcome::Done(0),
    }
}

/// Waits for the operation's turn and fills its buffer.
fn prepare<E: SyncEngine, C: Clock>(
    engine: &mut E,
    clock: C,
    work: &mut Work<'_>,
    slot: &mut Slot,
    op: &Op,
) -> Option<End> {
    if work.gate.is_some() {
        if let Some(end) = work.hold(op, || clock.now_ns(), C::RUNNING) {
            return Some(end);
        }
        work.pass(op);
    }
    if work.refills && op.action == WRITE {
        let buffer = &mut engine.arena().bytes_mut(slot)[..op.length_bytes as usize];
        work.filler.before_write(buffer, op.offset_bytes);
    }
    None
}

/// How an operation ended that did not go well at once.
enum Finished {
    /// In several transfers.
    Whole,
    /// Failed, and passed over: it has no latency.
    Skipped,
}

/// Sees an operation through that was short or failed.
#[cold]
fn finish<E: SyncEngine>(
    engine: &mut E,
    work: &mut Work<'_>,
    slot: &mut Slot,
    op: Op,
    outcome: Outcome,
) -> Result<Finished, End> {
    let (mut rest, mut outcome) = (op, outcome);
    loop {
        match work.judge(&rest, outcome) {
            Verdict::Continue(left) => {
                outcome = engine.execute(left, slot);
                if outcome == Outcome::Done(left.length_bytes) {
                    work.count(&op, op.length_bytes);
                    return Ok(Finished::Whole);
                }
                rest = left;
            }
            Verdict::Skip => return Ok(Finished::Skipped),
            Verdict::Stop(end) => {
                work.count_partial(&op, rest.buffer_offset_bytes);
                return Err(end);
            }
        }
    }
}
