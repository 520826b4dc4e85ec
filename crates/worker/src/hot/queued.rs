//! The loop of the queued engines: up to `depth` operations in flight.
//!
//! Invariant: data plane. No allocation, no lock, no formatting; one clock read per submission, one per reaping, and one more
//! after work that is not an I/O, which is in no latency.
//!
//! The depth and the batches in the statistics are fio's: its loop processes one completion, begins an operation, and
//! processes the next, so that its queue stays full while completions wait. Here all of them are reaped in one call,
//! and count as in flight until new operations have taken their place.
//! docs/hot-loop.md follows an I/O through it.

use std::convert::Infallible;
use std::io;

use fiord_engine::contract::{Completion, Outcome, QueuedEngine, Slot, Wait};
use fiord_plan::{Action, Depth, Op};
use fiord_stats::count::UNQUEUED_TRIMS;
use fiord_sys::clock::Clock;
use fiord_sys::errno::Errno;

use super::end::End;
use super::errors::{ErrorDecision, ErrorHandler};
use super::queue::{Flight, SlotQueue, slots};
use super::stamps::Stamps;
use super::wake::WaitStep;
use super::work::{Refilled, Work, limiter_ns};
use crate::alloc_guard::{allow_alloc, no_alloc};
use crate::failure::Failure;

/// Interval between two looks for completions while the clock is polled.
const LOOK_NS: u64 = 1_000;

/// So many completions are noted in the time of one reading of the clock.
const NOTES_MAX: usize = 2;

/// Runs `work` on `engine` until it ends, and drains the queue.
pub(crate) fn run<'arena, E: QueuedEngine<'arena>, C: Clock>(
    engine: &mut E,
    clock: C,
    work: &mut Work<'_>,
    slots: Vec<Slot<'arena>>,
    depth: Depth,
) -> End {
    work.recorder.expect_queue(E::ENDS_AT_ONCE);
    if E::OFFLOADS {
        work.recorder.expect_pool();
    }
    let mut rounds =
        Rounds { engine, clock, work, queue: SlotQueue::new(slots), noted: None, depth, depth_max: depth };
    let Err(end) = no_alloc(|| rounds.go());
    rounds.show_failure(&end);
    match rounds.drain() {
        Err(failed) if !matches!(end, End::Failed(_)) => failed,
        _ => end,
    }
}

/// The state of the loop: fill the free slots, submit, reap.
struct Rounds<'a, 'w, 'arena, E, C> {
    engine: &'a mut E,
    clock: C,
    work: &'a mut Work<'w>,
    queue: SlotQueue<'arena>,
    depth: Depth,
    /// What was noted of the next operation when its observers were notified of it; `None` without observers.
    noted: Option<Noted>,
    /// The depth and batches of the job; `depth` is lower while the depth is adjusted to a latency.
    depth_max: Depth,
}

/// What is known of an operation of which observers were notified, until it is in flight.
#[derive(Clone, Copy)]
struct Noted {
    /// Whether it counts as an I/O of the job.
    counts: bool,
    /// When its rate intended it to start.
    intended_ns: Option<u64>,
}

/// Why filling stopped.
enum Filled {
    /// Every slot is in flight.
    Full,
    /// `handle_due` has something to do first, at this time.
    Interrupted(u64),
    /// The next operation overlaps one in flight.
    Overlapping,
    /// The next operation has to wait this many nanoseconds; the clock was last read at the second.
    Held(u64, u64),
    /// The stream has ended.
    Exhausted,
}

impl<'arena, E: QueuedEngine<'arena>, C: Clock> Rounds<'_, '_, 'arena, E, C> {
    fn go(&mut self) -> Result<Infallible, End> {
        let mut now_ns = self.clock.now_ns();
        self.work.begin(now_ns, C::RUNNING);
        if self.work.wanted_depth().is_some() {
            now_ns = self.change_depth()?;
        }
        loop {
            if self.work.is_due(now_ns) {
                self.work.handle_due(now_ns)?;
                now_ns = self.work.own.read(now_ns, self.clock);
                if self.work.wanted_depth().is_some_and(|depth| depth != self.queue.depth()) {
                    now_ns = self.change_depth()?;
                }
            }
            let filled = self.fill(now_ns)?;
            self.submit_rest()?;
            now_ns = match filled {
                Filled::Full => self.reap_until_low()?,
                Filled::Interrupted(at_ns) => at_ns,
                Filled::Exhausted if self.queue.in_flight == 0 => return Err(End::Complete),
                Filled::Exhausted => self.reap(Wait::Block, u32::MAX)?,
                Filled::Overlapping => {
                    self.queue.see_all();
                    self.reap(Wait::Block, u32::MAX)?
                }
                Filled::Held(ns, since_ns) => self.wait(ns, since_ns)?,
            };
        }
    }

    /// Queues operations on free slots and submits them batch by batch, until no slot is free or the next has to wait.
    #[inline]
    fn fill(&mut self, now_ns: u64) -> Result<Filled, End> {
        let mut start_ns = now_ns;
        while let Some(mut slot) = self.queue.free.pop() {
            let Some(&(mut op)) = self.work.ops.next() else {
                self.queue.free.push(slot);
                match self.work.refill(self.engine, start_ns, self.queue.in_flight)? {
                    Refilled::Ready => {
                        start_ns = self.work.own.read(start_ns, self.clock);
                        continue;
                    }
                    Refilled::Blocked => return Ok(Filled::Full),
                    Refilled::Later(ns) => return Ok(Filled::Held(ns, start_ns)),
                    Refilled::Exhausted => {
                        self.work.own.read(start_ns, self.clock);
                        return Ok(Filled::Exhausted);
                    }
                }
            };
            if self.work.needs_preparing(&op) {
                if self.work.serializes && self.queue.overlaps(slot.index(), &op) {
                    self.work.ops.put_back();
                    self.queue.free.push(slot);
                    return Ok(Filled::Overlapping);
                }
                if let Some(ns) = self.hold_ns(&op, start_ns) {
                    self.work.ops.put_back();
                    self.queue.free.push(slot);
                    return Ok(Filled::Held(ns, start_ns));
                }
                self.prepare(&mut op, &mut slot, start_ns);
                start_ns = self.work.own.read(start_ns, self.clock);
            }
            if !op.action.transfers()
                && let Some(outcome) = self.engine.execute_unqueued(&op)
            {
                start_ns = self.count_unqueued(Completion { slot, outcome }, op, start_ns)?;
                if self.work.is_due(start_ns) {
                    return Ok(Filled::Interrupted(start_ns));
                }
                continue;
            }
            let index = slot.index();
            if let Err(slot) = self.engine.queue(op, slot) {
                self.work.ops.put_back();
                self.queue.free.push(slot);
                return Ok(Filled::Full);
            }
            self.queue.begin(index, &op, start_ns);
            if self.work.is_observed() && self.noted.take().is_some_and(|noted| !noted.counts) {
                self.queue.exclude();
            }
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

    /// How long `op` has to wait, if it has to. One that the engine had no room for has waited.
    #[inline(always)]
    fn hold_ns(&mut self, op: &Op, now_ns: u64) -> Option<u64> {
        if self.noted.is_some() {
            return None;
        }
        if let Some(intended_ns) = self.work.take_turn(op, now_ns) {
            self.noted = Some(Noted { counts: true, intended_ns: Some(intended_ns) });
            return None;
        }
        self.work.wait_ns(op, self.work.paced_ns(now_ns))
    }

    /// Prepares `op`, and notifies its observers that it is issued: before its time begins, because that takes time as well.
    // A call would have the operation in memory.
    #[inline(always)]
    fn prepare(&mut self, op: &mut Op, slot: &mut Slot<'arena>, now_ns: u64) {
        let intended_ns = self.noted.map_or_else(|| self.work.intended_ns(op), |noted| noted.intended_ns);
        op.due_ns = intended_ns.unwrap_or(op.due_ns);
        self.work.fill_buffer(self.engine, slot, op);
        if self.work.is_observed() && self.noted.is_none() {
            let counts = self.work.note_issue(op, self.work.paced_ns(now_ns));
            self.noted = Some(Noted { counts, intended_ns });
        }
    }

    /// Counts an operation that blocked instead of being queued: its latency is that of the call, whatever is in flight.
    /// Returns the time.
    #[cold]
    fn count_unqueued(&mut self, completion: Completion<'arena>, op: Op, start_ns: u64) -> Result<u64, End> {
        let end_ns = self.clock.now_ns();
        if op.action == Action::Trim {
            // Once, for the first.
            allow_alloc(|| self.work.recorder.stats.counts.add(&UNQUEUED_TRIMS, 1));
        }
        self.queue.begin_unqueued(completion.slot.index(), op, start_ns);
        if self.noted.take().is_none_or(|noted| noted.counts) {
            self.work.recorder.stats.depth.record_many(self.queue.depth_shown(), 1);
            self.count_taken(1);
        }
        self.complete(completion, end_ns)?;
        Ok(self.work.own.read(end_ns, self.clock))
    }

    /// Submits the queued operations to the kernel and stamps them; returns the time.
    #[inline]
    fn submit(&mut self) -> Result<u64, End> {
        let taken = self.engine.submit().map_err(|error| self.failed("submit", &error))?;
        let issue_ns = self.clock.now_ns();
        let begun = self.queue.issue(issue_ns);
        let taken = if self.work.is_observed() { self.queue.measured_of(taken) } else { taken };
        let stats = &mut self.work.recorder.stats;
        if E::OFFLOADS {
            // Each thread submits its own I/O, and has no other.
            stats.submit.record_calls(1, u64::from(taken));
            stats.depth.record_many(1, u64::from(begun));
            return Ok(issue_ns);
        }
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

    /// Waits for at most `ns` from `since_ns` on, when the clock was last read, and reaps what completes meanwhile; returns the
    /// time.
    fn wait(&mut self, ns: u64, since_ns: u64) -> Result<u64, End> {
        self.queue.see_all();
        let passed_ns = self.clock.now_ns().saturating_sub(since_ns);
        let step = self.work.wait_step(ns.saturating_sub(passed_ns), self.clock);
        if self.queue.in_flight == 0 {
            let began_ns = self.clock.now_ns();
            self.work.take_step(step, self.clock);
            let now_ns = self.work.own.read(since_ns, self.clock);
            self.work.own.waited(now_ns.saturating_sub(began_ns));
            return Ok(now_ns);
        }
        match step {
            WaitStep::Sleep(ns) => {
                let (before, began_ns) = (self.queue.in_flight, limiter_ns(self.clock));
                let now_ns = self.reap(Wait::For(ns), u32::MAX)?;
                if self.queue.in_flight == before {
                    self.work.slept(ns, began_ns, self.clock);
                }
                Ok(now_ns)
            }
            WaitStep::Poll(ns) => {
                self.clock.poll_ns(ns.min(LOOK_NS));
                self.reap(Wait::Poll, u32::MAX)
            }
        }
    }

    /// Submits an incomplete batch.
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
        // A queue reaped one by one drains to the requested low mark and no further.
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

    /// Reaps at most `most` completions; returns the time.
    #[inline]
    fn reap(&mut self, wait: Wait, most: u32) -> Result<u64, End> {
        let Depth { complete_min, complete_max, .. } = self.depth;
        let min = if wait == Wait::Poll { 0 } else { complete_min.clamp(1, self.queue.in_flight.max(1)) };
        let max = complete_max.unwrap_or(most).max(min);
        let mut done = std::mem::take(&mut self.queue.done);
        let reaped = self.engine.reap(min, max, wait, &mut done);
        let end_ns = self.clock.now_ns();
        let taken = if self.work.is_observed() { self.queue.measured_done(&done) } else { slots(done.len()) };
        self.count_taken(taken);
        // Completions reaped together with the one that ends the worker count too.
        let mut completed = reaped.map_err(|error| self.not_reaped(&error));
        let takes_time = done.len() > NOTES_MAX;
        for completion in done.drain(..) {
            if let Err(end) = self.complete(completion, end_ns) {
                // Only one of several ends is kept; dropping the other frees its text.
                completed = allow_alloc(|| completed.and(Err(end)));
            }
        }
        self.queue.done = done;
        completed.map(|()| if takes_time { self.work.own.read(end_ns, self.clock) } else { end_ns })
    }

    /// Ends the loop: an engine that gives up what is in flight after a request to stop has not failed.
    #[cold]
    fn not_reaped(&self, error: &io::Error) -> End {
        match Errno::of(error) {
            Some(Errno::EINTR) if self.work.live.is_stop_requested() => End::StopRequested,
            _ => self.failed("reap", error),
        }
    }

    #[cold]
    fn failed(&self, call: &str, error: &io::Error) -> End {
        End::failed(|| Failure::of_engine(self.work.errors.engine, call, error))
    }

    /// Counts a call that reaped `taken` completions as fio does: not at all if it found none, and as one call for each
    /// completion unless the job sets a batch size.
    #[inline]
    fn count_taken(&mut self, taken: u32) {
        if taken == 0 || E::ENDS_AT_ONCE {
            return;
        }
        let calls = &mut self.work.recorder.stats.complete;
        match self.depth.complete_max {
            Some(_) if !E::OFFLOADS => calls.record(taken),
            _ => calls.record_calls(1, u64::from(taken)),
        }
    }

    /// Counts a completed operation, or handles one that was short or failed.
    // It has two callers, one of them rare; a call would cost 26 instructions an I/O.
    #[inline(always)]
    fn complete(&mut self, completion: Completion<'arena>, end_ns: u64) -> Result<(), End> {
        let Completion { mut slot, outcome } = completion;
        let Flight { op, start_ns, issue_ns } = self.queue.flight(&slot);
        if E::OFFLOADS {
            let (op, stamps) = (*op, Stamps::offloaded(*start_ns, end_ns, self.engine.timing(&slot)));
            if outcome != Outcome::whole(&op) {
                return self.handle_incomplete(slot, &op, outcome, stamps);
            }
            let completed = self.work.completed::<E, C>(self.engine, &mut slot, &op, stamps);
            self.queue.complete(slot);
            return completed;
        }
        if outcome != Outcome::whole(op) {
            let (op, stamps) = (*op, Stamps { start_ns: *start_ns, issue_ns: *issue_ns, end_ns });
            return self.handle_incomplete(slot, &op, outcome, stamps);
        }
        let stamps = Stamps { start_ns: *start_ns, issue_ns: *issue_ns, end_ns };
        if let Err(end) = self.work.completed::<E, C>(self.engine, &mut slot, op, stamps) {
            self.queue.complete(slot);
            return Err(end);
        }
        // Apart from the above, so that success is not asked for twice.
        self.queue.complete(slot);
        Ok(())
    }

    /// Counts what was appended or is nothing, continues a short transfer, ignores a failure, or ends the loop.
    #[cold]
    fn handle_incomplete(
        &mut self,
        mut slot: Slot<'arena>,
        op: &Op,
        outcome: Outcome,
        stamps: Stamps,
    ) -> Result<(), End> {
        let index = slot.index();
        let known = match outcome {
            Outcome::Appended(offset_bytes) => Some(Op { offset_bytes, ..*op }),
            _ if ErrorHandler::is_device_end(op, outcome, &self.work.files) => {
                Some(Op { length_bytes: 0, ..*op })
            }
            Outcome::Done(_) | Outcome::Failed(_) => None,
        };
        if let Some(known) = known {
            let completed = self.work.completed::<E, C>(self.engine, &mut slot, &known, stamps);
            self.queue.complete(slot);
            return completed;
        }
        match self.work.judge(op, outcome) {
            ErrorDecision::Continue(rest) => {
                const NO_ROOM: &str = "the engine has no room for the rest of a short transfer";
                let no_room = |_| End::failed(|| Failure::other("queue", NO_ROOM));
                self.engine.queue(rest, slot).map_err(no_room)?;
                self.queue.resume(index, rest);
                Ok(())
            }
            ErrorDecision::Skip => {
                self.queue.complete(slot);
                Ok(())
            }
            ErrorDecision::Stop(end) => {
                self.queue.complete(slot);
                Err(end)
            }
        }
    }

    /// Goes on at the depth that is wanted, after all operations in flight; returns the time.
    #[cold]
    fn change_depth(&mut self) -> Result<u64, End> {
        self.submit_rest()?;
        while self.queue.in_flight > 0 {
            self.reap(Wait::Block, u32::MAX)?;
        }
        let Some(depth) = self.work.wanted_depth() else { return Ok(self.clock.now_ns()) };
        self.queue.set_depth(depth);
        let Depth { submit, complete_min, complete_max, low, .. } = self.depth_max;
        let (submit, complete_min) = (submit.min(depth), complete_min.min(depth));
        self.depth = Depth { max: depth, submit, complete_min, complete_max, low: low.min(depth) };
        let now_ns = self.clock.now_ns();
        self.work.begin_depth(now_ns);
        Ok(now_ns)
    }

    /// Waits for all operations in flight.
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
                self.show_failure(&end);
                drained = drained.and(Err(end));
            }
            // The watchdog sees the progress of the drain.
            self.work.recorder.flush();
        }
        drained
    }

    /// Shows why the worker fails before it waits for operations in flight: it is known even if one of them never ends.
    fn show_failure(&self, end: &End) {
        if let End::Failed(failure) = end
            && self.queue.in_flight > 0
        {
            self.work.live.set_failure(failure);
        }
    }
}
