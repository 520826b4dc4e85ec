//! Throughput samples of one worker, and the end of its ramp and of its run time if it has no clock of its own.
//!
//! Invariant: only reads live counters and writes requests, on the coordinator's thread.

use fiord_plan::{ClockSource, Direction, Job, PerDirection};
use fiord_stats::Capped;
use fiord_stats::Samples;

use super::window::{WindowStart, counts_before_measuring};
use crate::live::{Counters, Live, State, StopReason, request};

/// How full the last interval of a worker must be to count, in percent.
const NEARLY_FULL_PERCENT: u64 = 90;

/// The samples of one worker.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sampler {
    /// KiB/s, per direction.
    pub bandwidth: PerDirection<Samples>,
    /// I/Os per second, per direction.
    pub iops: PerDirection<Samples>,
    bandwidth_start: WindowStart,
    iops_start: WindowStart,
    /// When its ramp was seen to begin, if the worker cannot end it itself; 0 before.
    ramp_seen_ns: u64,
    measured_since_ns: u64,
}

impl Sampler {
    /// Samples a running worker.
    pub(crate) fn look(&mut self, job: &Job, live: &Live, now_ns: u64) {
        let since_ns = live.measured_since_ns();
        let counters = live.counters();
        if since_ns == 0 {
            if job.limits.ramp_ns > 0 {
                end_ramp(job, live, &counters, &mut self.ramp_seen_ns, now_ns);
            }
            return;
        }
        if since_ns != self.measured_since_ns {
            let window_start = match counts_before_measuring(job) {
                true => WindowStart { at_ns: now_ns, counters },
                false => WindowStart { at_ns: since_ns, counters: Counters::default() },
            };
            (self.bandwidth_start, self.iops_start) = (window_start, window_start);
            self.measured_since_ns = since_ns;
        }
        if job.measure.clock == ClockSource::None
            && job.limits.runtime_ns.is_some_and(|limit_ns| now_ns.saturating_sub(since_ns) >= limit_ns)
        {
            live.request_stop(StopReason::Time);
        }
        self.take(job, &counters, now_ns, 100);
    }

    /// Takes the last samples of a worker that has ended, of intervals that were nearly full.
    pub(crate) fn close(&mut self, job: &Job, live: &Live) {
        let ended_ns = live.ended_ns();
        if self.measured_since_ns > 0 && ended_ns > 0 {
            self.take(job, &live.counters(), ended_ns, NEARLY_FULL_PERCENT);
        }
    }

    /// Takes samples of intervals that are full to `percent`.
    fn take(&mut self, job: &Job, counters: &Counters, now_ns: u64, percent: u64) {
        if !job.measure.bandwidth {
            return;
        }
        let used =
            || Direction::ALL.into_iter().filter(|direction| job.issues(*direction)).map(Direction::index);
        let part = |interval_ms: u64| (interval_ms * percent / 100).max(1);
        let measure = &job.measure;
        if let Some(window) =
            self.bandwidth_start.advance(now_ns, counters, part(measure.bandwidth_interval_ms))
        {
            used().for_each(|direction| self.bandwidth[direction].record(window.kib_per_s()[direction]));
        }
        if let Some(window) = self.iops_start.advance(now_ns, counters, part(measure.iops_interval_ms)) {
            let per_s = |direction: usize| u64::capped(window.ios[direction] as f64 / window.seconds);
            used().for_each(|direction| self.iops[direction].record(per_s(direction)));
        }
    }

    /// When this job is to be sampled next.
    pub(crate) fn due_ns(&self, job: &Job, now_ns: u64) -> u64 {
        let measure = &job.measure;
        let (bandwidth_ms, iops_ms) = (measure.bandwidth_interval_ms, measure.iops_interval_ms);
        if self.measured_since_ns == 0 {
            // Ramp and measurement may begin at any time; they are then seen at most a tenth of an interval late.
            return now_ns + bandwidth_ms.min(iops_ms) * 100_000;
        }
        if !measure.bandwidth {
            return u64::MAX;
        }
        let end_ns = |window_start: &WindowStart, interval_ms: u64| {
            window_start.at_ns.max(self.measured_since_ns) + interval_ms * 1_000_000
        };
        end_ns(&self.bandwidth_start, bandwidth_ms).min(end_ns(&self.iops_start, iops_ms))
    }

    /// The next time at which a worker without a clock needs a request.
    pub(crate) fn deadline_ns(&self, job: &Job, live: &Live) -> Option<u64> {
        if job.measure.clock != ClockSource::None || live.state().is_over() {
            return None;
        }
        match live.measured_since_ns() {
            0 if self.ramp_seen_ns > 0 => Some(self.ramp_seen_ns + job.limits.ramp_ns),
            0 => None,
            since_ns => job.limits.runtime_ns.map(|limit_ns| since_ns + limit_ns),
        }
    }
}

/// Ends a ramp that the worker cannot time itself: it has no clock, or its ramp also has a size.
fn end_ramp(job: &Job, live: &Live, counters: &Counters, seen_ns: &mut u64, now_ns: u64) {
    let timed_by_worker = job.measure.clock != ClockSource::None && job.limits.ramp_bytes == 0;
    if timed_by_worker || live.state() != State::Ramping {
        return;
    }
    if *seen_ns == 0 {
        *seen_ns = now_ns;
    }
    let bytes: u64 = counters.bytes.iter().sum();
    if now_ns - *seen_ns >= job.limits.ramp_ns && bytes >= job.limits.ramp_bytes {
        live.request(request::MEASURE);
    }
}
