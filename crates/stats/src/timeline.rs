//! What a run did over time: I/Os, bytes and latencies of each window, in a bounded amount of memory.
//!
//! Invariant: windows follow each other without a gap. When there are too many, each two become one, so that the sums over
//! all windows stay the same.

use crate::histogram::{BINS, bin_floor};
use crate::{Histogram, JobStats, Latency};

/// Bins of a histogram that one coarse bin covers: there are four to a power of two.
const FINE_PER_COARSE: usize = 16;
/// Bins of a coarse histogram: 116.
pub const COARSE_BINS: usize = BINS / FINE_PER_COARSE;

/// The most windows of a timeline.
const WINDOWS_MAX: usize = 1024;

/// Counts of latencies, four bins to a power of two: enough for a heat map, and for percentiles within a tenth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoarseHistogram {
    /// The counts, bin 0 first.
    pub counts: [u64; COARSE_BINS],
}

impl Default for CoarseHistogram {
    fn default() -> Self {
        CoarseHistogram { counts: [0; COARSE_BINS] }
    }
}

impl CoarseHistogram {
    /// The smallest latency that a bin counts, in nanoseconds. That of the bin after the last is its upper end.
    pub const fn floor_ns(bin: usize) -> u64 {
        bin_floor(bin * FINE_PER_COARSE)
    }

    /// All latencies counted.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Adds the counts of a histogram; none if it does not count.
    pub fn add(&mut self, histogram: &Histogram) {
        for (coarse, fine) in self.counts.iter_mut().zip(histogram.bins().chunks(FINE_PER_COARSE)) {
            *coarse += fine.iter().sum::<u64>();
        }
    }

    /// Adds the counts of another.
    pub fn merge(&mut self, other: &Self) {
        self.counts.iter_mut().zip(other.counts).for_each(|(count, theirs)| *count += theirs);
    }

    /// An upper bound of this percentile, in nanoseconds: the end of its bin. `None` if nothing was counted.
    pub fn percentile_ns(&self, percent: f64) -> Option<u64> {
        let total = self.total();
        let rank = (percent / 100.0 * total as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        let bin = self.counts.iter().position(|count| {
            seen += count;
            seen >= rank
        })?;
        Some(Self::floor_ns(bin + 1))
    }
}

/// What was done in one direction: so far, or in one window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DirectionProgress {
    /// I/Os completed.
    pub ios: u64,
    /// Bytes transferred.
    pub bytes: u64,
    /// The sum of their latencies in nanoseconds; 0 if latencies are not measured.
    pub latency_ns: u64,
    /// Their latencies; empty if no percentiles are measured.
    pub latencies: CoarseHistogram,
}

impl DirectionProgress {
    fn merge(&mut self, other: &Self) {
        let DirectionProgress { ios, bytes, latency_ns, latencies } = other;
        self.ios += ios;
        self.bytes += bytes;
        self.latency_ns += latency_ns;
        self.latencies.merge(latencies);
    }

    /// What was done since `earlier`. Counts that were reset in between begin at zero.
    fn since(&self, earlier: &Self) -> Self {
        if self.ios < earlier.ios {
            return *self;
        }
        let mut latencies = self.latencies;
        let counts = latencies.counts.iter_mut().zip(earlier.latencies.counts);
        counts.for_each(|(count, before)| *count = count.saturating_sub(before));
        DirectionProgress {
            ios: self.ios - earlier.ios,
            bytes: self.bytes.saturating_sub(earlier.bytes),
            latency_ns: self.latency_ns.saturating_sub(earlier.latency_ns),
            latencies,
        }
    }
}

/// What one or several jobs have done so far, without their ramps: reads, writes, trims.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DetailedProgress {
    /// By direction.
    pub directions: [DirectionProgress; 3],
}

impl DetailedProgress {
    /// That of a job with these statistics. Latencies are completion latencies, or total ones if only those are measured.
    pub fn of(stats: &JobStats) -> DetailedProgress {
        let mut progress = DetailedProgress::default();
        progress.add(stats);
        progress
    }

    /// Adds a job with these statistics.
    pub fn add(&mut self, stats: &JobStats) {
        for (progress, stats) in self.directions.iter_mut().zip(&stats.directions) {
            progress.ios += stats.ios;
            progress.bytes += stats.bytes;
            let kinds = [&stats.completion, &stats.total];
            let sum_ns = |latency: &&Latency| latency.running.sum;
            progress.latency_ns += kinds.iter().map(sum_ns).find(|sum| *sum > 0).unwrap_or(0) as u64;
            let counting = kinds.iter().find(|latency| latency.histogram.is_allocated());
            counting.iter().for_each(|latency| progress.latencies.add(&latency.histogram));
        }
    }

    /// Adds what others have done.
    pub fn merge(&mut self, other: &Self) {
        self.directions.iter_mut().zip(&other.directions).for_each(|(one, theirs)| one.merge(theirs));
    }

    fn since(&self, earlier: &Self) -> Self {
        let [read, write, trim] = &self.directions;
        let [read_before, write_before, trim_before] = &earlier.directions;
        DetailedProgress {
            directions: [read.since(read_before), write.since(write_before), trim.since(trim_before)],
        }
    }
}

/// How the processors were used in a window, in thousandths of the time of those that the program may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessorShares {
    /// In programs.
    pub user: u32,
    /// In the kernel.
    pub system: u32,
    /// Idle while I/O was outstanding.
    pub io_wait: u32,
    /// Used by the hypervisor for other guests.
    pub steal: u32,
}

impl ProcessorShares {
    /// Of two windows of the same length.
    fn mean(&self, other: &Self) -> Self {
        let mean = |one: u32, other: u32| u32::midpoint(one, other);
        ProcessorShares {
            user: mean(self.user, other.user),
            system: mean(self.system, other.system),
            io_wait: mean(self.io_wait, other.io_wait),
            steal: mean(self.steal, other.steal),
        }
    }
}

/// What the machine did in a window, besides the I/O of the jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MachineWindow {
    /// The use of the processors, if the kernel counts it.
    pub processors: Option<ProcessorShares>,
    /// The highest temperature of the machine's zones, in degrees Celsius.
    pub temperature_celsius: Option<i32>,
}

/// One window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimelineWindow {
    /// Its end, in milliseconds since the first job was released. It begins where the one before ends; the first at 0.
    pub end_ms: u64,
    /// What was done in it.
    pub done: DetailedProgress,
    /// The machine in it.
    pub machine: MachineWindow,
}

/// A run over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timeline {
    /// Its windows, in order.
    pub windows: Vec<TimelineWindow>,
}

/// Makes a timeline of what was done until each of several moments.
#[derive(Clone, Debug, Default)]
pub struct TimelineRecorder {
    windows: Vec<TimelineWindow>,
    /// What the last window that is complete ended with.
    before: DetailedProgress,
    /// A window is complete after this many calls, and the calls since the last one was.
    calls_per_window: u32,
    calls: u32,
}

impl TimelineRecorder {
    /// At `at_ms`, all jobs together had done `so_far`. Called at regular intervals.
    pub fn take(&mut self, at_ms: u64, so_far: &DetailedProgress, machine: MachineWindow) {
        self.calls += 1;
        if self.calls < self.calls_per_window.max(1) {
            return;
        }
        self.calls = 0;
        self.push(at_ms, so_far, machine);
        if self.windows.len() >= WINDOWS_MAX {
            self.calls_per_window = self.calls_per_window.max(1) * 2;
            self.windows = self.windows.chunks(2).map(joined).collect();
        }
    }

    /// The timeline of a run that ended at `at_ms` and did `all`. A rest of less than half a window becomes part of the
    /// last one.
    pub fn finish(mut self, at_ms: u64, all: &DetailedProgress) -> Timeline {
        let length_ms = self.windows.first().map_or(0, |first| first.end_ms);
        let rest_ms = at_ms.saturating_sub(self.windows.last().map_or(0, |last| last.end_ms));
        let machine = self.windows.last().map_or_else(MachineWindow::default, |last| last.machine);
        self.push(at_ms, all, machine);
        if rest_ms * 2 < length_ms && self.windows.len() > 1 {
            let last_two = self.windows.split_off(self.windows.len() - 2);
            self.windows.push(joined(&last_two));
        }
        Timeline { windows: self.windows }
    }

    fn push(&mut self, end_ms: u64, so_far: &DetailedProgress, machine: MachineWindow) {
        self.windows.push(TimelineWindow { end_ms, done: so_far.since(&self.before), machine });
        self.before = *so_far;
    }
}

/// One window of up to two.
fn joined(windows: &[TimelineWindow]) -> TimelineWindow {
    let mut all = windows[0];
    for next in &windows[1..] {
        all.end_ms = next.end_ms;
        all.done.merge(&next.done);
        all.machine.processors = match (all.machine.processors, next.machine.processors) {
            (Some(one), Some(other)) => Some(one.mean(&other)),
            (one, other) => one.or(other),
        };
        all.machine.temperature_celsius =
            all.machine.temperature_celsius.max(next.machine.temperature_celsius);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Latency;

    fn stats(latencies_ns: &[u64]) -> JobStats {
        let mut stats = JobStats::default();
        let read = &mut stats.directions[0];
        read.completion = Latency::with_histogram();
        for latency_ns in latencies_ns {
            read.completion.record(*latency_ns);
            read.ios += 1;
            read.bytes += 4096;
        }
        stats
    }

    #[test]
    fn coarse_bins_are_four_to_a_power_of_two() {
        let floors: Vec<u64> = (4..14).map(CoarseHistogram::floor_ns).collect();
        assert_eq!(floors, [64, 80, 96, 112, 128, 160, 192, 224, 256, 320]);
        let progress = DetailedProgress::of(&stats(&[64, 79, 80, 1_000_000, u64::MAX]));
        let read = &progress.directions[0];
        let bins: Vec<(usize, u64)> =
            read.latencies.counts.iter().copied().enumerate().filter(|(_, count)| *count > 0).collect();
        assert_eq!(bins[..2], [(4, 2), (5, 1)]);
        assert_eq!(bins.last(), Some(&(COARSE_BINS - 1, 1)));
        assert_eq!((read.ios, read.bytes, read.latencies.total()), (5, 5 * 4096, 5));
    }

    #[test]
    fn percentiles_are_upper_bounds_within_a_quarter() {
        let latencies_ns: Vec<u64> = (1..=1000).map(|number| number * 1000).collect();
        let coarse = DetailedProgress::of(&stats(&latencies_ns)).directions[0].latencies;
        for percent in [1.0, 50.0, 99.0, 100.0] {
            let (exact, bound) = (percent * 10_000.0, coarse.percentile_ns(percent).unwrap() as f64);
            assert!((exact..=exact * 1.25).contains(&bound), "{percent}: {bound}");
        }
        assert_eq!(CoarseHistogram::default().percentile_ns(50.0), None);
    }

    #[test]
    fn windows_sum_up_to_the_run_however_long_it_is() {
        let mut recorder = TimelineRecorder::default();
        let mut latencies_ns = Vec::new();
        for second in 1..=2500_u64 {
            latencies_ns.push(second * 1000);
            recorder.take(
                second * 1000,
                &DetailedProgress::of(&stats(&latencies_ns)),
                MachineWindow::default(),
            );
        }
        latencies_ns.push(7);
        let all = DetailedProgress::of(&stats(&latencies_ns));
        let timeline = recorder.finish(2_500_100, &all);
        assert!(timeline.windows.len() < WINDOWS_MAX, "{}", timeline.windows.len());
        let mut sum = DetailedProgress::default();
        timeline.windows.iter().for_each(|window| sum.merge(&window.done));
        assert_eq!(sum, all);
        assert_eq!(timeline.windows.last().unwrap().end_ms, 2_500_100);
        assert_eq!(timeline.windows[0].done.directions[0].ios, 4, "four seconds to a window");
        let ends = timeline.windows.iter().map(|window| window.end_ms);
        assert!(ends.clone().zip(ends.skip(1)).all(|(one, next)| next - one >= 2000));
    }

    #[test]
    fn counts_that_start_over_are_not_negative() {
        let mut recorder = TimelineRecorder::default();
        recorder.take(1000, &DetailedProgress::of(&stats(&[5, 5, 5])), MachineWindow::default());
        let timeline = recorder.finish(2000, &DetailedProgress::of(&stats(&[7])));
        assert_eq!(timeline.windows[1].done.directions[0].ios, 1);
    }
}
