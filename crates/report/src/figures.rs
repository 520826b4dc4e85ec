//! Figures more than one format prints, computed once.
//!
//! Invariant: a share never divides by zero; what never happened is 0.

use fiord_stats::{BatchMap, DirectionStats, Distribution, JobStats, SampleFigures};

use crate::model::{GroupReport, JobReport, RunReport, Unified, bytes_per_second};

/// One direction as it is shown: its name, its figures, and what its group did in the same direction.
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

    /// Whether anything happened: idle directions are left out of the normal text.
    pub fn is_active(&self) -> bool {
        self.stats.runtime_ms > 0 || self.stats.bytes > 0
    }

    /// Share of the group's bandwidth that the sampled mean is, at most 100.
    pub fn percent_of_group(&self, samples: &SampleFigures) -> f64 {
        percent(samples.mean, self.group_bandwidth as f64 / 1024.0).min(100.0)
    }
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
        return vec![mixed(group.directions[0].bandwidth)];
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

/// `count` of `total` in percent, but at least `least` when there is any: what happened is never printed as 0.
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
pub(crate) fn latency_percents(distribution: &Distribution, total_ios: u64) -> LatencyPercents {
    let percents = |counts: &[u64]| counts.iter().map(|count| latency_percent(*count, total_ios)).collect();
    LatencyPercents {
        ns: percents(distribution.ns()),
        us: percents(distribution.us()),
        ms: percents(distribution.ms()),
    }
}

/// Percent of all I/Os that one bucket of latencies is.
pub(crate) fn latency_percent(count: u64, total_ios: u64) -> f64 {
    share(count, total_ios, 0.01)
}

/// The percentiles to show of a job: those asked for, ascending.
pub(crate) fn percentile_list(job: &JobReport) -> Vec<f64> {
    let mut list: Vec<f64> = job.show.percentile_list.iter().copied().filter(|p| *p > 0.0).collect();
    list.sort_by(f64::total_cmp);
    list
}

/// The report's local date.
pub(crate) fn date(run: &RunReport) -> String {
    crate::time::date(run.timestamp_ms, run.utc_offset_s)
}

/// What the system calls an errno: `No space left on device`.
pub(crate) fn error_name(errno: i32) -> String {
    if errno == 0 {
        return "Success".to_owned();
    }
    let text = std::io::Error::from_raw_os_error(errno).to_string();
    match text.rfind(" (os error") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}
