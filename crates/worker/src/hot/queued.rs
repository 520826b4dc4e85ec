//! The loop of the queued engines: up to `depth` operations in flight.
//!
//! Invariant: data plane. No allocation, no lock, no formatting; one clock read per submission and one per reaping.
//!
//! The depth and the batches in the statistics are fio's: its loop looks at one completion, begins an operation, and looks
//! at the next, so that its queue stays full while completions wait to be looked at. Here all of them are taken in one
//! go, and those taken count as in flight until operations have taken their place.
//! docs/hot-loop.md follows an I/O through it.

use std::convert::Infallible;

use fiord_engine::contract::{Completion, Outcome, QueuedEngine, Slot, Wait};
use fiord_plan::{Depth, Op};
use fiord_sys::clock::{self, Clock};

use super::queue::{Flight, Queue};
use super::{End, Refilled, Verdict, Work};
use crate::failure::Failure;
use crate::record::Stamps;
use crate::seal::{sealed, unsealed};

/// Runs `work` on `engine` until it ends, and leaves nothing in flight.
pub(crate) fn run<E: QueuedEngine, C: Clock>(
    engine: &mut E,
    clock: C,
    work: &mut Work<'_>,
    slots: Vec<Slot>,
    depth: Depth,
) -> End {
    work.recorder.expect_queue(E::ENDS_AT_ONCE);
    let mut rounds = Rounds { engine, clock, work, queue: Queue::new(slots), depth };
    let Err(end) = sealed(|| rounds.go());
    match rounds.drain() {
        Err(failed) if !matches!(end, End::Failed(_)) => failed,
        _ => end,
    }
}

/// What the loop goes round with: fill the free slots, submit, reap.
struct Rounds<'a, 'w, E, C> {
    engine: &'a mut E,
    clock: C,
    work: &'a mut Work<'w>,
    queue: Queue,
    depth: Depth,
}

/// Why no more was queued.
enum Filled {
    /// Every slot is in flight.
    Full,
    /// There is something to attend to first, at this time.
    Interrupted(u64),
    /// The next operation has to wait this many nanoseconds.
    Held(u64),
    /// The stream has ended.
    Exhausted,
}

impl<E: QueuedEngine, C: Clock> Rounds<'_, '_, E, C> {
    fn go(&mut self) -> Result<Infallible, End> {
        let mut now_ns = self.clock.now_ns();
        self.work.begin(now_ns, C::RUNNING);
        loop {
            if self.work.is_due(now_ns) {
                self.work.attend(now_ns)?;
            }
            let filled = self.fill(now_ns)?;
            self.submit_rest()?;
            now_ns = match filled {
                Filled::Full => self.reap_until_low()?,
                Filled::Interrupted(at_ns) => at_ns,
                Filled::Exhausted if self.queue.in_flight == 0 => return Err(End::Complete),
                Filled::Exhausted => self.reap(Wait::Block, u32::MAX)?,
                Filled::Held(ns) => {
                    let nap_ns = self.work.nap_ns(ns, now_ns);
                    self.queue.see_all();
                    if self.queue.in_flight > 0 {
                        self.reap(Wait::For(nap_ns), u32::MAX)?
                    } else {
                        clock::sleep_until_ns(clock::monotonic_ns() + nap_ns);
                        self.clock.now_ns()
                    }
                }
            };
        }
    }

    /// Queues operations on free slots, and hands them over batch by batch, until none is free or something holds.
    #[inline]
    fn fill(&mut self, now_ns: u64) -> Result<Filled, End> {
        let mut start_ns = now_ns;
        while let Some(mut slot) = self.queue.free.pop() {
            let Some(op) = self.work.ops.next() else {
                self.queue.free.push(slot);
                match self.work.refill(self.engine, now_ns, self.queue.in_flight)? {
                    Refilled::Ready => continue,
                    Refilled::ReadyLater => {
                        start_ns = self.clock.now_ns();
                        continue;
                    }
                    Refilled::Blocked => return Ok(Filled::Full),
                    Refilled::Exhausted => return Ok(Filled::Exhausted),
                }
            };
            if self.work.needs_preparing(&op) {
                if let Some(ns) = self.work.held(&op, self.clock) {
                    self.work.ops.put_back();
                    self.queue.free.push(slot);
                    return Ok(Filled::Held(ns));
                }
                self.work.fill_buffer(self.engine, &mut slot, &op);
                start_ns = self.clock.now_ns();
            }
            let index = slot.index();
            if let Err(slot) = self.engine.queue(op, slot) {
                self.work.ops.put_back();
                self.queue.free.push(slot);
                return Ok(Filled::Full);
            }
            self.work.pass(&op, self.clock);
            self.queue.begin(index, op, start_ns);
            if self.queue.queued() >= self.depth.submit {
                start_ns = self.submit()?;
                // A submission may take as long as an I/O.
                if self.work.is_due(start_ns) {
                    return Ok(Filled::Interrupted(start_ns));
                }
            }
        }
        Ok(Filled::Full)
    }

    /// Hands what was queued to the kernel and stamps it; returns the time.
    #[inline]
    fn submit(&mut self) -> Result<u64, End> {
        let taken =
            self.engine.submit().map_err(|error| End::failed(|| Failure::system("submit", &error)))?;
        let issue_ns = self.clock.now_ns();
        let begun = self.queue.issue(issue_ns);
        let stats = &mut self.work.recorder.stats;
        // A sync that the engine did by itself is no submission.
        if taken > 0 {
            stats.submit.record(taken);
        }
        if E::ENDS_AT_ONCE {
            stats.depth.record_many(begun, u64::from(begun));
        } else {
            stats.depth.record_many(self.queue.depth_shown(), u64::from(begun));
        }
        Ok(issue_ns)
    }

    /// Hands over what is no whole batch.
    #[inline]
    fn submit_rest(&mut self) -> Result<(), End> {
        if self.queue.queued() > 0 {
            self.submit()?;
        }
        Ok(())
    }

    /// Reaps until few enough are in flight to begin the next batch; returns the time.
    #[inline]
    fn reap_until_low(&mut self) -> Result<u64, End> {
        let Depth { max, complete_min, complete_max, low, .. } = self.depth;
        let floor = low.min(max - 1);
        // A queue that is taken from one by one drains to the mark that was asked for, and no further.
        let stops_at_mark = complete_max.is_none() && floor < max - 1;
        let wait = if complete_min == 0 { Wait::Poll } else { Wait::Block };
        loop {
            let before = self.queue.in_flight;
            let most = if stops_at_mark { before.saturating_sub(floor).max(1) } else { u32::MAX };
            let now_ns = self.reap(wait, most)?;
            if complete_max.is_none() && !stops_at_mark {
                self.queue.leave_unseen(before - self.queue.in_flight);
            }
            if wait == Wait::Poll || self.queue.in_flight <= floor {
                return Ok(now_ns);
            }
        }
    }

    /// Takes what has ended, `most` at once; returns the time.
    #[inline]
    fn reap(&mut self, wait: Wait, most: u32) -> Result<u64, End> {
        let Depth { complete_min, complete_max, .. } = self.depth;
        let min = if wait == Wait::Poll { 0 } else { complete_min.clamp(1, self.queue.in_flight.max(1)) };
        let max = complete_max.unwrap_or(most).max(min);
        let mut done = std::mem::take(&mut self.queue.done);
        let reaped = self.engine.reap(min, max, wait, &mut done);
        let end_ns = self.clock.now_ns();
        self.count_taken(done.len() as u32);
        // What ended beside an I/O that ends the worker counts too.
        let mut landed = reaped.map_err(|error| End::failed(|| Failure::system("reap", &error)));
        for completion in done.drain(..) {
            if let Err(end) = self.land(completion, end_ns) {
                // Of several ends one is dropped, with its text.
                landed = unsealed(|| landed.and(Err(end)));
            }
        }
        self.queue.done = done;
        landed.map(|()| end_ns)
    }

    /// Counts a call that took so many completions, as fio does: one that found nothing is none, and unless the job
    /// says how many to take at once, each is taken by itself.
    #[inline]
    fn count_taken(&mut self, taken: u32) {
        if taken == 0 || E::ENDS_AT_ONCE {
            return;
        }
        let calls = &mut self.work.recorder.stats.complete;
        match self.depth.complete_max {
            Some(_) => calls.record(taken),
            None => calls.record_calls(1, u64::from(taken)),
        }
    }

    /// One operation has ended: count it, or see what to do about it.
    #[inline]
    fn land(&mut self, completion: Completion, end_ns: u64) -> Result<(), End> {
        let Completion { slot, outcome } = completion;
        let Flight { op, start_ns, issue_ns } = self.queue.flight(&slot);
        if outcome != Outcome::whole(op) {
            let (op, stamps) = (*op, Stamps { start_ns: *start_ns, issue_ns: *issue_ns, end_ns });
            return self.mend(slot, &op, outcome, stamps);
        }
        let stamps = Stamps { start_ns: *start_ns, issue_ns: *issue_ns, end_ns };
        let ended = self.work.ended::<C>(op, stamps);
        self.queue.land(slot);
        ended
    }

    /// Lets a short transfer go on behind what it did, passes a failure over, or ends.
    #[cold]
    fn mend(&mut self, slot: Slot, op: &Op, outcome: Outcome, stamps: Stamps) -> Result<(), End> {
        let index = slot.index();
        if self.work.is_all_there_is(op, outcome) {
            let ended = self.work.ended::<C>(&Op { length_bytes: 0, ..*op }, stamps);
            self.queue.land(slot);
            return ended;
        }
        match self.work.judge(op, outcome) {
            Verdict::Continue(rest) => {
                const NO_ROOM: &str = "the engine has no room for the rest of a short transfer";
                let no_room = |_| End::failed(|| Failure::other("queue", NO_ROOM));
                self.engine.queue(rest, slot).map_err(no_room)?;
                self.queue.go_on(index, rest);
                Ok(())
            }
            Verdict::Skip => {
                self.queue.land(slot);
                Ok(())
            }
            Verdict::Stop(end) => {
                self.queue.land(slot);
                Err(end)
            }
        }
    }

    /// Waits for everything in flight.
    fn drain(&mut self) -> Result<(), End> {
        self.depth = Depth { max: 1, submit: 1, complete_min: 1, complete_max: Some(u32::MAX), low: 0 };
        let mut drained = Ok(());
        while self.queue.in_flight > 0 {
            self.submit_rest()?;
            let before = self.queue.in_flight;
            if let Err(end) = self.reap(Wait::Block, u32::MAX) {
                if self.queue.in_flight == before {
                    return Err(end);
                }
                drained = drained.and(Err(end));
            }
            // Whoever waits for the end sees that it comes nearer.
            self.work.recorder.settle();
        }
        drained
    }
}
