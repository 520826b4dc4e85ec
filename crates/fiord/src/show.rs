//! `fiord show`: prints a run that was kept again, in any format.
//!
//! Invariant: what is printed is what the run would have printed in that format, byte for byte.

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use fiord_options::value::{OutputFormats, Reading, Value};
use fiord_report::{Format, TerseVersion, render, time, wants_headings};
use fiord_store::{Entry, Filter, History, Stored, Which};

use crate::history::no_such_run;
use crate::study::{duration, labelled};
use crate::subcommand::width;
use crate::{history, keep, settings, status, subcommand};

/// Prints a run again as it was reported, in any format. Of a study it prints what the study printed, and lists its runs.
#[derive(Parser)]
#[command(name = "fiord show")]
struct Options {
    /// The run: its number, last, or last~2 for two before
    #[arg(value_name = "ID")]
    which: Which,
    /// Print these: normal, terse, json, json+, or several separated by commas
    #[arg(long, value_name = "FORMATS", default_value = "normal", value_parser = formats)]
    output_format: OutputFormats,
    /// The version of terse lines
    #[arg(long, value_name = "2-5", default_value_t = 3, value_parser = clap::value_parser!(u32).range(2..=5))]
    terse_version: u32,
    /// Print JSON: the same as --output-format=json
    #[arg(long, conflicts_with = "output_format")]
    json: bool,
}

fn formats(text: &str) -> Result<OutputFormats, String> {
    OutputFormats::parse(text, &mut Reading::default())
}

/// Prints the run.
pub(crate) fn run(arguments: &[OsString]) -> ExitCode {
    subcommand::run(arguments, |options: Options| {
        let told = |error: fiord_store::StoreError| format!("show: {error}");
        let path = keep::place().map_err(|why| format!("show: {why}"))?;
        let absent = || no_such_run(options.which);
        let history = History::open_existing(&path).map_err(told)?.ok_or_else(absent)?;
        let stored = history.load(options.which).map_err(told)?.ok_or_else(absent)?;
        let formats =
            if options.json { vec![Format::Json] } else { settings::formats_of(&options.output_format) };
        if let Some((headings, mut report)) = stored.printed {
            // What was said on a terminal then is part of the text now.
            report.tells_warnings = true;
            let terse = TerseVersion::from_number(options.terse_version).unwrap_or_default();
            let headings = if wants_headings(&formats) { headings } else { String::new() };
            return Ok(headings + &render(&report, &formats, terse));
        }
        let filter = Filter { parent: Some(stored.entry.id), ..Filter::default() };
        study(&stored, &history.list(&filter).map_err(told)?, &formats)
    })
}

/// A study as it was printed, below when and how it was run; and for people its runs. One that did not end has its runs
/// alone.
fn study(stored: &Stored, runs: &[Entry], formats: &[Format]) -> Result<String, String> {
    let summary = stored.summary.as_ref();
    match formats {
        [Format::Normal] => {
            let conclusion = summary.map_or(String::new(), |summary| format!("{}\n", summary.text));
            Ok(heading(stored) + &conclusion + &history::text(runs))
        }
        [Format::Json | Format::JsonPlus] => {
            Ok(summary.map_or_else(|| history::json(runs), |summary| summary.json.clone()))
        }
        _ => Err(format!(
            "show: run {} is a study, which is printed as normal or as json; its runs have every format",
            stored.entry.id
        )),
    }
}

/// When and how a study was run, and what it said before it began.
fn heading(stored: &Stored) -> String {
    let facts = &stored.entry.facts;
    let took = match facts.exit_status {
        Some(_) => format!(", {}", duration(Duration::from_millis(facts.elapsed_ms))),
        None => String::new(),
    };
    let run = format!(
        "{} of {}{took}, on {} with fiord {}: {}",
        stored.entry.id,
        time::date(facts.started_ms, facts.utc_offset_s),
        facts.host,
        facts.fiord_version,
        status::words(facts.exit_status)
    );
    let lines = [("Run", run), ("Command", facts.command.clone())];
    format!("{}\n{}", labelled(&lines, width()), stored.heading.as_deref().unwrap_or_default())
}
