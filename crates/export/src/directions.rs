//! The figures of a run in each direction, all jobs together, as columns, and what is counted of its jobs.
//!
//! Invariant: a direction in which nothing was done has no figures; rates are over the time in which jobs ran, as in the
//! lists of the history.

use std::collections::BTreeMap;

use fiord_import::{DirectionName, Report};
use fiord_report::RunReport;
use fiord_report::table::{Cell, Column};
use fiord_stats::{Count, Counts, Latency};

use crate::typed::Kind;

/// One direction of a run.
#[derive(Default)]
struct Totals {
    ios: Option<u64>,
    bytes: Option<u64>,
    ios_per_s: Option<f64>,
    bytes_per_s: Option<f64>,
    mean_ns: Option<f64>,
    max_ns: Option<u64>,
    /// Each of [`PERCENTS`].
    percentiles_ns: [Option<u64>; PERCENTS.len()],
    counts: Counts,
}

const PERCENTS: [f64; 4] = [50.0, 90.0, 99.0, 99.9];

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
    figure!("ios", Count, |all| Cell::count(all.ios)),
    figure!("bytes", Count, |all| all.bytes.map_or(Cell::None, Cell::Bytes)),
    figure!("ios_per_s", Number, |all| number(all.ios_per_s)),
    figure!("bytes_per_s", Number, |all| number(all.bytes_per_s)),
    figure!("latency_mean_ns", Number, |all| number(all.mean_ns)),
    figure!("latency_p50_ns", Count, |all| Cell::count(all.percentiles_ns[0])),
    figure!("latency_p90_ns", Count, |all| Cell::count(all.percentiles_ns[1])),
    figure!("latency_p99_ns", Count, |all| Cell::count(all.percentiles_ns[2])),
    figure!("latency_p99_9_ns", Count, |all| Cell::count(all.percentiles_ns[3])),
    figure!("latency_max_ns", Count, |all| all.max_ns.map_or(Cell::None, Cell::Latency)),
];

fn number(figure: Option<f64>) -> Cell {
    figure.map_or(Cell::None, |figure| Cell::Number(figure, 0))
}

/// The columns, reads first.
pub fn direction_columns() -> Vec<(Column, Kind)> {
    let of = |direction: usize| {
        FIGURES.iter().map(move |figure| {
            let key = figure.keys[direction];
            (Column::new(key, key), figure.kind)
        })
    };
    let counted = Count::ALL.iter().flat_map(|count| count.columns);
    (0..3).flat_map(of).chain(counted.map(|key| (Column::new(key, key), Kind::Count))).collect()
}

/// The cells of a run, or of a study, which has no report.
pub fn direction_cells(report: Option<&RunReport>) -> Vec<Cell> {
    let counted = report.into_iter().flat_map(|report| &report.jobs).map(|job| &job.stats.counts);
    cells(|direction| totals(report?, direction), sum(counted))
}

/// The cells of a report that was read.
pub fn read_direction_cells(report: &Report) -> Vec<Cell> {
    const NAMES: [DirectionName; 3] = [DirectionName::Read, DirectionName::Write, DirectionName::Trim];
    let counted = |direction: usize| {
        let of_jobs = report.jobs.iter().flat_map(|job| &job.directions);
        sum(of_jobs.filter(move |of| of.name == NAMES[direction]).map(|of| &of.counts))
    };
    let totals = |direction: usize| {
        let read = report.totals(&[NAMES[direction]])?;
        Some(Totals { counts: counted(direction), ..of_read(&read) })
    };
    cells(totals, sum(report.jobs.iter().map(|job| &job.counts)))
}

fn sum<'c>(all: impl Iterator<Item = &'c Counts>) -> Counts {
    all.fold(Counts::default(), |mut sum, counts| {
        sum.merge(counts);
        sum
    })
}

fn cells(totals: impl Fn(usize) -> Option<Totals>, of_jobs: Counts) -> Vec<Cell> {
    let totals = [0, 1, 2].map(totals);
    let of = |of: &Option<Totals>| {
        FIGURES.iter().map(|figure| of.as_ref().map_or(Cell::None, figure.cell)).collect::<Vec<_>>()
    };
    let counted = |count: &&'static Count| match count.is_of_directions() {
        true => {
            totals.iter().map(|of| Cell::count(of.as_ref().and_then(|of| of.counts.get(count)))).collect()
        }
        false => vec![Cell::count(of_jobs.get(count))],
    };
    totals.iter().flat_map(of).chain(Count::ALL.iter().flat_map(counted)).collect()
}

fn of_read(read: &fiord_import::Totals) -> Totals {
    let latency = read.latency.as_ref();
    Totals {
        ios: read.ios,
        bytes: read.bytes,
        ios_per_s: read.ios_per_s,
        bytes_per_s: read.bytes_per_s,
        mean_ns: latency.and_then(|latency| latency.mean_ns),
        max_ns: latency.and_then(|latency| latency.max_ns),
        percentiles_ns: PERCENTS.map(|percent| latency?.percentile_ns(percent)),
        counts: Counts::default(),
    }
}

/// What was done in a direction; `None` if nothing was. Jobs of a group run together, and groups one after the other.
/// Latencies are those of completions, or total ones if only those were measured.
fn totals(report: &RunReport, direction: usize) -> Option<Totals> {
    let mut longest_ms: BTreeMap<u32, u64> = BTreeMap::new();
    let (mut completion, mut total) = (Latency::default(), Latency::default());
    let (mut ios, mut bytes, mut counts) = (0, 0, Counts::default());
    for job in &report.jobs {
        let done = &job.stats.directions[direction];
        ios += done.ios;
        bytes += done.bytes;
        counts.merge(&done.counts);
        completion.merge(&done.completion);
        total.merge(&done.total);
        let runtime_ms = longest_ms.entry(job.group_id).or_default();
        *runtime_ms = done.runtime_ms.max(*runtime_ms);
    }
    let latency = if completion.running.count > 0 { completion } else { total };
    let seconds = longest_ms.values().sum::<u64>() as f64 / 1000.0;
    let per_s = |count: u64| (seconds > 0.0).then(|| count as f64 / seconds);
    let measured = Some(&latency).filter(|latency| latency.running.count > 0);
    let has_percentiles = latency.histogram.count() > 0;
    let percentile = |percent| latency.percentiles(&[percent]).first().copied();
    (ios > 0).then(|| Totals {
        ios: Some(ios),
        bytes: Some(bytes),
        ios_per_s: per_s(ios),
        bytes_per_s: per_s(bytes),
        mean_ns: measured.map(|latency| latency.running.mean()),
        max_ns: measured.map(|latency| latency.running.max),
        percentiles_ns: PERCENTS.map(|percent| percentile(percent).filter(|_| has_percentiles)),
        counts,
    })
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
