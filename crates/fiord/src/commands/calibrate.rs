//! `fiord calibrate`: what fiord itself costs per I/O on this machine.
//!
//! Invariant: shows the calibration that the finding `tool-overhead` rests on; touches no file but that of the calibration.

use std::fmt::Write;
use std::process::ExitCode;

use fiord_report::json::Writer;
use fiord_report::path::shown;
use fiord_report::table::{Cell, Column, Table};
use fiord_session::run::calibration::{self, Calibration};

use crate::arguments::{self, CommandError, Invocation};
use crate::layout::{WIDTH, folded};
use crate::subcommand::Subcommands;

/// Prints what fiord itself costs per I/O on this machine, by what it is spent
/// on. It is measured when it is first needed, on the engine that does nothing,
/// and kept until the machine, the kernel, the governor or fiord changes. The
/// finding tool-overhead compares it with the latencies of a run.
#[derive(clap::Parser)]
#[command(name = "fiord calibrate", verbatim_doc_comment, after_help = EXAMPLES)]
pub(super) struct Options {
    /// Measure again, also if a calibration is kept
    #[arg(long)]
    again: bool,
    /// Print JSON (described in docs/json.md)
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  fiord calibrate
  fiord calibrate --again --json
";

impl Invocation for Options {
    fn run(self, _: &Subcommands) -> Result<ExitCode, CommandError> {
        let calibration = calibration::get(true, self.again)
            .map_err(|why| format!("fiord's own cost cannot be measured: {why}"))?;
        arguments::print(if self.json { json(&calibration) } else { text(&calibration) })
    }
}

/// What each figure is the cost of, by its name.
const PARTS: [(&str, &str); 9] = [
    ("sync_ns", "a sequential read, synchronous engines"),
    ("queued_ns", "a sequential read, queued engines, depth 32"),
    ("sync_own_ns", "of sync_ns, between I/Os: drawing, statistics"),
    ("queued_own_ns", "of queued_ns, the same"),
    ("random_ns", "more for a random offset"),
    ("write_ns", "more for a write"),
    ("log_ns", "more for a log with a line for each I/O"),
    ("fill_ns_per_kib", "more for new contents of a write, per KiB"),
    ("clock_ns", "one reading of the clock, which is part of these"),
];

fn table(calibration: &Calibration) -> Table {
    let mut table =
        Table::new([Column::new("name", "NAME"), Column::new("ns", "NS"), Column::new("what", "WHAT")]);
    for (name, ns) in calibration.cost.figures() {
        let part = PARTS.iter().find(|(known, _)| *known == name).map(|(_, what)| (*what).to_string());
        let method = name.rsplit_once('.').map(|(_, method)| format!("verify={method}, per KiB"));
        table.rows.push(vec![Cell::Text(name), Cell::Number(ns, 1), Cell::text(part.or(method))]);
    }
    table
}

fn text(calibration: &Calibration) -> String {
    let Calibration { key, is_new, file, .. } = calibration;
    let mut text = table(calibration).text(WIDTH);
    let _ = writeln!(text);
    for (name, value) in key.parts() {
        let _ = write!(text, "{}", folded(&format!("{name}: {value}"), WIDTH, 4));
    }
    let when = if *is_new { "measured now" } else { "measured earlier" };
    let kept = file.as_ref().map_or_else(
        || "not kept: the state directory cannot be written to".to_string(),
        |file| format!("kept in {}", shown(file)),
    );
    text + &folded(&format!("{when}, {kept}"), WIDTH, 0)
}

fn json(calibration: &Calibration) -> String {
    Writer::document(|json| {
        for (name, value) in calibration.key.parts() {
            json.string(name, value);
        }
        json.boolean("measured_now", calibration.is_new);
        match &calibration.file {
            Some(file) => json.string("file", &fiord_report::path::text(file)),
            None => json.null("file"),
        }
        table(calibration).write_json(json, "costs");
    })
}
