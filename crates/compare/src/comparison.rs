//! The comparison: each figure of each row, with its change from the first result to each of the others.
//!
//! Invariant: the changes of one row together are wrongly called a difference in at most a twentieth of all cases.

use std::collections::HashMap;

use fiord_stats::student;

use crate::aspect::{self, Aspect};
use crate::compared::{Change, ComparedFigure, ComparedRow, Comparison, Interval, Verdict};
use crate::condition::Condition;
use crate::estimate::{estimate, welch};
use crate::figure::{Figure, Measure, Subject};
use crate::margin::Margin;
use crate::side::{Row, Side};

/// The share of rows in which a difference may be called that is none.
const WRONG_SHARE: f64 = 0.05;

/// The percentiles that are compared.
const PERCENTILES: [f64; 3] = [50.0, 99.0, 99.9];

/// What the user wants.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Within what a change is none.
    pub margin: Margin,
    /// Aspects in which the results may differ.
    pub across: Vec<Aspect>,
    /// What must not be the case.
    pub conditions: Vec<Condition>,
}

/// Compares the first of these results with each of the others.
pub fn compare(sides: &[Side], settings: &Settings) -> Comparison {
    let of_sides: Vec<Vec<Row<'_>>> = sides.iter().map(Side::rows).collect();
    let rows = paired(&of_sides);
    let rows: Vec<ComparedRow> =
        rows.iter().map(|(name, rows)| compared(name, rows, sides, settings)).collect();
    let mut comparison = Comparison {
        sides: sides.iter().map(|side| (side.name.clone(), side.described.clone())).collect(),
        rows,
        margin: settings.margin,
        outcomes: Vec::new(),
    };
    comparison.outcomes =
        settings.conditions.iter().map(|condition| condition.outcome(&comparison)).collect();
    comparison
}

/// A row of each side that has it, under one name.
type Paired<'r, 's> = (String, Vec<Option<&'r Row<'s>>>);

/// Rows are paired by name; if two sides have no name in common and as many rows, in their order.
fn paired<'r, 's>(sides: &'r [Vec<Row<'s>>]) -> Vec<Paired<'r, 's>> {
    let Some(first) = sides.first() else { return Vec::new() };
    let mut paired: Vec<Paired<'r, 's>> =
        first.iter().map(|row| (row.name.clone(), vec![Some(row)])).collect();
    let names = paired.iter().enumerate().map(|(place, (name, _))| (name.clone(), place));
    let mut places: HashMap<String, usize> = names.collect();
    let of_first = places.len();
    for (index, side) in sides.iter().enumerate().skip(1) {
        let is_common = side.iter().any(|row| places.get(&row.name).is_some_and(|place| *place < of_first));
        let by_place = !is_common && side.len() == first.len();
        for (place, row) in side.iter().enumerate() {
            let known = match by_place {
                true => Some(place),
                false => places.get(&row.name).copied(),
            };
            let at = known.unwrap_or_else(|| {
                places.insert(row.name.clone(), paired.len());
                paired.push((row.name.clone(), Vec::new()));
                paired.len() - 1
            });
            paired[at].1.resize(index, None);
            paired[at].1.push(Some(row));
        }
        paired.iter_mut().for_each(|(_, rows)| rows.resize(index + 1, None));
    }
    paired
}

fn compared(name: &str, rows: &[Option<&Row<'_>>], sides: &[Side], settings: &Settings) -> ComparedRow {
    let first = rows.first().copied().flatten();
    let obstacle = |(index, row): (usize, &Option<&Row<'_>>)| match (first, row) {
        (Some(first), Some(row)) => {
            aspect::differences((&sides[0], first), (&sides[index], row), &settings.across)
        }
        (None, _) => vec![format!("{} has no such row", sides[0].name)],
        (_, None) => vec![format!("{} has no such row", sides[index].name)],
    };
    let obstacles: Vec<Vec<String>> = rows.iter().enumerate().skip(1).map(obstacle).collect();
    let wanted = settings.conditions.iter().filter_map(Condition::percentile);
    let mut percentiles: Vec<f64> = PERCENTILES.into_iter().chain(wanted).collect();
    percentiles.sort_unstable_by(f64::total_cmp);
    percentiles.dedup();
    let measures = [Measure::Iops, Measure::Bandwidth, Measure::Mean].into_iter();
    let of_energy = Measure::OF_ENERGY.map(|(measure, _)| measure);
    let measures: Vec<Measure> =
        measures.chain(percentiles.into_iter().map(Measure::Percentile)).chain(of_energy).collect();
    let figures = Subject::all().flat_map(|subject| {
        let counted = subject.counts().map(Measure::Counted);
        measures.iter().copied().chain(counted).map(move |measure| Figure { subject, measure })
    });
    let mut figures: Vec<ComparedFigure> = figures
        .map(|figure| ComparedFigure {
            figure,
            estimates: rows.iter().map(|row| row.and_then(|row| estimate(row, figure))).collect(),
            changes: Vec::new(),
        })
        .filter(|figure| figure.estimates.iter().any(Option::is_some))
        .collect();
    for (index, obstacles) in obstacles.iter().enumerate() {
        let outside = WRONG_SHARE / count(&figures, index + 1) as f64;
        for figure in &mut figures {
            let margin_percent = settings.margin.percent(figure.figure.measure);
            let change = change(figure, index + 1, outside).map(|(percent, interval)| Change {
                percent,
                interval,
                verdict: match interval {
                    _ if !obstacles.is_empty() => Verdict::NotComparable,
                    None => Verdict::CannotTell,
                    Some(interval) => interval.verdict(figure.figure.is_more_better(), margin_percent),
                },
            });
            figure.changes.push(change);
        }
    }
    ComparedRow { name: name.to_string(), figures, obstacles }
}

/// How many figures are judged at the same time. I/Os and bytes per second are one as far as chance goes.
fn count(figures: &[ComparedFigure], side: usize) -> usize {
    let is_judged = |figure: &&ComparedFigure| {
        let error = |side: usize| figure.estimates[side].and_then(|estimate| estimate.error);
        error(0).is_some() && error(side).is_some()
    };
    let judged: Vec<&ComparedFigure> = figures.iter().filter(is_judged).collect();
    let has_rate = |figure: &ComparedFigure| {
        judged.iter().any(|other| {
            other.figure.measure == Measure::Iops && other.figure.subject == figure.figure.subject
        })
    };
    let own = judged.iter().filter(|figure| figure.figure.measure != Measure::Bandwidth || !has_rate(figure));
    own.count().max(1)
}

/// The change in percent and its interval.
fn change(figure: &ComparedFigure, side: usize, outside: f64) -> Option<(f64, Option<Interval>)> {
    let (from, to) = (figure.estimates[0]?, figure.estimates[side]?);
    if from.value <= 0.0 || to.value <= 0.0 {
        return None;
    }
    let ratio = to.value / from.value;
    let interval = from.error.zip(to.error).map(|(one, other)| {
        let parts = [(one.share.powi(2), one.degrees), (other.share.powi(2), other.degrees)];
        let error = (parts[0].0 + parts[1].0).sqrt();
        // The error of a ratio, on the scale on which it is symmetrical.
        let reach = (student::two_sided(outside, welch(&parts)) * error).exp();
        Interval::around(100.0 * (ratio / reach - 1.0), 100.0 * (ratio * reach - 1.0))
    });
    Some((100.0 * (ratio - 1.0), interval))
}
