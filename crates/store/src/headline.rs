//! The few figures of a run that lists show.
//!
//! Invariant: jobs of a group ran concurrently and groups one after the other, so rates are over the sum of the groups'
//! longest runtimes.

use std::collections::BTreeMap;

use fiord_report::finding::any_void;
use fiord_report::{JobReport, RunReport};
use fiord_stats::{DirectionStats, Latency};

/// A run in three figures, all jobs and directions together; a study in those of its subject.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Headline {
    /// I/Os per second.
    pub ios_per_s: Option<f64>,
    /// Bytes per second.
    pub bytes_per_s: Option<f64>,
    /// The 99th percentile of completion latency in nanoseconds; of total latency if completions were not measured,
    /// `None` if no percentiles were.
    pub latency_p99_ns: Option<u64>,
    /// The subject of the latency if it is not that of all I/Os: `write + sync`, or the name of a study's figure.
    pub latency_of: Option<String>,
    /// A finding says that the figures do not measure what the jobs specify.
    pub is_void: bool,
}

/// The name of the latency of a run that syncs each of its writes.
const SYNCED_WRITES: &str = "write + sync";

impl Headline {
    /// Of a report.
    pub fn of(report: &RunReport) -> Headline {
        let mut longest_ms: BTreeMap<u32, u64> = BTreeMap::new();
        let (mut ios, mut bytes) = (0, 0);
        for job in &report.jobs {
            let runtime_ms = longest_ms.entry(job.group_id).or_default();
            for direction in &job.stats.directions {
                *runtime_ms = direction.runtime_ms.max(*runtime_ms);
                ios += direction.ios;
                bytes += direction.bytes;
            }
        }
        let seconds = longest_ms.values().sum::<u64>() as f64 / 1000.0;
        let per_s = |count: u64| if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
        let synced: Option<Vec<Latency>> = report.jobs.iter().map(synced_writes).collect();
        let synced = synced.filter(|jobs| !jobs.is_empty());
        let latency_of = synced.as_ref().map(|_| SYNCED_WRITES.to_owned());
        let latency_p99_ns = match synced {
            Some(jobs) => p99_ns(jobs.iter()),
            None => of_ios(report, |direction| &direction.completion)
                .or_else(|| of_ios(report, |direction| &direction.total)),
        };
        Headline {
            ios_per_s: Some(per_s(ios)),
            bytes_per_s: Some(per_s(bytes)),
            latency_p99_ns,
            latency_of,
            is_void: any_void(&report.findings),
        }
    }
}

/// The latency of each write together with its sync, if a job only writes, and syncs after every write.
fn synced_writes(job: &JobReport) -> Option<Latency> {
    let [reads, _, trims] = &job.stats.directions;
    job.stats.synced_writes(job.member_count).filter(|_| reads.ios + trims.ios == 0)
}

fn of_ios(report: &RunReport, kind: fn(&DirectionStats) -> &Latency) -> Option<u64> {
    p99_ns(report.jobs.iter().flat_map(|job| &job.stats.directions).map(kind))
}

fn p99_ns<'a>(latencies: impl Iterator<Item = &'a Latency>) -> Option<u64> {
    let mut measured = latencies.filter(|latency| latency.running.count > 0);
    let mut all = measured.next()?.clone();
    measured.for_each(|latency| all.merge(latency));
    (all.histogram.count() > 0).then(|| all.percentiles(&[99.0])[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_groups_are_added_and_times_of_jobs_in_a_group_are_not() {
        let job = |group_id, ios, runtime_ms| {
            let mut job = JobReport { group_id, ..JobReport::default() };
            let mut completion = Latency::with_histogram();
            (0..ios).for_each(|_| {
                completion.record(100 + u64::from(group_id));
            });
            job.stats.directions[1] = DirectionStats {
                ios,
                bytes: ios * 4096,
                runtime_ms,
                completion,
                ..DirectionStats::default()
            };
            job
        };
        let jobs = vec![job(0, 50, 1000), job(0, 50, 500), job(1, 300, 3000)];
        let headline = Headline::of(&RunReport { jobs, ..RunReport::default() });
        let expected = Headline {
            ios_per_s: Some(100.0),
            bytes_per_s: Some(409_600.0),
            latency_p99_ns: Some(101),
            latency_of: None,
            is_void: false,
        };
        assert_eq!(headline, expected);
        let nothing = Headline { ios_per_s: Some(0.0), bytes_per_s: Some(0.0), ..Headline::default() };
        assert_eq!(Headline::of(&RunReport::default()), nothing);
    }

    #[test]
    fn the_latency_of_a_run_that_syncs_each_write_is_that_of_both() {
        let latencies = |count, ns| {
            let mut latency = Latency::with_histogram();
            (0..count).for_each(|_| {
                latency.record(ns);
            });
            latency
        };
        let of = |writes: u64, syncs: u64, reads: u64| {
            let mut job = JobReport { member_count: 1, ..JobReport::default() };
            let direction =
                |ios| DirectionStats { ios, completion: latencies(ios, 50), ..Default::default() };
            job.stats.directions = [direction(reads), direction(writes), direction(0)];
            job.stats.sync.latency = latencies(syncs, 90);
            let headline = Headline::of(&RunReport { jobs: vec![job], ..RunReport::default() });
            (headline.latency_p99_ns, headline.latency_of)
        };
        let synced = (Some(140), Some(SYNCED_WRITES.to_owned()));
        assert_eq!([of(100, 100, 0), of(100, 99, 0)], [synced.clone(), synced]);
        // Every fourth, at the end, with reads, and none at all.
        let all = (Some(50), None);
        for run in [of(100, 25, 0), of(100, 1, 0), of(1, 1, 0), of(100, 100, 100), of(100, 0, 0)] {
            assert_eq!(run, all);
        }
    }
}
