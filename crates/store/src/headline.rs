//! The few figures a list shows of a run.
//!
//! Invariant: jobs of a group ran side by side and groups one after the other, so rates are over the sum of the groups'
//! longest runtimes.

use std::collections::BTreeMap;

use fiord_report::RunReport;
use fiord_stats::{DirectionStats, Latency};

/// A run in three figures, all jobs and directions together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Headline {
    /// I/Os per second.
    pub ios_per_s: f64,
    /// Bytes per second.
    pub bytes_per_s: f64,
    /// The completion latency that 99 % of the I/Os stay within, in nanoseconds; of the total latency where completions
    /// were not measured, `None` where no percentiles were.
    pub latency_p99_ns: Option<u64>,
}

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
        Headline {
            ios_per_s: per_s(ios),
            bytes_per_s: per_s(bytes),
            latency_p99_ns: p99_ns(report, |direction| &direction.completion)
                .or_else(|| p99_ns(report, |direction| &direction.total)),
        }
    }
}

fn p99_ns(report: &RunReport, kind: fn(&DirectionStats) -> &Latency) -> Option<u64> {
    let directions = report.jobs.iter().flat_map(|job| &job.stats.directions);
    let mut measured = directions.map(kind).filter(|latency| latency.running.count > 0);
    let mut all = measured.next()?.clone();
    measured.for_each(|latency| all.merge(latency));
    (all.histogram.count() > 0).then(|| all.percentiles(&[99.0])[0])
}

#[cfg(test)]
mod tests {
    use fiord_report::JobReport;

    use super::*;

    #[test]
    fn groups_follow_each_other_and_jobs_of_a_group_do_not() {
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
        let expected = Headline { ios_per_s: 100.0, bytes_per_s: 409_600.0, latency_p99_ns: Some(101) };
        assert_eq!(headline, expected);
        assert_eq!(Headline::of(&RunReport::default()), Headline::default());
    }
}
