//! The figures of one host among others.
//!
//! Invariant: a host without a report has none, and not zeros.

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
        run.report.as_ref()?;
        Some(Member::of_all([run]))
    }

    /// Of hosts as one: the sum of their rates, and the latencies of all their I/Os.
    pub(crate) fn of_all<'r>(runs: impl IntoIterator<Item = &'r HostRun>) -> Member {
        let (mut all, mut of_all) = (DirectionStats::default(), Member::default());
        for run in runs {
            let Some(Done(done)) = Done::of(run, None) else { continue };
            of_all.iops += per_second(&done, done.ios);
            of_all.bytes_per_s += per_second(&done, done.bytes);
            let jobs = run.report.iter().flat_map(|report| &report.jobs);
            of_all.errors += jobs.map(|job| job.stats.errors_total).sum::<u64>();
            all.merge(&done);
        }
        let latency = latency(&all);
        let percentiles = latency.percentiles(&[50.0, 99.0, 99.9]);
        Member {
            mean_ns: latency.running.mean(),
            percentiles_ns: <[u64; 3]>::try_from(percentiles).ok(),
            max_ns: latency.running.max,
            ..of_all
        }
    }

    /// The 99th percentile.
    pub fn p99_ns(&self) -> Option<u64> {
        self.percentiles_ns.map(|[_, p99, _]| p99)
    }
}

/// What one host did, in one direction or in all as one.
#[derive(Debug)]
pub struct Done(DirectionStats);

impl Done {
    /// In the direction of this number; `None`: in all. Nothing without a report.
    pub fn of(run: &HostRun, direction: Option<usize>) -> Option<Done> {
        let mut all = DirectionStats::default();
        for job in &run.report.as_ref()?.jobs {
            let directions = job.stats.directions.iter().enumerate();
            let wanted = directions.filter(|(number, _)| direction.is_none_or(|wanted| wanted == *number));
            wanted.for_each(|(_, done)| all.merge(done));
        }
        Some(Done(all))
    }

    /// Whether there were no I/Os.
    pub fn is_empty(&self) -> bool {
        self.0.ios == 0
    }

    /// I/Os and bytes per second, over the longest runtime.
    pub fn rates(&self) -> [f64; 2] {
        [per_second(&self.0, self.0.ios), per_second(&self.0, self.0.bytes)]
    }

    /// The mean latency, in nanoseconds.
    pub fn mean_ns(&self) -> f64 {
        latency(&self.0).running.mean()
    }

    /// A percentile of latency, in nanoseconds; `None` if no histogram was kept.
    pub fn percentile_ns(&self, percent: f64) -> Option<u64> {
        latency(&self.0).percentiles(&[percent]).first().copied()
    }
}

fn per_second(all: &DirectionStats, count: u64) -> f64 {
    match all.runtime_ms {
        0 => 0.0,
        runtime_ms => count as f64 * 1000.0 / runtime_ms as f64,
    }
}

fn latency(all: &DirectionStats) -> &Latency {
    if all.completion.running.count > 0 { &all.completion } else { &all.total }
}
