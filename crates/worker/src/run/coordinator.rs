//! Executes a run: lays out files, starts workers stage by stage, supervises them and collects their reports.
//!
//! Invariant: never blocks on anything a worker can block on. Only other threads touch files, and a worker that does
//! not return from the kernel is abandoned after a grace period and named in the report.

use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fiord_plan::job::ControlGroup;
use fiord_plan::{ClockSource, DebugChannel, Job, Plan, shown};
use fiord_stats::Capped;
use fiord_stats::JobStats;
use fiord_sys::channel::{self, RecvTimeoutError};
use fiord_sys::clock::{self, CounterClock};
use fiord_sys::spawn::{Thread, spawn};
use fiord_sys::{reserve, sealed_map, signal, thread};

use super::aggregate_sampler::{AggregateSampler, RateSample};
use super::group::Group;
use super::layout_thread::{self, LayoutEvent};
use super::periodic_request::PeriodicRequest;
use super::progress;
use super::published::PublishedProgress;
use super::rules;
use super::sampler::Sampler;
use super::trigger::TriggerWatch;
use super::watchdog::{self, Watchdog};
use super::watcher::{Gate, Moment, Watcher};
use crate::failure::Failure;
use crate::job::engines::{self, RunnableEngine};
use crate::job::worker::{self, RunOn, is_memory_short};
use crate::live::{Live, State, StopReason, request};
use crate::report::{EndReason, Remark, RunResult, WorkerReport, failed, not_started};
use crate::run_state::RunState;

/// Stack of a worker's thread: touched only as far as it is used.
const STACK_BYTES: usize = 256 * 1024;

/// The same for an engine that opens its targets itself: the calls of libraries are as deep as in any program.
const STACK_BYTES_NAMED: usize = 4 << 20;

/// The most jobs that are asked for their latencies at full resolution, of which each keeps a copy of up to 60 KB.
const COPIES_MAX: usize = 256;

/// Above this number of workers per CPU each worker checks for signals itself: with thousands of runnable threads it
/// may take seconds until the coordinator is scheduled.
const OVERSUBSCRIBED_PER_CPU: usize = 16;

/// Interval between two checks for signals.
const TICK: Duration = Duration::from_millis(50);

/// How long before a gate opens the coordinator no longer sleeps, in nanoseconds: it might wake up too late.
const SPIN_NS: u64 = 500_000;

/// Minimum time between two rounds of samples.
const SAMPLE_INTERVAL_MIN: Duration = Duration::from_millis(1);

/// How long a snapshot waits for running workers to publish their statistics.
const SNAPSHOT_WAIT: Duration = Duration::from_millis(200);

struct Coordinator<'w> {
    shared: Arc<RunState>,
    engines: &'w [RunnableEngine],
    watcher: &'w mut dyn Watcher,
    samplers: Vec<Sampler>,
    /// Reporting groups that have a rule.
    groups: Vec<Group>,
    /// All jobs, if the observer wants their combined bandwidth.
    aggregate: Option<Group<AggregateSampler>>,
    watchdog: Watchdog,
    has_started: bool,
    signal: Option<i32>,
    trigger: TriggerWatch,
    /// What went wrong with the command of the trigger.
    trigger_warning: Option<String>,
    next_look_ns: u64,
    next_sample_ns: u64,
    /// When the last snapshot was due, or the run began.
    last_snapshot_ns: u64,
    /// For the statistics and the progress that the watcher wants.
    statistics: PeriodicRequest,
    progress: PeriodicRequest,
}

/// Runs `plan` to its end on these engines. A worker that hangs in the kernel is abandoned; the state it may still
/// access stays allocated.
pub fn run(plan: &Arc<Plan>, engines: &[RunnableEngine], watcher: &mut dyn Watcher) -> RunResult {
    run_under(rules::groups(plan), plan, engines, watcher)
}

/// Runs `plan` under the rules of these groups.
pub(super) fn run_under(
    groups: Vec<Group>,
    plan: &Arc<Plan>,
    engines: &[RunnableEngine],
    watcher: &mut dyn Watcher,
) -> RunResult {
    // A run works without the handlers, but a signal then ends it without a report.
    let _ = signal::record_stop_requests();
    let mut shared = RunState::new(Arc::clone(plan));
    shared.log_sinks = plan.jobs.iter().map(|job| Mutex::new(watcher.log_sink(job))).collect();
    shared.debug = watcher.debug_log();
    shared.opener.states = watcher.states();
    shared.looks_at_caches = watcher.looks_at_caches();
    for job in &plan.jobs {
        if let Some(log) = shared.debug.as_ref().and_then(|debug| debug.of_job(job.number)) {
            log.seeds(job);
        }
    }
    let mut coordinator = Coordinator::new(shared, groups, engines, watcher);
    coordinator.lay_out();
    coordinator.run_stages();
    coordinator.finish()
}

/// The request for the progress of this many workers.
fn progress_of(count: usize) -> u32 {
    if count <= COPIES_MAX { request::PROGRESS | request::LATENCIES } else { request::PROGRESS }
}

impl<'w> Coordinator<'w> {
    fn new(
        shared: RunState,
        groups: Vec<Group>,
        engines: &'w [RunnableEngine],
        watcher: &'w mut dyn Watcher,
    ) -> Coordinator<'w> {
        let after = |period: Option<Duration>| {
            period.map_or(u64::MAX, |period| shared.started_ns.saturating_add(u64::capped(period.as_nanos())))
        };
        let count = shared.plan.jobs.len();
        Coordinator {
            next_look_ns: after(watcher.look_every()),
            next_sample_ns: after(watcher.sample_every()),
            last_snapshot_ns: shared.started_ns,
            statistics: PeriodicRequest::new(request::SNAPSHOT, u64::MAX),
            progress: PeriodicRequest::new(progress_of(count), after(watcher.progress_every())),
            samplers: vec![Sampler::default(); count],
            watchdog: Watchdog::new(count),
            groups,
            aggregate: None,
            has_started: false,
            signal: None,
            trigger_warning: None,
            trigger: TriggerWatch::new(shared.plan.trigger.as_ref()),
            shared: Arc::new(shared),
            engines,
            watcher,
        }
    }

    /// Lays out the files of all jobs with serial creation, on a thread that may hang.
    fn lay_out(&mut self) {
        let shared = Arc::clone(&self.shared);
        for job in &shared.plan.jobs {
            if let Some(unplannable) = &job.unplannable {
                self.fail(job, Failure::planning(unplannable));
            }
        }
        if !layout_thread::is_wanted(&shared.plan.jobs) {
            return;
        }
        let (sender, events) = channel::channel();
        let for_thread = Arc::clone(&shared);
        let started = spawn("layout", STACK_BYTES, move || {
            signal::leave_to_other_threads();
            // Otherwise one more reader would wait for a thread that hangs.
            let _ = thread::unshare_files();
            for_thread.live.iter().for_each(|live| live.set_thread_id(thread::id().cast_unsigned()));
            layout_thread::lay_out_all(&for_thread, &sender);
        });
        let mut current = None;
        match started {
            Ok(thread) => {
                if self.follow_layout(&events, &mut current)
                    && let Err(panicked) = thread.join()
                {
                    current = None;
                    let failure = Failure::other("lay out files", panicked.to_string());
                    shared.plan.jobs.iter().for_each(|job| self.fail(job, failure.clone()));
                }
            }
            Err(error) => {
                let failure = Failure::system("start a thread to lay out files", &error);
                shared.plan.jobs.iter().for_each(|job| self.fail(job, failure.clone()));
            }
        }
        if let Some(number) = current {
            let job = &shared.plan.jobs[number];
            let unmoved_ns = self.watchdog.unmoved_ns(number, clock::monotonic_ns());
            self.fail(job, watchdog::failure(&shared, job, unmoved_ns, self.signal));
        }
    }

    /// Reports the layout's progress to the watcher until it is done; `false` if it hangs. `current` is the job whose
    /// files are being laid out, and after a hang the job it hung on.
    fn follow_layout(
        &mut self,
        events: &channel::Receiver<LayoutEvent>,
        current: &mut Option<usize>,
    ) -> bool {
        loop {
            let event = events.recv_timeout(TICK);
            let now_ns = clock::monotonic_ns();
            match event {
                Ok(event) => {
                    self.watchdog.has_moved(now_ns);
                    self.on_layout_event(event, current);
                }
                Err(RecvTimeoutError::Disconnected) => return true,
                Err(RecvTimeoutError::Timeout) => {}
            }
            self.check_signals(now_ns);
            self.publish_snapshots(now_ns);
            let Some(number) = *current else { continue };
            if self.watchdog.is_hung(&self.shared, number, now_ns) {
                return false;
            }
        }
    }

    fn on_layout_event(&mut self, event: LayoutEvent, current: &mut Option<usize>) {
        let shared = Arc::clone(&self.shared);
        match event {
            LayoutEvent::Begins(number, task) => {
                *current = Some(number);
                self.watcher.laying_out(&shared.plan.jobs[number], task.files, task.bytes);
            }
            LayoutEvent::Wrote(bytes) => self.watcher.laid_out(bytes),
            LayoutEvent::Ended(number, result) => {
                *current = None;
                // A job that was requested to stop has not failed.
                if let Err(failure) = result
                    && !shared.live[number].is_stop_requested()
                {
                    self.fail(&shared.plan.jobs[number], failure);
                }
            }
        }
    }

    /// Records the failure of a worker that has no thread.
    fn fail(&self, job: &Job, failure: Failure) {
        let number = job.number as usize;
        self.shared.live[number].set_state(State::Failed);
        self.shared.put_report(failed(job, failure));
        self.shared.mark_ended(number);
    }

    /// Runs one stage after the other.
    fn run_stages(&mut self) {
        for (number, stage) in self.shared.stages.clone().into_iter().enumerate() {
            if self.signal.is_some() || self.trigger.has_fired() {
                break;
            }
            self.play(number, &stage);
        }
        self.run_trigger_command();
    }

    /// Runs the command of a trigger that has fired, once all workers have ended. A second signal kills it.
    fn run_trigger_command(&mut self) {
        let shared = Arc::clone(&self.shared);
        if shared.is_memory_map_held() {
            self.trigger_warning = self.trigger.leave_command(sealed_map::HELD);
            return;
        }
        let is_cancelled = || {
            if signal::is_stop_urgent() {
                shared.set_urgent();
            }
            shared.is_urgent()
        };
        self.trigger_warning = self.trigger.run_command(&is_cancelled);
    }

    /// Runs one stage: starts its workers, releases them together and supervises them until all have ended.
    fn play(&mut self, number: usize, stage: &Range<usize>) {
        let shared = Arc::clone(&self.shared);
        let jobs = &shared.plan.jobs[stage.clone()];
        if shared.is_memory_map_held() {
            let failure = Failure::other("start a thread", sealed_map::HELD);
            return jobs.iter().for_each(|job| self.fail(job, failure.clone()));
        }
        shared.begin_stage(stage.clone());
        let threads = self.start(jobs);
        self.print(DebugChannel::Mutex, format_args!("wait on startup_sem"));
        self.watch(stage, RunState::are_all_ready);
        self.print(DebugChannel::Mutex, format_args!("done waiting on startup_sem"));
        // The meters start once the time of the start is known, and not while the stage waits to be told it.
        self.hold(number, |gate| gate != Gate::Closed);
        self.notify_started();
        calibrate(jobs);
        let may_fault = jobs.iter().any(Job::touches_mapped_files);
        if may_fault {
            sealed_map::seal();
        }
        self.hold(number, |gate| gate == Gate::Open);
        shared.release_stage();
        let released_ns = clock::monotonic_ns();
        if number == 0 {
            // Snapshots of many hosts that start at one time come at one time.
            self.last_snapshot_ns = released_ns;
        }
        self.watcher.released(number, released_ns);
        self.watch(stage, RunState::have_all_ended);
        if shared.is_memory_map_held() {
            return;
        }
        if may_fault {
            sealed_map::unseal();
        }
        for (number, thread) in threads {
            // An abandoned worker is not joined.
            if !self.watchdog.has_abandoned(number) {
                let joined = thread.join();
                debug_assert!(joined.is_ok(), "a panic of a worker is caught, and is its job's failure");
                let pid = self.shared.live[number].thread_id();
                self.print(DebugChannel::Process, format_args!("pid={pid}: runstate EXITED -> REAPED"));
            }
        }
    }

    /// Waits until the watcher's gate of this stage is as far as that, the stage has ended, or a stop is requested.
    fn hold(&mut self, number: usize, is_enough: impl Fn(Gate) -> bool) {
        let shared = Arc::clone(&self.shared);
        let mut patience = Duration::ZERO;
        while self.signal.is_none() && !shared.have_all_ended() {
            let gate = self.watcher.gate(number, patience);
            let now_ns = clock::monotonic_ns();
            match gate {
                gate if is_enough(gate) => return,
                Gate::OpensAt(at_ns) if at_ns <= now_ns + SPIN_NS => {
                    while clock::monotonic_ns() < at_ns {
                        std::hint::spin_loop();
                    }
                    return;
                }
                Gate::OpensAt(at_ns) => patience = TICK.min(Duration::from_nanos(at_ns - now_ns - SPIN_NS)),
                Gate::Open | Gate::Closed => patience = TICK,
            }
            self.check_signals(now_ns);
        }
    }

    /// Prints a line of `--debug`.
    fn print(&self, channel: DebugChannel, text: std::fmt::Arguments<'_>) {
        if let Some(debug) = &self.shared.debug {
            debug.line(channel, text);
        }
    }

    /// Starts a worker for each of these jobs that has not failed already.
    fn start(&mut self, jobs: &[Job]) -> Vec<(usize, Thread)> {
        let mut threads = Vec::with_capacity(jobs.len());
        reserve::restock();
        let cpus = thread::affinity().map_or(1, |cpus| cpus.len());
        let is_oversubscribed = jobs.len() > OVERSUBSCRIBED_PER_CPU * cpus;
        for job in jobs {
            let number = job.number as usize;
            if self.shared.live[number].state() == State::Failed {
                continue;
            }
            if is_memory_short() {
                self.fail(job, Failure::short_of_memory("start a thread"));
                continue;
            }
            let Some(run_on) = engines::find(self.engines, &job.engine) else {
                self.fail(job, no_such_engine(job));
                continue;
            };
            if is_oversubscribed {
                self.shared.live[number].watch_signals();
            }
            self.print(DebugChannel::Process, format_args!("pid=0: runstate NOT_CREATED -> CREATED"));
            self.print(DebugChannel::Process, format_args!("will pthread_create"));
            let shared = Arc::clone(&self.shared);
            let name = shown::text(job.process.comm.as_ref().unwrap_or(&job.name));
            let named = job.engine.descriptor.names_targets();
            let stack_bytes = if named { STACK_BYTES_NAMED } else { STACK_BYTES };
            match spawn(&name, stack_bytes, move || work(&shared, number, run_on)) {
                Ok(thread) => threads.push((number, thread)),
                Err(error) => self.fail(job, not_spawned(&error)),
            }
        }
        threads
    }

    /// Called before the first workers are released.
    fn notify_started(&mut self) {
        if std::mem::replace(&mut self.has_started, true) {
            return;
        }
        self.watcher.starting();
        self.watcher.started();
        let interval = self.watcher.bandwidth_every();
        self.aggregate = interval.map(|every| {
            let rule = AggregateSampler::new(clock::monotonic_ns(), u64::capped(every.as_millis().max(1)));
            Group::new((0..self.shared.plan.jobs.len()).collect(), Box::new(rule))
        });
    }

    /// Supervises the workers of a stage until `until` holds.
    fn watch(&mut self, stage: &Range<usize>, until: impl Fn(&RunState) -> bool) {
        let shared = Arc::clone(&self.shared);
        let mut next_sample_ns = 0;
        loop {
            let seen = shared.stage_changed().current();
            if until(&shared) {
                return;
            }
            let now_ns = clock::monotonic_ns();
            let wake_ns = self.wake_ns(stage, now_ns, next_sample_ns);
            let left = Duration::from_nanos(wake_ns.saturating_sub(now_ns));
            shared.stage_changed().wait(seen, Some(left));
            let now_ns = clock::monotonic_ns();
            self.check_signals(now_ns);
            self.check_trigger(stage, now_ns);
            self.check_watchdog(stage, now_ns);
            if now_ns >= next_sample_ns || self.deadline_ns(stage).is_some_and(|at_ns| now_ns >= at_ns) {
                next_sample_ns = self.sample(stage, now_ns);
            }
            self.groups.iter_mut().for_each(|group| group.look(&shared, now_ns));
            self.notify_watcher(now_ns);
        }
    }

    /// On a termination signal, or a request of the watcher's, requests all workers to stop and notifies the watcher.
    fn check_signals(&mut self, now_ns: u64) {
        if self.signal.is_none()
            && let Some(number) = signal::stop_requested()
                .or_else(|| self.watcher.is_stop_requested().then_some(signal::TERMINATE))
        {
            self.signal = Some(number);
            self.shared.stop_all(now_ns);
            self.watcher.stop_requested(number);
        }
        if signal::is_stop_urgent() {
            self.shared.set_urgent();
        }
    }

    /// Requests all workers to stop when the trigger of the run fires: not before one of them has done an I/O, because a
    /// worker that has done nothing has no state to save.
    fn check_trigger(&mut self, stage: &Range<usize>, now_ns: u64) {
        let has_begun = |live: &Live| live.state().does_io() && live.completions() > 0;
        if !self.shared.live[stage.clone()].iter().any(has_begun) {
            return;
        }
        let elapsed_ns = now_ns.saturating_sub(self.shared.started_ns);
        if self.trigger.fires(elapsed_ns, self.watcher.is_trigger_requested(), &self.shared.opener) {
            self.shared.stop_for_trigger(now_ns);
        }
    }

    /// Wakes workers that should have ended, and abandons those that hang.
    fn check_watchdog(&mut self, stage: &Range<usize>, now_ns: u64) {
        let shared = Arc::clone(&self.shared);
        let Some(actions) = self.watchdog.look(&shared, stage, now_ns) else { return };
        for number in actions.to_wake {
            // If a stop was requested before, its reason is kept; otherwise the worker is past its run time.
            shared.live[number].request_stop(StopReason::Time);
            // Failure is harmless: the worker may have ended meanwhile.
            let _ = signal::wake(shared.live[number].thread_id().cast_signed());
        }
        if !actions.awaited.is_empty() {
            let jobs: Vec<&Job> = actions.awaited.iter().map(|number| &shared.plan.jobs[*number]).collect();
            self.watcher.waiting_for(&jobs);
        }
        for number in actions.to_abandon {
            self.abandon(&shared.plan.jobs[number]);
        }
    }

    /// Continues without a worker that hangs; its report holds what its live counters show.
    fn abandon(&mut self, job: &Job) {
        let number = job.number as usize;
        let shared = Arc::clone(&self.shared);
        let unmoved_ns = self.watchdog.unmoved_ns(number, clock::monotonic_ns());
        let failure = watchdog::failure(&shared, job, unmoved_ns, self.signal);
        let so_far = self.counted_so_far(job);
        let thread_id = shared.live[number].thread_id();
        // If it returns from the kernel it must not continue.
        shared.live[number].request_stop(StopReason::Other);
        if job.touches_mapped_files() {
            shared.hold_memory_map();
        }
        shared.live[number].set_state(State::Failed);
        let failure = Some(failure);
        shared.end_worker(job, WorkerReport { failure, reason: EndReason::Error, thread_id, ..so_far });
    }

    fn wake_ns(&self, stage: &Range<usize>, now_ns: u64, next_sample_ns: u64) -> u64 {
        let deadline_ns = self.deadline_ns(stage).unwrap_or(u64::MAX);
        let tick_ns = now_ns + u64::capped(TICK.as_nanos());
        let aggregate_ns = self.aggregate.as_ref().map_or(u64::MAX, Group::due_ns);
        let rules_ns = self.groups.iter().map(Group::due_ns).min().unwrap_or(u64::MAX);
        let watcher_ns =
            self.next_look_ns.min(self.next_sample_ns).min(self.next_snapshot_ns()).min(aggregate_ns);
        let watcher_ns = watcher_ns.min(self.statistics.due_ns(now_ns)).min(self.progress.due_ns(now_ns));
        tick_ns.min(next_sample_ns.max(now_ns)).min(deadline_ns).min(watcher_ns).min(rules_ns)
    }

    fn deadline_ns(&self, stage: &Range<usize>) -> Option<u64> {
        let of = |number: usize| {
            self.samplers[number].deadline_ns(&self.shared.plan.jobs[number], &self.shared.live[number])
        };
        stage.clone().filter_map(of).min()
    }

    /// Takes samples; returns when the next are due.
    fn sample(&mut self, stage: &Range<usize>, now_ns: u64) -> u64 {
        let mut due_ns = u64::MAX;
        for number in stage.clone() {
            let (job, live) = (&self.shared.plan.jobs[number], &self.shared.live[number]);
            if live.state().is_over() {
                continue;
            }
            let sampler = &mut self.samplers[number];
            if live.state().does_io() {
                sampler.look(job, live, now_ns);
            }
            due_ns = due_ns.min(sampler.due_ns(job, now_ns));
        }
        // Jobs become due at different times; those that are close together are sampled in one round.
        due_ns.max(now_ns + u64::capped(SAMPLE_INTERVAL_MIN.as_nanos()))
    }

    fn elapsed_ms(&self) -> u64 {
        clock::monotonic_ns().saturating_sub(self.shared.started_ns) / 1_000_000
    }

    /// Passes the watcher the combined window of all workers, if one is full or is `cut` short.
    fn publish_bandwidth(&mut self, now_ns: u64, cut: bool) {
        let Some(aggregate) = &mut self.aggregate else { return };
        if cut {
            let tick = aggregate.tick(&self.shared, now_ns);
            aggregate.rule.cut(&tick);
        } else {
            aggregate.look(&self.shared, now_ns);
        }
        if let Some(RateSample { at_ms, kib_per_s }) = aggregate.rule.take() {
            self.watcher.bandwidth(at_ms, kib_per_s);
        }
    }

    /// Makes the calls that are due to the watcher.
    fn notify_watcher(&mut self, now_ns: u64) {
        self.publish_bandwidth(now_ns, false);
        if now_ns >= self.next_look_ns
            && let Some(period) = self.watcher.look_every()
        {
            self.watcher.look(&progress::look(&self.shared));
            self.next_look_ns = now_ns.saturating_add(u64::capped(period.as_nanos()));
        }
        if now_ns >= self.next_sample_ns
            && let Some(period) = self.watcher.sample_every()
        {
            self.watcher.sample(&progress::look(&self.shared));
            self.next_sample_ns = now_ns.saturating_add(u64::capped(period.as_nanos()));
        }
        let progress_every = self.watcher.progress_every();
        if let Some(made_ns) = self.progress.look(&self.shared, progress_every, now_ns) {
            let published = PublishedProgress::new(&self.shared, made_ns);
            self.watcher.progressed(self.shared.released_for_ns(made_ns), &published);
        }
        let statistics_every = self.watcher.statistics_every();
        if self.statistics.look(&self.shared, statistics_every, now_ns).is_some() {
            let reports = self.reports_so_far();
            self.watcher.statistics(&reports);
        }
        self.publish_snapshots(now_ns);
    }

    /// Passes the watcher a snapshot of all workers, when one is due or SIGUSR1 requested it.
    fn publish_snapshots(&mut self, now_ns: u64) {
        let is_due = now_ns >= self.next_snapshot_ns();
        let is_requested = signal::take_status_request();
        if is_requested || is_due {
            let reports = self.snapshot();
            let left_s = progress::look(&self.shared).left_s();
            self.watcher.snapshot(reports, Moment { elapsed_ms: self.elapsed_ms(), left_s, is_requested });
        }
        if is_due {
            self.last_snapshot_ns = now_ns;
        }
    }

    /// When a snapshot is due: whoever is told may want them only from some time on.
    fn next_snapshot_ns(&self) -> u64 {
        let after = |period: Duration| self.last_snapshot_ns.saturating_add(u64::capped(period.as_nanos()));
        self.watcher.snapshot_every().map_or(u64::MAX, after)
    }

    /// The statistics of all workers so far.
    fn snapshot(&self) -> Vec<WorkerReport> {
        let requested: Vec<&Live> = self.shared.live.iter().filter(|live| live.state().does_io()).collect();
        requested.iter().for_each(|live| live.request(request::SNAPSHOT));
        let deadline_ns = clock::monotonic_ns() + u64::capped(SNAPSHOT_WAIT.as_nanos());
        while requested.iter().any(|live| live.owes_answers() && live.state().does_io())
            && clock::monotonic_ns() < deadline_ns
        {
            clock::sleep_until_ns(clock::monotonic_ns() + 200_000);
        }
        self.reports_so_far()
    }

    /// Reports of all jobs, of those that run with the statistics they published last.
    fn reports_so_far(&self) -> Vec<WorkerReport> {
        let of = |job: &Job| match self.shared.report_of(job.number as usize) {
            Some(report) => self.with_samples(report),
            None => self.so_far(job),
        };
        self.annotated(self.shared.plan.jobs.iter().map(of).collect())
    }

    /// Reports of all jobs, with what the rules of their groups have found.
    fn annotated(&self, mut reports: Vec<WorkerReport>) -> Vec<WorkerReport> {
        for (report, live) in reports.iter_mut().zip(&self.shared.live) {
            report.depth = Some(live.depth()).filter(|depth| *depth > 0);
        }
        self.groups.iter().for_each(|group| group.annotate(&mut reports));
        reports
    }

    fn so_far(&self, job: &Job) -> WorkerReport {
        let number = job.number as usize;
        let stats = self.shared.published[number].lock().stats.clone();
        self.timed_so_far(job, stats)
    }

    /// The same for a worker that does not respond: without a newer snapshot its I/Os are counted and not timed. The
    /// counts of a ramp are excluded.
    fn counted_so_far(&self, job: &Job) -> WorkerReport {
        let known = self.so_far(job);
        if job.limits.has_ramp() || known.stats.directions.iter().any(|direction| direction.ios > 0) {
            return known;
        }
        let counters = self.shared.live[job.number as usize].counters();
        let mut stats = known.stats;
        for (index, direction) in stats.directions.iter_mut().enumerate() {
            (direction.ios, direction.bytes) = (counters.ios[index], counters.bytes[index]);
        }
        self.timed_so_far(job, *stats)
    }

    /// A report of these statistics with the times they cover.
    fn timed_so_far(&self, job: &Job, stats: JobStats) -> WorkerReport {
        let mut report =
            WorkerReport { stats: Box::new(stats), reason: EndReason::Running, ..not_started(job) };
        let since_ns = self.shared.live[job.number as usize].measured_since_ns();
        if since_ns > 0 {
            report.elapsed_ms = clock::monotonic_ns().saturating_sub(since_ns) / 1_000_000;
            report.stats.usage.elapsed_ms = report.elapsed_ms;
            for direction in report.stats.directions.iter_mut().filter(|direction| direction.ios > 0) {
                direction.runtime_ms = report.elapsed_ms.max(1);
            }
            let now_ms = clock::read_ms(job.measure.start_clock_id);
            report.started_ms = now_ms.saturating_sub(report.elapsed_ms);
        }
        self.with_samples(report)
    }

    fn with_samples(&self, mut report: WorkerReport) -> WorkerReport {
        let sampler = &self.samplers[report.number as usize];
        for (index, direction) in report.stats.directions.iter_mut().enumerate() {
            direction.bandwidth = sampler.bandwidth[index];
            direction.iops = sampler.iops[index];
        }
        report
    }

    fn finish(mut self) -> RunResult {
        self.shared.timekeepers.stop();
        self.publish_bandwidth(clock::monotonic_ns(), true);
        for ((job, live), sampler) in
            self.shared.plan.jobs.iter().zip(&self.shared.live).zip(&mut self.samplers)
        {
            sampler.close(job, live);
        }
        let elapsed_ms = self.elapsed_ms();
        let jobs = &self.shared.plan.jobs;
        let of = |job: &Job| {
            let left = self.shared.take_report_of(job.number as usize);
            self.with_samples(left.unwrap_or_else(|| not_started(job)))
        };
        let mut workers = self.annotated(jobs.iter().map(of).collect());
        let in_a_group = jobs.iter().position(|job| job.process.control_group.is_some());
        if let Some(worker) = in_a_group.and_then(|number| workers.get_mut(number)) {
            let remark = |message| Remark::warning(ControlGroup::OPTION, message);
            worker.warnings.extend(self.shared.control_groups.remove().into_iter().map(remark));
        }
        RunResult { workers, signal: self.signal, trigger_warning: self.trigger_warning, elapsed_ms }
    }
}

/// The body of a worker's thread.
fn work(shared: &RunState, number: usize, run_on: RunOn) {
    signal::leave_to_other_threads();
    let job = &shared.plan.jobs[number];
    shared.end_worker(job, worker::run_job(shared, job, run_on));
}

/// The plan was made with an engine that this run does not have.
fn no_such_engine(job: &Job) -> Failure {
    let name = job.engine.name();
    Failure::other(&format!("set up engine {name}"), "it is not among the engines of this run")
}

fn not_spawned(error: &std::io::Error) -> Failure {
    let mut failure = Failure::system("start a thread", error);
    failure.explanation =
        "there may be no more threads or memory maps: see ulimit -u, pids.max of the control group, \
                           kernel.threads-max and vm.max_map_count; or run fewer jobs (numjobs)"
            .to_string();
    failure
}

/// Completes the calibration of the clock if any of these jobs uses it, so that no worker waits for it.
fn calibrate(jobs: &[Job]) {
    if jobs.iter().any(|job| matches!(job.measure.clock, ClockSource::Best | ClockSource::Counter)) {
        // If it fails, each worker falls back to another clock.
        let _ = CounterClock::shared();
    }
}
