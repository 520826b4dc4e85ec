//! What runs log over time, against what they measured.
//!
//! Invariant: no assertion on a duration; logs and statistics are of the same I/Os.

use fiord_plan::job::Job;
use fiord_plan::{Depth, LogKind};
use fiord_stats::{JobLogs, JobStats};

use crate::common::{logs, null_job, run};

/// The null job with a bandwidth and a histogram log.
fn logged(depth: u32, window_ms: Option<u64>) -> Job {
    let mut job = null_job("a");
    job.depth = Depth { max: depth, submit: depth, complete_min: 1, complete_max: Some(depth), low: depth };
    job.logs = Some(logs(&[LogKind::Bandwidth, LogKind::Histogram], window_ms));
    job
}

fn stats_and_logs(job: Job) -> (JobStats, JobLogs) {
    let worker = run(vec![job]).workers.remove(0);
    (*worker.stats, worker.logs.map(|logs| logs.as_ref().clone()).unwrap_or_default())
}

#[test]
fn logged_ios_sum_to_the_bytes_of_the_job() {
    for depth in [1, 8] {
        let (stats, logs) = stats_and_logs(logged(depth, None));
        let ios = logs.ios.as_ref().unwrap();
        assert_eq!(ios.iter().map(|io| io.length_bytes).sum::<u64>(), stats.directions[0].bytes);
        assert_eq!(ios.iter().count() as u64, stats.directions[0].ios);
        assert!(ios.iter().map(|io| io.end_ns).is_sorted());
        assert_eq!(logs.has_submission, depth > 1);
    }
}

#[test]
fn logged_histograms_sum_to_the_ios_of_the_job() {
    let (stats, logs) = stats_and_logs(logged(1, Some(1)));
    let windows = logs.histograms.as_ref().unwrap().closed();
    let counted: u64 = windows.iter().flat_map(|window| &window.counts).map(|(_, count)| count).sum();
    assert_eq!(counted, stats.directions[0].ios);
    assert!(logs.ios.is_none() && logs.iops.is_none(), "kept, though nobody asked for it");
    assert!(!logs.bandwidth.as_ref().unwrap().closed().is_empty());
}

#[test]
fn the_ramp_is_not_logged() {
    let mut job = logged(1, None);
    job.limits.ramp_bytes = job.limits.loop_bytes / 2;
    let (stats, logs) = stats_and_logs(job);
    let logged: u64 = logs.ios.iter().flat_map(|ios| ios.iter()).map(|io| io.length_bytes).sum();
    assert!(logged > 0);
    assert_eq!(logged, stats.directions[0].bytes);
}

#[test]
fn a_job_without_logs_hands_in_none() {
    assert!(run(vec![null_job("a")]).workers[0].logs.is_none());
}
