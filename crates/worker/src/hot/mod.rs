//! What the two loops share: the work of one worker, and everything that happens less often than once an I/O.
//!
//! Invariant: nothing here allocates once the worker is sealed, and no error path is taken on an I/O that went well.

pub(crate) mod queued;
pub(crate) mod sync;

use std::sync::Mutex;

use fiord_engine::contract::{Engine, Info, Outcome};
use fiord_plan::job::{ErrorPolicy, Limits};
use fiord_plan::{Action, Direction, EngineSettings, Op};
use fiord_stats::JobStats;
use fiord_sys::clock;
use fiord_sys::errno::Errno;
use fiord_workload::{Filler, Stream};

use crate::failure::Failure;
use crate::files::{Change, FileTable};
use crate::gate::Gate;
use crate::live::{Live, State, ask};
use crate::record::Recorder;

/// Operations made at once.
const BATCH: usize = 64;

const EIO: Errno = Errno(5);
const ENOSPC: Errno = Errno(28);
const ETIMEDOUT: Errno = Errno(110);

/// Longest uninterrupted sleep, so that a request to stop is heard.
const NAP_NS: u64 = 50_000_000;

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
        End::Failed(Box::new(failure))
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

/// Everything one worker's loop works on.
pub(crate) struct Work<'a> {
    pub stream: Stream,
    pub ops: Batch,
    pub filler: Filler,
    pub refills: bool,
    pub gate: Option<Gate>,
    pub recorder: Recorder,
    pub errors: &'a ErrorPolicy,
    pub files: FileTable<'a>,
    pub live: &'a Live,
    pub limits: &'a Limits,
    pub snapshot: &'a Mutex<JobStats>,
    pub fill_device: bool,
    engine: Info,
    settings: &'a EngineSettings,
    watch_latency: bool,
    phase: Phase,
    event_ns: u64,
    done_bytes: u64,
    pub said: Said,
}

/// What the loop is made of, for `Work::new`.
pub(crate) struct Parts<'a> {
    pub stream: Stream,
    pub filler: Filler,
    pub gate: Option<Gate>,
    pub recorder: Recorder,
    pub errors: &'a ErrorPolicy,
    pub files: FileTable<'a>,
    pub live: &'a Live,
    pub limits: &'a Limits,
    pub snapshot: &'a Mutex<JobStats>,
    pub fill_device: bool,
    pub engine: Info,
    pub settings: &'a EngineSettings,
}

/// What to do about an operation that did not simply succeed.
pub(crate) enum Verdict {
    /// Transfer the rest.
    Continue(Op),
    /// Passed over by policy.
    Skip,
    /// The worker ends.
    Stop(End),
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
        } = parts;
        Work {
            refills: filler.needs_refill(),
            ops: Batch { ops: Vec::with_capacity(BATCH + 8), next: 0, held: false },
            watch_latency: errors.latency_ns_max.iter().any(Option::is_some),
            phase: Phase::Measured,
            event_ns: u64::MAX,
            done_bytes: 0,
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
        if let Some(gate) = &mut self.gate {
            gate.begin(clock::monotonic_ns());
        }
        if self.limits.ramp_ns == 0 && self.limits.ramp_bytes == 0 {
            self.measure(now_ns, clocked);
            return;
        }
        self.phase = Phase::Ramp;
        self.live.set_state(State::Ramping);
        let by_time = clocked && self.limits.ramp_bytes == 0;
        self.event_ns = if by_time { now_ns + self.limits.ramp_ns } else { u64::MAX };
    }

    /// From here on the figures count.
    fn measure(&mut self, now_ns: u64, clocked: bool) {
        self.phase = Phase::Measured;
        self.recorder.begin(now_ns);
        self.live.set_measured_since_ns(clock::monotonic_ns());
        self.live.set_state(State::Running);
        self.event_ns = match self.limits.runtime_ns {
            Some(runtime_ns) if clocked => now_ns + runtime_ns,
            _ => u64::MAX,
        };
    }

    /// Whether `attend` has something to do.
    #[inline]
    pub(crate) fn is_due(&self, now_ns: u64) -> bool {
        now_ns >= self.event_ns || self.live.is_asked()
    }

    /// Hears what others want, and the time.
    #[cold]
    pub(crate) fn attend(&mut self, now_ns: u64, clocked: bool) -> Option<End> {
        let asked = self.live.take_asked();
        if asked & ask::STOP != 0 {
            return Some(End::Told);
        }
        if asked & ask::SNAPSHOT != 0
            && let Ok(mut copy) = self.snapshot.lock()
        {
            *copy = match self.phase {
                Phase::Ramp => JobStats::default(),
                Phase::Measured => self.recorder.publish(&self.engine),
            };
        }
        let over = now_ns >= self.event_ns;
        match self.phase {
            Phase::Ramp if over || asked & ask::MEASURE != 0 => {
                self.recorder.forget();
                self.measure(now_ns, clocked);
                None
            }
            Phase::Measured if over => Some(End::TimeUp),
            _ => None,
        }
    }

    /// Makes the next operations, and sees to the files they go to. With operations in flight the latter may have
    /// to wait; the loop calls again when fewer are.
    pub(crate) fn refill<E: Engine>(
        &mut self,
        engine: &mut E,
        now_ns: u64,
        clocked: bool,
        in_flight: u32,
    ) -> Result<Refilled, End> {
        if !self.ops.held && !self.make_operations(now_ns, clocked) {
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
        let made = self.files.make(change, &self.stream, engine);
        self.live.set_files_open(self.files.count());
        made
    }

    /// Makes the next operations; `false` when all asked for has been issued.
    fn make_operations(&mut self, now_ns: u64, clocked: bool) -> bool {
        if self.phase == Phase::Ramp
            && self.limits.ramp_bytes > 0
            && self.done_bytes >= self.limits.ramp_bytes
        {
            self.recorder.forget();
            self.measure(now_ns, clocked);
        }
        self.ops.ops.clear();
        self.ops.next = 0;
        // A ramp by size ends between two I/Os.
        let ramps_by_size = self.phase == Phase::Ramp && self.limits.ramp_bytes > 0;
        let room = if self.steer() || ramps_by_size { 1 } else { BATCH };
        self.stream.fill(&mut self.ops.ops, room) > 0
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
        ns.min(NAP_NS).min(self.event_ns.saturating_sub(now_ns))
    }

    /// Sleeps until `op` may go. `Some(end)` when the worker has to end instead.
    #[cold]
    pub(crate) fn hold(&mut self, op: &Op, now_ns: impl Fn() -> u64, clocked: bool) -> Option<End> {
        loop {
            let at_ns = clock::monotonic_ns();
            let pause = self.gate.as_ref().and_then(|gate| gate.pause(op, at_ns))?;
            let sleep_ns = self.nap_ns(pause.ns, now_ns());
            if pause.spin_ns == 0 && sleep_ns > 0 {
                clock::sleep_until_ns(at_ns + sleep_ns);
            }
            let loop_ns = now_ns();
            if self.is_due(loop_ns)
                && let Some(end) = self.attend(loop_ns, clocked)
            {
                return Some(end);
            }
        }
    }

    /// How long `op` may not be issued yet; `None` when it may.
    pub(crate) fn held(&self, op: &Op) -> Option<u64> {
        let pause = self.gate.as_ref()?.pause(op, clock::monotonic_ns())?;
        Some(if pause.spin_ns > 0 { 0 } else { pause.ns })
    }

    /// `op` goes past the gate.
    pub(crate) fn pass(&mut self, op: &Op) {
        if let Some(gate) = &mut self.gate {
            gate.issued(op, clock::monotonic_ns());
        }
    }

    /// Counts an operation that went well, short or not.
    #[inline]
    pub(crate) fn count(&mut self, op: &Op, bytes: u64) {
        match op.action {
            Action::Transfer(direction) => {
                self.recorder.count(direction, bytes);
                self.live.completed(direction, bytes);
                self.done_bytes += bytes;
                if let Some(gate) = &mut self.gate {
                    gate.completed(clock::monotonic_ns());
                }
            }
            _ => self.recorder.count_sync(),
        }
    }

    /// Counts what an operation moved before it failed.
    pub(crate) fn count_partial(&mut self, op: &Op, bytes: u64) {
        if bytes > 0 {
            self.count(op, bytes);
        }
    }

    /// Checks an I/O against `max_latency`.
    #[inline]
    pub(crate) fn too_slow(&self, op: &Op, took_ns: u64) -> Option<End> {
        if self.watch_latency { self.over_limit(op, took_ns) } else { None }
    }

    #[cold]
    fn over_limit(&self, op: &Op, took_ns: u64) -> Option<End> {
        let Action::Transfer(direction) = op.action else { return None };
        let limit_ns = self.errors.latency_ns_max[direction.index()]?;
        if took_ns <= limit_ns {
            return None;
        }
        let mut failure = Failure::io(op, self.files.path(op.file), ETIMEDOUT);
        failure.explanation =
            format!("took {} us, more than max_latency={} us", took_ns / 1000, limit_ns / 1000);
        Some(failure.into())
    }

    /// Judges an outcome that is not the whole transfer. `rest` is what the engine was asked for.
    #[cold]
    pub(crate) fn judge(&mut self, rest: &Op, outcome: Outcome) -> Verdict {
        let reading = rest.action == Action::Transfer(Direction::Read);
        let errno = match outcome {
            Outcome::Done(0) if reading => EIO,
            Outcome::Done(0) => ENOSPC,
            Outcome::Done(bytes) => {
                if let Action::Transfer(direction) = rest.action {
                    self.recorder.stats.directions[direction.index()].short_ios += 1;
                }
                return Verdict::Continue(rest.rest(bytes));
            }
            Outcome::Failed(errno) => errno,
        };
        if self.fill_device && errno == ENOSPC {
            return Verdict::Stop(End::Full);
        }
        let stats = &mut self.recorder.stats;
        stats.errors_total += 1;
        if stats.first_error == 0 {
            stats.first_error = errno.0;
        }
        // A synchronisation that fails is a failed write.
        let direction = match rest.action {
            Action::Transfer(direction) => direction.index(),
            _ => Direction::Write.index(),
        };
        let passed_over = self.errors.passed_over[direction].contains(&errno.0);
        if passed_over && !self.errors.dump {
            return self.skip(rest);
        }
        let at_end = outcome == Outcome::Done(0) && reading;
        let failure = self.explain(rest, errno, at_end);
        if passed_over {
            self.said.push(&failure);
            return self.skip(rest);
        }
        Verdict::Stop(failure.into())
    }

    /// Passes over a failed operation: for the gate it has ended like any other.
    fn skip(&mut self, op: &Op) -> Verdict {
        if let (Some(gate), Action::Transfer(_)) = (&mut self.gate, op.action) {
            gate.completed(clock::monotonic_ns());
        }
        Verdict::Skip
    }

    fn explain(&self, op: &Op, errno: Errno, at_end: bool) -> Failure {
        let path = self.files.path(op.file);
        if at_end {
            return Failure::end_of_file(op, path);
        }
        let failure = Failure::io(op, path, errno);
        match fiord_engine::hint(self.settings, op.action, errno) {
            Some(hint) => Failure { explanation: hint.to_string(), ..failure },
            None => failure,
        }
    }
}

/// Errors passed over, in words (`error_dump`), as many as anybody reads.
#[derive(Debug, Default)]
pub(crate) struct Said {
    lines: Vec<String>,
    more: u64,
}

impl Said {
    const LINES_MAX: usize = 1000;

    fn push(&mut self, failure: &Failure) {
        if self.lines.len() < Said::LINES_MAX {
            self.lines.push(failure.to_string());
        } else {
            self.more += 1;
        }
    }

    /// The lines, the last of which says how many there were besides.
    pub(crate) fn into_lines(mut self) -> Vec<String> {
        if self.more > 0 {
            self.lines.push(format!("{} more errors passed over", self.more));
        }
        self.lines
    }
}
