//! Made-up reports and sites for the tests of studies.
//!
//! Invariant: what a report was made of is what its figures are, to the nanosecond where the histogram keeps it.

use fiord_report::table::{Cell, Column, Table};
use fiord_report::{JobReport, RunReport};
use fiord_stats::{DirectionStats, JobStats, Latency};

use crate::figures::{READ, WRITE};
use crate::site::Site;
use crate::study::Step;

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

/// The same, with syncs that took this long.
pub fn synced(mut report: RunReport, syncs: u64, latency_ns: u64) -> RunReport {
    report.jobs[0].stats.sync.ios = syncs;
    report.jobs[0].stats.sync.latency = latencies(syncs, latency_ns);
    report
}

/// A file of a study's own on a disk.
pub fn site() -> Site {
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
    Site {
        target: "/data".into(),
        file: "/data/own:1/data".into(),
        writable: true,
        size_bytes: 1 << 30,
        direct: true,
        in_memory: false,
        engine: "io_uring",
        file_system: Some("ext4".to_string()),
        devices,
        remarks: Vec::new(),
    }
}

/// The sections of a step with their settings, a line each.
pub fn settings(step: &Step) -> String {
    let text = |section: &fiord_options::Section| {
        let settings = section.settings().map(|setting| {
            format!(" {}={}", setting.spec.name, setting.value.as_deref().unwrap_or_default())
        });
        format!("[{}]{}", section.name, settings.collect::<String>())
    };
    step.sections.iter().map(text).collect::<Vec<_>>().join("\n")
}
