//! A run: lays out files, starts workers stage by stage, watches over them, and gathers their reports.
//!
//! Invariant: every job of the plan gets a report, also one that was never started.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fiord_plan::{ClockSource, Job, PerDirection, Plan};
use fiord_stats::{JobLogs, JobStats};
use fiord_sys::clock::{self, TscClock};
use fiord_sys::signal;

use crate::failure::Failure;
use crate::layout;
use crate::life;
use crate::live::{State, Why, ask};
use crate::monitor::{Crowd, Sampler};
use crate::progress::{self, View};
use crate::scene::Scene;

/// Stack of a worker's thread: touched only as far as it is used.
const STACK_BYTES: usize = 256 * 1024;

/// How often signals are looked for.
const TICK: Duration = Duration::from_millis(50);

/// Least time between two rounds of samples.
const SAMPLES_APART: Duration = Duration::from_millis(1);

/// How long running workers are waited for when a snapshot is wanted.
const SNAPSHOT_WAIT: Duration = Duration::from_millis(200);

/// Why a worker ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndReason {
    /// It had done all it was asked for.
    Size,
    /// Its run time was over.
    Time,
    /// The device was full, as `fill_device` wants it.
    DeviceFull,
    /// Another worker's end concerned it.
    Others,
    /// SIGINT or SIGTERM.
    Signal,
    /// It could not go on.
    Error,
    /// It is still running (in a snapshot).
    Running,
    /// It was never started.
    NotStarted,
}

/// Something worth saying of an option, although nothing failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remark {
    /// The job option it is about.
    pub option: &'static str,
    /// What there is to say: a sentence without a final full stop.
    pub message: String,
}

/// What one worker leaves behind.
#[derive(Debug, Clone)]
pub struct WorkerReport {
    /// Number of its job in the plan.
    pub number: u32,
    /// What it measured.
    pub stats: Box<JobStats>,
    /// What it logged over time, once it has ended.
    pub logs: Option<Arc<JobLogs>>,
    /// Why it ended.
    pub reason: EndReason,
    /// What went wrong, if something did.
    pub failure: Option<Failure>,
    /// Errors that were passed over and are to be said (`error_dump`), a line each.
    pub passed_over: Vec<String>,
    /// What is worth saying although nothing went wrong.
    pub warnings: Vec<Remark>,
    /// Thread id.
    pub thread_id: u32,
    /// When its I/O began, in milliseconds since 1970.
    pub started_ms: u64,
    /// Life of the worker.
    pub elapsed_ms: u64,
}

/// A run's end.
#[derive(Debug)]
pub struct RunResult {
    /// One per job, in order.
    pub workers: Vec<WorkerReport>,
    /// The signal that ended it, if one did.
    pub signal: Option<i32>,
    /// How long it took, layout included.
    pub elapsed_ms: u64,
}

/// Who looks on while a run goes on. All calls come from the thread that called `run`.
pub trait Watcher {
    /// Files of a job are about to be laid out.
    fn laying_out(&mut self, job: &Job, files: usize, bytes: u64);
    /// That many more bytes were laid out.
    fn laid_out(&mut self, bytes: u64);
    /// All files are laid out, and the first workers are about to go. Not called when nobody goes.
    fn started(&mut self) {}
    /// How often `look` wants to be called, if at all.
    fn look_every(&self) -> Option<Duration>;
    /// A look at the run.
    fn look(&mut self, view: &View<'_>);
    /// How often `snapshot` wants to be called, if at all.
    fn snapshot_every(&self) -> Option<Duration>;
    /// What all workers have measured so far, `elapsed_ms` after the beginning; also when SIGUSR1 asks for it.
    fn snapshot(&mut self, reports: Vec<WorkerReport>, elapsed_ms: u64);
    /// A signal told all workers to stop.
    fn told_to_stop(&mut self, signal: i32) {
        let _ = signal;
    }
    /// How often `bandwidth` wants to be called, if at all.
    fn bandwidth_every(&self) -> Option<Duration> {
        None
    }
    /// KiB/s of all workers together in the interval that ended `at_ms` after `started`. The last one may be short.
    fn bandwidth(&mut self, at_ms: u64, kib_per_s: PerDirection<u64>) {
        let _ = (at_ms, kib_per_s);
    }
}

/// Runs `plan` to its end.
pub fn run(plan: &Plan, watcher: &mut dyn Watcher) -> RunResult {
    // Without its handlers a run still runs; a signal then ends it unreported.
    let _ = signal::record_stop_requests();
    let scene = Scene::new(plan);
    let mut director = Director::new(&scene, watcher);
    director.lay_out();
    for stage in scene.stages.clone() {
        if director.is_over() {
            break;
        }
        director.play(stage);
    }
    director.finish()
}

struct Director<'a, 'w> {
    scene: &'a Scene<'a>,
    watcher: &'w mut dyn Watcher,
    reports: Arc<Mutex<BTreeMap<u32, WorkerReport>>>,
    samplers: Vec<Sampler>,
    crowd: Option<Crowd>,
    has_started: bool,
    signal: Option<i32>,
    next_look_ns: u64,
    next_snapshot_ns: u64,
    no_more: bool,
}

impl<'a, 'w> Director<'a, 'w> {
    fn new(scene: &'a Scene<'a>, watcher: &'w mut dyn Watcher) -> Director<'a, 'w> {
        let after = |period: Option<Duration>| {
            period.map_or(u64::MAX, |period| scene.started_ns + period.as_nanos() as u64)
        };
        Director {
            next_look_ns: after(watcher.look_every()),
            next_snapshot_ns: after(watcher.snapshot_every()),
            samplers: vec![Sampler::default(); scene.plan.jobs.len()],
            reports: Arc::default(),
            crowd: None,
            has_started: false,
            signal: None,
            no_more: false,
            scene,
            watcher,
        }
    }

    fn is_over(&self) -> bool {
        self.signal.is_some() || self.no_more
    }

    fn report(&self, report: WorkerReport) {
        if let Ok(mut reports) = self.reports.lock() {
            reports.insert(report.number, report);
        }
    }

    /// Lays out the files of all jobs that want it done one after another.
    fn lay_out(&mut self) {
        for job in self.scene.plan.jobs.iter().filter(|job| job.files.create_serially) {
            let Some(task) = layout::task(job) else { continue };
            self.watcher.laying_out(job, task.files, task.bytes);
            let watcher = &mut *self.watcher;
            let laid_out = layout::lay_out(job, &mut |bytes| {
                watcher.laid_out(bytes);
                signal::stop_requested().is_none()
            });
            self.heed_signals();
            if self.is_over() {
                return;
            }
            if let Err(failure) = laid_out {
                self.report(WorkerReport {
                    failure: Some(failure),
                    reason: EndReason::Error,
                    ..not_started(job)
                });
                self.scene.lives[job.number as usize].set_state(State::Failed);
                self.scene.has_ended(job.number as usize);
            }
        }
    }

    /// Plays one stage: starts its workers, lets them go together, and watches until all have ended.
    fn play(&mut self, stage: std::ops::Range<usize>) {
        let scene = self.scene;
        scene.begin_stage(stage.clone());
        std::thread::scope(|threads| {
            for job in &scene.plan.jobs[stage.clone()] {
                if scene.lives[job.number as usize].state() == State::Failed {
                    continue;
                }
                let reports = Arc::clone(&self.reports);
                let builder =
                    std::thread::Builder::new().name(thread_name(&job.name)).stack_size(STACK_BYTES);
                let spawned = builder.spawn_scoped(threads, move || {
                    signal::leave_to_other_threads();
                    let report = life::live_through(scene, job);
                    end_of(scene, job, &report);
                    if let Ok(mut reports) = reports.lock() {
                        reports.insert(report.number, report);
                    }
                    scene.has_ended(job.number as usize);
                });
                if let Err(error) = spawned {
                    let failure = Failure::system("start a thread", &error);
                    self.report(WorkerReport {
                        failure: Some(failure),
                        reason: EndReason::Error,
                        ..not_started(job)
                    });
                    scene.has_ended(job.number as usize);
                }
            }
            self.watch(&stage, |board| board.unready == 0);
            self.start_looking();
            calibrate(&scene.plan.jobs[stage.clone()]);
            scene.let_go();
            self.watch(&stage, |board| board.unended == 0);
        });
    }

    /// The first workers are about to go.
    fn start_looking(&mut self) {
        if std::mem::replace(&mut self.has_started, true) {
            return;
        }
        self.watcher.started();
        let interval = self.watcher.bandwidth_every();
        self.crowd = interval.map(|every| Crowd::new(clock::monotonic_ns(), every.as_millis().max(1) as u64));
    }

    /// Looks after the workers of a stage until `until` holds.
    fn watch(&mut self, stage: &std::ops::Range<usize>, until: impl Fn(&crate::scene::Board) -> bool) {
        let mut next_sample_ns = 0;
        loop {
            let now_ns = clock::monotonic_ns();
            let board = self.scene.board();
            if until(&board) {
                return;
            }
            let wake_ns = self.wake_ns(stage, now_ns, next_sample_ns);
            self.scene.wait(board, Duration::from_nanos(wake_ns.saturating_sub(now_ns)));
            let now_ns = clock::monotonic_ns();
            self.heed_signals();
            if now_ns >= next_sample_ns || self.deadline_ns(stage).is_some_and(|at_ns| now_ns >= at_ns) {
                next_sample_ns = self.sample(stage, now_ns);
            }
            self.tell(now_ns);
        }
    }

    /// Tells all workers to stop when a signal asks for that, and the watcher.
    fn heed_signals(&mut self) {
        if self.signal.is_none()
            && let Some(number) = signal::stop_requested()
        {
            self.signal = Some(number);
            self.scene.stop_all(Why::Signal);
            self.watcher.told_to_stop(number);
        }
    }

    fn wake_ns(&self, stage: &std::ops::Range<usize>, now_ns: u64, next_sample_ns: u64) -> u64 {
        let deadline_ns = self.deadline_ns(stage).unwrap_or(u64::MAX);
        let tick_ns = now_ns + TICK.as_nanos() as u64;
        let crowd_ns = self.crowd.as_ref().map_or(u64::MAX, Crowd::due_ns);
        let told_ns = self.next_look_ns.min(self.next_snapshot_ns).min(crowd_ns);
        tick_ns.min(next_sample_ns.max(now_ns)).min(deadline_ns).min(told_ns)
    }

    fn deadline_ns(&self, stage: &std::ops::Range<usize>) -> Option<u64> {
        let of = |number: usize| {
            self.samplers[number].deadline_ns(&self.scene.plan.jobs[number], &self.scene.lives[number])
        };
        stage.clone().filter_map(of).min()
    }

    /// Takes samples; returns when the next are due.
    fn sample(&mut self, stage: &std::ops::Range<usize>, now_ns: u64) -> u64 {
        let mut due_ns = u64::MAX;
        for number in stage.clone() {
            let (job, live) = (&self.scene.plan.jobs[number], &self.scene.lives[number]);
            if live.state().is_over() {
                continue;
            }
            let sampler = &mut self.samplers[number];
            if matches!(live.state(), State::Running | State::Ramping) {
                sampler.look(job, live, now_ns);
            }
            due_ns = due_ns.min(sampler.due_ns(job, now_ns));
        }
        // Many jobs are due at many moments: those that are close together are taken together.
        due_ns.max(now_ns + SAMPLES_APART.as_nanos() as u64)
    }

    fn elapsed_ms(&self) -> u64 {
        clock::monotonic_ns().saturating_sub(self.scene.started_ns) / 1_000_000
    }

    /// Tells the watcher of an interval of all workers together, if one is full, or `cut` short.
    fn tell_bandwidth(&mut self, now_ns: u64, cut: bool) {
        let Some(crowd) = &mut self.crowd else { return };
        if let Some((at_ms, kib_per_s)) = crowd.look(&self.scene.lives, now_ns, cut) {
            self.watcher.bandwidth(at_ms, kib_per_s);
        }
    }

    /// Lets the watcher look.
    fn tell(&mut self, now_ns: u64) {
        self.tell_bandwidth(now_ns, false);
        if now_ns >= self.next_look_ns
            && let Some(period) = self.watcher.look_every()
        {
            self.watcher.look(&progress::look(self.scene));
            self.next_look_ns = now_ns + period.as_nanos() as u64;
        }
        let is_due = now_ns >= self.next_snapshot_ns;
        if signal::take_status_request() || is_due {
            let reports = self.snapshot();
            self.watcher.snapshot(reports, self.elapsed_ms());
        }
        if is_due && let Some(period) = self.watcher.snapshot_every() {
            self.next_snapshot_ns = now_ns + period.as_nanos() as u64;
        }
    }

    /// What everybody has measured so far.
    fn snapshot(&self) -> Vec<WorkerReport> {
        let lives = &self.scene.lives;
        let running = |number: &usize| matches!(lives[*number].state(), State::Running | State::Ramping);
        let asked: Vec<usize> = (0..lives.len()).filter(running).collect();
        asked.iter().for_each(|number| lives[*number].ask(ask::SNAPSHOT));
        let deadline_ns = clock::monotonic_ns() + SNAPSHOT_WAIT.as_nanos() as u64;
        while asked.iter().any(|number| lives[*number].is_asked() && running(number))
            && clock::monotonic_ns() < deadline_ns
        {
            clock::sleep_until_ns(clock::monotonic_ns() + 200_000);
        }
        let Ok(ended) = self.reports.lock() else { return Vec::new() };
        let of = |job: &Job| match ended.get(&job.number) {
            Some(report) => self.with_samples(report.clone()),
            None => self.so_far(job),
        };
        self.scene.plan.jobs.iter().map(of).collect()
    }

    fn so_far(&self, job: &Job) -> WorkerReport {
        let number = job.number as usize;
        let stats = self.scene.snapshots[number].lock().map(|stats| stats.clone()).unwrap_or_default();
        let mut report =
            WorkerReport { stats: Box::new(stats), reason: EndReason::Running, ..not_started(job) };
        let since_ns = self.scene.lives[number].measured_since_ns();
        if since_ns > 0 {
            report.elapsed_ms = clock::monotonic_ns().saturating_sub(since_ns) / 1_000_000;
            report.stats.usage.elapsed_ms = report.elapsed_ms;
            for direction in report.stats.directions.iter_mut().filter(|direction| direction.ios > 0) {
                direction.runtime_ms = report.elapsed_ms.max(1);
            }
            report.started_ms = clock::realtime_ms().saturating_sub(report.elapsed_ms);
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
        self.tell_bandwidth(clock::monotonic_ns(), true);
        for ((job, live), sampler) in
            self.scene.plan.jobs.iter().zip(&self.scene.lives).zip(&mut self.samplers)
        {
            sampler.close(job, live);
        }
        let elapsed_ms = self.elapsed_ms();
        let mut ended =
            self.reports.lock().map(|mut reports| std::mem::take(&mut *reports)).unwrap_or_default();
        let jobs = &self.scene.plan.jobs;
        let of = |job: &Job| self.with_samples(ended.remove(&job.number).unwrap_or_else(|| not_started(job)));
        RunResult { workers: jobs.iter().map(of).collect(), signal: self.signal, elapsed_ms }
    }
}

/// Ends the calibration of the clock, if any of these will ask for it: not one of them then waits for it.
fn calibrate(jobs: &[Job]) {
    if jobs.iter().any(|job| matches!(job.measure.clock, ClockSource::Best | ClockSource::Tsc)) {
        // Where it is refused, each worker takes another clock.
        let _ = TscClock::shared();
    }
}

/// What the end of a worker means for the others.
fn end_of(scene: &Scene<'_>, job: &Job, report: &WorkerReport) {
    let failed = report.failure.is_some();
    if job.schedule.exit_all || (failed && job.schedule.exit_all_on_error) {
        scene.stop_others(job, Why::Other);
    }
}

fn not_started(job: &Job) -> WorkerReport {
    WorkerReport {
        number: job.number,
        stats: Box::default(),
        logs: None,
        reason: EndReason::NotStarted,
        failure: None,
        passed_over: Vec::new(),
        warnings: Vec::new(),
        thread_id: std::process::id(),
        started_ms: clock::realtime_ms(),
        elapsed_ms: 0,
    }
}

/// The kernel keeps 15 bytes.
fn thread_name(name: &str) -> String {
    name.chars().filter(|letter| *letter != '\0').take(15).collect()
}
