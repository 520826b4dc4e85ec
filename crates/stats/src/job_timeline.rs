//! What single jobs of a run did over time: in the windows of its timeline, without the latencies one by one.
//!
//! Invariant: the windows are those of the timeline, one for one; what all jobs did in a window adds up to what it has.

use serde::{Deserialize, Serialize};

use crate::progress::DetailedProgress;

/// What was done in one direction: so far, or in one window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectionTotals {
    /// I/Os completed.
    pub ios: u64,
    /// Bytes transferred.
    pub bytes: u64,
    /// The sum of their latencies in nanoseconds; 0 if latencies are not measured.
    pub latency_ns: u64,
}

/// What one or several jobs have done: reads, writes, trims.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobTotals {
    /// By direction.
    pub directions: [DirectionTotals; 3],
}

impl JobTotals {
    /// Adds what a job has done.
    pub fn add(&mut self, progress: &DetailedProgress) {
        for (totals, progress) in self.directions.iter_mut().zip(&progress.directions) {
            totals.ios += progress.ios;
            totals.bytes += progress.bytes;
            totals.latency_ns += progress.latency_ns;
        }
    }

    /// What was done since `earlier`. Counts that were reset in between begin at zero.
    pub(crate) fn since(&self, earlier: &Self) -> Self {
        let since = |now: &DirectionTotals, before: &DirectionTotals| match now.ios < before.ios {
            true => *now,
            false => DirectionTotals {
                ios: now.ios - before.ios,
                bytes: now.bytes.saturating_sub(before.bytes),
                latency_ns: now.latency_ns.saturating_sub(before.latency_ns),
            },
        };
        let pairs = |index: usize| since(&self.directions[index], &earlier.directions[index]);
        JobTotals { directions: [pairs(0), pairs(1), pairs(2)] }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for (totals, theirs) in self.directions.iter_mut().zip(&other.directions) {
            totals.ios += theirs.ios;
            totals.bytes += theirs.bytes;
            totals.latency_ns += theirs.latency_ns;
        }
    }
}

/// One job over time, or several that are shown as one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JobTimeline {
    /// Its name, unique among those of the run.
    pub name: String,
    /// What it did in each window of the timeline.
    pub windows: Vec<JobTotals>,
}

/// Records the jobs beside the timeline.
#[derive(Clone, Debug, Default)]
pub(crate) struct JobsRecorder {
    /// What each job did, window by window.
    windows: Vec<Vec<JobTotals>>,
    /// What the last window that is complete ended with.
    before: Vec<JobTotals>,
}

impl JobsRecorder {
    /// Ends a window, in which the jobs had come to these totals.
    pub(crate) fn push(&mut self, so_far: &[JobTotals]) {
        self.before.resize(so_far.len(), JobTotals::default());
        let done = so_far.iter().zip(&self.before).map(|(now, before)| now.since(before));
        self.windows.push(done.collect());
        self.before = so_far.to_vec();
    }

    /// Makes one window of each two.
    pub(crate) fn join(&mut self) {
        self.windows = self.windows.chunks(2).map(joined).collect();
    }

    /// Makes one window of the last two.
    pub(crate) fn join_last(&mut self) {
        let last_two = self.windows.split_off(self.windows.len().saturating_sub(2));
        self.windows.push(joined(&last_two));
    }

    /// The timelines of the jobs with these names, which are those of the totals.
    pub(crate) fn finish(self, names: &[String]) -> Vec<JobTimeline> {
        let of = |(index, name): (usize, &String)| JobTimeline {
            name: name.clone(),
            windows: self.windows.iter().filter_map(|window| window.get(index).copied()).collect(),
        };
        names.iter().enumerate().map(of).collect()
    }
}

/// One window of up to two.
fn joined(windows: &[Vec<JobTotals>]) -> Vec<JobTotals> {
    let mut all = windows.first().cloned().unwrap_or_default();
    for next in windows.iter().skip(1) {
        all.iter_mut().zip(next).for_each(|(one, other)| one.merge(other));
    }
    all
}
