//! The pictures of a qualification: the way to the steady state, the window that was steady, and figures by block size and mix.
//!
//! Invariant: they follow from the rows of its document, and show nothing that is not in them.

use std::collections::BTreeMap;

use fiord_explain::study_table::{ShownTable, shown};
use fiord_import::{StudyRows, StudyValue};
use fiord_page::study_page::{StudyAxes, StudyChart, StudyFigure, StudySteps, StudyTable};
use fiord_report::table::shown_bytes;
use fiord_stats::{Capped, OrderBy};

/// How far from their mean the rounds of a steady window may be for the lines that show it.
const NEAR_MEAN: f64 = 0.10;

/// A row of a table.
#[derive(Clone, Copy)]
struct Row<'t> {
    table: &'t StudyRows,
    row: &'t [StudyValue],
}

impl<'t> Row<'t> {
    fn value(self, key: &str) -> Option<&'t StudyValue> {
        self.row.get(self.table.columns.iter().position(|known| known == key)?)
    }

    fn text(self, key: &str) -> Option<&'t str> {
        match self.value(key)? {
            StudyValue::Text(text) => Some(text),
            _ => None,
        }
    }

    fn number(self, key: &str) -> Option<f64> {
        match self.value(key)? {
            StudyValue::Number(number) => Some(*number),
            _ => None,
        }
    }

    fn is(self, key: &str) -> bool {
        self.value(key) == Some(&StudyValue::Flag(true))
    }

    /// `65/35`.
    fn mix(self) -> String {
        let reads = self.number("read_percent").unwrap_or_default();
        format!("{reads:.0}/{:.0}", 100.0 - reads)
    }

    fn block(self) -> u64 {
        u64::capped(self.number("block_bytes").unwrap_or_default())
    }

    /// The test, with its target if there are several.
    fn test(self) -> String {
        let parts = [self.text("target"), self.text("test")];
        parts.into_iter().flatten().collect::<Vec<_>>().join(": ")
    }
}

/// Rows with equal names, in the order in which the names come first.
fn groups<'t>(table: &'t StudyRows, name: impl Fn(Row<'t>) -> Option<String>) -> Vec<(String, Vec<Row<'t>>)> {
    let mut groups: Vec<(String, Vec<Row<'t>>)> = Vec::new();
    for row in table.rows.iter().map(|row| Row { table, row }) {
        let Some(name) = name(row) else { continue };
        match groups.iter_mut().find(|(known, _)| *known == name) {
            Some((_, rows)) => rows.push(row),
            None => groups.push((name, vec![row])),
        }
    }
    groups
}

/// The charts of the rounds: convergence and window of each test that has to become steady, the way to the saturation, and the
/// states of recovery.
pub(super) fn charts_of_rounds(table: &StudyRows) -> Vec<StudyChart> {
    let is_plain = |row: &Row<'_>| row.text("state").is_none();
    let steady = groups(table, |row| {
        let followed = Some(row).filter(is_plain).filter(|row| row.number("written_bytes").is_none())?;
        Some(format!("{}, {}", followed.test(), shown_bytes(followed.block())))
    });
    let mut charts: Vec<StudyChart> =
        steady.iter().flat_map(|(name, rows)| convergence(name, rows)).collect();
    let filled = groups(table, |row| row.number("written_bytes").map(|_| row.test()));
    charts.extend(filled.iter().flat_map(|(name, rows)| saturation(name, rows)));
    let recovering = groups(table, |row| row.text("state").map(|_| row.test()));
    charts.extend(recovering.iter().filter_map(|(name, rows)| states(name, rows)));
    for (number, chart) in charts.iter_mut().enumerate() {
        chart.id = format!("rounds-{number}");
    }
    charts
}

/// A figure in the unit of its axis, and what it is.
fn figure(row: Row<'_>) -> Option<(f64, StudyFigure)> {
    let value = row.number("value")?;
    Some(match row.text("measure")? {
        "iops" => (value, StudyFigure::Iops),
        "mib_per_s" => (value * f64::from(1 << 20), StudyFigure::BytesPerS),
        _ => (value, StudyFigure::Latency),
    })
}

/// What `value` is called in titles.
fn title_of(figure: StudyFigure) -> &'static str {
    match figure {
        StudyFigure::Iops => "IOPS",
        StudyFigure::BytesPerS => "Throughput",
        StudyFigure::Latency => "Mean latency",
    }
}

fn by_round(figure: StudyFigure) -> StudyAxes {
    StudyAxes::Against { title: "Round".to_string(), steps: StudySteps::Even, in_bytes: false, figure }
}

/// The figures of each round, and each line of the window apart.
fn convergence(name: &str, rows: &[Row<'_>]) -> Vec<StudyChart> {
    let mut lines: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
    let mut windows: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
    let Some((_, kind)) = rows.iter().find_map(|row| figure(*row)) else { return Vec::new() };
    for row in rows {
        let (Some(round), Some((value, _))) = (row.number("round"), figure(*row)) else { continue };
        lines.entry(row.mix()).or_default().push((round, value));
        if row.is("in_window") {
            windows.entry(row.mix()).or_default().push((round, value));
        }
    }
    let bands: Vec<(f64, f64)> = windows.values().take(1).filter_map(|points| span(points)).collect();
    let description = match bands.is_empty() {
        true => "Each round; no window of five is steady.",
        false => "Each round; the shaded window is steady.",
    };
    let chart = StudyChart {
        title: format!("{} by round: {name}", title_of(kind)),
        description: description.to_string(),
        axes: by_round(kind),
        lines: lines.into_iter().map(|(mix, points)| (format!("{mix} (reads/writes)"), points)).collect(),
        bands,
        ..StudyChart::default()
    };
    let several = windows.len() > 1;
    let windows = windows.into_iter().map(|(mix, points)| {
        let of = if several { format!("{name}, {mix}") } else { name.to_string() };
        window(&of, &points, kind)
    });
    [chart].into_iter().chain(windows).collect()
}

/// The first and the last x.
fn span(points: &[(f64, f64)]) -> Option<(f64, f64)> {
    Some((points.first()?.0, points.last()?.0))
}

/// The rounds of a steady window, their mean, what is near it, and the line through them.
fn window(name: &str, points: &[(f64, f64)], figure: StudyFigure) -> StudyChart {
    let count = points.len() as f64;
    let mean_of = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (middle, mean) = (mean_of(|point| point.0), mean_of(|point| point.1));
    let rising: f64 = points.iter().map(|(x, y)| (x - middle) * (y - mean)).sum();
    let per_round = rising / points.iter().map(|(x, _)| (x - middle).powi(2)).sum::<f64>();
    let along = |y: &dyn Fn(f64) -> f64| points.iter().map(|(x, _)| (*x, y(*x))).collect::<Vec<_>>();
    let level = |factor: f64| along(&move |_| mean * factor);
    let percent = NEAR_MEAN * 100.0;
    StudyChart {
        title: format!("Steady window: {name}"),
        description: "The five rounds whose mean is the result, with their least-squares line.".to_string(),
        axes: by_round(figure),
        lines: vec![
            ("measured".to_string(), points.to_vec()),
            ("mean".to_string(), level(1.0)),
            (format!("mean + {percent:.0} %"), level(1.0 + NEAR_MEAN)),
            (format!("mean − {percent:.0} %"), level(1.0 - NEAR_MEAN)),
            ("least squares".to_string(), along(&|x| mean + per_round * (x - middle))),
        ],
        ..StudyChart::default()
    }
}

/// Rate and longest latency against what was written.
fn saturation(name: &str, rows: &[Row<'_>]) -> Vec<StudyChart> {
    let points = |key: &str| -> Vec<(f64, f64)> {
        rows.iter().filter_map(|row| Some((row.number("written_bytes")?, row.number(key)?))).collect()
    };
    let chart = |title: &str, figure: StudyFigure, key: &str| StudyChart {
        title: format!("{title} as it is written: {name}"),
        description: "Each point is a round.".to_string(),
        axes: StudyAxes::Against {
            title: "Written".to_string(),
            steps: StudySteps::Even,
            in_bytes: true,
            figure,
        },
        lines: vec![("writes".to_string(), points(key))],
        ..StudyChart::default()
    };
    vec![chart("IOPS", StudyFigure::Iops, "value"), chart("Maximum latency", StudyFigure::Latency, "max_ns")]
}

/// The states of a recovery test, one after the other.
fn states(name: &str, rows: &[Row<'_>]) -> Option<StudyChart> {
    let (_, kind) = rows.iter().find_map(|row| figure(*row))?;
    let mut lines: Vec<(String, Vec<(f64, f64)>)> = Vec::new();
    for (run, row) in (1_u32..).zip(rows) {
        let (Some(state), Some((value, _))) = (row.text("state"), figure(*row)) else { continue };
        let point = (f64::from(run), value);
        match lines.last_mut().filter(|(known, _)| known == state) {
            Some((_, points)) => points.push(point),
            None => lines.push((state.to_string(), vec![point])),
        }
    }
    Some(StudyChart {
        title: format!("{} by run: {name}", title_of(kind)),
        description: "Each run in the order in which it was measured.".to_string(),
        axes: StudyAxes::Against {
            title: "Run".to_string(),
            steps: StudySteps::Even,
            in_bytes: false,
            figure: kind,
        },
        lines,
        ..StudyChart::default()
    })
}

/// The table without the rows of tests that did not become steady.
pub(super) fn with_figures(table: &StudyRows) -> StudyRows {
    let has_figures = |row: &&Vec<StudyValue>| Row { table, row }.number("iops").is_some();
    StudyRows { rows: table.rows.iter().filter(has_figures).cloned().collect(), ..table.clone() }
}

/// What is shown of a test by block size and mix: the test, the column, its title and what it is.
const BY_MIX: [(&str, &str, &str, StudyFigure); 3] = [
    ("iops", "iops", "IOPS", StudyFigure::Iops),
    ("latency", "mean_ns", "Mean latency", StudyFigure::Latency),
    ("latency", "max_ns", "Maximum latency", StudyFigure::Latency),
];

/// Heat maps of figures by block size and mix, and the same as lines.
pub(super) fn by_mix(table: &StudyRows) -> (Vec<StudyChart>, Vec<StudyTable>) {
    let (mut charts, mut tables) = (Vec::new(), Vec::new());
    for (test, rows) in groups(table, |row| Some(row.test())) {
        let kinds = BY_MIX.iter().filter(|(of, ..)| rows[0].text("test") == Some(*of));
        for (_, key, title, figure) in kinds {
            let mut lines: Vec<(String, Vec<(f64, f64)>)> = Vec::new();
            for row in &rows {
                let Some(value) = row.number(key) else { continue };
                let point = (row.block() as f64, value);
                match lines.iter_mut().find(|(mix, _)| *mix == row.mix()) {
                    Some((_, points)) => points.push(point),
                    None => lines.push((row.mix(), vec![point])),
                }
            }
            if lines.is_empty() {
                continue;
            }
            lines.iter_mut().for_each(|(_, points)| points.order_by(|one, other| one.0.total_cmp(&other.0)));
            let title = format!("{title} by block size and mix of reads and writes: {test}");
            tables.push(heat_map(&title, &lines, *figure));
            charts.push(StudyChart {
                id: format!("mix-{}", charts.len()),
                title,
                description: "Each line is a mix of reads and writes in percent.".to_string(),
                axes: StudyAxes::Against {
                    title: "Block size".to_string(),
                    steps: StudySteps::ByRatio,
                    in_bytes: true,
                    figure: *figure,
                },
                lines,
                bands: Vec::new(),
            });
        }
    }
    (charts, tables)
}

/// Block sizes by mixes, shaded by the figure.
fn heat_map(title: &str, lines: &[(String, Vec<(f64, f64)>)], figure: StudyFigure) -> StudyTable {
    let unit = if figure == StudyFigure::Latency { "_ns" } else { "" };
    let mut blocks: Vec<f64> = lines.iter().flat_map(|(_, points)| points).map(|(block, _)| *block).collect();
    blocks.sort_unstable_by(f64::total_cmp);
    blocks.dedup();
    let at = |block: f64, points: &[(f64, f64)]| {
        let found = points.iter().find(|(at, _)| *at == block);
        found.map_or(StudyValue::None, |(_, value)| StudyValue::Number(*value))
    };
    let row = |block: &f64| {
        let cells = lines.iter().map(|(_, points)| at(*block, points));
        [StudyValue::Number(*block)].into_iter().chain(cells).collect()
    };
    let ShownTable { mut columns, mut rows } = shown(&StudyRows {
        key: String::new(),
        columns: ["block_bytes".to_string()]
            .into_iter()
            .chain(lines.iter().map(|(mix, _)| format!("{mix}{unit}")))
            .collect(),
        rows: blocks.iter().map(row).collect(),
    });
    columns.iter_mut().take(1).for_each(|title| *title = "Block".to_string());
    rows.iter_mut().filter_map(|row| row.first_mut()).for_each(|(_, exact)| *exact = None);
    let caption = format!("{title}. The stronger the colour, the higher the figure.");
    StudyTable { caption, columns, rows, is_heat_map: true }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(columns: &[&str], rows: Vec<Vec<StudyValue>>) -> StudyRows {
        StudyRows {
            key: String::new(),
            columns: columns.iter().map(|name| (*name).to_string()).collect(),
            rows,
        }
    }

    fn text(text: &str) -> StudyValue {
        StudyValue::Text(text.to_string())
    }

    const ROUNDS: [&str; 8] =
        ["test", "state", "read_percent", "block_bytes", "round", "measure", "value", "in_window"];

    fn round(number: u32, value: f64, in_window: bool) -> Vec<StudyValue> {
        let [reads, block, round] = [0.0, 4096.0, f64::from(number)].map(StudyValue::Number);
        let value = StudyValue::Number(value);
        vec![
            text("iops"),
            StudyValue::None,
            reads,
            block,
            round,
            text("iops"),
            value,
            StudyValue::Flag(in_window),
        ]
    }

    #[test]
    fn a_steady_window_is_shaded_and_drawn_with_its_lines() {
        let series = [900.0, 100.0, 102.0, 104.0, 106.0, 108.0];
        let numbered = (1..).zip(series).map(|(number, value)| round(number, value, number > 1)).collect();
        let charts = charts_of_rounds(&rows(&ROUNDS, numbered));
        assert_eq!(charts.len(), 2);
        assert_eq!(charts[0].title, "IOPS by round: iops, 4KiB");
        assert_eq!((charts[0].lines[0].1.len(), &charts[0].bands[..]), (6, &[(2.0, 6.0)][..]));
        let line = |name: &str| &charts[1].lines.iter().find(|(known, _)| known == name).unwrap().1;
        assert!(line("mean").iter().all(|(_, value)| *value == 104.0));
        assert!(
            line("least squares")
                .iter()
                .zip(line("measured"))
                .all(|(one, other)| (one.1 - other.1).abs() < 1e-9)
        );
        assert!(
            (line("mean + 10 %")[0].1 - 114.4).abs() < 1e-9 && (line("mean − 10 %")[0].1 - 93.6).abs() < 1e-9
        );
    }

    #[test]
    fn without_a_steady_window_nothing_is_shaded() {
        let charts = charts_of_rounds(&rows(&ROUNDS, vec![round(1, 5.0, false), round(2, 9.0, false)]));
        assert_eq!(charts.len(), 1);
        assert!(charts[0].bands.is_empty() && charts[0].description.contains("no window"));
        assert!(charts_of_rounds(&rows(&[], Vec::new())).is_empty());
    }

    #[test]
    fn states_follow_one_another_and_the_way_to_saturation_is_by_bytes() {
        let mut columns = ROUNDS.to_vec();
        columns.extend(["max_ns", "written_bytes"]);
        let row = |state: StudyValue, value: f64, written: StudyValue| {
            let mut row = round(1, value, false);
            row[1] = state;
            row.extend([StudyValue::Number(7000.0), written]);
            row
        };
        let none = || StudyValue::None;
        let charts = charts_of_rounds(&rows(
            &columns,
            vec![
                row(none(), 50.0, StudyValue::Number(1e9)),
                row(text("sequential"), 1.0, none()),
                row(text("random"), 2.0, none()),
                row(text("random"), 3.0, none()),
            ],
        ));
        let lines: Vec<_> = charts.iter().map(|chart| chart.lines.clone()).collect();
        assert_eq!(lines[0], [("writes".to_string(), vec![(1e9, 50.0)])]);
        assert_eq!(lines[1], [("writes".to_string(), vec![(1e9, 7000.0)])]);
        let states = [("sequential", vec![(1.0, 1.0)]), ("random", vec![(2.0, 2.0), (3.0, 3.0)])];
        assert_eq!(lines[2], states.map(|(name, points)| (name.to_string(), points)));
    }

    #[test]
    fn figures_by_block_and_mix_are_a_heat_map_of_each_test() {
        let row = |test: &str, reads: f64, block: f64, iops: f64| {
            let [reads, block, iops, mean] = [reads, block, iops, 2.0 * iops].map(StudyValue::Number);
            vec![text(test), reads, block, iops, mean]
        };
        let columns = ["test", "read_percent", "block_bytes", "iops", "mean_ns"];
        let table = rows(
            &columns,
            vec![
                row("iops", 100.0, 8192.0, 10.0),
                row("iops", 100.0, 4096.0, 20.0),
                row("iops", 0.0, 4096.0, 5.0),
                row("throughput", 0.0, 4096.0, 5.0),
                vec![text("latency"), StudyValue::None, StudyValue::None, StudyValue::None, StudyValue::None],
            ],
        );
        let (charts, tables) = by_mix(&table);
        assert_eq!(with_figures(&table).rows.len(), 4);
        assert_eq!((charts.len(), tables.len()), (1, 1));
        assert_eq!(charts[0].lines[0], ("100/0".to_string(), vec![(4096.0, 20.0), (8192.0, 10.0)]));
        assert_eq!(tables[0].columns, ["Block", "100/0", "0/100"]);
        assert_eq!(tables[0].rows[1], [("8KiB".into(), None), ("10".into(), Some(10.0)), ("-".into(), None)]);
    }
}
