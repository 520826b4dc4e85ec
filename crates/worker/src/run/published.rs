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
            let Ok(published) = published.lock() else {
                each(JobProgress { number, so_far: &nothing, latencies: None });
                continue;
            };
            let is_of_now = live.state() == State::Running && published.latencies_ns >= self.asked_ns;
            each(JobProgress {
                number,
                so_far: published.progress.as_deref().unwrap_or(&nothing),
                latencies: published.latencies.as_deref().filter(|_| is_of_now),
            });
        }
    }
}
