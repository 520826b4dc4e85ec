//! `fiord explain`: a report in plain words, or one line, key, field or finding of it.
//!
//! Invariant: reads a file or the history, and changes neither.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::ExitCode;

use clap::Parser;
use fiord_engine::registry::ENGINES;
use fiord_explain::study::{StudyExplanation, explain_study};
use fiord_explain::{Checks, NotedFinding, explain, lookup};
use fiord_findings::{EngineFacts, Judgement, of_report};
use fiord_import::{Report, StudyDocument, study};
use fiord_options::suggest;
use fiord_options::value::{Reading, Value};
use fiord_plan::EngineName;
use fiord_report::path::shown;
use fiord_report::{Code, RunReport, time};
use fiord_store::{History, HistoryEntry, RunSelector, Stored};

use super::history;
use crate::arguments::{self, CommandError, Invocation};
use crate::layout::width;
use crate::results::{self, Document};
use crate::subcommand::Subcommands;

/// Explains a report in plain words, with the figures of the run: what each part
/// means here, the findings that the figures allow, and what to look at next; of a
/// study its conclusion, with the figures that it rests on.
/// Reads what fiord and fio print: normal text, JSON, JSON+ and terse lines.
/// docs/explain.md has an example.
#[derive(Parser)]
#[command(name = "fiord explain", verbatim_doc_comment, after_help = EXAMPLES)]
pub(super) struct Options {
    /// A recorded run or study (its number, last, last~2 or tag), a
    /// file with a report (- for standard input), or a finding's code
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
        let explained = explained?;
        if self.json {
            return arguments::print(match explained {
                Explained::One(meaning) => meaning.json(),
                Explained::Report(explanation) => explanation.json(),
                Explained::Study(explanation) => explanation.json(),
            });
        }
        arguments::print_text(&match explained {
            Explained::One(meaning) => meaning.text(width()),
            Explained::Report(explanation) => explanation.text(width()),
            Explained::Study(explanation) => explanation.text(width()),
        })
    }
}

enum Explained {
    One(lookup::Meaning),
    Report(fiord_explain::Explanation),
    Study(StudyExplanation),
}

/// A file takes precedence over a finding or a run of its name.
fn what(name: &OsStr) -> Result<Explained, CommandError> {
    let path = Path::new(name);
    if results::is_file(path) {
        return Ok(file(path)?);
    }
    let text = name.to_string_lossy();
    if let Some(code) = Code::from_name(&text) {
        return Ok(Explained::One(fiord_explain::code(code)));
    }
    if let Some(which) = results::named(&text)? {
        return recorded(which);
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

/// A file's study, or its report with the findings in it or else those that its figures allow.
fn file(path: &Path) -> Result<Explained, String> {
    Ok(match results::document_in(path)? {
        Document::Report(report) => {
            let (findings, checks) = judged(&report);
            Explained::Report(explain(&report, findings, checks))
        }
        Document::Study(study) => {
            let source = format!("Study {} in {}", study.study, shown(path));
            Explained::Study(explain_study(&study, source, &[]))
        }
    })
}

/// The findings in a report, or else those that its figures allow, with what was checked for them.
pub(super) fn judged(report: &Report) -> (Vec<NotedFinding>, Checks) {
    if !report.findings.is_empty() {
        return (report.findings.iter().map(NotedFinding::from).collect(), Checks::default());
    }
    let can_queue = |name: &str| {
        let engine = EngineName::parse(name, &mut Reading::default()).ok()?;
        ENGINES.find(engine).map(|engine| engine.can_queue())
    };
    let Judgement { findings, checked, unchecked } = of_report(report, EngineFacts { can_queue: &can_queue });
    let missing = unchecked.iter().map(|(check, why)| (check.name().to_string(), (*why).to_string()));
    let checks = Checks {
        made: checked.iter().map(|check| check.name().to_string()).collect(),
        missing: missing.collect(),
    };
    (findings.iter().map(NotedFinding::from).collect(), checks)
}

/// A recorded run, with the findings recorded with it; or a recorded study.
fn recorded(which: RunSelector) -> Result<Explained, CommandError> {
    let (history, stored) = history::load(which)?;
    if let Some((_, report)) = &stored.printed {
        return Ok(Explained::Report(of_run(report)?));
    }
    if let Some(Document::Report(report)) = results::recorded_document(&stored)? {
        let (findings, checks) = judged(&report);
        return Ok(Explained::Report(explain(&report, findings, checks)));
    }
    let study = study_of(&stored, &history)?;
    let runs = history::runs_of(&stored, &history)?;
    // The oldest is the last.
    let runs: Vec<String> = runs.iter().rev().map(|run| run.id.to_string()).collect();
    Ok(Explained::Study(explain_study(&study, source(&stored), &runs)))
}

/// What was imported, in words.
pub(super) fn of_imported(stored: &Stored, document: &Document) -> String {
    match document {
        Document::Report(report) => {
            let (findings, checks) = judged(report);
            explain(report, findings, checks).text(width())
        }
        Document::Study(study) => explain_study(study, source(stored), &[]).text(width()),
    }
}

/// What a recorded study is called.
fn source(stored: &Stored) -> String {
    let HistoryEntry { id, facts, .. } = &stored.entry;
    let date = time::date(facts.started_ms, facts.utc_offset_s);
    format!("Study {id} of {date} on {}: {}", facts.host_shown(), facts.title)
}

fn of_run(run: &RunReport) -> Result<fiord_explain::Explanation, String> {
    let (report, findings, checks) = read_run(run)?;
    Ok(explain(&report, findings, checks))
}

/// The document of a recorded study.
///
/// # Errors
/// The study did not end, or fiord cannot read its own document.
pub(super) fn study_of(stored: &Stored, history: &History) -> Result<StudyDocument, CommandError> {
    let id = stored.entry.id;
    match &stored.summary {
        Some(summary) => {
            let study = study::read(&summary.json).map_err(|why| format!("study {id}: {why}"))?;
            Ok(study.ok_or_else(|| format!("study {id}: its document cannot be read"))?)
        }
        None => {
            let runs = history::runs_of(stored, history)?;
            let ids: Vec<String> = runs.iter().rev().map(|run| run.id.to_string()).collect();
            let instead = match ids.as_slice() {
                [] => "and has no run".to_string(),
                ids => format!("name one of its runs instead ({})", ids.join(", ")),
            };
            Err(format!("study {id} did not end, so that it has no conclusion; {instead}").into())
        }
    }
}

/// A run as its JSON says, with the histograms, and its findings as those of any report: a run without any may have been
/// one with `--trust=off`.
pub(super) fn read_run(run: &RunReport) -> Result<(Report, Vec<NotedFinding>, Checks), String> {
    let report = results::report_of(run)?;
    let (findings, checks) = judged(&report);
    Ok((report, findings, checks))
}
