//! The logs of one worker: a block of entries that is handed over when it is full.
//!
//! Invariant: an entry that was recorded after the ramp is handed over exactly once. A worker whose blocks all wait to be
//! written issues no I/O until one is free, and adds up how long; its memory is bounded.

use std::num::NonZeroU64;

use fiord_plan::{Direction, LogKind, Logs, Op};
use fiord_stats::{JobLogs, LogSettings, LoggedIo};
use fiord_sys::clock;

use super::stamps::Stamps;
use crate::alloc_guard::allow_alloc;
use crate::log_sink::LogSink;

/// How long a worker sleeps before it asks for an empty block again.
const PAUSE_NS: u64 = 200_000;

/// A worker's logs and their receiver.
pub(crate) struct Logging {
    logs: JobLogs,
    sink: Box<dyn LogSink>,
    /// The kernel's number of the clock of the logged times; `None`: they count from the start.
    clock_id: Option<u32>,
    /// Since when there has been no empty block, by the monotonic clock.
    behind_since_ns: Option<u64>,
    /// How long there was none before that.
    waited_ns: u64,
}

impl Logging {
    pub(crate) fn new(plan: &Logs, sink: Box<dyn LogSink>) -> Logging {
        Logging {
            logs: JobLogs::new(settings(plan, sink.block_ios())),
            sink,
            clock_id: plan.clock_id,
            behind_since_ns: None,
            waited_ns: 0,
        }
    }

    /// Starts the logs at `now_ns` on the loop's clock.
    pub(crate) fn begin(&mut self, now_ns: u64) {
        self.logs.begin(now_ns, self.clock_id.map_or(0, clock::read_ms));
    }

    /// Logs an I/O, with its priority if that is not the job's, and its response latency if it has one.
    pub(crate) fn log(
        &mut self,
        op: &Op,
        direction: Direction,
        stamps: Stamps,
        queued: bool,
        (priority, response_ns): (Option<u16>, Option<u64>),
    ) {
        let io = LoggedIo {
            end_ns: stamps.end_ns,
            submission_ns: 0,
            completion_ns: stamps.end_ns.saturating_sub(stamps.issue_ns),
            response_ns: response_ns.map(|ns| NonZeroU64::new(ns).unwrap_or(NonZeroU64::MIN)),
            offset_bytes: op.offset_bytes,
            length_bytes: op.length_bytes,
            direction: direction as u8,
            priority,
        };
        let submission_ns = queued.then(|| stamps.issue_ns.saturating_sub(stamps.start_ns));
        if self.logs.grows_at(stamps.end_ns) {
            // Rare: a block of many entries is full, or a window of at least a millisecond ends.
            allow_alloc(|| {
                self.hand_over(stamps.end_ns);
                self.logs.record(io, submission_ns);
            });
        } else {
            self.logs.record(io, submission_ns);
        }
    }

    /// Whether the worker has to wait for an empty block.
    #[inline]
    pub(crate) fn is_behind(&self) -> bool {
        self.behind_since_ns.is_some()
    }

    /// Tries again to hand over a full block at `now_ns` on the loop's clock. Returns how long to wait before the next
    /// attempt, if it failed.
    #[cold]
    pub(crate) fn catch_up(&mut self, now_ns: u64) -> Option<u64> {
        allow_alloc(|| self.hand_over(now_ns));
        self.is_behind().then_some(PAUSE_NS)
    }

    /// Hands over the block if it is full and another is free.
    fn hand_over(&mut self, now_ns: u64) {
        if !self.logs.is_full_at(now_ns) {
            return;
        }
        if !self.logs.has_begun() {
            return self.logs.discard();
        }
        match self.sink.spare() {
            Some(spare) => {
                self.sink.take(self.logs.take(now_ns, spare));
                self.waited_ns += self.waiting_ns();
                self.behind_since_ns = None;
            }
            None if !self.is_behind() => self.behind_since_ns = Some(clock::monotonic_ns()),
            None => {}
        }
    }

    fn waiting_ns(&self) -> u64 {
        self.behind_since_ns.map_or(0, |since_ns| clock::monotonic_ns().saturating_sub(since_ns))
    }

    /// Hands over what is left; the run ended at `end_ns` on the loop's clock. Returns how long the worker waited for
    /// empty blocks.
    pub(crate) fn finish(mut self, end_ns: u64) -> u64 {
        let waited_ns = self.waited_ns + self.waiting_ns();
        if self.logs.has_begun() {
            self.logs.finish(end_ns);
            let last = self.logs.take(end_ns, Default::default());
            if !last.is_empty() {
                self.sink.take(last);
            }
        }
        waited_ns
    }
}

fn settings(logs: &Logs, block_ios: usize) -> LogSettings {
    use LogKind::{Bandwidth, Completion, Histogram, Iops, Response, ResponseHistogram, Submission, Total};
    let records = |kinds: &[LogKind]| kinds.iter().any(|kind| logs.records(*kind));
    let window = |kinds: &[LogKind], length_ms: u64| records(kinds).then_some(length_ms);
    let windowed = logs.window_ms.is_some();
    let latencies = [Submission, Completion, Total, Response];
    LogSettings {
        every_io: !windowed && (records(&latencies) || records(&[Bandwidth, Iops])),
        block_ios,
        bandwidth_window_ms: window(&[Bandwidth], logs.bandwidth_window_ms).filter(|_| windowed),
        iops_window_ms: window(&[Iops], logs.iops_window_ms).filter(|_| windowed),
        latency_window_ms: logs.window_ms.filter(|_| records(&latencies)),
        responses: records(&[Response]),
        histogram_window_ms: window(&[Histogram], logs.histogram_window_ms),
        response_histogram_window_ms: window(&[ResponseHistogram], logs.histogram_window_ms),
    }
}

#[cfg(test)]
mod tests {
    use fiord_plan::Action;
    use fiord_stats::LogEntries;
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::test_jobs;

    /// A receiver with a number of blocks that never come back.
    struct Slow {
        spares: Arc<Mutex<u32>>,
        taken: Arc<Mutex<Vec<LogEntries>>>,
    }

    impl LogSink for Slow {
        fn block_ios(&self) -> usize {
            10
        }

        fn spare(&mut self) -> Option<LogEntries> {
            let mut spares = self.spares.lock().unwrap();
            *spares = spares.checked_sub(1)?;
            Some(LogEntries::default())
        }

        fn take(&mut self, entries: LogEntries) {
            self.taken.lock().unwrap().push(entries);
        }
    }

    #[test]
    fn a_worker_that_has_no_empty_block_waits_and_loses_nothing() {
        let (spares, taken) = (Arc::new(Mutex::new(1)), Arc::<Mutex<Vec<LogEntries>>>::default());
        let plan = test_jobs::logs(&[LogKind::Bandwidth], None);
        let mut logging =
            Logging::new(&plan, Box::new(Slow { spares: spares.clone(), taken: taken.clone() }));
        let op = Op::new(Action::Read, 0, 0, 512);
        let log = |logging: &mut Logging, end_ns: u64| {
            logging.log(&op, Direction::Read, Stamps::unqueued(0, end_ns), false, (None, None));
        };
        (0..15).for_each(|end_ns| log(&mut logging, end_ns));
        logging.begin(100);
        (100..120).for_each(|end_ns| log(&mut logging, end_ns));
        assert!(!logging.is_behind(), "one block was handed over and the other is full");
        log(&mut logging, 120);
        assert!(logging.is_behind());
        assert_eq!(logging.catch_up(121), Some(PAUSE_NS));
        *spares.lock().unwrap() = 1;
        assert_eq!(logging.catch_up(122), None);
        log(&mut logging, 123);
        assert!(logging.finish(200) > 0, "it waited");
        let ends_ns: Vec<u64> =
            taken.lock().unwrap().iter().flat_map(|block| &block.ios).map(|io| io.end_ns).collect();
        assert!(ends_ns.iter().copied().eq((0..21).chain([23])), "{ends_ns:?}");
    }
}
