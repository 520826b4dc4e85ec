//! The figures of one host among others.
//!
//! Invariant: a host without a report has none, and not zeros.

use fiord_report::RunReport;
use fiord_stats::{Capped, DirectionStats, Latency, Summary};

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
        Some(Member::of_all(&[run]))
    }

    /// Of hosts as one, the median of the rounds that all have.
    pub(crate) fn of_all(runs: &[&HostRun]) -> Member {
        let rounds = runs.iter().map(|run| run.rounds().count()).min().unwrap_or(0);
        let of_round = |round| Member::of_round(runs.iter().filter_map(|run| run.rounds().nth(round)));
        Member::median(&(0..rounds).map(of_round).collect::<Vec<_>>())
    }

    /// Of rounds: the median of each figure, the longest latency and all failed I/Os.
    fn median(rounds: &[Member]) -> Member {
        let median = |of: &dyn Fn(&Member) -> f64| {
            Summary::of(&rounds.iter().map(of).collect::<Vec<_>>()).map_or(0.0, |summary| summary.median)
        };
        let percentiles: Option<Vec<[u64; 3]>> = rounds.iter().map(|round| round.percentiles_ns).collect();
        let percentiles_ns = percentiles.filter(|all| !all.is_empty()).map(|_| {
            [0, 1, 2].map(|at| {
                u64::capped(median(&|round| round.percentiles_ns.map_or(0.0, |all| all[at] as f64)))
            })
        });
        Member {
            iops: median(&|round| round.iops),
            bytes_per_s: median(&|round| round.bytes_per_s),
            mean_ns: median(&|round| round.mean_ns),
            percentiles_ns,
            max_ns: rounds.iter().map(|round| round.max_ns).max().unwrap_or(0),
            errors: rounds.iter().map(|round| round.errors).sum(),
        }
    }

    /// Of hosts as one in a round: the sum of their rates, and the latencies of all their I/Os.
    pub(crate) fn of_round<'r>(reports: impl IntoIterator<Item = &'r RunReport>) -> Member {
        let (mut all, mut of_all) = (DirectionStats::default(), Member::default());
        for report in reports {
            let Done(done) = Done::of(report, None);
            of_all.iops += per_second(&done, done.ios);
            of_all.bytes_per_s += per_second(&done, done.bytes);
            of_all.errors += report.jobs.iter().map(|job| job.stats.errors_total).sum::<u64>();
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
    /// In the direction of this number; `None`: in all.
    pub fn of(report: &RunReport, direction: Option<usize>) -> Done {
        let mut all = DirectionStats::default();
        for job in &report.jobs {
            let directions = job.stats.directions.iter().enumerate();
            let wanted = directions.filter(|(number, _)| direction.is_none_or(|wanted| wanted == *number));
            wanted.for_each(|(_, done)| all.merge(done));
        }
        Done(all)
    }

    /// Whether there were no I/Os.
    pub fn is_empty(&self) -> bool {
        self.0.ios == 0
    }

    /// The longest runtime in milliseconds, I/Os and bytes.
    pub(crate) fn counts(&self) -> (u64, u64, u64) {
        (self.0.runtime_ms, self.0.ios, self.0.bytes)
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
