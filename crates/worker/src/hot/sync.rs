//! The loop of the synchronous engines: one operation at a time.
//!
//! Invariant: data plane. No allocation, no lock, no formatting; one clock read per I/O, because the end of one is
//! the start of the next. docs/hot-loop.md follows an I/O through it.

use fiord_engine::contract::{Outcome, Slot, SyncEngine};
use fiord_plan::Op;
use fiord_sys::clock::Clock;

use super::{End, Refilled, Verdict, Work};
use crate::record::Stamps;
use crate::seal::sealed;

/// Runs `work` on `engine` until it ends.
pub(crate) fn run<E: SyncEngine, C: Clock>(
    engine: &mut E,
    clock: C,
    work: &mut Work<'_>,
    slot: &mut Slot,
) -> End {
    match sealed(|| execute_all(engine, clock, work, slot)) {
        Ok(()) => End::Complete,
        Err(end) => end,
    }
}

fn execute_all<E: SyncEngine, C: Clock>(
    engine: &mut E,
    clock: C,
    work: &mut Work<'_>,
    slot: &mut Slot,
) -> Result<(), End> {
    let mut now_ns = clock.now_ns();
    work.begin(now_ns, C::RUNNING);
    loop {
        match work.refill(engine, now_ns, 0)? {
            Refilled::Ready => {}
            Refilled::ReadyLater => now_ns = clock.now_ns(),
            Refilled::Exhausted | Refilled::Blocked => return Ok(()),
        }
        while let Some(op) = work.ops.next() {
            if work.is_due(now_ns) {
                work.attend(now_ns)?;
            }
            if work.needs_preparing(&op) {
                work.wait_for_turn(&op, clock)?;
                work.fill_buffer(engine, slot, &op);
                now_ns = clock.now_ns();
            }
            let outcome = engine.execute(op, slot);
            let mut end_ns = clock.now_ns();
            if outcome != Outcome::whole(&op) {
                let is_whole = finish(engine, work, slot, op, outcome)?;
                end_ns = clock.now_ns();
                if !is_whole {
                    now_ns = end_ns;
                    continue;
                }
            }
            work.ended::<C>(&op, Stamps::unqueued(now_ns, end_ns))?;
            now_ns = end_ns;
        }
    }
}

/// Sees an operation through that was short or failed. `false`: it failed and is passed over.
#[cold]
fn finish<E: SyncEngine>(
    engine: &mut E,
    work: &mut Work<'_>,
    slot: &mut Slot,
    op: Op,
    mut outcome: Outcome,
) -> Result<bool, End> {
    let mut rest = op;
    while outcome != Outcome::whole(&rest) {
        match work.judge(&rest, outcome) {
            Verdict::Continue(left) => rest = left,
            Verdict::Skip => return Ok(false),
            Verdict::Stop(end) => return Err(end),
        }
        outcome = engine.execute(rest, slot);
    }
    Ok(true)
}
