//! Synthetic reports and targets for the tests of studies.
//!
//! Invariant: the figures of a report are those it was made from, to the precision of the histogram.

use fiord_options::value::EngineName;
use fiord_report::table::{Cell, Column, Table};
use fiord_report::{JobReport, RunReport};
use fiord_stats::{DirectionStats, JobStats, Latency};

use crate::figures::{READ, WRITE};
use crate::step::Step;
use crate::study_target::StudyTarget;

/// A direction that did this many I/Os of this size in a second, each taking this long.
pub fn direction(ios: u64, block_bytes: u64, latency_ns: u64) -> DirectionStats {
    DirectionStats {
        ios,
        bytes: ios * block_bytes,
        runtime_ms: 1000,
        completion: latencies(ios, latency_ns),
        ..DirectionStats::default()
    }
}

fn latencies(count: u64, latency_ns: u64) -> Latency {
    let mut latency = Latency::with_histogram();
    for _ in 0..count {
        latency.record(latency_ns);
    }
    latency
}

/// A run of one job, with its reads and writes.
pub fn report(reads: Option<DirectionStats>, writes: Option<DirectionStats>) -> RunReport {
    let mut stats = JobStats::default();
    stats.directions[READ] = reads.unwrap_or_default();
    stats.directions[WRITE] = writes.unwrap_or_default();
    RunReport { jobs: vec![JobReport { stats, ..JobReport::default() }], ..RunReport::default() }
}

/// The same report, with syncs of this latency.
pub fn synced(mut report: RunReport, syncs: u64, latency_ns: u64) -> RunReport {
    report.jobs[0].stats.sync.ios = syncs;
    report.jobs[0].stats.sync.latency = latencies(syncs, latency_ns);
    report
}

/// A scratch file of a study on a disk.
pub fn target() -> StudyTarget {
    let columns = ["name", "type", "size_bytes", "model", "rotational", "scheduler"];
    let mut devices = Table::new(columns.map(|key| Column::new(key, "")));
    devices.rows.push(vec![
        Cell::Text("sda".to_string()),
        Cell::Text("disk".to_string()),
        Cell::Bytes(1 << 40),
        Cell::None,
        Cell::Flag(false),
        Cell::Text("none".to_string()),
    ]);
    StudyTarget {
        path: "/data".into(),
        file: "/data/own:1/data".into(),
        writable: true,
        size_bytes: 1 << 30,
        free_bytes: None,
        direct: true,
        in_memory: false,
        engine: EngineName::IoUring,
        file_system: Some("ext4".to_string()),
        devices,
        findings: Vec::new(),
        identity: None,
        block_bytes: 512,
        zone_bytes: None,
        device_bytes: 1 << 40,
        remarks: Vec::new(),
    }
}

/// The sections of a step with their settings, a line each.
pub fn settings(step: &Step) -> String {
    let text = |section: &fiord_options::Section| {
        let settings = section
            .settings()
            .map(|setting| format!(" {}={}", setting.spec.name, setting.text().unwrap_or_default()));
        format!("[{}]{}", section.name.display(), settings.collect::<String>())
    };
    step.sections.iter().map(text).collect::<Vec<_>>().join("\n")
}
