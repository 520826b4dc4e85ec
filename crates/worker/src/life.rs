//! One worker's life: its thread, its files, its engine, the barrier, the loop, and what comes after.
//!
//! Invariant: files are opened only after the plan was checked and closed on every way out; what was measured is in
//! the report whatever happened.

use std::path::PathBuf;

use std::sync::{Arc, Mutex};

use fiord_engine::contract::{Arena, Engine, QueuedEngine, Slot, SyncEngine};
use fiord_engine::{IoUring, Libaio, MapUse, Mmap, Null, Psync, Pvsync, Pvsync2, Refused, Sync, Vsync};
use fiord_plan::files::Advice;
use fiord_plan::job::Memory;
use fiord_plan::{ClockSource, Depth, Direction, EngineSettings, Job, touch};
use fiord_stats::{JobLogs, JobStats, Random};
use fiord_sys::clock::{self, GettimeofdayClock, NoClock, OsClock, TscClock};
use fiord_sys::errno::Errno;
use fiord_sys::map::{HugePages, MapAdvice, Sharing};
use fiord_sys::memory::{self, Region, Source};
use fiord_sys::thread;
use fiord_workload::{Filler, Stream};

use crate::director::is_memory_short;
use crate::door::Door;
use crate::failure::Failure;
use crate::files::FileTable;
use crate::gate::Gate;
use crate::hot::{self, End, Parts, Work};
use crate::layout;
use crate::live::{Live, State, Why};
use crate::record::Recorder;
use crate::run::{EndReason, Remark, WorkerReport};
use crate::scene::Scene;

const EINTR: Errno = Errno(4);

/// Buffers are touched when they are used first, but for so much of them: for small I/Os, in whose latency a page fault
/// would show, the memory is there before the first.
const TOUCHED_AHEAD_BYTES: u64 = 1 << 20;

/// How long `exec_postrun` may go on after a signal told all to stop.
const COMMAND_GRACE_NS: u64 = 5_000_000_000;

/// Stands for one worker while it lives.
struct Worker<'a> {
    scene: &'a Scene,
    job: &'a Job,
    live: &'a Live,
    stats: Box<JobStats>,
    logs: Option<Arc<JobLogs>>,
    started_ms: u64,
    passed_over: Vec<String>,
    warnings: Vec<Remark>,
    /// It never came to its I/O: something it needs could not be set up, or laying out files was all it had to do.
    unstarted: bool,
    /// A file made for the buffers (`iomem=mmap:FILE`), to be removed with them.
    buffer_file: Option<PathBuf>,
}

/// Lives one worker's life; never panics out.
pub(crate) fn live_through(scene: &Scene, job: &Job) -> WorkerReport {
    let live = &scene.lives[job.number as usize];
    live.set_thread_id(thread::id() as u32);
    let mut worker = Worker {
        scene,
        job,
        live,
        stats: Box::default(),
        logs: None,
        started_ms: clock::realtime_ms(),
        passed_over: Vec::new(),
        warnings: Vec::new(),
        unstarted: true,
        buffer_file: None,
    };
    let began_ns = clock::monotonic_ns();
    let lived = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| worker.run()));
    let end = lived.unwrap_or_else(|panic| End::from(Failure::other("worker", said(&*panic))));
    let (reason, failure) = worker.conclude(end);
    live.set_state(if failure.is_some() { State::Failed } else { State::Ended });
    WorkerReport {
        number: job.number,
        stats: worker.stats,
        logs: worker.logs,
        reason,
        failure,
        passed_over: worker.passed_over,
        warnings: worker.warnings,
        unstarted: worker.unstarted,
        thread_id: live.thread_id(),
        started_ms: worker.started_ms,
        elapsed_ms: clock::monotonic_ns().saturating_sub(began_ns) / 1_000_000,
    }
}

/// What a panic said.
fn said(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_string());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    format!("fiord has a bug: its worker panicked: {text}")
}

impl<'a> Worker<'a> {
    fn run(&mut self) -> End {
        self.live.set_state(State::SettingUp);
        match self.prepare() {
            Ok(true) => self.unstarted = self.job.files.create_only,
            Ok(false) => {
                self.unstarted = false;
                return End::Told;
            }
            Err(failure) => return failure.into(),
        }
        if self.unstarted {
            return End::Complete;
        }
        if is_memory_short() {
            return Failure::short_of_memory("set up").into();
        }
        let pinned = match self.pin_memory() {
            Ok(pinned) => pinned,
            Err(failure) => return failure.into(),
        };
        let end = match self.scene.door.claim(self.job) {
            Ok(_claimed) => self.with_engine(),
            Err(failure) => failure.into(),
        };
        drop(pinned);
        self.tidy_up(end)
    }

    /// The thread and the files, before the engine. `false`: told to stop.
    fn prepare(&mut self) -> Result<bool, Failure> {
        crate::person::set_io_scheduler(self.job)?;
        crate::person::become_worker(self.job)?;
        if let Some(command) = &self.job.process.exec_prerun {
            self.exec("exec_prerun", command);
        }
        if let Some(name) = &self.job.schedule.wait_for {
            let jobs = &self.scene.plan.jobs;
            let awaited: Vec<usize> =
                jobs.iter().filter(|job| job.name == *name).map(|job| job.number as usize).collect();
            self.ready();
            if !self.scene.wait_for_workers(self.live, &awaited) {
                return Ok(false);
            }
        }
        layout::make_directories(self.job)?;
        if !self.job.files.create_serially {
            layout::lay_out(self.job, &self.scene.door, &mut |_| !self.live.is_told_to_stop())?;
        }
        Ok(!self.live.is_told_to_stop())
    }

    /// Tells the others that this worker no longer holds them up.
    fn ready(&self) {
        self.scene.is_ready(self.job.number as usize);
    }

    /// Picks the loop: the one place that looks at which engine it is.
    fn with_engine(&mut self) -> End {
        let depth = self.job.depth.max;
        let files = self.job.files.list.len();
        let arena = match self.arena() {
            Ok(arena) => arena,
            Err(failure) => return failure.into(),
        };
        match &self.job.engine {
            EngineSettings::Null if depth > 1 => self.queued(Ok(Null::new(arena))),
            EngineSettings::Null => self.sync(Ok(Null::new(arena))),
            EngineSettings::Sync => self.sync(Ok(Sync::new(arena, files))),
            EngineSettings::Psync => self.sync(Ok(Psync::new(arena, files))),
            EngineSettings::Vsync => self.sync(Ok(Vsync::new(arena, files))),
            EngineSettings::Pvsync => self.sync(Ok(Pvsync::new(arena, files))),
            EngineSettings::Pvsync2(settings) => self.sync(Ok(Pvsync2::new(settings, arena, files))),
            EngineSettings::Mmap(settings) => {
                self.sync(Ok(Mmap::new(settings, self.map_use(), arena, files)))
            }
            EngineSettings::Libaio(settings) => self.queued(Libaio::new(settings, arena, files)),
            EngineSettings::IoUring(settings) => self.queued(IoUring::new(settings, arena, files)),
        }
    }

    /// What the job will do with a mapping.
    fn map_use(&self) -> MapUse {
        let advice = match (self.job.files.advice, self.job.access.random) {
            (Advice::None, _) => MapAdvice::Normal,
            (Advice::ByPattern, true) | (Advice::Random, _) => MapAdvice::Random,
            _ => MapAdvice::Sequential,
        };
        MapUse { advice, flush_writes: self.job.files.direct }
    }

    /// Memory taken away from the system while the job runs (`lockmem`).
    fn pin_memory(&self) -> Result<Option<Region>, Failure> {
        let bytes = self.job.buffers.lock_bytes as usize;
        if bytes == 0 {
            return Ok(None);
        }
        memory::pin(bytes).map(Some).map_err(|error| Failure::memory("lockmem", &error))
    }

    /// The I/O buffers.
    fn arena(&mut self) -> Result<Arena, Failure> {
        let buffers = &self.job.buffers;
        let (bytes, align) = (buffers.bytes.max(1) as usize, buffers.align_bytes.max(1) as usize);
        let length = Arena::region_bytes(self.job.depth.max, bytes, align);
        let huge = HugePages { page_bytes: Some(buffers.hugepage_bytes) };
        let mut of_file = |path: &PathBuf, sharing| {
            self.buffer_file = (!path.exists()).then(|| path.clone());
            let opened = self.scene.door.buffer_file(path);
            let operation = "allocate buffers in".to_string();
            let file = Arc::new(opened.map_err(|failure| Failure { operation, ..failure })?);
            Ok(Source::MmapFile { path: path.clone(), file, sharing })
        };
        let source = match &buffers.memory {
            Memory::Malloc => Source::Malloc,
            Memory::Shm => Source::Shm,
            Memory::ShmHuge => Source::ShmHuge(huge),
            Memory::Mmap(None) => Source::Mmap,
            Memory::Mmap(Some(path)) => of_file(path, Sharing::Private)?,
            Memory::MmapHuge(None) => Source::MmapHuge(huge),
            Memory::MmapHuge(Some(path)) | Memory::MmapShared(Some(path)) => of_file(path, Sharing::Shared)?,
            Memory::MmapShared(None) => Source::MmapShared,
        };
        let region = Region::allocate(&source, length, align.next_power_of_two())
            .map_err(|error| Failure::memory("allocate buffers", &error))?;
        Ok(Arena::new(region, self.job.depth.max, bytes, align))
    }

    fn sync<E: SyncEngine>(&mut self, engine: Result<E, Refused>) -> End {
        self.enter(engine, |engine, work, slots, timer| timer.run_sync(engine, work, slots))
    }

    fn queued<E: QueuedEngine>(&mut self, engine: Result<E, Refused>) -> End {
        let depth = self.job.depth;
        self.enter(engine, |engine, work, slots, timer| timer.run_queued(engine, work, slots, depth))
    }

    /// Opens the files, waits for the start, and runs the loop. Not inlined: each engine would take room of its own on
    /// every worker's stack.
    #[inline(never)]
    fn enter<E: Engine>(
        &mut self,
        engine: Result<E, Refused>,
        body: impl FnOnce(&mut E, &mut Work<'a>, Vec<Slot>, Timer) -> End,
    ) -> End {
        let mut engine = match engine {
            Ok(engine) => engine,
            Err(refused) => {
                let name = self.job.engine.name();
                let mut failure = Failure::other(&format!("set up engine {name}"), refused.to_string());
                failure.errno = Some(refused.errno);
                return failure.into();
            }
        };
        let snapshot = &self.scene.snapshots[self.job.number as usize];
        let door = &self.scene.door;
        let (mut work, slots) = match assemble(self.job, self.live, snapshot, door, &mut engine) {
            Ok(made) => made,
            Err(failure) => return failure.into(),
        };
        if is_memory_short() {
            return Failure::short_of_memory("set up").into();
        }
        if let Err(failure) = self.start(&mut engine, &mut work) {
            return failure.into();
        }
        self.ready();
        if !self.wait_for_start() {
            return End::Told;
        }
        self.started_ms = clock::realtime_ms();
        let began_ns = clock::monotonic_ns();
        let end = body(&mut engine, &mut work, slots, Timer::of(self.job.measure.clock));
        work.recorder.settle();
        let end = self.leave_files(&work.files, end);
        let end = match work.files.close_all(&mut engine) {
            Err(failure) if !matches!(end, End::Failed(_)) => failure.into(),
            _ => end,
        };
        let ended_ns = clock::monotonic_ns();
        self.live.set_ended_ns(ended_ns);
        self.live.set_state(State::Finishing);
        self.stats = work.recorder.conclude(&E::INFO);
        self.passed_over = work.said.into_lines();
        self.logs = work.recorder.take_logs(ended_ns).map(Arc::new);
        self.account(began_ns, ended_ns);
        end
    }

    /// Opens what stays open, and reads it first if the job wants that.
    fn start<E: Engine>(&self, engine: &mut E, work: &mut Work<'_>) -> Result<(), Failure> {
        if self.job.files.pre_read {
            self.live.set_state(State::PreReading);
            crate::files::pre_read(&self.job.files, &self.scene.door, &|| !self.live.is_told_to_stop())?;
        }
        work.open_files(engine)
    }

    /// The barrier, then the job's own delay. `false`: told to stop.
    fn wait_for_start(&self) -> bool {
        self.live.set_state(State::Ready);
        let stage = self.scene.stage_of(self.job.number as usize);
        if !self.scene.wait_for_stage(self.live, stage) {
            return false;
        }
        let (least_ns, most_ns) = self.job.schedule.start_delay_ns;
        let spread_ns = most_ns.saturating_sub(least_ns);
        let delay_ns = least_ns + Random::new(self.job.access.seed).below(spread_ns + 1);
        delay_ns == 0 || self.scene.wait_until_ns(self.live, clock::monotonic_ns() + delay_ns)
    }

    /// Run time, from the end of the ramp on. A job that ended within its ramp is told as a whole.
    fn account(&mut self, began_ns: u64, ended_ns: u64) {
        let limits = &self.job.limits;
        let done: u64 = self.stats.directions.iter().map(|direction| direction.ios).sum();
        let option = if limits.ramp_bytes > 0 { "ramp_size" } else { "ramp_time" };
        let (since_ns, within_ramp) = match self.live.measured_since_ns() {
            0 => (began_ns, Some("the job ended before its ramp did: its figures are those of the ramp")),
            // It came to its end and to the ramp's at once.
            since_ns if done == 0 && (limits.ramp_ns > 0 || limits.ramp_bytes > 0) => {
                (since_ns, Some("the job ended with its ramp: nothing was left to be measured"))
            }
            since_ns => (since_ns, None),
        };
        self.warnings.extend(within_ramp.map(|message| Remark { option, message: message.to_string() }));
        let elapsed_ms = (ended_ns.saturating_sub(since_ns) + 500_000) / 1_000_000;
        for direction in &mut self.stats.directions {
            direction.runtime_ms = if direction.ios > 0 { elapsed_ms.max(1) } else { 0 };
        }
        self.stats.usage.elapsed_ms = elapsed_ms;
    }

    /// Syncs what a job that ran to its end leaves behind; the time it takes is part of the run.
    fn leave_files(&self, files: &FileTable<'_>, end: End) -> End {
        let told_by_signal = matches!(end, End::Told) && self.live.why() == Why::Signal;
        if told_by_signal || matches!(end, End::Failed(_)) {
            return end;
        }
        self.live.set_state(State::Syncing);
        match files.sync_at_end() {
            Err(failure) => failure.into(),
            Ok(()) => end,
        }
    }

    /// What a job does when its I/O is over and its files are closed.
    fn tidy_up(&mut self, end: End) -> End {
        if let Some(path) = &self.buffer_file {
            // Another worker may have removed it.
            let _ = std::fs::remove_file(path);
        }
        let end = match (self.job.files.unlink, end) {
            (true, end @ End::Failed(_)) => {
                // What failed first is what is told.
                let _ = FileTable::new(self.job, &self.scene.door).remove();
                end
            }
            (true, end) => {
                FileTable::new(self.job, &self.scene.door).remove().map_or_else(End::from, |()| end)
            }
            (false, end) => end,
        };
        if let Some(command) = &self.job.process.exec_postrun {
            self.exec("exec_postrun", command);
        }
        end
    }

    /// Runs a command of the user's.
    fn exec(&mut self, option: &'static str, command: &str) {
        let began_ns = clock::monotonic_ns();
        // What runs behind the job may clean up, and is waited for, if not for long once a signal wants an end; what
        // runs before it is of no use any more.
        let is_given_up = || match option {
            "exec_prerun" => self.live.is_told_to_stop(),
            _ => self.scene.is_urgent() || self.is_told_for_too_long(began_ns),
        };
        let log = touch::exec_log(&self.job.name, option);
        let door = &self.scene.door;
        let message = crate::person::exec(command, &log, door, &is_given_up);
        // It may have mounted what the job is about to write to.
        door.forget();
        self.warnings.extend(message.map(|message| Remark { option, message }));
    }

    /// Whether a command that runs since `began_ns` has had its time since a signal told all to stop.
    fn is_told_for_too_long(&self, began_ns: u64) -> bool {
        let now_ns = clock::monotonic_ns();
        self.scene.told_for_ns(now_ns).min(now_ns - began_ns) >= COMMAND_GRACE_NS
    }

    /// A worker that has been told to stop is woken where it waits in the kernel: that a call failed for that is no
    /// failure.
    fn unless_woken(&self, end: End) -> End {
        match end {
            End::Failed(failure) if failure.errno == Some(EINTR) && self.live.is_told_to_stop() => End::Told,
            end => end,
        }
    }

    /// The reason for the end, as the report gives it.
    fn conclude(&mut self, end: End) -> (EndReason, Option<Failure>) {
        match self.unless_woken(end) {
            End::Complete => (EndReason::Size, None),
            End::Full => (EndReason::DeviceFull, None),
            End::TimeUp => (EndReason::Time, None),
            End::Failed(failure) => (EndReason::Error, Some(*failure)),
            End::Told => match self.live.why() {
                Why::Time => (EndReason::Time, None),
                Why::Signal => (EndReason::Signal, None),
                Why::Nothing | Why::Other => (EndReason::Others, None),
                Why::TooSlow => {
                    let failure = Failure::other("keep up", self.live.complaint());
                    (EndReason::Error, Some(failure))
                }
            },
        }
    }
}

/// Everything the loop of a job works on, and the right to the buffers, the first of which are filled.
///
/// It is boxed, since a stack as deep as several copies of it would stay with each of thousands of threads.
#[inline(never)]
pub(crate) fn assemble<'a, E: Engine>(
    job: &'a Job,
    live: &'a Live,
    snapshot: &'a Mutex<JobStats>,
    door: &'a Door,
    engine: &mut E,
) -> Result<(Box<Work<'a>>, Vec<Slot>), Failure> {
    let mut filler = Filler::new(&job.buffers.fill, job.access.seed);
    let mut slots = engine.arena().slots();
    let writes = job.access.pattern.includes(Direction::Write);
    let mut left_bytes = TOUCHED_AHEAD_BYTES;
    let mut primed = vec![!writes; slots.len()].into_boxed_slice();
    for slot in &mut slots {
        let buffer = engine.arena().bytes_mut(slot);
        let Some(left) = left_bytes.checked_sub(buffer.len() as u64) else { break };
        filler.prime(buffer);
        (left_bytes, primed[slot.index()]) = (left, true);
    }
    let stream = Stream::new(&job.access, &job.files, &job.limits)
        .map_err(|error| Failure::other("plan the operations", error.to_string()))?;
    let work = Box::new(Work::new(Parts {
        stream,
        filler,
        gate: Gate::new(&job.pace, job.access.seed),
        recorder: Recorder::new(job, live),
        errors: &job.errors,
        files: FileTable::new(job, door),
        live,
        limits: &job.limits,
        snapshot,
        fill_device: job.files.fill_device,
        engine: E::INFO,
        settings: &job.engine,
        primed,
    }));
    Ok((work, slots))
}

/// The clock of one worker.
pub(crate) enum Timer {
    Tsc(TscClock),
    Os,
    TimeOfDay(GettimeofdayClock),
    None,
}

impl Timer {
    pub(crate) fn of(source: ClockSource) -> Timer {
        match source {
            ClockSource::None => Timer::None,
            ClockSource::Monotonic => Timer::Os,
            ClockSource::TimeOfDay => Timer::TimeOfDay(GettimeofdayClock::new()),
            ClockSource::Best | ClockSource::Tsc => {
                TscClock::shared().ok().filter(TscClock::agrees_here).map_or(Timer::Os, Timer::Tsc)
            }
        }
    }

    /// Runs the loop of the synchronous engines by this clock.
    pub(crate) fn run_sync<E: SyncEngine>(
        self,
        engine: &mut E,
        work: &mut Work<'_>,
        mut slots: Vec<Slot>,
    ) -> End {
        let Some(slot) = slots.last_mut() else {
            return Failure::other("set up", "the engine has no buffer").into();
        };
        match self {
            Timer::Tsc(clock) => hot::sync::run(engine, clock, work, slot),
            Timer::Os => hot::sync::run(engine, OsClock, work, slot),
            Timer::TimeOfDay(clock) => hot::sync::run(engine, clock, work, slot),
            Timer::None => hot::sync::run(engine, NoClock, work, slot),
        }
    }

    /// Runs the loop of the queued engines by this clock.
    pub(crate) fn run_queued<E: QueuedEngine>(
        self,
        engine: &mut E,
        work: &mut Work<'_>,
        slots: Vec<Slot>,
        depth: Depth,
    ) -> End {
        match self {
            Timer::Tsc(clock) => hot::queued::run(engine, clock, work, slots, depth),
            Timer::Os => hot::queued::run(engine, OsClock, work, slots, depth),
            Timer::TimeOfDay(clock) => hot::queued::run(engine, clock, work, slots, depth),
            Timer::None => hot::queued::run(engine, NoClock, work, slots, depth),
        }
    }
}
