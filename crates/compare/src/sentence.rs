//! What a comparison says, in a sentence for each result but the first.
//!
//! Invariant: a sentence names figures only with their change and its uncertainty, and says why there is no judgement if
//! there is none.

use crate::compared::{Change, ComparedFigure, ComparedRow, Comparison, Verdict};
use crate::margin::Margin;

/// Rows or figures that are named; of more, the first.
const NAMED_MAX: usize = 3;

/// What a row says of one side.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RowVerdict {
    Faster,
    Slower,
    /// Some figures are better, others worse.
    Mixed,
    Same,
    /// Some figures are the same; whether others are, the results do not tell.
    PartlySame,
    CannotTell,
    NotComparable,
}

/// A sentence for each side but the first.
pub(crate) fn sentences(comparison: &Comparison) -> Vec<String> {
    (1..comparison.sides.len()).map(|side| sentence(comparison, side)).collect()
}

fn sentence(comparison: &Comparison, side: usize) -> String {
    let (first, name) = (&comparison.sides[0].0, &comparison.sides[side].0);
    let has =
        |row: &&ComparedRow, side: usize| row.figures.iter().any(|figure| figure.estimates[side].is_some());
    let has_both = |row: &&ComparedRow| {
        row.figures.iter().any(|figure| figure.estimates[0].is_some() && figure.estimates[side].is_some())
    };
    let alone_in = |one: usize, other: usize| -> Vec<&ComparedRow> {
        comparison.rows.iter().filter(|row| has(row, one) && !has(row, other)).collect()
    };
    let rows: Vec<&ComparedRow> = comparison.rows.iter().filter(has_both).collect();
    match rows.as_slice() {
        [] => format!("{name} is not comparable with {first}: they have no row in common."),
        [only] if comparison.rows.len() == 1 => of_one(only, side, (first, name), comparison.margin),
        rows => {
            let alone = |(of, rows): (&String, Vec<&ComparedRow>)| match rows.as_slice() {
                [] => String::new(),
                rows => format!(" Only {of} has {}.", names(rows)),
            };
            let compared = of_several(rows, side, (first, name), comparison.margin);
            let alone = [(first, alone_in(0, side)), (name, alone_in(side, 0))].map(alone);
            compared + &alone.concat()
        }
    }
}

/// The names of the first rows, and how many more there are.
fn names(rows: &[&ComparedRow]) -> String {
    let named: Vec<&str> = rows.iter().take(NAMED_MAX).map(|row| row.name.as_str()).collect();
    let more = rows.len().saturating_sub(NAMED_MAX);
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    format!("{}{more}", named.join("; "))
}

/// The only row, with its figures.
fn of_one(row: &ComparedRow, side: usize, (first, name): (&str, &str), margin: Margin) -> String {
    let figures = |verdict: Verdict| listed(row, side, verdict);
    let margin = margin.shown();
    match verdict(row, side) {
        RowVerdict::Faster => {
            format!("{name} is faster than {first}: {}.", figures(Verdict::Better))
        }
        RowVerdict::Slower => {
            format!("{name} is slower than {first}: {}.", figures(Verdict::Worse))
        }
        RowVerdict::Mixed => format!(
            "{name} is better than {first} in {}, and worse in {}.",
            figures(Verdict::Better),
            figures(Verdict::Worse)
        ),
        RowVerdict::Same => {
            let largest = largest(row, side, Verdict::Same).unwrap_or_default();
            format!("{name} is the same as {first} within {margin}; the largest change is {largest}.")
        }
        RowVerdict::PartlySame => format!(
            "{name} is the same as {first} within {margin}: {}. Of the other figures it cannot tell. {}",
            figures(Verdict::Same),
            lacking(&[row], side)
        ),
        RowVerdict::CannotTell => {
            let largest = largest(row, side, Verdict::CannotTell);
            let largest =
                largest.map_or_else(String::new, |figure| format!(": the largest change is {figure}"));
            format!("Cannot tell whether {name} differs from {first}{largest}. {}", lacking(&[row], side))
        }
        RowVerdict::NotComparable => format!(
            "{name} is not comparable with {first}, because {}.",
            row.obstacles[side - 1].join(", and ")
        ),
    }
}

/// What the judgement of figures that cannot be judged lacks, as a sentence: how much is noise, or less of it.
fn lacking(rows: &[&ComparedRow], side: usize) -> &'static str {
    let all = rows.iter().flat_map(|row| changes(row, side));
    let mut undecided = all.filter(|(_, change)| change.verdict == Verdict::CannotTell);
    match undecided.all(|(figure, _)| figure.is_noise_measured(side)) {
        true => {
            "What is missing is precision: three runs or more of each, or longer ones, narrow the intervals."
        }
        false => "What is missing is a measure of noise: repeated runs, windows or samples.",
    }
}

/// How many of several rows say what.
fn of_several(rows: &[&ComparedRow], side: usize, (first, name): (&str, &str), margin: Margin) -> String {
    let margin = margin.shown();
    let with = |wanted: RowVerdict| -> Vec<&ComparedRow> {
        rows.iter().copied().filter(|row| verdict(row, side) == wanted).collect()
    };
    let same = format!("the same within {margin}");
    let partly = format!("the same within {margin} in what is known well enough");
    let parts = [
        (RowVerdict::Faster, "faster"),
        (RowVerdict::Slower, "slower"),
        (RowVerdict::Mixed, "better in some figures and worse in others"),
        (RowVerdict::Same, &same),
        (RowVerdict::PartlySame, &partly),
        (RowVerdict::CannotTell, "not known well enough to tell"),
    ];
    let mut said: Vec<String> = Vec::new();
    for (wanted, words) in parts {
        let rows = with(wanted);
        match rows.len() {
            0 => {}
            count if wanted == RowVerdict::Same => said.push(format!("{words} in {count}")),
            count => said.push(format!("{words} in {count} ({})", names(&rows))),
        }
    }
    let undecided = [with(RowVerdict::PartlySame), with(RowVerdict::CannotTell)].concat();
    let lacking = match undecided.as_slice() {
        [] => String::new(),
        rows => format!(" {}", lacking(rows, side)),
    };
    let obstructed = with(RowVerdict::NotComparable);
    if let Some(row) = obstructed.first() {
        let why = row.obstacles[side - 1].join(", and ");
        said.push(format!("not comparable in {}, because {why}", obstructed.len()));
    }
    let plural = if rows.len() == 1 { "" } else { "s" };
    format!("Of {} row{plural}, {name} is {}, compared with {first}.{lacking}", rows.len(), joined(&said))
}

fn joined(parts: &[String]) -> String {
    match parts {
        [] => String::new(),
        [only] => only.clone(),
        [others @ .., last] => format!("{}, and {last}", others.join(", ")),
    }
}

fn changes(row: &ComparedRow, side: usize) -> impl Iterator<Item = (&ComparedFigure, Change)> {
    let concluded = row.figures.iter().filter(|figure| !figure.is_only_shown());
    concluded.filter_map(move |figure| Some((figure, figure.changes[side - 1]?)))
}

fn verdict(row: &ComparedRow, side: usize) -> RowVerdict {
    let has = |wanted: Verdict| changes(row, side).any(|(_, change)| change.verdict == wanted);
    match (has(Verdict::Better), has(Verdict::Worse)) {
        _ if !row.obstacles[side - 1].is_empty() => RowVerdict::NotComparable,
        (true, true) => RowVerdict::Mixed,
        (true, false) => RowVerdict::Faster,
        (false, true) => RowVerdict::Slower,
        _ if !has(Verdict::Same) => RowVerdict::CannotTell,
        _ if has(Verdict::CannotTell) => RowVerdict::PartlySame,
        _ => RowVerdict::Same,
    }
}

/// The figures of a verdict with their changes.
fn listed(row: &ComparedRow, side: usize, wanted: Verdict) -> String {
    let all: Vec<String> =
        changes(row, side).filter(|(_, change)| change.verdict == wanted).map(described).collect();
    let more = all.len().saturating_sub(NAMED_MAX);
    let named = all[..all.len() - more].join(", ");
    if more > 0 { format!("{named}, and {more} more figures") } else { named }
}

/// The largest change of this verdict.
fn largest(row: &ComparedRow, side: usize, wanted: Verdict) -> Option<String> {
    let all = changes(row, side).filter(|(_, change)| change.verdict == wanted);
    all.max_by(|(_, one), (_, other)| one.percent.abs().total_cmp(&other.percent.abs())).map(described)
}

fn described((figure, change): (&ComparedFigure, Change)) -> String {
    format!("{} {}", figure.figure, change.shown())
}
