//! The figures of a report in few numbers: all its jobs together.
//!
//! Invariant: a figure that does not follow from those of the report is absent: percentiles of several jobs are not those of
//! all their I/Os.

use std::collections::BTreeMap;

use crate::model::{DirectionFigures, DirectionName, LatencyFigures, Report};

/// What all jobs did in some directions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Totals {
    /// I/Os completed.
    pub ios: Option<u64>,
    /// Bytes transferred.
    pub bytes: Option<u64>,
    /// I/Os per second over the time in which jobs ran.
    pub ios_per_s: Option<f64>,
    /// The same in bytes.
    pub bytes_per_s: Option<f64>,
    /// The completion latency, or the total one if only that was measured, where one job did all I/Os in one direction.
    pub latency: Option<LatencyFigures>,
}

impl Report {
    /// The sums of these directions; `None` if nothing was done in them. Jobs of a group ran together, and groups one after the
    /// other.
    pub fn totals(&self, directions: &[DirectionName]) -> Option<Totals> {
        // All directions as one are beside each of them with `unified_rw_reporting=both`.
        let is_sum = |of: &DirectionFigures, all: &[DirectionFigures]| {
            of.name == DirectionName::Mixed && all.iter().any(|each| each.is_active() && each.name != of.name)
        };
        let of_jobs = self.jobs.iter().flat_map(|job| {
            let all = job.directions.iter().filter(|of| of.is_active() && !is_sum(of, &job.directions));
            all.map(|of| (job.group_id.unwrap_or(0), of))
        });
        let active: Vec<(u32, &DirectionFigures)> =
            of_jobs.filter(|(_, of)| directions.contains(&of.name)).collect();
        let (_, first) = active.first()?;
        let mut longest_ms: BTreeMap<u32, Option<u64>> = BTreeMap::new();
        for (group_id, of) in &active {
            let longest = longest_ms.entry(*group_id).or_insert(Some(0));
            *longest = longest.zip(of.runtime_ms).map(|(longest, runtime)| longest.max(runtime));
        }
        let seconds = longest_ms.values().copied().sum::<Option<u64>>().map(|ms| ms as f64 / 1000.0);
        let seconds = seconds.filter(|seconds| *seconds > 0.0);
        let sum = |of: fn(&DirectionFigures) -> Option<u64>| {
            active.iter().try_fold(0_u64, |sum, (_, figures)| Some(sum.saturating_add(of(figures)?)))
        };
        let (ios, bytes) = (sum(|of| of.ios), sum(|of| of.bytes));
        let per_s = |count: Option<u64>| Some(count? as f64 / seconds?);
        let only = (active.len() == 1).then_some(*first);
        let measured = |latency: &Option<LatencyFigures>| latency.clone().filter(LatencyFigures::is_measured);
        Some(Totals {
            ios,
            bytes,
            ios_per_s: per_s(ios).or_else(|| only?.ios_per_s()),
            bytes_per_s: per_s(bytes).or_else(|| only?.bandwidth.map(|bandwidth| bandwidth as f64)),
            latency: only.and_then(|of| measured(&of.clat).or_else(|| measured(&of.lat))),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::JobFigures;

    fn job(group_id: u32, directions: Vec<DirectionFigures>) -> JobFigures {
        JobFigures { group_id: Some(group_id), directions, ..JobFigures::default() }
    }

    fn did(name: DirectionName, ios: u64, runtime_ms: u64) -> DirectionFigures {
        DirectionFigures {
            name,
            ios: Some(ios),
            bytes: Some(ios * 512),
            runtime_ms: Some(runtime_ms),
            clat: Some(LatencyFigures { max_ns: Some(7), ..LatencyFigures::default() }),
            ..DirectionFigures::default()
        }
    }

    #[test]
    fn groups_are_added_and_percentiles_of_several_jobs_are_not() {
        use DirectionName::{Mixed, Read, Trim, Write};
        let both = vec![did(Read, 40, 1000), did(Write, 60, 500), did(Mixed, 100, 1000)];
        let report =
            Report { jobs: vec![job(0, both), job(1, vec![did(Read, 100, 1000)])], ..Report::default() };
        let all = report.totals(&DirectionName::ALL).unwrap();
        assert_eq!((all.ios, all.ios_per_s, all.bytes_per_s), (Some(200), Some(100.0), Some(51_200.0)));
        assert_eq!(all.latency, None);
        let writes = report.totals(&[Write]).unwrap();
        assert_eq!((writes.ios, writes.ios_per_s), (Some(60), Some(120.0)));
        assert!(writes.latency.is_some());
        assert_eq!(report.totals(&[Trim]), None);
    }

    #[test]
    fn what_a_report_does_not_say_is_absent() {
        let rounded = DirectionFigures { iops: Some(5.0), bytes: Some(1), ..DirectionFigures::default() };
        let one = Report { jobs: vec![job(0, vec![rounded.clone()])], ..Report::default() };
        let all = one.totals(&DirectionName::ALL).unwrap();
        assert_eq!((all.ios, all.ios_per_s, all.latency), (None, Some(5.0), None));
        let two =
            Report { jobs: vec![job(0, vec![rounded.clone()]), job(0, vec![rounded])], ..Report::default() };
        assert_eq!(two.totals(&DirectionName::ALL).unwrap().ios_per_s, None);
    }
}
