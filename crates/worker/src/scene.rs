//! What the workers of a run and its monitor share: who is where, and who waits for whom.
//!
//! Invariant: the board is locked for a few instructions at a time and never inside a loop; its condition variable
//! is told of every change that anybody waits for.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fiord_plan::{ExitWhat, Job, Plan};
use fiord_stats::JobStats;
use fiord_sys::clock;

use crate::live::{Live, Why};

/// Longest wait without looking at the worker's requests.
const NAP: Duration = Duration::from_millis(50);

/// Who is ready and who has ended.
#[derive(Debug, Default)]
pub(crate) struct Board {
    /// Workers behind the barrier, or past the need for it.
    pub ready: Vec<bool>,
    /// Workers that have ended.
    pub ended: Vec<bool>,
    /// How many stages have been let go.
    pub stages_started: usize,
}

/// A run in progress.
pub(crate) struct Scene<'a> {
    pub plan: &'a Plan,
    /// Workers that start together: ranges of job numbers, cut at the stonewalls.
    pub stages: Vec<std::ops::Range<usize>>,
    pub lives: Vec<Live>,
    pub snapshots: Vec<Mutex<JobStats>>,
    pub started_ns: u64,
    board: Mutex<Board>,
    changed: Condvar,
}

impl<'a> Scene<'a> {
    pub(crate) fn new(plan: &'a Plan) -> Scene<'a> {
        let count = plan.jobs.len();
        Scene {
            plan,
            stages: stages(plan),
            lives: (0..count).map(|_| Live::default()).collect(),
            snapshots: (0..count).map(|_| Mutex::default()).collect(),
            started_ns: clock::monotonic_ns(),
            board: Mutex::new(Board {
                ready: vec![false; count],
                ended: vec![false; count],
                stages_started: 0,
            }),
            changed: Condvar::new(),
        }
    }

    /// The board; a worker that panicked while holding it left it whole.
    pub(crate) fn board(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the board and tells everybody.
    pub(crate) fn update(&self, change: impl FnOnce(&mut Board)) {
        change(&mut self.board());
        self.changed.notify_all();
    }

    /// Waits for a change, or a while.
    pub(crate) fn wait<'b>(&self, board: MutexGuard<'b, Board>, at_most: Duration) -> MutexGuard<'b, Board> {
        match self.changed.wait_timeout(board, at_most) {
            Ok((board, _)) => board,
            Err(poisoned) => poisoned.into_inner().0,
        }
    }

    /// Blocks a worker until `condition` holds; `false` when it was told to stop meanwhile.
    pub(crate) fn wait_until(&self, live: &Live, condition: impl Fn(&Board) -> bool) -> bool {
        let mut board = self.board();
        while !condition(&board) {
            if live.is_told_to_stop() {
                return false;
            }
            board = self.wait(board, NAP);
        }
        !live.is_told_to_stop()
    }

    /// Sleeps a worker until `deadline_ns`; `false` when it was told to stop meanwhile.
    pub(crate) fn sleep_until(&self, live: &Live, deadline_ns: u64) -> bool {
        loop {
            let now_ns = clock::monotonic_ns();
            if live.is_told_to_stop() {
                return false;
            }
            if now_ns >= deadline_ns {
                return true;
            }
            clock::sleep_until_ns(deadline_ns.min(now_ns + NAP.as_nanos() as u64));
        }
    }

    /// The stage a worker belongs to.
    pub(crate) fn stage_of(&self, number: usize) -> usize {
        self.stages.iter().position(|stage| stage.contains(&number)).unwrap_or(0)
    }

    /// Tells everybody `job`'s end concerns to stop.
    pub(crate) fn stop_others(&self, job: &Job, why: Why) {
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
    }

    /// Tells all to stop.
    pub(crate) fn stop_all(&self, why: Why) {
        self.lives.iter().for_each(|live| live.ask_to_stop(why));
        self.changed.notify_all();
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
