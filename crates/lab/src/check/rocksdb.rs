//! rocksdb: point reads beside a write-ahead log, flushes and compaction.
//!
//! Invariant: a limit that RocksDB does not publish is marked with its source, or as fiord's own.

use fiord_report::{JobReport, RunReport};

use crate::figures::{Figures, READ, WRITE};

use super::etcd;
use super::limit::{Detail, Limit, Row, Unit};
use super::profile::{Profile, Space, Stages};

pub(super) const PROFILE: Profile = Profile {
    name: "rocksdb",
    runs: "gets alone, then beside WAL, flush and compaction",
    workload: "a RocksDB store with 16 MiB/s of writes",
    job_file: include_str!("../../profiles/rocksdb.fio"),
    headline: Some(UNDER_LOAD),
    rounds: 1,
    space: Space::Files(4),
    rows,
};

const UNDER_LOAD: &str = "p99 of gets under load";

const GETS: Limit = Limit::at_most(
    5e6,
    10e6,
    "fiord's own: RocksDB names no figure, and a get that misses its caches waits for such reads; 10 ms is the \
     limit of Oracle's guide for a single block read",
);

/// RocksDB stalls writers when flush and compaction fall behind.
const BACKGROUND: Limit = Limit::at_least(
    99.0,
    90.0,
    "RocksDB wiki, Write Stalls: writers wait when flush and compaction cannot keep up; the load is that of 16 MiB/s \
     of writes, RocksDB's delayed_write_rate; 99 and 90 % are fiord's own",
);

const LONGEST: Limit = Limit::at_most(
    100e6,
    1e9,
    "fiord's own: a write that takes a second stalls its caller; etcd warns about such syncs, too",
);

/// The jobs that flush and compact, their names for the user, and their direction.
const BACKGROUND_JOBS: [(&str, &str, usize); 3] = [
    ("flush", "flush", WRITE),
    ("compaction-reads", "compaction reads", READ),
    ("compaction-writes", "compaction writes", WRITE),
];

fn rows(stages: &Stages<'_>) -> Vec<Row> {
    let alone = stages[0].and_then(|report| Figures::of(report, READ));
    let mut rows = Vec::new();
    if let Some(alone) = &alone {
        rows.push(gets("p99 of gets alone", alone, None));
    }
    let Some(report) = stages[1] else { return rows };
    if let Some(loaded) = Figures::of_job(report, "gets-under-load", READ) {
        rows.push(gets(UNDER_LOAD, &loaded, Some(GETS)));
        rows.extend(alone.map(|alone| growth(&alone, &loaded)));
    }
    rows.extend(log(report));
    rows.extend(background(report));
    rows
}

fn gets(figure: &str, gets: &Figures, limit: Option<Limit>) -> Row {
    Row {
        figure: figure.to_string(),
        unit: Unit::Ns,
        rounds: vec![gets.p99_ns as f64],
        limit,
        details: vec![
            Detail::per_second("gets per second", gets.iops),
            Detail::ns("median", gets.p50_ns),
            Detail::ns("p99.9", gets.p999_ns),
        ],
    }
}

fn growth(alone: &Figures, loaded: &Figures) -> Row {
    Row {
        figure: "p99 under load over p99 alone".to_string(),
        unit: Unit::Times,
        rounds: vec![loaded.p99_ns as f64 / alone.p99_ns.max(1) as f64],
        limit: None,
        details: Vec::new(),
    }
}

fn log(report: &RunReport) -> Vec<Row> {
    let Some(syncs) = Figures::of_syncs(report) else { return Vec::new() };
    let writes = Figures::of_job(report, "wal", WRITE).unwrap_or_default();
    let wal = report.jobs.iter().filter(|job| job.name == "wal");
    let longest_write_ns =
        wal.map(|job| job.stats.directions[WRITE].completion.running.max).max().unwrap_or(0);
    let row = |figure: &str, ns: u64, limit: Limit, details: Vec<Detail>| Row {
        figure: figure.to_string(),
        unit: Unit::Ns,
        rounds: vec![ns as f64],
        limit: Some(limit),
        details,
    };
    let details =
        vec![Detail::per_second("appends per second", writes.iops), Detail::ns("median", syncs.p50_ns)];
    vec![
        row("p99 of WAL fdatasync under load", syncs.p99_ns, etcd::SYNC, details),
        row("longest WAL append or sync", syncs.max_ns.max(longest_write_ns), LONGEST, Vec::new()),
    ]
}

/// The share of its requested rate that the slowest of flush and compaction reached.
fn background(report: &RunReport) -> Option<Row> {
    let shares: Vec<Detail> = BACKGROUND_JOBS
        .iter()
        .filter_map(|(name, called, direction)| {
            let asked = report.jobs.iter().find(|job| job.name == *name).and_then(asked_bytes_per_s)?;
            let moved = Figures::of_job(report, name, *direction).map_or(0.0, |figures| figures.bytes_per_s);
            Some(Detail { name: called, unit: Unit::Percent, value: 100.0 * moved / asked })
        })
        .collect();
    let least = shares.iter().map(|share| share.value).min_by(f64::total_cmp)?;
    Some(Row {
        figure: "share of flush and compaction load".to_string(),
        unit: Unit::Percent,
        rounds: vec![least],
        limit: Some(BACKGROUND),
        details: shares,
    })
}

/// The job's `rate`, which the profile gives in whole mebibytes.
fn asked_bytes_per_s(job: &JobReport) -> Option<f64> {
    let (_, rate) = job.options.iter().find(|(name, _)| name == "rate")?;
    let mebibytes: u32 = rate.strip_suffix('m')?.parse().ok()?;
    Some(f64::from(mebibytes) * f64::from(1 << 20))
}
