//! What workers have published of their progress, for whoever follows a run.
//!
//! Invariant: waits for no worker; a job that has published nothing has done nothing.

use std::fmt;

use fiord_stats::{DetailedProgress, RunLatencies};

use crate::live::State;
use crate::run_state::RunState;

/// What the workers had done when they were asked last.
pub struct PublishedProgress<'r> {
    shared: &'r RunState,
    /// When they were asked, on the monotonic clock.
    asked_ns: u64,
}

/// What one worker had done.
#[derive(Clone, Copy, Debug)]
pub struct JobProgress<'p> {
    /// The number of its job.
    pub number: usize,
    /// What it had done when it published it last.
    pub so_far: &'p DetailedProgress,
    /// Its latencies at full resolution, if it is running and has published them since it was asked.
    pub latencies: Option<&'p RunLatencies>,
}

impl fmt::Debug for PublishedProgress<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("PublishedProgress").field("asked_ns", &self.asked_ns).finish_non_exhaustive()
    }
}

impl<'r> PublishedProgress<'r> {
    pub(super) fn new(shared: &'r RunState, asked_ns: u64) -> PublishedProgress<'r> {
        PublishedProgress { shared, asked_ns }
    }

    /// Calls `each` for every job, in the order of their numbers.
    pub fn for_each(&self, mut each: impl FnMut(JobProgress<'_>)) {
        let nothing = DetailedProgress::default();
        let RunState { live, published, .. } = self.shared;
        for (number, (live, published)) in live.iter().zip(published).enumerate() {
            let published = published.lock();
            let is_of_now = live.state() == State::Running && published.latencies_ns >= self.asked_ns;
            each(JobProgress {
                number,
                so_far: published.progress.as_deref().unwrap_or(&nothing),
                latencies: published.latencies.as_deref().filter(|_| is_of_now),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Arc;

    use fiord_plan::Plan;

    use super::*;
    use crate::job::engines;
    use crate::job::worker::run_job;
    use crate::test_jobs::null_job;

    /// Neither those that the worker published before nor what it does afterwards.
    #[test]
    fn a_panic_under_the_lock_takes_no_figure_from_others() {
        let job = null_job("a");
        let shared = RunState::new(Arc::new(Plan { jobs: vec![job.clone()], trigger: None }));
        let panics = || {
            shared.published[0].lock().stats.directions[0].ios = 7;
            let _held = shared.published[0].lock();
            panic!("under the lock");
        };
        catch_unwind(AssertUnwindSafe(panics)).unwrap_err();
        assert_eq!(shared.published[0].lock().stats.directions[0].ios, 7);
        shared.begin_stage(0..1);
        shared.release_stage();
        let report = run_job(&shared, &job, engines::find(engines::ENGINES, &job.engine).unwrap());
        assert_eq!(report.failure, None);
        let mut seen = Vec::new();
        PublishedProgress::new(&shared, 0).for_each(|of| seen.push(of.so_far.directions[0].ios));
        assert!(seen[0] > 0 && seen == [report.stats.directions[0].ios], "{seen:?}");
    }
}
