//! One run at a rate: whether it met the bound, what it shows, and what was exhausted.
//!
//! Invariant: I/Os that arrived and were never issued count as beyond the bound.

use std::time::Duration;

use fiord_report::table::{Cell, Column};
use fiord_report::{Code, JobReport, RunReport};
use fiord_stats::DirectionStats;

use super::search::Trial;
use crate::figures::{Figures, WRITE, utilisation_percent};

/// A percentile of the response latency and its limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    /// 99.9.
    pub percentile: f64,
    /// The longest that it may be.
    pub limit: Duration,
}

/// Names of what limits the rate, for programs.
pub(super) const DISK: &str = "disk";
pub(super) const HOST: &str = "host";

/// From this share of a processor or of a device's time it is exhausted, in percent.
const EXHAUSTED_PERCENT: f64 = 90.0;

impl Bound {
    /// A run at this rate, judged.
    pub(super) fn judge<'r>(&self, rate: u64, report: &'r RunReport) -> Trial<'r> {
        let all = all_directions(report);
        let lost = all.never_issued().unwrap_or(0);
        let response_ns = percentile_with_lost(&all, lost, self.percentile);
        let meets = response_ns.is_some_and(|ns| u128::from(ns) <= self.limit.as_nanos());
        Trial { rate, response_ns, lost, meets, report }
    }
}

/// All I/Os of a run; the response to a write is over when its sync is, if each has one.
fn all_directions(report: &RunReport) -> DirectionStats {
    let mut all = DirectionStats::default();
    for job in &report.jobs {
        for (direction, stats) in job.stats.directions.iter().enumerate() {
            match direction == WRITE && job.stats.syncs_each_write(job.member_count) {
                true => all.merge(&DirectionStats {
                    response: stats.response.followed_by(&job.stats.sync.latency),
                    ..stats.clone()
                }),
                false => all.merge(stats),
            }
        }
    }
    all
}

/// A percentile over the I/Os that were done and those that were lost; `None` if it is one of the latter.
pub(super) fn percentile_with_lost(all: &DirectionStats, lost: u64, percentile: f64) -> Option<u64> {
    let done = all.response.histogram.count();
    let among_done = percentile * (done + lost) as f64 / done.max(1) as f64;
    if done == 0 || (lost > 0 && among_done > 100.0) {
        return None;
    }
    all.response.percentiles(&[among_done]).first().copied()
}

/// Processor time of the jobs in percent of one processor each: the busiest job's.
fn processor_percent(report: &RunReport) -> Option<f64> {
    let of = |job: &JobReport| {
        let usage = &job.stats.usage;
        let elapsed_us = usage.elapsed_ms as f64 * 1000.0;
        (elapsed_us > 0.0).then(|| 100.0 * (usage.user_us + usage.system_us) as f64 / elapsed_us)
    };
    report.jobs.iter().filter_map(of).max_by(f64::total_cmp)
}

/// What was exhausted in a run, if anything was: the host before the disk, which a busy host keeps busy too.
pub(super) fn exhausted(report: &RunReport) -> Option<&'static str> {
    let is_host = |code: Code| matches!(code, Code::CpuBound | Code::CpuContended | Code::CpuThrottled);
    let host = report.findings.iter().any(|finding| is_host(finding.code))
        || processor_percent(report).is_some_and(|percent| percent >= EXHAUSTED_PERCENT);
    let disk = utilisation_percent(report).is_some_and(|percent| percent >= EXHAUSTED_PERCENT);
    if host { Some(HOST) } else { disk.then_some(DISK) }
}

/// The columns of a run.
pub(super) const COLUMNS: [Column; 9] = [
    Column::new("rate_iops", "RATE"),
    Column::new("iops", "IOPS"),
    Column::new("mib_per_s", "MiB/s"),
    Column::new("response_ns", "RESPONSE"),
    Column::new("p50_ns", "P50"),
    Column::new("never_issued", "LOST"),
    Column::new("util_percent", "UTIL(%)"),
    Column::new("cpu_percent", "CPU(%)"),
    Column::new("meets", "MEETS"),
];

/// The row of a run.
pub(super) fn row(trial: &Trial<'_>) -> Vec<Cell> {
    let figures = Figures::of_all(trial.report).unwrap_or_default();
    let response = all_directions(trial.report).response;
    let percent = |value: Option<f64>| value.map_or(Cell::None, |percent| Cell::Number(percent, 1));
    vec![
        Cell::Count(trial.rate),
        figures.iops_cell(),
        figures.mib_per_s_cell(),
        trial.response_ns.map_or(Cell::None, Cell::Latency),
        response.percentiles(&[50.0]).first().map_or(Cell::None, |ns| Cell::Latency(*ns)),
        Cell::Count(trial.lost),
        percent(utilisation_percent(trial.report)),
        percent(processor_percent(trial.report)),
        Cell::Text(if trial.meets { "yes" } else { "no" }.to_string()),
    ]
}
