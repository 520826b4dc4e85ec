//! What the two loops share: the work of one worker, and everything that happens less often than once an I/O.
//!
//! Invariant: nothing here allocates once the worker is sealed, and no error path is taken on an I/O that went well.

mod queue;
pub(crate) mod queued;
pub(crate) mod sync;
mod verdict;

use std::sync::Mutex;

use fiord_engine::contract::{Engine, Info, Slot};
use fiord_plan::job::{ErrorPolicy, Limits};
use fiord_plan::{Action, Direction, EngineSettings, Op};
use fiord_stats::JobStats;
use fiord_sys::clock::{self, Clock};
use fiord_sys::signal;
use fiord_workload::{Filler, Stream};

use crate::failure::Failure;
use crate::files::{Change, FileTable};
use crate::gate::Gate;
use crate::live::{Live, State, Why, ask};
use crate::record::{Recorder, Stamps};
use crate::seal::unsealed;

use verdict::Said;
pub(crate) use verdict::Verdict;

/// Operations made at once.
const BATCH: usize = 64;

/// Longest uninterrupted sleep, so that a request to stop is heard.
const NAP_NS: u64 = 50_000_000;

/// How long what a loop noted may stay out of the statistics and the live counters.
const SETTLE_NS: u64 = 1_000_000;

const WRITE: Action = Action::Transfer(Direction::Write);

/// Why a loop ended.
#[derive(Debug)]
pub(crate) enum End {
    /// All asked for was done.
    Complete,
    /// Its run time is over.
    TimeUp,
    /// It was told to stop.
    Told,
    /// The device is full, as `fill_device` wants it.
    Full,
    /// It cannot go on.
    Failed(Box<Failure>),
}

impl From<Failure> for End {
    fn from(failure: Failure) -> End {
        // A worker fails once.
        unsealed(|| End::Failed(Box::new(failure)))
    }
}

impl End {
    /// The worker cannot go on, and says why.
    #[cold]
    fn failed(why: impl FnOnce() -> Failure) -> End {
        // A worker fails once.
        unsealed(|| why().into())
    }
}

/// Whether the measured part of the run has begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Ramp,
    Measured,
}

/// Operations made ahead.
pub(crate) struct Batch {
    ops: Vec<Op>,
    next: usize,
    /// Not to be taken before something was done about their files.
    held: bool,
}

/// What asking for operations came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refilled {
    /// There are some.
    Ready,
    /// There are some, and time went by over their files that is none of their latency.
    ReadyLater,
    /// What is in flight has to end first.
    Blocked,
    /// All asked for has been issued.
    Exhausted,
}

impl Batch {
    /// The next operation, if one is left.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<Op> {
        let op = self.ops.get(self.next).copied();
        self.next += 1;
        op
    }

    /// Puts the operation just taken back.
    #[inline]
    pub(crate) fn put_back(&mut self) {
        self.next -= 1;
    }

    /// Keeps operations just made from being taken.
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

/// What has to be done to a buffer before it is written from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refills {
    /// Nothing.
    None,
    /// What the filler does before each write.
    EachTime,
    /// The same, but for buffers that have no contents yet: they get them first.
    First,
}

/// Everything one worker's loop works on.
pub(crate) struct Work<'a> {
    pub stream: Stream,
    pub ops: Batch,
    pub filler: Filler,
    pub gate: Option<Gate>,
    pub recorder: Recorder<'a>,
    pub errors: &'a ErrorPolicy,
    pub files: FileTable<'a>,
    pub live: &'a Live,
    pub limits: &'a Limits,
    pub snapshot: &'a Mutex<JobStats>,
    pub fill_device: bool,
    engine: Info,
    settings: &'a EngineSettings,
    refills: Refills,
    /// By slot: its buffer has contents.
    primed: Box<[bool]>,
    watch_latency: bool,
    /// Whether the loop's clock runs.
    clocked: bool,
    phase: Phase,
    /// When the phase is over.
    deadline_ns: u64,
    /// When `attend` is due next.
    due_ns: u64,
    pub said: Said,
}

/// What the loop is made of, for `Work::new`.
pub(crate) struct Parts<'a> {
    pub stream: Stream,
    pub filler: Filler,
    pub gate: Option<Gate>,
    pub recorder: Recorder<'a>,
    pub errors: &'a ErrorPolicy,
    pub files: FileTable<'a>,
    pub live: &'a Live,
    pub limits: &'a Limits,
    pub snapshot: &'a Mutex<JobStats>,
    pub fill_device: bool,
    pub engine: Info,
    pub settings: &'a EngineSettings,
    /// By slot: its buffer has contents.
    pub primed: Box<[bool]>,
}

impl<'a> Work<'a> {
    pub(crate) fn new(parts: Parts<'a>) -> Work<'a> {
        let Parts {
            stream,
            filler,
            gate,
            recorder,
            errors,
            files,
            live,
            limits,
            snapshot,
            fill_device,
            engine,
            settings,
            primed,
        } = parts;
        Work {
            refills: match primed.iter().all(|primed| *primed) {
                false => Refills::First,
                true if filler.needs_refill() => Refills::EachTime,
                true => Refills::None,
            },
            primed,
            ops: Batch { ops: Vec::with_capacity(BATCH + 8), next: 0, held: false },
            watch_latency: errors.latency_ns_max.iter().any(Option::is_some),
            clocked: false,
            phase: Phase::Measured,
            deadline_ns: u64::MAX,
            due_ns: u64::MAX,
            said: Said::default(),
            stream,
            filler,
            gate,
            recorder,
            errors,
            files,
            live,
            limits,
            snapshot,
            fill_device,
            engine,
            settings,
        }
    }

    /// The run begins at `now_ns` on the loop's clock; `clocked` is whether that clock runs.
    pub(crate) fn begin(&mut self, now_ns: u64, clocked: bool) {
        self.clocked = clocked;
        if let Some(gate) = &mut self.gate {
            gate.begin(if clocked { now_ns } else { clock::monotonic_ns() });
        }
        if self.limits.ramp_ns == 0 && self.limits.ramp_bytes == 0 {
            self.measure(now_ns);
            return;
        }
        self.phase = Phase::Ramp;
        self.live.set_state(State::Ramping);
        let ramp_ns = (self.limits.ramp_bytes == 0).then_some(self.limits.ramp_ns);
        self.set_deadline(now_ns, ramp_ns);
    }

    /// From here on the figures count.
    fn measure(&mut self, now_ns: u64) {
        self.phase = Phase::Measured;
        // Logs begin anew, once a job.
        unsealed(|| self.recorder.begin(now_ns));
        self.live.set_measured_since_ns(clock::monotonic_ns());
        self.live.set_state(State::Running);
        self.set_deadline(now_ns, self.limits.runtime_ns);
    }

    /// The phase lasts so long, or until something else ends it.
    fn set_deadline(&mut self, now_ns: u64, length_ns: Option<u64>) {
        let length_ns = length_ns.filter(|_| self.clocked);
        self.deadline_ns = length_ns.map_or(u64::MAX, |length_ns| now_ns + length_ns);
        self.due_ns = if self.clocked { self.deadline_ns.min(now_ns + SETTLE_NS) } else { u64::MAX };
    }

    /// Whether `attend` has something to do.
    #[inline]
    pub(crate) fn is_due(&self, now_ns: u64) -> bool {
        now_ns >= self.due_ns || self.live.is_asked()
    }

    /// Brings the statistics up to date, and hears what others want, and the time.
    ///
    /// # Errors
    /// The end of the loop, when that is what they want.
    #[cold]
    pub(crate) fn attend(&mut self, now_ns: u64) -> Result<(), End> {
        self.recorder.settle();
        if self.clocked {
            self.due_ns = self.deadline_ns.min(now_ns + SETTLE_NS);
        }
        if self.live.listens() && signal::is_stop_pending() {
            self.live.ask_to_stop(Why::Signal);
        }
        let asked = self.live.take_asked();
        if asked & ask::STOP != 0 {
            return Err(End::Told);
        }
        if asked & ask::SNAPSHOT != 0
            && let Ok(mut copy) = self.snapshot.lock()
        {
            // A snapshot is a copy of all the statistics, made when somebody wants to see them.
            unsealed(|| {
                *copy = match self.phase {
                    Phase::Ramp => JobStats::default(),
                    Phase::Measured => self.recorder.publish(&self.engine),
                }
            });
        }
        let over = now_ns >= self.deadline_ns;
        match self.phase {
            Phase::Ramp if over || asked & ask::MEASURE != 0 => {
                self.recorder.forget();
                self.measure(now_ns);
                Ok(())
            }
            Phase::Measured if over => Err(End::TimeUp),
            _ => Ok(()),
        }
    }

    /// Makes the next operations, and sees to the files they go to. With operations in flight the latter may have
    /// to wait; the loop calls again when fewer are.
    pub(crate) fn refill<E: Engine>(
        &mut self,
        engine: &mut E,
        now_ns: u64,
        in_flight: u32,
    ) -> Result<Refilled, End> {
        if !self.ops.held && !self.make_operations(now_ns) {
            return Ok(Refilled::Exhausted);
        }
        let change = self.files.change(&self.stream);
        if change == Change::None {
            return Ok(Refilled::Ready);
        }
        self.ops.hold();
        if change.needs_quiet() && in_flight > 0 {
            return Ok(Refilled::Blocked);
        }
        self.change_files(change, engine)?;
        self.ops.release();
        Ok(Refilled::ReadyLater)
    }

    /// Opens the files of the first operations.
    pub(crate) fn open_files<E: Engine>(&mut self, engine: &mut E) -> Result<(), Failure> {
        self.change_files(Change::Window, engine)
    }

    #[cold]
    fn change_files<E: Engine>(&mut self, change: Change, engine: &mut E) -> Result<(), Failure> {
        // Files are opened, closed, synced and removed by path, with nothing in flight.
        let made = unsealed(|| self.files.make(change, &self.stream, engine));
        self.live.set_files_open(self.files.count());
        made
    }

    /// Makes the next operations; `false` when all asked for has been issued.
    fn make_operations(&mut self, now_ns: u64) -> bool {
        let ramps_by_size = self.phase == Phase::Ramp && self.limits.ramp_bytes > 0;
        if ramps_by_size && self.has_ramped() {
            self.recorder.forget();
            self.measure(now_ns);
        }
        self.ops.ops.clear();
        self.ops.next = 0;
        // A ramp by size ends between two I/Os.
        let room = if self.steer() || ramps_by_size { 1 } else { BATCH };
        self.stream.fill(&mut self.ops.ops, room) > 0
    }

    /// Whether as much was transferred as a ramp by size wants.
    fn has_ramped(&mut self) -> bool {
        self.recorder.settle();
        self.live.counters().bytes.iter().sum::<u64>() >= self.limits.ramp_bytes
    }

    /// Turns a mixed stream to the direction that may go. Whether it did: then operations are made one at a time.
    fn steer(&mut self) -> bool {
        match &self.gate {
            Some(gate) if gate.limits_rates() && self.stream.is_mixed() => {
                self.stream.steer(gate.either(clock::monotonic_ns()));
                true
            }
            _ => false,
        }
    }

    /// How long a worker that has to wait for `ns` may sleep without missing anything.
    pub(crate) fn nap_ns(&self, ns: u64, now_ns: u64) -> u64 {
        ns.min(NAP_NS).min(self.deadline_ns.saturating_sub(now_ns))
    }

    /// Whether an operation has to wait for its turn, or its buffer has to be filled.
    #[inline]
    pub(crate) fn needs_preparing(&self, op: &Op) -> bool {
        self.gate.is_some() || (self.refills != Refills::None && op.action == WRITE)
    }

    /// Sleeps until `op` may go, and lets it pass.
    ///
    /// # Errors
    /// The end, when it comes first.
    pub(crate) fn wait_for_turn<C: Clock>(&mut self, op: &Op, clock: C) -> Result<(), End> {
        while let Some(ns) = self.held(op, clock) {
            let now_ns = clock.now_ns();
            if ns > 0 {
                clock::sleep_until_ns(clock::monotonic_ns() + self.nap_ns(ns, now_ns));
            }
            let now_ns = clock.now_ns();
            if self.is_due(now_ns) {
                self.attend(now_ns)?;
            }
        }
        self.pass(op, clock);
        Ok(())
    }

    /// How long to sleep before asking again whether `op` may be issued; `None` when it may.
    pub(crate) fn held<C: Clock>(&self, op: &Op, clock: C) -> Option<u64> {
        let pause = self.gate.as_ref()?.pause(op, gate_ns(clock))?;
        Some(if pause.spin_ns > 0 { 0 } else { pause.ns })
    }

    /// `op` goes past the gate.
    #[inline]
    pub(crate) fn pass<C: Clock>(&mut self, op: &Op, clock: C) {
        if let Some(gate) = &mut self.gate {
            gate.issued(op, gate_ns(clock));
        }
    }

    /// Puts into the slot's buffer what `op` is to write.
    pub(crate) fn fill_buffer<E: Engine>(&mut self, engine: &mut E, slot: &mut Slot, op: &Op) {
        if self.refills == Refills::None || op.action != WRITE {
            return;
        }
        if self.refills == Refills::First && !self.primed[slot.index()] {
            self.prime(engine, slot);
        }
        let buffer = &mut engine.arena().bytes_mut(slot)[..op.length_bytes as usize];
        self.filler.before_write(buffer, op.offset_bytes);
    }

    /// Gives a buffer its first contents.
    #[cold]
    fn prime<E: Engine>(&mut self, engine: &mut E, slot: &mut Slot) {
        self.filler.prime(engine.arena().bytes_mut(slot));
        self.primed[slot.index()] = true;
        if self.primed.iter().all(|primed| *primed) {
            self.refills = if self.filler.needs_refill() { Refills::EachTime } else { Refills::None };
        }
    }

    /// An operation has ended and did all it should.
    ///
    /// # Errors
    /// The end, when it took longer than `max_latency`.
    #[inline(always)]
    pub(crate) fn ended<C: Clock>(&mut self, op: &Op, stamps: Stamps) -> Result<(), End> {
        if let (Some(gate), Action::Transfer(_)) = (&mut self.gate, op.action) {
            gate.completed(if C::RUNNING { stamps.end_ns } else { clock::monotonic_ns() });
        }
        if !C::RUNNING {
            self.recorder.counted(op);
            return Ok(());
        }
        self.recorder.timed(op, stamps);
        if self.watch_latency { self.check_latency(op, stamps.completion_ns()) } else { Ok(()) }
    }
}

/// The time by which a gate opens: the loop's, or the monotonic clock's where none runs.
#[inline]
fn gate_ns<C: Clock>(clock: C) -> u64 {
    if C::RUNNING { clock.now_ns() } else { clock::monotonic_ns() }
}
