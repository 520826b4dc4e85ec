//! etcd: synced appends to its write-ahead log.
//!
//! Invariant: limits are those of etcd's and OpenShift's own documents; additions by fiord are marked as such.

use crate::figures::{Figures, WRITE};

use super::limit::{Detail, Limit, Row, Unit};
use super::profile::{Profile, Space, Stages};

pub(super) const PROFILE: Profile = Profile {
    name: "etcd",
    runs: "synced appends of 22 MiB",
    workload: "etcd",
    job_file: include_str!("../../profiles/etcd.fio"),
    headline: Some(SYNCS),
    rounds: 3,
    space: Space::Bytes(22 << 20),
    rows,
};

const SYNCS: &str = "p99 of fdatasync, 2300-byte appends";

const MS: f64 = 1e6;

/// Between half the limit and the limit, a disk is fast enough, but without headroom.
pub(super) const SYNC: Limit = Limit::at_most(
    5.0 * MS,
    10.0 * MS,
    "etcd FAQ: p99 of wal_fsync_duration_seconds should be less than 10 ms; half of it, as headroom, is fiord's own",
);

const APPENDS: Limit = Limit::at_least(
    500.0,
    50.0,
    "etcd Hardware recommendations, and OpenShift Recommended etcd practices: 50 sequential 8 kB writes per \
     second, synced; 500 for heavily loaded clusters",
);

fn rows(stages: &Stages<'_>) -> Vec<Row> {
    let syncs = stages[0].and_then(Figures::of_syncs);
    let appends = stages[1].and_then(|report| Figures::of(report, WRITE));
    let mut rows = Vec::new();
    if let Some(syncs) = syncs {
        rows.push(Row {
            figure: SYNCS.to_string(),
            unit: Unit::Ns,
            rounds: vec![syncs.p99_ns as f64],
            limit: Some(SYNC),
            details: vec![Detail::ns("median", syncs.p50_ns), Detail::ns("longest", syncs.max_ns)],
        });
    }
    if let Some(appends) = appends {
        rows.push(Row {
            figure: "synced 8000-byte appends per second".to_string(),
            unit: Unit::PerSecond,
            rounds: vec![appends.iops],
            limit: Some(APPENDS),
            details: Vec::new(),
        });
    }
    rows
}
