//! The charts of a sweep, from the rows of its document.
//!
//! Invariant: the axis is the one that the sweep itself draws its curves over.

use std::collections::BTreeSet;

use fiord_import::{StudyRows, StudyValue};
use fiord_page::study_page::{StudyAxes, StudyChart, StudyFigure, StudySteps};
use fiord_stats::{Gather, OrderBy};

/// The column of the direction, behind those of the swept options.
const DIRECTION: &str = "direction";

/// Options whose values are bytes.
const IN_BYTES: [&str; 6] = ["bs", "size", "filesize", "io_size", "offset", "offset_increment"];

/// Throughput and latency against the option with most numbers; none without two of them.
pub(super) fn charts(table: &StudyRows) -> Vec<StudyChart> {
    let at = |key: &str| table.columns.iter().position(|known| known == key);
    let (Some(direction), Some(throughput), Some(latency)) = (at(DIRECTION), at("mib_per_s"), at("mean_ns"))
    else {
        return Vec::new();
    };
    let number = |column: usize, row: &[StudyValue]| match row[column] {
        StudyValue::Number(number) => Some(number),
        _ => None,
    };
    let values = |column: usize| -> BTreeSet<u64> {
        table.rows.iter().filter_map(|row| number(column, row)).map(f64::to_bits).gather()
    };
    // The last of those with most values, as in the study.
    let Some(axis) = (0..direction).max_by_key(|column| values(*column).len()) else { return Vec::new() };
    if values(axis).len() < 2 {
        return Vec::new();
    }
    let texts =
        |column: usize| table.rows.iter().map(move |row| text(&row[column])).gather::<BTreeSet<String>>();
    let differing: Vec<usize> =
        (0..=direction).filter(|column| *column != axis && texts(*column).len() > 1).collect();
    let name = |row: &[StudyValue]| {
        let parts = differing.iter().map(|column| match table.columns[*column].as_str() {
            "job" | "rw" | DIRECTION => text(&row[*column]),
            key => format!("{key}={}", text(&row[*column])),
        });
        let name = parts.collect::<Vec<_>>().join(" ");
        if name.is_empty() { "all".to_string() } else { name }
    };
    let lines = |column: usize, unit: f64| {
        let mut lines: Vec<(String, Vec<(f64, f64)>)> = Vec::new();
        for row in &table.rows {
            let (Some(x), Some(y), name) = (number(axis, row), number(column, row), name(row)) else {
                continue;
            };
            match lines.iter_mut().find(|(known, _)| *known == name) {
                Some((_, points)) => points.push((x, y * unit)),
                None => lines.push((name, vec![(x, y * unit)])),
            }
        }
        lines.iter_mut().for_each(|(_, points)| points.order_by(|one, other| one.0.total_cmp(&other.0)));
        lines
    };
    let option = table.columns[axis].clone();
    let in_bytes = IN_BYTES.contains(&option.as_str());
    let chart = |id: &str, title: &str, figure: StudyFigure, column: usize, unit: f64| StudyChart {
        id: id.to_string(),
        title: format!("{title} against {option}"),
        description: "Each point is a run; lines connect runs that differ in this option alone.".to_string(),
        axes: StudyAxes::Against { title: option.clone(), steps: StudySteps::ByRatio, in_bytes, figure },
        lines: lines(column, unit),
        bands: Vec::new(),
    };
    vec![
        chart("throughput", "Throughput", StudyFigure::BytesPerS, throughput, MIB),
        chart("latency", "Mean latency", StudyFigure::Latency, latency, 1.0),
    ]
}

const MIB: f64 = 1024.0 * 1024.0;

fn text(value: &StudyValue) -> String {
    match value {
        StudyValue::Text(text) => text.clone(),
        StudyValue::Number(number) => number.to_string(),
        StudyValue::Flag(flag) => u8::from(*flag).to_string(),
        StudyValue::List(items) => items.iter().map(text).collect::<Vec<_>>().join(","),
        StudyValue::None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(columns: &[&str], rows: &[&[f64]]) -> StudyRows {
        let value = |(column, number): (usize, &f64)| match columns[column] {
            "job" | "rw" | "direction" | "engine" => StudyValue::Text(format!("t{number}")),
            _ => StudyValue::Number(*number),
        };
        StudyRows {
            key: "rows".to_string(),
            columns: columns.iter().map(|name| (*name).to_string()).collect(),
            rows: rows.iter().map(|row| row.iter().enumerate().map(value).collect()).collect(),
        }
    }

    #[test]
    fn lines_are_those_that_differ_in_the_axis_alone() {
        let columns = ["job", "rw", "engine", "bs", "direction", "mib_per_s", "mean_ns"];
        let table = rows(
            &columns,
            &[
                &[0.0, 0.0, 1.0, 8192.0, 0.0, 20.0, 200.0],
                &[0.0, 0.0, 1.0, 4096.0, 0.0, 10.0, 100.0],
                &[0.0, 0.0, 2.0, 4096.0, 0.0, 30.0, 300.0],
            ],
        );
        let charts = charts(&table);
        let lines = |chart: &StudyChart| chart.lines.clone();
        let mib = |number: f64| number * MIB;
        assert_eq!(
            lines(&charts[0]),
            [
                ("engine=t1".to_string(), vec![(4096.0, mib(10.0)), (8192.0, mib(20.0))]),
                ("engine=t2".to_string(), vec![(4096.0, mib(30.0))]),
            ]
        );
        assert_eq!(lines(&charts[1])[0].1, [(4096.0, 100.0), (8192.0, 200.0)]);
        assert!(matches!(&charts[0].axes, StudyAxes::Against { title, in_bytes: true, .. } if title == "bs"));
    }

    #[test]
    fn without_two_numbers_there_is_no_chart() {
        let columns = ["job", "bs", "direction", "mib_per_s", "mean_ns"];
        assert!(charts(&rows(&columns, &[&[0.0, 4096.0, 0.0, 1.0, 1.0]])).is_empty());
        assert!(charts(&rows(&["job", "direction"], &[&[0.0, 0.0], &[1.0, 0.0]])).is_empty());
        assert!(charts(&rows(&columns, &[])).is_empty());
    }
}
