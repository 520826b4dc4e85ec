//! `fiord explain`: a report in plain words, or one line, key, field or finding of it.
//!
//! Invariant: reads a file or the history, and changes neither.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::ExitCode;

use clap::Parser;
use fiord_engine::registry::ENGINES;
use fiord_explain::{NotedFinding, explain, lookup};
use fiord_findings::{EngineFacts, of_report};
use fiord_import::Report;
use fiord_options::suggest;
use fiord_options::value::{Reading, Value};
use fiord_plan::EngineName;
use fiord_report::path::shown;
use fiord_report::{Code, RunReport};
use fiord_store::{History, RunSelector, Stored};

use super::history;
use crate::arguments::{self, CommandError, Invocation};
use crate::layout::width;
use crate::results;
use crate::subcommand::Subcommands;

/// Explains a report in plain words, with the figures of the run: what each part
/// means here, the findings that the figures allow, and what to look at next.
/// Reads what fiord and fio print: normal text, JSON, JSON+ and terse lines.
/// docs/explain.md has an example.
#[derive(Parser)]
#[command(name = "fiord explain", verbatim_doc_comment, after_help = EXAMPLES)]
pub(super) struct Options {
    /// A recorded run (its number, last, last~2 or tag), a file with
    /// a report (- for standard input), or a finding's code
    #[arg(default_value = "last", value_name = "ID|FILE|CODE")]
    what: OsString,
    /// Explain one line of a report, as pasted, a JSON key, or
    /// a terse field by its number (38, or "v5 38" for version 5)
    #[arg(long, value_name = "TEXT", conflicts_with = "what", allow_hyphen_values = true)]
    line: Option<String>,
    /// Print JSON (described in docs/json.md)
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  fiord explain                                the newest recorded run
  fiord explain result.json                    a report of fio or fiord
  fio job.fio | fiord explain -
  fiord explain --line 'clat percentiles'
  fiord explain --line clat_ns.percentile
  fiord explain depth-not-reached              a finding
";

impl Invocation for Options {
    fn run(self, _: &Subcommands) -> Result<ExitCode, CommandError> {
        let explained = match &self.line {
            Some(line) => lookup::line(line).map(Explained::One).map_err(CommandError::from),
            None => what(&self.what),
        };
        arguments::print(match (explained?, self.json) {
            (Explained::One(meaning), true) => meaning.json(),
            (Explained::One(meaning), false) => meaning.text(width()),
            (Explained::Report(explanation), true) => explanation.json(),
            (Explained::Report(explanation), false) => explanation.text(width()),
        })
    }
}

enum Explained {
    One(lookup::Meaning),
    Report(fiord_explain::Explanation),
}

/// A file takes precedence over a finding or a run of its name.
fn what(name: &OsStr) -> Result<Explained, CommandError> {
    let path = Path::new(name);
    if results::is_file(path) {
        return Ok(Explained::Report(file(path)?));
    }
    let text = name.to_string_lossy();
    if let Some(code) = Code::from_name(&text) {
        return Ok(Explained::One(fiord_explain::code(code)));
    }
    if let Some(which) = results::named(&text)? {
        return recorded(which).map(Explained::Report);
    }
    let nearest = suggest::nearest(&text, Code::ALL.iter().map(|code| code.name()));
    let hint = nearest.map_or_else(String::new, |code| format!("; did you mean the finding {code}?"));
    Err(format!(
        "{}: {}, nor is it a run in fiord history or the code of a finding{hint}",
        shown(path),
        results::no_file(path)
    )
    .into())
}

/// A file's report, with the findings in it or else those that its figures allow.
fn file(path: &Path) -> Result<fiord_explain::Explanation, String> {
    read_file(path).map(|(report, findings)| explain(&report, findings))
}

/// A file's report, and the findings in it or else those that its figures allow.
pub(super) fn read_file(path: &Path) -> Result<(Report, Vec<NotedFinding>), String> {
    let report = results::report_in(path)?;
    let findings: Vec<NotedFinding> = if report.findings.is_empty() {
        let can_queue = |name: &str| {
            let engine = EngineName::parse(name, &mut Reading::default()).ok()?;
            ENGINES.find(engine).map(|engine| engine.can_queue())
        };
        of_report(&report, EngineFacts { can_queue: &can_queue }).iter().map(NotedFinding::from).collect()
    } else {
        report.findings.iter().map(NotedFinding::from).collect()
    };
    Ok((report, findings))
}

/// A recorded run, with the findings recorded with it.
fn recorded(which: RunSelector) -> Result<fiord_explain::Explanation, CommandError> {
    let (history, stored) = history::load(which)?;
    match &stored.printed {
        Some((_, report)) => Ok(of_run(report)?),
        None => Err(is_study(&stored, &history)?.into()),
    }
}

fn of_run(run: &RunReport) -> Result<fiord_explain::Explanation, String> {
    read_run(run).map(|(report, findings)| explain(&report, findings))
}

/// Why a study has no report of its own, and what to name instead.
pub(super) fn is_study(study: &Stored, history: &History) -> Result<String, CommandError> {
    let runs = history::runs_of(study, history)?;
    let ids: Vec<String> = runs.iter().rev().map(|run| run.id.to_string()).collect();
    let id = study.entry.id;
    let instead = match ids.as_slice() {
        [] => "it ended before its first run".to_string(),
        ids => format!("name one of its runs instead ({})", ids.join(", ")),
    };
    Ok(format!("run {id} is a study: `fiord show {id}` prints it; {instead}"))
}

/// A run as its JSON says, with the histograms, and its findings.
pub(super) fn read_run(run: &RunReport) -> Result<(Report, Vec<NotedFinding>), String> {
    Ok((results::report_of(run)?, run.findings.iter().map(NotedFinding::from).collect()))
}
