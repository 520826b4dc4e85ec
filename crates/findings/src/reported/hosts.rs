//! Whether the hosts of a report ran at the same time.
//!
//! Invariant: what a host's clock says is believed as it stands: a report has no other.

use fiord_import::{JobFigures, Report};
use fiord_report::finding::of_hosts_together;

use super::checks::{Check, Judgement};

/// Judges a report of several hosts.
pub(super) fn judge(report: &Report, judged: &mut Judgement) {
    if report.hosts.len() < 2 {
        return;
    }
    let times: Option<Vec<(u64, u64)>> = report.hosts.iter().map(|host| of_host(report, host)).collect();
    let Some(times) = times else {
        return judged.add(Check::Together, Err("the report does not say when each host started"));
    };
    let start_ms = times.iter().map(|(start_ms, _)| *start_ms).max().unwrap_or(0);
    let end_ms = times.iter().map(|(_, end_ms)| *end_ms).min().unwrap_or(0);
    let shortest_ms = times.iter().map(|(start_ms, end_ms)| end_ms - start_ms).min().unwrap_or(0);
    let together_ms = end_ms.saturating_sub(start_ms);
    let seconds = |ms: u64| ms as f64 / 1000.0;
    judged.findings.extend(of_hosts_together(times.len(), seconds(together_ms), seconds(shortest_ms)));
}

/// When a host's first job started and its last one ended, in milliseconds; `None` if the report does not say so.
fn of_host(report: &Report, host: &str) -> Option<(u64, u64)> {
    let jobs = || report.jobs.iter().filter(|job| job.host.as_deref() == Some(host));
    let end_ms = |job: &JobFigures| {
        let runtime_ms = job.directions.iter().filter_map(|of| of.runtime_ms).max()?;
        Some(job.start_ms?.saturating_add(runtime_ms))
    };
    let ends: Option<Vec<u64>> = jobs().map(end_ms).collect();
    Some((jobs().filter_map(|job| job.start_ms).min()?, ends?.into_iter().max()?))
}
