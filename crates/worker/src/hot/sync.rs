//! The loop of the synchronous engines: one operation at a time.
//!
//! Invariant: data plane. No allocation, no lock, no formatting; one clock read per I/O, because the end of one is
//! the start of the next, and one more after work that is not an I/O, which is in no latency. docs/hot-loop.md follows an
//! I/O through it.

use fiord_engine::contract::{Outcome, Slot, SyncEngine};
use fiord_plan::Op;
use fiord_sys::clock::Clock;

use super::end::End;
use super::errors::ErrorDecision;
use super::stamps::Stamps;
use super::work::{Refilled, Work};
use crate::alloc_guard::no_alloc;

/// Runs `work` on `engine` until it ends.
pub(crate) fn run<'arena, E: SyncEngine<'arena>, C: Clock>(
    engine: &mut E,
    clock: C,
    work: &mut Work<'_>,
    slot: &mut Slot<'arena>,
) -> End {
    match no_alloc(|| execute_all(engine, clock, work, slot)) {
        Ok(()) => End::Complete,
        Err(end) => end,
    }
}

fn execute_all<'arena, E: SyncEngine<'arena>, C: Clock>(
    engine: &mut E,
    clock: C,
    work: &mut Work<'_>,
    slot: &mut Slot<'arena>,
) -> Result<(), End> {
    let mut now_ns = clock.now_ns();
    work.begin(now_ns, C::RUNNING);
    loop {
        let refilled = work.refill(engine, now_ns, 0)?;
        // To generate operations takes as long as several I/Os of a fast device.
        now_ns = work.own.read(now_ns, clock);
        match refilled {
            Refilled::Ready => {}
            Refilled::Later(ns) => {
                work.sleep(ns, clock)?;
                now_ns = work.own.read(now_ns, clock);
                continue;
            }
            Refilled::Exhausted | Refilled::Blocked => return Ok(()),
        }
        while let Some(&op) = work.ops.next() {
            if work.is_due(now_ns) {
                work.handle_due(now_ns)?;
                now_ns = work.own.read(now_ns, clock);
            }
            if work.needs_preparing(&op) {
                work.wait_for_turn(&op, now_ns, clock)?;
                work.fill_buffer(engine, slot, &op);
                now_ns = work.own.read(now_ns, clock);
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
            work.completed::<E, C>(engine, slot, &op, Stamps::unqueued(now_ns, end_ns))?;
            now_ns = end_ns;
        }
    }
}

/// Handles an operation that was short or failed, to its end. `false`: it failed and the failure is ignored.
#[cold]
fn finish<'arena, E: SyncEngine<'arena>>(
    engine: &mut E,
    work: &mut Work<'_>,
    slot: &mut Slot<'arena>,
    op: Op,
    mut outcome: Outcome,
) -> Result<bool, End> {
    let mut rest = op;
    while outcome != Outcome::whole(&rest) {
        match work.judge(&rest, outcome) {
            ErrorDecision::Continue(left) => rest = left,
            ErrorDecision::Skip => return Ok(false),
            ErrorDecision::Stop(end) => return Err(end),
        }
        outcome = engine.execute(rest, slot);
    }
    Ok(true)
}
