//! When an operation may be issued: rates, due times and flows, and how a worker waits for them.
//!
//! Invariant: a wait ends at the next deadline or request at the latest.

use fiord_plan::{Action, Op};
use fiord_sys::clock::{self, Clock};

use super::Work;
use crate::flow::FlowMember;
use crate::hot::end::End;
use crate::hot::wake::WaitStep;

/// Longest sleep between two checks for requests, in nanoseconds.
const SLEEP_NS_MAX: u64 = 50_000_000;

impl Work<'_> {
    /// How long a worker that has to wait for `ns` may sleep without missing a deadline or request.
    fn sleep_ns(&self, ns: u64, now_ns: u64) -> u64 {
        ns.min(SLEEP_NS_MAX).min(self.deadline_ns.saturating_sub(now_ns))
    }

    /// What a worker that has to wait for `ns` does next.
    pub(crate) fn wait_step<C: Clock>(&mut self, ns: u64, clock: C) -> WaitStep {
        let step = self.wake.as_mut().map(|wake| wake.step(ns, limiter_ns(clock)));
        let now_ns = clock.now_ns();
        match step.unwrap_or(WaitStep::Sleep(ns)) {
            WaitStep::Sleep(ns) => WaitStep::Sleep(self.sleep_ns(ns, now_ns)),
            WaitStep::Poll(ns) => WaitStep::Poll(self.sleep_ns(ns, now_ns)),
        }
    }

    /// Waits with nothing in flight.
    pub(crate) fn take_step<C: Clock>(&mut self, step: WaitStep, clock: C) {
        match step {
            WaitStep::Sleep(ns) => {
                let began_ns = limiter_ns(clock);
                clock.sleep_ns(ns);
                self.slept(ns, began_ns, clock);
            }
            WaitStep::Poll(ns) => clock.poll_ns(ns),
        }
    }

    /// Learns how late a sleep of `ns` that began then has ended.
    pub(crate) fn slept<C: Clock>(&mut self, ns: u64, began_ns: u64, clock: C) {
        if let Some(wake) = &mut self.wake {
            wake.woke(limiter_ns(clock).saturating_sub(began_ns + ns));
        }
    }

    /// Whether an operation may have to wait, or its buffer has to be filled.
    #[inline]
    pub(crate) fn needs_preparing(&self, op: &Op) -> bool {
        self.may_prepare && (self.prepares_each || op.action.sends_buffer())
    }

    /// Sleeps until `op` may be issued, and notes that it is. The clock was last read at `now_ns`, and is read again only to
    /// wait: what was allowed then is allowed still.
    ///
    /// # Errors
    /// The end of the loop, if that comes first.
    #[inline(never)]
    pub(crate) fn wait_for_turn<C: Clock>(&mut self, op: &Op, now_ns: u64, clock: C) -> Result<(), End> {
        if !self.observed {
            return Ok(());
        }
        if !self.waits(op) {
            self.note_issue(op, self.paced_ns(now_ns));
            return Ok(());
        }
        if let Some(intended_ns) = self.take_turn(op, now_ns) {
            self.turn_intended_ns = Some(intended_ns);
            return Ok(());
        }
        self.wait_for_late_turn(op, now_ns, clock)
    }

    #[inline(never)]
    fn wait_for_late_turn<C: Clock>(&mut self, op: &Op, now_ns: u64, clock: C) -> Result<(), End> {
        let mut turn_ns = self.paced_ns(now_ns);
        while let Some(ns) = self.wait_ns(op, turn_ns) {
            let until_ns = turn_ns.saturating_add(ns);
            self.sleep(until_ns.saturating_sub(limiter_ns(clock)), clock)?;
            turn_ns = limiter_ns(clock);
        }
        self.turn_intended_ns = self.intended_ns(op);
        self.note_issue(op, turn_ns);
        Ok(())
    }

    /// Issues `op` at `now_ns`, if a rate is all that it may have to wait for and allows it; its observers are notified then.
    /// Returns when the rate intended it to start; `None`: it has to be asked for what else there is.
    #[inline(always)]
    pub(crate) fn take_turn(&mut self, op: &Op, now_ns: u64) -> Option<u64> {
        if self.is_only_paced { self.take_paced_turn(op, now_ns) } else { None }
    }

    // Not inlined: there is a loop for each engine and clock.
    #[inline(never)]
    fn take_paced_turn(&mut self, op: &Op, now_ns: u64) -> Option<u64> {
        self.limiter.as_mut()?.take_turn(op, now_ns)
    }

    /// Waits for `ns`, or less if `handle_due` is due before or the rest of the wait is to be polled.
    ///
    /// # Errors
    /// The end of the loop, if that comes first.
    pub(crate) fn sleep<C: Clock>(&mut self, ns: u64, clock: C) -> Result<(), End> {
        let began_ns = clock.now_ns();
        if ns > 0 {
            let step = self.wait_step(ns, clock);
            self.take_step(step, clock);
        }
        let now_ns = clock.now_ns();
        self.own.waited(now_ns.saturating_sub(began_ns));
        if self.is_due(now_ns) { self.handle_due(now_ns) } else { Ok(()) }
    }

    /// How long to wait from `now_ns` on, by `paced_ns`, before checking again whether `op` may be issued; `None` if it may.
    pub(crate) fn wait_ns(&self, op: &Op, now_ns: u64) -> Option<u64> {
        if !self.waits(op) {
            return None;
        }
        if self.writes_after_trims && self.is_ending(now_ns) {
            // No trim without its write, and a write that is owed is late already.
            return (op.action == Action::Trim && !self.owes_write).then_some(0);
        }
        if op.due_ns == 0 && self.limiter.is_none() {
            // The loop has begun, and nothing else is asked than the flow.
            return self.flow_of(op)?.wait_ns();
        }
        let due_in_ns = (self.began_ns + op.due_ns).saturating_sub(now_ns);
        let limiter = self.limiter.as_ref().filter(|_| op.purpose.rules().is_paced);
        let pause = limiter.and_then(|limiter| limiter.pause(op, now_ns));
        let paced_ns = pause.map(|pause| if pause.spin_ns > 0 { 0 } else { pause.ns });
        let wait_ns = paced_ns.max((due_in_ns > 0).then_some(due_in_ns));
        wait_ns.or_else(|| self.flow_of(op)?.wait_ns())
    }

    /// The time used by the limiter, if the loop's clock was last read at `now_ns`.
    #[inline]
    pub(crate) fn paced_ns(&self, now_ns: u64) -> u64 {
        if self.clocked { now_ns } else { clock::monotonic_ns() }
    }

    /// Whether the phase or the loop is to end at its next check.
    fn is_ending(&self, now_ns: u64) -> bool {
        now_ns >= self.deadline_ns || self.live.is_stop_requested()
    }

    /// The flow that `op` counts in, if any: that of all I/Os of the job.
    fn flow_of(&self, op: &Op) -> Option<&FlowMember> {
        let counts = op.purpose.rules().is_measured && op.action.direction().is_some();
        self.flow.as_deref().filter(|_| counts)
    }

    /// When the rate of `op`, which may be issued now, intended it to start.
    pub(crate) fn intended_ns(&self, op: &Op) -> Option<u64> {
        self.limiter.as_ref().filter(|_| op.purpose.rules().is_paced)?.intended_ns(op)
    }

    /// Notifies the observers that `op` is issued, at `now_ns` by `paced_ns`. Returns whether it counts as an I/O of the job.
    #[inline(never)]
    pub(crate) fn note_issue(&mut self, op: &Op, now_ns: u64) -> bool {
        let rules = op.purpose.rules();
        if self.may_wait {
            if self.writes_after_trims && matches!(op.action, Action::Trim | Action::Write) {
                self.owes_write = op.action == Action::Trim;
            }
            if let Some(limiter) = self.limiter.as_mut().filter(|_| rules.is_paced) {
                limiter.issued(op, now_ns);
            }
            if let Some(flow) = self.flow_of(op) {
                flow.issued();
            }
        }
        if let Some(source) = self.source.observer() {
            source.issued(op, now_ns.saturating_sub(self.began_ns));
        }
        rules.is_measured
    }

    /// Whether `op` may have to wait.
    #[inline]
    fn waits(&self, op: &Op) -> bool {
        self.may_wait || op.due_ns != 0
    }

    /// Whether `note_issue` has an observer to notify.
    #[inline]
    pub(crate) fn is_observed(&self) -> bool {
        self.observed
    }
}

/// The time used by the limiter: the loop's clock, or the monotonic clock if the loop has none.
#[inline]
pub(in crate::hot) fn limiter_ns<C: Clock>(clock: C) -> u64 {
    if C::RUNNING { clock.now_ns() } else { clock::monotonic_ns() }
}
