//! What a job logs over time: every I/O, or figures of windows, and histograms of windows.
//!
//! Invariant: times are nanoseconds or milliseconds since the log's zero and never decrease within a log. Room for
//! entries is made a chunk ahead, and no entry is ever copied to make room.

mod chunks;
mod window;

pub use chunks::Chunks;
pub use window::{HistogramWindow, HistogramWindows, Measured, Window, Windows};

/// What is logged; a window of `None` is a log nobody asked for. Lengths are at least 1 ms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogSettings {
    /// Every I/O has an entry.
    pub every_io: bool,
    /// Entries to make room for before the run.
    pub entries_ahead: usize,
    /// Window of the bandwidth.
    pub bandwidth_window_ms: Option<u64>,
    /// Window of the I/Os per second.
    pub iops_window_ms: Option<u64>,
    /// Window of the latencies.
    pub latency_window_ms: Option<u64>,
    /// Window of the histogram of completion latencies.
    pub histogram_window_ms: Option<u64>,
}

/// One I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoggedIo {
    /// When it ended, since the log's zero.
    pub end_ns: u64,
    /// Submission latency; zero where the engine has none.
    pub submission_ns: u64,
    /// Completion latency.
    pub completion_ns: u64,
    /// Where in its file.
    pub offset_bytes: u64,
    /// How much.
    pub length_bytes: u64,
    /// Read, write or trim, as an index of [`crate::DIRECTIONS`].
    pub direction: u8,
}

impl LoggedIo {
    /// Total latency.
    pub fn total_ns(&self) -> u64 {
        self.submission_ns + self.completion_ns
    }
}

/// The logs of one job.
#[derive(Clone, Debug, Default)]
pub struct JobLogs {
    /// What the clock of the log's times showed at its zero, in milliseconds; 0 when times count from the run's start.
    pub zero_ms: u64,
    /// Whether submission latencies exist: a synchronous engine has none.
    pub has_submission: bool,
    /// Every I/O, when that is wanted.
    pub ios: Option<Chunks<LoggedIo>>,
    /// KiB/s.
    pub bandwidth: Option<Windows>,
    /// I/Os per second.
    pub iops: Option<Windows>,
    /// Submission latencies in nanoseconds.
    pub submission: Option<Windows>,
    /// Completion latencies in nanoseconds.
    pub completion: Option<Windows>,
    /// Total latencies in nanoseconds.
    pub total: Option<Windows>,
    /// Histograms of completion latencies.
    pub histograms: Option<HistogramWindows>,
    settings: LogSettings,
    zero_ns: u64,
    /// When the first of the open windows ends, since the log's zero.
    open_until_ns: u64,
}

impl JobLogs {
    /// Empty logs, with room for what comes first.
    pub fn new(settings: LogSettings) -> JobLogs {
        let windows = |length_ms: Option<u64>, measured| length_ms.map(|ms| Windows::new(ms, measured));
        let latency = || windows(settings.latency_window_ms, Measured::Value);
        let mut logs = JobLogs {
            zero_ms: 0,
            has_submission: false,
            ios: settings.every_io.then(|| Chunks::with_room_for(settings.entries_ahead)),
            bandwidth: windows(settings.bandwidth_window_ms, Measured::KibPerSecond),
            iops: windows(settings.iops_window_ms, Measured::PerSecond),
            submission: latency(),
            completion: latency(),
            total: latency(),
            histograms: settings.histogram_window_ms.map(HistogramWindows::new),
            settings,
            zero_ns: 0,
            open_until_ns: 0,
        };
        logs.open_until_ns = logs.first_end_ns();
        logs
    }

    /// The log's zero is `now_ns` on the worker's clock; all before is forgotten. `zero_ms` is what the clock the
    /// times are told in shows now.
    pub fn begin(&mut self, now_ns: u64, zero_ms: u64) {
        *self = JobLogs { zero_ns: now_ns, zero_ms, ..JobLogs::new(self.settings) };
    }

    /// Whether logging an I/O that ended at `end_ns` on the worker's clock allocates: a chunk begins, or windows close.
    #[inline]
    pub fn grows_at(&self, end_ns: u64) -> bool {
        end_ns.saturating_sub(self.zero_ns) >= self.open_until_ns
            || self.ios.as_ref().is_some_and(Chunks::is_full)
    }

    /// When the first of the open windows ends; never, when there are none. Those of submission latencies end with
    /// those of completion latencies, if at all.
    fn first_end_ns(&self) -> u64 {
        let figures = [&self.bandwidth, &self.iops, &self.completion, &self.total];
        let ends_ns = figures.into_iter().flatten().map(Windows::open_until_ns);
        let histograms_ns = self.histograms.iter().map(HistogramWindows::open_until_ns);
        ends_ns.chain(histograms_ns).min().unwrap_or(u64::MAX)
    }

    /// Logs an I/O that ended at `end_ns` on the worker's clock. `submission_ns` is `None` for an engine without one.
    pub fn record(&mut self, mut io: LoggedIo, submission_ns: Option<u64>) {
        io.end_ns = io.end_ns.saturating_sub(self.zero_ns);
        io.submission_ns = submission_ns.unwrap_or(0);
        self.has_submission |= submission_ns.is_some();
        let record = |windows: &mut Option<Windows>, value: u64| {
            if let Some(windows) = windows {
                windows.record(io.direction, io.end_ns, value);
            }
        };
        record(&mut self.bandwidth, io.length_bytes);
        record(&mut self.iops, 1);
        record(&mut self.completion, io.completion_ns);
        record(&mut self.total, io.total_ns());
        if submission_ns.is_some() {
            record(&mut self.submission, io.submission_ns);
        }
        if let Some(histograms) = &mut self.histograms {
            histograms.record(io.direction, io.end_ns, io.completion_ns, io.length_bytes);
        }
        if let Some(ios) = &mut self.ios {
            ios.push(io);
        }
        if io.end_ns >= self.open_until_ns {
            self.open_until_ns = self.first_end_ns();
        }
    }

    /// Closes the windows that are open: the run ended at `end_ns` on the worker's clock.
    pub fn finish(&mut self, end_ns: u64) {
        let end_ns = end_ns.saturating_sub(self.zero_ns);
        let all = [
            &mut self.bandwidth,
            &mut self.iops,
            &mut self.submission,
            &mut self.completion,
            &mut self.total,
        ];
        all.into_iter().flatten().for_each(|windows| windows.finish(end_ns));
        if let Some(histograms) = &mut self.histograms {
            histograms.finish(end_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn io(end_ns: u64) -> LoggedIo {
        LoggedIo {
            end_ns,
            submission_ns: 0,
            completion_ns: 5,
            offset_bytes: 0,
            length_bytes: 4096,
            direction: 0,
        }
    }

    #[test]
    fn beginning_forgets_what_came_before_and_moves_the_zero() {
        let mut logs = JobLogs::new(LogSettings { every_io: true, ..LogSettings::default() });
        logs.record(io(50), None);
        logs.begin(100, 7_000);
        logs.record(io(130), Some(2));
        let logged: Vec<LoggedIo> = logs.ios.iter().flat_map(|ios| ios.iter()).copied().collect();
        assert_eq!(logged, [LoggedIo { submission_ns: 2, ..io(30) }]);
        assert_eq!((logs.zero_ms, logs.has_submission, logged[0].total_ns()), (7_000, true, 7));
    }

    #[test]
    fn logs_say_when_they_grow() {
        let mut logs = JobLogs::new(LogSettings { every_io: true, ..LogSettings::default() });
        let room = (0..).find(|_| {
            let grows = logs.grows_at(0);
            logs.record(io(0), None);
            grows
        });
        assert_eq!(room, Some(65_536));

        let mut logs = JobLogs::new(LogSettings {
            iops_window_ms: Some(2),
            histogram_window_ms: Some(3),
            ..LogSettings::default()
        });
        logs.begin(500_000, 0);
        for (end_ms, grows) in
            [(1, false), (2, false), (3, true), (3, false), (4, true), (5, true), (6, false)]
        {
            assert_eq!(logs.grows_at(end_ms * 1_000_000), grows, "{end_ms} ms");
            logs.record(io(end_ms * 1_000_000), None);
        }
    }

    #[test]
    fn an_engine_without_submission_logs_none() {
        let settings = LogSettings { latency_window_ms: Some(1), ..LogSettings::default() };
        let mut logs = JobLogs::new(settings);
        logs.record(io(10), None);
        logs.finish(1_000_000);
        let of = |windows: &Option<Windows>| windows.as_ref().map_or(0, |windows| windows.closed().len());
        assert_eq!((of(&logs.submission), of(&logs.completion), of(&logs.total)), (0, 1, 1));
        assert!(!logs.has_submission);
    }
}
