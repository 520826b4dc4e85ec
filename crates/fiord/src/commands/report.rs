//! `fiord report`: a run as one page of HTML, or two side by side, or studies and more runs one after the other.
//!
//! Invariant: runs and logs are only read.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use fiord_import::log::{self, LogKind, LogLine, LogName};
use fiord_import::{JobFigures, Report};
use fiord_page::study_page::{StudyPage, render_study};
use fiord_page::{LoggedJob, LoggedValue, OverTime, RunView, render, several};
use fiord_report::json::Writer;
use fiord_report::path::{shown, visible_lines};
use fiord_session::run::environment;
use fiord_store::RunSelector;
use fiord_sys::errno::error_text;

use super::{explain, history};
use crate::arguments::{self, CommandError, Invocation};
use crate::output;
use crate::output_file::{Force, OutputFile};
use crate::results::{self, Document};
use crate::subcommand::Subcommands;

mod facts;
mod qualify;
mod study;
mod sweep;

use facts::facts;

/// Makes one page of HTML of a run, or of two side by side: conclusion and findings, percentiles, a heat map of latency
/// and charts over time, the devices, the job file, and how to repeat it; or of studies and more runs, one after the other:
/// conclusion and findings, charts and tables. The page needs no other file and no network.
/// Reads recorded runs, and the reports of fio and fiord with the logs of `write_bw_log`, `write_lat_log` and
/// `write_iops_log`. docs/report-page.md explains how to read it.
#[derive(Parser)]
#[command(name = "fiord report", after_help = EXAMPLES)]
pub(super) struct Options {
    /// Recorded runs or a study (a number, last, last~2 or a tag), files with a report (- for standard input), and log files of
    /// the one run; logs that a report names are found beside it
    #[arg(value_name = "ID|FILE", default_value = "last")]
    what: Vec<OsString>,
    /// The page to write (- for standard output); one that fiord wrote is replaced
    #[arg(short, long, value_name = "FILE", default_value = "report.html")]
    output: PathBuf,
    #[command(flatten)]
    force: Force,
    /// Print JSON about the page that was written (described in docs/json.md)
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  fiord report -o page.html                    the newest recorded run
  fiord report last~1 last -o page.html        two runs side by side
  fiord report result.json                     a report of fio or fiord
  fiord report result.json run_bw.1.log run_clat.1.log
  fiord report 12 -o - > page.html
";

/// The most runs that a page shows side by side.
const RUNS_SIDE_BY_SIDE: usize = 2;

/// The most results of a page.
const RESULTS_MAX: usize = 20;

impl Invocation for Options {
    fn run(self, _: &Subcommands) -> Result<ExitCode, CommandError> {
        let (page, names) = page(views(&self.what)?)?;
        if self.output == Path::new("-") {
            return match self.json {
                true => Err("--json and --output=- both need standard output".to_string().into()),
                false => arguments::print(page),
            };
        }
        OutputFile::new("--output", &self.output, Some(self.force))?.write(page.as_bytes())?;
        let place = shown(&self.output);
        if self.json {
            return arguments::print(Writer::document(|json| {
                json.string("output", &place);
                json.integer("bytes", page.len());
                json.strings("runs", &names);
            }));
        }
        output::remark(&format!("fiord report: {place} written, {} KiB\n", page.len().div_ceil(1024)));
        Ok(ExitCode::SUCCESS)
    }
}

/// What a page shows.
enum View {
    Run(Box<RunView>),
    Study(Box<StudyPage>),
}

impl View {
    fn name(&self) -> String {
        match self {
            View::Run(run) => run.name.clone(),
            View::Study(study) => study.title.clone(),
        }
    }
}

/// The page, and the names of what it shows. One run and two have pages of their own; studies, and more runs, stand one after
/// the other.
fn page(views: Vec<View>) -> Result<(String, Vec<String>), CommandError> {
    let names = views.iter().map(View::name).collect();
    let is_run = |view: &View| matches!(view, View::Run(_));
    if views.len() <= RUNS_SIDE_BY_SIDE && views.iter().all(is_run) {
        let run = |view| if let View::Run(run) = view { Some(*run) } else { None };
        let runs: Vec<RunView> = views.into_iter().filter_map(run).collect();
        return Ok((visible_lines(&render(&runs)?), names));
    }
    let study = |view| match view {
        View::Study(study) => *study,
        View::Run(run) => several::of_run(&run),
    };
    let mut pages: Vec<StudyPage> = views.into_iter().map(study).collect();
    let shown = if pages.len() == 1 { pages.swap_remove(0) } else { several::joined(pages) };
    Ok((visible_lines(&render_study(&shown)?), names))
}

/// The runs named, with their logs, or the study.
fn views(names: &[OsString]) -> Result<Vec<View>, CommandError> {
    let (logs, reports): (Vec<&OsString>, Vec<&OsString>) =
        names.iter().partition(|name| log_name(name).is_some());
    match reports.len() {
        0 => {
            return Err("these are logs only; name the report of their run as well, as JSON"
                .to_string()
                .into());
        }
        1 => {}
        _ if !logs.is_empty() => {
            return Err("logs belong to one run; name one report with them".to_string().into());
        }
        2..=RESULTS_MAX => {}
        more => return Err(format!("a page shows at most {RESULTS_MAX} results, not {more}").into()),
    }
    let logs: Vec<PathBuf> = logs.into_iter().map(PathBuf::from).collect();
    reports.into_iter().map(|name| view(name, &logs)).collect()
}

fn log_name(name: &OsStr) -> Option<LogName> {
    log::name(&Path::new(name).file_name()?.to_string_lossy())
}

/// A file takes precedence over a run of its name.
fn view(name: &OsStr, logs: &[PathBuf]) -> Result<View, CommandError> {
    let path = Path::new(name);
    if results::is_file(path) {
        return file(path, logs);
    }
    let text = name.to_string_lossy();
    match results::named(&text)? {
        Some(which) => recorded(which, logs),
        None => {
            let what = results::no_file(path);
            Err(format!("{}: {what}, nor a run in fiord history", shown(path)).into())
        }
    }
}

fn of_study(page: StudyPage, logs: &[PathBuf]) -> Result<View, CommandError> {
    match logs {
        [] => Ok(View::Study(Box::new(page))),
        _ => Err(format!("{}: logs belong to a run, and this is a study", page.title).into()),
    }
}

fn recorded(which: RunSelector, logs: &[PathBuf]) -> Result<View, CommandError> {
    let (history, stored) = history::load(which)?;
    let Some((_, run)) = &stored.printed else {
        if let Some(Document::Report(report)) = results::recorded_document(&stored)? {
            let (findings, checks) = explain::judged(&report);
            return Ok(View::Run(Box::new(RunView {
                name: format!("Run {}: {}", stored.entry.id, stored.entry.facts.title),
                over_time: of_logs(logs, &report)?,
                report,
                findings,
                checks,
                facts: facts(&stored),
                command: Some(stored.entry.facts.command.clone()),
                ..RunView::default()
            })));
        }
        let document = explain::study_of(&stored, &history)?;
        let runs = history::runs_of(&stored, &history)?;
        return of_study(study::of_history(&stored, &document, &runs), logs);
    };
    let (report, findings, checks) = explain::read_run(run)?;
    let over_time = match logs {
        [] => run.timeline.as_ref().map(OverTime::of),
        logs => of_logs(logs, &report)?,
    };
    Ok(View::Run(Box::new(RunView {
        name: format!("Run {}: {}", stored.entry.id, stored.entry.facts.title),
        report,
        findings,
        checks,
        over_time,
        devices: run.devices.clone(),
        facts: facts(&stored),
        command: Some(stored.entry.facts.command.clone()),
    })))
}

fn file(path: &Path, logs: &[PathBuf]) -> Result<View, CommandError> {
    let name = path.file_name().map_or_else(|| "standard input".into(), |name| name.to_string_lossy());
    let report = match results::document_in(path)? {
        Document::Report(report) => report,
        Document::Study(document) => return of_study(study::of_file(&name, &document), logs),
    };
    let (findings, checks) = explain::judged(&report);
    let found = if logs.is_empty() { logs_beside(path, &report) } else { logs.to_vec() };
    let facts = [("Program", report.version.clone()), ("Report of", report.date.clone())];
    let facts = facts.into_iter().filter_map(|(name, text)| Some((name.to_string(), text?)));
    Ok(View::Run(Box::new(RunView {
        name: if path == Path::new("-") { "Standard input".to_string() } else { name.into_owned() },
        facts: facts.collect(),
        over_time: of_logs(&found, &report)?,
        report,
        findings,
        checks,
        ..RunView::default()
    })))
}

/// The logs that a report's options name, if they are in its directory.
fn logs_beside(path: &Path, report: &Report) -> Vec<PathBuf> {
    if path == Path::new("-") {
        return Vec::new();
    }
    let of_jobs =
        report.jobs.iter().flat_map(|job| job.options.iter().map(move |option| (job.name.as_str(), option)));
    let options = report.global_options.iter().map(|option| ("", option)).chain(of_jobs);
    let is_log = |name: &str| ["write_bw_log", "write_lat_log", "write_iops_log"].contains(&name);
    let prefixes = options.filter(|(_, (name, _))| is_log(name)).flat_map(|(job, (_, value))| {
        let named = Path::new(value).file_name().map(|name| name.to_string_lossy().into_owned());
        // Without a value the job's name is used.
        named.into_iter().chain(value.is_empty().then(|| job.to_string()))
    });
    let prefixes: Vec<String> = prefixes.collect();
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_named =
        |path: &PathBuf| log_name(path.as_os_str()).is_some_and(|log| prefixes.contains(&log.prefix));
    let mut found: Vec<PathBuf> = entries.filter(is_named).collect();
    found.sort_unstable();
    found
}

/// What logs say of a run over time; `None` without any. Of latencies, those of completions count if there are any.
fn of_logs(paths: &[PathBuf], report: &Report) -> Result<Option<OverTime>, CommandError> {
    let named = || paths.iter().filter_map(|path| Some((path, log_name(path.as_os_str())?)));
    // With group_reporting a report has fewer jobs than there are logs.
    let names: &[JobFigures] = match named().map(|(_, name)| name.job as usize).max() {
        Some(last) if last == report.jobs.len() => &report.jobs,
        _ => &[],
    };
    let has_completion = named().any(|(_, name)| name.kind == LogKind::Completion);
    let mut jobs: Vec<((String, u32), LoggedJob)> = Vec::new();
    for (path, name) in named() {
        let value: fn(u64) -> LoggedValue = match name.kind {
            LogKind::Bandwidth => LoggedValue::Bandwidth,
            LogKind::Iops => LoggedValue::Iops,
            LogKind::Completion => LoggedValue::Latency,
            LogKind::Total if !has_completion => LoggedValue::Latency,
            LogKind::Total | LogKind::Submission => continue,
        };
        let lines = lines(path)?.into_iter().map(|line| (line.at_ms, line.direction, value(line.value)));
        let key = (name.prefix, name.job);
        match jobs.iter_mut().find(|(known, _)| *known == key) {
            Some((_, job)) => job.lines.extend(lines),
            None => {
                let name = job_name(&key.0, key.1, names);
                jobs.push((key, LoggedJob { name, lines: lines.collect() }));
            }
        }
    }
    Ok(OverTime::of_logs(&jobs.into_iter().map(|(_, job)| job).collect::<Vec<_>>()))
}

/// What the logs of a job are called: by the name of the job of this number if no other has it, else by the number.
fn job_name(prefix: &str, number: u32, jobs: &[JobFigures]) -> String {
    let named = (number as usize).checked_sub(1).and_then(|index| jobs.get(index));
    let is_unique = |name: &str| jobs.iter().filter(|job| job.name == name).count() == 1;
    match named {
        Some(job) if is_unique(&job.name) => job.name.clone(),
        _ if number > 0 => format!("{prefix} {number}"),
        _ => prefix.to_string(),
    }
}

fn lines(path: &Path) -> Result<Vec<LogLine>, String> {
    let bytes = environment::read_file(path.as_os_str())
        .map_err(|error| format!("{}: {}", shown(path), error_text(&error)))?;
    log::read(&String::from_utf8_lossy(&bytes)).map_err(|why| format!("{}:{why}", shown(path)))
}
