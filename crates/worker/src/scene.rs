//! What the workers of a run and its monitor share: who is where, and who waits for whom.
//!
//! Invariant: nothing that is shared is locked by more than one worker; every change that anybody waits for rings a
//! bell afterwards, and so does every request to stop.

use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fiord_plan::{ExitWhat, Job, Plan};
use fiord_stats::JobStats;
use fiord_sys::clock;
use fiord_sys::futex::Bell;

use crate::door::Door;
use crate::live::{Live, Why};
use crate::run::WorkerReport;

/// What there is of a worker's report.
#[derive(Debug, Default)]
enum Left {
    /// Nothing yet.
    #[default]
    Nothing,
    /// All of it.
    Report(Box<WorkerReport>),
    /// It was taken away; what comes now comes too late.
    Taken,
}

/// Workers still missing from a stage.
#[derive(Debug, Default)]
struct Missing(AtomicUsize);

impl Missing {
    fn set(&self, count: usize) {
        self.0.store(count, SeqCst);
    }

    fn is_none(&self) -> bool {
        self.0.load(SeqCst) == 0
    }

    /// Counts one off; `true`: that was the last. Nothing is missing before the first stage is played.
    fn is_last(&self) -> bool {
        self.0.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1)) == Ok(1)
    }
}

/// A run in progress. Owned by all who take part: a worker that hangs in the kernel keeps what it may still touch, also
/// after the run has gone on without it.
///
/// Ten thousand workers wait here at once, so nobody is woken who has nothing to do (the director is told when a whole
/// stage is ready or has ended, those at the barrier when a stage is let go, those behind `wait_for` of each end), and
/// nothing here is a lock for which they would queue, each for as long as it takes the one before to get a processor.
pub(crate) struct Scene {
    pub plan: Arc<Plan>,
    /// Workers that start together: ranges of job numbers, cut at the stonewalls.
    pub stages: Vec<std::ops::Range<usize>>,
    pub lives: Vec<Live>,
    pub snapshots: Vec<Mutex<JobStats>>,
    /// Where files are opened.
    pub door: Door,
    pub started_ns: u64,
    /// What ended workers have left.
    reports: Vec<Mutex<Left>>,
    /// When a signal told all to stop; 0 before.
    told_ns: AtomicU64,
    /// Whether a signal came again since.
    is_urgent: AtomicBool,
    /// When the first stage was let go; 0 before.
    going_since_ns: AtomicU64,
    /// Workers behind the barrier, or past the need for it.
    ready: Vec<AtomicBool>,
    /// Workers that have ended.
    ended: Vec<AtomicBool>,
    /// Workers of the stage being played that are not ready yet.
    unready: Missing,
    /// Workers of the stage being played that have not ended yet.
    unended: Missing,
    /// How many stages have been let go.
    stages_started: AtomicUsize,
    /// Rung when all of a stage are ready, and when all have ended.
    stage_changed: Bell,
    /// Rung when a stage is let go, and when anybody is told to stop.
    let_go: Bell,
    /// Rung when a worker has ended that others wait for, and when anybody is told to stop.
    one_ended: Bell,
    /// Workers that wait for others.
    waiting_for_ends: AtomicUsize,
}

impl Scene {
    pub(crate) fn new(plan: Arc<Plan>) -> Scene {
        let count = plan.jobs.len();
        let flags = || (0..count).map(|_| AtomicBool::new(false)).collect();
        Scene {
            door: Door::of(&plan),
            stages: stages(&plan),
            plan,
            lives: (0..count).map(|_| Live::default()).collect(),
            snapshots: (0..count).map(|_| Mutex::default()).collect(),
            started_ns: clock::monotonic_ns(),
            reports: (0..count).map(|_| Mutex::default()).collect(),
            told_ns: AtomicU64::new(0),
            is_urgent: AtomicBool::new(false),
            going_since_ns: AtomicU64::new(0),
            ready: flags(),
            ended: flags(),
            unready: Missing::default(),
            unended: Missing::default(),
            stages_started: AtomicUsize::new(0),
            stage_changed: Bell::default(),
            let_go: Bell::default(),
            one_ended: Bell::default(),
            waiting_for_ends: AtomicUsize::new(0),
        }
    }

    fn left_by(&self, number: usize) -> MutexGuard<'_, Left> {
        self.reports[number].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes what a worker leaves, unless it was reported on already: it comes back after it was given up.
    pub(crate) fn hand_in(&self, report: WorkerReport) {
        let mut left = self.left_by(report.number as usize);
        if matches!(*left, Left::Nothing) {
            *left = Left::Report(Box::new(report));
        }
    }

    /// A copy of what this worker has left, if it has ended.
    pub(crate) fn report_of(&self, number: usize) -> Option<WorkerReport> {
        match &*self.left_by(number) {
            Left::Report(report) => Some(WorkerReport::clone(report)),
            Left::Nothing | Left::Taken => None,
        }
    }

    /// What this worker has left, once; nothing is taken in its place afterwards.
    pub(crate) fn take_report_of(&self, number: usize) -> Option<WorkerReport> {
        match std::mem::replace(&mut *self.left_by(number), Left::Taken) {
            Left::Report(report) => Some(*report),
            Left::Nothing | Left::Taken => None,
        }
    }

    /// A stage is about to be played: from now on its workers are counted.
    pub(crate) fn begin_stage(&self, stage: std::ops::Range<usize>) {
        self.door.forget();
        let count = |flags: &[AtomicBool]| flags.iter().filter(|flag| !flag.load(SeqCst)).count();
        self.unready.set(count(&self.ready[stage.clone()]));
        self.unended.set(count(&self.ended[stage]));
    }

    /// The workers of the stage being played may go.
    pub(crate) fn let_go(&self) {
        let _ = self.going_since_ns.compare_exchange(0, clock::monotonic_ns(), Relaxed, Relaxed);
        self.stages_started.fetch_add(1, SeqCst);
        self.let_go.ring();
    }

    /// How long it is since the first workers went; 0 before.
    pub(crate) fn going_for_ns(&self, now_ns: u64) -> u64 {
        match self.going_since_ns.load(Relaxed) {
            0 => 0,
            since_ns => now_ns.saturating_sub(since_ns),
        }
    }

    /// A worker no longer holds the others up.
    pub(crate) fn is_ready(&self, number: usize) {
        if !self.ready[number].swap(true, SeqCst) && self.unready.is_last() {
            self.stage_changed.ring();
        }
    }

    /// A worker has ended.
    pub(crate) fn has_ended(&self, number: usize) {
        self.is_ready(number);
        if self.ended[number].swap(true, SeqCst) {
            return;
        }
        if self.unended.is_last() {
            self.stage_changed.ring();
        }
        if self.waiting_for_ends.load(SeqCst) > 0 {
            self.one_ended.ring();
        }
    }

    /// Whether this worker has ended.
    pub(crate) fn has_one_ended(&self, number: usize) -> bool {
        self.ended[number].load(SeqCst)
    }

    /// Whether all workers of the stage being played are ready, or past the need to be.
    pub(crate) fn are_all_ready(&self) -> bool {
        self.unready.is_none()
    }

    /// Whether all workers of the stage being played have ended.
    pub(crate) fn have_all_ended(&self) -> bool {
        self.unended.is_none()
    }

    /// What tells the director that the stage has changed.
    pub(crate) fn stage_changed(&self) -> &Bell {
        &self.stage_changed
    }

    /// Blocks a worker until stage number `stage` is let go; `false` when it was told to stop meanwhile.
    pub(crate) fn wait_for_stage(&self, live: &Live, stage: usize) -> bool {
        wait_until(&self.let_go, live, || self.stages_started.load(SeqCst) > stage)
    }

    /// Blocks a worker until all these have ended; `false` when it was told to stop meanwhile.
    pub(crate) fn wait_for_workers(&self, live: &Live, workers: &[usize]) -> bool {
        self.waiting_for_ends.fetch_add(1, SeqCst);
        let waited =
            wait_until(&self.one_ended, live, || workers.iter().all(|number| self.has_one_ended(*number)));
        self.waiting_for_ends.fetch_sub(1, SeqCst);
        waited
    }

    /// Blocks a worker until `deadline_ns`; `false` when it was told to stop meanwhile.
    pub(crate) fn wait_until_ns(&self, live: &Live, deadline_ns: u64) -> bool {
        loop {
            let rung = self.let_go.rung();
            if live.is_told_to_stop() {
                return false;
            }
            match deadline_ns.saturating_sub(clock::monotonic_ns()) {
                0 => return true,
                left_ns => self.let_go.wait(rung, Some(Duration::from_nanos(left_ns))),
            }
        }
    }

    /// Wakes workers that have been told to stop, wherever they wait.
    fn wake_all(&self) {
        self.let_go.ring();
        self.one_ended.ring();
    }

    /// The stage a worker belongs to.
    pub(crate) fn stage_of(&self, number: usize) -> usize {
        self.stages.iter().position(|stage| stage.contains(&number)).unwrap_or(0)
    }

    /// Tells everybody `job`'s end concerns to stop.
    fn stop_others(&self, job: &Job, why: Why) {
        let stage = self.stage_of(job.number as usize);
        for (number, other) in self.plan.jobs.iter().enumerate() {
            let concerned = match job.schedule.exit_what {
                ExitWhat::Group => other.group_id == job.group_id,
                ExitWhat::Stonewall => self.stages[stage].contains(&number),
                ExitWhat::All => true,
            };
            if concerned && number != job.number as usize {
                self.lives[number].ask_to_stop(why);
            }
        }
        self.wake_all();
    }

    /// What the end of `job` means for others: all those concerned are told to stop, if it wants that.
    pub(crate) fn stop_those_concerned(&self, job: &Job, has_failed: bool) {
        if job.schedule.exit_all || (has_failed && job.schedule.exit_all_on_error) {
            self.stop_others(job, Why::Other);
        }
    }

    /// A signal tells all to stop.
    pub(crate) fn stop_all(&self, now_ns: u64) {
        self.told_ns.store(now_ns, Relaxed);
        self.lives.iter().for_each(|live| live.ask_to_stop(Why::Signal));
        self.wake_all();
    }

    /// A signal came again after it told all to stop.
    pub(crate) fn hurry(&self) {
        self.is_urgent.store(true, Relaxed);
    }

    /// Whether there is no time left for anything but the report.
    pub(crate) fn is_urgent(&self) -> bool {
        self.is_urgent.load(Relaxed)
    }

    /// How long it is since a signal told all to stop; 0 before.
    pub(crate) fn told_for_ns(&self, now_ns: u64) -> u64 {
        match self.told_ns.load(Relaxed) {
            0 => 0,
            since_ns => now_ns.saturating_sub(since_ns),
        }
    }
}

/// Blocks a worker until `condition` holds, which changes only when the bell rings; `false` when it was told to stop
/// meanwhile.
fn wait_until(bell: &Bell, live: &Live, condition: impl Fn() -> bool) -> bool {
    loop {
        // Seen before the conditions are: what makes one of them true rings after it.
        let rung = bell.rung();
        if live.is_told_to_stop() {
            return false;
        }
        if condition() {
            return true;
        }
        bell.wait(rung, None);
    }
}

/// Cuts the jobs where one waits for all before it.
fn stages(plan: &Plan) -> Vec<std::ops::Range<usize>> {
    let mut stages = Vec::new();
    let mut first = 0;
    for (number, job) in plan.jobs.iter().enumerate() {
        if job.schedule.stonewall && job.clone == 0 && number > first {
            stages.push(first..number);
            first = number;
        }
    }
    if first < plan.jobs.len() {
        stages.push(first..plan.jobs.len());
    }
    stages
}
