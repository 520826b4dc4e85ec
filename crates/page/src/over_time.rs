//! A run over time: of fiord's own timeline, or of the logs that fio and fiord write.
//!
//! Invariant: windows follow each other without a gap, and there are at most [`WINDOWS_MAX`].

use fiord_device::DeviceUse;
use fiord_stats::{Capped, CoarseHistogram, Histogram, JobTimeline, JobTotals, Timeline, TimelineWindow};

/// The most windows that a page shows: more cannot be told apart.
pub(crate) const WINDOWS_MAX: usize = 240;

/// Points of the lines of all jobs together, and the fewest of one: a page has room for so many.
const JOB_POINTS_MAX: usize = 480;
const JOB_POINTS_MIN: usize = 60;

/// A window with less than this share of the median rate is a stall.
const STALL_SHARE: f64 = 0.1;

/// One window of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Window {
    /// Its beginning, in seconds since the run began.
    pub from_s: f64,
    /// Its end.
    pub to_s: f64,
    /// I/Os per second: reads, writes, trims; `None` if the logs do not say.
    pub ios_per_s: Option<[f64; 3]>,
    /// Bytes per second: reads, writes, trims; `None` if the logs do not say.
    pub bytes_per_s: Option<[f64; 3]>,
    /// The mean latency of all I/Os, in nanoseconds.
    pub mean_ns: Option<f64>,
    /// I/Os in flight on average, from their latencies.
    pub depth: Option<f64>,
    /// The latencies of all directions.
    pub latencies: CoarseHistogram,
    /// Those of reads, writes and trims.
    pub by_direction: [CoarseHistogram; 3],
    /// Share of the processors in percent: programs, kernel, waiting for I/O, other guests of the host.
    pub processors: Option<[f64; 4]>,
    /// The highest temperature of the machine, in degrees Celsius.
    pub temperature_celsius: Option<f64>,
    /// It did far fewer I/Os than the others.
    pub is_stalled: bool,
}

/// What one job did over time: in the windows of the run, or in longer ones if there are many jobs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobOverTime {
    /// The job.
    pub name: String,
    /// The middle of each of its windows, in seconds since the run began.
    pub at_s: Vec<f64>,
    /// Bytes per second: reads, writes, trims.
    pub bytes_per_s: Vec<Option<[f64; 3]>>,
    /// I/Os per second: reads, writes, trims.
    pub ios_per_s: Vec<Option<[f64; 3]>>,
    /// The mean latency of all directions in nanoseconds.
    pub mean_ns: Vec<Option<f64>>,
}

impl JobOverTime {
    fn of(name: &str, windows: impl Iterator<Item = Window>) -> JobOverTime {
        let mut job = JobOverTime { name: name.to_string(), ..JobOverTime::default() };
        for window in windows {
            job.at_s.push(f64::midpoint(window.from_s, window.to_s));
            job.bytes_per_s.push(window.bytes_per_s);
            job.ios_per_s.push(window.ios_per_s);
            job.mean_ns.push(window.mean_ns);
        }
        job
    }

    /// Of a timeline whose windows end at these times, of which this many become one.
    fn of_timeline(job: &JobTimeline, ends_ms: &[u64], per: usize) -> JobOverTime {
        let mut over_time = JobOverTime { name: job.name.clone(), ..JobOverTime::default() };
        let mut from_ms = 0;
        for (ends_ms, parts) in ends_ms.chunks(per).zip(job.windows.chunks(per)) {
            let to_ms = ends_ms.last().copied().unwrap_or(from_ms);
            over_time.at_s.push(f64::midpoint(from_ms as f64, to_ms as f64) / 1000.0);
            over_time.push(seconds(from_ms, to_ms), parts);
            from_ms = to_ms;
        }
        over_time
    }

    /// Adds a window, from what was done in its parts.
    fn push(&mut self, seconds: f64, parts: &[JobTotals]) {
        let (mut ios, mut bytes, mut latency_ns) = ([0; 3], [0; 3], 0);
        for part in parts {
            for (index, direction) in part.directions.iter().enumerate() {
                ios[index] += direction.ios;
                bytes[index] += direction.bytes;
                latency_ns += direction.latency_ns;
            }
        }
        let rates = |counts: [u64; 3]| Some(counts.map(|count| count as f64 / seconds));
        let all_ios: u64 = ios.iter().sum();
        self.bytes_per_s.push(rates(bytes));
        self.ios_per_s.push(rates(ios));
        self.mean_ns.push((latency_ns > 0 && all_ios > 0).then(|| latency_ns as f64 / all_ios as f64));
    }
}

/// A run over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OverTime {
    /// Its windows.
    pub windows: Vec<Window>,
    /// Its jobs in the same windows, if they are known one by one.
    pub jobs: Vec<JobOverTime>,
    /// Whether the latencies of logs are means of intervals instead of single I/Os.
    pub is_averaged: bool,
}

/// The logs of one job: each line's milliseconds, direction and value.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoggedJob {
    /// The job.
    pub name: String,
    /// The lines.
    pub lines: Vec<(u64, usize, LoggedValue)>,
}

/// A line of a log.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LoggedValue {
    /// KiB/s of a bandwidth log.
    Bandwidth(u64),
    /// I/Os per second.
    Iops(u64),
    /// Nanoseconds.
    Latency(u64),
}

impl OverTime {
    /// A stored timeline.
    pub fn of(timeline: &Timeline) -> OverTime {
        let per = timeline.windows.len().div_ceil(WINDOWS_MAX).max(1);
        let mut from_ms = 0;
        let mut windows = Vec::new();
        for group in timeline.windows.chunks(per) {
            let to_ms = group.last().map_or(from_ms, |last| last.end_ms);
            windows.push(window(from_ms, to_ms, group));
            from_ms = to_ms;
        }
        let ends_ms: Vec<u64> = timeline.windows.iter().map(|window| window.end_ms).collect();
        let points = (JOB_POINTS_MAX / timeline.jobs.len().max(1)).clamp(JOB_POINTS_MIN, WINDOWS_MAX);
        let per = timeline.windows.len().div_ceil(points).max(1);
        let jobs = timeline.jobs.iter().map(|job| JobOverTime::of_timeline(job, &ends_ms, per)).collect();
        let mut over_time = OverTime { windows, jobs, ..OverTime::default() };
        over_time.mark_stalls();
        over_time
    }

    /// The logs of each job.
    pub fn of_logs(jobs: &[LoggedJob]) -> Option<OverTime> {
        let lines = || jobs.iter().flat_map(|job| &job.lines);
        let end_ms = lines().map(|(at_ms, ..)| *at_ms).max()?.max(1);
        let length_ms = (end_ms.div_ceil(WINDOWS_MAX as u64)).max(1000).div_ceil(500) * 500;
        let count = usize::capped(end_ms.div_ceil(length_ms));
        let mut sums = vec![LogSums::default(); count];
        let windows = |sums: &[LogSums]| -> Vec<Window> {
            let numbered = (0..).zip(sums);
            numbered.map(|(index, sums)| sums.window(index * length_ms, length_ms, end_ms)).collect()
        };
        let mut of_jobs = Vec::new();
        for job in jobs {
            let mut of_job = vec![LogSums::default(); count];
            for (at_ms, direction, value) in &job.lines {
                let index = usize::capped((at_ms.saturating_sub(1)) / length_ms);
                of_job[index.min(count - 1)].add(*direction, *value);
            }
            sums.iter_mut().zip(&of_job).for_each(|(all, one)| all.merge(one));
            // Rates are means of the lines in a window.
            let mut alone = vec![LogSums::default(); count];
            alone.iter_mut().zip(&of_job).for_each(|(alone, one)| alone.merge(one));
            of_jobs.push(JobOverTime::of(&job.name, windows(&alone).into_iter()));
        }
        let latencies =
            lines().filter(|(_, _, value)| matches!(value, LoggedValue::Latency(_))).count() as u64;
        let mut over_time = OverTime {
            windows: windows(&sums),
            jobs: of_jobs,
            // Logs with an interval have few lines of latencies.
            is_averaged: (1..(end_ms / 100).max(8) * jobs.len() as u64).contains(&latencies),
        };
        over_time.mark_stalls();
        Some(over_time)
    }

    /// When it ends, in seconds.
    pub(crate) fn end_s(&self) -> f64 {
        self.windows.last().map_or(0.0, |last| last.to_s)
    }

    /// Marks windows that did far fewer I/Os than the median.
    fn mark_stalls(&mut self) {
        let rate = |window: &Window| {
            let rates = window.ios_per_s.or(window.bytes_per_s);
            rates.map(|rates| rates.iter().sum::<f64>())
        };
        let mut rates: Vec<f64> = self.windows.iter().filter_map(rate).collect();
        if rates.len() < 4 {
            return;
        }
        rates.sort_unstable_by(f64::total_cmp);
        let median = rates[rates.len() / 2];
        for window in &mut self.windows {
            window.is_stalled = rate(window).is_some_and(|rate| rate < median * STALL_SHARE);
        }
    }

    /// The stalls: (beginning, end) in seconds.
    pub(crate) fn stalls(&self) -> Vec<(f64, f64)> {
        let mut stalls: Vec<(f64, f64)> = Vec::new();
        for window in self.windows.iter().filter(|window| window.is_stalled) {
            match stalls.last_mut() {
                Some(last) if (last.1 - window.from_s).abs() < 1e-9 => last.1 = window.to_s,
                _ => stalls.push((window.from_s, window.to_s)),
            }
        }
        stalls
    }
}

fn seconds(from_ms: u64, to_ms: u64) -> f64 {
    (to_ms - from_ms).max(1) as f64 / 1000.0
}

/// The windows of a timeline as one.
fn window(from_ms: u64, to_ms: u64, group: &[TimelineWindow]) -> Window {
    let seconds = seconds(from_ms, to_ms);
    let mut window = Window {
        from_s: from_ms as f64 / 1000.0,
        to_s: to_ms as f64 / 1000.0,
        ios_per_s: Some([0.0; 3]),
        bytes_per_s: Some([0.0; 3]),
        ..Window::default()
    };
    let (mut all_ios, mut latency_ns) = (0, 0);
    for part in group {
        for (index, direction) in part.done.directions.iter().enumerate() {
            window.ios_per_s.iter_mut().for_each(|rates| rates[index] += direction.ios as f64 / seconds);
            window.bytes_per_s.iter_mut().for_each(|rates| rates[index] += direction.bytes as f64 / seconds);
            window.latencies.merge(&direction.latencies);
            window.by_direction[index].merge(&direction.latencies);
            all_ios += direction.ios;
            latency_ns += direction.latency_ns;
        }
    }
    if latency_ns > 0 && all_ios > 0 {
        window.mean_ns = Some(latency_ns as f64 / all_ios as f64);
        window.depth = Some(latency_ns as f64 / (seconds * 1e9));
    }
    let shares: Vec<[f64; 4]> = group
        .iter()
        .filter_map(|part| part.machine.processors)
        .map(|shares| {
            [shares.user, shares.system, shares.io_wait, shares.steal].map(|share| f64::from(share) / 10.0)
        })
        .collect();
    if !shares.is_empty() {
        let mean = |index: usize| shares.iter().map(|each| each[index]).sum::<f64>() / shares.len() as f64;
        window.processors = Some([mean(0), mean(1), mean(2), mean(3)]);
    }
    window.temperature_celsius =
        group.iter().filter_map(|part| part.machine.temperature_celsius).max().map(f64::from);
    window
}

/// What the lines of a window add up to, of one job or of all.
#[derive(Clone, Debug, Default)]
struct LogSums {
    /// By direction: sum and number of lines; of all jobs: the sum of their means.
    kib: [(f64, f64); 3],
    ios: [(f64, f64); 3],
    latency: (f64, f64),
    latencies: [CoarseHistogram; 3],
}

impl LogSums {
    fn add(&mut self, direction: usize, value: LoggedValue) {
        let add = |sum: &mut (f64, f64), value: u64| *sum = (sum.0 + value as f64, sum.1 + 1.0);
        match value {
            LoggedValue::Bandwidth(kib) => add(&mut self.kib[direction], kib),
            LoggedValue::Iops(ios) => add(&mut self.ios[direction], ios),
            LoggedValue::Latency(ns) => {
                add(&mut self.latency, ns);
                let mut one = Histogram::allocated();
                one.record(ns);
                self.latencies[direction].add(&one);
            }
        }
    }

    fn merge(&mut self, other: &LogSums) {
        let mean = |all: &mut (f64, f64), one: &(f64, f64)| {
            if one.1 > 0.0 {
                *all = (all.0 + one.0 / one.1, 1.0);
            }
        };
        self.kib.iter_mut().zip(&other.kib).for_each(|(all, one)| mean(all, one));
        self.ios.iter_mut().zip(&other.ios).for_each(|(all, one)| mean(all, one));
        self.latency = (self.latency.0 + other.latency.0, self.latency.1 + other.latency.1);
        self.latencies.iter_mut().zip(&other.latencies).for_each(|(all, one)| all.merge(one));
    }

    fn window(&self, from_ms: u64, length_ms: u64, end_ms: u64) -> Window {
        let rates = |sums: &[(f64, f64); 3], unit: f64| {
            let any = sums.iter().any(|(_, lines)| *lines > 0.0);
            any.then(|| sums.map(|(sum, _)| sum * unit))
        };
        let mut latencies = CoarseHistogram::default();
        self.latencies.iter().for_each(|one| latencies.merge(one));
        Window {
            from_s: from_ms as f64 / 1000.0,
            to_s: (from_ms + length_ms).min(end_ms) as f64 / 1000.0,
            ios_per_s: rates(&self.ios, 1.0),
            bytes_per_s: rates(&self.kib, 1024.0),
            mean_ns: (self.latency.1 > 0.0).then(|| self.latency.0 / self.latency.1),
            latencies,
            by_direction: self.latencies,
            ..Window::default()
        }
    }
}

/// The share of the time that a device had a request, in percent, and requests in flight: (end in seconds, busy, depth).
pub(crate) fn device_samples(used: &DeviceUse) -> Vec<(f64, f64, f64)> {
    let per = used.samples.len().div_ceil(WINDOWS_MAX).max(1);
    let mut before = (0, used.start);
    let mut points = Vec::new();
    for sample in used.samples.iter().skip(per - 1).step_by(per) {
        let elapsed_ms = sample.elapsed_ns.saturating_sub(before.0) as f64 / 1e6;
        if elapsed_ms <= 0.0 {
            continue;
        }
        let share = |now: u64, then: u64| now.saturating_sub(then) as f64 / elapsed_ms;
        let busy = 100.0 * share(sample.counters.busy_ms, before.1.busy_ms);
        let depth = share(sample.counters.in_queue_ms, before.1.in_queue_ms);
        points.push((sample.elapsed_ns as f64 / 1e9, busy.min(100.0), depth));
        before = (sample.elapsed_ns, sample.counters);
    }
    points
}

/// The temperature of a device: (seconds, degrees Celsius).
pub(crate) fn device_temperatures(used: &DeviceUse) -> Vec<(f64, Option<f64>)> {
    let per = used.samples.len().div_ceil(WINDOWS_MAX).max(1);
    let samples = used.samples.iter().skip(per - 1).step_by(per);
    samples
        .map(|sample| (sample.elapsed_ns as f64 / 1e9, sample.temperature_celsius.map(f64::from)))
        .collect()
}

#[cfg(test)]
mod tests {
    use fiord_stats::DirectionTotals;

    use super::*;

    #[test]
    fn windows_with_few_ios_are_stalls() {
        let mut timeline = Timeline::default();
        for second in 1..=10_u64 {
            let mut window = TimelineWindow { end_ms: second * 1000, ..TimelineWindow::default() };
            window.done.directions[0].ios = if (4..=5).contains(&second) { 3 } else { 100 };
            timeline.windows.push(window);
        }
        let over_time = OverTime::of(&timeline);
        assert_eq!(over_time.stalls(), [(3.0, 5.0)]);
        assert_eq!(over_time.windows[0].ios_per_s, Some([100.0, 0.0, 0.0]));
        assert!((over_time.end_s() - 10.0).abs() < 1e-9);
    }

    #[test]
    fn long_timelines_are_joined_and_rates_stay() {
        let window = |second: u64| {
            let mut window = TimelineWindow { end_ms: second * 1000, ..TimelineWindow::default() };
            window.done.directions[1].bytes = 4096;
            window
        };
        let mut done = JobTotals::default();
        done.directions[1] = DirectionTotals { ios: 1, bytes: 2048, latency_ns: 7 };
        let job = JobTimeline { name: "a".to_string(), windows: vec![done; 1000] };
        let timeline = Timeline { windows: (1..=1000).map(window).collect(), jobs: vec![job] };
        let over_time = OverTime::of(&timeline);
        assert!(over_time.windows.len() <= WINDOWS_MAX);
        assert!(over_time.windows.iter().all(|window| window.bytes_per_s == Some([0.0, 4096.0, 0.0])));
        let job = &over_time.jobs[0];
        assert_eq!((job.name.as_str(), job.mean_ns.len()), ("a", over_time.windows.len()));
        assert!(
            job.at_s
                .iter()
                .zip(&over_time.windows)
                .all(|(at_s, window)| (window.from_s..window.to_s).contains(at_s))
        );
        let jobs = vec![timeline.jobs[0].clone(); 16];
        let many = OverTime::of(&Timeline { jobs, ..timeline.clone() });
        let job = &many.jobs[15];
        assert!((50..=60).contains(&job.at_s.len()) && job.ios_per_s.len() == job.at_s.len(), "{job:?}");
        assert!(job.bytes_per_s.iter().all(|rates| *rates == Some([0.0, 2048.0, 0.0])), "{job:?}");
        assert!(job.ios_per_s.iter().all(|rates| *rates == Some([0.0, 1.0, 0.0])), "{job:?}");
        assert!(job.mean_ns.iter().all(|mean_ns| *mean_ns == Some(7.0)), "{job:?}");
    }

    #[test]
    fn logs_of_several_jobs_are_added_up() {
        let job = |kib| {
            let line = move |second: u64| (second * 1000, 0, LoggedValue::Bandwidth(kib));
            let lines = (1..=5).map(line).chain([(2000, 1, LoggedValue::Latency(kib))]).collect();
            LoggedJob { name: format!("job of {kib}"), lines }
        };
        let over_time = OverTime::of_logs(&[job(100), job(50)]).unwrap();
        assert_eq!(over_time.windows.len(), 5);
        assert!(over_time.windows.iter().all(|window| window.bytes_per_s == Some([153_600.0, 0.0, 0.0])));
        assert_eq!(over_time.windows[1].latencies.total(), 2);
        assert_eq!(over_time.windows[1].by_direction.map(|latencies| latencies.total()), [0, 2, 0]);
        let [one, other] = &over_time.jobs[..] else { panic!("{:?}", over_time.jobs) };
        assert_eq!(
            (one.name.as_str(), &one.bytes_per_s[..]),
            ("job of 100", &[Some([102_400.0, 0.0, 0.0]); 5][..])
        );
        assert_eq!((other.mean_ns[1], other.mean_ns[2], other.ios_per_s[0]), (Some(50.0), None, None));
        assert_eq!(OverTime::of_logs(&[LoggedJob::default()]), None);
    }
}
