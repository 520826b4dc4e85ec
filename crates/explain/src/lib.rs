//! Explains reports of fio and fiord in plain words, with the figures of the run.
//!
//! Invariant: pure; every statement follows from the figures of the report or its findings.

#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)
)]

mod checks;
mod device;
mod direction;
mod entry;
mod findings;
mod job;
pub mod lookup;
mod message;
mod next;
mod noted;
mod paragraph;
pub mod study;
pub mod study_table;
mod terms;
mod words;

use std::fmt::Write;

use fiord_import::{ReadError, Report, ReportFormat};
use fiord_report::Code;
use fiord_report::columns::left_aligned;
use fiord_report::json::Writer;
use fiord_report::table::wrapped;

pub use checks::Checks;
pub use entry::PartExplanation;
pub use findings::SHOWN_MAX as FINDINGS_MAX;
pub use noted::NotedFinding;
use paragraph::paragraph;

/// If there are more jobs than this, the others are only counted.
const JOBS_MAX: usize = 4;
/// The column at which texts begin.
const INDENT: usize = 19;

/// The parts of one job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobExplanation {
    /// Its name.
    pub name: String,
    /// Jobs reported as this one.
    pub member_count: u32,
    /// Its parts, in the order of the report.
    pub entries: Vec<PartExplanation>,
}

/// A report in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// What was read: program, format, date.
    pub source: String,
    /// Each job.
    pub jobs: Vec<JobExplanation>,
    /// Sums of groups.
    pub groups: Vec<PartExplanation>,
    /// The disks.
    pub disks: Vec<PartExplanation>,
    /// Messages of the program.
    pub messages: Vec<String>,
    /// What could not be read, with its place.
    pub damage: Vec<ReadError>,
    /// The lines at which other reports begin.
    pub others: Vec<u32>,
    /// Reasons why a figure may not mean what its reader thinks.
    pub findings: Vec<NotedFinding>,
    /// What they rest on.
    pub checks: Checks,
    /// What to look at next.
    pub next: Vec<String>,
}

/// Explains a report, with these findings and the checks that they come from.
pub fn explain(report: &Report, findings: Vec<NotedFinding>, checks: Checks) -> Explanation {
    let of = |job: &fiord_import::JobFigures| JobExplanation {
        name: report.name_of(job).into_owned(),
        member_count: job.member_count.unwrap_or(1),
        entries: job::entries(report, job),
    };
    let next = next::advice(report, &findings);
    Explanation {
        source: source(report),
        jobs: report.jobs_and_sum().map(of).collect(),
        groups: device::groups(report),
        disks: device::disks(report),
        messages: report.messages.iter().map(|message| message.text.clone()).collect(),
        damage: report.damage.clone(),
        others: report.others.clone(),
        findings,
        checks,
        next,
    }
}

/// How much of the text was read, in sentences: the other reports in it, and what is damaged.
pub fn reading(others: &[u32], damage: &[ReadError]) -> Vec<String> {
    const SHOWN_MAX: usize = 8;
    let more = |count: usize| match count.saturating_sub(SHOWN_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let mut said = Vec::new();
    if !others.is_empty() {
        let shown: Vec<String> = others.iter().take(SHOWN_MAX).map(u32::to_string).collect();
        said.push(format!(
            "This is the last of {} reports in the file; the others begin at line {}{}.",
            others.len() + 1,
            shown.join(", "),
            more(others.len())
        ));
    }
    let line = |why: &ReadError| format!("Line {}, column {}: {}.", why.line, why.column, why.problem);
    said.extend(damage.iter().take(SHOWN_MAX).map(line));
    if damage.len() > SHOWN_MAX {
        said.push(format!("{} more places cannot be read.", damage.len() - SHOWN_MAX));
    }
    said
}

fn source(report: &Report) -> String {
    let format = match report.format {
        ReportFormat::Normal => "normal text; its figures are rounded".to_string(),
        ReportFormat::Terse(version) => {
            format!("terse lines of version {version}; times are in whole microseconds")
        }
        ReportFormat::Json => "JSON".to_string(),
        ReportFormat::JsonPlus => "JSON+".to_string(),
    };
    let program = report.version.as_deref().unwrap_or("fio");
    let date = report.date.as_ref().map_or_else(String::new, |date| format!(", {date}"));
    let hosts = match report.hosts.len() {
        0 | 1 => String::new(),
        count => format!(", {count} hosts"),
    };
    let last = match report.superseded {
        0 => String::new(),
        1 => "; an entry of an earlier status report is left out".to_string(),
        count => format!("; {count} entries of earlier status reports are left out"),
    };
    format!("{program}{date}{hosts} ({format}{last})")
}

impl Explanation {
    /// As text of at most this many columns.
    pub fn text(&self, width: usize) -> String {
        let mut out = String::new();
        paragraph(&mut out, &format!("Report of {}", self.source), width);
        for sentence in reading(&self.others, &self.damage) {
            paragraph(&mut out, &sentence, width);
        }
        for job in self.jobs.iter().take(JOBS_MAX) {
            let members = match job.member_count {
                1 => String::new(),
                count => format!(", {count} jobs reported as one"),
            };
            let _ = writeln!(out, "\nJob {}{members}", job.name);
            job.entries.iter().for_each(|entry| labelled(&mut out, entry, width));
        }
        if let Some(others) = self.jobs.len().checked_sub(JOBS_MAX).filter(|others| *others > 0) {
            let text = format!("{others} more jobs have the same parts; --json explains them all.");
            out.push('\n');
            paragraph(&mut out, &text, width);
        }
        for (title, entries) in
            [("All jobs together", &self.groups), ("Disks, as the kernel counted", &self.disks)]
        {
            if !entries.is_empty() {
                let _ = writeln!(out, "\n{title}");
                entries.iter().for_each(|entry| labelled(&mut out, entry, width));
            }
        }
        if !self.messages.is_empty() {
            out.push_str("\nMessages\n");
            self.messages.iter().for_each(|message| paragraph(&mut out, &format!("  {message}"), width));
        }
        findings::text(&mut out, &self.findings, &self.checks, &self.next, width);
        out
    }

    /// As a JSON document.
    pub fn json(&self) -> String {
        Writer::document(|json| {
            json.string("source", &self.source);
            json.list("jobs", |json| {
                for job in &self.jobs {
                    json.item(|json| {
                        json.string("name", &job.name);
                        json.integer("member_count", job.member_count);
                        entries(json, "parts", &job.entries);
                    });
                }
            });
            entries(json, "groups", &self.groups);
            entries(json, "disks", &self.disks);
            json.strings("messages", &self.messages);
            json.list("damage", |json| {
                for ReadError { line, column, problem } in &self.damage {
                    json.item(|json| {
                        json.integer("line", line);
                        json.integer("column", column);
                        json.string("problem", problem);
                    });
                }
            });
            json.list("other_reports", |json| {
                self.others.iter().for_each(|line| json.item(|json| json.integer("line", line)));
            });
            findings::write(json, &self.findings);
            self.checks.write(json);
            json.strings("next", &self.next);
        })
    }
}

fn entries(json: &mut Writer, key: &str, entries: &[PartExplanation]) {
    json.list(key, |json| {
        for PartExplanation { part, label, line, text } in entries {
            json.item(|json| {
                json.string("part", part);
                json.string("label", label);
                match line {
                    Some(line) => json.integer("line", line),
                    None => json.null("line"),
                }
                json.string("text", text);
            });
        }
    });
}

/// A label, and the text beside it.
fn labelled(out: &mut String, entry: &PartExplanation, width: usize) {
    let lines = wrapped(&entry.text, width.saturating_sub(INDENT).max(20));
    for (index, line) in lines.iter().enumerate() {
        let label = if index == 0 { entry.label.as_str() } else { "" };
        let _ = writeln!(out, "  {}{line}", left_aligned(label, INDENT - 2));
    }
}

/// What a finding's code means, how to see it without fiord, and what to do about it.
pub fn code(code: Code) -> lookup::Meaning {
    let name = format!("{} ({})", code.name(), code.severity().name());
    let here = vec![format!("To see it yourself: {}", code.see()), format!("To do: {}", code.fix())];
    lookup::Meaning { name, meaning: code.meaning(), here }
}

impl lookup::Meaning {
    /// As text of at most this many columns.
    pub fn text(&self, width: usize) -> String {
        let mut out = format!("{}\n", self.name);
        let texts = [&self.meaning].into_iter().chain(&self.here);
        texts.for_each(|text| paragraph(&mut out, &format!("  {text}"), width));
        out
    }

    /// As a JSON document.
    pub fn json(&self) -> String {
        Writer::document(|json| {
            json.string("name", &self.name);
            json.string("meaning", &self.meaning);
            json.strings("here", &self.here);
        })
    }
}
