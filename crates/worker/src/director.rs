//! Who plays a run: has files laid out, starts workers stage by stage, watches over them, and gathers their reports.
//!
//! Invariant: never waits for what a worker waits for. Files are touched by other threads alone, and whoever does not
//! come back from the kernel is given up after a while, by name.

use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use fiord_plan::{ClockSource, Job};
use fiord_stats::JobStats;
use fiord_sys::clock::{self, TscClock};
use fiord_sys::reserve;
use fiord_sys::signal;
use fiord_sys::spawn::{Thread, spawn};
use fiord_sys::thread;

use crate::failure::Failure;
use crate::layout::{self, News};
use crate::life;
use crate::live::{State, Why, ask};
use crate::monitor::{Crowd, Sampler};
use crate::patience::{self, Patience};
use crate::progress;
use crate::run::{EndReason, Moment, RunResult, Watcher, WorkerReport, failed, not_started};
use crate::scene::Scene;

/// Stack of a worker's thread: touched only as far as it is used.
const STACK_BYTES: usize = 256 * 1024;

/// From so many workers a processor on they listen for signals themselves: among thousands that want a processor it may
/// be seconds until the director has its turn.
const CROWD_PER_CPU: usize = 16;

/// How often signals are looked for.
const TICK: Duration = Duration::from_millis(50);

/// Least time between two rounds of samples.
const SAMPLES_APART: Duration = Duration::from_millis(1);

/// How long running workers are waited for when a snapshot is wanted.
const SNAPSHOT_WAIT: Duration = Duration::from_millis(200);

pub(crate) struct Director<'w> {
    scene: Arc<Scene>,
    watcher: &'w mut dyn Watcher,
    samplers: Vec<Sampler>,
    crowd: Option<Crowd>,
    patience: Patience,
    has_started: bool,
    signal: Option<i32>,
    next_look_ns: u64,
    next_snapshot_ns: u64,
}

impl<'w> Director<'w> {
    pub(crate) fn new(scene: Scene, watcher: &'w mut dyn Watcher) -> Director<'w> {
        let after = |period: Option<Duration>| {
            period.map_or(u64::MAX, |period| scene.started_ns + period.as_nanos() as u64)
        };
        let count = scene.plan.jobs.len();
        Director {
            next_look_ns: after(watcher.look_every()),
            next_snapshot_ns: after(watcher.snapshot_every()),
            samplers: vec![Sampler::default(); count],
            patience: Patience::new(count),
            crowd: None,
            has_started: false,
            signal: None,
            scene: Arc::new(scene),
            watcher,
        }
    }

    /// Lays out the files of all jobs that want it done one after another, on a thread that may hang.
    pub(crate) fn lay_out(&mut self) {
        let scene = Arc::clone(&self.scene);
        for job in &scene.plan.jobs {
            if let Some(unplannable) = &job.unplannable {
                self.fail(job, Failure::planning(unplannable));
            }
        }
        if !layout::is_wanted(&scene.plan.jobs) {
            return;
        }
        let (tell, news) = mpsc::channel();
        let for_thread = Arc::clone(&scene);
        let started = spawn("layout", STACK_BYTES, move || {
            signal::leave_to_other_threads();
            // Without it there is one reader more who waits for a thread that hangs.
            let _ = thread::unshare_files();
            for_thread.lives.iter().for_each(|live| live.set_thread_id(thread::id() as u32));
            layout::lay_out_all(&for_thread, &tell);
        });
        let mut current = None;
        match started {
            Ok(thread) => {
                if self.follow_layout(&news, &mut current) {
                    thread.join();
                }
            }
            Err(error) => {
                let failure = Failure::system("start a thread to lay out files", &error);
                scene.plan.jobs.iter().for_each(|job| self.fail(job, failure.clone()));
            }
        }
        if let Some(number) = current {
            let job = &scene.plan.jobs[number];
            let unmoved_ns = self.patience.unmoved_ns(number, clock::monotonic_ns());
            self.fail(job, patience::failure(&scene, job, unmoved_ns, self.signal));
        }
    }

    /// Tells the watcher of the layout until it is over, or hangs: then the answer is `false`. `current` is whose files
    /// are being laid out, and in the end who did not get them.
    fn follow_layout(&mut self, news: &mpsc::Receiver<News>, current: &mut Option<usize>) -> bool {
        loop {
            let heard = news.recv_timeout(TICK);
            let now_ns = clock::monotonic_ns();
            match heard {
                Ok(heard) => {
                    self.patience.has_moved(now_ns);
                    self.hear(heard, current);
                }
                Err(RecvTimeoutError::Disconnected) => return true,
                Err(RecvTimeoutError::Timeout) => {}
            }
            self.heed_signals(now_ns);
            self.tell_status(now_ns);
            let Some(number) = *current else { continue };
            if self.patience.is_over(&self.scene, number, now_ns) {
                return false;
            }
        }
    }

    fn hear(&mut self, news: News, current: &mut Option<usize>) {
        let scene = Arc::clone(&self.scene);
        match news {
            News::Begins(number, task) => {
                *current = Some(number);
                self.watcher.laying_out(&scene.plan.jobs[number], task.files, task.bytes);
            }
            News::Wrote(bytes) => self.watcher.laid_out(bytes),
            News::Ended(number, result) => {
                *current = None;
                // One that was told to stop has not failed.
                if let Err(failure) = result
                    && !scene.lives[number].is_told_to_stop()
                {
                    self.fail(&scene.plan.jobs[number], failure);
                }
            }
        }
    }

    /// A worker has failed that has no thread.
    fn fail(&self, job: &Job, failure: Failure) {
        let number = job.number as usize;
        self.scene.lives[number].set_state(State::Failed);
        self.scene.hand_in(failed(job, failure));
        self.scene.has_ended(number);
    }

    /// Plays one stage after the other.
    pub(crate) fn play_all(&mut self) {
        for stage in self.scene.stages.clone() {
            if self.signal.is_some() {
                return;
            }
            self.play(&stage);
        }
    }

    /// Plays one stage: starts its workers, lets them go together, and watches until all have ended.
    fn play(&mut self, stage: &Range<usize>) {
        let scene = Arc::clone(&self.scene);
        let jobs = &scene.plan.jobs[stage.clone()];
        scene.begin_stage(stage.clone());
        let threads = self.start(jobs);
        self.watch(stage, Scene::are_all_ready);
        self.start_looking();
        calibrate(jobs);
        scene.let_go();
        self.watch(stage, Scene::have_all_ended);
        for (number, thread) in threads {
            // One that was given up goes its own way.
            if !self.patience.has_given_up(number) {
                thread.join();
            }
        }
    }

    /// Starts a worker for each of these that has not failed already.
    fn start(&mut self, jobs: &[Job]) -> Vec<(usize, Thread)> {
        let mut threads = Vec::with_capacity(jobs.len());
        reserve::restock();
        let cpus = thread::affinity().map_or(1, |cpus| cpus.len());
        let is_crowd = jobs.len() > CROWD_PER_CPU * cpus;
        for job in jobs {
            let number = job.number as usize;
            if self.scene.lives[number].state() == State::Failed {
                continue;
            }
            if is_memory_short() {
                self.fail(job, Failure::short_of_memory("start a thread"));
                continue;
            }
            if is_crowd {
                self.scene.lives[number].ask_to_listen();
            }
            let scene = Arc::clone(&self.scene);
            match spawn(&job.name, STACK_BYTES, move || work(&scene, number)) {
                Ok(thread) => threads.push((number, thread)),
                Err(error) => self.fail(job, not_spawned(&error)),
            }
        }
        threads
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
    fn watch(&mut self, stage: &Range<usize>, until: impl Fn(&Scene) -> bool) {
        let scene = Arc::clone(&self.scene);
        let mut next_sample_ns = 0;
        loop {
            let rung = scene.stage_changed().rung();
            if until(&scene) {
                return;
            }
            let now_ns = clock::monotonic_ns();
            let wake_ns = self.wake_ns(stage, now_ns, next_sample_ns);
            let left = Duration::from_nanos(wake_ns.saturating_sub(now_ns));
            scene.stage_changed().wait(rung, Some(left));
            let now_ns = clock::monotonic_ns();
            self.heed_signals(now_ns);
            self.look_after(stage, now_ns);
            if now_ns >= next_sample_ns || self.deadline_ns(stage).is_some_and(|at_ns| now_ns >= at_ns) {
                next_sample_ns = self.sample(stage, now_ns);
            }
            self.tell(now_ns);
        }
    }

    /// Tells all workers to stop when a signal asks for that, and the watcher.
    fn heed_signals(&mut self, now_ns: u64) {
        if self.signal.is_none()
            && let Some(number) = signal::stop_requested()
        {
            self.signal = Some(number);
            self.scene.stop_all(now_ns);
            self.watcher.told_to_stop(number);
        }
        if signal::is_stop_urgent() {
            self.scene.hurry();
        }
    }

    /// Wakes workers that should have ended, and gives up those that do not.
    fn look_after(&mut self, stage: &Range<usize>, now_ns: u64) {
        let scene = Arc::clone(&self.scene);
        let Some(looked) = self.patience.look(&scene, stage, now_ns) else { return };
        for number in looked.to_wake {
            // Who has been told has a reason already; who has not sees no clock where it is.
            scene.lives[number].ask_to_stop(Why::Time);
            // One that has ended meanwhile needs no waking.
            let _ = signal::wake(scene.lives[number].thread_id() as i32);
        }
        if !looked.awaited.is_empty() {
            let jobs: Vec<&Job> = looked.awaited.iter().map(|number| &scene.plan.jobs[*number]).collect();
            self.watcher.waiting_for(&jobs);
        }
        for number in looked.to_give_up {
            self.give_up(&scene.plan.jobs[number]);
        }
    }

    /// Goes on without a worker that hangs: what is known of it is its report.
    fn give_up(&mut self, job: &Job) {
        let number = job.number as usize;
        let scene = Arc::clone(&self.scene);
        let unmoved_ns = self.patience.unmoved_ns(number, clock::monotonic_ns());
        let failure = patience::failure(&scene, job, unmoved_ns, self.signal);
        let so_far = self.counted_so_far(job);
        let thread_id = scene.lives[number].thread_id();
        // Should it come back, it is to do no more.
        scene.lives[number].ask_to_stop(Why::Other);
        scene.hand_in(WorkerReport { failure: Some(failure), reason: EndReason::Error, thread_id, ..so_far });
        scene.lives[number].set_state(State::Failed);
        scene.stop_those_concerned(job, true);
        scene.has_ended(number);
    }

    fn wake_ns(&self, stage: &Range<usize>, now_ns: u64, next_sample_ns: u64) -> u64 {
        let deadline_ns = self.deadline_ns(stage).unwrap_or(u64::MAX);
        let tick_ns = now_ns + TICK.as_nanos() as u64;
        let crowd_ns = self.crowd.as_ref().map_or(u64::MAX, Crowd::due_ns);
        let told_ns = self.next_look_ns.min(self.next_snapshot_ns).min(crowd_ns);
        tick_ns.min(next_sample_ns.max(now_ns)).min(deadline_ns).min(told_ns)
    }

    fn deadline_ns(&self, stage: &Range<usize>) -> Option<u64> {
        let of = |number: usize| {
            self.samplers[number].deadline_ns(&self.scene.plan.jobs[number], &self.scene.lives[number])
        };
        stage.clone().filter_map(of).min()
    }

    /// Takes samples; returns when the next are due.
    fn sample(&mut self, stage: &Range<usize>, now_ns: u64) -> u64 {
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
            self.watcher.look(&progress::look(&self.scene));
            self.next_look_ns = now_ns + period.as_nanos() as u64;
        }
        self.tell_status(now_ns);
    }

    /// Shows the watcher what everybody has measured, when that is due or asked for.
    fn tell_status(&mut self, now_ns: u64) {
        let is_due = now_ns >= self.next_snapshot_ns;
        if signal::take_status_request() || is_due {
            let reports = self.snapshot();
            let left_s = progress::look(&self.scene).left_s();
            self.watcher.snapshot(reports, Moment { elapsed_ms: self.elapsed_ms(), left_s });
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
        let of = |job: &Job| match self.scene.report_of(job.number as usize) {
            Some(report) => self.with_samples(report),
            None => self.so_far(job),
        };
        self.scene.plan.jobs.iter().map(of).collect()
    }

    fn so_far(&self, job: &Job) -> WorkerReport {
        let number = job.number as usize;
        let stats = self.scene.snapshots[number].lock().map(|stats| stats.clone()).unwrap_or_default();
        self.timed_so_far(job, stats)
    }

    /// The same of a worker that cannot be asked: where nothing better is known, its I/Os are counted and not timed. A
    /// ramp leaves counts behind that are none of the run.
    fn counted_so_far(&self, job: &Job) -> WorkerReport {
        let known = self.so_far(job);
        let has_ramped = job.limits.ramp_ns > 0 || job.limits.ramp_bytes > 0;
        if has_ramped || known.stats.directions.iter().any(|direction| direction.ios > 0) {
            return known;
        }
        let counters = self.scene.lives[job.number as usize].counters();
        let mut stats = known.stats;
        for (index, direction) in stats.directions.iter_mut().enumerate() {
            (direction.ios, direction.bytes) = (counters.ios[index], counters.bytes[index]);
        }
        self.timed_so_far(job, *stats)
    }

    /// With the times that go with these figures.
    fn timed_so_far(&self, job: &Job, stats: JobStats) -> WorkerReport {
        let mut report =
            WorkerReport { stats: Box::new(stats), reason: EndReason::Running, ..not_started(job) };
        let since_ns = self.scene.lives[job.number as usize].measured_since_ns();
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

    pub(crate) fn finish(mut self) -> RunResult {
        self.tell_bandwidth(clock::monotonic_ns(), true);
        for ((job, live), sampler) in
            self.scene.plan.jobs.iter().zip(&self.scene.lives).zip(&mut self.samplers)
        {
            sampler.close(job, live);
        }
        let elapsed_ms = self.elapsed_ms();
        let jobs = &self.scene.plan.jobs;
        let of = |job: &Job| {
            let left = self.scene.take_report_of(job.number as usize);
            self.with_samples(left.unwrap_or_else(|| not_started(job)))
        };
        RunResult { workers: jobs.iter().map(of).collect(), signal: self.signal, elapsed_ms }
    }
}

/// What a worker's thread does.
fn work(scene: &Scene, number: usize) {
    signal::leave_to_other_threads();
    let job = &scene.plan.jobs[number];
    let report = life::live_through(scene, job);
    scene.stop_those_concerned(job, report.failure.is_some());
    scene.hand_in(report);
    scene.has_ended(number);
}

/// Whether memory is short, and none is to be had to make up for what was taken from the reserve.
pub(crate) fn is_memory_short() -> bool {
    reserve::is_short() && !reserve::restock()
}

fn not_spawned(error: &std::io::Error) -> Failure {
    let mut failure = Failure::system("start a thread", error);
    failure.explanation =
        "there may be no more threads or memory maps: see ulimit -u, pids.max of the control group, \
                           kernel.threads-max and vm.max_map_count; or run fewer jobs (numjobs)"
            .to_string();
    failure
}

/// Ends the calibration of the clock, if any of these will ask for it: not one of them then waits for it.
fn calibrate(jobs: &[Job]) {
    if jobs.iter().any(|job| matches!(job.measure.clock, ClockSource::Best | ClockSource::Tsc)) {
        // Where it is refused, each worker takes another clock.
        let _ = TscClock::shared();
    }
}
