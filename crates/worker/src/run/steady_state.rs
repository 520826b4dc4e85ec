//! The rule that ends jobs once a measure of theirs has become steady (`steadystate`).
//!
//! Invariant: measurements follow each other without a gap, and none covers a ramp.

use fiord_plan::{DebugChannel, Job, Steady, SteadyLimit};
use fiord_stats::{Capped, SteadyRule, SteadySample, SteadyWindow};

use super::group::{GroupRule, JobTick, Stop, Tick};
use super::window::{Window, WindowStart, counts_before_measuring};
use crate::debug::DebugLog;
use crate::live::StopReason;
use crate::report::WorkerReport;

/// The rule for jobs that are reported as one.
#[derive(Debug)]
pub(super) struct SteadyStateRule {
    steady: Steady,
    window: SteadyWindow,
    window_start: Option<WindowStart>,
    due_ns: u64,
}

impl SteadyStateRule {
    /// The rule for these jobs, which share one steady state; `None` if they have none.
    pub(super) fn over(jobs: &[Job]) -> Option<SteadyStateRule> {
        let steady = jobs.first()?.steady?;
        let duration_ns = steady.duration_s * 1_000_000_000;
        let window =
            SteadyWindow::new(rule(&steady), duration_ns / steady.interval_ns, seconds(steady.interval_ns));
        Some(SteadyStateRule { steady, window, window_start: None, due_ns: 0 })
    }

    /// Begins the first measurement, once a job is measured and the ramp of the steady state is over. Returns when to
    /// look again.
    fn begin(&mut self, tick: &Tick<'_>) -> u64 {
        let measured = tick.jobs.iter().filter(|job| job.is_measured());
        let Some(since_ns) = measured.map(|job| job.measured_since_ns).min() else {
            // It may begin at any time; the first measurement then starts at most a tenth late.
            return tick.now_ns + self.steady.interval_ns / 10;
        };
        let begins_ns = since_ns + self.steady.ramp_ns;
        if tick.now_ns < begins_ns {
            return begins_ns;
        }
        let has_counts =
            self.steady.ramp_ns > 0 || tick.jobs.iter().any(|job| counts_before_measuring(job.job));
        let window_start = match has_counts {
            true => WindowStart { at_ns: tick.now_ns, counters: tick.counters() },
            // Every job began with empty counters, some time before this tick.
            false => WindowStart { at_ns: since_ns, ..WindowStart::default() },
        };
        self.window_start = Some(window_start);
        window_start.at_ns + self.steady.interval_ns
    }
}

impl SteadyStateRule {
    /// Prints a measurement and, once the window is full, what is judged.
    fn print(&self, debug: &DebugLog, tick: &Tick<'_>, measured: &Window) {
        let Some(JobTick { job, .. }) = tick.jobs.first() else { return };
        let (SteadySample { iops, bytes_per_s, .. }, state) = (sample(measured), self.window.state());
        debug.line(
            DebugChannel::Steadystate,
            format_args!(
                "steadystate_check() thread: {}, groupid: {}, rate_msec: {}, iops: {iops}, bw: {bytes_per_s}",
                job.number,
                job.group_id,
                u64::capped(measured.seconds * 1e3)
            ),
        );
        if (state.samples.len() as u64) < state.window {
            return;
        }
        let values = || state.samples.iter().map(|sample| sample.of(state.rule.measure));
        let (sum, limit, criterion) = (values().sum::<u64>(), state.rule.limit, state.criterion);
        let judged = match state.rule.is_slope {
            true => {
                let products: u64 = (0..).zip(values()).map(|(x, y): (u64, u64)| x * y).sum();
                format!("sum_xy: {products}, slope: {:.6}, criterion: {criterion:.6}", state.slope)
            }
            false => {
                let mean = sum as f64 / state.samples.len() as f64;
                format!("mean: {mean:.6}, max diff: {:.6}, objective: {criterion:.6}", state.max_deviation)
            }
        };
        debug.line(DebugChannel::Steadystate, format_args!("sum_y: {sum}, {judged}, limit: {limit:.6}"));
    }
}

impl GroupRule for SteadyStateRule {
    fn due_ns(&self) -> u64 {
        self.due_ns
    }

    fn look(&mut self, tick: &Tick<'_>) -> Vec<Stop> {
        if tick.jobs.iter().all(|job| job.state.is_over()) {
            self.due_ns = u64::MAX;
            return Vec::new();
        }
        let Some(window_start) = &mut self.window_start else {
            self.due_ns = self.begin(tick);
            return Vec::new();
        };
        let measured =
            window_start.advance(tick.now_ns, &tick.counters(), self.steady.interval_ns / 1_000_000);
        self.due_ns = window_start.at_ns + self.steady.interval_ns;
        let Some(measured) = measured else { return Vec::new() };
        let is_steady = self.window.push(sample(&measured));
        if let Some(debug) = tick.debug.filter(|debug| debug.has(DebugChannel::Steadystate)) {
            self.print(debug, tick, &measured);
        }
        if !is_steady {
            return Vec::new();
        }
        self.due_ns = u64::MAX;
        let stop = |job: u32| Stop { job, reason: StopReason::Steady, complaint: None };
        tick.jobs.iter().map(|job| stop(job.job.number)).collect()
    }

    fn annotate(&self, report: &mut WorkerReport) {
        report.steady = Some(Box::new(self.window.state()));
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

fn rule(steady: &Steady) -> SteadyRule {
    let (is_percent, limit) = match steady.criterion.limit {
        SteadyLimit::Percent(percent) => (true, percent),
        SteadyLimit::Absolute(limit) => (false, limit),
    };
    SteadyRule {
        measure: steady.criterion.measure,
        is_slope: steady.criterion.is_slope,
        is_percent,
        limit,
        duration_s: steady.duration_s,
    }
}

fn sample(window: &Window) -> SteadySample {
    let ios: u64 = window.ios.iter().sum();
    let per_second = |count: u64| u64::capped(count as f64 / window.seconds);
    SteadySample {
        iops: per_second(ios),
        bytes_per_s: per_second(window.bytes.iter().sum()),
        latency_ns: window.latency_ns.checked_div(window.latencies).unwrap_or(0),
    }
}
