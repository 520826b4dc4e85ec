//! What was measured and observed of one variant.
//!
//! Invariant: times are sums over its runs; rates and seconds are those of its typical run.

use fiord_profile::split::KernelShares;
use fiord_profile::{InFlight, Observation, RequestTimes, Second, SplitInput, Stacks, TimeSplit};
use fiord_report::RunReport;
use fiord_stats::{Capped, DirectionStats, Usage};

use crate::figures::{Figures, READ, WRITE};
use crate::step::StepResult;

/// Most variants that are shown side by side.
pub const VARIANTS_MAX: usize = 6;

/// Most windows of a run that are shown.
const WINDOWS_MAX: usize = 10;

/// One variant of the job.
#[derive(Clone, Debug)]
pub(super) struct Variant {
    /// `direct=0`.
    pub name: String,
    /// The throughput and latency of its typical run.
    pub figures: Figures,
    /// The typical run as a whole, and window by window.
    pub whole: Option<Second>,
    pub windows: Vec<Second>,
    /// The time of all threads in all its runs.
    pub split: TimeSplit,
    /// I/Os in all its runs.
    pub ios: u64,
    /// Context switches of the threads in all its runs.
    pub context_switches: u64,
    /// What the jobs read and wrote in all its runs, and what the disks did meanwhile; `None` without disks.
    pub read: Moved,
    pub written: Moved,
    /// The requests of its typical run, if they were traced.
    pub requests: Option<RequestTimes>,
    /// Samples of all its runs; none if stacks were not sampled.
    pub stacks: Stacks,
}

/// Bytes of the jobs, and of the disks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Moved {
    pub by_jobs: u64,
    pub by_disks: Option<u64>,
}

impl Variant {
    /// Of its typical run and all its runs; `None` if there was no I/O.
    pub(super) fn of(
        name: String,
        (typical, observed): (&StepResult, &Observation),
        runs: &[(&StepResult, &Observation)],
    ) -> Option<Variant> {
        let mut variant = Variant {
            name,
            figures: Figures::of_all(&typical.report)?,
            whole: Second::whole(&observed.readings),
            windows: Second::windows(&observed.readings, WINDOWS_MAX),
            split: TimeSplit::default(),
            ios: 0,
            context_switches: 0,
            read: Moved::default(),
            written: Moved::default(),
            requests: observed.requests.clone(),
            stacks: Stacks::default(),
        };
        let sampled = runs.iter().filter_map(|(_, observed)| observed.stacks.as_ref());
        variant.stacks = sampled.fold(Stacks::default(), |all, stacks| all.plus(stacks));
        let kernel = variant.stacks.kernel_shares();
        for (run, observed) in runs {
            let usage = usage(&run.report);
            variant.split =
                variant.split.plus(&TimeSplit::of(&split_input(&run.report, &usage, kernel, observed)));
            variant.context_switches += usage.context_switches;
            let directions = || run.report.jobs.iter().flat_map(|job| &job.stats.directions);
            variant.ios += directions().map(|direction| direction.ios).sum::<u64>();
            let disks = observed.readings.last().and_then(|reading| reading.disks);
            variant.read.add(bytes(&run.report, READ), disks.map(|disks| disks.read_bytes));
            variant.written.add(bytes(&run.report, WRITE), disks.map(|disks| disks.write_bytes));
        }
        (variant.ios > 0).then_some(variant)
    }

    /// A time of all threads as one of each I/O, in nanoseconds.
    pub(super) fn per_io_ns(&self, ns: u64) -> f64 {
        ns as f64 / self.ios.max(1) as f64
    }
}

impl Moved {
    fn add(&mut self, by_jobs: u64, by_disks: Option<u64>) {
        self.by_jobs += by_jobs;
        self.by_disks = by_disks.map(|bytes| bytes + self.by_disks.unwrap_or(0)).or(self.by_disks);
    }

    /// The share of the jobs' bytes that the disks moved, up to 1; `None` if either did nothing that can be compared.
    pub(super) fn share(&self) -> Option<f64> {
        let by_disks = self.by_disks.filter(|_| self.by_jobs > 0)?;
        Some((by_disks as f64 / self.by_jobs as f64).min(1.0))
    }
}

fn usage(report: &RunReport) -> Usage {
    let mut all = Usage::default();
    report.jobs.iter().for_each(|job| all.merge(&job.stats.usage));
    all
}

fn bytes(report: &RunReport, direction: usize) -> u64 {
    let of = |stats: &DirectionStats| stats.bytes;
    report.jobs.iter().map(|job| of(&job.stats.directions[direction])).sum()
}

fn split_input(
    report: &RunReport,
    usage: &Usage,
    kernel: Option<KernelShares>,
    observed: &Observation,
) -> SplitInput {
    let threads: u64 = report.jobs.iter().map(|job| u64::from(job.member_count)).sum();
    let disks = observed.readings.last().and_then(|reading| reading.disks);
    SplitInput {
        total_ns: usage.elapsed_ms.saturating_mul(1_000_000),
        user_ns: usage.user_us.saturating_mul(1000),
        system_ns: usage.system_us.saturating_mul(1000),
        own: observed.own,
        kernel,
        processor_wait_ns: observed.processor_wait_ns,
        in_flight: match (disks, &observed.requests) {
            (None, _) => InFlight::NoDisk,
            (Some(disks), None) => InFlight::counted(disks.requests_ms, disks.busy_ms, threads),
            (Some(_), Some(requests)) => {
                // What all threads waited for on average, over the time of one.
                let ns =
                    |mean: f64| u64::capped(mean * usage.elapsed_ms as f64 * 1e6 / threads.max(1) as f64);
                InFlight::Traced { queue_ns: ns(requests.queue_mean), device_ns: ns(requests.device_mean) }
            }
        },
    }
}
