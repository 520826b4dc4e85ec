//! Asks the workers at regular intervals for what they have done so far, with its latencies.
//!
//! Invariant: waits for no worker. One that is blocked in an I/O counts with what it published last.

use fiord_stats::DetailedProgress;

use crate::live::{State, request};
use crate::run_state::RunState;

/// How long workers have to publish what they are asked for, and how often it is checked whether they have.
const PATIENCE_NS: u64 = 200_000_000;
const CHECK_NS: u64 = 5_000_000;

/// When to ask next, and what was asked for.
#[derive(Debug)]
pub(crate) struct ProgressWatch {
    /// `None`: never asks.
    period_ns: Option<u64>,
    next_ns: u64,
    /// When the workers were asked, until their answers are collected.
    asked_ns: Option<u64>,
}

/// What all workers together had done at one moment.
#[derive(Debug)]
pub(crate) struct Collected {
    /// Time since the first stage was released.
    pub elapsed_ns: u64,
    pub progress: DetailedProgress,
}

impl ProgressWatch {
    /// Asks at intervals of `period_ns`, from `now_ns` on.
    pub(crate) fn new(period_ns: Option<u64>, now_ns: u64) -> ProgressWatch {
        let next_ns = period_ns.map_or(u64::MAX, |period_ns| now_ns + period_ns);
        ProgressWatch { period_ns, next_ns, asked_ns: None }
    }

    /// When `look` has something to do next.
    pub(crate) fn due_ns(&self, now_ns: u64) -> u64 {
        if self.asked_ns.is_some() { now_ns + CHECK_NS } else { self.next_ns }
    }

    /// Asks if it is time to, and collects the answers once all have come, or have taken too long.
    pub(crate) fn look(&mut self, shared: &RunState, now_ns: u64) -> Option<Collected> {
        let period_ns = self.period_ns?;
        let Some(asked_ns) = self.asked_ns else {
            if now_ns >= self.next_ns {
                self.next_ns = now_ns + period_ns;
                self.ask(shared, now_ns);
            }
            return None;
        };
        let is_pending = |number: usize| {
            let live = &shared.live[number];
            is_busy(live.state()) && live.has_requests()
        };
        if now_ns < asked_ns + PATIENCE_NS && (0..shared.live.len()).any(is_pending) {
            return None;
        }
        self.asked_ns = None;
        let mut progress = DetailedProgress::default();
        for published in shared.published.iter().filter_map(|published| published.lock().ok()) {
            published.progress.iter().for_each(|theirs| progress.merge(theirs));
        }
        Some(Collected { elapsed_ns: shared.released_for_ns(asked_ns), progress })
    }

    fn ask(&mut self, shared: &RunState, now_ns: u64) {
        if shared.released_for_ns(now_ns) == 0 {
            return;
        }
        let busy = shared.live.iter().filter(|live| is_busy(live.state()));
        busy.for_each(|live| live.request(request::PROGRESS));
        self.asked_ns = Some(now_ns);
    }
}

fn is_busy(state: State) -> bool {
    matches!(state, State::Running | State::Ramping)
}
