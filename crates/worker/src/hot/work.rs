//! Shared by the two loops: the work of one worker, and everything that is rarer than an I/O.
//!
//! Invariant: nothing here allocates once the loop runs, and a successful I/O takes no error path.

use std::path::Path;
use std::sync::{Arc, Mutex};

use fiord_engine::contract::{Engine, Outcome, Slot};
use fiord_plan::job::Limits;
use fiord_plan::shown::shown;
use fiord_plan::{EngineDescriptor, Op};
use fiord_stats::{DetailedProgress, JobStats};
use fiord_sys::clock::{self, Clock};
use fiord_sys::errno::Errno;
use fiord_sys::signal;
use fiord_workload::{Filler, OperationSource, PriorityDraw, Rejected, Source, Supply};

use super::block_tracker::BlockTracker;
use super::depth_search::{DepthDecision, DepthSearch};
use super::dump::CorruptedPiece;
use super::end::End;
use super::errors::{ErrorDecision, ErrorHandler, FoundBy, errno_of};
use super::rate_limiter::RateLimiter;
use super::recorder::Recorder;
use super::stamps::Stamps;
use super::wake::{WaitStep, WakeAhead};
use crate::alloc_guard::allow_alloc;
use crate::failure::Failure;
use crate::files::table::{Change, FileTable};
use crate::flow::FlowMember;
use crate::live::{Live, Published, State, StopReason, request};

/// Operations generated at once.
const BATCH: usize = 64;

/// Longest sleep between two checks for requests, in nanoseconds.
const SLEEP_NS_MAX: u64 = 50_000_000;

/// How long noted I/Os may be missing from the statistics and the live counters.
const FLUSH_NS: u64 = 1_000_000;

/// Whether the measured part of the run has begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Ramp,
    Measured,
}

/// Operations generated ahead.
pub(crate) struct Batch {
    ops: Vec<Op>,
    next: usize,
    /// Whether they must wait for a change of files.
    held: bool,
}

/// The result of a refill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refilled {
    /// Operations are available.
    Ready,
    /// Operations are available, and changing their files took time that is not part of their latency.
    ReadyLater,
    /// Operations in flight have to complete first.
    Blocked,
    /// None is available for this many nanoseconds.
    Later(u64),
    /// All operations have been issued.
    Exhausted,
}

impl Batch {
    /// Takes the next operation, if one is left. By reference, so that the loop copies it once.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<&Op> {
        let op = self.ops.get(self.next);
        self.next += 1;
        op
    }

    /// Puts the operation just taken back.
    #[inline]
    pub(crate) fn put_back(&mut self) {
        self.next -= 1;
    }

    /// Keeps the operations just generated from being taken.
    fn hold(&mut self) {
        self.held = true;
        self.next = self.ops.len();
    }

    /// Lets them be taken.
    fn release(&mut self) {
        self.held = false;
        self.next = 0;
    }
}

/// How a buffer is prepared before each write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refills {
    /// Nothing.
    None,
    /// By the filler, before each write.
    EachTime,
    /// The same, after giving a buffer without contents its first contents.
    First,
}

/// The state of one worker's loop.
pub(crate) struct Work<'a> {
    pub source: Source,
    pub ops: Batch,
    pub filler: Filler,
    pub limiter: Option<RateLimiter>,
    /// How waits for a given time are spent, in a job that has them.
    wake: Option<WakeAhead>,
    /// The job's part in a flow.
    flow: Option<Arc<FlowMember>>,
    /// Draws the priorities of I/Os, if they differ.
    priorities: Option<PriorityDraw>,
    pub recorder: Recorder<'a>,
    pub errors: ErrorHandler<'a>,
    pub files: FileTable<'a>,
    /// Adjusts the queue depth, if the job has a `latency_target`.
    search: Option<Box<DepthSearch>>,
    pub live: &'a Live,
    pub limits: &'a Limits,
    pub published: &'a Mutex<Published>,
    engine: &'static EngineDescriptor,
    refills: Refills,
    /// By slot: whether its buffer has contents.
    primed: Box<[bool]>,
    /// Whether something observes each operation: a rate limiter, a flow, a source other than the generator, the
    /// lifetimes of blocks.
    observed: bool,
    /// Whether operations that overlap must not be in flight together.
    pub serializes: bool,
    /// Whether each operation needs preparing: it is observed, or must not overlap another.
    prepares_each: bool,
    /// Whether operations need preparing: each does, or buffers are filled before writes.
    may_prepare: bool,
    /// When the loop began, by `limiter_ns`: the zero of due times.
    began_ns: u64,
    /// When the operation of a synchronous loop was intended to start. Not in the operation, which would then be in memory
    /// in all jobs: 11 instructions per I/O.
    turn_intended_ns: Option<u64>,
    /// Whether the loop has a clock.
    clocked: bool,
    phase: Phase,
    /// When the phase ends.
    deadline_ns: u64,
    /// When `handle_due` is due next.
    due_ns: u64,
}

/// The arguments of `Work::new`.
pub(crate) struct Parts<'a> {
    pub source: Source,
    pub filler: Filler,
    pub limiter: Option<RateLimiter>,
    pub wake: Option<WakeAhead>,
    pub priorities: Option<PriorityDraw>,
    pub recorder: Recorder<'a>,
    pub errors: ErrorHandler<'a>,
    pub files: FileTable<'a>,
    pub search: Option<Box<DepthSearch>>,
    pub live: &'a Live,
    pub limits: &'a Limits,
    pub published: &'a Mutex<Published>,
    pub engine: &'static EngineDescriptor,
    /// Whether operations that overlap must not be in flight together.
    pub serializes: bool,
    /// Whether the job writes at all.
    pub writes: bool,
    /// By slot: whether its buffer has contents.
    pub primed: Box<[bool]>,
}

impl<'a> Work<'a> {
    pub(crate) fn new(parts: Parts<'a>) -> Work<'a> {
        let refills = match parts.primed.iter().all(|primed| *primed) {
            _ if !parts.writes => Refills::None,
            false => Refills::First,
            true if parts.filler.needs_refill() => Refills::EachTime,
            true => Refills::None,
        };
        let observed = parts.limiter.is_some() || !parts.source.is_generator();
        let prepares_each = observed || parts.serializes;
        Work {
            refills,
            observed,
            serializes: parts.serializes,
            prepares_each,
            may_prepare: prepares_each || refills != Refills::None,
            primed: parts.primed,
            ops: Batch { ops: Vec::with_capacity(BATCH + 8), next: 0, held: false },
            clocked: false,
            turn_intended_ns: None,
            phase: Phase::Measured,
            deadline_ns: u64::MAX,
            due_ns: u64::MAX,
            began_ns: 0,
            source: parts.source,
            filler: parts.filler,
            limiter: parts.limiter,
            wake: parts.wake,
            flow: None,
            priorities: parts.priorities,
            recorder: parts.recorder,
            errors: parts.errors,
            files: parts.files,
            search: parts.search,
            live: parts.live,
            limits: parts.limits,
            published: parts.published,
            engine: parts.engine,
        }
    }

    /// Makes the job a member of a flow, before the loop begins.
    pub(crate) fn join_flow(&mut self, member: Arc<FlowMember>) {
        (self.observed, self.prepares_each, self.may_prepare) = (true, true, true);
        self.flow = Some(member);
    }

    /// Records the lifetimes of blocks, from the beginning of the loop.
    pub(crate) fn track_blocks(&mut self, blocks: Box<BlockTracker>) {
        (self.observed, self.prepares_each, self.may_prepare) = (true, true, true);
        self.recorder.blocks = Some(blocks);
    }

    /// Begins the run at `now_ns` on the loop's clock; `clocked` is whether the loop has a clock.
    pub(crate) fn begin(&mut self, now_ns: u64, clocked: bool) {
        self.clocked = clocked;
        self.began_ns = if clocked { now_ns } else { clock::monotonic_ns() };
        if let Some(limiter) = &mut self.limiter {
            limiter.begin(self.began_ns);
        }
        if let Some(flow) = &self.flow {
            flow.join();
        }
        if !self.limits.has_ramp() {
            self.measure(now_ns);
            return;
        }
        self.phase = Phase::Ramp;
        self.live.set_state(State::Ramping);
        let ramp_ns = (self.limits.ramp_bytes == 0).then_some(self.limits.ramp_ns);
        self.set_deadline(now_ns, ramp_ns);
    }

    /// Begins measuring.
    fn measure(&mut self, now_ns: u64) {
        self.phase = Phase::Measured;
        self.limiter.iter_mut().for_each(RateLimiter::begin_measuring);
        // Restarts the logs, once per job.
        allow_alloc(|| self.recorder.begin(now_ns));
        self.live.set_measured_since_ns(clock::monotonic_ns());
        self.live.set_state(State::Running);
        self.set_deadline(now_ns, self.limits.runtime_ns);
        self.begin_depth(now_ns);
    }

    /// Adds what an open loop never issued to the statistics, after the loop's end.
    pub(crate) fn count_unserved(&mut self, end: &End) {
        let Some(limiter) = &mut self.limiter else { return };
        let until_ns = matches!(end, End::TimeUp).then_some(self.deadline_ns);
        let unserved = limiter.unserved(until_ns, matches!(end, End::Complete));
        for (stats, unserved) in self.recorder.stats.directions.iter_mut().zip(unserved) {
            stats.open_arrivals = unserved;
        }
    }

    /// Sets the end of the phase.
    fn set_deadline(&mut self, now_ns: u64, length_ns: Option<u64>) {
        let length_ns = length_ns.filter(|_| self.clocked);
        self.deadline_ns = length_ns.map_or(u64::MAX, |length_ns| now_ns + length_ns);
        self.due_ns = if self.clocked { self.deadline_ns.min(now_ns + FLUSH_NS) } else { u64::MAX };
    }

    /// Whether `handle_due` has something to do.
    #[inline]
    pub(crate) fn is_due(&self, now_ns: u64) -> bool {
        now_ns >= self.due_ns || self.live.has_requests()
    }

    /// Flushes the statistics, handles requests, and checks the time.
    ///
    /// # Errors
    /// The end of the loop, if a request or the time ends it.
    #[cold]
    pub(crate) fn handle_due(&mut self, now_ns: u64) -> Result<(), End> {
        self.recorder.flush();
        if self.clocked {
            self.due_ns = self.deadline_ns.min(now_ns + FLUSH_NS);
        }
        if self.live.watches_signals() && signal::is_stop_pending() {
            self.live.request_stop(StopReason::Signal);
        }
        let requests = self.live.take_requests();
        if requests & request::STOP != 0 {
            return Err(End::StopRequested);
        }
        if requests & (request::SNAPSHOT | request::PROGRESS | request::LATENCIES) != 0 {
            // Copies statistics, only on request.
            allow_alloc(|| self.publish(requests));
        }
        let over = now_ns >= self.deadline_ns;
        match self.phase {
            Phase::Ramp if over || requests & request::MEASURE != 0 => {
                self.recorder.reset();
                self.measure(now_ns);
                Ok(())
            }
            Phase::Measured if over => Err(End::TimeUp),
            Phase::Ramp | Phase::Measured => self.judge_depth(now_ns),
        }
    }

    /// Publishes what is requested of the statistics; of a ramp, nothing.
    fn publish(&mut self, requests: u32) {
        let Ok(mut published) = self.published.lock() else { return };
        let is_ramp = matches!(self.phase, Phase::Ramp);
        if requests & request::SNAPSHOT != 0 {
            published.stats = if is_ramp { JobStats::default() } else { self.recorder.publish(self.engine) };
        }
        if requests & request::PROGRESS != 0 {
            let progress = published.progress.get_or_insert_default();
            **progress = if is_ramp {
                DetailedProgress::default()
            } else {
                DetailedProgress::of(&self.recorder.stats)
            };
        }
        if requests & request::LATENCIES != 0 {
            published.set_latencies((!is_ramp).then_some(&*self.recorder.stats));
        }
    }

    /// Generates the next operations and opens their files. With operations in flight the latter may have to wait;
    /// the loop calls again when fewer are.
    pub(crate) fn refill<'arena, E: Engine<'arena>>(
        &mut self,
        engine: &mut E,
        now_ns: u64,
        in_flight: u32,
    ) -> Result<Refilled, End> {
        if let Some(ns) = self.recorder.log_wait_ns(now_ns) {
            return Ok(Refilled::Later(ns));
        }
        if !self.ops.held {
            let supply = self.make_operations(now_ns);
            self.refuse_late()?;
            match supply {
                Supply::Ready if self.ops.ops.is_empty() => {
                    return Err(source_bug("gave no operation although ready"));
                }
                Supply::Ready => {}
                Supply::Ended => return Ok(Refilled::Exhausted),
                Supply::Failed => return Err(source_failure(self.source.failure())),
                Supply::AfterCompletion if in_flight > 0 => return Ok(Refilled::Blocked),
                Supply::AfterCompletion => {
                    return Err(source_bug("waits for a completion with nothing in flight"));
                }
                Supply::NotBefore(at_ns) => {
                    return Ok(Refilled::Later(at_ns.saturating_sub(self.elapsed_ns(now_ns))));
                }
            }
        }
        let change = self.files.change(&self.source);
        if change == Change::None {
            return Ok(Refilled::Ready);
        }
        self.ops.hold();
        if change.needs_idle_queue() && in_flight > 0 {
            return Ok(Refilled::Blocked);
        }
        self.change_files(change, engine)?;
        self.ops.release();
        Ok(Refilled::ReadyLater)
    }

    /// Opens the files of the first operations.
    pub(crate) fn open_files<'arena, E: Engine<'arena>>(&mut self, engine: &mut E) -> Result<(), Failure> {
        self.change_files(Change::Window, engine)
    }

    #[cold]
    fn change_files<'arena, E: Engine<'arena>>(
        &mut self,
        change: Change,
        engine: &mut E,
    ) -> Result<(), Failure> {
        // Files are opened, closed, synced and removed by path, with nothing in flight.
        let made = allow_alloc(|| self.files.make(change, &self.source, engine));
        self.live.set_files_open(self.files.count());
        made
    }

    /// Generates the next operations.
    fn make_operations(&mut self, now_ns: u64) -> Supply {
        let ramps_by_size = self.phase == Phase::Ramp && self.limits.ramp_bytes > 0;
        if ramps_by_size && self.has_ramped() {
            self.recorder.reset();
            self.measure(now_ns);
        }
        self.ops.ops.clear();
        self.ops.next = 0;
        // A ramp with a size ends between two I/Os.
        let room = if self.steer() || ramps_by_size { 1 } else { BATCH };
        let elapsed_ns = if self.source.is_generator() { 0 } else { self.elapsed_ns(now_ns) };
        let supply = self.source.fill(&mut self.ops.ops, room, elapsed_ns);
        if let Some(draw) = &mut self.priorities {
            draw.draw(&mut self.ops.ops);
        }
        supply
    }

    /// Time since the loop began; `now_ns` is used if the loop has a clock.
    fn elapsed_ns(&self, now_ns: u64) -> u64 {
        let now_ns = if self.clocked { now_ns } else { clock::monotonic_ns() };
        now_ns.saturating_sub(self.began_ns)
    }

    /// Whether a ramp with a size has transferred its bytes.
    fn has_ramped(&mut self) -> bool {
        self.recorder.flush();
        self.live.counters().bytes.iter().sum::<u64>() >= self.limits.ramp_bytes
    }

    /// Steers a mixed stream to the direction whose rate allows it; `true` if the rates decide, and operations have to
    /// be generated one at a time.
    fn steer(&mut self) -> bool {
        match &self.limiter {
            Some(limiter) if limiter.limits_rates() && self.source.is_mixed() => {
                self.source.steer(limiter.preferred_directions(clock::monotonic_ns()));
                true
            }
            _ => false,
        }
    }

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

    /// Sleeps until `op` may be issued.
    ///
    /// # Errors
    /// The end of the loop, if that comes first.
    pub(crate) fn wait_for_turn<C: Clock>(&mut self, op: &Op, clock: C) -> Result<(), End> {
        while let Some(ns) = self.wait_ns(op, clock) {
            self.sleep(ns, clock)?;
        }
        if self.observed {
            self.turn_intended_ns = self.intended_ns(op);
            self.note_issue(op, clock);
        }
        Ok(())
    }

    /// Waits for `ns`, or less if `handle_due` is due before or the rest of the wait is to be polled.
    ///
    /// # Errors
    /// The end of the loop, if that comes first.
    pub(crate) fn sleep<C: Clock>(&mut self, ns: u64, clock: C) -> Result<(), End> {
        if ns > 0 {
            let step = self.wait_step(ns, clock);
            self.take_step(step, clock);
        }
        let now_ns = clock.now_ns();
        if self.is_due(now_ns) { self.handle_due(now_ns) } else { Ok(()) }
    }

    /// How long to wait before checking again whether `op` may be issued; `None` if it may.
    pub(crate) fn wait_ns<C: Clock>(&self, op: &Op, clock: C) -> Option<u64> {
        if !self.observed {
            return None;
        }
        let now_ns = limiter_ns(clock);
        let due_in_ns = (self.began_ns + op.due_ns).saturating_sub(now_ns);
        let limiter = self.limiter.as_ref().filter(|_| op.purpose.rules().is_paced);
        let pause = limiter.and_then(|limiter| limiter.pause(op, now_ns));
        let paced_ns = pause.map(|pause| if pause.spin_ns > 0 { 0 } else { pause.ns });
        let wait_ns = paced_ns.max((due_in_ns > 0).then_some(due_in_ns));
        wait_ns.or_else(|| self.flow_of(op)?.wait_ns())
    }

    /// The flow that `op` counts in, if any: that of all I/Os of the job.
    fn flow_of(&self, op: &Op) -> Option<&FlowMember> {
        let counts = op.purpose.rules().is_measured && op.action.direction().is_some();
        self.flow.as_deref().filter(|_| counts)
    }

    /// Notes in `op`, which may be issued now, when its rate intended it to start.
    #[inline]
    pub(crate) fn note_intended_start(&self, op: &mut Op) {
        if let Some(due_ns) = self.intended_ns(op) {
            op.due_ns = due_ns;
        }
    }

    /// When the rate of `op`, which may be issued now, intended it to start.
    fn intended_ns(&self, op: &Op) -> Option<u64> {
        self.limiter.as_ref().filter(|_| op.purpose.rules().is_paced)?.intended_ns(op)
    }

    /// Notifies the observers that `op` is issued. Returns whether it counts as an I/O of the job.
    #[inline(never)]
    pub(crate) fn note_issue<C: Clock>(&mut self, op: &Op, clock: C) -> bool {
        let rules = op.purpose.rules();
        if let Some(limiter) = self.limiter.as_mut().filter(|_| rules.is_paced) {
            limiter.issued(op, limiter_ns(clock));
        }
        if let Some(flow) = self.flow_of(op) {
            flow.issued();
        }
        let at_ns = limiter_ns(clock).saturating_sub(self.began_ns);
        if let Some(source) = self.source.observer() {
            source.issued(op, at_ns);
        }
        rules.is_measured
    }

    /// Whether `note_issue` has an observer to notify.
    #[inline]
    pub(crate) fn is_observed(&self) -> bool {
        self.observed
    }

    /// Fills the slot's buffer with the contents that `op` writes.
    pub(crate) fn fill_buffer<'arena, E: Engine<'arena>>(
        &mut self,
        engine: &mut E,
        slot: &mut Slot<'arena>,
        op: &Op,
    ) {
        if !op.action.sends_buffer() {
            return;
        }
        if self.refills == Refills::First && !self.primed[slot.index()] {
            self.prime(engine, slot);
        }
        let buffer = &mut engine.arena().bytes_mut(slot)[..op.length_bytes as usize];
        if self.refills != Refills::None {
            self.filler.before_write(buffer, op.offset_bytes);
        }
        if let Some(source) = self.source.observer() {
            source.prepare(op, buffer);
        }
    }

    /// Gives a buffer its first contents.
    #[cold]
    fn prime<'arena, E: Engine<'arena>>(&mut self, engine: &mut E, slot: &mut Slot<'arena>) {
        self.filler.prime(engine.arena().bytes_mut(slot));
        self.primed[slot.index()] = true;
        if self.primed.iter().all(|primed| *primed) {
            self.refills = if self.filler.needs_refill() { Refills::EachTime } else { Refills::None };
            self.may_prepare = self.prepares_each || self.refills != Refills::None;
        }
    }

    /// Records an operation that completed in full; `op` may be its rest, and its data is in the slot's buffer.
    ///
    /// # Errors
    /// The end, if it took longer than `max_latency`, or if its source rejects it.
    #[inline(always)]
    pub(crate) fn completed<'arena, E: Engine<'arena>, C: Clock>(
        &mut self,
        engine: &mut E,
        slot: &mut Slot<'arena>,
        op: &Op,
        stamps: Stamps,
    ) -> Result<(), End> {
        if self.observed && !self.note_completion::<E, C>(engine, slot, op, stamps)? {
            return Ok(());
        }
        if !C::RUNNING {
            self.recorder.counted(op);
            return Ok(());
        }
        self.recorder.timed(op, stamps);
        match self.errors.watches_latency {
            true => self.check_latency(op, stamps.completion_ns()),
            false => Ok(()),
        }
    }

    /// Compares the latency of an I/O with the job's target and its limit.
    #[inline(never)]
    fn check_latency(&mut self, op: &Op, took_ns: u64) -> Result<(), End> {
        if let Some(search) = &mut self.search
            && op.action.direction().is_some()
        {
            search.note(took_ns);
        }
        self.errors.check_latency(op, took_ns, &self.files)
    }

    /// The queue depth that is wanted, if the job adjusts it.
    pub(crate) fn wanted_depth(&self) -> Option<u32> {
        self.search.as_ref().map(|search| search.depth())
    }

    /// Begins to try a queue depth, with nothing in flight.
    pub(crate) fn begin_depth(&mut self, now_ns: u64) {
        let Some(search) = &mut self.search else { return };
        search.begin_window(now_ns);
        self.live.set_depth(search.depth());
        if search.drops_statistics() && self.phase == Phase::Measured {
            self.recorder.restart();
            self.live.set_measured_since_ns(clock::monotonic_ns());
        }
    }

    /// Judges the depth in use, when its window is over.
    fn judge_depth(&mut self, now_ns: u64) -> Result<(), End> {
        let Some(search) = self.search.as_mut().filter(|_| self.phase == Phase::Measured) else {
            return Ok(());
        };
        match search.judge(now_ns) {
            DepthDecision::Found => return Err(End::DepthFound),
            DepthDecision::Stay | DepthDecision::Change(_) => {}
        }
        self.due_ns = self.due_ns.min(search.window_ends_ns().max(now_ns + 1));
        Ok(())
    }

    /// Notifies the limiter and the source of a completion. Returns whether it is to be measured.
    #[inline(never)]
    fn note_completion<'arena, E: Engine<'arena>, C: Clock>(
        &mut self,
        engine: &mut E,
        slot: &mut Slot<'arena>,
        op: &Op,
        stamps: Stamps,
    ) -> Result<bool, End> {
        self.note_end_of_io(op, if C::RUNNING { stamps.end_ns } else { clock::monotonic_ns() });
        if let (Some(direction), true, true) =
            (op.action.direction(), C::RUNNING, op.purpose.rules().is_paced)
        {
            let intended_ns = self.turn_intended_ns.unwrap_or(op.due_ns);
            self.recorder.responded(direction, stamps.end_ns.saturating_sub(self.began_ns + intended_ns));
        }
        if let Some(blocks) = &mut self.recorder.blocks {
            blocks.completed(&op.whole());
        }
        let Some(source) = self.source.observer() else { return Ok(true) };
        let whole = op.whole();
        let has_data = op.action.sends_buffer() || op.action.fills_buffer();
        let length_bytes = if has_data { whole.length_bytes as usize } else { 0 };
        let buffer = &engine.arena().bytes_mut(slot)[..length_bytes];
        if let Err(errno) = source.completed(&whole, buffer) {
            // The transfer itself was done, and counts.
            self.record::<C>(op, stamps);
            self.refuse(&whole, buffer, errno)?;
            return Ok(false);
        }
        let is_measured = op.purpose.rules().is_measured;
        if !is_measured {
            self.live.completed_unmeasured();
        }
        Ok(is_measured)
    }

    /// Notifies the limiter of an I/O that completed, successfully or not.
    fn note_end_of_io(&mut self, op: &Op, end_ns: u64) {
        if let (Some(limiter), Some(_), true) =
            (&mut self.limiter, op.action.direction(), op.purpose.rules().is_paced)
        {
            limiter.completed(end_ns);
        }
    }

    /// Records an operation whose data its source rejects.
    #[cold]
    fn record<C: Clock>(&mut self, op: &Op, stamps: Stamps) {
        match op.purpose.rules().is_measured {
            false => self.live.completed_unmeasured(),
            true if C::RUNNING => self.recorder.timed(op, stamps),
            true => self.recorder.counted(op),
        }
    }

    /// Fails `op`, which the engine completed but the source rejects.
    #[cold]
    fn refuse(&mut self, op: &Op, buffer: &[u8], errno: Errno) -> Result<(), End> {
        let source = &self.source;
        let path = self.files.path(op.file);
        if let Some(corruption) = source.corruption(op) {
            let block = (op.offset_bytes, op.length_bytes);
            let dump = |directory: &Path| {
                let piece = CorruptedPiece { path, op, buffer, corruption: &corruption };
                piece.dump(directory, self.files.opener(), source.restored(op, buffer).as_deref())
            };
            // A corrupted block is reported whatever follows from it, up to a limit.
            allow_alloc(|| {
                let dumped = self.errors.dump_directory.map(dump).unwrap_or_default();
                let lines = corruption.fio_lines(&shown(path), block);
                self.errors.keep(format!("{lines}{dumped}\n       {}", corruption.explanation()));
            });
        }
        let why = || Failure::corrupted(op, path, errno, source.explain(op));
        match self.errors.fail(op, (errno, FoundBy::Verification), &mut self.recorder, why) {
            ErrorDecision::Stop(end) => Err(end),
            ErrorDecision::Skip | ErrorDecision::Continue(_) => Ok(()),
        }
    }

    /// Fails operations that the source found to be wrong since it accepted them.
    ///
    /// # Errors
    /// The end of the loop, if the error policy ends it.
    pub(crate) fn refuse_late(&mut self) -> Result<(), End> {
        while let Some(Rejected { op, buffer, errno }) =
            self.source.observer().and_then(|source| source.next_rejected())
        {
            self.refuse(&op, &buffer, errno)?;
            // Of corrupted blocks the memory is freed at once.
            allow_alloc(|| drop(buffer));
        }
        Ok(())
    }

    /// Decides about an outcome that is not the whole transfer. `rest` is what was requested of the engine.
    #[cold]
    pub(super) fn judge(&mut self, rest: &Op, outcome: Outcome) -> ErrorDecision {
        let verdict = self.errors.judge(rest, outcome, &mut self.recorder, &self.files, self.live);
        if !matches!(verdict, ErrorDecision::Continue(_)) {
            // For the limiter an operation whose failure is ignored has completed like any other.
            self.note_end_of_io(rest, clock::monotonic_ns());
            let is_failure = matches!(verdict, ErrorDecision::Skip | ErrorDecision::Stop(End::Failed(_)));
            if let Some(blocks) = self.recorder.blocks.as_mut().filter(|_| is_failure) {
                blocks.failed(&rest.whole());
            }
            if let Some(source) = self.source.observer() {
                source.failed(&rest.whole(), errno_of(rest, outcome));
            }
        }
        verdict
    }
}

/// The failure of a source that can make no progress.
fn source_bug(what: &str) -> End {
    source_failure(format!("fiord has a bug: the source of operations {what}"))
}

/// The failure of a source that cannot go on.
fn source_failure(why: String) -> End {
    End::failed(|| Failure::other("make operations", why))
}

/// The time used by the limiter: the loop's clock, or the monotonic clock if the loop has none.
#[inline]
pub(super) fn limiter_ns<C: Clock>(clock: C) -> u64 {
    if C::RUNNING { clock.now_ns() } else { clock::monotonic_ns() }
}
