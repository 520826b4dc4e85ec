//! The monitor: takes throughput samples, holds workers to their minimum rates, and tells clockless ones the time.
//!
//! Invariant: reads live counters and writes requests; the only thread that does so while workers run.

use fiord_plan::{Job, PerDirection};
use fiord_stats::Samples;

use crate::live::{Counters, Live, Why, ask};

/// How long a job may run before its minimum rates are asked for, as in fio.
const RATE_GRACE_NS: u64 = 2_000_000_000;

/// How full the last interval of a worker has to be to count.
const NEARLY_FULL_PERCENT: u64 = 90;

/// The samples of one worker.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sampler {
    /// KiB/s, per direction.
    pub bandwidth: PerDirection<Samples>,
    /// I/Os per second, per direction.
    pub iops: PerDirection<Samples>,
    bandwidth_mark: Mark,
    iops_mark: Mark,
    rate_mark: Mark,
    measured_since_ns: u64,
}

/// Counters at the start of an interval.
#[derive(Debug, Clone, Copy, Default)]
struct Mark {
    at_ns: u64,
    counters: Counters,
}

impl Mark {
    /// What happened since, when the interval is full; the mark then moves on.
    fn advance(&mut self, now_ns: u64, counters: &Counters, interval_ms: u64) -> Option<Interval> {
        let elapsed_ns = now_ns.saturating_sub(self.at_ns);
        // A wake-up half a millisecond early is on time.
        if interval_ms == 0 || elapsed_ns + 500_000 < interval_ms * 1_000_000 {
            return None;
        }
        let since =
            |now: PerDirection<u64>, then: PerDirection<u64>| [0, 1, 2].map(|d: usize| now[d] - then[d]);
        let interval = Interval {
            seconds: elapsed_ns as f64 / 1e9,
            ios: since(counters.ios, self.counters.ios),
            bytes: since(counters.bytes, self.counters.bytes),
        };
        *self = Mark { at_ns: now_ns, counters: *counters };
        Some(interval)
    }
}

/// What happened between two marks.
struct Interval {
    seconds: f64,
    ios: PerDirection<u64>,
    bytes: PerDirection<u64>,
}

impl Sampler {
    /// Looks at a running worker.
    pub(crate) fn look(&mut self, job: &Job, live: &Live, now_ns: u64) {
        let since_ns = live.measured_since_ns();
        let counters = live.counters();
        if since_ns == 0 {
            if job.limits.ramp_ns > 0 {
                end_ramp(job, live, &counters, &mut self.rate_mark, now_ns);
            }
            return;
        }
        if since_ns != self.measured_since_ns {
            // A ramp leaves counts behind that are not samples of the run.
            let ramped = job.limits.ramp_ns > 0 || job.limits.ramp_bytes > 0;
            let mark = if ramped {
                Mark { at_ns: now_ns, counters }
            } else {
                Mark { at_ns: since_ns, counters: Counters::default() }
            };
            (self.bandwidth_mark, self.iops_mark) = (mark, mark);
            self.rate_mark = Mark::default();
            self.measured_since_ns = since_ns;
        }
        if job.measure.clock == fiord_plan::ClockSource::None
            && job.limits.runtime_ns.is_some_and(|limit_ns| now_ns.saturating_sub(since_ns) >= limit_ns)
        {
            live.ask_to_stop(Why::Time);
        }
        self.sample(job, &counters, now_ns);
        self.check_rates(job, live, &counters, now_ns);
    }

    /// Takes the last samples of a worker that has ended, of intervals that were all but full.
    pub(crate) fn close(&mut self, job: &Job, live: &Live) {
        let ended_ns = live.ended_ns();
        if self.measured_since_ns > 0 && ended_ns > 0 {
            self.take(job, &live.counters(), ended_ns, NEARLY_FULL_PERCENT);
        }
    }

    fn sample(&mut self, job: &Job, counters: &Counters, now_ns: u64) {
        self.take(job, counters, now_ns, 100);
    }

    /// Takes samples of intervals that are full to `percent`.
    fn take(&mut self, job: &Job, counters: &Counters, now_ns: u64, percent: u64) {
        if !job.measure.bandwidth {
            return;
        }
        let used = |direction: usize| job.access.pattern.includes(fiord_plan::Direction::ALL[direction]);
        let part = |interval_ms: u64| (interval_ms * percent / 100).max(1);
        let measure = &job.measure;
        if let Some(interval) =
            self.bandwidth_mark.advance(now_ns, counters, part(measure.bandwidth_interval_ms))
        {
            for direction in (0..3).filter(|direction| used(*direction)) {
                let kib_per_s = interval.bytes[direction] as f64 / 1024.0 / interval.seconds;
                self.bandwidth[direction].record(kib_per_s as u64);
            }
        }
        if let Some(interval) = self.iops_mark.advance(now_ns, counters, part(measure.iops_interval_ms)) {
            for direction in (0..3).filter(|direction| used(*direction)) {
                self.iops[direction].record((interval.ios[direction] as f64 / interval.seconds) as u64);
            }
        }
    }

    fn check_rates(&mut self, job: &Job, live: &Live, counters: &Counters, now_ns: u64) {
        if !has_least_rates(job) || now_ns < self.measured_since_ns + RATE_GRACE_NS {
            return;
        }
        if self.rate_mark.at_ns == 0 {
            self.rate_mark = Mark { at_ns: now_ns, counters: *counters };
            return;
        }
        let Some(interval) = self.rate_mark.advance(now_ns, counters, job.pace.cycle_ms.max(1)) else {
            return;
        };
        let missed: Vec<String> = (0..3).filter_map(|direction| missed(job, direction, &interval)).collect();
        if !missed.is_empty() {
            live.complain(missed.join("; "));
            live.ask_to_stop(Why::TooSlow);
        }
    }

    /// When this job wants to be looked at again.
    pub(crate) fn due_ns(&self, job: &Job, now_ns: u64) -> u64 {
        let after =
            |mark: &Mark, interval_ms: u64| mark.at_ns.max(self.measured_since_ns) + interval_ms * 1_000_000;
        let measure = &job.measure;
        let intervals = [
            (measure.bandwidth, &self.bandwidth_mark, measure.bandwidth_interval_ms),
            (measure.bandwidth, &self.iops_mark, measure.iops_interval_ms),
            (has_least_rates(job), &self.rate_mark, job.pace.cycle_ms.max(1)),
        ];
        if self.measured_since_ns == 0 {
            // It may begin at any moment: then its first sample is late by a tenth at most.
            let shortest_ms = intervals.iter().filter(|(wanted, ..)| *wanted).map(|(_, _, ms)| *ms).min();
            return now_ns + shortest_ms.unwrap_or(u64::from(u32::MAX)) * 100_000;
        }
        let wanted = intervals.iter().filter(|(wanted, ..)| *wanted);
        wanted.map(|(_, mark, interval_ms)| after(mark, *interval_ms)).min().unwrap_or(u64::MAX)
    }

    /// The next moment at which a clockless worker has to be told something.
    pub(crate) fn deadline_ns(&self, job: &Job, live: &Live) -> Option<u64> {
        if job.measure.clock != fiord_plan::ClockSource::None || live.state().is_over() {
            return None;
        }
        match live.measured_since_ns() {
            0 if self.rate_mark.at_ns > 0 => Some(self.rate_mark.at_ns + job.limits.ramp_ns),
            0 => None,
            since_ns => job.limits.runtime_ns.map(|limit_ns| since_ns + limit_ns),
        }
    }
}

fn has_least_rates(job: &Job) -> bool {
    job.pace.min_bytes_per_s.iter().chain(&job.pace.min_ios_per_s).any(Option::is_some)
}

/// Which minimum rate was missed in one direction, in fio's words.
fn missed(job: &Job, direction: usize, interval: &Interval) -> Option<String> {
    let below = |least: Option<u64>, done: u64| {
        let rate = (done as f64 / interval.seconds) as u64;
        least.filter(|least| rate < *least).map(|least| (least, rate))
    };
    if let Some((least, rate)) = below(job.pace.min_bytes_per_s[direction], interval.bytes[direction]) {
        return Some(format!("rate_min={least}B/s not met, got {rate}B/s"));
    }
    let (least, rate) = below(job.pace.min_ios_per_s[direction], interval.ios[direction])?;
    Some(format!("rate_iops_min={least} not met, got {rate} IOPS"))
}

/// What all workers do together, interval by interval.
#[derive(Debug)]
pub(crate) struct Crowd {
    begun_ns: u64,
    interval_ms: u64,
    mark: Mark,
}

impl Crowd {
    /// Counts from `now_ns` on, in intervals of this length.
    pub(crate) fn new(now_ns: u64, interval_ms: u64) -> Crowd {
        Crowd { begun_ns: now_ns, interval_ms, mark: Mark { at_ns: now_ns, counters: Counters::default() } }
    }

    /// When the interval under way is full.
    pub(crate) fn due_ns(&self) -> u64 {
        self.mark.at_ns + self.interval_ms * 1_000_000
    }

    /// The interval that is full by now, or `cut` short: its end in milliseconds since the beginning, and KiB/s per
    /// direction.
    pub(crate) fn look(
        &mut self,
        lives: &[Live],
        now_ns: u64,
        cut: bool,
    ) -> Option<(u64, PerDirection<u64>)> {
        let mut counters = Counters::default();
        for live in lives {
            let one = live.counters();
            for direction in 0..3 {
                counters.ios[direction] += one.ios[direction];
                counters.bytes[direction] += one.bytes[direction];
            }
        }
        let interval = self.mark.advance(now_ns, &counters, if cut { 1 } else { self.interval_ms })?;
        let kib_per_s = interval.bytes.map(|bytes| (bytes as f64 / 1024.0 / interval.seconds) as u64);
        Some(((now_ns - self.begun_ns) / 1_000_000, kib_per_s))
    }
}

/// Ends a ramp the worker cannot time itself: it has no clock, or waits for bytes as well.
fn end_ramp(job: &Job, live: &Live, counters: &Counters, mark: &mut Mark, now_ns: u64) {
    let timed_by_worker = job.measure.clock != fiord_plan::ClockSource::None && job.limits.ramp_bytes == 0;
    if timed_by_worker || live.state() != crate::State::Ramping {
        return;
    }
    if mark.at_ns == 0 {
        mark.at_ns = now_ns;
    }
    let bytes: u64 = counters.bytes.iter().sum();
    if now_ns - mark.at_ns >= job.limits.ramp_ns && bytes >= job.limits.ramp_bytes {
        live.ask(ask::MEASURE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crowd_is_summed_and_its_last_interval_cut_short() {
        let lives = [Live::default(), Live::default()];
        let mut crowd = Crowd::new(0, 500);
        lives.iter().for_each(|live| live.completed(fiord_plan::Direction::Write, 1, 1 << 20));
        assert_eq!(crowd.look(&lives, 400_000_000, false), None);
        assert_eq!(crowd.look(&lives, 500_000_000, false), Some((500, [0, 4096, 0])));
        lives[1].completed(fiord_plan::Direction::Read, 1, 1 << 20);
        assert_eq!(crowd.look(&lives, 750_000_000, true), Some((750, [4096, 0, 0])));
        assert_eq!(crowd.look(&lives, 750_000_000, true), None);
    }

    #[test]
    fn an_interval_is_reported_once_it_is_full() {
        let mut mark = Mark::default();
        let counters = Counters { ios: [10, 0, 0], bytes: [40960, 0, 0] };
        assert!(mark.advance(499_000_000, &counters, 500).is_none());
        let interval = mark.advance(500_000_000, &counters, 500).unwrap();
        assert_eq!((interval.ios[0], interval.bytes[0], interval.seconds), (10, 40960, 0.5));
        assert!(mark.advance(600_000_000, &counters, 500).is_none());
    }
}
