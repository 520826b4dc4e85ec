//! Figures of adjacent time windows from the log's zero.
//!
//! Invariant: a window is closed by the first I/O after its end, for all directions at once, so that entries are in
//! order of time; a direction without I/O in a window has no entry.

use crate::capped::Capped;
use crate::histogram::Histogram;

const NS_PER_MS: u64 = 1_000_000;

/// How a window's figure is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowFigure {
    /// The mean of the values recorded, and the largest.
    Value,
    /// The sum of the values per second.
    PerSecond,
    /// The sum of the values, which are bytes, in KiB/s.
    KibPerSecond,
}

/// One direction's figures of one window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowEntry {
    /// End of the window, since the log's zero.
    pub end_ms: u64,
    /// An index of [`crate::job::DIRECTIONS`].
    pub direction: u8,
    /// The mean, or the rate.
    pub average: u64,
    /// The largest value; of a rate, the rate.
    pub maximum: u64,
}

/// Sums of one direction in the open window.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    count: u64,
    sum: u128,
    maximum: u64,
}

/// The time of the open window.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    length_ns: u64,
    start_ns: u64,
}

impl Span {
    fn new(length_ms: u64) -> Span {
        Span { length_ns: length_ms.max(1) * NS_PER_MS, start_ns: 0 }
    }

    fn end_ns(&self) -> u64 {
        self.start_ns + self.length_ns
    }

    /// Advances to the window that contains `at_ns`.
    fn move_to(&mut self, at_ns: u64) {
        self.start_ns = at_ns - at_ns % self.length_ns;
    }
}

/// What is accumulated in the open window, for each direction.
pub trait Accumulator {
    /// What a closed window has for each direction with I/O.
    type Entry;

    /// Whether the entries of a window are exact however short it is, so that the last one is always kept.
    const IS_EXACT_WHEN_SHORT: bool;

    /// Appends the entries of the window, which ended at `end_ns`, and begins the next one.
    fn close(&mut self, span: &Span, end_ns: u64, entries: &mut Vec<Self::Entry>);
}

/// Windows of one log.
#[derive(Clone, Debug)]
pub struct Windows<A: Accumulator> {
    span: Span,
    open: A,
    closed: Vec<A::Entry>,
    /// Whether closed windows were taken.
    has_taken: bool,
}

impl<A: Accumulator> Windows<A> {
    fn of(length_ms: u64, open: A) -> Windows<A> {
        Windows { span: Span::new(length_ms), open, closed: Vec::with_capacity(64), has_taken: false }
    }

    /// Closes the open window if it ends before `at_ns` since the log's zero, or then.
    #[inline]
    pub fn advance(&mut self, at_ns: u64) {
        if at_ns >= self.span.end_ns() {
            self.close(self.span.end_ns());
            self.span.move_to(at_ns);
        }
    }

    /// Ends at `end_ns` since the log's zero. A window cut short is kept if its entries are exact, if at least half of it
    /// has passed, or if there is no other: a rate over less means little.
    pub fn finish(&mut self, end_ns: u64) {
        let end_ns = end_ns.min(self.span.end_ns());
        let passed_ns = end_ns.saturating_sub(self.span.start_ns);
        let is_only = self.closed.is_empty() && !self.has_taken;
        if A::IS_EXACT_WHEN_SHORT || passed_ns >= self.span.length_ns / 2 || is_only {
            self.close(end_ns);
        }
    }

    /// When the open window ends, since the log's zero.
    pub fn open_until_ns(&self) -> u64 {
        self.span.end_ns()
    }

    /// The closed windows that were not taken yet.
    pub fn closed(&self) -> &[A::Entry] {
        &self.closed
    }

    /// Discards the closed windows.
    pub(super) fn discard_closed(&mut self) {
        self.closed.clear();
    }

    /// Moves the closed windows into `taken`, which is empty, and takes over its space.
    pub(super) fn take_closed(&mut self, taken: &mut Vec<A::Entry>) {
        self.has_taken |= !self.closed.is_empty();
        std::mem::swap(&mut self.closed, taken);
    }

    #[cold]
    fn close(&mut self, end_ns: u64) {
        self.open.close(&self.span, end_ns, &mut self.closed);
    }
}

/// One figure of the I/Os of a window.
#[derive(Clone, Debug)]
pub struct FigureSums {
    measured: WindowFigure,
    directions: [Sums; 3],
}

/// Windows of one figure.
pub type FigureWindows = Windows<FigureSums>;

impl FigureWindows {
    /// Windows of `length_ms`.
    pub fn new(length_ms: u64, measured: WindowFigure) -> FigureWindows {
        Windows::of(length_ms, FigureSums { measured, directions: Default::default() })
    }

    /// Adds a value at `at_ns` since the log's zero.
    #[inline]
    pub fn record(&mut self, direction: u8, at_ns: u64, value: u64) {
        self.advance(at_ns);
        let sums = &mut self.open.directions[usize::from(direction)];
        sums.count += 1;
        sums.sum += u128::from(value);
        sums.maximum = sums.maximum.max(value);
    }
}

impl Accumulator for FigureSums {
    type Entry = WindowEntry;

    const IS_EXACT_WHEN_SHORT: bool = false;

    fn close(&mut self, span: &Span, end_ns: u64, entries: &mut Vec<WindowEntry>) {
        let length_ns = u128::from(end_ns.saturating_sub(span.start_ns).max(1));
        let per_second = |sum: u128| u64::capped(sum * 1_000_000_000 / length_ns);
        for (direction, sums) in self.directions.iter_mut().enumerate() {
            let Sums { count, sum, maximum } = std::mem::take(sums);
            if count == 0 {
                continue;
            }
            let (average, maximum) = match self.measured {
                WindowFigure::Value => (u64::capped(sum / u128::from(count)), maximum),
                WindowFigure::PerSecond => (per_second(sum), per_second(sum)),
                WindowFigure::KibPerSecond => (per_second(sum) / 1024, per_second(sum) / 1024),
            };
            let end_ms = rounded_ms(end_ns);
            entries.push(WindowEntry { end_ms, direction: u8::capped(direction), average, maximum });
        }
    }
}

/// Completion latencies of one direction in one window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistogramWindow {
    /// End of the window, since the log's zero.
    pub end_ms: u64,
    /// An index of [`crate::job::DIRECTIONS`].
    pub direction: u8,
    /// Length of the last I/O.
    pub length_bytes: u64,
    /// Bins that counted something, in order, with their counts.
    pub counts: Vec<(u16, u64)>,
}

/// Latencies of a window, and the length of the last I/O.
#[derive(Clone, Debug)]
pub struct WindowHistograms([(Histogram, u64); 3]);

/// Histograms of windows.
pub type HistogramWindows = Windows<WindowHistograms>;

impl HistogramWindows {
    /// Windows of `length_ms`.
    pub fn new(length_ms: u64) -> HistogramWindows {
        Windows::of(length_ms, WindowHistograms([0; 3].map(|_| (Histogram::allocated(), 0))))
    }

    /// Counts a latency at `at_ns` since the log's zero.
    #[inline]
    pub fn record(&mut self, direction: u8, at_ns: u64, latency_ns: u64, length_bytes: u64) {
        self.advance(at_ns);
        let (histogram, length) = &mut self.open.0[usize::from(direction)];
        histogram.record(latency_ns);
        *length = length_bytes;
    }
}

impl Accumulator for WindowHistograms {
    type Entry = HistogramWindow;

    const IS_EXACT_WHEN_SHORT: bool = true;

    /// Allocates once per window, to store only the few bins in use.
    fn close(&mut self, _span: &Span, end_ns: u64, entries: &mut Vec<HistogramWindow>) {
        for (direction, (histogram, length_bytes)) in self.0.iter_mut().enumerate() {
            let used = histogram.bins().iter().enumerate().filter(|(_, count)| **count > 0);
            let counts: Vec<(u16, u64)> = used.map(|(bin, count)| (u16::capped(bin), *count)).collect();
            if counts.is_empty() {
                continue;
            }
            histogram.clear();
            let end_ms = rounded_ms(end_ns);
            let (direction, length_bytes) = (u8::capped(direction), *length_bytes);
            entries.push(HistogramWindow { end_ms, direction, length_bytes, counts });
        }
    }
}

fn rounded_ms(ns: u64) -> u64 {
    (ns + NS_PER_MS / 2) / NS_PER_MS
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = NS_PER_MS;

    #[test]
    fn the_end_of_a_window_is_rounded_to_the_nearest_millisecond() {
        let rounded = [0, MS / 2 - 1, MS / 2, 7 * MS, 8 * MS - 1].map(rounded_ms);
        assert_eq!(rounded, [0, 0, 1, 7, 8]);
    }

    /// (end, direction, average, maximum) of each window.
    fn figures(windows: &FigureWindows) -> Vec<(u64, u8, u64, u64)> {
        windows.closed().iter().map(|w| (w.end_ms, w.direction, w.average, w.maximum)).collect()
    }

    #[test]
    fn values_have_their_mean_and_maximum_by_window_and_direction() {
        let mut windows = FigureWindows::new(100, WindowFigure::Value);
        for (direction, at_ms, value) in [(1, 0, 10), (0, 50, 30), (1, 99, 20), (1, 100, 7), (0, 350, 9)] {
            windows.record(direction, at_ms * MS, value);
        }
        windows.finish(400 * MS);
        assert_eq!(
            figures(&windows),
            [(100, 0, 30, 30), (100, 1, 15, 20), (200, 1, 7, 7), (400, 0, 9, 9)],
            "a window without I/O has no entry"
        );
    }

    // divergence: windows of bandwidth and I/Os per second
    #[test]
    fn rates_are_those_of_their_window() {
        let mut bandwidth = FigureWindows::new(500, WindowFigure::KibPerSecond);
        let mut iops = FigureWindows::new(500, WindowFigure::PerSecond);
        for number in 0..302 {
            let at_ns = number * 1000 * MS / 302;
            bandwidth.record(0, at_ns, 4096);
            iops.record(0, at_ns, 1);
        }
        bandwidth.finish(1000 * MS);
        iops.finish(1000 * MS);
        assert_eq!(figures(&bandwidth), [(500, 0, 1208, 1208), (1000, 0, 1208, 1208)]);
        assert_eq!(figures(&iops), [(500, 0, 302, 302), (1000, 0, 302, 302)]);
    }

    // divergence: the last window of a run
    #[test]
    fn a_last_window_is_kept_from_half_its_length() {
        let ends = |ends_ms: u64| {
            let mut windows = FigureWindows::new(100, WindowFigure::PerSecond);
            [0, 150, 201].iter().for_each(|at_ms| windows.record(0, at_ms * MS, 1));
            windows.finish(ends_ms * MS);
            figures(&windows).last().map(|figures| (figures.0, figures.2))
        };
        assert_eq!(ends(249), Some((200, 10)), "dropped");
        assert_eq!(ends(250), Some((250, 20)), "over the time that has passed");
        assert_eq!(ends(900), Some((300, 10)), "long over");
        let mut only = FigureWindows::new(100, WindowFigure::Value);
        only.record(0, 1, 3);
        only.finish(MS);
        assert_eq!(figures(&only), [(1, 0, 3, 3)], "the only window is kept");
    }

    #[test]
    fn histograms_count_each_latency_once() {
        let mut histograms = HistogramWindows::new(100);
        for (at_ms, latency_ns) in [(0, 5), (99, 5), (100, 9), (120, 200)] {
            histograms.record(1, at_ms * MS, latency_ns, 4096);
        }
        histograms.finish(120 * MS);
        let closed = |end_ms, counts: &[(u16, u64)]| HistogramWindow {
            end_ms,
            direction: 1,
            length_bytes: 4096,
            counts: counts.to_vec(),
        };
        assert_eq!(histograms.closed(), [closed(100, &[(5, 2)]), closed(120, &[(9, 1), (164, 1)])]);
    }
}
