//! Explains a study: its conclusion, and its figures in words.
//!
//! Invariant: every figure is one of the study's document.

use std::fmt::Write;

use fiord_import::{StudyDocument, StudyRows, StudyValue};
use fiord_report::json::Writer;

use crate::checks::Checks;
use crate::findings;
use crate::next;
use crate::noted::NotedFinding;
use crate::paragraph::paragraph;
use crate::study_table::{Key, Unit};
use crate::words;

/// The columns that tell what a row is of end before the first of these.
const FIRST_FIGURES: [&str; 9] = [
    "direction",
    "iops",
    "read_iops",
    "write_iops",
    "rate_iops",
    "verdict",
    "measured_ns",
    "ns_per_io",
    "mib_per_s",
];

/// Directions that lead keys, and how their figures are introduced.
const DIRECTIONS: [(&str, &str); 2] = [("read ", "Reads: "), ("write ", "Writes: ")];

/// What something in a study means, in sentences.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StudyPart {
    /// What it is about: the row of the table.
    pub of: String,
    /// Its figures.
    pub text: String,
}

/// A study in words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StudyExplanation {
    /// Which study it is.
    pub source: String,
    /// Its conclusion; empty if nothing was measured.
    pub conclusion: String,
    /// Why it is incomplete; empty if it is complete.
    pub error: String,
    /// Each row of its table.
    pub rows: Vec<StudyPart>,
    /// How far its rounds agree.
    pub spread: Vec<StudyPart>,
    /// Reasons why a figure may not mean what its reader thinks.
    pub findings: Vec<NotedFinding>,
    /// What to look at next.
    pub next: Vec<String>,
}

/// Explains a study. `source` says which one it is, and `runs` how to name one of its runs.
pub fn explain_study(study: &StudyDocument, source: String, runs: &[String]) -> StudyExplanation {
    let noted: Vec<NotedFinding> = study.findings.iter().map(NotedFinding::from).collect();
    let mut next = next::of_findings(&noted);
    if let [first, ..] = runs {
        next.push(format!("`fiord explain {first}` explains one of its runs in full."));
    }
    StudyExplanation {
        source,
        conclusion: study.conclusion.clone().unwrap_or_default(),
        error: study.error.clone().unwrap_or_default(),
        rows: study.table("rows").map(rows).unwrap_or_default(),
        spread: study.table("repeats").map(spread).unwrap_or_default(),
        findings: noted,
        next,
    }
}

/// Each row in words.
fn rows(table: &StudyRows) -> Vec<StudyPart> {
    let keys: Vec<(&str, Key)> = table.columns.iter().map(|key| (key.as_str(), Key::of(key))).collect();
    let first = table.columns.iter().position(|key| FIRST_FIGURES.contains(&key.as_str()));
    // A row is named by something, even by its first figure.
    let named = first.unwrap_or(1).max(1);
    let of_row = |row: &Vec<StudyValue>| {
        let known = || keys.iter().zip(row).filter(|(_, value)| **value != StudyValue::None);
        let name = known().take_while(|((key, _), _)| table.columns[..named].iter().any(|one| one == key));
        let name: Vec<String> = name
            .map(|((_, key), value)| match value {
                StudyValue::Text(text) => text.clone(),
                other => format!("{} {}", key.stem, key.shown(other)).trim_start().to_string(),
            })
            .collect();
        let rest = known().filter(|((key, _), _)| !table.columns[..named].iter().any(|one| one == key));
        StudyPart { of: name.join(", "), text: sentences(rest.map(|((_, key), value)| (key, value))) }
    };
    table.rows.iter().map(of_row).collect()
}

/// Figures as sentences, those of each direction in one of their own.
fn sentences<'v>(figures: impl Iterator<Item = (&'v Key, &'v StudyValue)>) -> String {
    let mut sentences: Vec<(&str, Vec<String>)> = Vec::new();
    for (key, value) in figures {
        let direction = DIRECTIONS.iter().find(|(lead, _)| key.stem.starts_with(lead));
        let direction = direction.or(DIRECTIONS.iter().find(|(lead, _)| key.stem == lead.trim_end()));
        let (lead, title) = direction.copied().unwrap_or(("", ""));
        let stem = key.stem.strip_prefix(lead).unwrap_or_default();
        let phrase = phrase(stem, key, value);
        match sentences.iter_mut().find(|(known, _)| *known == title) {
            Some((_, phrases)) => phrases.push(phrase),
            None => sentences.push((title, vec![phrase])),
        }
    }
    let sentence = |(title, phrases): &(&str, Vec<String>)| format!("{title}{}.", phrases.join(", "));
    sentences.iter().map(sentence).collect::<Vec<_>>().join(" ")
}

/// A figure in words: `half took at most 1.2ms`.
fn phrase(stem: &str, key: &Key, value: &StudyValue) -> String {
    let shown = key.shown(value);
    let percentile = stem.strip_prefix('p').and_then(|digits| digits.parse::<f64>().ok());
    match (stem, percentile) {
        ("IOPS", _) => format!("{shown} I/Os per second"),
        ("", _) if key.unit == Unit::MibPerS => shown,
        ("mean", _) => format!("on average {shown} each"),
        ("max", _) => format!("the longest {shown}"),
        (_, Some(50.0)) => format!("half took at most {shown}"),
        (_, Some(percentile)) => format!("{percentile} % at most {shown}"),
        _ => format!("{stem} {shown}"),
    }
}

/// For the first figure of each row how far its rounds lie apart.
fn spread(table: &StudyRows) -> Vec<StudyPart> {
    let at = |row: &[StudyValue], key: &str| {
        let column = table.columns.iter().position(|column| column == key);
        column.and_then(|column| row.get(column).cloned()).unwrap_or_default()
    };
    let text = |value: StudyValue| match value {
        StudyValue::Text(text) => text,
        _ => String::new(),
    };
    let mut parts: Vec<StudyPart> = Vec::new();
    for row in &table.rows {
        let of = text(at(row, "of"));
        let StudyValue::List(runs) = at(row, "runs") else { continue };
        if runs.len() < 2 || parts.last().is_some_and(|last| last.of == of) {
            continue;
        }
        let figure = text(at(row, "figure"));
        let key = Key::of(&figure);
        let shown = |of: &str| key.shown(&at(row, of));
        let mut sentence = format!(
            "{}: the median of {} is {}, from {} to {}.",
            if key.stem.is_empty() { "throughput" } else { &key.stem },
            words::number_of(runs.len() as u64, "run"),
            shown("median"),
            shown("lowest"),
            shown("highest")
        );
        if at(row, "interval_low") != StudyValue::None {
            let (low, high) = (shown("interval_low"), shown("interval_high"));
            let _ = write!(sentence, " With 95 % confidence the mean is between {low} and {high}.");
        }
        parts.push(StudyPart { of, text: sentence });
    }
    parts
}

impl StudyExplanation {
    /// As text of at most this many columns.
    pub fn text(&self, width: usize) -> String {
        let mut out = String::new();
        paragraph(&mut out, &self.source, width);
        out.push_str("\nConclusion\n");
        let conclusion = if self.conclusion.is_empty() { "Nothing was concluded." } else { &self.conclusion };
        paragraph(&mut out, &format!("  {conclusion}"), width);
        if !self.error.is_empty() {
            paragraph(&mut out, &format!("  It is incomplete: {}.", self.error), width);
        }
        for (title, parts) in [("Figures", &self.rows), ("How far its rounds agree", &self.spread)] {
            if !parts.is_empty() {
                let _ = writeln!(out, "\n{title}");
            }
            for StudyPart { of, text } in parts {
                paragraph(&mut out, &format!("  {of}"), width);
                paragraph(&mut out, &format!("    {text}"), width);
            }
        }
        findings::text(&mut out, &self.findings, &Checks::default(), &self.next, width);
        out
    }

    /// As a JSON document.
    pub fn json(&self) -> String {
        let parts = |json: &mut Writer, key: &str, parts: &[StudyPart]| {
            json.list(key, |json| {
                for StudyPart { of, text } in parts {
                    json.item(|json| {
                        json.string("of", of);
                        json.string("text", text);
                    });
                }
            });
        };
        Writer::document(|json| {
            json.string("source", &self.source);
            json.string("conclusion", &self.conclusion);
            json.string("error", &self.error);
            parts(json, "rows", &self.rows);
            parts(json, "spread", &self.spread);
            findings::write(json, &self.findings);
            json.strings("next", &self.next);
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests panic when something is wrong")]

    use super::*;

    fn explained(text: &str) -> StudyExplanation {
        explain_study(
            &fiord_import::study::read(text).unwrap().unwrap(),
            "Study 1".to_string(),
            &["2".to_string()],
        )
    }

    #[test]
    fn a_row_is_named_by_what_was_run_and_says_its_figures() {
        let of = |rows: &str| {
            let all = explained(&format!("{{ \"study\" : \"x\", \"rows\" : [ {rows} ] }}")).rows;
            (all[0].of.clone(), all[0].text.clone())
        };
        let (name, text) =
            of(r#"{ "workload" : "random read", "iops" : 84173, "mib_per_s" : 328.8, "mean_ns" : 383000,
            "p50_ns" : 320000, "p99_9_ns" : 1200000, "latency_of" : "read" }"#);
        assert_eq!(name, "random read");
        assert_eq!(
            text,
            "84,173 I/Os per second, 328.8 MiB/s, on average 383us each, half took at most 320us, 99.9 % at most 1.2ms, \
             latency of read."
        );
        let (name, text) = of(r#"{ "test" : "4k randrw", "depth" : 32, "read_iops" : 10, "write_iops" : 20,
            "read_mib_per_s" : 1.5, "write_mib_per_s" : null, "read_p99_ns" : 5 }"#);
        assert_eq!(name, "4k randrw, depth 32");
        assert_eq!(
            text,
            "Reads: 10 I/Os per second, 1.5 MiB/s, 99 % at most 5ns. Writes: 20 I/Os per second."
        );
        let (name, text) =
            of(r#"{ "figure" : "p99 of fdatasync", "verdict" : "PASS", "measured_ns" : 2000000,
            "measured_per_s" : null, "pass_limit_ns" : 5000000 }"#);
        assert_eq!(
            (name.as_str(), text.as_str()),
            ("p99 of fdatasync", "verdict PASS, measured 2ms, pass limit 5ms.")
        );
    }

    #[test]
    fn the_spread_is_that_of_the_first_figure_of_each_row() {
        let all = explained(
            r#"{ "study" : "quick", "repeats" : [
            { "of" : "a", "figure" : "iops", "runs" : [ 10, 12, 14 ], "median" : 12, "lowest" : 10, "highest" : 14,
              "interval_low" : 7.5, "interval_high" : 16.9 },
            { "of" : "a", "figure" : "p99_ns", "runs" : [ 1, 2, 3 ], "median" : 2, "lowest" : 1, "highest" : 3 } ] }"#,
        );
        assert_eq!(all.spread.len(), 1);
        assert_eq!(
            all.spread[0].text,
            "IOPS: the median of 3 runs is 12, from 10 to 14. With 95 % confidence the mean is between 7.5 and 16.9."
        );
        let text = all.text(60);
        assert!(text.lines().all(|line| line.chars().count() <= 60), "{text}");
        assert!(text.contains("Nothing was concluded.") && text.contains("`fiord explain 2`"), "{text}");
    }
}
