//! Stages that wait to be told when they start.

use std::sync::Arc;
use std::time::Duration;

use fiord_plan::{Job, Plan};
use fiord_sys::clock;
use fiord_worker::{EndReason, Gate, Moment, RunResult, Watcher, WorkerReport};

use crate::common::null_job;

/// What the gate of each stage was asked, and when the stage was released.
#[derive(Default)]
struct Gatekeeper {
    /// How often the gate says that the time is not known yet.
    closed: usize,
    /// Whether it then names a time, or opens at once.
    names_a_time: bool,
    asked: Vec<usize>,
    opens_at_ns: u64,
    released: Vec<(usize, u64)>,
    /// Asks for a stop when the gate was asked as often.
    stops_after: Option<usize>,
}

impl Watcher for Gatekeeper {
    fn gate(&mut self, stage: usize, _patience: Duration) -> Gate {
        self.asked.push(stage);
        let asked = self.asked.iter().filter(|known| **known == stage).count();
        if asked <= self.closed {
            return Gate::Closed;
        }
        if !self.names_a_time {
            return Gate::Open;
        }
        if asked == self.closed + 1 {
            self.opens_at_ns = clock::monotonic_ns() + 5_000_000;
        }
        Gate::OpensAt(self.opens_at_ns)
    }

    fn released(&mut self, stage: usize, at_ns: u64) {
        assert!(at_ns >= self.opens_at_ns, "before its time");
        self.released.push((stage, at_ns));
    }

    fn is_stop_requested(&self) -> bool {
        self.stops_after.is_some_and(|asked| self.asked.len() >= asked)
    }

    fn snapshot(&mut self, _reports: Vec<WorkerReport>, _moment: Moment) {}
}

fn run(keeper: &mut Gatekeeper) -> RunResult {
    let mut second = Job { number: 1, ..null_job("second") };
    second.schedule.stonewall = true;
    let plan = Arc::new(Plan { jobs: vec![null_job("first"), second], trigger: None });
    fiord_worker::run(&plan, fiord_worker::ENGINES, keeper)
}

#[test]
fn each_stage_is_released_once_and_not_before_its_time() {
    for names_a_time in [false, true] {
        let mut keeper = Gatekeeper { closed: 3, names_a_time, ..Gatekeeper::default() };
        let result = run(&mut keeper);
        assert!(result.workers.iter().all(|worker| worker.reason == EndReason::Size));
        let stages: Vec<usize> = keeper.released.iter().map(|(stage, _)| *stage).collect();
        assert_eq!(stages, [0, 1]);
        assert!(keeper.asked.is_sorted() && keeper.asked.len() >= 8, "{:?}", keeper.asked);
    }
}

#[test]
fn a_stop_ends_a_run_whose_gate_never_opens() {
    let mut keeper = Gatekeeper { closed: usize::MAX, stops_after: Some(4), ..Gatekeeper::default() };
    let result = run(&mut keeper);
    assert!(result.workers.iter().all(|worker| worker.stats.directions[0].ios == 0), "none was released");
    assert_eq!(result.signal, Some(15));
}
