//! Figures that more than one format prints, computed once.
//!
//! Invariant: a share of nothing is 0; no figure divides by zero.

use fiord_errno::Errno;
use fiord_stats::{
    BatchMap, DirectionStats, JobStats, Latency, LatencyDistribution, PriorityLatency, SampleFigures,
};

use crate::model::{GroupReport, JobReport, RunReport, Unified, bytes_per_second};

/// One direction as it is shown: its name, its figures, and the rate of its group in the same direction.
pub(crate) struct Shown<'a> {
    /// `read`, `write`, `trim` or `mixed`.
    pub name: &'static str,
    /// Its figures.
    pub stats: std::borrow::Cow<'a, DirectionStats>,
    /// Bytes per second of the whole group in this direction.
    pub group_bandwidth: u64,
}

impl Shown<'_> {
    /// Bytes per second.
    pub fn bandwidth(&self) -> u64 {
        bytes_per_second(self.stats.bytes, self.stats.runtime_ms)
    }

    /// I/Os per second.
    pub fn iops(&self) -> f64 {
        if self.stats.runtime_ms == 0 {
            0.0
        } else {
            self.stats.ios as f64 * 1000.0 / self.stats.runtime_ms as f64
        }
    }

    /// Whether it completed any I/O: idle directions are omitted from the normal text.
    pub fn is_active(&self) -> bool {
        self.stats.runtime_ms > 0 || self.stats.bytes > 0
    }

    /// Whether it has a rate, by which I/Os have intended starts.
    pub fn has_response(&self) -> bool {
        self.stats.response.histogram.is_allocated()
    }

    /// The sampled mean as a percentage of the group's bandwidth, at most 100.
    pub fn percent_of_group(&self, samples: &SampleFigures) -> f64 {
        percent(samples.mean, self.group_bandwidth as f64 / 1024.0).min(100.0)
    }
}

/// The latencies of a direction by priority, if its I/Os have several: name, latency, and share of the I/Os in percent.
pub(crate) fn priorities<'a>(job: &JobReport, shown: &'a Shown<'a>) -> Vec<(String, &'a Latency, f64)> {
    let kind = if shown.stats.is_total_by_priority() { "lat" } else { "clat" };
    let listed = priorities_listed(job, shown);
    let named = listed.into_iter().map(|each| {
        let (class, level, hint) = each.parts();
        let count = each.latency.running.count;
        (
            format!("{kind} prio {class}/{level}/{hint}"),
            &each.latency,
            percent(count as f64, shown.stats.ios as f64),
        )
    });
    named.collect()
}

/// The priorities of a direction that are listed: those of completed I/Os, if there are several.
pub(crate) fn priorities_listed<'a>(job: &JobReport, shown: &'a Shown<'a>) -> Vec<&'a PriorityLatency> {
    let is_shown = if shown.stats.is_total_by_priority() { job.show.lat } else { job.show.clat };
    let listed = shown.stats.priorities.iter().filter(|each| is_shown && each.latency.running.count > 0);
    let listed: Vec<&PriorityLatency> = listed.collect();
    if listed.len() > 1 { listed } else { Vec::new() }
}

/// Whether the latencies by priority have percentiles.
pub(crate) fn has_priority_percentiles(job: &JobReport, shown: &Shown<'_>) -> bool {
    if shown.stats.is_total_by_priority() { job.show.lat_percentiles } else { job.show.clat_percentiles }
}

/// The directions of `job` (one of those whose [`RunReport::groups`] are `groups`) in the order they are shown; one of them under `unified_rw_reporting=mixed`, and a fourth one
/// under `both`.
pub(crate) fn shown<'a>(job: &'a JobReport, groups: &[GroupReport]) -> Vec<Shown<'a>> {
    use std::borrow::Cow;
    let place = groups.binary_search_by_key(&job.group_id, |group| group.group_id);
    let group = place.map(|place| groups[place].clone()).unwrap_or_default();
    let mixed =
        |bandwidth| Shown { name: "mixed", stats: Cow::Owned(job.stats.mixed()), group_bandwidth: bandwidth };
    if job.show.unified == Unified::Mixed {
        return vec![mixed(group.mixed.bandwidth)];
    }
    let mut all: Vec<Shown> = fiord_stats::job::DIRECTIONS
        .iter()
        .zip(&job.stats.directions)
        .zip(&group.directions)
        .map(|((name, stats), group)| Shown {
            name,
            stats: Cow::Borrowed(stats),
            group_bandwidth: group.bandwidth,
        })
        .collect();
    if job.show.unified == Unified::Both {
        all.push(mixed(group.mixed.bandwidth));
    }
    all
}

/// `part` of `whole` in percent.
pub(crate) fn percent(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { 100.0 * part / whole } else { 0.0 }
}

/// `count` of `total` in percent, but at least `least` if there is any, so that it is never printed as 0.
fn share(count: u64, total: u64, least: f64) -> f64 {
    let share = percent(count as f64, total as f64);
    if count > 0 && total > 0 { share.max(least) } else { share }
}

/// User and system time in percent of the elapsed time, together at most 100: a job is one thread, and the time of a
/// short one is rounded.
pub(crate) fn cpu_percents(stats: &JobStats) -> (f64, f64) {
    let elapsed_us = stats.usage.elapsed_ms as f64 * 1000.0;
    let user = percent(stats.usage.user_us as f64, elapsed_us);
    let system = percent(stats.usage.system_us as f64, elapsed_us);
    let scale = 100.0 / (user + system).max(100.0);
    (user * scale, system * scale)
}

/// I/Os of all directions.
pub(crate) fn total_ios(stats: &JobStats) -> u64 {
    stats.directions.iter().map(|direction| direction.ios).sum()
}

/// Percent of the I/Os at each depth; syncs count as I/Os here, so the sum may exceed 100.
pub(crate) fn depth_percents(stats: &JobStats) -> [f64; 7] {
    let total = total_ios(stats);
    stats.depth.counts.map(|count| share(count, total, 0.1))
}

/// Percent of the calls with each batch size.
pub(crate) fn batch_percents(map: &BatchMap) -> [f64; 7] {
    map.counts.map(|count| share(count, map.calls(), 0.1))
}

/// Percents of I/Os in each bucket of ns, us and ms.
pub(crate) struct LatencyPercents {
    /// Below 1 us.
    pub ns: Vec<f64>,
    /// From 1 us.
    pub us: Vec<f64>,
    /// From 1 ms.
    pub ms: Vec<f64>,
}

/// Percents of all I/Os whose completion latency falls in each bucket.
pub(crate) fn latency_percents(distribution: &LatencyDistribution, total_ios: u64) -> LatencyPercents {
    let percents = |counts: &[u64]| counts.iter().map(|count| latency_percent(*count, total_ios)).collect();
    LatencyPercents {
        ns: percents(distribution.ns()),
        us: percents(distribution.us()),
        ms: percents(distribution.ms()),
    }
}

/// One bucket of latencies in percent of all I/Os.
pub(crate) fn latency_percent(count: u64, total_ios: u64) -> f64 {
    share(count, total_ios, 0.01)
}

/// The percentiles requested for a job, ascending.
pub(crate) fn percentile_list(job: &JobReport) -> Vec<f64> {
    let mut list: Vec<f64> = job.show.percentile_list.iter().copied().filter(|p| *p > 0.0).collect();
    list.sort_unstable_by(f64::total_cmp);
    list
}

/// The percentiles of response latencies: those of the other latencies, if any are requested.
pub(crate) fn response_percentiles(job: &JobReport) -> Vec<f64> {
    match job.show.clat_percentiles || job.show.lat_percentiles {
        true => percentile_list(job),
        false => Vec::new(),
    }
}

/// The report's local date.
pub(crate) fn date(run: &RunReport) -> String {
    crate::time::date(run.timestamp_ms, run.utc_offset_s)
}

/// The system's text for an errno: `No space left on device`.
pub(crate) fn error_name(errno: i32) -> &'static str {
    match errno {
        0 => "Success",
        _ => Errno(errno).describe(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // divergence: processor time above the run time
    #[test]
    fn a_job_has_at_most_all_of_a_processor() {
        let percents = |user_us, system_us| {
            let mut stats = JobStats::default();
            (stats.usage.elapsed_ms, stats.usage.user_us, stats.usage.system_us) = (10, user_us, system_us);
            cpu_percents(&stats)
        };
        assert_eq!(percents(2000, 1000), (20.0, 10.0));
        assert_eq!(percents(15_000, 5000), (75.0, 25.0));
    }
}
