//! Whether the hosts of a report ran at the same time.
//!
//! Invariant: what a host's clock says is believed as it stands: a report has no other.

use std::collections::HashMap;

use fiord_import::{JobFigures, Report};
use fiord_report::finding::of_hosts_together;

use super::checks::{Check, Judgement};

/// Judges a report of several hosts.
pub(super) fn judge(report: &Report, judged: &mut Judgement) {
    if report.hosts.len() < 2 {
        return;
    }
    let mut times: HashMap<&str, (u64, u64)> = HashMap::new();
    let is_known = report.jobs.iter().all(|job| {
        let known = job.host.as_deref().zip(times_of(job));
        if let Some((host, (start_ms, end_ms))) = known {
            let so_far = times.entry(host).or_insert((start_ms, end_ms));
            *so_far = (so_far.0.min(start_ms), so_far.1.max(end_ms));
        }
        known.is_some()
    });
    if !is_known {
        return judged.add(Check::Together, Err("the report does not say when each host started"));
    }
    let start_ms = times.values().map(|(start_ms, _)| *start_ms).max().unwrap_or(0);
    let end_ms = times.values().map(|(_, end_ms)| *end_ms).min().unwrap_or(0);
    let shortest_ms = times.values().map(|(start_ms, end_ms)| end_ms - start_ms).min().unwrap_or(0);
    let together_ms = end_ms.saturating_sub(start_ms);
    let seconds = |ms: u64| ms as f64 / 1000.0;
    judged.findings.extend(of_hosts_together(times.len(), seconds(together_ms), seconds(shortest_ms)));
}

/// When a job started and ended, in milliseconds; `None` if the report does not say so.
fn times_of(job: &JobFigures) -> Option<(u64, u64)> {
    let runtime_ms = job.directions.iter().filter_map(|of| of.runtime_ms).max()?;
    Some((job.start_ms?, job.start_ms?.saturating_add(runtime_ms)))
}
