//! `fiord history import`: the reports and studies of other machines, and other histories.
//!
//! Invariant: a document is recorded as it is, but for secrets among its options; what it does not say is not made up.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::UNIX_EPOCH;

use clap::Args;
use fiord_import::{DirectionName, Report, StudyDocument, StudyValue, with_values};
use fiord_options::masked;
use fiord_report::Severity;
use fiord_report::json::Writer;
use fiord_report::path::shown;
use fiord_report::time;
use fiord_stats::Capped;
use fiord_store::{Conclusion, Draft, Headline, History, Imported, RunFacts, RunKind, Source, check_tag};
use fiord_sys::clock;

use crate::arguments::{self, CommandError};
use crate::keep;
use crate::results::{self, Document};

/// How every SQLite database begins.
const DATABASE: &[u8] = b"SQLite format 3\0";

#[derive(Args)]
pub(super) struct Import {
    /// Reports of fio or fiord in any format, documents of studies, or
    /// histories (history.db, with the history.db-wal beside it);
    /// - for standard input
    #[arg(value_name = "FILE", required = true, verbatim_doc_comment)]
    files: Vec<PathBuf>,
    /// The machine of the reports that do not name theirs
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Import {
    pub(super) fn run(&self) -> Result<ExitCode, CommandError> {
        let mut sources = Vec::new();
        for path in &self.files {
            sources.push(match is_database(path) {
                true => Source::History(path),
                false => Source::Document(Box::new(self.draft(path)?)),
            });
        }
        let imported = History::open(&keep::place()?)?.import(&sources)?;
        let files = || self.files.iter().map(shown).zip(&imported);
        if self.json {
            return arguments::print(Writer::document(|json| {
                json.list("imported", |json| {
                    for (file, Imported { ids, known }) in files() {
                        json.item(|json| {
                            json.string("file", &file);
                            json.numbers("runs", ids.iter().map(|id| *id as f64));
                            json.integer("known", *known);
                        });
                    }
                });
            }));
        }
        arguments::print(files().map(|(file, imported)| line(&file, imported)).collect::<String>())
    }

    /// The run that a document becomes.
    fn draft(&self, path: &Path) -> Result<Draft<'static>, String> {
        let (place, text) = results::text_of(path)?;
        let document = results::document(&text).map_err(|why| format!("{place}:{why}"))?;
        let text = with_values(&text, |key, value| {
            let shown = masked::of_name(key, value);
            (shown != value).then_some(shown)
        });
        let (facts, headline) = match &document {
            Document::Report(report) => {
                if let Some(damage) = report.damage.first() {
                    return Err(format!("{place}:{damage}"));
                }
                (of_report(path, report), headline(report))
            }
            Document::Study(study) => (of_study(path, study), Headline::default()),
        };
        let host = Some(facts.host).filter(|host| !host.is_empty()).or_else(|| self.host.clone());
        let facts = RunFacts {
            host: host.unwrap_or_default(),
            command: keep::command_of(&["history".as_ref(), "import".as_ref(), path.as_os_str()]),
            ..facts
        };
        let summary = Some(Conclusion { json: text, text: String::new(), headline });
        Ok(Draft { facts, printed: None, heading: None, summary })
    }
}

/// `a.json: run 12`, `other.db: 40 runs, 12 to 71, and 3 that were there already`.
fn line(file: &str, Imported { ids, known }: &Imported) -> String {
    let added = match ids.as_slice() {
        [] => None,
        [only] => Some(format!("run {only}")),
        [first, .., last] => Some(format!("{} runs, {first} to {last}", ids.len())),
    };
    let known = match known {
        0 => None,
        1 => Some("1 that was there already".to_string()),
        more => Some(format!("{more} that were there already")),
    };
    let words: Vec<String> = [added, known].into_iter().flatten().collect();
    match words.is_empty() {
        true => format!("{file}: no runs\n"),
        false => format!("{file}: {}\n", words.join(", and ")),
    }
}

/// Whether a file is a database. What cannot be read is not: reading it as a report says why.
fn is_database(path: &Path) -> bool {
    let mut start = [0; DATABASE.len()];
    // Standard input, and what is not a file, could be read only once.
    path.is_file()
        && File::open(path).and_then(|mut file| file.read_exact(&mut start)).is_ok()
        && start == DATABASE
}

fn blank(title: String) -> RunFacts {
    RunFacts {
        kind: RunKind::Import,
        parent: None,
        title,
        command: String::new(),
        targets: Vec::new(),
        host: String::new(),
        fiord_version: String::new(),
        started_ms: 0,
        utc_offset_s: 0,
        elapsed_ms: 0,
        exit_status: None,
        tag: None,
        kernel: None,
    }
}

fn of_report(path: &Path, report: &Report) -> RunFacts {
    let (made_ms, utc_offset_s) = when(path, report);
    let elapsed_ms =
        report.jobs.iter().filter_map(|job| job.elapsed_s).max().unwrap_or(0).saturating_mul(1000);
    RunFacts {
        host: match report.hosts.as_slice() {
            [only] => only.clone(),
            _ => String::new(),
        },
        fiord_version: report.fiord_version.clone().unwrap_or_default(),
        started_ms: made_ms.saturating_sub(elapsed_ms),
        utc_offset_s,
        elapsed_ms,
        ..blank(keep::title_of(report.jobs.iter().map(|job| job.name.clone())))
    }
}

/// When a report was made, and the offset from UTC there. Text has local time alone, of which no offset is known, and terse lines
/// have none: theirs is that of the file.
fn when(path: &Path, report: &Report) -> (u64, i32) {
    const FURTHEST_S: i32 = 14 * 3600;
    let printed_ms = report.date.as_deref().and_then(time::read).map(|(ms, _)| ms);
    match (report.timestamp_ms, printed_ms) {
        (Some(utc_ms), Some(local_ms)) => {
            let offset_s = i64::capped(local_ms / 1000) - i64::capped(utc_ms / 1000);
            (
                utc_ms,
                i32::try_from(offset_s).ok().filter(|offset_s| offset_s.abs() <= FURTHEST_S).unwrap_or(0),
            )
        }
        (Some(utc_ms), None) => (utc_ms, 0),
        (None, Some(local_ms)) => (local_ms, 0),
        (None, None) => {
            let modified = std::fs::metadata(path).and_then(|file| file.modified()).ok();
            let ms =
                modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok()).map(|since| since.as_millis());
            (ms.map_or_else(clock::realtime_ms, u64::capped), clock::utc_offset_s())
        }
    }
}

fn of_study(path: &Path, study: &StudyDocument) -> RunFacts {
    let fact = |key: &str| match study.facts.iter().find(|(known, _)| known == key) {
        Some((_, StudyValue::Text(text))) => Some(text.clone()),
        _ => None,
    };
    let started = fact("started").as_deref().and_then(time::read);
    let (started_ms, utc_offset_s) = match started {
        Some((ms, offset_s)) => (ms, offset_s.unwrap_or(0)),
        None => when(path, &Report::default()),
    };
    RunFacts {
        host: fact("host").unwrap_or_default(),
        fiord_version: fact("fiord_version").unwrap_or_default(),
        started_ms,
        utc_offset_s,
        tag: fact("tag").filter(|tag| check_tag(tag).is_ok()),
        kernel: fact("kernel"),
        ..blank(match fact("target") {
            Some(target) => keep::title_of_study(&study.study, &target),
            None => study.study.clone(),
        })
    }
}

fn headline(report: &Report) -> Headline {
    let totals = report.totals(&DirectionName::ALL).unwrap_or_default();
    Headline {
        ios_per_s: totals.ios_per_s,
        bytes_per_s: totals.bytes_per_s,
        latency_p99_ns: totals.latency.and_then(|latency| latency.percentile_ns(99.0)),
        latency_of: None,
        is_void: report.findings.iter().any(|finding| finding.severity == Severity::Void.name()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_imported_is_said_in_a_line() {
        let of = |ids: &[i64], known| line("a", &Imported { ids: ids.to_vec(), known });
        assert_eq!(of(&[7], 0), "a: run 7\n");
        assert_eq!(of(&[7, 8, 12], 2), "a: 3 runs, 7 to 12, and 2 that were there already\n");
        assert_eq!(of(&[], 1), "a: 1 that was there already\n");
        assert_eq!(of(&[], 0), "a: no runs\n");
    }

    #[test]
    fn the_time_of_json_has_an_offset() {
        let at = |date: Option<&str>, timestamp_ms| {
            let date = date.map(str::to_string);
            when(Path::new("-"), &Report { date, timestamp_ms, ..Report::default() })
        };
        let noon = Some("Sat Nov 21 12:00:00 2026");
        assert_eq!(at(noon, Some(1_795_258_800_500)), (1_795_258_800_500, 3600));
        assert_eq!(at(noon, Some(0)), (0, 0));
        assert_eq!(at(noon, None), (1_795_262_400_000, 0));
    }
}
