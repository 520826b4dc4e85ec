//! Shared by the two loops: the work of one worker, and everything that is rarer than an I/O.
//!
//! Invariant: nothing here allocates once the loop runs, and a successful I/O takes no error path.

mod batch;
mod completion;
mod supply;
mod waiting;

use std::sync::Arc;

use fiord_engine::contract::{Engine, Slot};
use fiord_plan::job::Limits;
use fiord_plan::{EngineDescriptor, Op};
use fiord_stats::{Capped, DetailedProgress, JobStats};
use fiord_sys::{clock, signal};
use fiord_workload::{Filler, PriorityDraw, Source};

use self::batch::Batch;
pub(super) use self::batch::Refilled;
pub(super) use self::waiting::limiter_ns;
use super::block_tracker::BlockTracker;
use super::depth_search::{DepthDecision, DepthSearch};
use super::end::End;
use super::errors::ErrorHandler;
use super::own_time::OwnTime;
use super::rate_limiter::RateLimiter;
use super::recorder::Recorder;
use super::wake::WakeAhead;
use crate::alloc_guard::allow_alloc;
use crate::files::table::FileTable;
use crate::flow::FlowMember;
use crate::live::{Live, PublishedLock, State, StopReason, request};

/// How long noted I/Os may be missing from the statistics and the live counters.
const FLUSH_NS: u64 = 1_000_000;

/// Whether the measured part of the run has begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Ramp,
    Measured,
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
    /// What of the loop's time is no I/O.
    pub own: OwnTime,
    pub errors: ErrorHandler<'a>,
    pub files: FileTable<'a>,
    /// Adjusts the queue depth, if the job has a `latency_target`.
    search: Option<Box<DepthSearch>>,
    pub live: &'a Live,
    pub limits: &'a Limits,
    pub published: &'a PublishedLock,
    engine: &'static EngineDescriptor,
    refills: Refills,
    /// By slot: whether its buffer has contents.
    primed: Box<[bool]>,
    /// Whether something observes each operation: a rate limiter, a flow, a source other than the generator, the
    /// lifetimes of blocks, an engine that does not execute each.
    observed: bool,
    /// Whether rates are all that observes operations, in a loop with a clock: each has a short way then.
    is_only_paced: bool,
    /// Whether operations have to wait for a rate, a flow or each other, besides those with a due time.
    may_wait: bool,
    /// Whether a completion is more than recorded: it is observed, or its latency is checked.
    follows_completions: bool,
    /// Whether the engine has operations other than I/O, and is asked what each was.
    asks_engine: bool,
    /// Whether operations that overlap must not be in flight together.
    pub serializes: bool,
    /// Whether each trim is followed by its write.
    writes_after_trims: bool,
    /// A trim was issued, and its write was not.
    owes_write: bool,
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
    /// When `handle_due` has more to do than to have the clock read: `Recorder::due_ns` may be earlier.
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
    pub published: &'a PublishedLock,
    pub engine: &'static EngineDescriptor,
    /// Whether operations that overlap must not be in flight together.
    pub serializes: bool,
    /// Whether the job writes at all.
    pub writes: bool,
    /// Whether each trim is followed by its write.
    pub writes_after_trims: bool,
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
        let asks_engine = parts.engine.name_call().is_some() || parts.engine.cycle.is_some();
        let observed = parts.limiter.is_some()
            || !parts.source.is_generator()
            || asks_engine
            || parts.writes_after_trims;
        let prepares_each = observed || parts.serializes;
        Work {
            refills,
            observed,
            is_only_paced: false,
            may_wait: parts.limiter.is_some() || parts.writes_after_trims,
            follows_completions: observed || parts.errors.watches_latency,
            asks_engine,
            serializes: parts.serializes,
            writes_after_trims: parts.writes_after_trims,
            owes_write: false,
            prepares_each,
            may_prepare: prepares_each || refills != Refills::None,
            primed: parts.primed,
            ops: Batch::new(),
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
            own: OwnTime::default(),
            errors: parts.errors,
            files: parts.files,
            search: parts.search,
            live: parts.live,
            limits: parts.limits,
            published: parts.published,
            engine: parts.engine,
        }
    }

    /// Has each operation observed.
    fn observe_each(&mut self) {
        (self.observed, self.follows_completions) = (true, true);
        (self.prepares_each, self.may_prepare) = (true, true);
    }

    /// Makes the job a member of a flow, before the loop begins.
    pub(crate) fn join_flow(&mut self, member: Arc<FlowMember>) {
        self.observe_each();
        self.may_wait = true;
        self.flow = Some(member);
    }

    /// Records the lifetimes of blocks, from the beginning of the loop.
    pub(crate) fn track_blocks(&mut self, blocks: Box<BlockTracker>) {
        self.observe_each();
        self.recorder.blocks = Some(blocks);
    }

    /// Begins the run at `now_ns` on the loop's clock; `clocked` is whether the loop has a clock.
    pub(crate) fn begin(&mut self, now_ns: u64, clocked: bool) {
        self.clocked = clocked;
        self.began_ns = if clocked { now_ns } else { clock::monotonic_ns() };
        self.is_only_paced = self.is_only_paced();
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

    /// Whether rates are all that observes operations, in a loop with a clock.
    fn is_only_paced(&self) -> bool {
        let is_observed_otherwise = !self.source.is_generator()
            || self.asks_engine
            || self.writes_after_trims
            || self.flow.is_some()
            || self.recorder.blocks.is_some()
            || self.errors.watches_latency;
        self.clocked && self.limiter.as_ref().is_some_and(RateLimiter::is_plain) && !is_observed_otherwise
    }

    /// Begins measuring.
    fn measure(&mut self, now_ns: u64) {
        self.phase = Phase::Measured;
        self.own = OwnTime::default();
        self.limiter.iter_mut().for_each(RateLimiter::begin_measuring);
        // Restarts the logs, once per job.
        allow_alloc(|| self.recorder.begin(now_ns));
        // The deadline counts from the same moment.
        self.live.set_measured_since_ns(self.paced_ns(now_ns));
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
            stats.counts = unserved;
        }
    }

    /// Sets the end of the phase.
    fn set_deadline(&mut self, now_ns: u64, length_ns: Option<u64>) {
        let length_ns = length_ns.filter(|_| self.clocked);
        self.deadline_ns = length_ns.map_or(u64::MAX, |length_ns| now_ns + length_ns);
        self.be_due_at(if self.clocked { self.deadline_ns.min(now_ns + FLUSH_NS) } else { u64::MAX });
    }

    /// Sets when `handle_due` is due next.
    fn be_due_at(&mut self, at_ns: u64) {
        (self.due_ns, self.recorder.due_ns) = (at_ns, at_ns);
    }

    /// Whether `handle_due` has something to do.
    #[inline]
    pub(crate) fn is_due(&self, now_ns: u64) -> bool {
        now_ns >= self.recorder.due_ns || self.live.has_requests()
    }

    /// Flushes the statistics, handles requests, and checks the time; the caller reads the clock again. What was trimmed is
    /// written first.
    ///
    /// # Errors
    /// The end of the loop, if a request or the time ends it.
    #[cold]
    pub(crate) fn handle_due(&mut self, now_ns: u64) -> Result<(), End> {
        // After work that is not an I/O only the clock has to be read.
        self.recorder.due_ns = self.due_ns;
        if self.owes_write || !self.is_due(now_ns) {
            return Ok(());
        }
        self.recorder.flush();
        if self.clocked {
            self.be_due_at(self.deadline_ns.min(now_ns + FLUSH_NS));
        }
        if self.live.watches_signals() && signal::is_stop_pending() {
            self.live.request_stop(StopReason::Signal);
        }
        // Copies statistics, only on request.
        let requests = allow_alloc(|| self.answer());
        if requests & request::STOP != 0 {
            return Err(End::StopRequested);
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

    /// Takes the requests, and publishes what they want of the statistics; of a ramp, nothing.
    fn answer(&mut self) -> u32 {
        let (requests, published) = self.live.take_requests(|| self.published.lock());
        let Some(mut published) = published else { return requests };
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
        requests
    }

    /// Fills the slot's buffer with the contents that `op` writes.
    pub(crate) fn fill_buffer<'arena, E: Engine<'arena>>(
        &mut self,
        engine: &mut E,
        slot: &mut Slot<'arena>,
        op: &Op,
    ) {
        if !op.action.sends_buffer() {
            self.fill_other(engine, slot, op);
            return;
        }
        if self.refills == Refills::First && !self.primed[slot.index()] {
            self.prime(engine, slot);
        }
        let number = slot.index();
        let buffer = &mut engine.arena().bytes_mut(slot)[..usize::capped(op.length_bytes)];
        if self.refills != Refills::None {
            self.filler.before_write(number, buffer, op.offset_bytes);
        }
        if let Some(source) = self.source.observer() {
            source.prepare(op, buffer);
        }
    }

    /// Fills the buffer of an operation that does not write, if it is sent all the same.
    fn fill_other<'arena, E: Engine<'arena>>(&mut self, engine: &mut E, slot: &mut Slot<'arena>, op: &Op) {
        let Some(source) = self.source.observer().filter(|source| source.sends_buffer(op)) else { return };
        let buffer = engine.arena().bytes_mut(slot);
        let length = if op.action.transfers() { usize::capped(op.length_bytes) } else { buffer.len() };
        source.prepare(op, &mut buffer[..length]);
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
        let at_ns = self.due_ns.min(search.window_ends_ns().max(now_ns + 1));
        self.be_due_at(at_ns);
        Ok(())
    }
}
