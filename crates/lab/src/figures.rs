//! The figures of one direction of a run, as tables show them.
//!
//! Invariant: rates are all I/Os of a direction over the longest run time of its jobs, as in fio's group lines; those of
//! a whole run are over the sum of its groups' times, as in the history. Of a run that became steady, figures are those of
//! its steady part; where its latencies are not known, latencies are of the whole run. Writes that are each followed by a
//! sync have the latency of both together.

use std::collections::BTreeMap;

use fiord_report::table::Cell;
use fiord_report::{JobReport, RunReport};
use fiord_stats::job::DIRECTIONS;
use fiord_stats::{Capped, DirectionStats, JobPart, Latency, RunLatencies, RunSteadiness};

/// Reads, writes or trims of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures {
    /// I/Os per second.
    pub iops: f64,
    /// Bytes per second.
    pub bytes_per_s: f64,
    /// Mean completion latency.
    pub mean_ns: u64,
    /// Median completion latency.
    pub p50_ns: u64,
    /// 99th percentile of completion latency.
    pub p99_ns: u64,
    /// 99.9th percentile of completion latency.
    pub p999_ns: u64,
    /// The longest completion latency.
    pub max_ns: u64,
    /// The number of I/Os that these figures are computed from.
    pub ios: u64,
}

/// Index of reads in [`fiord_stats::job::DIRECTIONS`].
pub const READ: usize = 0;
/// Index of writes.
pub const WRITE: usize = 1;

impl Figures {
    /// MiB per second.
    pub fn mib_per_s(&self) -> f64 {
        mib(self.bytes_per_s)
    }

    /// I/Os per second, as tables show it. Sentences show the same cell.
    pub fn iops_cell(&self) -> Cell {
        Cell::Count(u64::capped(self.iops.round()))
    }

    /// MiB per second, as tables show it. Sentences show the same cell.
    pub fn mib_per_s_cell(&self) -> Cell {
        Cell::Number(self.mib_per_s(), 1)
    }

    /// Of one direction of all jobs; `None` if there was no I/O in it.
    pub fn of(report: &RunReport, direction: usize) -> Option<Figures> {
        let all = merged(report.jobs.iter(), direction);
        let part = report.steadiness.as_ref().and_then(RunSteadiness::proper_part);
        let rates = part.map(|part| (part.ios_per_s[direction], part.bytes_per_s[direction]));
        let latency = part_latencies(report);
        let latency = latency.map(|latencies| in_part(latencies, direction, report.jobs.iter()));
        (all.ios > 0).then(|| Figures::of_direction(&all).at(rates).with_latency(latency.as_ref()))
    }

    /// Of the jobs of this name alone.
    pub fn of_job(report: &RunReport, name: &str, direction: usize) -> Option<Figures> {
        let jobs = || report.jobs.iter().filter(|job| job.name == name);
        let all = merged(jobs(), direction);
        let part = job_parts(report).iter().find(|part| part.name == name);
        let rates = part.map(|part| (part.ios_per_s[direction], part.bytes_per_s[direction]));
        let latency = part.and_then(|part| part.latencies.as_ref());
        let latency = latency.map(|latencies| in_part(latencies, direction, jobs()));
        (all.ios > 0).then(|| Figures::of_direction(&all).at(rates).with_latency(latency.as_ref()))
    }

    /// Of all directions of all jobs. Groups of jobs ran one after the other, so their times add up.
    pub fn of_all(report: &RunReport) -> Option<Figures> {
        let all = whole_run(report);
        let part = report.steadiness.as_ref().and_then(RunSteadiness::proper_part);
        let rates = part.map(|part| (part.ios_per_s.iter().sum(), part.bytes_per_s.iter().sum()));
        let latency = part_latencies(report).map(|latencies| {
            let mut all = Latency::default();
            let of = |direction| in_part(latencies, direction, report.jobs.iter());
            (0..DIRECTIONS.len()).map(of).for_each(|latency| all.merge(&latency));
            all
        });
        (all.ios > 0).then(|| Figures::of_direction(&all).at(rates).with_latency(latency.as_ref()))
    }

    /// With these rates of I/Os and bytes, if there are any.
    fn at(self, rates: Option<(f64, f64)>) -> Figures {
        rates.map_or(self, |(iops, bytes_per_s)| Figures { iops, bytes_per_s, ..self })
    }

    /// With the figures of this latency, if it has any.
    fn with_latency(self, latency: Option<&Latency>) -> Figures {
        let Figures { iops, bytes_per_s, .. } = self;
        let known = latency.filter(|latency| latency.running.count > 0);
        known.map_or(self, |latency| Figures { iops, bytes_per_s, ..Figures::of_latency(latency) })
    }

    fn of_direction(stats: &DirectionStats) -> Figures {
        let seconds = stats.runtime_ms.max(1) as f64 / 1000.0;
        Figures {
            iops: stats.ios as f64 / seconds,
            bytes_per_s: stats.bytes as f64 / seconds,
            ios: stats.ios,
            ..Figures::of_latency(&stats.completion)
        }
    }

    fn of_latency(latency: &Latency) -> Figures {
        let percentiles = latency.percentiles(&[50.0, 99.0, 99.9]);
        Figures {
            mean_ns: u64::capped(latency.running.mean().round()),
            p50_ns: percentiles[0],
            p99_ns: percentiles[1],
            p999_ns: percentiles[2],
            max_ns: latency.running.max,
            ios: latency.running.count,
            ..Figures::default()
        }
    }
}

/// All directions of all jobs, over the whole run.
pub(crate) fn whole_run(report: &RunReport) -> DirectionStats {
    let mut all = DirectionStats::default();
    let mut longest_ms: BTreeMap<u32, u64> = BTreeMap::new();
    for job in &report.jobs {
        let runtime_ms = longest_ms.entry(job.group_id).or_default();
        for (direction, stats) in job.stats.directions.iter().enumerate() {
            all.merge(&merged(std::iter::once(job), direction));
            *runtime_ms = stats.runtime_ms.max(*runtime_ms);
        }
    }
    all.runtime_ms = longest_ms.values().sum();
    all
}

/// The latencies behind the figures of a direction: of all jobs, or of those of one name.
pub(crate) fn latency_of(report: &RunReport, name: Option<&str>, direction: usize) -> Latency {
    let jobs = || named(report, name);
    let part = part_of(report, name).map(|latencies| in_part(latencies, direction, jobs()));
    part.filter(|latency| latency.running.count > 0).unwrap_or_else(|| merged(jobs(), direction).completion)
}

/// The latencies of sync calls: of all jobs, or of those of one name.
pub(crate) fn sync_latency_of(report: &RunReport, name: Option<&str>) -> Latency {
    let part = part_of(report, name).map(|latencies| latencies.sync.clone());
    part.filter(|latency| latency.running.count > 0).unwrap_or_else(|| {
        let mut all = Latency::default();
        named(report, name).for_each(|job| all.merge(&job.stats.sync.latency));
        all
    })
}

/// All jobs, or those of this name.
pub(crate) fn named<'r>(report: &'r RunReport, name: Option<&'r str>) -> impl Iterator<Item = &'r JobReport> {
    report.jobs.iter().filter(move |job| name.is_none_or(|name| job.name == name))
}

/// The latencies of the steady part of a run, likewise, if that is not the whole run and they are known.
fn part_of<'r>(report: &'r RunReport, name: Option<&str>) -> Option<&'r RunLatencies> {
    match name {
        None => part_latencies(report),
        Some(name) => job_parts(report).iter().find(|part| part.name == name)?.latencies.as_ref(),
    }
}

/// What jobs did in a direction together; the latency of each write is with its sync, if each has one.
fn merged<'j>(jobs: impl Iterator<Item = &'j JobReport>, direction: usize) -> DirectionStats {
    let mut all = DirectionStats::default();
    let mut completion = Latency::default();
    for job in jobs {
        let synced = if direction == WRITE { job.stats.synced_writes(job.member_count) } else { None };
        completion.merge(synced.as_ref().unwrap_or(&job.stats.directions[direction].completion));
        all.merge(&job.stats.directions[direction]);
    }
    DirectionStats { completion, ..all }
}

/// The latency of a direction in a part of a run of these jobs, likewise.
fn in_part<'j>(
    latencies: &RunLatencies,
    direction: usize,
    jobs: impl Iterator<Item = &'j JobReport>,
) -> Latency {
    let mut writing = jobs.filter(|job| job.stats.directions[WRITE].ios > 0);
    match direction == WRITE && writing.all(|job| job.stats.syncs_each_write(job.member_count)) {
        true => latencies.directions[direction].followed_by(&latencies.sync),
        false => latencies.directions[direction].clone(),
    }
}

/// The latencies of the steady part of a run, if that is not the whole run and they are known.
fn part_latencies(report: &RunReport) -> Option<&RunLatencies> {
    report.steadiness.as_ref().and_then(RunSteadiness::proper_part)?;
    report.part_latencies.as_ref().map(|part| &part.latencies)
}

/// What the jobs of each name did in the steady part, if that is not the whole run and known of them one by one. Jobs that
/// are reported as one with those of another name have only figures of the whole run.
pub(crate) fn job_parts(report: &RunReport) -> &[JobPart] {
    let is_reported = |part: &JobPart| report.jobs.iter().any(|job| job.name == part.name);
    let has_part = report.steadiness.as_ref().and_then(RunSteadiness::proper_part).is_some();
    match has_part && report.job_parts.iter().all(is_reported) {
        true => &report.job_parts,
        false => &[],
    }
}

/// Bytes in MiB.
pub fn mib(bytes: f64) -> f64 {
    bytes / f64::from(1 << 20)
}

/// Standard error of the bandwidth of all jobs and directions together, in bytes per second, from the samples taken
/// during the run. Jobs are assumed to vary independently.
pub fn bandwidth_error_bytes_per_s(report: &RunReport) -> f64 {
    let variance = |job: &JobReport, direction: &DirectionStats| {
        let samples = direction.bandwidth.figures();
        // A sample is of one job; the sum over `member_count` jobs deviates that many times as much.
        let error_kib = f64::from(job.member_count) * samples.stddev / (samples.count.max(1) as f64).sqrt();
        (error_kib * 1024.0).powi(2)
    };
    let of_job =
        |job: &JobReport| job.stats.directions.iter().map(|direction| variance(job, direction)).sum::<f64>();
    report.jobs.iter().map(of_job).sum::<f64>().sqrt()
}

/// Utilisation of the busiest device under the files, 0 to 100; `None` if no device was measured.
pub fn utilisation_percent(report: &RunReport) -> Option<f64> {
    report.disks.iter().map(|disk| disk.util_percent).max_by(f64::total_cmp)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{direction, report, synced};

    #[test]
    fn times_of_groups_are_added_and_times_of_jobs_in_a_group_are_not() {
        let mut run = report(Some(direction(100, 4096, 10)), Some(direction(50, 4096, 10)));
        run.jobs.extend(report(Some(direction(150, 4096, 10)), None).jobs);
        let iops = |run: &RunReport| Figures::of_all(run).map(|figures| figures.iops);
        assert_eq!(iops(&run), Some(300.0));
        run.jobs[1].group_id = 1;
        assert_eq!(iops(&run), Some(150.0));
    }

    /// 25 us of a write to memory say nothing of a job whose caller waits 9 ms for the sync after each.
    #[test]
    fn writes_that_are_each_synced_have_the_latency_of_both() {
        let writes = |syncs: u64| {
            let mut run = synced(report(None, Some(direction(100, 4096, 25_000))), syncs, 9_000_000);
            run.jobs[0].name = "wal".to_string();
            run.jobs[0].member_count = 1;
            run
        };
        let figures = |run: &RunReport| {
            [Figures::of(run, WRITE), Figures::of_all(run), Figures::of_job(run, "wal", WRITE)]
                .map(Option::unwrap)
        };
        for run in [writes(100), writes(99)] {
            for figures in figures(&run) {
                assert_eq!((figures.iops, figures.mean_ns, figures.max_ns), (100.0, 9_025_000, 9_025_000));
                assert!(figures.p99_ns.abs_diff(9_025_000) < 200_000, "{figures:?}");
            }
        }
        // Every fourth, or once at the end.
        for run in [writes(25), writes(1), writes(0)] {
            assert!(figures(&run).iter().all(|figures| figures.mean_ns == 25_000), "{run:?}");
        }
        let mut of_part = writes(100);
        of_part.jobs.extend(report(Some(direction(10, 4096, 70_000)), None).jobs);
        assert_eq!(Figures::of(&of_part, READ).unwrap().mean_ns, 70_000);
        let mut part = RunLatencies::default();
        part.directions[WRITE] = direction(50, 4096, 20_000).completion;
        part.sync = direction(50, 4096, 4_000_000).completion;
        assert_eq!(in_part(&part, WRITE, of_part.jobs.iter()).running.mean(), 4_020_000.0);
        assert_eq!(in_part(&part, WRITE, writes(1).jobs.iter()).running.mean(), 20_000.0);
    }
}
