//! A job's logs over time: every I/O, or figures of windows, and histograms of windows.
//!
//! Invariant: times are nanoseconds or milliseconds since the log's zero and never decrease within a log. A log keeps
//! one block of entries; whoever records takes the block when it is full, and no entry is ever copied.

mod window;

use std::num::NonZeroU64;

pub use window::{FigureWindows, HistogramWindow, HistogramWindows, WindowEntry, WindowFigure};

/// What is logged; a log whose window is `None` was not requested. Lengths are at least 1 ms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogSettings {
    /// Every I/O has an entry.
    pub every_io: bool,
    /// I/Os of a block.
    pub block_ios: usize,
    /// Window of the bandwidth.
    pub bandwidth_window_ms: Option<u64>,
    /// Window of the I/Os per second.
    pub iops_window_ms: Option<u64>,
    /// Window of the latencies.
    pub latency_window_ms: Option<u64>,
    /// Whether response latencies are among the latencies with windows.
    pub responses: bool,
    /// Window of the histogram of completion latencies.
    pub histogram_window_ms: Option<u64>,
    /// Window of the histogram of response latencies.
    pub response_histogram_window_ms: Option<u64>,
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
    /// Response latency, if its direction has a rate; one of 0 ns counts as 1.
    pub response_ns: Option<NonZeroU64>,
    /// Its offset in its file, in bytes.
    pub offset_bytes: u64,
    /// Its length in bytes.
    pub length_bytes: u64,
    /// Read, write or trim, as an index of [`crate::job::DIRECTIONS`].
    pub direction: u8,
    /// Its priority as the kernel packs it, if it is not the job's.
    pub priority: Option<u16>,
}

impl LoggedIo {
    /// Total latency.
    pub fn total_ns(&self) -> u64 {
        self.submission_ns + self.completion_ns
    }
}

/// Entries of one job's logs, in order: a block of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogEntries {
    /// The time at the log's zero by the clock of its times, in milliseconds; 0 if times count from the run's start.
    pub zero_ms: u64,
    /// Whether submission latencies exist: a synchronous engine has none.
    pub has_submission: bool,
    /// Every I/O, if requested.
    pub ios: Vec<LoggedIo>,
    /// KiB/s.
    pub bandwidth: Vec<WindowEntry>,
    /// I/Os per second.
    pub iops: Vec<WindowEntry>,
    /// Submission latencies in nanoseconds.
    pub submission: Vec<WindowEntry>,
    /// Completion latencies in nanoseconds.
    pub completion: Vec<WindowEntry>,
    /// Total latencies in nanoseconds.
    pub total: Vec<WindowEntry>,
    /// Response latencies in nanoseconds.
    pub response: Vec<WindowEntry>,
    /// Histograms of completion latencies.
    pub histograms: Vec<HistogramWindow>,
    /// Histograms of response latencies.
    pub response_histograms: Vec<HistogramWindow>,
}

impl LogEntries {
    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        let has_histogram = !self.histograms.is_empty() || !self.response_histograms.is_empty();
        self.ios.is_empty() && !has_histogram && self.windows().iter().all(|list| list.is_empty())
    }

    /// Discards all entries and keeps their space.
    pub fn clear(&mut self) {
        self.ios.clear();
        self.histograms.clear();
        self.response_histograms.clear();
        let LogEntries { bandwidth, iops, submission, completion, total, response, .. } = self;
        [bandwidth, iops, submission, completion, total, response].into_iter().for_each(Vec::clear);
    }

    /// The windows of all figures.
    fn windows(&self) -> [&[WindowEntry]; 6] {
        [&self.bandwidth, &self.iops, &self.submission, &self.completion, &self.total, &self.response]
    }
}

/// Windows of one figure, or histograms, that fill a block.
const BLOCK_WINDOWS: usize = 4096;
const BLOCK_HISTOGRAMS: usize = 64;

/// Closed windows wait no longer than this for their block to be full.
const WINDOWS_WAIT_NS: u64 = 1_000_000_000;

/// The logs of one job while it records.
#[derive(Clone, Debug, Default)]
pub struct JobLogs {
    zero_ms: u64,
    has_submission: bool,
    /// Whether the zero was set; what is recorded before is not kept.
    has_begun: bool,
    ios: Option<Vec<LoggedIo>>,
    bandwidth: Option<FigureWindows>,
    iops: Option<FigureWindows>,
    submission: Option<FigureWindows>,
    completion: Option<FigureWindows>,
    total: Option<FigureWindows>,
    response: Option<FigureWindows>,
    histograms: Option<HistogramWindows>,
    response_histograms: Option<HistogramWindows>,
    settings: LogSettings,
    zero_ns: u64,
    /// When the first of the open windows ends, since the log's zero.
    open_until_ns: u64,
    /// When entries were last taken, since the log's zero.
    taken_at_ns: u64,
}

impl JobLogs {
    /// Empty logs, with space for the first block.
    pub fn new(settings: LogSettings) -> JobLogs {
        let windows = |length_ms: Option<u64>, measured| length_ms.map(|ms| FigureWindows::new(ms, measured));
        let latency = || windows(settings.latency_window_ms, WindowFigure::Value);
        let mut logs = JobLogs {
            ios: settings.every_io.then(|| Vec::with_capacity(settings.block_ios)),
            bandwidth: windows(settings.bandwidth_window_ms, WindowFigure::KibPerSecond),
            iops: windows(settings.iops_window_ms, WindowFigure::PerSecond),
            submission: latency(),
            completion: latency(),
            total: latency(),
            response: latency().filter(|_| settings.responses),
            histograms: settings.histogram_window_ms.map(HistogramWindows::new),
            response_histograms: settings.response_histogram_window_ms.map(HistogramWindows::new),
            settings,
            ..JobLogs::default()
        };
        logs.open_until_ns = logs.first_end_ns();
        logs
    }

    /// Sets the log's zero to `now_ns` on the worker's clock and discards everything before. `zero_ms` is the current
    /// time by the clock of the logged times.
    pub fn begin(&mut self, now_ns: u64, zero_ms: u64) {
        *self = JobLogs { zero_ns: now_ns, zero_ms, has_begun: true, ..JobLogs::new(self.settings) };
    }

    /// Whether the next I/O, ending at `end_ns` on the worker's clock, allocates or needs a new block: the block of
    /// I/Os is full, or windows close.
    #[inline]
    pub fn grows_at(&self, end_ns: u64) -> bool {
        end_ns.saturating_sub(self.zero_ns) >= self.open_until_ns
            || self.ios.as_ref().is_some_and(|ios| ios.len() == ios.capacity())
    }

    /// Whether entries are to be taken before the next I/O, which ends at `end_ns` on the worker's clock.
    pub fn is_full_at(&self, end_ns: u64) -> bool {
        let is_full = |windows: &FigureWindows| windows.closed().len() >= BLOCK_WINDOWS;
        let histograms = self.histograms().map(|histograms| histograms.closed().len()).max().unwrap_or(0);
        let some_closed = histograms > 0 || self.figures().any(|windows| !windows.closed().is_empty());
        let since_ns = end_ns.saturating_sub(self.zero_ns).saturating_sub(self.taken_at_ns);
        self.ios.as_ref().is_some_and(|ios| ios.len() >= self.settings.block_ios)
            || histograms >= BLOCK_HISTOGRAMS
            || self.figures().any(is_full)
            || some_closed && since_ns >= WINDOWS_WAIT_NS
    }

    /// Whether what is recorded is kept: before the log's zero is set it is not.
    pub fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Takes all entries since the last call, at `now_ns` on the worker's clock. Their space is replaced by that of
    /// `spare`, which is empty.
    pub fn take(&mut self, now_ns: u64, spare: LogEntries) -> LogEntries {
        self.taken_at_ns = now_ns.saturating_sub(self.zero_ns);
        let mut taken = LogEntries { zero_ms: self.zero_ms, has_submission: self.has_submission, ..spare };
        if let Some(ios) = &mut self.ios {
            std::mem::swap(ios, &mut taken.ios);
            ios.reserve_exact(self.settings.block_ios);
        }
        let figures = [
            (&mut self.bandwidth, &mut taken.bandwidth),
            (&mut self.iops, &mut taken.iops),
            (&mut self.submission, &mut taken.submission),
            (&mut self.completion, &mut taken.completion),
            (&mut self.total, &mut taken.total),
            (&mut self.response, &mut taken.response),
        ];
        for (windows, taken) in figures {
            if let Some(windows) = windows {
                windows.take_closed(taken);
            }
        }
        if let Some(histograms) = &mut self.histograms {
            histograms.take_closed(&mut taken.histograms);
        }
        if let Some(histograms) = &mut self.response_histograms {
            histograms.take_closed(&mut taken.response_histograms);
        }
        taken
    }

    /// Discards the entries so far and keeps their space.
    pub fn discard(&mut self) {
        if let Some(ios) = &mut self.ios {
            ios.clear();
        }
        self.histograms_mut().for_each(HistogramWindows::discard_closed);
        self.figures_mut().for_each(FigureWindows::discard_closed);
    }

    /// The windows of all figures that are recorded.
    fn figures(&self) -> impl Iterator<Item = &FigureWindows> {
        let latencies = [&self.submission, &self.completion, &self.total, &self.response];
        [&self.bandwidth, &self.iops].into_iter().chain(latencies).flatten()
    }

    fn figures_mut(&mut self) -> impl Iterator<Item = &mut FigureWindows> {
        let JobLogs { bandwidth, iops, submission, completion, total, response, .. } = self;
        [bandwidth, iops, submission, completion, total, response].into_iter().flatten()
    }

    /// The histograms that are recorded.
    fn histograms(&self) -> impl Iterator<Item = &HistogramWindows> {
        [&self.histograms, &self.response_histograms].into_iter().flatten()
    }

    fn histograms_mut(&mut self) -> impl Iterator<Item = &mut HistogramWindows> {
        [&mut self.histograms, &mut self.response_histograms].into_iter().flatten()
    }

    /// When the first of the open windows ends; never, if there are none. Those of submission latencies end with
    /// those of completion latencies, if at all.
    fn first_end_ns(&self) -> u64 {
        let figures = [&self.bandwidth, &self.iops, &self.completion, &self.total, &self.response];
        let ends_ns = figures.into_iter().flatten().map(FigureWindows::open_until_ns);
        let histograms_ns = self.histograms().map(HistogramWindows::open_until_ns);
        ends_ns.chain(histograms_ns).min().unwrap_or(u64::MAX)
    }

    /// Logs an I/O that ended at `end_ns` on the worker's clock. `submission_ns` is `None` for an engine without one.
    pub fn record(&mut self, mut io: LoggedIo, submission_ns: Option<u64>) {
        io.end_ns = io.end_ns.saturating_sub(self.zero_ns);
        io.submission_ns = submission_ns.unwrap_or(0);
        self.has_submission |= submission_ns.is_some();
        let record = |windows: &mut Option<FigureWindows>, value: u64| {
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
        match (&mut self.response, io.response_ns) {
            (Some(windows), Some(ns)) => windows.record(io.direction, io.end_ns, ns.get()),
            // Its windows end with the others, whichever I/O is the first after their end.
            (Some(windows), None) => windows.advance(io.end_ns),
            (None, _) => {}
        }
        if let Some(histograms) = &mut self.histograms {
            histograms.record(io.direction, io.end_ns, io.completion_ns, io.length_bytes);
        }
        match (&mut self.response_histograms, io.response_ns) {
            (Some(histograms), Some(ns)) => {
                histograms.record(io.direction, io.end_ns, ns.get(), io.length_bytes);
            }
            (Some(histograms), None) => histograms.advance(io.end_ns),
            (None, _) => {}
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
        self.figures_mut().for_each(|windows| windows.finish(end_ns));
        self.histograms_mut().for_each(|histograms| histograms.finish(end_ns));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERY_IO: LogSettings = LogSettings {
        every_io: true,
        block_ios: 100,
        bandwidth_window_ms: None,
        iops_window_ms: None,
        latency_window_ms: None,
        responses: false,
        histogram_window_ms: None,
        response_histogram_window_ms: None,
    };

    fn io(end_ns: u64) -> LoggedIo {
        LoggedIo {
            end_ns,
            submission_ns: 0,
            completion_ns: 5,
            response_ns: None,
            offset_bytes: 0,
            length_bytes: 4096,
            direction: 0,
            priority: None,
        }
    }

    fn taken(logs: &mut JobLogs, now_ns: u64) -> LogEntries {
        logs.take(now_ns, LogEntries::default())
    }

    #[test]
    fn beginning_discards_earlier_entries_and_moves_the_zero() {
        let mut logs = JobLogs::new(EVERY_IO);
        logs.record(io(50), None);
        assert!(!logs.has_begun());
        logs.begin(100, 7_000);
        logs.record(io(130), Some(2));
        let taken = taken(&mut logs, 200);
        assert_eq!(taken.ios, [LoggedIo { submission_ns: 2, ..io(30) }]);
        assert_eq!((taken.zero_ms, taken.has_submission, taken.ios[0].total_ns()), (7_000, true, 7));
    }

    #[test]
    fn logs_report_when_they_grow() {
        let mut logs = JobLogs::new(EVERY_IO);
        for number in 0..100 {
            assert!(!logs.grows_at(0) && !logs.is_full_at(0), "{number}");
            logs.record(io(0), None);
        }
        assert!(logs.grows_at(0) && logs.is_full_at(0));

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
    fn entries_are_taken_once_and_in_order_whatever_block_they_are_in() {
        let mut logs = JobLogs::new(LogSettings { histogram_window_ms: Some(1), ..EVERY_IO });
        logs.begin(0, 0);
        let (mut ends_ns, mut counted, mut spare) = (Vec::new(), 0, LogEntries::default());
        for number in 0..1_050 {
            if logs.is_full_at(number * 10_000) {
                let mut block = logs.take(number * 10_000, spare);
                assert_eq!(block.ios.len(), 100);
                ends_ns.extend(block.ios.iter().map(|io| io.end_ns));
                counted += block
                    .histograms
                    .iter()
                    .flat_map(|window| &window.counts)
                    .map(|(_, count)| count)
                    .sum::<u64>();
                block.clear();
                assert!(block.is_empty());
                spare = block;
            }
            logs.record(io(number * 10_000), None);
        }
        logs.finish(20_000_000);
        let last = taken(&mut logs, 20_000_000);
        ends_ns.extend(last.ios.iter().map(|io| io.end_ns));
        counted +=
            last.histograms.iter().flat_map(|window| &window.counts).map(|(_, count)| count).sum::<u64>();
        assert!(ends_ns.iter().copied().eq((0..1_050).map(|number| number * 10_000)));
        assert_eq!(counted, 1_050);
        assert!(taken(&mut logs, 0).is_empty());
    }

    #[test]
    fn closed_windows_are_taken_after_a_second_and_a_short_last_one_is_not_the_only_one() {
        let settings = LogSettings { iops_window_ms: Some(100), ..LogSettings::default() };
        let mut logs = JobLogs::new(settings);
        logs.begin(0, 0);
        for end_ms in [50, 150, 950] {
            assert!(!logs.is_full_at(end_ms * 1_000_000));
            logs.record(io(end_ms * 1_000_000), None);
        }
        assert!(logs.is_full_at(1_010_000_000));
        assert_eq!(taken(&mut logs, 1_010_000_000).iops.len(), 2);
        assert!(!logs.is_full_at(1_020_000_000));
        logs.record(io(1_010_000_000), None);
        assert_eq!(taken(&mut logs, 1_010_000_000).iops.len(), 1);
        logs.finish(1_020_000_000);
        assert!(taken(&mut logs, 1_020_000_000).is_empty(), "others were taken before");
    }

    #[test]
    fn a_ramp_keeps_nothing() {
        let mut logs = JobLogs::new(LogSettings { iops_window_ms: Some(1), ..EVERY_IO });
        for end_ms in 0..100 {
            logs.record(io(end_ms * 1_000_000), None);
        }
        logs.discard();
        assert!(!logs.is_full_at(100_000_000));
        assert!(taken(&mut logs, 0).is_empty());
    }

    #[test]
    fn windows_of_responses_end_in_time_whatever_is_the_first_io_after_their_end() {
        let mut logs = JobLogs::new(LogSettings {
            latency_window_ms: Some(1),
            responses: true,
            response_histogram_window_ms: Some(1),
            ..LogSettings::default()
        });
        logs.begin(0, 0);
        // Every third I/O is of a direction with a rate.
        for number in 0..3_000 {
            let end_ns = number * 400_000;
            let grows = logs.grows_at(end_ns);
            let before = logs.response.as_ref().unwrap().closed().len();
            let response_ns = NonZeroU64::new(number + 1).filter(|_| number.is_multiple_of(3));
            logs.record(LoggedIo { response_ns, ..io(end_ns) }, None);
            let after = logs.response.as_ref().unwrap().closed().len();
            assert!(grows || after == before, "a window closed unannounced at I/O {number}");
        }
        logs.finish(1_200_000_000);
        let taken = taken(&mut logs, 1_200_000_000);
        let histograms = &taken.response_histograms;
        let counted: u64 = histograms.iter().flat_map(|window| &window.counts).map(|(_, count)| count).sum();
        assert_eq!((taken.response.len(), counted), (1_000, 1_000));
        assert!(taken.ios.is_empty() && taken.histograms.is_empty());
    }

    #[test]
    fn an_engine_without_submission_logs_none() {
        let settings = LogSettings { latency_window_ms: Some(1), ..LogSettings::default() };
        let mut logs = JobLogs::new(settings);
        logs.record(io(10), None);
        logs.finish(1_000_000);
        let taken = taken(&mut logs, 1_000_000);
        assert_eq!((taken.submission.len(), taken.completion.len(), taken.total.len()), (0, 1, 1));
        assert!(!taken.has_submission);
    }
}
