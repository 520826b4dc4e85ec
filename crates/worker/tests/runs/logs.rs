//! The logs of runs, compared with their statistics.
//!
//! Invariant: no assertion on a duration; logs and statistics are of the same I/Os.

use fiord_plan::job::Job;
use fiord_plan::{Depth, LogKind};
use fiord_stats::{JobStats, LogEntries};

use crate::common::{logs, null_job, run_logged};

/// The null job with a bandwidth and a histogram log.
fn logged(depth: u32, window_ms: Option<u64>) -> Job {
    let mut job = null_job("a");
    job.depth = Depth { max: depth, submit: depth, complete_min: 1, complete_max: Some(depth), low: depth };
    job.logs = Some(logs(&[LogKind::Bandwidth, LogKind::Histogram], window_ms));
    job
}

fn stats_and_logs(job: Job) -> (JobStats, LogEntries) {
    let (mut result, logs) = run_logged(job);
    (*result.workers.remove(0).stats, logs)
}

#[test]
fn logged_ios_sum_to_the_bytes_of_the_job() {
    for depth in [1, 8] {
        let (stats, logs) = stats_and_logs(logged(depth, None));
        let ios = &logs.ios;
        assert_eq!(ios.iter().map(|io| io.length_bytes).sum::<u64>(), stats.directions[0].bytes);
        assert_eq!(ios.len() as u64, stats.directions[0].ios);
        assert!(ios.iter().map(|io| io.end_ns).is_sorted());
        assert_eq!(logs.has_submission, depth > 1);
    }
}

#[test]
fn logged_histograms_sum_to_the_ios_of_the_job() {
    let (stats, logs) = stats_and_logs(logged(1, Some(1)));
    let windows = &logs.histograms;
    let counted: u64 = windows.iter().flat_map(|window| &window.counts).map(|(_, count)| count).sum();
    assert_eq!(counted, stats.directions[0].ios);
    assert!(logs.ios.is_empty() && logs.iops.is_empty(), "kept, though not requested");
    assert!(!logs.bandwidth.is_empty());
}

#[test]
fn logged_responses_are_those_of_the_job() {
    for (depth, open, window_ms) in [(1, false, None), (8, false, None), (8, true, None), (8, true, Some(1))]
    {
        let mut job = logged(depth, window_ms);
        job.logs = Some(logs(&[LogKind::Response, LogKind::ResponseHistogram], window_ms));
        (job.pace.ios_per_s, job.pace.open) = ([Some(100_000), None, None], open);
        let (stats, logs) = stats_and_logs(job);
        let response = &stats.directions[0].response.running;
        assert!(response.count > 0 && response.count == stats.directions[0].ios);
        let windows = &logs.response_histograms;
        let counted: u64 = windows.iter().flat_map(|window| &window.counts).map(|(_, count)| count).sum();
        assert_eq!(counted, response.count, "depth {depth}, open {open}");
        if window_ms.is_some() {
            assert!(logs.ios.is_empty() && !logs.response.is_empty());
            continue;
        }
        let logged: Vec<u64> = logs.ios.iter().filter_map(|io| io.response_ns).map(u64::from).collect();
        assert_eq!(logged.iter().map(|ns| u128::from(*ns)).sum::<u128>(), response.sum, "depth {depth}");
        assert_eq!(logged.iter().max(), Some(&response.max));
        assert_eq!(logs.ios.len(), logged.len());
    }
}

#[test]
fn ios_without_a_rate_have_no_response_in_a_log() {
    let (_, logs) = stats_and_logs(logged(8, None));
    assert!(!logs.ios.is_empty() && logs.ios.iter().all(|io| io.response_ns.is_none()));
}

#[test]
fn the_ramp_is_not_logged() {
    let mut job = logged(1, None);
    job.limits.ramp_bytes = job.limits.loop_bytes / 2;
    let (stats, logs) = stats_and_logs(job);
    let logged: u64 = logs.ios.iter().map(|io| io.length_bytes).sum();
    assert!(logged > 0);
    assert_eq!(logged, stats.directions[0].bytes);
}

#[test]
fn a_job_without_logs_hands_in_none() {
    assert!(run_logged(null_job("a")).1.is_empty());
}
