//! What one worker measures, kept in plain local memory.
//!
//! Invariant: recording shares nothing and allocates nothing, but for a job with logs: those grow by whole chunks.
//! Histograms and logs that nobody asked for do not exist.

use fiord_engine::Info;
use fiord_plan::{Action, Barriers, Direction, Job, LogKind, Logs, Op, PerDirection};
use fiord_stats::{Distribution, JobLogs, JobStats, Latency, LogSettings, LoggedIo, Usage};
use fiord_sys::{clock, thread};

use crate::live::Live;
use crate::seal::unsealed;
use crate::tally::{Noted, Tally};

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

impl Stamps {
    /// Of an engine that begins an I/O when it is told of it.
    #[inline]
    pub(crate) fn unqueued(start_ns: u64, end_ns: u64) -> Stamps {
        Stamps { start_ns, issue_ns: start_ns, end_ns }
    }

    #[inline]
    pub(crate) fn submission_ns(self) -> u64 {
        self.issue_ns.saturating_sub(self.start_ns)
    }

    #[inline]
    pub(crate) fn completion_ns(self) -> u64 {
        self.end_ns.saturating_sub(self.issue_ns)
    }

    #[inline]
    pub(crate) fn total_ns(self) -> u64 {
        self.submission_ns() + self.completion_ns()
    }
}

/// The statistics of one worker while it runs.
///
/// The loop notes each I/O in a tally. `settle` makes statistics of what was noted: when a tally is full, every
/// millisecond, and before anybody looks.
///
/// A synchronous engine's I/O is issued when it is made, so that its completion latency is its total latency: it is
/// recorded once, and `publish` sees to the rest.
pub(crate) struct Recorder<'a> {
    /// Boxed, as they are large and every move of them would deepen the worker's stack.
    pub stats: Box<JobStats>,
    live: &'a Live,
    tallies: PerDirection<Tally>,
    /// Whether I/Os are issued some time after they were made.
    queued: bool,
    ends_at_once: bool,
    submission: bool,
    completion: bool,
    total: bool,
    total_percentiles: bool,
    logs: Option<Box<JobLogs>>,
    log_clock: Option<u32>,
    /// What the thread had used when what is recorded began to count.
    used_before: thread::Usage,
}

impl<'a> Recorder<'a> {
    pub(crate) fn new(job: &Job, live: &'a Live) -> Recorder<'a> {
        let (measure, logs) = (&job.measure, job.logs.as_ref());
        let mut stats = Box::<JobStats>::default();
        let completion = measure.completion && measure.completion_percentiles;
        let total = measure.total && measure.total_percentiles;
        for used in Direction::ALL.into_iter().filter(|direction| job.access.pattern.includes(*direction)) {
            let direction = &mut stats.directions[used.index()];
            direction.submission = latency(measure.submission && measure.submission_percentiles);
            direction.completion = latency(completion || total);
            direction.total = latency(total);
        }
        stats.sync.latency = latency(job.access.barriers != Barriers::default());
        Recorder {
            stats,
            live,
            tallies: Default::default(),
            queued: false,
            ends_at_once: false,
            submission: measure.submission,
            completion: measure.completion,
            total: measure.total,
            total_percentiles: total,
            logs: logs.map(|logs| Box::new(JobLogs::new(log_settings(logs)))),
            log_clock: logs.and_then(|logs| logs.clock_id),
            used_before: thread::Usage::default(),
        }
    }

    /// The I/Os to come are a queue's; of one that `ends_at_once`, what is submitted together completes together.
    pub(crate) fn expect_queue(&mut self, ends_at_once: bool) {
        self.queued = true;
        self.ends_at_once = ends_at_once;
    }

    /// An I/O has ended, all of it done; `op` may be its rest.
    #[inline(always)]
    pub(crate) fn timed(&mut self, op: &Op, stamps: Stamps) {
        let Action::Transfer(direction) = op.action else { return self.synced(stamps) };
        if let Some(logs) = &mut self.logs {
            log(logs, &op.whole(), direction, stamps, self.queued);
        }
        let tally = &mut self.tallies[direction.index()];
        if !tally.note(op.whole_bytes(), stamps, self.queued) {
            self.record_long(direction, op.whole_bytes(), stamps);
        } else if tally.is_full() {
            self.settle_tally(direction);
        }
    }

    /// The same where no time passes.
    #[inline]
    pub(crate) fn counted(&mut self, op: &Op) {
        match op.action {
            Action::Transfer(direction) => self.count(direction, 1, op.whole_bytes()),
            _ => self.stats.sync.ios += 1,
        }
    }

    /// Counts an I/O that failed after some of it was done: `rest` is what was left to do.
    pub(crate) fn count_partial(&mut self, rest: &Op) {
        if let (Action::Transfer(direction), 1..) = (rest.action, rest.buffer_offset_bytes) {
            self.count(direction, 1, rest.buffer_offset_bytes);
        }
    }

    #[inline]
    fn count(&mut self, direction: Direction, ios: u64, bytes: u64) {
        let stats = &mut self.stats.directions[direction.index()];
        stats.ios += ios;
        stats.bytes += bytes;
        self.live.completed(direction, ios, bytes);
    }

    #[inline(never)]
    fn synced(&mut self, stamps: Stamps) {
        self.stats.sync.ios += 1;
        self.stats.sync.latency.record(stamps.completion_ns());
    }

    /// Makes statistics of everything noted.
    pub(crate) fn settle(&mut self) {
        Direction::ALL.into_iter().for_each(|direction| self.settle_tally(direction));
    }

    #[inline(never)]
    fn settle_tally(&mut self, direction: Direction) {
        let Noted { bytes, submission_ns, completion_ns } = self.tallies[direction.index()].take();
        let JobStats { directions, distribution, .. } = &mut *self.stats;
        let stats = &mut directions[direction.index()];
        stats.completion.record_all(completion_ns, |ns, bin| distribution.record(ns, bin));
        if self.queued && self.submission {
            stats.submission.record_all(submission_ns, |_, _| ());
        }
        if self.queued && self.total {
            stats.total.record_sums(submission_ns, completion_ns);
        }
        let ios = completion_ns.len() as u64;
        self.count(direction, ios, bytes);
    }

    /// Records an I/O that is too long for a tally.
    #[cold]
    fn record_long(&mut self, direction: Direction, bytes: u64, stamps: Stamps) {
        let stats = &mut self.stats.directions[direction.index()];
        let bin = stats.completion.record(stamps.completion_ns());
        self.stats.distribution.record(stamps.completion_ns(), bin);
        if self.queued && self.submission {
            stats.submission.record(stamps.submission_ns());
        }
        if self.queued && self.total {
            stats.total.record(stamps.total_ns());
        }
        self.count(direction, 1, bytes);
    }

    /// From `now_ns` on the loop's clock on, what is recorded counts: the zero of the logs.
    pub(crate) fn begin(&mut self, now_ns: u64) {
        self.used_before = thread::usage().unwrap_or_default();
        let zero_ms = self.log_clock.map_or(0, clock::read_ms);
        if let Some(logs) = &mut self.logs {
            logs.begin(now_ns, zero_ms);
        }
    }

    /// Hands over the logs; the run ended at `end_ns` on the loop's clock.
    pub(crate) fn take_logs(&mut self, end_ns: u64) -> Option<JobLogs> {
        let mut logs = self.logs.take()?;
        logs.finish(end_ns);
        Some(*logs)
    }

    /// What a report may show of it so far. Allocates: for snapshots.
    pub(crate) fn publish(&mut self, engine: &Info) -> JobStats {
        self.settle();
        let mut stats = JobStats::clone(&self.stats);
        self.complete(&mut stats, engine);
        stats
    }

    /// What a report shows of it in the end. Nothing is left here: thousands of workers end at once.
    pub(crate) fn conclude(&mut self, engine: &Info) -> Box<JobStats> {
        self.settle();
        let mut stats = std::mem::take(&mut self.stats);
        self.complete(&mut stats, engine);
        stats
    }

    /// Adds to the statistics what follows from them.
    fn complete(&self, stats: &mut JobStats, engine: &Info) {
        if !self.queued {
            self.complete_for_sync(stats, engine.queued);
        }
        if self.ends_at_once {
            stats.complete = stats.submit;
        }
        if !self.completion {
            stats.directions.iter_mut().for_each(|direction| direction.completion = Latency::default());
            // The distribution is one of completion latencies.
            stats.distribution = Distribution::default();
        }
        stats.usage = self.usage();
    }

    /// What the thread has used since `begin`; the time that passed is for others to add.
    fn usage(&self) -> Usage {
        let used = thread::usage().unwrap_or_default().since(&self.used_before);
        Usage {
            user_us: used.user_us,
            system_us: used.system_us,
            context_switches: used.switches_voluntary + used.switches_involuntary,
            major_faults: used.faults_major,
            minor_faults: used.faults_minor,
            elapsed_ms: 0,
        }
    }

    /// A synchronous engine has one I/O in flight, submitted and completed by itself. An engine that could queue
    /// (null at depth 1) submits nothing in fio's sense.
    fn complete_for_sync(&self, stats: &mut JobStats, could_queue: bool) {
        let transfers: u64 = stats.directions.iter().map(|direction| direction.ios).sum();
        let all = transfers + stats.sync.ios;
        stats.depth.counts[0] = all;
        if !could_queue {
            stats.submit.record_calls(1, all);
            stats.complete.record_calls(1, all);
        }
        for direction in stats.directions.iter_mut().filter(|_| self.total) {
            direction.total.running = direction.completion.running;
            if self.total_percentiles {
                direction.total.histogram = direction.completion.histogram.clone();
            }
        }
    }

    /// Forgets all that was recorded (the ramp is over), keeping what was allocated.
    pub(crate) fn forget(&mut self) {
        self.settle();
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

fn log_settings(logs: &Logs) -> LogSettings {
    use LogKind::{Bandwidth, Completion, Histogram, Iops, Submission, Total};
    let records = |kinds: &[LogKind]| kinds.iter().any(|kind| logs.records(*kind));
    let window = |kinds: &[LogKind], length_ms: u64| records(kinds).then_some(length_ms);
    let windowed = logs.window_ms.is_some();
    let latencies = [Submission, Completion, Total];
    LogSettings {
        every_io: !windowed && (records(&latencies) || records(&[Bandwidth, Iops])),
        entries_ahead: logs.entries_ahead as usize,
        bandwidth_window_ms: window(&[Bandwidth], logs.bandwidth_window_ms).filter(|_| windowed),
        iops_window_ms: window(&[Iops], logs.iops_window_ms).filter(|_| windowed),
        latency_window_ms: logs.window_ms.filter(|_| records(&latencies)),
        histogram_window_ms: window(&[Histogram], logs.histogram_window_ms),
    }
}

/// Logs an I/O. Out of line: a job without logs, and its code, are not to be weighed down.
#[cold]
#[inline(never)]
fn log(logs: &mut JobLogs, op: &Op, direction: Direction, stamps: Stamps, queued: bool) {
    let io = LoggedIo {
        end_ns: stamps.end_ns,
        submission_ns: 0,
        completion_ns: stamps.end_ns.saturating_sub(stamps.issue_ns),
        offset_bytes: op.offset_bytes,
        length_bytes: op.length_bytes,
        direction: direction as u8,
    };
    let submission_ns = queued.then(|| stamps.issue_ns.saturating_sub(stamps.start_ns));
    if logs.grows_at(stamps.end_ns) {
        // A chunk of many entries begins, or a window of at least a millisecond is over.
        unsealed(|| logs.record(io, submission_ns));
    } else {
        logs.record(io, submission_ns);
    }
}

fn latency(with_histogram: bool) -> Latency {
    if with_histogram { Latency::with_histogram() } else { Latency::default() }
}

fn forget(latency: &mut Latency) {
    latency.running = Default::default();
    latency.histogram.clear();
}
