//! The lifecycle of one worker: its thread, its files, its engine, the barrier, the loop, and the cleanup.
//!
//! Invariant: files are opened only after the plan was checked and are closed on every path; the statistics are in the
//! report whatever happens.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::Arc;

use fiord_engine::contract::{Arena, Engine, QueuedEngine, Slot, SyncEngine};
use fiord_engine::{EngineDefinition, GpuMemory, JobOutline, Setup, SetupError, Visitor, offload};
use fiord_plan::job::Memory;
use fiord_plan::{DebugChannel, Direction, Files, Hook, Job};
use fiord_stats::count::ZONE_RESETS;
use fiord_stats::{Capped, DetailedProgress, JobStats, RampEnd, Random};
use fiord_sys::clock;
use fiord_sys::errno::Errno;
use fiord_sys::map::{self, HugePages, Sharing};
use fiord_sys::memory::{self, MemorySource, Region};
use fiord_sys::{reserve, sealed_map, thread};
use fiord_workload::OperationSource;

use super::assembly::{Common, Shown, assemble};
use super::timer::Timer;
use super::{command, privileges, verify_files};
use crate::debug::DebugLog;
use crate::failure::Failure;
use crate::files::cache_growth::{CacheGrowth, CacheLooks};
use crate::files::layout;
use crate::files::table::{self, FileTable};
use crate::hot::block_tracker::BlockTracker;
use crate::hot::end::End;
use crate::hot::own_time::OwnTime;
use crate::hot::work::Work;
use crate::live::{Live, State, StopReason};
use crate::report::{EndReason, Remark, WorkerReport};
use crate::run_state::RunState;

/// How long `exec_postrun` may run after a signal requested all workers to stop.
const COMMAND_GRACE_NS: u64 = 5_000_000_000;

/// Sets up one engine with its buffers and runs a worker's loop on it; compiled per engine.
pub(crate) type RunOn = fn(&mut Worker<'_>, Arena<'_>) -> End;

/// A worker from its start to its report.
pub(crate) struct Worker<'a> {
    shared: &'a RunState,
    job: &'a Job,
    live: &'a Live,
    stats: Box<JobStats>,
    started_ms: u64,
    passed_over: Vec<String>,
    warnings: Vec<Remark>,
    own: OwnTime,
    cache_growth: Vec<CacheGrowth>,
    ramp: RampEnd,
    /// It never started its I/O: setup failed, or laying out files was all it had to do.
    unstarted: bool,
    began_ns: u64,
    /// How long it waited for the page faults of others when its I/O was done.
    held_up_ns: u64,
    /// A file created for the buffers (`iomem=mmap:FILE`), to be removed with them.
    buffer_file: Option<PathBuf>,
    run_on: RunOn,
    /// The lines of `--debug` of this job, if they are printed.
    debug: Option<DebugLog>,
}

/// Runs one worker from start to report, on the engine that `run_on` is compiled for; never panics.
pub(crate) fn run_job(shared: &RunState, job: &Job, run_on: RunOn) -> WorkerReport {
    let live = &shared.live[job.number as usize];
    live.set_thread_id(thread::id().cast_unsigned());
    let mut worker = Worker {
        shared,
        job,
        live,
        stats: Box::default(),
        started_ms: clock::read_ms(job.measure.start_clock_id),
        passed_over: Vec::new(),
        warnings: Vec::new(),
        cache_growth: Vec::new(),
        ramp: RampEnd::Over,
        unstarted: true,
        began_ns: clock::monotonic_ns(),
        held_up_ns: 0,
        own: OwnTime::default(),
        buffer_file: None,
        run_on,
        debug: shared.debug.as_ref().and_then(|log| log.of_job(job.number)),
    };
    worker.print(DebugChannel::Process, format_args!("jobs pid={} started", thread::id()));
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| worker.run()));
    let end = caught.unwrap_or_else(|panic| End::from(Failure::other("worker", panic_message(&*panic))));
    worker.report(end)
}

/// Whether memory is short and the reserve was used and cannot be refilled.
pub(crate) fn is_memory_short() -> bool {
    reserve::is_short() && !reserve::restock()
}

/// A description of a panic.
fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_string());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    format!("fiord has a bug: its worker panicked: {text}")
}

/// The failure of a job that was refused what it needs for an operation.
fn refused_to(operation: &str, refused: &SetupError) -> Failure {
    Failure { errno: Some(refused.errno), ..Failure::other(operation, refused.to_string()) }
}

/// The engine of this definition, and the loop for it.
pub(crate) fn run_on<D: EngineDefinition>(worker: &mut Worker<'_>, arena: Arena<'_>) -> End {
    let job = worker.job;
    let outline = JobOutline::of(job);
    match job.engine.settings.get::<D::Settings>() {
        // Asked when it is compiled, so that there is no pool for an engine that the plan refuses to have one for.
        Some(settings) if const { D::DESCRIPTOR.takes_open_files() } && job.submission.offload => {
            offload::<D, _>(settings, &outline, arena, Loop { worker })
        }
        Some(settings) => D::set_up(settings, Setup { job: &outline, arena }, Loop { worker }),
        None => Failure::other("set up", "fiord has a bug: the settings are another engine's").into(),
    }
}

/// Runs a worker's loop on the engine it is given.
struct Loop<'w, 'a> {
    worker: &'w mut Worker<'a>,
}

impl<'arena> Visitor<'arena> for Loop<'_, '_> {
    type Output = End;

    fn synchronous<E: SyncEngine<'arena>>(self, engine: Result<E, SetupError>) -> End {
        self.worker.enter(engine, |engine, work, slots, timer| timer.run_sync(engine, work, slots))
    }

    fn queued<E: QueuedEngine<'arena>>(self, engine: Result<E, SetupError>) -> End {
        let depth = self.worker.job.depth;
        self.worker.enter(engine, |engine, work, slots, timer| timer.run_queued(engine, work, slots, depth))
    }
}

impl<'a> Worker<'a> {
    /// Prints a line of `--debug`.
    fn print(&self, channel: DebugChannel, text: std::fmt::Arguments<'_>) {
        if let Some(debug) = &self.debug {
            debug.line(channel, text);
        }
    }

    /// Prints a change of state, by fio's names.
    fn print_state(&self, before: &str, after: &str) {
        let pid = thread::id();
        self.print(DebugChannel::Process, format_args!("pid={pid}: runstate {before} -> {after}"));
    }

    /// Prints which clock the job has.
    fn print_clock(&self, timer: &Timer<'_>) {
        if let Timer::Counter(clock) = timer {
            self.print(DebugChannel::Time, format_args!("cycles_per_msec={}", clock.frequency_khz()));
        }
        self.print(DebugChannel::Time, format_args!("gettime: clocksource={}", timer.number()));
    }

    /// The failure of a job whose engine could not be set up.
    fn not_set_up(&self, refused: &SetupError) -> Failure {
        refused_to(&format!("set up engine {}", self.job.engine.name()), refused)
    }

    fn run(&mut self) -> End {
        self.live.set_state(State::SettingUp);
        match self.prepare() {
            Ok(true) => self.unstarted = self.job.files.create_only,
            Ok(false) => {
                self.unstarted = false;
                return End::StopRequested;
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
        let end = match self.shared.opener.claim(self.job) {
            Ok(_claimed) => self.with_engine(),
            Err(failure) => failure.into(),
        };
        drop(pinned);
        self.tidy_up(end)
    }

    /// Sets up the thread and the files, before the engine. `false`: a stop was requested.
    fn prepare(&mut self) -> Result<bool, Failure> {
        privileges::set_io_scheduler(self.job)?;
        self.shared.control_groups.join(self.job)?;
        privileges::become_worker(self.job)?;
        if let Some(command) = &self.job.process.exec_prerun {
            self.exec(Hook::Prerun, command);
        }
        if let Some(name) = &self.job.schedule.wait_for {
            let jobs = &self.shared.plan.jobs;
            let awaited: Vec<usize> =
                jobs.iter().filter(|job| job.name == *name).map(|job| job.number as usize).collect();
            self.ready();
            if !self.shared.wait_for_workers(self.live, &awaited) {
                return Ok(false);
            }
        }
        layout::make_directories(self.job)?;
        if !self.job.files.create_serially {
            let task = layout::Task::of(self.job);
            layout::lay_out(self.job, task, &self.shared.opener, &mut |_| !self.live.is_stop_requested())?;
        }
        Ok(!self.live.is_stop_requested())
    }

    /// Marks this worker ready, so that the barrier no longer waits for it.
    fn ready(&self) {
        self.print_state("CREATED", "INITIALIZED");
        self.print(DebugChannel::Mutex, format_args!("up startup_sem"));
        self.shared.mark_ready(self.job.number as usize);
    }

    /// Allocates the buffers, and runs the loop of the job's engine on them.
    fn with_engine(&mut self) -> End {
        let region = match self.buffer_memory() {
            Ok(region) => region,
            Err(failure) => return failure.into(),
        };
        let (depth, (bytes, align)) = (self.job.depth.max, self.buffer_size());
        self.print(DebugChannel::Mem, format_args!("Alloc {} for buffers", bytes * depth as usize));
        Arena::with(region, depth, bytes, align, |arena| (self.run_on)(self, arena))
    }

    /// Memory that is locked while the job runs (`lockmem`).
    fn pin_memory(&self) -> Result<Option<Region>, Failure> {
        let bytes = usize::capped(self.job.buffers.lock_bytes);
        if bytes == 0 {
            return Ok(None);
        }
        memory::pin(bytes).map(Some).map_err(|error| Failure::memory("lockmem", &error))
    }

    /// Bytes of one I/O buffer, and its alignment.
    fn buffer_size(&self) -> (usize, usize) {
        let buffers = &self.job.buffers;
        (usize::capped(buffers.bytes.max(1)), usize::capped(buffers.align_bytes.max(1)))
    }

    /// Memory for the I/O buffers.
    fn buffer_memory(&mut self) -> Result<Region, Failure> {
        let (bytes, align) = self.buffer_size();
        let buffers = &self.job.buffers;
        let length = Arena::region_bytes(self.job.depth.max, bytes, align);
        let huge = HugePages { page_bytes: Some(buffers.hugepage_bytes) };
        let mut of_file = |path: &PathBuf, sharing| {
            self.buffer_file = (!path.exists()).then(|| path.clone());
            let opened = self.shared.opener.buffer_file(path);
            let operation = "allocate buffers in".to_string();
            let file = Arc::new(opened.map_err(|failure| Failure { operation, ..failure })?);
            Ok(MemorySource::MmapFile { path: path.clone(), file, sharing })
        };
        let source = match &buffers.memory {
            Memory::Malloc | Memory::Gpu => MemorySource::Malloc,
            Memory::Shm => MemorySource::Shm,
            Memory::ShmHuge => MemorySource::ShmHuge(huge),
            Memory::Mmap(None) => MemorySource::Mmap,
            Memory::Mmap(Some(path)) => of_file(path, Sharing::Private)?,
            Memory::MmapHuge(None) => MemorySource::MmapHuge(huge),
            Memory::MmapHuge(Some(path)) | Memory::MmapShared(Some(path)) => of_file(path, Sharing::Shared)?,
            Memory::MmapShared(None) => MemorySource::MmapShared,
        };
        // The first begins a page, so that those which share one end within it.
        Region::allocate(&source, length, align.next_power_of_two().max(map::page_bytes()))
            .map_err(|error| Failure::memory("allocate buffers", &error))
    }

    /// The state of the loop, and its buffers.
    #[inline(never)]
    fn assemble<'arena>(
        &self,
        engine: &mut dyn Engine<'arena>,
    ) -> Result<(Box<Work<'a>>, Vec<Slot<'arena>>), Failure> {
        let RunState { published, opener, zones, locks, .. } = self.shared;
        let shown = Shown { live: self.live, published: &published[self.job.number as usize] };
        let common = Common { opener, zones, locks };
        let (mut work, slots) = assemble(self.job, shown, common, self.debug.as_ref(), engine)?;
        work.files.debug.clone_from(&self.debug);
        work.files.cache = self.shared.looks_at_caches.then(CacheLooks::default);
        if let Some(blocks) = BlockTracker::of(self.job)? {
            work.track_blocks(blocks);
        }
        Ok((work, slots))
    }

    /// Runs the loop. Not inlined: each engine would take separate space on
    /// every worker's stack.
    #[inline(never)]
    fn enter<'arena, E: Engine<'arena>>(
        &mut self,
        engine: Result<E, SetupError>,
        body: impl FnOnce(&mut E, &mut Work<'a>, Vec<Slot<'arena>>, Timer<'a>) -> End,
    ) -> End {
        let mut engine = match engine {
            Ok(engine) => engine,
            Err(refused) => return self.not_set_up(&refused).into(),
        };
        let (mut work, slots, timer) = match self.begin(&mut engine) {
            Ok(begun) => begun,
            Err(end) => return end,
        };
        let began_ns = clock::monotonic_ns();
        let end = body(&mut engine, &mut work, slots, timer);
        self.finish(&mut engine, work, end, began_ns)
    }

    /// Opens the files and waits for the start: the state of the loop, its buffers and its clock.
    #[inline(never)]
    fn begin<'arena>(
        &mut self,
        engine: &mut dyn Engine<'arena>,
    ) -> Result<(Box<Work<'a>>, Vec<Slot<'arena>>, Timer<'a>), End> {
        let mut timer = Timer::of(self.job.measure.clock, &self.shared.timekeepers)?;
        if self.job.buffers.memory == Memory::Gpu {
            let memory = GpuMemory::new(0, &JobOutline::of(self.job), &engine.arena());
            timer = timer.with_gpu(memory.map_err(|refused| refused_to("mem=cudamalloc", &refused))?);
        }
        let (mut work, slots) = self.assemble(engine)?;
        if let (Some(logs), Some(sink)) =
            (&self.job.logs, self.shared.take_log_sink(self.job.number as usize))
        {
            work.recorder.log_to(logs, sink);
        }
        if let Some(flow) = self.shared.flow_of(self.job.number as usize) {
            work.join_flow(Arc::clone(flow));
        }
        if is_memory_short() {
            return Err(Failure::short_of_memory("set up").into());
        }
        // A connection is made after the start, because its other end may be a job of this run, and before the measured
        // time, which does not include the wait for the other end.
        let connects = self.job.engine.descriptor.connects().is_some();
        if !connects {
            self.start(engine, &mut work)?;
        }
        self.ready();
        if !self.wait_for_start() {
            return Err(End::StopRequested);
        }
        if connects {
            self.start(engine, &mut work)?;
        }
        self.print_state("INITIALIZED", "RUNNING");
        self.started_ms = clock::read_ms(self.job.measure.start_clock_id);
        self.print_clock(&timer);
        Ok((work, slots, timer))
    }

    /// Ends the I/O of a loop that began at `began_ns`: syncs and closes the files, and takes what was measured.
    #[inline(never)]
    fn finish(
        &mut self,
        engine: &mut dyn Engine<'_>,
        mut work: Box<Work<'a>>,
        end: End,
        began_ns: u64,
    ) -> End {
        work.recorder.flush();
        if let Some(flow) = self.shared.flow_of(self.job.number as usize) {
            flow.leave();
        }
        work.count_unserved(&end);
        self.print_state("RUNNING", "FINISHING");
        let looped_ns = clock::monotonic_ns().saturating_sub(began_ns);
        let message = work.source.finish(looped_ns);
        let end = end.followed_by(work.refuse_late());
        self.warnings.extend(verify_files::save_state(self.job, &work.source, &self.shared.opener));
        let option = self.job.trace_option();
        self.warnings.extend(message.map(|message| Remark::warning(option, message)));
        let unwritten = work.source.unwritten();
        self.warnings.extend(unwritten.map(|message| Remark::lost_output(option, message)));
        let end = self.sync_files(&work.files, end);
        let synced_ns = clock::monotonic_ns();
        let may_unmap = self.shared.wait_for_page_faults(self.job.number as usize);
        self.held_up_ns = clock::monotonic_ns() - synced_ns;
        if may_unmap {
            self.cache_growth = work.files.cache_growth();
        }
        // Which is not the job's work.
        let looked_ns = clock::monotonic_ns() - synced_ns;
        let end = if may_unmap { end.followed_by(work.files.close_all(engine)) } else { end };
        let read_back_ns = work.source.read_back_ns();
        let ended_ns = clock::monotonic_ns() - looked_ns;
        self.live.set_ended_ns(ended_ns);
        self.live.set_state(State::Finishing);
        self.own = work.own;
        self.stats = work.recorder.conclude(self.job.engine.descriptor, &engine.end_threads());
        if let Some(resets) = work.source.zone_resets() {
            self.stats.counts.add(&ZONE_RESETS, resets);
        }
        self.stats.replay_lateness = work.source.lateness().cloned();
        self.passed_over = work.errors.into_lines();
        self.finish_logs(work.recorder.finish_logs(ended_ns));
        self.account(began_ns, ended_ns, read_back_ns);
        if may_unmap { end } else { self.end_without_cleanup(end) }
    }

    /// Hands in the report, and waits for the end of the process: closing the files and freeing the buffers would have to
    /// wait for a page fault that may never end.
    fn end_without_cleanup(&mut self, end: End) -> ! {
        let process = &self.job.process;
        let undone = [
            (self.job.files.unlink, Files::UNLINK_OPTION),
            (process.exec_postrun.is_some(), Hook::Postrun.option()),
        ];
        let undone = undone.into_iter().filter_map(|(is_wanted, option)| is_wanted.then_some(option));
        let remark = |option| Remark::warning(option, format!("not done: {}", sealed_map::HELD));
        self.warnings.extend(undone.map(remark));
        self.shared.end_worker(self.job, self.report(end));
        loop {
            std::thread::park();
        }
    }

    /// The report at the end.
    fn report(&mut self, end: End) -> WorkerReport {
        let (reason, failure) = self.conclude(end);
        self.print_state("FINISHING", "EXITED");
        self.live.set_state(if failure.is_some() { State::Failed } else { State::Ended });
        let elapsed_ns = clock::monotonic_ns().saturating_sub(self.began_ns + self.held_up_ns);
        WorkerReport {
            number: self.job.number,
            stats: std::mem::take(&mut self.stats),
            depth: None,
            steady: None,
            reason,
            failure,
            passed_over: std::mem::take(&mut self.passed_over),
            warnings: std::mem::take(&mut self.warnings),
            own: self.own,
            cache_growth: std::mem::take(&mut self.cache_growth),
            ramp: self.ramp,
            unstarted: self.unstarted,
            thread_id: self.live.thread_id(),
            started_ms: self.started_ms,
            elapsed_ms: elapsed_ns / 1_000_000,
        }
    }

    /// Opens the first files, and pre-reads them if the job requests it.
    fn start(&self, engine: &mut dyn Engine<'_>, work: &mut Work<'_>) -> Result<(), Failure> {
        if self.job.files.pre_read {
            self.live.set_state(State::PreReading);
            table::pre_read(&self.job.files, &self.shared.opener, &|| !self.live.is_stop_requested())?;
        }
        for (number, output) in self.job.engine.outputs(&self.job.name).into_iter().enumerate() {
            let opener = &self.shared.opener;
            engine.take_output(
                number,
                match output.is_given {
                    true => opener.create(&output.path, output.is_kept)?,
                    false => opener.create_named(&output.path, output.is_kept)?,
                },
            );
        }
        // Cycles begin when the job does, not when it is ready.
        if self.job.engine.cycle().is_some() { Ok(()) } else { work.open_files(engine) }
    }

    /// Remarks on the time the job `waited_ns` for its logs to be written, if it did.
    fn finish_logs(&mut self, waited_ns: u64) {
        let first = self.job.logs.as_ref().and_then(|logs| logs.files.first());
        if let (Some(file), 1..) = (first, waited_ns) {
            let waited_ms = waited_ns.div_ceil(1_000_000);
            let message = format!(
                "the job issued no I/O for {waited_ms} ms, because its logs could not be written as fast as it did I/O"
            );
            self.warnings.push(Remark::warning(file.kind.option(), message));
        }
    }

    /// Waits at the barrier, then for the job's own delay. `false`: a stop was requested.
    fn wait_for_start(&self) -> bool {
        self.live.set_state(State::Ready);
        let stage = self.shared.stage_of(self.job.number as usize);
        self.print(DebugChannel::Mutex, format_args!("wait on td->sem"));
        let is_released = self.shared.wait_for_stage(self.live, stage);
        self.print(DebugChannel::Mutex, format_args!("done waiting on td->sem"));
        if !is_released {
            return false;
        }
        let (least_ns, most_ns) = self.job.schedule.start_delay_ns;
        let spread_ns = most_ns.saturating_sub(least_ns);
        let delay_ns = least_ns + Random::new(self.job.access.seed).below(spread_ns + 1);
        delay_ns == 0 || self.shared.wait_until_ns(self.live, clock::monotonic_ns() + delay_ns)
    }

    /// Publishes what was done, and records the run time from the end of the ramp; for a job that ended within its ramp, of
    /// the whole job.
    fn account(&mut self, began_ns: u64, ended_ns: u64, read_back_ns: u64) {
        self.shared.published[self.job.number as usize].lock().progress =
            Some(Box::new(DetailedProgress::of(&self.stats)));
        let done: u64 = self.stats.directions.iter().map(|direction| direction.ios).sum();
        let (since_ns, ramp) = match self.live.measured_since_ns() {
            0 => (began_ns, RampEnd::Unfinished),
            // The job and its ramp ended at the same time.
            since_ns if done == 0 && self.job.limits.has_ramp() => (since_ns, RampEnd::NothingAfter),
            since_ns => (since_ns, RampEnd::Over),
        };
        self.ramp = ramp;
        let elapsed_ms = (ended_ns.saturating_sub(since_ns) + 500_000) / 1_000_000;
        // As in fio, the time spent reading back does not count for the job's own directions; for reads that only read
        // back, it is all that counts.
        let read_back_ms = (read_back_ns + 500_000) / 1_000_000;
        let pattern = self.job.access.pattern;
        for (direction, stats) in Direction::ALL.into_iter().zip(&mut self.stats.directions) {
            let runtime_ms = match direction {
                Direction::Read if pattern.includes(Direction::Read) => elapsed_ms,
                Direction::Read => read_back_ms,
                Direction::Write | Direction::Trim => elapsed_ms.saturating_sub(read_back_ms),
            };
            // As in fio, cycles without bytes have no rate.
            let has_rate = stats.ios > 0 && self.job.engine.cycle().is_none();
            stats.runtime_ms = if has_rate { runtime_ms.max(1) } else { 0 };
        }
        self.stats.usage.elapsed_ms = elapsed_ms;
    }

    /// Syncs the files of a job that ran to its end; the time it takes is part of the run.
    fn sync_files(&self, files: &FileTable<'_>, end: End) -> End {
        // After a trigger nothing is synced: its command may cut the power to test what was not synced.
        let is_cut_short = matches!(end, End::StopRequested)
            && matches!(self.live.stop_reason(), StopReason::Signal | StopReason::Trigger);
        if is_cut_short || matches!(end, End::Failed(_)) {
            return end;
        }
        self.live.set_state(State::Syncing);
        end.followed_by(files.sync_at_end())
    }

    /// Cleans up after the I/O, when the files are closed.
    fn tidy_up(&mut self, end: End) -> End {
        if let Some(path) = &self.buffer_file {
            self.shared.opener.remove_buffer_file(path);
        }
        let end = match self.job.files.unlink {
            true => end.followed_by(FileTable::new(self.job, &self.shared.opener).remove()),
            false => end,
        };
        if let Some(command) = &self.job.process.exec_postrun {
            self.exec(Hook::Postrun, command);
        }
        end
    }

    /// Runs one of the user's commands.
    fn exec(&mut self, hook: Hook, command: &OsStr) {
        let began_ns = clock::monotonic_ns();
        // exec_postrun may clean up, so it is waited for, after a signal for a limited time; exec_prerun is of no
        // use once the job is to stop.
        let is_cancelled = || match hook {
            Hook::Prerun => self.live.is_stop_requested(),
            Hook::Postrun => self.shared.is_urgent() || self.is_out_of_grace(began_ns),
        };
        let log = hook.log(&self.job.name);
        let opener = &self.shared.opener;
        let message = command::exec(command, &log, opener, &is_cancelled);
        // It may have mounted what the job is about to write to.
        opener.invalidate();
        self.warnings.extend(message.map(|message| Remark::warning(hook.option(), message)));
    }

    /// Whether a command that began at `began_ns` has used up its grace period after a signal.
    fn is_out_of_grace(&self, began_ns: u64) -> bool {
        let now_ns = clock::monotonic_ns();
        self.shared.stopping_for_ns(now_ns).min(now_ns - began_ns) >= COMMAND_GRACE_NS
    }

    /// A worker that was requested to stop is woken by a signal: a system call that fails because of it (EINTR) is not
    /// a failure.
    fn discard_interrupt(&self, end: End) -> End {
        let is_woken =
            |failure: &Failure| failure.errno == Some(Errno::EINTR) && self.live.is_stop_requested();
        if matches!(&end, End::Failed(failure) if is_woken(failure)) { End::StopRequested } else { end }
    }

    /// The reason for the end, for the report.
    fn conclude(&mut self, end: End) -> (EndReason, Option<Failure>) {
        match self.discard_interrupt(end) {
            End::Complete => (EndReason::Size, None),
            End::Full => (EndReason::DeviceFull, None),
            End::TimeUp => (EndReason::Time, None),
            End::DepthFound => (EndReason::DepthFound, None),
            End::Failed(failure) => (EndReason::Error, Some(*failure)),
            End::StopRequested => match self.live.stop_reason() {
                StopReason::Time => (EndReason::Time, None),
                StopReason::Steady => (EndReason::Steady, None),
                StopReason::Signal => (EndReason::Signal, None),
                StopReason::Trigger => (EndReason::Trigger, None),
                StopReason::Nothing | StopReason::Other => (EndReason::Others, None),
                StopReason::TooSlow => {
                    let failure = Failure::other("keep up", self.live.complaint());
                    (EndReason::Error, Some(failure))
                }
            },
        }
    }
}
