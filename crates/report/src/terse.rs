//! fio's terse lines: a job in one line of fields, versions 2 to 5.
//!
//! Invariant: the number of fields of a version is fixed (161, 121, 162, 180), whatever was measured; disks, error counts
//! and a description come after them.

use std::fmt::Write;

use fiord_device::DiskUse;
use fiord_stats::{Capped, JobStats, Latency, Moments};

use crate::figures::{self, Shown};
use crate::model::{GroupReport, JobReport, RunReport, Unified};

/// Percentiles in a line, used or not.
const PERCENTILES: usize = 20;

/// Versions of the line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum TerseVersion {
    /// Without fio's version and disks; a description gets a line of its own.
    V2,
    /// Without trims.
    #[default]
    V3,
    /// With trims.
    V4,
    /// With trims and IOPS samples.
    V5,
}

impl TerseVersion {
    /// The number the line starts with.
    pub fn number(self) -> u32 {
        match self {
            TerseVersion::V2 => 2,
            TerseVersion::V3 => 3,
            TerseVersion::V4 => 4,
            TerseVersion::V5 => 5,
        }
    }

    /// The version with this number.
    pub fn from_number(number: u32) -> Option<Self> {
        [TerseVersion::V2, TerseVersion::V3, TerseVersion::V4, TerseVersion::V5]
            .into_iter()
            .find(|version| version.number() == number)
    }
}

/// Appends `;` and each value.
macro_rules! fields {
    ($out:expr, $($value:expr),+ $(,)?) => {{ $( let _ = write!($out, ";{}", $value); )+ }};
}

/// One line for each job.
pub fn terse(run: &RunReport, version: TerseVersion) -> String {
    let groups = run.groups();
    let mut out = String::new();
    for report in &run.jobs {
        job(&mut out, run, report, &groups, version);
        out.push('\n');
    }
    out
}

fn job(out: &mut String, run: &RunReport, job: &JobReport, groups: &[GroupReport], version: TerseVersion) {
    let _ = write!(out, "{}", version.number());
    if version != TerseVersion::V2 {
        fields!(out, run.version);
    }
    fields!(out, job.name, job.group_id, job.error);
    let shown = figures::shown(job, groups);
    let trims = version != TerseVersion::V3 || job.show.unified == Unified::Mixed;
    for direction in shown.iter().filter(|direction| trims || direction.name != "trim") {
        direction_fields(out, job, direction, version);
    }
    shares(out, &job.stats);
    if version != TerseVersion::V2 {
        run.disks
            .iter()
            .flat_map(|disk| std::iter::once(disk).chain(&disk.members))
            .for_each(|d| disk(out, d));
    }
    if job.continue_on_error {
        fields!(out, job.stats.errors_total, job.stats.first_error);
    }
    if let Some(description) = &job.description {
        if version == TerseVersion::V2 {
            out.push('\n');
        }
        fields!(out, description);
    }
}

fn direction_fields(out: &mut String, job: &JobReport, shown: &Shown, version: TerseVersion) {
    let stats = &shown.stats;
    fields!(out, stats.bytes / 1024, shown.bandwidth() / 1024, u64::capped(shown.iops()), stats.runtime_ms);
    moments(out, &stats.submission.running);
    moments(out, &stats.completion.running);
    let list = figures::percentile_list(job);
    // A line has one table: that of total latencies if both are requested.
    let show = &job.show;
    match (show.lat && show.lat_percentiles, show.clat && show.clat_percentiles) {
        (true, _) => percentiles(out, &stats.total, &list),
        (false, true) => percentiles(out, &stats.completion, &list),
        (false, false) => percentiles(out, &stats.completion, &[]),
    }
    moments(out, &stats.total.running);
    let bandwidth = stats.bandwidth.figures();
    // Unlike the other formats, the share is of the group's bandwidth in whole KiB/s.
    let of_group = figures::percent(bandwidth.mean, (shown.group_bandwidth / 1024) as f64).min(100.0);
    fields!(out, bandwidth.min, bandwidth.max);
    let _ = write!(out, ";{of_group:.6}%;{:.6};{:.6}", bandwidth.mean, bandwidth.stddev);
    if version == TerseVersion::V5 {
        let iops = stats.iops.figures();
        fields!(out, bandwidth.count, iops.min, iops.max);
        let _ = write!(out, ";{:.6};{:.6};{}", iops.mean, iops.stddev, iops.count);
    }
}

/// Minimum, maximum, mean and deviation in microseconds.
fn moments(out: &mut String, running: &Moments) {
    let (min, max) = (running.min() / 1000, running.max / 1000);
    let _ = write!(out, ";{min};{max};{:.6};{:.6}", running.mean() / 1000.0, running.stddev() / 1000.0);
}

/// Twenty fields of `percent%=microseconds`; unused ones are `0%=0`.
fn percentiles(out: &mut String, latency: &Latency, list: &[f64]) {
    let list = &list[..list.len().min(PERCENTILES)];
    for (percent, value_ns) in list.iter().zip(latency.percentiles(list)) {
        let _ = write!(out, ";{percent:.6}%={}", value_ns / 1000);
    }
    out.push_str(&";0%=0".repeat(PERCENTILES - list.len()));
}

fn shares(out: &mut String, stats: &JobStats) {
    let (user, system) = figures::cpu_percents(stats);
    let usage = &stats.usage;
    let _ = write!(out, ";{user:.6}%;{system:.6}%");
    fields!(out, usage.context_switches, usage.major_faults, usage.minor_faults);
    for percent in figures::depth_percents(stats) {
        let _ = write!(out, ";{percent:.1}%");
    }
    // Latencies below a microsecond have no field; the first one of microseconds includes them.
    let (distribution, total) = (&stats.distribution, figures::total_ios(stats));
    let below_us: u64 = distribution.ns().iter().sum();
    let mut percents = figures::latency_percents(distribution, total);
    percents.us[0] = figures::latency_percent(below_us + distribution.us()[0], total);
    for percent in percents.us.iter().chain(&percents.ms) {
        let _ = write!(out, ";{percent:.2}%");
    }
}

fn disk(out: &mut String, disk: &DiskUse) {
    let done = &disk.done;
    fields!(out, disk.name, done.read_ios, done.write_ios, done.read_merges, done.write_merges);
    fields!(out, done.read_ms, done.write_ms, done.in_queue_ms);
    let _ = write!(out, ";{:.2}%", disk.util_percent);
}

#[cfg(test)]
mod tests {
    use super::*;

    // divergence: latency shares below 1 us
    #[test]
    fn shares_below_a_microsecond_are_one_percentage() {
        let mut stats = JobStats::default();
        // Of three I/Os, each in a bucket of its own: 33.33 % thrice are not 100 %.
        [0, 2, 4].into_iter().for_each(|ns| stats.distribution.record(ns, ns as usize));
        stats.directions[0].ios = 3;
        let mut line = String::new();
        shares(&mut line, &stats);
        let percents: Vec<&str> = line.split(';').collect();
        assert_eq!(percents[13..15], ["100.00%", "0.00%"], "{line}");
    }
}
