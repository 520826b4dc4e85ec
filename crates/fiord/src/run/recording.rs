//! Records what a run does over time: samples of its jobs and of the machine, and a timeline with latencies.
//!
//! Invariant: the counters of the jobs are read four times a second, those of the kernel once, and the workers are asked
//! for latencies once; whatever needs any of these over time reads them here.

use std::time::Duration;

use fiord_host::{HostMeter, HostReading, Samples};
use fiord_stats::{
    DetailedProgress, MachineWindow, PartLatencies, ProcessorShares, ProgressSample, RunLatencies,
    SteadyPart, Timeline, TimelineRecorder, Window,
};
use fiord_sys::clock;
use fiord_worker::{State, View, WorkerReport, WorkerView};

use super::latency_marks::LatencyMarks;

/// Interval between two samples, and how many of them there are for each reading of the kernel's counters.
pub(super) const SAMPLE_EVERY: Duration = Duration::from_millis(250);
const SAMPLES_PER_READING: u32 = 4;

/// Interval between two windows of the timeline of a run that is not long.
pub(super) const PROGRESS_EVERY: Duration = Duration::from_secs(1);

/// The recording of a run in progress.
#[derive(Debug, Default)]
pub(super) struct Recording {
    /// What the jobs had done together, while all of them were running.
    samples: Samples<ProgressSample>,
    /// How often some jobs were running and others were not any more, since all of them were.
    looks_after_all: u32,
    /// The latencies at full resolution, at moments at which all of them were running.
    latencies: LatencyMarks,
    /// Samples since the last reading of the kernel's counters.
    since_reading: u32,
    meter: Option<HostMeter>,
    /// The machine when the first workers were about to start.
    start: Option<HostReading>,
    readings: Samples<HostReading>,
    timeline: TimelineRecorder,
    /// When the first workers were released, on the monotonic clock; `None` before the first window.
    released_ns: Option<u64>,
    /// The reading that the last window ends with, and the processors' shares until then.
    window_end: Option<HostReading>,
    shares: Option<ProcessorShares>,
}

impl Recording {
    /// The first workers are about to start.
    pub(super) fn start(&mut self) {
        let mut meter = HostMeter::open();
        self.start = Some(meter.read_all());
        self.meter = Some(meter);
    }

    /// Takes a sample of the jobs if all of them are running, and one of the machine if that is due. Returns whether the
    /// kernel's counters are due to be read.
    pub(super) fn sample(&mut self, view: &View<'_>) -> bool {
        self.since_reading += 1;
        let is_due = self.since_reading >= SAMPLES_PER_READING;
        if is_due {
            self.since_reading = 0;
            let Recording { meter, readings, .. } = self;
            readings.take(|| Some(meter.as_mut()?.read()));
        }
        let is_running = |worker: &WorkerView<'_>| worker.state == State::Running;
        if !view.workers.iter().all(is_running) {
            let goes_on = !self.samples.all().is_empty() && view.workers.iter().any(is_running);
            self.looks_after_all += u32::from(goes_on);
            return is_due;
        }
        let mut sample = ProgressSample { at_ns: view.elapsed_ns, ..ProgressSample::default() };
        for worker in &view.workers {
            for direction in 0..sample.ios.len() {
                sample.ios[direction] += worker.counters.ios[direction];
                sample.bytes[direction] += worker.counters.bytes[direction];
            }
        }
        self.samples.take(|| Some(sample));
        is_due
    }

    /// Ends a window of the timeline: all jobs together had done this at that time, with these latencies if they are
    /// known.
    pub(super) fn progressed(
        &mut self,
        elapsed_ns: u64,
        so_far: &DetailedProgress,
        latencies: Option<RunLatencies>,
    ) {
        self.latencies.take(elapsed_ns, latencies);
        self.released_ns.get_or_insert_with(|| clock::monotonic_ns().saturating_sub(elapsed_ns));
        let machine = self.machine();
        self.timeline.take(elapsed_ns / 1_000_000, so_far, machine);
    }

    /// The processors since the last window, or at the same shares as then if there is no newer reading.
    fn machine(&mut self) -> MachineWindow {
        let Some(now) = self.readings.all().last() else { return MachineWindow::default() };
        if self.window_end.as_ref().is_none_or(|before| before.taken_ns < now.taken_ns) {
            let shares = self.window_end.as_ref().and_then(|before| shares(before, now));
            self.shares = shares.or(self.shares);
            self.window_end = Some(now.clone());
        }
        MachineWindow {
            processors: self.shares,
            temperature_celsius: now.temperature_celsius.and_then(|celsius| celsius.try_into().ok()),
        }
    }

    /// What the jobs had done together, at moments at which all of them were running.
    pub(super) fn samples(&self) -> &[ProgressSample] {
        self.samples.all()
    }

    /// The latencies of a part up to the end of the run that is over, if they are known.
    pub(super) fn part_latencies(
        &self,
        part: &SteadyPart,
        workers: &[WorkerReport],
    ) -> Option<PartLatencies> {
        // Jobs that end between two looks end together.
        let has_ended_together = self.looks_after_all <= 1;
        let at_end =
            has_ended_together.then(|| RunLatencies::of(workers.iter().map(|worker| &*worker.stats)));
        let span = (self.samples().first()?, self.samples().last()?);
        self.latencies.of_part(part, span, at_end.as_ref())
    }

    /// The machine from before the first I/O until now.
    pub(super) fn readings(&self) -> Vec<HostReading> {
        self.start.iter().chain(self.readings.all()).cloned().collect()
    }

    /// The machine at the end of the run, with the totals.
    pub(super) fn last_reading(&mut self) -> Option<HostReading> {
        self.meter.as_mut().map(HostMeter::read_all)
    }

    /// The run as the report has it: its timeline, `None` if it ended before there was a window, and the windows in
    /// which all jobs were running.
    pub(super) fn finish(&mut self, workers: &[WorkerReport]) -> (Option<Timeline>, Vec<Window>) {
        let timeline = self.released_ns.map(|released_ns| {
            let mut all = DetailedProgress::default();
            workers.iter().for_each(|worker| all.add(&worker.stats));
            let elapsed_ns = clock::monotonic_ns().saturating_sub(released_ns);
            std::mem::take(&mut self.timeline).finish(elapsed_ns / 1_000_000, &all)
        });
        (timeline, Window::between(self.samples()))
    }
}

/// The use of the processors between two readings; `None` if no time passed or the kernel does not count it.
fn shares(before: &HostReading, now: &HostReading) -> Option<ProcessorShares> {
    let ticks = now.cpu.since(&before.cpu);
    let share = |part: u64| (part * 1000).checked_div(ticks.all()).map(|share| share as u32);
    Some(ProcessorShares {
        user: share(ticks.user)?,
        system: share(ticks.system)?,
        io_wait: share(ticks.io_wait)?,
        steal: share(ticks.steal)?,
    })
}

#[cfg(test)]
mod tests {
    use fiord_sys::procfs::CpuTicks;

    use super::*;

    #[test]
    fn shares_are_of_all_processors_between_two_readings() {
        let reading = |taken_ns, user, idle| HostReading {
            taken_ns,
            cpu: CpuTicks { user, idle, system: 5, ..CpuTicks::default() },
            ..HostReading::default()
        };
        let expected = ProcessorShares { user: 250, ..ProcessorShares::default() };
        assert_eq!(shares(&reading(1, 100, 100), &reading(2, 150, 250)), Some(expected));
        assert_eq!(shares(&reading(1, 100, 100), &reading(2, 100, 100)), None);
    }
}
