//! The figures of one host among others.
//!
//! Invariant: a host without a report has none, and not zeros.

use fiord_report::JobReport;
use fiord_stats::{DirectionStats, Latency};

use crate::run::HostRun;

/// The figures of one host: over all its jobs and directions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Member {
    /// I/Os per second, over the longest runtime.
    pub iops: f64,
    /// Bytes per second, over the longest runtime.
    pub bytes_per_s: f64,
    /// Completion latencies in nanoseconds, or total ones if only those were measured: the mean.
    pub mean_ns: f64,
    /// The percentiles 50, 99 and 99.9; `None` if no histogram was kept.
    pub percentiles_ns: Option<[u64; 3]>,
    /// The longest.
    pub max_ns: u64,
    /// I/Os that failed.
    pub errors: u64,
}

impl Member {
    /// Of a host; `None` without a report.
    pub fn of(run: &HostRun) -> Option<Member> {
        let jobs = &run.report.as_ref()?.jobs;
        let all = sum(jobs.iter());
        let latency = latency(&all);
        let per_second = |count: u64| match all.runtime_ms {
            0 => 0.0,
            runtime_ms => count as f64 * 1000.0 / runtime_ms as f64,
        };
        let percentiles = latency.percentiles(&[50.0, 99.0, 99.9]);
        Some(Member {
            iops: per_second(all.ios),
            bytes_per_s: per_second(all.bytes),
            mean_ns: latency.running.mean(),
            percentiles_ns: <[u64; 3]>::try_from(percentiles).ok(),
            max_ns: latency.running.max,
            errors: jobs.iter().map(|job| job.stats.errors_total).sum(),
        })
    }

    /// The 99th percentile.
    pub fn p99_ns(&self) -> Option<u64> {
        self.percentiles_ns.map(|[_, p99, _]| p99)
    }
}

fn latency(all: &DirectionStats) -> &Latency {
    if all.completion.running.count > 0 { &all.completion } else { &all.total }
}

/// All jobs and directions as one.
fn sum<'a>(jobs: impl Iterator<Item = &'a JobReport>) -> DirectionStats {
    let mut all = DirectionStats::default();
    jobs.flat_map(|job| &job.stats.directions).for_each(|direction| all.merge(direction));
    all
}
