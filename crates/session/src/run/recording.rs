//! Records what a run does over time: samples of its jobs and of the machine, and a timeline with latencies.
//!
//! Invariant: the counters of the jobs are read four times a second, those of the kernel once, and the workers are asked
//! for latencies once; whatever needs any of these over time reads them here.

use std::time::Duration;

use fiord_findings::Suspension;
use fiord_host::{HostMeter, HostReading, PageCacheUse, PageCacheWatch, Samples};
use fiord_plan::Plan;
use fiord_report::path::text;
use fiord_stats::{
    Capped, DetailedProgress, JobPart, JobTotals, MachineWindow, PartLatencies, ProcessorShares,
    ProgressSample, RunLatencies, SteadyPart, Timeline, TimelineRecorder, Window,
};
use fiord_sys::clock;
use fiord_worker::{PublishedProgress, State, View, WorkerReport, WorkerView};

use super::heartbeat::Heartbeat;
use super::job_groups::JobGroups;
use super::latency_marks::{GroupLatencies, LatencyMarks};

/// Interval between two samples, and how many of them there are for each reading of the kernel's counters.
pub(super) const SAMPLE_EVERY: Duration = Duration::from_millis(250);
const SAMPLES_PER_READING: u32 = 4;

/// Interval between two windows of the timeline of a run that is not long.
pub(super) const PROGRESS_EVERY: Duration = Duration::from_secs(1);

/// The most jobs, or groups of them, that are recorded beside all jobs together: in the timeline, and for the figures of
/// the steady part by name.
const JOBS_OVER_TIME_MAX: usize = 16;
const NAMES_MAX: usize = 8;

/// The recording of a run in progress.
#[derive(Debug, Default)]
pub(super) struct Recording {
    /// What the jobs had done together, while all of them were running.
    samples: Samples<ProgressSample>,
    /// The same for the jobs of each name, if there are several.
    samples_by_name: Samples<Vec<ProgressSample>>,
    names: JobGroups,
    /// The jobs that the timeline has beside all together.
    singles: JobGroups,
    /// How often some jobs were running and others were not any more, since all of them were.
    looks_after_all: u32,
    /// The latencies at full resolution, at moments at which all of them were running.
    latencies: LatencyMarks,
    /// Finds whether the run itself stood still.
    heartbeat: Option<Heartbeat>,
    /// The page cache of files that jobs use past it.
    page_cache: PageCacheWatch,
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
    /// The first workers of this plan are about to start, which use these files past the page cache.
    pub(super) fn start(&mut self, plan: &Plan, page_cache: PageCacheWatch) {
        self.page_cache = page_cache;
        let jobs: Vec<String> = plan.jobs.iter().map(|job| text(&job.name)).collect();
        let jobs: Vec<&str> = jobs.iter().map(String::as_str).collect();
        self.names = JobGroups::by_name(&jobs, NAMES_MAX);
        self.singles = JobGroups::single(&jobs, JOBS_OVER_TIME_MAX);
        self.heartbeat = Heartbeat::start();
        let mut meter = HostMeter::open();
        self.start = Some(meter.read_all());
        self.meter = Some(meter);
    }

    /// Takes a sample of the jobs if all of them are running, and one of the machine if that is due. Returns whether the
    /// kernel's counters are due to be read.
    pub(super) fn sample(&mut self, view: &View<'_>) -> bool {
        self.page_cache.look();
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
        let nothing = ProgressSample { at_ns: view.elapsed_ns, ..ProgressSample::default() };
        let mut all = nothing;
        let mut by_name = vec![nothing; self.names.count()];
        for (number, worker) in view.workers.iter().enumerate() {
            for sample in [Some(&mut all), by_name.get_mut(self.names.of(number))].into_iter().flatten() {
                for direction in 0..sample.ios.len() {
                    sample.ios[direction] += worker.counters.ios[direction];
                    sample.bytes[direction] += worker.counters.bytes[direction];
                }
            }
        }
        self.samples.take(|| Some(all));
        if by_name.len() > 1 {
            self.samples_by_name.take(|| Some(by_name));
        }
        is_due
    }

    /// Ends a window of the timeline: the jobs had done this at that time.
    pub(super) fn progressed(&mut self, elapsed_ns: u64, published: &PublishedProgress<'_>) {
        let mut so_far = DetailedProgress::default();
        let mut singles = vec![JobTotals::default(); self.singles.count()];
        let mut latencies = Some(vec![RunLatencies::default(); self.names.count()]);
        published.for_each(|job| {
            so_far.merge(job.so_far);
            if let Some(single) = singles.get_mut(self.singles.of(job.number)) {
                single.add(job.so_far);
            }
            match (&mut latencies, job.latencies) {
                (Some(sums), Some(theirs)) => {
                    sums.get_mut(self.names.of(job.number)).into_iter().for_each(|sum| sum.merge(theirs));
                }
                _ => latencies = None,
            }
        });
        self.latencies.take(elapsed_ns, latencies);
        self.released_ns.get_or_insert_with(|| clock::monotonic_ns().saturating_sub(elapsed_ns));
        let machine = self.machine();
        self.timeline.take(elapsed_ns / 1_000_000, &so_far, &singles, machine);
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

    /// The latencies of a part up to the end of the run that is over, if they are known, and what the jobs of each name
    /// did in it, if there are several names.
    pub(super) fn part(
        &self,
        part: &SteadyPart,
        workers: &[WorkerReport],
    ) -> (Option<PartLatencies>, Vec<JobPart>) {
        let groups = self.group_latencies(part, workers);
        let sum = |groups: &GroupLatencies| {
            let mut latencies = RunLatencies::default();
            groups.latencies.iter().for_each(|one| latencies.merge(one));
            PartLatencies { from_ms: groups.from_ms, latencies }
        };
        let of_name = |(index, name): (usize, &String)| {
            let samples = self.samples_by_name.all().iter().filter_map(|sample| sample.get(index).copied());
            let SteadyPart { ios_per_s, bytes_per_s, .. } = part.of_others(&samples.collect::<Vec<_>>())?;
            let latencies = groups.as_ref().and_then(|groups| groups.latencies.get(index)).cloned();
            Some(JobPart { name: name.clone(), ios_per_s, bytes_per_s, latencies })
        };
        // Without several names there are no samples by name.
        let jobs = self.names.names.iter().enumerate().filter_map(of_name);
        (groups.as_ref().map(sum), jobs.collect())
    }

    fn group_latencies(&self, part: &SteadyPart, workers: &[WorkerReport]) -> Option<GroupLatencies> {
        // Jobs that end between two looks end together.
        let has_ended_together = self.looks_after_all <= 1;
        let at_end = has_ended_together.then(|| {
            let of_group = |group: usize| {
                let numbered = workers.iter().enumerate();
                let members = numbered.filter(|(number, _)| self.names.of(*number) == group);
                RunLatencies::of(members.map(|(_, worker)| &*worker.stats))
            };
            (0..self.names.count()).map(of_group).collect::<Vec<_>>()
        });
        let span = (self.samples().first()?, self.samples().last()?);
        self.latencies.of_part(part, span, at_end.as_deref())
    }

    /// What the page cache held of files that jobs use past it.
    pub(super) fn page_cache(&self) -> Vec<PageCacheUse> {
        self.page_cache.uses()
    }

    /// The run is over: for how long it was suspended, if it was.
    pub(super) fn end(&mut self) -> Option<Suspension> {
        self.page_cache.look();
        self.heartbeat.take().and_then(Heartbeat::end)
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
            let mut singles = vec![JobTotals::default(); self.singles.count()];
            for (number, worker) in workers.iter().enumerate() {
                let done = DetailedProgress::of(&worker.stats);
                all.merge(&done);
                singles.get_mut(self.singles.of(number)).into_iter().for_each(|single| single.add(&done));
            }
            let elapsed_ns = clock::monotonic_ns().saturating_sub(released_ns);
            let names = if singles.len() > 1 { self.singles.names.as_slice() } else { &[] };
            std::mem::take(&mut self.timeline).finish(elapsed_ns / 1_000_000, &all, &singles, names)
        });
        (timeline, Window::between(self.samples()))
    }
}

/// The use of the processors between two readings; `None` if no time passed or the kernel does not count it.
fn shares(before: &HostReading, now: &HostReading) -> Option<ProcessorShares> {
    let ticks = now.cpu.since(&before.cpu);
    let share = |part: u64| (part * 1000).checked_div(ticks.all()).map(u32::capped);
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
