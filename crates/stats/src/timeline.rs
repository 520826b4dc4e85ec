//! What a run did over time: I/Os, bytes and latencies of each window, in a bounded amount of memory.
//!
//! Invariant: windows follow each other without a gap. When there are too many, each two become one, so that the sums over
//! all windows stay the same.

use serde::{Deserialize, Serialize};

use crate::job_timeline::{JobTimeline, JobTotals, JobsRecorder};
use crate::progress::DetailedProgress;

/// The most windows of a timeline.
const WINDOWS_MAX: usize = 1024;

/// How the processors were used in a window, in thousandths of the time of those that the program may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineWindow {
    /// The use of the processors, if the kernel counts it.
    pub processors: Option<ProcessorShares>,
    /// The highest temperature of the machine's zones, in degrees Celsius.
    pub temperature_celsius: Option<i32>,
}

/// One window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimelineWindow {
    /// Its end, in milliseconds since the first job was released. It begins where the one before ends; the first at 0.
    pub end_ms: u64,
    /// What was done in it.
    pub done: DetailedProgress,
    /// The machine in it.
    pub machine: MachineWindow,
}

/// A run over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Timeline {
    /// Its windows, in order.
    pub windows: Vec<TimelineWindow>,
    /// Its jobs in the same windows; empty if they were not recorded one by one.
    pub jobs: Vec<JobTimeline>,
}

/// Makes a timeline of what was done until each of several moments.
#[derive(Clone, Debug, Default)]
pub struct TimelineRecorder {
    windows: Vec<TimelineWindow>,
    jobs: JobsRecorder,
    /// What the last window that is complete ended with.
    before: DetailedProgress,
    /// A window is complete after this many calls, and the calls since the last one was.
    calls_per_window: u32,
    calls: u32,
}

impl TimelineRecorder {
    /// At `at_ms`, all jobs together had done `so_far`, of which `jobs` are the totals of single jobs, if they are wanted.
    /// Called at regular intervals.
    pub fn take(
        &mut self,
        at_ms: u64,
        so_far: &DetailedProgress,
        jobs: &[JobTotals],
        machine: MachineWindow,
    ) {
        self.calls += 1;
        if self.calls < self.calls_per_window.max(1) {
            return;
        }
        self.calls = 0;
        self.push(at_ms, so_far, jobs, machine);
        if self.windows.len() >= WINDOWS_MAX {
            self.calls_per_window = self.calls_per_window.max(1) * 2;
            self.windows = self.windows.chunks(2).map(joined).collect();
            self.jobs.join();
        }
    }

    /// The timeline of a run that ended at `at_ms` and did `all`; its jobs of these names did `jobs`. A rest of less than
    /// half a window becomes part of the last one.
    pub fn finish(
        mut self,
        at_ms: u64,
        all: &DetailedProgress,
        jobs: &[JobTotals],
        names: &[String],
    ) -> Timeline {
        let length_ms = self.windows.first().map_or(0, |first| first.end_ms);
        let rest_ms = at_ms.saturating_sub(self.windows.last().map_or(0, |last| last.end_ms));
        let machine = self.windows.last().map_or_else(MachineWindow::default, |last| last.machine);
        self.push(at_ms, all, jobs, machine);
        if rest_ms * 2 < length_ms && self.windows.len() > 1 {
            let last_two = self.windows.split_off(self.windows.len() - 2);
            self.windows.push(joined(&last_two));
            self.jobs.join_last();
        }
        Timeline { windows: self.windows, jobs: self.jobs.finish(names) }
    }

    fn push(&mut self, end_ms: u64, so_far: &DetailedProgress, jobs: &[JobTotals], machine: MachineWindow) {
        self.jobs.push(jobs);
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
    use crate::{JobStats, Latency};

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

    /// Of two jobs, of which one does one in four of these I/Os: each alone, and together.
    fn two_jobs(latencies_ns: &[u64]) -> ([JobTotals; 2], DetailedProgress) {
        let (one, other) = latencies_ns.split_at(latencies_ns.len() / 4);
        let progress = [one, other].map(|latencies_ns| DetailedProgress::of(&stats(latencies_ns)));
        let mut all = DetailedProgress::default();
        let jobs = progress.map(|progress| {
            let mut totals = JobTotals::default();
            totals.add(&progress);
            all.merge(&progress);
            totals
        });
        (jobs, all)
    }

    #[test]
    fn windows_sum_up_to_the_run_however_long_it_is() {
        let mut recorder = TimelineRecorder::default();
        let mut latencies_ns = Vec::new();
        for second in 1..=2500_u64 {
            latencies_ns.push(second * 1000);
            let (jobs, all) = two_jobs(&latencies_ns);
            recorder.take(second * 1000, &all, &jobs, MachineWindow::default());
        }
        latencies_ns.push(7);
        let (jobs, all) = two_jobs(&latencies_ns);
        let timeline = recorder.finish(2_500_100, &all, &jobs, &["a".to_string(), "b".to_string()]);
        assert!(timeline.windows.len() < WINDOWS_MAX, "{}", timeline.windows.len());
        let mut sum = DetailedProgress::default();
        timeline.windows.iter().for_each(|window| sum.merge(&window.done));
        assert_eq!(sum, all);
        assert_eq!(timeline.windows.last().unwrap().end_ms, 2_500_100);
        assert_eq!(timeline.windows[0].done.directions[0].ios, 4, "four seconds to a window");
        // What the jobs did in a window adds up to what all of them did.
        let names: Vec<&str> = timeline.jobs.iter().map(|job| job.name.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
        for (index, window) in timeline.windows.iter().enumerate() {
            let mut sum = JobTotals::default();
            timeline.jobs.iter().for_each(|job| sum.merge(&job.windows[index]));
            let mut together = JobTotals::default();
            together.add(&window.done);
            assert_eq!(sum, together, "window {index}");
        }
        assert!(timeline.jobs.iter().all(|job| job.windows.len() == timeline.windows.len()));
        let ios =
            |job: usize| timeline.jobs[job].windows.iter().map(|done| done.directions[0].ios).sum::<u64>();
        assert_eq!((ios(0), ios(1)), (2501 / 4, 2501 - 2501 / 4));
        let ends = timeline.windows.iter().map(|window| window.end_ms);
        assert!(ends.clone().zip(ends.skip(1)).all(|(one, next)| next - one >= 2000));
    }

    #[test]
    fn counts_that_start_over_are_not_negative() {
        let mut recorder = TimelineRecorder::default();
        let (jobs, all) = two_jobs(&[5, 5, 5, 5, 5, 5, 5, 5]);
        recorder.take(1000, &all, &jobs, MachineWindow::default());
        let (jobs, all) = two_jobs(&[7, 7, 7, 7]);
        let timeline = recorder.finish(2000, &all, &jobs, &["a".to_string(), "b".to_string()]);
        assert_eq!(timeline.windows[1].done.directions[0].ios, 4);
        let done = timeline.jobs.iter().map(|job| job.windows[1].directions[0].ios);
        assert_eq!(done.collect::<Vec<_>>(), [1, 3]);
    }
}
