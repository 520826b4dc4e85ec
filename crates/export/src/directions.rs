//! The figures of a run in each direction, all jobs together, as columns.
//!
//! Invariant: a direction in which nothing was done has no figures; rates are over the time in which jobs ran, as in the
//! lists of the history.

use std::collections::BTreeMap;

use fiord_report::RunReport;
use fiord_report::table::{Cell, Column};
use fiord_stats::Latency;

use crate::typed::Kind;

/// One direction of a run.
struct Totals {
    ios: u64,
    bytes: u64,
    seconds: f64,
    latency: Latency,
}

/// A figure: its column in each direction, its kind, and its cell.
struct Figure {
    keys: [&'static str; 3],
    kind: Kind,
    cell: fn(&Totals) -> Cell,
}

macro_rules! figure {
    ($name:literal, $kind:ident, $cell:expr) => {
        Figure {
            keys: [concat!("read_", $name), concat!("write_", $name), concat!("trim_", $name)],
            kind: Kind::$kind,
            cell: $cell,
        }
    };
}

const FIGURES: &[Figure] = &[
    figure!("ios", Count, |all| Cell::Count(all.ios)),
    figure!("bytes", Count, |all| Cell::Bytes(all.bytes)),
    figure!("ios_per_s", Number, |all| all.per_s(all.ios)),
    figure!("bytes_per_s", Number, |all| all.per_s(all.bytes)),
    figure!("latency_mean_ns", Number, |all| all.measured(|latency| Cell::Number(latency.running.mean(), 0))),
    figure!("latency_p50_ns", Count, |all| all.percentile(50.0)),
    figure!("latency_p90_ns", Count, |all| all.percentile(90.0)),
    figure!("latency_p99_ns", Count, |all| all.percentile(99.0)),
    figure!("latency_p99_9_ns", Count, |all| all.percentile(99.9)),
    figure!("latency_max_ns", Count, |all| all.measured(|latency| Cell::Latency(latency.running.max))),
];

impl Totals {
    fn per_s(&self, count: u64) -> Cell {
        if self.seconds > 0.0 { Cell::Number(count as f64 / self.seconds, 0) } else { Cell::None }
    }

    fn measured(&self, cell: impl Fn(&Latency) -> Cell) -> Cell {
        if self.latency.running.count > 0 { cell(&self.latency) } else { Cell::None }
    }

    fn percentile(&self, percent: f64) -> Cell {
        match self.latency.histogram.count() {
            0 => Cell::None,
            _ => Cell::count(self.latency.percentiles(&[percent]).first().copied()),
        }
    }
}

/// The columns, reads first.
pub fn direction_columns() -> Vec<(Column, Kind)> {
    let of = |direction: usize| {
        FIGURES.iter().map(move |figure| {
            let key = figure.keys[direction];
            (Column::new(key, key), figure.kind)
        })
    };
    (0..3).flat_map(of).collect()
}

/// The cells of a run, or of a study, which has no report.
pub fn direction_cells(report: Option<&RunReport>) -> Vec<Cell> {
    let of = |direction: usize| {
        let totals = report.and_then(|report| totals(report, direction));
        FIGURES.iter().map(move |figure| totals.as_ref().map_or(Cell::None, figure.cell))
    };
    (0..3).flat_map(of).collect()
}

/// What was done in a direction; `None` if nothing was. Jobs of a group run together, and groups one after the other.
/// Latencies are those of completions, or total ones if only those were measured.
fn totals(report: &RunReport, direction: usize) -> Option<Totals> {
    let mut longest_ms: BTreeMap<u32, u64> = BTreeMap::new();
    let (mut completion, mut total) = (Latency::default(), Latency::default());
    let (mut ios, mut bytes) = (0, 0);
    for job in &report.jobs {
        let done = &job.stats.directions[direction];
        ios += done.ios;
        bytes += done.bytes;
        completion.merge(&done.completion);
        total.merge(&done.total);
        let runtime_ms = longest_ms.entry(job.group_id).or_default();
        *runtime_ms = done.runtime_ms.max(*runtime_ms);
    }
    let latency = if completion.running.count > 0 { completion } else { total };
    let seconds = longest_ms.values().sum::<u64>() as f64 / 1000.0;
    (ios > 0).then_some(Totals { ios, bytes, seconds, latency })
}

#[cfg(test)]
mod tests {
    use fiord_report::JobReport;
    use fiord_stats::DirectionStats;

    use super::*;

    fn cell(report: &RunReport, key: &str) -> Cell {
        let index = direction_columns().iter().position(|(column, _)| column.key == key);
        direction_cells(Some(report))[index.unwrap()].clone()
    }

    #[test]
    fn figures_are_of_all_jobs_in_one_direction() {
        let job = |group_id, ios: u64, runtime_ms, latency_ns| {
            let mut total = Latency::with_histogram();
            (0..ios).for_each(|_| {
                total.record(latency_ns);
            });
            let mut job = JobReport { group_id, ..JobReport::default() };
            job.stats.directions[1] =
                DirectionStats { ios, bytes: ios * 512, runtime_ms, total, ..Default::default() };
            job
        };
        let jobs = vec![job(0, 98, 1000, 10), job(0, 1, 500, 20), job(1, 1, 3000, 30)];
        let report = RunReport { jobs, ..RunReport::default() };
        assert_eq!(cell(&report, "write_ios"), Cell::Count(100));
        assert_eq!(cell(&report, "write_bytes_per_s"), Cell::Number(12_800.0, 0));
        assert_eq!(cell(&report, "write_latency_mean_ns"), Cell::Number(10.3, 0));
        assert_eq!(cell(&report, "write_latency_p99_ns"), Cell::Count(20));
        assert_eq!(cell(&report, "write_latency_max_ns"), Cell::Latency(30));
        assert_eq!(
            [cell(&report, "read_ios"), cell(&report, "trim_latency_p50_ns")],
            [Cell::None, Cell::None]
        );
        assert!(direction_cells(None).iter().all(|cell| *cell == Cell::None));
    }

    #[test]
    fn cells_are_of_the_kinds_of_their_columns() {
        let mut job = JobReport::default();
        job.stats.directions[0].ios = 1;
        job.stats.directions[0].runtime_ms = 7;
        job.stats.directions[0].completion = Latency::with_histogram();
        job.stats.directions[0].completion.record(5);
        let cells = direction_cells(Some(&RunReport { jobs: vec![job], ..RunReport::default() }));
        let columns = direction_columns();
        assert_eq!(cells.len(), columns.len());
        assert!(columns.iter().zip(&cells).all(|((_, kind), cell)| kind.has(cell)), "{cells:?}");
        assert!(cells[..FIGURES.len()].iter().all(|cell| *cell != Cell::None), "{cells:?}");
    }
}
