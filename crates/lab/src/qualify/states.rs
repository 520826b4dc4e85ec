//! The states of a recovery test: writes of one kind, or with one length of pauses, and how fast they were.
//!
//! Invariant: a state has figures of the runs that were carried out, whether it is over or not, but of none whose figures are
//! void.

use fiord_report::table::{Cell, Column, Table};

use super::figures::Figures;
use super::phase::Measure;
use super::progress::{PhaseRuns, figure};
use crate::step::StepResult;

/// The runs at the end of a state that it has settled at, and how near to their mean a run counts as settled.
const LAST_RUNS: usize = 5;
const NEAR: f64 = 0.10;

/// A row for each state that has begun.
pub(super) fn states(all: &[PhaseRuns<'_>]) -> Table {
    let mut table = Table::new([
        Column::new("test", "TEST"),
        Column::new("state", "STATE"),
        Column::new("block_bytes", "BLOCK"),
        Column::new("runs", "RUNS"),
        Column::new("void_runs", "VOID"),
        Column::new("iops", "IOPS"),
        Column::new("mib_per_s", "MiB/s"),
        Column::new("first_mib_per_s", "FIRST"),
        Column::new("last_mib_per_s", "LAST"),
        Column::new("settled_run", "SETTLED"),
        Column::new("mean_ns", "MEAN"),
        Column::new("p99_ns", "P99"),
        Column::new("p999_ns", "P99.9"),
        Column::new("p9999_ns", "P99.99"),
        Column::new("max_ns", "MAX"),
        Column::new("interrupted_before_run", ""),
    ]);
    for runs in all.iter().filter(|runs| runs.is_state() && !runs.whole_rounds().is_empty()) {
        let count = runs.whole_rounds().len();
        let (numbers, rounds) = valid(runs);
        let series: Vec<f64> = rounds.iter().map(|round| figure(&round[0], Measure::MibPerS)).collect();
        let measured = |cell: Cell| if series.is_empty() { Cell::None } else { cell };
        let [iops, mib_per_s, latencies @ ..] = Figures::of(&rounds, 0).cells().map(measured);
        let last = &series[series.len().saturating_sub(LAST_RUNS)..];
        let last = last.iter().sum::<f64>() / last.len().max(1) as f64;
        let settled =
            series.iter().rposition(|value| (value - last).abs() > NEAR * last).map_or(1, |at| at + 2);
        let mut row = vec![
            Cell::Text(runs.phase.test.word().to_string()),
            Cell::Text(runs.phase.name.clone()),
            Cell::Bytes(runs.phase.points[0].block_bytes),
            Cell::Count(count as u64),
            Cell::Count((count - rounds.len()) as u64),
            iops,
            mib_per_s,
            series.first().map_or(Cell::None, |first| Cell::Number(*first, 1)),
            measured(Cell::Number(last, 1)),
            Cell::count(numbers.get(settled - 1).copied()),
        ];
        row.extend(latencies);
        row.push(Cell::count((runs.continuous_from > 0).then_some(runs.continuous_from as u64 + 1)));
        table.rows.push(row);
    }
    table
}

/// The rounds whose figures are not void, with their numbers from 1.
fn valid<'r>(runs: &PhaseRuns<'r>) -> (Vec<u64>, Vec<&'r [StepResult]>) {
    let numbered = (1..).zip(runs.whole_rounds().iter().copied());
    numbered.filter(|(_, round)| round[0].void_finding().is_none()).unzip()
}

/// The states of one test, for readers.
pub(super) fn text(all: &[PhaseRuns<'_>], test: &str, width: usize) -> String {
    let mut table = states(all);
    table.rows.retain(|row| row[0] == Cell::Text(test.to_string()));
    table
        .select(&[
            "state",
            "runs",
            "void_runs",
            "iops",
            "mib_per_s",
            "first_mib_per_s",
            "last_mib_per_s",
            "settled_run",
            "max_ns",
        ])
        .text(width)
}

/// The main figure of a state: `sequential 1200.0 MiB/s`.
pub(super) fn sentence(runs: &PhaseRuns<'_>) -> String {
    let (_, rounds) = valid(runs);
    let (name, figures) = (&runs.phase.name, Figures::of(&rounds, 0));
    if rounds.is_empty() {
        return format!("{name} cannot be told, its runs are void");
    }
    match runs.phase.measure {
        Measure::MibPerS => format!("{name} {:.1} MiB/s", figures.mib_per_s),
        Measure::Iops | Measure::MeanNs => format!("{name} {:.0} IOPS", figures.iops),
    }
}
