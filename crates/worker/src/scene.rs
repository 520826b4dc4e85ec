//! What the workers of a run and its monitor share: who is where, and who waits for whom.
//!
//! Invariant: the board is locked for a few instructions at a time and never inside a loop; its condition variables
//! are told of every change that anybody waits for, and of every request to stop.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fiord_plan::{ExitWhat, Job, Plan};
use fiord_stats::JobStats;
use fiord_sys::clock;

use crate::live::{Live, Why};
use crate::run::WorkerReport;

/// Who is ready and who has ended.
#[derive(Debug, Default)]
pub(crate) struct Board {
    /// Workers behind the barrier, or past the need for it.
    ready: Vec<bool>,
    /// Workers that have ended.
    ended: Vec<bool>,
    /// Workers of the stage being played that are not ready yet.
    pub unready: usize,
    /// Workers of the stage being played that have not ended yet.
    pub unended: usize,
    /// How many stages have been let go.
    pub stages_started: usize,
}

impl Board {
    /// `true`: that was the last of the stage.
    fn is_ready(&mut self, number: usize) -> bool {
        !std::mem::replace(&mut self.ready[number], true) && is_last(&mut self.unready)
    }

    /// `true`: that was the last of the stage, to be ready or to end.
    fn has_ended(&mut self, number: usize) -> bool {
        let completes_the_stage = self.is_ready(number);
        !std::mem::replace(&mut self.ended[number], true) && is_last(&mut self.unended) || completes_the_stage
    }

    /// Whether this worker has ended.
    pub(crate) fn has_one_ended(&self, worker: usize) -> bool {
        self.ended[worker]
    }

    /// Whether all these workers have ended.
    pub(crate) fn have_ended(&self, workers: &[usize]) -> bool {
        workers.iter().all(|number| self.ended[*number])
    }
}

/// Counts one off.
fn is_last(left: &mut usize) -> bool {
    *left = left.saturating_sub(1);
    *left == 0
}

/// A run in progress. Owned by all who take part: a worker that hangs in the kernel keeps what it may still touch, also
/// after the run has gone on without it.
///
/// Ten thousand workers wait here at once, so nobody is woken who has nothing to do: the monitor is told when a whole
/// stage is ready or has ended, those at the barrier when a stage is let go, those behind `wait_for` of each end.
pub(crate) struct Scene {
    pub plan: Arc<Plan>,
    /// Workers that start together: ranges of job numbers, cut at the stonewalls.
    pub stages: Vec<std::ops::Range<usize>>,
    pub lives: Vec<Live>,
    pub snapshots: Vec<Mutex<JobStats>>,
    pub started_ns: u64,
    /// What ended workers have left, by number.
    reports: Mutex<BTreeMap<u32, WorkerReport>>,
    /// When a signal told all to stop; 0 before.
    told_ns: AtomicU64,
    /// Whether a signal came again since.
    is_urgent: AtomicBool,
    /// When the first stage was let go; 0 before.
    going_since_ns: AtomicU64,
    board: Mutex<Board>,
    stage_changed: Condvar,
    let_go: Condvar,
    one_ended: Condvar,
}

impl Scene {
    pub(crate) fn new(plan: Arc<Plan>) -> Scene {
        let count = plan.jobs.len();
        let board = Board { ready: vec![false; count], ended: vec![false; count], ..Board::default() };
        Scene {
            stages: stages(&plan),
            plan,
            lives: (0..count).map(|_| Live::default()).collect(),
            snapshots: (0..count).map(|_| Mutex::default()).collect(),
            started_ns: clock::monotonic_ns(),
            reports: Mutex::default(),
            told_ns: AtomicU64::new(0),
            is_urgent: AtomicBool::new(false),
            going_since_ns: AtomicU64::new(0),
            board: Mutex::new(board),
            stage_changed: Condvar::new(),
            let_go: Condvar::new(),
            one_ended: Condvar::new(),
        }
    }

    /// The board; a worker that panicked while holding it left it whole.
    pub(crate) fn board(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What those that have ended have left so far, by number.
    pub(crate) fn reports(&self) -> MutexGuard<'_, BTreeMap<u32, WorkerReport>> {
        self.reports.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes what a worker leaves, unless it was reported on already: it comes back after it was given up.
    pub(crate) fn hand_in(&self, report: WorkerReport) {
        self.reports().entry(report.number).or_insert(report);
    }

    /// A stage is about to be played: from now on its workers are counted.
    pub(crate) fn begin_stage(&self, stage: std::ops::Range<usize>) {
        let mut board = self.board();
        board.unready = board.ready[stage.clone()].iter().filter(|ready| !**ready).count();
        board.unended = board.ended[stage].iter().filter(|ended| !**ended).count();
    }

    /// The workers of the stage being played may go.
    pub(crate) fn let_go(&self) {
        let _ = self.going_since_ns.compare_exchange(0, clock::monotonic_ns(), Relaxed, Relaxed);
        self.board().stages_started += 1;
        self.let_go.notify_all();
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
        if self.board().is_ready(number) {
            self.stage_changed.notify_all();
        }
    }

    /// A worker has ended.
    pub(crate) fn has_ended(&self, number: usize) {
        if self.board().has_ended(number) {
            self.stage_changed.notify_all();
        }
        self.one_ended.notify_all();
    }

    /// The monitor waits for a change of the stage, or a while.
    pub(crate) fn wait(&self, board: MutexGuard<'_, Board>, at_most: Duration) {
        drop(self.stage_changed.wait_timeout(board, at_most));
    }

    /// Blocks a worker until stage number `stage` is let go; `false` when it was told to stop meanwhile.
    pub(crate) fn wait_for_stage(&self, live: &Live, stage: usize) -> bool {
        self.wait_until(&self.let_go, live, |board| board.stages_started > stage)
    }

    /// Blocks a worker until all these have ended; `false` when it was told to stop meanwhile.
    pub(crate) fn wait_for_workers(&self, live: &Live, workers: &[usize]) -> bool {
        self.wait_until(&self.one_ended, live, |board| board.have_ended(workers))
    }

    fn wait_until(&self, change: &Condvar, live: &Live, condition: impl Fn(&Board) -> bool) -> bool {
        let mut board = self.board();
        while !live.is_told_to_stop() {
            if condition(&board) {
                return true;
            }
            board = change.wait(board).unwrap_or_else(PoisonError::into_inner);
        }
        false
    }

    /// Blocks a worker until `deadline_ns`; `false` when it was told to stop meanwhile.
    pub(crate) fn wait_until_ns(&self, live: &Live, deadline_ns: u64) -> bool {
        let mut board = self.board();
        while !live.is_told_to_stop() {
            let left_ns = deadline_ns.saturating_sub(clock::monotonic_ns());
            if left_ns == 0 {
                return true;
            }
            let waited = self.let_go.wait_timeout(board, Duration::from_nanos(left_ns));
            board = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        false
    }

    /// Wakes workers that have been told to stop, wherever they wait.
    fn wake_all(&self) {
        // Whoever holds the board has not seen the request yet, but waits before it is let go.
        drop(self.board());
        self.let_go.notify_all();
        self.one_ended.notify_all();
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
