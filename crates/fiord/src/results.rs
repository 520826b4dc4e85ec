//! The results that can be compared: runs and studies of the history, and files with reports.
//!
//! Invariant: reads files and the history, and changes neither. A recorded run is read back from its own JSON+, so that
//! it is compared in the same way as the file that it would have printed.

use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use fiord_compare::{NamedRun, Side, study_runs};
use fiord_import::{Report, StudyDocument, StudyValue, study};
use fiord_lab::rounds::without_round;
use fiord_options::masked;
use fiord_report::path::shown;
use fiord_report::{Format, RunReport, TerseVersion, render, time};
use fiord_session::run::environment;
use fiord_store::{Filter, History, HistoryEntry, RunKind, RunSelector, Stored};
use fiord_sys::errno::error_text;

use crate::arguments::CommandError;
use crate::keep;

/// What a file has.
#[allow(clippy::large_enum_variant, reason = "there is one at a time")]
pub(crate) enum Document {
    Report(Report),
    Study(StudyDocument),
}

/// The study of a file, or its best report; `-` is standard input.
///
/// # Errors
/// It cannot be read, or has neither, with the place.
pub(crate) fn document_in(path: &Path) -> Result<Document, String> {
    let (place, text) = text_of(path)?;
    document(&text).map_err(|why| format!("{place}:{why}"))
}

/// The study of a text, or its best report. The error begins with its place.
pub(crate) fn document(text: &str) -> Result<Document, String> {
    match study::read(text).map_err(|why| why.to_string())? {
        Some(study) => Ok(Document::Study(study)),
        None => best(text).map(Document::Report),
    }
}

/// What errors call a file, and its text.
pub(crate) fn text_of(path: &Path) -> Result<(String, String), String> {
    let place = if path == Path::new("-") { "standard input".to_string() } else { shown(path) };
    let bytes = environment::read_file(path.as_os_str())
        .map_err(|error| format!("{place}: {}", error_text(&error)))?;
    // It may be large: it is copied only if it must be.
    let text = String::from_utf8(bytes)
        .unwrap_or_else(|damaged| String::from_utf8_lossy(damaged.as_bytes()).into_owned());
    Ok((place, text))
}

/// The report with the most information.
fn best(text: &str) -> Result<Report, String> {
    let reports = fiord_import::read(text).map_err(|why| why.to_string())?;
    let best = fiord_import::best(reports).ok_or_else(|| "1:1: there is no report in this file".to_string());
    best.map(without_secrets)
}

/// A report whose options may be shown: fio's have the secrets of engines.
fn without_secrets(mut report: Report) -> Report {
    let jobs = report.jobs.iter_mut().chain(report.all_hosts.as_deref_mut());
    let of_jobs = jobs.flat_map(|job| &mut job.options);
    for (name, value) in report.global_options.iter_mut().chain(of_jobs) {
        *value = masked::of_name(name, value);
    }
    report
}

/// A run as its JSON is read, with the histograms.
///
/// # Errors
/// fiord cannot read its own report.
pub(crate) fn report_of(run: &RunReport) -> Result<Report, String> {
    best(&render(run, &[Format::JsonPlus], TerseVersion::V3))
}

/// What a user named: a file, a run or a study; or several of them, separated by commas, which are repetitions of each
/// other.
///
/// # Errors
/// There is no such thing, or it cannot be read.
pub(crate) fn side(name: &OsStr) -> Result<Side, CommandError> {
    let is_list = name.as_bytes().contains(&b',') && !Path::new(name).exists();
    if !is_list {
        return one(name);
    }
    let mut parts = name.as_bytes().split(|byte| *byte == b',');
    let mut all = one(OsStr::from_bytes(parts.next().unwrap_or_default()))?;
    let mut count = 1;
    for part in parts {
        let Side { host, kernel, runs, .. } = one(OsStr::from_bytes(part))?;
        all.host = all.host.filter(|known| host.as_ref().is_none_or(|host| host == known));
        all.kernel = all.kernel.filter(|known| kernel.as_ref().is_none_or(|kernel| kernel == known));
        all.runs.extend(runs);
        count += 1;
    }
    Ok(Side { name: shown(name), described: format!("{count} results as one"), ..all })
}

/// A file takes precedence over a run of its name, as for `fiord explain`.
fn one(name: &OsStr) -> Result<Side, CommandError> {
    let path = PathBuf::from(std::ffi::OsString::from_vec(name.as_bytes().to_vec()));
    if is_file(&path) {
        let report = match document_in(&path)? {
            Document::Report(report) => report,
            Document::Study(study) => return side_of(&path, &study),
        };
        let version = report.version.clone().unwrap_or_else(|| "unknown version".to_string());
        let date = report.date.as_ref().map_or_else(String::new, |date| format!(" of {date}"));
        return Ok(Side {
            name: if name == "-" { "standard input".to_string() } else { shown(&path) },
            described: format!("report{date}, {version}"),
            runs: vec![NamedRun { name: String::new(), report }],
            ..Side::default()
        });
    }
    if let Some((path, host)) = file_and_host(name) {
        return of_host(&path, &host);
    }
    recorded(&name.to_string_lossy())
}

/// `FILE@HOST`, if there is such a file.
fn file_and_host(name: &OsStr) -> Option<(PathBuf, String)> {
    let at = name.as_bytes().iter().rposition(|byte| *byte == b'@')?;
    let path = PathBuf::from(OsStr::from_bytes(&name.as_bytes()[..at]));
    let host = OsStr::from_bytes(&name.as_bytes()[at + 1..]).to_string_lossy().into_owned();
    is_file(&path).then_some((path, host))
}

/// The jobs that one host has in the report of several.
fn of_host(path: &Path, host: &str) -> Result<Side, CommandError> {
    let place = shown(path);
    let report = match document_in(path)? {
        Document::Report(report) => report,
        Document::Study(study) => {
            return Ok(study_of_host(&study, host).map_err(|why| format!("{place} {why}"))?);
        }
    };
    let hosts = report.hosts.join(", ");
    if let Some(fate) = fate_of(&report, host) {
        return Err(format!("{place} has no figures of host {}, which {fate}", shown(host)).into());
    }
    let report = report.of_host(host).ok_or_else(|| match hosts.as_str() {
        "" => format!("{place} has no hosts; leave out @{}", shown(host)),
        hosts => format!("{place} has no host {}; it has {hosts}", shown(host)),
    })?;
    let name = format!("{place}@{}", shown(host));
    let described = format!("host {} of {place}", shown(host));
    let runs = vec![NamedRun { name: String::new(), report }];
    Ok(Side { name, described, host: Some(host.to_string()), runs, ..Side::default() })
}

/// A study by its document, from any machine.
fn side_of(path: &Path, study: &StudyDocument) -> Result<Side, CommandError> {
    let name = if path == Path::new("-") { "standard input".to_string() } else { shown(path) };
    let fact = |key: &str| match study.facts.iter().find(|(known, _)| known == key) {
        Some((_, StudyValue::Text(text))) => Some(text.clone()),
        _ => None,
    };
    let runs = runs_of(study);
    if runs.is_empty() {
        return Err(format!(
            "{name}: the document of a study without its runs; measure it again with this fiord, and --json"
        )
        .into());
    }
    let words = [
        Some(study.study.clone()),
        fact("tag"),
        fact("started").map(|time| format!("of {time}")),
        fact("host").map(|host| format!("on {host}")),
        fact("fiord_version").map(|version| format!("fiord {version}")),
    ];
    let described = words.into_iter().flatten().collect::<Vec<_>>().join(", ");
    Ok(Side { name, described, host: fact("host"), kernel: fact("kernel"), runs })
}

/// The runs of a study; on hosts those of each, after its name.
fn runs_of(study: &StudyDocument) -> Vec<NamedRun> {
    let own = study.table(study_runs::KEY).map(study_runs::read).unwrap_or_default();
    let of_host = |(host, document): &(String, StudyDocument)| {
        let named = |run: NamedRun| NamedRun { name: format!("{host}: {}", run.name), ..run };
        runs_of(document).into_iter().map(named).collect::<Vec<_>>()
    };
    own.into_iter().chain(study.hosts.iter().flat_map(of_host)).collect()
}

/// What one host of a study has found. The error: that there is none, behind the study's name.
fn study_of_host(study: &StudyDocument, host: &str) -> Result<Side, String> {
    let names: Vec<&str> = study.hosts.iter().map(|(name, _)| name.as_str()).collect();
    match study.hosts.iter().find(|(name, _)| name == host) {
        Some((_, own)) => side_of(Path::new(host), own).map_err(|error| error.why),
        None if names.is_empty() => Err("has a study, and no hosts".to_string()),
        None => Err(format!("has no host {}; it has {}", shown(host), names.join(", "))),
    }
}

/// The document of a recorded study on hosts; `None` of anything else.
fn study_on_hosts(stored: &Stored) -> Option<StudyDocument> {
    let study = study::read(&stored.summary.as_ref()?.json).ok()??;
    (!study.hosts.is_empty()).then_some(study)
}

/// Whether a name is that of a file, or standard input. A directory has no report, and may be named like a run: who measures
/// `/mnt/a` calls it by that name.
pub(crate) fn is_file(path: &Path) -> bool {
    path == Path::new("-") || (path.exists() && !path.is_dir())
}

/// What is not a file, in words.
pub(crate) fn no_file(path: &Path) -> &'static str {
    if path.is_dir() { "a directory" } else { "no such file" }
}

/// The run that a name stands for: the newest with this tag, or else by its number or its place from the newest, or with
/// `@HOST` after these the part of a host; `None` if it is none of these.
///
/// # Errors
/// The history cannot be read.
pub(crate) fn named(name: &str) -> Result<Option<RunSelector>, CommandError> {
    let Some(history) = History::open_existing(&keep::place()?)? else { return Ok(name.parse().ok()) };
    let which = |name: &str| -> Result<Option<RunSelector>, CommandError> {
        Ok(history.tagged(name)?.map(RunSelector::Id).or_else(|| name.parse().ok()))
    };
    if let Some(whole) = which(name)? {
        return Ok(Some(whole));
    }
    let Some((run, host)) = name.rsplit_once('@') else { return Ok(None) };
    let Some(id) = which(run)?.map(|run| history.resolve(run)).transpose()?.flatten() else {
        return Ok(None);
    };
    let mut parts = history.list(&Filter { parent: Some(id), ..Filter::default() })?;
    parts.reverse();
    if let Some(part) = parts.iter().find(|part| part.facts.title == host) {
        return Ok(Some(RunSelector::Id(part.id)));
    }
    if let Some(stored) = history.load(RunSelector::Id(id))?
        && let Some(Document::Report(report)) = recorded_document(&stored)?
        && let Some(fate) = fate_of(&report, host)
    {
        return Err(format!("run {id} has no figures of host {host}, which {fate}").into());
    }
    let names: Vec<&str> = parts.iter().map(|part| part.facts.title.as_str()).collect();
    Err(match names.as_slice() {
        [] => format!("run {id} has no hosts; leave out @{host}"),
        names => format!("run {id} has no host {host}; it has {}", names.join(", ")),
    }
    .into())
}

/// What became of a host that has no figures; `None` if it took no part.
fn fate_of(report: &Report, host: &str) -> Option<String> {
    report.absent_hosts.iter().find(|(name, _)| name == host).map(|(_, fate)| fate.clone())
}

/// What is recorded as a document: a run on hosts, as it was printed, and what was imported; `None` of anything else.
pub(crate) fn recorded_document(stored: &Stored) -> Result<Option<Document>, String> {
    match (&stored.summary, &stored.entry.facts.kind) {
        (Some(printed), RunKind::Hosts) => best(&printed.json).map(|report| Some(Document::Report(report))),
        (Some(imported), RunKind::Import) => document(&imported.json).map(Some),
        _ => Ok(None),
    }
}

/// A run or study of the history, by its number, its place from the newest, or its tag.
fn recorded(name: &str) -> Result<Side, CommandError> {
    let unknown = || {
        format!(
            "{name:?}: {}, nor a run in the history, by number (12), place (last, last~1) or tag; `fiord history` lists \
             all runs",
            no_file(Path::new(name))
        )
    };
    let history = History::open_existing(&keep::place()?)?.ok_or_else(unknown)?;
    if let Some((of, host)) = name.rsplit_once('@')
        && let Some(which) = named(of)?
        && let Some(study) = history.load(which)?.as_ref().and_then(study_on_hosts)
    {
        let side = study_of_host(&study, host).map_err(|why| format!("{of} {why}"))?;
        return Ok(Side { name: name.to_string(), ..side });
    }
    let which = named(name)?.ok_or_else(unknown)?;
    let stored = history.load(which)?.ok_or_else(unknown)?;
    let HistoryEntry { id, facts, .. } = &stored.entry;
    let date = time::date(facts.started_ms, facts.utc_offset_s);
    let described = format!("run {id} of {date}, {}", facts.title);
    let side = Side {
        name: name.to_string(),
        described,
        host: Some(facts.host.clone()).filter(|host| !host.is_empty()),
        kernel: facts.kernel.clone(),
        runs: Vec::new(),
    };
    if let Some((_, report)) = &stored.printed {
        return Ok(Side { runs: vec![NamedRun::of_run("", report)?], ..side });
    }
    match recorded_document(&stored)? {
        Some(Document::Report(report)) => {
            // The machines of several are those of the report.
            let is_one = report.hosts.is_empty() && facts.kind == RunKind::Import;
            let runs = vec![NamedRun { name: String::new(), report }];
            let of_one = |fact: Option<String>| fact.filter(|_| is_one);
            return Ok(Side { runs, host: of_one(side.host), kernel: of_one(side.kernel), ..side });
        }
        Some(Document::Study(study)) => {
            let Side { name, described, .. } = side;
            return Ok(Side { name, described, ..side_of(Path::new(&format!("run {id}")), &study)? });
        }
        None => {}
    }
    if let Some(study) = study_on_hosts(&stored) {
        return Ok(Side { runs: runs_of(&study), host: None, kernel: None, ..side });
    }
    let mut entries = history.list(&Filter { parent: Some(*id), ..Filter::default() })?;
    // The oldest first, as they were run.
    entries.reverse();
    let mut runs = Vec::new();
    for entry in entries {
        let run = history.load(RunSelector::Id(entry.id))?;
        let Some((_, report)) = run.and_then(|run| run.printed) else { continue };
        runs.push(NamedRun::of_run(without_round(&entry.facts.title), &report)?);
    }
    match runs.is_empty() {
        true => Err(format!("{name}: the study has no run that was measured").into()),
        false => Ok(Side { runs, ..side }),
    }
}
