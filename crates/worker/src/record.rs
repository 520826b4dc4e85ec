//! What one worker measures, kept in plain local memory.
//!
//! Invariant: recording allocates nothing and shares nothing; histograms that nobody asked for do not exist.

use fiord_plan::job::Measure;
use fiord_plan::{Action, Direction, Op};
use fiord_stats::{Histogram, JobStats, Latency};

/// Moments of one I/O, in nanoseconds on the worker's clock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stamps {
    /// Made.
    pub start_ns: u64,
    /// Given to the kernel.
    pub issue_ns: u64,
    /// Ended.
    pub end_ns: u64,
}

/// The statistics of one worker while it runs.
pub(crate) struct Recorder {
    pub stats: JobStats,
    submission: bool,
    completion: bool,
    total: bool,
}

impl Recorder {
    pub(crate) fn new(measure: &Measure) -> Recorder {
        let mut stats = JobStats::default();
        for direction in &mut stats.directions {
            direction.submission = latency(measure.submission && measure.submission_percentiles);
            direction.completion = latency(measure.completion && measure.completion_percentiles);
            direction.total = latency(measure.total && measure.total_percentiles);
        }
        stats.sync.latency = latency(true);
        Recorder {
            stats,
            submission: measure.submission,
            completion: measure.completion,
            total: measure.total,
        }
    }

    /// An I/O of a synchronous engine: it is issued when it is made.
    #[inline]
    pub(crate) fn executed(&mut self, op: &Op, start_ns: u64, end_ns: u64) {
        let took_ns = end_ns.saturating_sub(start_ns);
        match op.action {
            Action::Transfer(direction) => {
                let stats = &mut self.stats.directions[direction.index()];
                let bin = if self.completion { stats.completion.record(took_ns) } else { fiord_stats::histogram::bin_index(took_ns) };
                if self.total {
                    stats.total.record(took_ns);
                }
                self.stats.distribution.record(took_ns, bin);
            }
            _ => {
                self.stats.sync.latency.record(took_ns);
            }
        }
    }

    /// An I/O of a queued engine.
    #[inline]
    pub(crate) fn reaped(&mut self, op: &Op, stamps: Stamps) {
        let completion_ns = stamps.end_ns.saturating_sub(stamps.issue_ns);
        let Action::Transfer(direction) = op.action else {
            self.stats.sync.latency.record(completion_ns);
            return;
        };
        let stats = &mut self.stats.directions[direction.index()];
        if self.submission {
            stats.submission.record(stamps.issue_ns.saturating_sub(stamps.start_ns));
        }
        let bin = if self.completion {
            stats.completion.record(completion_ns)
        } else {
            fiord_stats::histogram::bin_index(completion_ns)
        };
        if self.total {
            stats.total.record(stamps.end_ns.saturating_sub(stamps.start_ns));
        }
        self.stats.distribution.record(completion_ns, bin);
    }

    /// Counts an I/O of that many bytes.
    #[inline]
    pub(crate) fn count(&mut self, direction: Direction, bytes: u64) {
        let stats = &mut self.stats.directions[direction.index()];
        stats.ios += 1;
        stats.bytes += bytes;
    }

    /// Counts a synchronisation.
    #[inline]
    pub(crate) fn count_sync(&mut self) {
        self.stats.sync.ios += 1;
    }

    /// A synchronous engine has one I/O in flight, submitted and completed by itself. An engine that could queue
    /// (null at depth 1) submits nothing in fio's sense.
    pub(crate) fn account_for_sync_engine(&mut self, could_queue: bool) {
        let transfers: u64 = self.stats.directions.iter().map(|direction| direction.ios).sum();
        let all = transfers + self.stats.sync.ios;
        self.stats.depth.counts[0] = all;
        if !could_queue {
            self.stats.submit.record_calls(1, all);
            self.stats.complete.record_calls(1, all);
        }
    }

    /// Forgets all that was recorded (the ramp is over), keeping what was allocated.
    pub(crate) fn forget(&mut self) {
        for direction in &mut self.stats.directions {
            for kept in [&mut direction.submission, &mut direction.completion, &mut direction.total] {
                forget(kept);
            }
            (direction.ios, direction.bytes, direction.short_ios, direction.dropped_ios) = (0, 0, 0, 0);
        }
        forget(&mut self.stats.sync.latency);
        self.stats.sync.ios = 0;
        self.stats.distribution = Default::default();
        self.stats.depth = Default::default();
        self.stats.submit = Default::default();
        self.stats.complete = Default::default();
    }
}

fn latency(with_histogram: bool) -> Latency {
    if with_histogram { Latency::with_histogram() } else { Latency::default() }
}

fn forget(latency: &mut Latency) {
    latency.running = Default::default();
    if latency.histogram.is_allocated() {
        latency.histogram = Histogram::allocated();
    }
}
