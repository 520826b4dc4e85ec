//! Whether a run was long enough, and its jobs ran together.
//!
//! Invariant: a job that failed is not judged by its length.

use std::collections::BTreeMap;

use fiord_options::job;
use fiord_plan::{Job, Plan};
use fiord_report::table::Cell;
use fiord_report::{Code, Finding, Subject};

use super::measured::{Ended, JobEvidence, Measurements};
use crate::subject::{self, percent};

/// A percentile needs this many I/Os above it.
const IOS_ABOVE_MIN: f64 = 10.0;

/// Jobs that ran together for less of the time of all than this were apart, in percent.
const TOGETHER_MIN: f64 = 50.0;

/// A job that ended before its `runtime`, since its size was done.
pub(super) fn by_size(job: &Job, known: &JobEvidence<'_>) -> Option<Finding> {
    let asked_s = job.limits.runtime_ns? as f64 / 1e9;
    let lasted_s = known.elapsed_ms as f64 / 1e3;
    if known.ended == Ended::BySize { stopped(subject::job(job), lasted_s, asked_s) } else { None }
}

/// The finding of a job that transferred all of its size in this many seconds of those of its `runtime`.
pub(crate) fn stopped(subject: Subject, lasted_s: f64, asked_s: f64) -> Option<Finding> {
    (lasted_s < 0.95 * asked_s).then(|| {
        let sentence = format!(
            "it ended after {lasted_s:.1} s of {asked_s:.0} s, because all of its size was transferred"
        );
        Finding::new(Code::StoppedBySize, subject, sentence, "time_based=1 runs for the full time")
            .of_option(job::Time::time_based)
            .based_on([("lasted_s", Cell::Number(lasted_s, 1)), ("runtime_s", Cell::Number(asked_s, 1))])
    })
}

/// The highest percentile that is shown, of the job with the fewest I/Os: `group_reporting` shows them together.
pub(super) fn few_samples(plan: &Plan, measured: &Measurements<'_>) -> Option<Finding> {
    let mut shown: BTreeMap<(u32, u32, usize), (&Job, u64)> = BTreeMap::new();
    // A job that goes on will have more.
    for (job, known) in measured.sound(plan).filter(|(_, known)| known.ended != Ended::NotYet) {
        // The percentiles reported together, or of each job alone.
        let number = if job.presentation.group_reporting { u32::MAX } else { job.number };
        let directions = known.stats.directions.iter().enumerate();
        for (index, direction) in directions.filter(|(_, of)| of.ios > 0) {
            shown.entry((job.group_id, number, index)).or_insert((job, 0)).1 += direction.ios;
        }
    }
    let worst = shown.values().filter_map(lacking).min_by(|one, other| one.0.total_cmp(&other.0))?;
    let (percentile, job, ios) = worst;
    Some(few(subject::job(job), percentile, ios))
}

/// The finding of a job whose percentiles are based on too few of its I/Os from this one on.
pub(crate) fn few(subject: Subject, percentile: f64, ios: u64) -> Finding {
    let above = ios as f64 * (100.0 - percentile) / 100.0;
    let sentence = format!("percentiles from p{percentile} are based on fewer than 10 of {ios} I/Os");
    let finding = Finding::new(Code::FewSamples, subject, sentence, "");
    finding.based_on([
        ("percentile", Cell::Number(percentile, 2)),
        ("ios", Cell::Count(ios)),
        ("ios_above", Cell::Number(above, 1)),
    ])
}

/// The lowest of these percentiles, ascending, that is based on too few of so many I/Os.
pub(crate) fn first_lacking(percentiles: impl IntoIterator<Item = f64>, ios: u64) -> Option<f64> {
    // 100 - 99.9 is slightly less than 0.1.
    let enough = |percentile: &f64| ios as f64 * (100.0 - percentile) / 100.0 >= IOS_ABOVE_MIN - 1e-6;
    // The maximum does not depend on the number of I/Os.
    let mut wanted = percentiles.into_iter().filter(|percentile| *percentile < 100.0);
    wanted.find(|percentile| !enough(percentile))
}

/// The lowest percentile in the report that is based on too few of the I/Os of a job.
fn lacking<'j>((job, ios): &(&'j Job, u64)) -> Option<(f64, &'j Job, u64)> {
    let measures = &job.measure;
    let has_any =
        measures.completion_percentiles || measures.total_percentiles || measures.submission_percentiles;
    let first = first_lacking(job.presentation.percentiles.iter().copied(), *ios)?;
    has_any.then_some((first, *job, *ios))
}

/// Jobs of a group that is reported as one and did not run at the same time.
pub(super) fn apart(plan: &Plan, measured: &Measurements<'_>) -> Vec<Finding> {
    let mut groups: BTreeMap<u32, Vec<(&Job, &JobEvidence<'_>)>> = BTreeMap::new();
    for (job, known) in measured.working(plan).filter(|(job, _)| job.presentation.group_reporting) {
        groups.entry(job.group_id).or_default().push((job, known));
    }
    groups.values().filter_map(|jobs| apart_in(jobs)).collect()
}

fn apart_in(jobs: &[(&Job, &JobEvidence<'_>)]) -> Option<Finding> {
    let begins = || jobs.iter().map(|(_, known)| known.started_ms);
    let ends = || jobs.iter().map(|(_, known)| known.started_ms + known.elapsed_ms);
    let all_ms = ends().max()?.saturating_sub(begins().min()?);
    let together_ms = ends().min()?.saturating_sub(begins().max()?);
    let share = percent(together_ms as f64, all_ms as f64);
    // The kernel starts threads within milliseconds of each other.
    (jobs.len() > 1 && all_ms > 200 && share < TOGETHER_MIN).then(|| {
        let (job, _) = jobs[0];
        let sentence = format!(
            "the {} jobs reported together ran at the same time for {share:.0} % of the time: their sum was not reached at any time",
            jobs.len()
        );
        let remedy = "time_based=1 with the same runtime for all, or no group_reporting";
        let finding = Finding::new(Code::NoOverlap, subject::job(job), sentence, remedy).of_option(job::Measure::group_reporting);
        finding.based_on([("together_percent", Cell::Number(share, 1))])
    })
}

#[cfg(test)]
mod tests {
    use crate::evidence::testing::{job, moved, nothing};
    use crate::testing::plan;

    use super::*;

    #[test]
    fn a_job_that_ends_before_its_time_is_found() {
        let plan = plan(&[("a", &[("runtime", "60")]), ("b", &[])]);
        let stats = moved(0, 4096);
        let known = |ended, elapsed_ms| JobEvidence { ended, elapsed_ms, ..job(&stats) };
        let found = by_size(&plan.jobs[0], &known(Ended::BySize, 12_400)).unwrap();
        assert_eq!(found.sentence, "it ended after 12.4 s of 60 s, because all of its size was transferred");
        assert_eq!(by_size(&plan.jobs[0], &known(Ended::BySize, 59_900)), None);
        assert_eq!(by_size(&plan.jobs[0], &known(Ended::Otherwise, 12_400)), None);
        assert_eq!(by_size(&plan.jobs[1], &known(Ended::BySize, 12_400)), None);
    }

    fn few(options: &[(&'static str, &str)], ios: u64) -> Option<String> {
        let plan = plan(&[("a", options)]);
        let stats = moved(0, ios * 4096);
        let jobs: Vec<_> = plan.jobs.iter().map(|_| job(&stats)).collect();
        few_samples(&plan, &Measurements { jobs: &jobs, ..nothing() }).map(|finding| finding.sentence)
    }

    #[test]
    fn percentiles_that_rest_on_too_few_are_found() {
        let sentence = "percentiles from p99.5 are based on fewer than 10 of 1000 I/Os";
        assert_eq!(few(&[], 1000).as_deref(), Some(sentence));
        assert_eq!(few(&[], 100_000), None, "ten above p99.99");
        assert_eq!(few(&[("percentile_list", "50:99")], 1000), None);
        assert!(few(&[("percentile_list", "50:99")], 999).is_some());
        assert_eq!(few(&[("clat_percentiles", "0")], 10), None, "none are shown");
        assert_eq!(few(&[("numjobs", "100"), ("group_reporting", "1")], 1000), None, "all together");
        assert_eq!(few(&[], 0), None);
        let (plan, stats) = (plan(&[("a", &[])]), moved(0, 3 * 4096));
        let goes_on = [JobEvidence { ended: Ended::NotYet, ..job(&stats) }];
        assert_eq!(
            few_samples(&plan, &Measurements { jobs: &goes_on, ..nothing() }),
            None,
            "there will be more"
        );
    }

    #[test]
    fn jobs_that_did_not_run_together_are_found_where_they_are_reported_together() {
        let found = |grouped: &str, starts_ms: [u64; 2]| {
            let options = [
                ("ioengine", "psync"),
                ("filename", "/data/f"),
                ("group_reporting", grouped),
                ("numjobs", "2"),
            ];
            let plan = plan(&[("a", &options)]);
            let stats = moved(0, 1 << 20);
            let jobs = starts_ms.map(|started_ms| JobEvidence { started_ms, ..job(&stats) });
            apart(&plan, &Measurements { jobs: &jobs, ..nothing() }).len()
        };
        assert_eq!(found("1", [1_000, 9_000]), 1);
        assert_eq!(found("1", [1_000, 3_000]), 0);
        assert_eq!(found("0", [1_000, 9_000]), 0);
    }
}
