//! The rule that ends jobs of other work when all jobs that do I/O have ended (`exit_on_io_done`).
//!
//! Invariant: in a run without such I/O, the rule ends nothing, as in fio.

use fiord_plan::Job;

use super::group::{GroupRule, JobTick, Stop, Tick};
use crate::live::StopReason;

/// How often it looks.
const INTERVAL_NS: u64 = 10_000_000;

/// The rule for all jobs of a run.
#[derive(Debug, Default)]
pub(super) struct EndWithIo {
    due_ns: u64,
}

impl EndWithIo {
    /// The rule; `None` if no job ends with the I/O of others, or there is none.
    pub(super) fn over(jobs: &[Job]) -> Option<EndWithIo> {
        let applies = jobs.iter().any(ends_with_io) && jobs.iter().any(does_io);
        applies.then(EndWithIo::default)
    }
}

impl GroupRule for EndWithIo {
    fn due_ns(&self) -> u64 {
        self.due_ns
    }

    fn look(&mut self, tick: &Tick<'_>) -> Vec<Stop> {
        self.due_ns = tick.now_ns + INTERVAL_NS;
        if tick.jobs.iter().any(|one| does_io(one.job) && !one.state.is_over()) {
            return Vec::new();
        }
        self.due_ns = u64::MAX;
        let waiting = tick.jobs.iter().filter(|one| ends_with_io(one.job) && !one.state.is_over());
        let stop =
            |one: &JobTick<'_>| Stop { job: one.job.number, reason: StopReason::Other, complaint: None };
        waiting.map(stop).collect()
    }
}

fn does_io(job: &Job) -> bool {
    job.engine.cycle().is_none() && job.unplannable.is_none()
}

fn ends_with_io(job: &Job) -> bool {
    job.engine.cycle().is_some_and(|cycle| cycle.ends_with_io)
}
