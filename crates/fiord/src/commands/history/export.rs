//! `fiord history --export`: the history as a table for databases.
//!
//! Invariant: studies and their runs are exported alike.

use std::cmp::Reverse;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use fiord_export::{
    TypedTable, direction_cells, direction_columns, line_protocol, parquet, read_direction_cells,
};
use fiord_report::path::shown;
use fiord_report::table::Column;
use fiord_stats::OrderBy;
use fiord_store::{Filter, History, HistoryEntry, RunKind, RunSelector};
use fiord_sys::tty;

use super::columns::{self, COLUMNS};
use crate::arguments::{self, CommandError};
use crate::output;
use crate::output_file::{Force, OutputFile};
use crate::results::{self, Document};

/// The measurement of all points in line protocol.
const MEASUREMENT: &str = "fiord_run";

#[derive(clap::Args)]
pub(super) struct Export {
    /// Print a table of all runs and studies, and the runs of studies, with the figures of each direction (columns: docs/json.md)
    #[arg(long, value_name = "FORMAT", conflicts_with_all = ["json", "csv", "markdown"])]
    pub(super) export: Option<Format>,
    /// Write the table to this file; one that fiord wrote is replaced
    #[arg(short, long, value_name = "FILE", requires = "export")]
    output: Option<PathBuf>,
    #[command(flatten)]
    force: Force,
}

/// The format of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Format {
    /// Comma-separated values
    Csv,
    /// Apache Parquet
    Parquet,
    /// InfluxDB's line protocol
    Line,
}

impl Export {
    /// Writes these runs, and those of the studies among them.
    pub(super) fn write(
        &self,
        format: Format,
        history: Option<&History>,
        entries: Vec<HistoryEntry>,
    ) -> Result<ExitCode, CommandError> {
        if format == Format::Parquet && self.output.is_none() && tty::stdout_is_terminal() {
            return Err("Parquet is not text; write it to a file with --output=FILE".to_string().into());
        }
        let (entries, table) = match history {
            Some(history) => table(history, entries)?,
            None => (Vec::new(), empty()),
        };
        let bytes = match format {
            Format::Csv => table.table.csv().into_bytes(),
            Format::Parquet => parquet(&table).map_err(|too_large| too_large.to_string())?,
            Format::Line => {
                let numbers: Vec<u64> = entries.iter().map(|entry| entry.id.unsigned_abs()).collect();
                line_protocol(MEASUREMENT, &table, &numbers).into_bytes()
            }
        };
        match &self.output {
            Some(path) if path != Path::new("-") => {
                OutputFile::new("--output", path, Some(self.force))?.write(&bytes)?;
                let what = format!("{} rows", table.table.rows.len());
                output::remark(&format!("fiord history: {} written, {what}\n", shown(path)));
                Ok(ExitCode::SUCCESS)
            }
            _ => arguments::print(bytes),
        }
    }
}

fn empty() -> TypedTable {
    let of_runs = COLUMNS.iter().map(|column| (Column::new(column.key, column.key), column.kind));
    TypedTable::new(of_runs.chain(direction_columns()))
}

/// These runs with those of the studies among them, newest first, as a table.
fn table(
    history: &History,
    entries: Vec<HistoryEntry>,
) -> Result<(Vec<HistoryEntry>, TypedTable), CommandError> {
    let mut all = Vec::new();
    for entry in entries {
        if entry.facts.kind != RunKind::Fio {
            all.extend(history.list(&Filter { parent: Some(entry.id), ..Filter::default() })?);
        }
        all.push(entry);
    }
    all.order_by_key(|entry| Reverse(entry.id));
    let mut table = empty();
    for entry in &all {
        let stored = history.load(RunSelector::Id(entry.id))?;
        let imported = stored.as_ref().filter(|stored| stored.entry.facts.kind == RunKind::Import);
        let imported = imported.map(results::recorded_document).transpose()?.flatten();
        let report = stored.and_then(|stored| stored.printed);
        let figures = match imported {
            Some(Document::Report(report)) => read_direction_cells(&report),
            _ => direction_cells(report.as_ref().map(|(_, report)| report)),
        };
        table.push([columns::cells(entry), figures].concat())?;
    }
    Ok((all, table))
}
