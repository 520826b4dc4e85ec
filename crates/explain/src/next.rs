//! What to look at next.
//!
//! Invariant: every suggestion follows from a figure of the report or from a finding, and there are few of them.

use fiord_import::{DirectionFigures, DirectionName, JobFigures, LatencyFigures, Report};

use crate::noted::NotedFinding;

/// More suggestions would not be read.
const ADVICE_MAX: usize = 4;
/// Fewer I/Os than this have no tail to speak of: p99 rests on ten.
const IOS_MIN: u64 = 1000;
/// From this ratio of the 99th percentile to the median on, the tail is worth looking at.
const TAIL_MIN: f64 = 10.0;

/// The suggestions, the most important first.
pub(crate) fn advice(report: &Report, findings: &[NotedFinding]) -> Vec<String> {
    let mut all = of_findings(findings);
    if let Some(job) = report.jobs.iter().find(|job| job.error.is_some_and(|error| error != 0)) {
        all.push(format!("Find out why job {} failed: the kernel's log has errors of devices.", job.name));
    }
    if let Some(name) = report.jobs.iter().find(|job| has_long_tail(job)).map(|job| &job.name) {
        all.push(format!(
            "Job {name} has a long tail. write_lat_log=FILE records each I/O: see whether the slow ones come together."
        ));
    }
    if report.jobs.iter().any(is_unsampled) {
        all.push(
            "The run is shorter than a second or two. runtime=30 with time_based=1 gives samples over time."
                .to_string(),
        );
    }
    if all.is_empty() {
        all.push("Run it again: two runs show how much such figures vary from run to run.".to_string());
    }
    all.truncate(ADVICE_MAX);
    all
}

/// The suggestions that follow from findings.
pub(crate) fn of_findings(findings: &[NotedFinding]) -> Vec<String> {
    let mut all = Vec::new();
    if let Some(worst) = findings.iter().find(|finding| finding.severity == "void") {
        all.push(format!(
            "Repeat the run before you use its figures: {} says that they measure something else.",
            worst.code
        ));
    }
    if let Some(first) = findings.first() {
        all.push(format!(
            "`fiord explain {}` says what this finding means and what to do about it.",
            first.code
        ));
    }
    all
}

fn has_long_tail(job: &JobFigures) -> bool {
    let is_long = |latency: &LatencyFigures| match (latency.percentile_ns(50.0), latency.percentile_ns(99.0))
    {
        (Some(median), Some(p99)) => median > 0 && p99 as f64 / median as f64 >= TAIL_MIN,
        _ => false,
    };
    let mut enough = job.directions.iter().filter(|of| of.ios.is_some_and(|ios| ios >= IOS_MIN));
    let synced = job.synced_writes();
    let judged = |of: &DirectionFigures| match (of.name, &synced) {
        (DirectionName::Write, Some(both)) => is_long(both),
        _ => [&of.clat, &of.lat].into_iter().flatten().any(is_long),
    };
    enough.any(judged)
}

fn is_unsampled(job: &JobFigures) -> bool {
    job.directions.iter().any(|of| of.is_active() && of.runtime_ms.is_some_and(|ms| ms < 1000))
}
