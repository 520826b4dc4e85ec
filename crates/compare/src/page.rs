//! A comparison as text for people, Markdown, JSON, CSV and JUnit's XML.
//!
//! Invariant: every form has the same figures; text and Markdown leave out only what the table has no room for.

use std::fmt::Write;

use fiord_report::json::Writer;
use fiord_report::table::{Cell, Column, Table, wrapped};

use fiord_svg::escaped;

use crate::compared::{Change, ComparedFigure, Comparison, Interval, Verdict};
use crate::figure::Measure;
use crate::outcome::Decision;
use crate::sentence::sentences;

/// Titles of the columns of sides.
const LETTERS: [&str; 26] = [
    "A", "B", "C", "D", "E", "F", "G", "H", "I", "J", "K", "L", "M", "N", "O", "P", "Q", "R", "S", "T", "U",
    "V", "W", "X", "Y", "Z",
];

/// The most results that can be compared.
pub const SIDES_MAX: usize = LETTERS.len();

/// Up to this many results, each has a column of its own.
const COLUMNS_MAX: usize = 3;

/// Title of the column of intervals.
const INTERVAL: &str = "INTERVAL, %";

/// With more rows than this, the text has the main figures only.
const ROWS_IN_FULL: usize = 3;

impl Comparison {
    /// A sentence for each result but the first.
    pub fn sentences(&self) -> Vec<String> {
        sentences(self)
    }

    /// The worst outcome of the conditions; `None` without any.
    pub fn decision(&self) -> Option<Decision> {
        self.outcomes.iter().map(|outcome| outcome.decision).max()
    }

    /// For people: which result is which, the table, what it means, the sentences, and what became of the conditions.
    pub fn text(&self, width: usize) -> String {
        let mut text = self.legend(width);
        let table = self.table(width);
        if !table.is_empty() {
            text += &format!("\n{table}");
        }
        for sentence in &self.sentences() {
            text += "\n";
            text += &(wrapped(sentence, width).join("\n") + "\n");
        }
        if !self.outcomes.is_empty() {
            text += "\n";
        }
        for outcome in &self.outcomes {
            let line = format!("{}: {} ({})", outcome.decision.word(), outcome.condition, outcome.why);
            text += &(wrapped(&line, width).join("\n") + "\n");
        }
        text
    }

    /// The table and the note on how to read it.
    pub fn table(&self, width: usize) -> String {
        let table = self.shown();
        if table.rows.is_empty() {
            return String::new();
        }
        let mut text = table.text(width);
        let note = self.note();
        if !note.is_empty() {
            text += &(wrapped(&note, width).join("\n") + "\n");
        }
        text
    }

    /// The letter, name and description of each result.
    pub fn legend(&self, width: usize) -> String {
        let line = |(letter, (name, described)): (&&str, &(String, String))| {
            let text = if described.is_empty() { name.clone() } else { format!("{name}: {described}") };
            wrapped(&text, width.saturating_sub(3))
                .iter()
                .enumerate()
                .map(
                    |(number, line)| {
                        if number == 0 { format!("{letter}  {line}\n") } else { format!("   {line}\n") }
                    },
                )
                .collect::<String>()
        };
        LETTERS.iter().zip(&self.sides).map(line).collect()
    }

    /// The table in Markdown, the sentences, and what became of the conditions.
    pub fn markdown(&self) -> String {
        let mut text = String::new();
        for (letter, (name, described)) in LETTERS.iter().zip(&self.sides) {
            let described = if described.is_empty() { String::new() } else { format!(": {described}") };
            let _ = writeln!(text, "- **{letter}** `{name}`{described}");
        }
        let _ = write!(text, "\n{}", self.shown().markdown());
        let note = self.note();
        if !note.is_empty() {
            let _ = write!(text, "\n{note}\n");
        }
        self.sentences().iter().for_each(|sentence| {
            let _ = write!(text, "\n{sentence}\n");
        });
        if !self.outcomes.is_empty() {
            text.push('\n');
        }
        for outcome in &self.outcomes {
            let _ =
                writeln!(text, "- {}: `{}` ({})", outcome.decision.word(), outcome.condition, outcome.why);
        }
        text
    }

    /// One document.
    pub fn json(&self) -> String {
        Writer::document(|json| {
            json.list("results", |json| {
                for (letter, (name, described)) in LETTERS.iter().zip(&self.sides) {
                    json.item(|json| {
                        json.string("letter", letter);
                        json.string("name", name);
                        json.string("description", described);
                    });
                }
            });
            self.full().write_json(json, "rows");
            json.strings("sentences", &self.sentences());
            json.list("conditions", |json| {
                for outcome in &self.outcomes {
                    json.item(|json| {
                        json.string("condition", &outcome.condition);
                        json.string("decision", outcome.decision.word());
                        json.string("why", &outcome.why);
                    });
                }
            });
        })
    }

    /// JUnit's XML: a test case for each condition; without conditions one for each sentence.
    pub fn junit(&self) -> String {
        let count =
            |decision: Decision| self.outcomes.iter().filter(|outcome| outcome.decision == decision).count();
        let sentences = self.sentences();
        let tests = if self.outcomes.is_empty() { sentences.len() } else { self.outcomes.len() };
        let mut cases = String::new();
        for outcome in &self.outcomes {
            let (name, why) = (escaped(&outcome.condition), escaped(&outcome.why));
            let body = match outcome.decision {
                Decision::Clear => format!("<system-out>{why}</system-out>"),
                Decision::Undecided => format!("<skipped message=\"{why}\"/>"),
                Decision::Holds => format!("<failure message=\"{why}\" type=\"fail-if\">{why}</failure>"),
            };
            let _ = writeln!(
                cases,
                "    <testcase classname=\"fiord.compare\" name=\"{name}\">{body}</testcase>"
            );
        }
        if self.outcomes.is_empty() {
            for ((name, _), sentence) in self.sides.iter().skip(1).zip(&sentences) {
                let (name, sentence) = (escaped(name), escaped(sentence));
                let _ = writeln!(
                    cases,
                    "    <testcase classname=\"fiord.compare\" name=\"{name}\"><system-out>{sentence}</system-out></testcase>"
                );
            }
        }
        let (failures, skipped) = (count(Decision::Holds), count(Decision::Undecided));
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite name=\"fiord compare\" tests=\"{tests}\" \
             failures=\"{failures}\" errors=\"0\" skipped=\"{skipped}\">\n{cases}  </testsuite>\n</testsuites>\n"
        )
    }

    /// Every figure, a row for each change.
    pub fn full(&self) -> Table {
        let keys = [
            "row",
            "figure",
            "from",
            "to",
            "from_value",
            "to_value",
            "change_percent",
            "change_low",
            "change_high",
            "verdict",
            "from_error",
            "to_error",
            "margin_percent",
            "obstacles",
        ];
        let mut table = Table::new(keys.map(|key| Column::new(key, key)));
        let number = |value: Option<f64>| value.map_or(Cell::None, |value| Cell::Number(value, 3));
        for row in &self.rows {
            for figure in &row.figures {
                for side in 1..self.sides.len() {
                    let (from, to) = (figure.estimates[0], figure.estimates[side]);
                    let change = figure.changes[side - 1];
                    let interval = change.and_then(|change| change.interval);
                    table.rows.push(vec![
                        Cell::Text(row.name.clone()),
                        Cell::Text(figure.figure.to_string()),
                        Cell::Text(self.sides[0].0.clone()),
                        Cell::Text(self.sides[side].0.clone()),
                        number(from.map(|one| one.value)),
                        number(to.map(|one| one.value)),
                        number(change.map(|change| change.percent)),
                        number(interval.map(Interval::low)),
                        number(interval.map(Interval::high)),
                        Cell::text(change.map(|change| change.verdict.word())),
                        Cell::text(from.map(|one| one.basis.words())),
                        Cell::text(to.map(|one| one.basis.words())),
                        number(Some(self.margin.percent(figure.figure.measure))),
                        Cell::List(row.obstacles[side - 1].clone()),
                    ]);
                }
            }
        }
        table
    }

    /// How the table is read.
    fn note(&self) -> String {
        let all = || self.rows.iter().flat_map(|row| &row.figures);
        let figures = || all().filter(|figure| !figure.is_only_shown());
        let verdicts = || figures().flat_map(|figure| &figure.changes).flatten();
        let has = |wanted: Verdict| verdicts().any(|change| change.verdict == wanted);
        let several = self.sides.len() > 2;
        let mut note = Vec::new();
        let has_intervals = self.sides.len() != COLUMNS_MAX;
        if has_intervals && verdicts().any(|change| change.interval.is_some()) {
            note.push(
                "INTERVAL is the 95 % interval of the change, of all figures of a row together.".to_string(),
            );
        }
        let several = several && self.sides.len() <= COLUMNS_MAX;
        let margin = self.margin.shown();
        if has(Verdict::Same) || has(Verdict::CannotTell) {
            note.push(match several {
                true => format!(
                    "= marks changes whose interval is within {margin}, ~ those of which noise does not tell."
                ),
                false => format!("What is the same has an interval within {margin} (--margin)."),
            });
        }
        if has(Verdict::NotComparable) {
            note.push(
                "? marks changes that are not judged; --across LIST judges them nevertheless.".to_string(),
            );
        }
        let estimates = || figures().flat_map(|figure| &figure.estimates).flatten();
        let mut bases: Vec<String> = Vec::new();
        for estimate in estimates().filter(|estimate| estimate.basis.is_measured()) {
            let words = estimate.basis.words();
            if !bases.contains(&words) {
                bases.push(words);
            }
        }
        if !bases.is_empty() {
            let more = bases.len().saturating_sub(3);
            let named = bases[..bases.len() - more].join("; ");
            note.push(format!(
                "Noise is estimated from {named}{}.",
                if more > 0 { "; and others" } else { "" }
            ));
        }
        if estimates().any(|estimate| !estimate.basis.is_measured()) {
            note.push(
                "Where a result has no repeated runs, windows or samples, only a change that is beyond any plausible \
                 noise of runs of that length is called a difference."
                    .to_string(),
            );
        }
        if all().any(ComparedFigure::is_only_shown) {
            note.push("How much of the energy is noise is known from three runs of each on.".to_string());
        }
        note.join(" ")
    }

    /// The table for people: all figures, or of many rows the main ones.
    pub fn shown(&self) -> Table {
        let in_full = self.rows.len() <= ROWS_IN_FULL;
        let is_shown = |figure: &ComparedFigure| {
            in_full || matches!(figure.figure.measure, Measure::Iops | Measure::Percentile(99.0))
        };
        let has_names = self.rows.len() > 1;
        let is_wide = self.sides.len() <= COLUMNS_MAX;
        let mut table = Table::new(self.columns(has_names, is_wide));
        for row in &self.rows {
            let mut name = Some(row.name.clone());
            for figure in row.figures.iter().filter(|figure| is_shown(figure)) {
                // A row is named once.
                let named = |name: &mut Option<String>| Cell::Text(name.take().unwrap_or_default());
                let head = has_names.then(|| named(&mut name));
                if is_wide {
                    table.rows.push(head.into_iter().chain(self.wide(figure)).collect());
                    continue;
                }
                let mut head = head;
                for side in 0..self.sides.len() {
                    let head = head.as_mut().map(|cell| std::mem::replace(cell, Cell::Text(String::new())));
                    table.rows.push(head.into_iter().chain(long(figure, side)).collect());
                }
            }
        }
        table
    }

    fn columns(&self, has_names: bool, is_wide: bool) -> Vec<Column> {
        let mut columns: Vec<Column> = has_names.then(|| Column::new("row", "OF")).into_iter().collect();
        columns.push(Column::new("figure", "FIGURE"));
        if !is_wide {
            let more = [
                ("side", ""),
                ("value", "VALUE"),
                ("change", "CHANGE"),
                ("interval", INTERVAL),
                ("verdict", "VERDICT"),
            ];
            columns.extend(more.map(|(key, title)| Column::new(key, title)));
            return columns;
        }
        columns.push(Column::new("a", LETTERS[0]));
        for letter in &LETTERS[1..self.sides.len().max(1)] {
            columns.extend([Column::new("value", letter), Column::new("change", "CHANGE")]);
        }
        if self.sides.len() == 2 {
            columns.extend([Column::new("interval", INTERVAL), Column::new("verdict", "VERDICT")]);
        }
        columns
    }

    /// The cells of a figure, with a column for each side.
    fn wide(&self, figure: &ComparedFigure) -> Vec<Cell> {
        let mut cells = vec![Cell::Text(figure.figure.to_string()), value(figure, 0)];
        for (index, change) in figure.changes.iter().enumerate() {
            cells.push(value(figure, index + 1));
            cells.push(change.map_or(Cell::None, |change| percent(change, self.sides.len() > 2)));
        }
        if let [change] = figure.changes.as_slice() {
            cells.push(interval(*change));
            cells.push(judged(*change));
        }
        cells
    }
}

/// The cells of one side of a figure.
fn long(figure: &ComparedFigure, side: usize) -> Vec<Cell> {
    let change = side.checked_sub(1).and_then(|index| figure.changes[index]);
    let name = if side == 0 { figure.figure.to_string() } else { String::new() };
    vec![
        Cell::Text(name),
        Cell::Text(LETTERS[side].to_string()),
        value(figure, side),
        change.map_or(Cell::None, |change| percent(change, false)),
        interval(change),
        judged(change),
    ]
}

/// The verdict in the width of its title; why a change is not judged is in the sentences.
fn judged(change: Option<Change>) -> Cell {
    let word = |change: Change| match change.verdict {
        Verdict::NotComparable => "?",
        verdict => verdict.word(),
    };
    Cell::text(change.map(word))
}

fn value(figure: &ComparedFigure, side: usize) -> Cell {
    figure.estimates[side].map_or(Cell::None, |estimate| figure.figure.cell(estimate.value))
}

fn interval(change: Option<Change>) -> Cell {
    let interval = change.and_then(|change| change.interval);
    interval.map_or(Cell::None, |interval| {
        let (low, high) = (interval.low(), interval.high());
        Cell::Formatted(format!("{}..{}", bound(low), bound(high)), high - low)
    })
}

/// A bound of an interval, in percent. Where noise hides everything, its digits would only widen the table.
fn bound(percent: f64) -> String {
    match percent {
        ..1_000.0 => format!("{percent:+.1}"),
        ..10_000.0 => format!("{percent:+.0}"),
        _ => ">+9999".to_string(),
    }
}

/// A change; marked if it is not called a difference, where no column says so.
fn percent(change: Change, is_marked: bool) -> Cell {
    let mark = match change.verdict {
        _ if !is_marked => "",
        Verdict::Better | Verdict::Worse => "",
        Verdict::Same => "= ",
        Verdict::CannotTell => "~ ",
        Verdict::NotComparable => "? ",
    };
    Cell::Formatted(format!("{mark}{:+.1} %", change.percent), change.percent)
}
