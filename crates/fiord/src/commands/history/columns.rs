//! Everything recorded about a run but its report, as columns.
//!
//! Invariant: JSON, CSV and exports have these columns, with these keys.

use fiord_export::Kind;
use fiord_report::table::{Cell, Column, Table};
use fiord_report::time;
use fiord_store::HistoryEntry;

/// A column: its key, its kind, and its cell.
pub(super) struct RunColumn {
    pub(super) key: &'static str,
    pub(super) kind: Kind,
    pub(super) cell: fn(&HistoryEntry) -> Cell,
}

const fn column(key: &'static str, kind: Kind, cell: fn(&HistoryEntry) -> Cell) -> RunColumn {
    RunColumn { key, kind, cell }
}

/// All of them.
pub(super) const COLUMNS: [RunColumn; 18] = [
    column("id", Kind::Count, |run| Cell::Count(run.id.unsigned_abs())),
    column("study", Kind::Count, |run| Cell::count(run.facts.parent.map(i64::unsigned_abs))),
    column("kind", Kind::Label, |run| Cell::Text(run.facts.kind.name().to_string())),
    column("title", Kind::Label, |run| Cell::Text(run.facts.title.clone())),
    column("command", Kind::Text, |run| Cell::Text(run.facts.command.clone())),
    column("targets", Kind::Texts, |run| Cell::List(run.facts.targets.clone())),
    column("host", Kind::Label, |run| Cell::Text(run.facts.host.clone())),
    column("fiord_version", Kind::Label, |run| Cell::Text(run.facts.fiord_version.clone())),
    column("started", Kind::Text, |run| Cell::Text(time::iso(run.facts.started_ms, run.facts.utc_offset_s))),
    column("started_ms", Kind::Time, |run| Cell::Count(run.facts.started_ms)),
    column("elapsed_ms", Kind::Count, |run| Cell::Count(run.facts.elapsed_ms)),
    column("exit_status", Kind::Count, |run| Cell::count(run.facts.exit_status.map(u64::from))),
    column("tag", Kind::Label, |run| Cell::text(run.facts.tag.clone())),
    column("kernel", Kind::Label, |run| Cell::text(run.facts.kernel.clone())),
    column("ios_per_s", Kind::Number, |run| number(run.headline.ios_per_s)),
    column("bytes_per_s", Kind::Number, |run| number(run.headline.bytes_per_s)),
    column("latency_p99_ns", Kind::Count, |run| {
        run.headline.latency_p99_ns.map_or(Cell::None, Cell::Latency)
    }),
    column("latency_of", Kind::Text, |run| Cell::text(run.headline.latency_of.as_deref())),
];

fn number(figure: Option<f64>) -> Cell {
    figure.map_or(Cell::None, |figure| Cell::Number(figure, 0))
}

/// These runs.
pub(super) fn table(entries: &[HistoryEntry]) -> Table {
    let mut table = Table::new(COLUMNS.iter().map(|column| Column::new(column.key, column.key)));
    table.rows = entries.iter().map(cells).collect();
    table
}

/// The cells of a run.
pub(super) fn cells(entry: &HistoryEntry) -> Vec<Cell> {
    COLUMNS.iter().map(|column| (column.cell)(entry)).collect()
}
