//! etcd: synced appends to its write-ahead log.
//!
//! Invariant: limits are those of etcd's and OpenShift's own documents; what was added to them is said.

use crate::figures::{Figures, WRITE};

use super::verdict::{Detail, Limit, Row, Unit};
use super::{Profile, Space, Stages};

pub(super) const PROFILE: Profile = Profile {
    name: "etcd",
    runs: "synced appends of 22 MiB",
    carries: "etcd",
    job_file: include_str!("../../profiles/etcd.fio"),
    headline: Some(SYNCS),
    rounds: 3,
    space: Space::Bytes(22 << 20),
    rows,
};

const SYNCS: &str = "p99 of fdatasync, 2300-byte appends";

const MS: f64 = 1e6;

/// Between half the limit and the limit lies what holds without reserve.
pub(super) const SYNC: Limit = Limit::at_most(
    5.0 * MS,
    10.0 * MS,
    "etcd FAQ: p99 of wal_fsync_duration_seconds should be less than 10 ms; half of it as reserve is fiord's own",
);

const APPENDS: Limit = Limit::at_least(
    500.0,
    50.0,
    "etcd Hardware recommendations, and OpenShift Recommended etcd practices: 50 sequential 8 kB writes a second, \
     synced; 500 for heavily loaded clusters",
);

fn rows(stages: &Stages<'_>) -> Vec<Row> {
    let syncs: Vec<Figures> = stages[0].iter().filter_map(|report| Figures::of_syncs(report)).collect();
    let appends: Vec<Figures> = stages[1].iter().filter_map(|report| Figures::of(report, WRITE)).collect();
    let mut rows = Vec::new();
    if let Some(worst) = syncs.iter().max_by_key(|figures| figures.p99_ns) {
        rows.push(Row {
            figure: SYNCS.to_string(),
            unit: Unit::Ns,
            rounds: syncs.iter().map(|figures| figures.p99_ns as f64).collect(),
            limit: Some(SYNC),
            details: vec![Detail::ns("median", worst.p50_ns), Detail::ns("longest", worst.max_ns)],
        });
    }
    if !appends.is_empty() {
        rows.push(Row {
            figure: "synced 8000-byte appends a second".to_string(),
            unit: Unit::PerSecond,
            rounds: appends.iter().map(|figures| figures.iops).collect(),
            limit: Some(APPENDS),
            details: Vec::new(),
        });
    }
    rows
}
