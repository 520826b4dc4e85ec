//! The statistics of one worker, kept in plain local memory.
//!
//! Invariant: recording shares nothing and allocates nothing, except that logs are handed over by whole blocks.
//! Histograms and logs that the job does not request do not exist.

use fiord_plan::{Barriers, Direction, EngineDescriptor, Job, Logs, Op, PerDirection, SteadyMeasure};
use fiord_stats::{DirectionStats, JobStats, Latency, LatencyDistribution, Usage};
use fiord_sys::thread;

use super::block_tracker::BlockTracker;
use super::logging::Logging;
use super::per_io::{PerIo, PriorityTables};
use super::stamps::Stamps;
use super::tally::{Note, Noted, Tallies};
use crate::live::{Counters, Live};
use crate::log_sink::LogSink;

/// A time that has passed on every clock.
pub(super) const NOW: u64 = 0;

/// The statistics of one worker while it runs.
///
/// The loop notes each I/O in a tally. `flush` adds the noted I/Os to the statistics: when a tally is full, every
/// millisecond, and before every snapshot.
///
/// A synchronous engine issues an I/O when it is generated, so its completion latency equals its total latency: it is
/// recorded once, and `publish` derives the rest.
pub(crate) struct Recorder<'a> {
    /// Boxed: they are large, and every move would deepen the worker's stack.
    pub stats: Box<JobStats>,
    /// When the loop has to do something else before the next I/O, on its clock: `NOW` after work that is not an I/O, since the
    /// clock has to be read again then. The loop compares with this anyway.
    pub due_ns: u64,
    live: &'a Live,
    /// What had been done when the statistics began: other threads see every I/O of the worker.
    before: Counters,
    tallies: Tallies,
    /// Whether I/Os are issued later than they are generated.
    queued: bool,
    ends_at_once: bool,
    submission: bool,
    completion: bool,
    total: bool,
    total_percentiles: bool,
    /// Which directions have intended starts.
    response: PerDirection<bool>,
    /// Whether other threads see the latencies.
    shows_latency: bool,
    /// What is recorded of each I/O alone, if anything is.
    per_io: Option<Box<PerIo>>,
    /// The lifetimes of blocks, if they are recorded.
    pub blocks: Option<Box<BlockTracker>>,
    /// The priority of the job, as the kernel packs it.
    priority: u16,
    /// The thread's resource usage when measuring began.
    used_before: thread::Usage,
}

impl<'a> Recorder<'a> {
    pub(crate) fn new(job: &Job, live: &'a Live) -> Recorder<'a> {
        let measure = &job.measure;
        let mut stats = Box::<JobStats>::default();
        let completion = measure.completion && measure.completion_percentiles;
        let total = measure.total && measure.total_percentiles;
        let is_used = |direction: Direction| {
            let reads_back = direction == Direction::Read && job.verification.is_some();
            reads_back || job.issues(direction)
        };
        // As in fio, total latencies if those have percentiles.
        let priorities = PriorityTables::new(job, is_used, total, completion || total);
        let priorities = priorities.filter(|_| measure.completion || total);
        for used in Direction::ALL.into_iter().filter(|direction| is_used(*direction)) {
            let direction = &mut stats.directions[used.index()];
            direction.submission = latency(measure.submission && measure.submission_percentiles);
            direction.completion = latency(completion || total);
            direction.total = latency(total);
        }
        let response = Direction::ALL
            .map(|direction| measure.total && job.issues(direction) && job.pace.has_rate(direction));
        for direction in Direction::ALL.into_iter().filter(|direction| response[direction.index()]) {
            stats.directions[direction.index()].response = Latency::with_histogram();
        }
        stats.sync.latency = latency(job.access.barriers != Barriers::default() || job.replay.is_some());
        Recorder {
            stats,
            due_ns: u64::MAX,
            live,
            before: live.counters(),
            tallies: Tallies::starting_at(live.counters().ios),
            queued: false,
            ends_at_once: false,
            submission: measure.submission,
            completion: measure.completion,
            total: measure.total,
            total_percentiles: total,
            response,
            shows_latency: job
                .steady
                .is_some_and(|steady| steady.criterion.measure == SteadyMeasure::Latency),
            per_io: priorities.map(|tables| Box::new(PerIo { priorities: Some(tables), ..PerIo::default() })),
            blocks: None,
            priority: job.io_priorities.values.first().copied().unwrap_or(0),
            used_before: thread::Usage::default(),
        }
    }

    /// Logs I/Os as planned, to this receiver.
    pub(crate) fn log_to(&mut self, plan: &Logs, sink: Box<dyn LogSink>) {
        self.per_io.get_or_insert_default().logs = Some(Logging::new(plan, sink));
    }

    #[inline]
    fn logs(&mut self) -> Option<&mut Logging> {
        self.per_io.as_mut()?.logs.as_mut()
    }

    /// Prepares for a queued engine; with `ends_at_once`, I/Os that are submitted together complete together.
    pub(crate) fn expect_queue(&mut self, ends_at_once: bool) {
        self.queued = true;
        self.ends_at_once = ends_at_once;
    }

    /// Prepares for a pool of threads, which submit nothing: an I/O begins when one of them takes it.
    pub(crate) fn expect_pool(&mut self) {
        self.submission = false;
    }

    /// Records an I/O that completed in full; `op` may be its rest.
    #[inline(always)]
    pub(crate) fn timed(&mut self, op: &Op, stamps: Stamps) {
        let Some(direction) = op.action.direction() else { return self.synced(stamps.completion_ns()) };
        if let Some(per_io) = &mut self.per_io {
            // A call out of line takes them from the stack: it gets a copy, so that other I/Os store none.
            let Stamps { start_ns, issue_ns, end_ns } = stamps;
            per_io.record(op, direction, Stamps { start_ns, issue_ns, end_ns }, self.queued);
            self.due_ns = NOW;
        }
        // At once: what a queue that stands still has done is seen by others.
        let number = self.live.completed(direction, 1, op.whole_bytes());
        match self.tallies.note(direction, number, stamps) {
            Note::Taken => {}
            Note::Full => {
                self.flush_tally(direction, number + 1);
                self.due_ns = NOW;
            }
            Note::TooLong => {
                self.record_long(direction, number, (stamps.submission_ns(), stamps.completion_ns()));
            }
        }
    }

    /// Records the response latency of an I/O that completed in full, if its direction has a rate. Not by a tally: a rate
    /// leaves the time. It is recorded before the I/O itself is.
    #[inline]
    pub(crate) fn responded(&mut self, direction: Direction, response_ns: u64) {
        if self.response[direction.index()] {
            self.stats.directions[direction.index()].response.record(response_ns);
            if let Some(per_io) = &mut self.per_io {
                per_io.response_ns = Some(response_ns);
            }
        }
    }

    /// The same for a job without a clock.
    #[inline]
    pub(crate) fn counted(&mut self, op: &Op) {
        match op.action.direction() {
            Some(direction) => self.count(direction, op.whole_bytes()),
            None => self.stats.sync.ios += 1,
        }
    }

    /// Counts an I/O without a latency.
    #[inline]
    fn count(&mut self, direction: Direction, bytes: u64) {
        let number = self.live.ios(direction);
        if !self.tallies.is_empty(direction, number) {
            self.flush_tally(direction, number);
        }
        self.live.completed(direction, 1, bytes);
        self.tallies.skip_to(direction, number + 1);
    }

    /// Counts an I/O that failed after a part was done: `rest` is what remained.
    pub(crate) fn count_partial(&mut self, rest: &Op) {
        if let (Some(direction), 1.., true) =
            (rest.action.direction(), rest.buffer_offset_bytes, rest.purpose.rules().is_measured)
        {
            self.count(direction, rest.buffer_offset_bytes);
        }
    }

    /// Counts a transfer that was short; its rest follows.
    pub(crate) fn count_short(&mut self, op: &Op) {
        if let (Some(direction), true) = (op.action.direction(), op.purpose.rules().is_measured) {
            self.stats.directions[direction.index()].short_ios += 1;
        }
    }

    #[inline(never)]
    fn synced(&mut self, completion_ns: u64) {
        self.due_ns = NOW;
        self.stats.sync.ios += 1;
        self.stats.sync.latency.record(completion_ns);
    }

    /// Adds everything noted to the statistics.
    pub(crate) fn flush(&mut self) {
        let done = self.live.counters();
        for direction in Direction::ALL {
            self.flush_tally(direction, done.ios[direction.index()]);
        }
        for (index, stats) in self.stats.directions.iter_mut().enumerate() {
            stats.ios = done.ios[index] - self.before.ios[index];
            stats.bytes = done.bytes[index] - self.before.bytes[index];
        }
    }

    /// Adds the I/Os of a direction that come before this number.
    #[inline(never)]
    fn flush_tally(&mut self, direction: Direction, number: u64) {
        let Noted { submission_ns, completion_ns } = self.tallies.take(direction, number);
        let JobStats { directions, distribution, .. } = &mut *self.stats;
        let stats = &mut directions[direction.index()];
        stats.completion.record_all(completion_ns, |ns, bin| distribution.record(ns, bin));
        if self.queued && self.submission {
            stats.submission.record_all(submission_ns, |_, _| ());
        }
        if self.queued && self.total {
            stats.total.record_sums(submission_ns, completion_ns);
        }
        if self.shows_latency {
            let sum = |values: &[u32]| values.iter().map(|ns| u64::from(*ns)).sum::<u64>();
            let submission_ns = if self.queued { sum(submission_ns) } else { 0 };
            self.live.add_latencies(completion_ns.len() as u64, sum(completion_ns) + submission_ns);
        }
    }

    /// Records an I/O that is too long for a tally.
    #[cold]
    fn record_long(&mut self, direction: Direction, number: u64, (submission_ns, completion_ns): (u64, u64)) {
        self.due_ns = NOW;
        self.flush_tally(direction, number);
        self.tallies.skip_to(direction, number + 1);
        let total_ns = submission_ns + completion_ns;
        let stats = &mut self.stats.directions[direction.index()];
        let bin = stats.completion.record(completion_ns);
        self.stats.distribution.record(completion_ns, bin);
        if self.queued && self.submission {
            stats.submission.record(submission_ns);
        }
        if self.queued && self.total {
            stats.total.record(total_ns);
        }
        if self.shows_latency {
            self.live.add_latencies(1, total_ns);
        }
    }

    /// Starts measuring at `now_ns` on the loop's clock, which is the zero of the logs.
    pub(crate) fn begin(&mut self, now_ns: u64) {
        self.used_before = thread::usage().unwrap_or_default();
        if let Some(logs) = self.logs() {
            logs.begin(now_ns);
        }
    }

    /// Starts over, at another queue depth; the logs continue.
    pub(crate) fn restart(&mut self) {
        self.reset();
        self.used_before = thread::usage().unwrap_or_default();
    }

    /// How long the worker has to wait for its logs to be written, before it tries again.
    #[inline]
    pub(crate) fn log_wait_ns(&mut self, now_ns: u64) -> Option<u64> {
        self.logs().filter(|logs| logs.is_behind())?.catch_up(now_ns)
    }

    /// Hands over the rest of the logs; the run ended at `end_ns` on the loop's clock. Returns how long the worker
    /// waited for them to be written.
    pub(crate) fn finish_logs(&mut self, end_ns: u64) -> u64 {
        self.per_io.as_mut().and_then(|per_io| per_io.logs.take()).map_or(0, |logs| logs.finish(end_ns))
    }

    /// A copy of the statistics so far, for snapshots. Allocates.
    pub(crate) fn publish(&mut self, engine: &EngineDescriptor) -> JobStats {
        self.flush();
        let mut stats = JobStats::clone(&self.stats);
        self.complete(&mut stats, engine);
        stats
    }

    /// The final statistics, with the resources used by other `threads` on its behalf. Moves them out, since thousands of workers end at once.
    pub(crate) fn conclude(&mut self, engine: &EngineDescriptor, threads: &thread::Usage) -> Box<JobStats> {
        self.flush();
        let mut stats = std::mem::take(&mut self.stats);
        self.complete(&mut stats, engine);
        stats.usage = self.usage(threads);
        stats
    }

    /// Adds the derived statistics.
    fn complete(&self, stats: &mut JobStats, engine: &EngineDescriptor) {
        if !self.queued {
            self.complete_for_sync(stats, engine.can_queue());
        }
        if self.ends_at_once {
            stats.complete = stats.submit;
        }
        if !self.completion {
            stats.directions.iter_mut().for_each(|direction| direction.completion = Latency::default());
            // The distribution covers completion latencies.
            stats.distribution = LatencyDistribution::default();
        }
        stats.directions.iter_mut().for_each(|direction| direction.priority = self.priority);
        if let Some(tables) = self.per_io.as_ref().and_then(|per_io| per_io.priorities.as_ref()) {
            tables.publish(stats);
        }
        stats.blocks = self.blocks.as_ref().map(|blocks| blocks.lifetimes());
        stats.usage = self.usage(&thread::Usage::default());
    }

    /// The thread's resource usage since `begin`, and that of the `threads` that executed its I/O; the caller adds the
    /// elapsed time.
    fn usage(&self, threads: &thread::Usage) -> Usage {
        let used = thread::usage().unwrap_or_default().since(&self.used_before).plus(threads);
        Usage {
            user_us: used.user_us,
            system_us: used.system_us,
            context_switches: used.switches_voluntary + used.switches_involuntary,
            major_faults: used.faults_major,
            minor_faults: used.faults_minor,
            elapsed_ms: 0,
        }
    }

    /// A synchronous engine has one I/O in flight, each submitted and completed alone. An engine that could queue
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

    /// Clears all statistics at the end of the ramp; keeps the allocations.
    pub(crate) fn reset(&mut self) {
        self.flush();
        for direction in &mut self.stats.directions {
            let DirectionStats { submission, completion, total, response, .. } = direction;
            [submission, completion, total, response].into_iter().for_each(reset);
            (direction.ios, direction.bytes, direction.short_ios, direction.dropped_ios) = (0, 0, 0, 0);
        }
        self.before = self.live.counters();
        if let Some(tables) = self.per_io.as_mut().and_then(|per_io| per_io.priorities.as_mut()) {
            tables.reset();
        }
        self.blocks.iter_mut().for_each(|blocks| blocks.reset());
        reset(&mut self.stats.sync.latency);
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

fn reset(latency: &mut Latency) {
    latency.running = Default::default();
    latency.histogram.clear();
}

#[cfg(test)]
mod tests {
    use fiord_plan::Action;
    use fiord_stats::Moments;

    use super::*;
    use crate::test_jobs::null_job;

    const S: u64 = 1_000_000_000;

    /// Longer than a tally can represent: each of its latencies is recorded all the same, beside those of other I/Os.
    #[test]
    fn latencies_of_minutes_are_recorded_in_full() {
        let live = Live::default();
        let mut recorder = Recorder::new(&null_job("long"), &live);
        recorder.expect_queue(false);
        let op = Op::new(Action::Read, 0, 0, 4096);
        recorder.timed(&op, Stamps { start_ns: 0, issue_ns: S, end_ns: 3 * S });
        recorder.timed(&op, Stamps { start_ns: 3 * S, issue_ns: 10 * S, end_ns: 130 * S });
        recorder.flush();
        let reads = &recorder.stats.directions[Direction::Read.index()];
        let spread = |running: &Moments| (running.count, running.min() / S, running.max / S);
        assert_eq!(spread(&reads.submission.running), (2, 1, 7));
        assert_eq!(spread(&reads.completion.running), (2, 2, 120));
        assert_eq!(spread(&reads.total.running), (2, 3, 127));
        assert_eq!((reads.ios, reads.bytes), (2, 8192));
    }

    /// A device that stands still, as one behind a limit does, leaves none of what was done before out of a sample.
    #[test]
    fn others_see_each_io_at_once_and_statistics_begin_anew_after_a_ramp() {
        let live = Live::default();
        let mut recorder = Recorder::new(&null_job("shown"), &live);
        let op = Op::new(Action::Write, 0, 0, 512);
        let write = |recorder: &mut Recorder<'_>, ios: u64| {
            (0..ios).for_each(|_| recorder.timed(&op, Stamps { start_ns: 0, issue_ns: 0, end_ns: 10 }));
            live.counters().ios[Direction::Write.index()]
        };
        assert_eq!(write(&mut recorder, 70), 70);
        recorder.reset();
        assert_eq!(write(&mut recorder, 5), 75);
        recorder.flush();
        let writes = &recorder.stats.directions[Direction::Write.index()];
        assert_eq!((writes.ios, writes.bytes, writes.completion.running.count), (5, 2560, 5));
    }

    /// One that took too long to be noted, and one without a latency, are between others in the same tally.
    #[test]
    fn ios_that_are_not_noted_leave_the_latencies_of_others_as_they_are() {
        let live = Live::default();
        let mut recorder = Recorder::new(&null_job("gaps"), &live);
        let op = Op::new(Action::Write, 0, 0, 512);
        let mut write = |end_ns: u64| recorder.timed(&op, Stamps { start_ns: 0, issue_ns: 0, end_ns });
        (0..10).for_each(|_| write(20));
        write(5_000_000_000);
        (0..3).for_each(|_| write(30));
        recorder.counted(&op);
        recorder.counted(&op);
        (0..100).for_each(|_| recorder.timed(&op, Stamps { start_ns: 0, issue_ns: 0, end_ns: 40 }));
        recorder.flush();
        let writes = &recorder.stats.directions[Direction::Write.index()];
        let running = &writes.completion.running;
        assert_eq!((writes.ios, running.count, running.min, running.max), (116, 114, 20, 5_000_000_000));
        assert_eq!(running.sum, 10 * 20 + 5_000_000_000 + 3 * 30 + 100 * 40);
    }
}
