//! The page of a study, from its document.
//!
//! Invariant: figures are those of the document; what the history adds is when and how the study was run, and its runs.

use fiord_explain::study_table::{ShownTable, shown};
use fiord_import::{ReportedFinding, StudyDocument, StudyRows};
use fiord_page::study_page::{StudyFinding, StudyPage, StudyPart, StudyTable};
use fiord_stats::OrderBy;
use fiord_store::{HistoryEntry, Stored};

use super::facts::facts;
use super::{qualify, sweep};

/// The study whose rounds and rows have pictures of their own.
const QUALIFY: &str = "qualify";

/// Tables that are not for people: the stacks of a profile are drawn on its own page, the runs are for `fiord compare`.
const LEFT_OUT: [&str; 2] = ["stacks", "runs"];

/// Facts of a study's document that the history has as well.
const RECORDED: [&str; 6] = ["fiord_version", "host", "kernel", "started", "command", "tag"];

/// Titles and captions of tables, those to be read first at the beginning; others are called by their key.
const TITLES: [(&str, &str, &str); 13] = [
    ("targets", "Targets", "What was concluded about each target."),
    ("comparison", "Comparison", "The figures of the targets beside each other, and whether they differ."),
    ("tests", "Tests", "How each test ended: after how many rounds, and how steady its last five were."),
    ("rows", "Figures", "What each run did."),
    ("rounds", "Rounds", "The figures that are followed from round to round."),
    ("states", "States", "The states of the recovery tests, in order."),
    ("variants", "Variants", "The variants of the job, and where the time of each went."),
    ("knees", "Knees", "Where throughput stops rising."),
    ("details", "Details", "More figures of the same runs."),
    ("repeats", "How far the rounds agree", "The figures of each round, and how far they are apart."),
    ("steady_parts", "Steady parts", "From when on throughput was steady, and the figures from there."),
    ("jobs", "How the runs do their I/O", "The engine, the depth and the access of each job."),
    ("devices", "Devices", "The devices below the files."),
];

/// The page of a study in a file.
pub(super) fn of_file(name: &str, study: &StudyDocument) -> StudyPage {
    page(format!("{}: {name}", study.study), study)
}

/// The page of a recorded study, with these runs.
pub(super) fn of_history(stored: &Stored, study: &StudyDocument, runs: &[HistoryEntry]) -> StudyPage {
    let HistoryEntry { id, facts: of_study, .. } = &stored.entry;
    let mut study = study.clone();
    study.facts.retain(|(key, _)| !RECORDED.contains(&key.as_str()));
    let mut page = page(format!("Study {id}: {}", of_study.title), &study);
    let recorded_facts = facts(stored);
    // The history calls it targets.
    page.facts
        .retain(|(name, text)| name != "Target" || recorded_facts.iter().all(|(_, known)| known != text));
    page.facts.splice(0..0, recorded_facts);
    page.parts.extend(recorded(runs));
    page.repeat.push(("The command:".to_string(), of_study.command.clone()));
    let printed = stored.summary.as_ref().map(|summary| summary.text.clone());
    let heading = stored.heading.clone().unwrap_or_default();
    page.repeat.extend(printed.map(|text| ("What it printed:".to_string(), heading + &text)));
    page
}

fn page(title: String, study: &StudyDocument) -> StudyPage {
    let mut conclusion: Vec<String> = study.conclusion.iter().cloned().collect();
    conclusion.extend(study.error.as_ref().map(|why| format!("The study is incomplete: {why}.")));
    let rank =
        |table: &&StudyRows| TITLES.iter().position(|(key, ..)| *key == table.key).unwrap_or(TITLES.len());
    let mut tables: Vec<&StudyRows> =
        study.tables.iter().filter(|table| !LEFT_OUT.contains(&table.key.as_str())).collect();
    tables.order_by_key(rank);
    StudyPage {
        study: study.study.clone(),
        title,
        conclusion: conclusion.join(" "),
        findings: study.findings.iter().map(finding).collect(),
        facts: facts_of(study),
        parts: tables.into_iter().filter_map(|table| part(&study.study, table)).collect(),
        repeat: Vec::new(),
    }
}

/// The facts of the document, as a table of one row would show them.
fn facts_of(study: &StudyDocument) -> Vec<(String, String)> {
    let (columns, row) = study.facts.iter().cloned().unzip();
    let ShownTable { columns, rows } = shown(&StudyRows { key: String::new(), columns, rows: vec![row] });
    let texts = rows.into_iter().flatten().map(|(text, _)| text);
    columns.into_iter().map(|title| capitalised(&title)).zip(texts).collect()
}

fn finding(finding: &ReportedFinding) -> StudyFinding {
    let ReportedFinding { code, severity, subject, sentence, remedy } = finding.clone();
    StudyFinding { code, severity, subject, sentence, remedy }
}

/// A table with its charts; nothing if there is nothing in it.
fn part(study: &str, table: &StudyRows) -> Option<StudyPart> {
    let known = TITLES.iter().find(|(key, ..)| *key == table.key);
    let title =
        known.map_or_else(|| capitalised(&table.key.replace('_', " ")), |(_, title, _)| (*title).to_string());
    // A test that did not become steady has rows without figures.
    let with_figures = (study == QUALIFY && table.key == "rows").then(|| qualify::with_figures(table));
    let ShownTable { columns, rows } = shown(with_figures.as_ref().unwrap_or(table));
    let caption = known.map_or_else(|| title.clone(), |(_, _, caption)| (*caption).to_string());
    let columns = columns.iter().map(|title| capitalised(title)).collect();
    let (charts, mut tables) = match (study, table.key.as_str()) {
        ("sweep", "rows") => (sweep::charts(table), Vec::new()),
        (QUALIFY, "rows") => qualify::by_mix(table),
        (QUALIFY, "rounds") => (qualify::charts_of_rounds(table), Vec::new()),
        _ => Default::default(),
    };
    if !rows.is_empty() {
        tables.push(StudyTable { caption, columns, rows, ..StudyTable::default() });
    }
    let is_empty = charts.is_empty() && tables.is_empty();
    let id = table.key.replace('_', "-");
    (!is_empty).then(|| StudyPart { id, title, charts, tables, ..StudyPart::default() })
}

/// The runs of a recorded study, and how to see more of each; nothing without runs.
fn recorded(runs: &[HistoryEntry]) -> Option<StudyPart> {
    let row = |run: &HistoryEntry| {
        let id = run.id;
        vec![
            (run.facts.title.clone(), None),
            (format!("fiord report {id}"), None),
            (format!("fiord explain {id}"), None),
        ]
    };
    (!runs.is_empty()).then(|| StudyPart {
        id: "runs".to_string(),
        title: "Runs".to_string(),
        tables: vec![StudyTable {
            caption: "The runs in the history, and the commands that show one on a page or in words."
                .to_string(),
            columns: ["Run", "Page", "Words"].map(String::from).to_vec(),
            // The history has the newest first.
            rows: runs.iter().rev().map(row).collect(),
            ..StudyTable::default()
        }],
        ..StudyPart::default()
    })
}

fn capitalised(text: &str) -> String {
    let (first, rest) = text.split_at(text.chars().next().map_or(0, char::len_utf8));
    first.to_uppercase() + rest
}
