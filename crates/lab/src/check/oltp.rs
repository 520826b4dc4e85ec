//! oltp: pages read and written at random by an increasing number of sessions.
//!
//! Invariant: one session decides whether a disk fails; several sessions decide whether it has headroom.

use crate::figures::{Figures, READ, WRITE};

use super::limit::{Detail, Limit, Row, Unit};
use super::profile::{Profile, Space, Stages};

pub(super) const PROFILE: Profile = Profile {
    name: "oltp",
    runs: "random 16k, 70 % reads, 1 to 32 sessions",
    workload: "an OLTP database with 32 concurrent sessions",
    job_file: include_str!("../../profiles/oltp.fio"),
    headline: None,
    rounds: 1,
    space: Space::Files(1),
    rows,
};

const FROM: &str = "Oracle 2 Day + Performance Tuning Guide: most systems perform satisfactorily if a synchronous \
                    single block read takes less than 10 ms; that several sessions cannot fail is fiord's own rule";

const READ_MEAN: Limit = Limit::at_most(10e6, 10e6, FROM);

fn rows(stages: &Stages<'_>) -> Vec<Row> {
    let mut rows = Vec::new();
    for report in stages.iter().flatten() {
        let (Some(reads), Some(writes)) = (Figures::of(report, READ), Figures::of(report, WRITE)) else {
            continue;
        };
        let sessions = report.jobs.len();
        let fail = if sessions == 1 { READ_MEAN.fail } else { None };
        rows.push(Row {
            figure: format!("mean read, {sessions} session{}", if sessions == 1 { "" } else { "s" }),
            unit: Unit::Ns,
            rounds: vec![reads.mean_ns as f64],
            limit: Some(Limit { fail, ..READ_MEAN }),
            details: vec![
                Detail::per_second("reads per second", reads.iops),
                Detail::per_second("writes per second", writes.iops),
                Detail::ns("p99 of reads", reads.p99_ns),
                Detail::ns("p99 of writes", writes.p99_ns),
            ],
        });
    }
    rows
}
