//! `fiord show`: prints a recorded run again, in any format.
//!
//! Invariant: the output is what the run would have printed in that format, byte for byte.

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use fiord_import::ReportFormat;
use fiord_options::value::{OutputFormats, Reading, Value};
use fiord_report::path::visible_lines;
use fiord_report::{Format, TerseVersion, render, time, wants_headings};
use fiord_store::{HistoryEntry, RunKind, Stored};

use super::{explain, history};
use crate::arguments::{self, CommandError, Invocation};
use crate::fio::settings;
use crate::layout::{duration, labelled, width};
use crate::results::{self, Document};
use crate::subcommand::Subcommands;

/// Prints a recorded run again, in any format. For a study, and for a run on hosts, prints what was printed and lists its runs
#[derive(Parser)]
#[command(name = "fiord show", after_help = EXAMPLES)]
pub(super) struct Options {
    /// The run: its number, last, last~2 for the second before the
    /// last, the name it was given with --tag, or of a run on hosts that
    /// of one: last@db3
    #[arg(value_name = "ID")]
    which: String,
    /// Formats to print: normal, terse, json, json+, or several separated by commas
    #[arg(long, value_name = "FORMATS", default_value = "normal", value_parser = formats)]
    output_format: OutputFormats,
    /// Version of the terse format
    #[arg(long, value_name = "2-5", default_value_t = 3, value_parser = clap::value_parser!(u32).range(2..=5))]
    terse_version: u32,
    /// Print JSON: the same as --output-format=json
    #[arg(long, conflicts_with = "output_format")]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  fiord show last
  fiord show last~1               the run before it
  fiord show 12 --output-format=json+
";

fn formats(text: &str) -> Result<OutputFormats, String> {
    OutputFormats::parse(text, &mut Reading::default())
}

impl Invocation for Options {
    fn run(self, _: &Subcommands) -> Result<ExitCode, CommandError> {
        let unknown = || format!("{:?} names no run; use its number, last, last~2, or its tag", self.which);
        let which = results::named(&self.which)?.ok_or_else(unknown)?;
        let (history, stored) = history::load(which)?;
        let formats = if self.json { vec![Format::Json] } else { settings::formats_of(&self.output_format) };
        if let Some((headings, report)) = stored.printed {
            let terse = TerseVersion::from_number(self.terse_version).unwrap_or_default();
            let headings = if wants_headings(&formats) { headings } else { String::new() };
            return arguments::print(headings + &render(&report, &formats, terse));
        }
        if let Some(document) = results::recorded_document(&stored)?.filter(|_| is_imported(&stored)) {
            return arguments::print(imported(&stored, &document, &formats)?);
        }
        arguments::print(study(&stored, &history::runs_of(&stored, &history)?, &formats)?)
    }
}

fn is_imported(stored: &Stored) -> bool {
    stored.entry.facts.kind == RunKind::Import
}

/// What was imported: the document itself in its own format, and for people in words if that is a format for programs.
fn imported(stored: &Stored, document: &Document, formats: &[Format]) -> Result<String, String> {
    let text = stored.summary.as_ref().map_or("", |summary| &summary.json);
    let own = match document {
        Document::Report(report) => report.format,
        Document::Study(_) => ReportFormat::Json,
    };
    let is_own = match formats {
        [Format::Normal] => own == ReportFormat::Normal,
        [Format::Terse] => matches!(own, ReportFormat::Terse(_)),
        [Format::Json | Format::JsonPlus] => matches!(own, ReportFormat::Json | ReportFormat::JsonPlus),
        _ => false,
    };
    let id = stored.entry.id;
    match formats {
        [Format::Normal] => {
            let body = if is_own { text.to_string() } else { explain::of_imported(stored, document) };
            Ok(visible_lines(&format!("{}{body}", heading(stored))))
        }
        _ if is_own => Ok(visible_lines(text)),
        _ => Err(format!(
            "run {id} was imported as {}, and can be printed so or as normal only",
            match own {
                ReportFormat::Normal => "normal text",
                ReportFormat::Terse(_) => "terse lines",
                ReportFormat::Json | ReportFormat::JsonPlus => "json",
            }
        )),
    }
}

/// A study as it was printed, below a heading with the time and the command of the run; in text also its runs. A study
/// that did not finish has only its runs.
fn study(stored: &Stored, runs: &[HistoryEntry], formats: &[Format]) -> Result<String, String> {
    let summary = stored.summary.as_ref();
    match formats {
        [Format::Normal] => {
            let conclusion = summary.map_or(String::new(), |summary| format!("{}\n", summary.text));
            Ok(visible_lines(&(heading(stored) + &conclusion + &history::text(runs))))
        }
        [Format::Json | Format::JsonPlus] => {
            Ok(summary.map_or_else(|| history::json(runs), |summary| summary.json.clone()))
        }
        _ => Err(format!(
            "run {} is a study, or a run on hosts, which can be printed as normal or json only; its runs can be printed in every format",
            stored.entry.id
        )),
    }
}

/// When and how a study was run, and its own heading.
fn heading(stored: &Stored) -> String {
    let facts = &stored.entry.facts;
    let took = match facts.exit_status {
        Some(_) => format!(", {}", duration(Duration::from_millis(facts.elapsed_ms))),
        None => String::new(),
    };
    let program = match facts.fiord_version.as_str() {
        "" => String::new(),
        version => format!(" with fiord {version}"),
    };
    let run = format!(
        "{} of {}{took}, on {}{program}: {}",
        stored.entry.id,
        time::date(facts.started_ms, facts.utc_offset_s),
        facts.host_shown(),
        history::status_of(&stored.entry)
    );
    let lines = [("Run", run), ("Command", facts.command.clone())];
    format!("{}\n{}", labelled(&lines, width()), stored.heading.as_deref().unwrap_or_default())
}
