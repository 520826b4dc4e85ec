//! Throughput and latency against a swept value, drawn with characters.
//!
//! Invariant: no line is wider than requested, and lines differ in their marks as well as in colour.

use std::collections::BTreeMap;
use std::fmt::Write;

use fiord_report::columns;
use fiord_stats::Capped;

mod canvas;
pub mod scale;

use canvas::Canvas;
use fiord_stats::OrderBy;
use scale::Scale;

/// The contents of a chart.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Chart {
    /// The title of the swept option.
    pub axis: String,
    /// One for each combination of the other options.
    pub lines: Vec<Line>,
    /// The title of the panel of latencies, if they are not means.
    pub latency_title: Option<String>,
    /// What the marked point of a line is: a knee, a capacity.
    pub mark_name: &'static str,
}

/// One curve.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Line {
    /// Its name in the legend; empty if it is the only line.
    pub name: String,
    /// Its points, from left to right.
    pub points: Vec<Point>,
    /// Index of the point that is marked: its knee, or its capacity.
    pub knee: Option<usize>,
}

/// One run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Point {
    /// The swept value.
    pub x: f64,
    /// As it was typed.
    pub label: String,
    /// Throughput.
    pub mib_per_s: f64,
    /// Mean latency.
    pub latency_ms: f64,
}

/// What a panel shows of a point.
pub(crate) type PointFigure = fn(&Point) -> f64;

/// The marks of the lines' points, in turn.
const MARKS: [char; 6] = ['●', '○', '■', '□', '▲', '△'];

/// The mark of a knee.
const KNEE_MARK: char = '◆';

/// ANSI colours of the lines, in turn: readable on dark and light.
const COLOURS: [u8; 6] = [34, 31, 32, 35, 36, 33];

/// Rows of a panel, excluding its axis.
const ROWS: usize = 9;

/// Below this width, panels are placed one above the other.
const WIDTH_SIDE_BY_SIDE_MIN: usize = 64;

impl Chart {
    /// The two panels: title, figure, and whether its scale always begins at zero.
    pub(crate) fn panels(&self) -> [(&str, PointFigure, bool); 2] {
        let latency = self.latency_title.as_deref().unwrap_or("Mean latency, ms");
        [("Throughput, MiB/s", |point| point.mib_per_s, true), (latency, |point| point.latency_ms, false)]
    }

    /// Every point of every line.
    pub(crate) fn points(&self) -> impl Iterator<Item = &Point> + Clone {
        self.lines.iter().flat_map(|line| &line.points)
    }

    /// The swept values and their labels, from left to right, each once.
    pub(crate) fn ticks(&self) -> Vec<(f64, &str)> {
        let mut ticks: Vec<(f64, &str)> =
            self.points().map(|point| (point.x, point.label.as_str())).collect();
        ticks.order_by(|one, other| one.0.total_cmp(&other.0));
        ticks.dedup_by(|one, other| one.0 == other.0);
        ticks
    }
}

/// The chart as text, at most `width` columns wide.
pub fn terminal(chart: &Chart, width: usize, colour: bool) -> String {
    let side_by_side = width >= WIDTH_SIDE_BY_SIDE_MIN;
    // The last column stays free: some terminals wrap there.
    let panel_width = if side_by_side { (width - 3) / 2 } else { width.max(24) - 1 }.min(60);
    let [left, right] = chart.panels().map(|panel| self::panel(chart, panel, panel_width, colour));
    let mut text = String::new();
    if side_by_side {
        for (left, right) in left.iter().zip(&right) {
            let gap = panel_width - left.columns + 2;
            let _ = writeln!(text, "{}{:gap$}{}", left.text, "", right.text);
        }
    } else {
        left.iter().chain(&right).for_each(|row| text += &format!("{}\n", row.text));
    }
    let trimmed: Vec<&str> = text.lines().map(str::trim_end).collect();
    trimmed.join("\n") + "\n" + &legend(chart, width, colour)
}

/// A row of a panel: its text, and its width in columns.
struct Row {
    text: String,
    columns: usize,
}

impl Row {
    fn plain(text: String) -> Row {
        let columns = columns::width(&text);
        Row { text, columns }
    }
}

fn panel(chart: &Chart, panel: (&str, PointFigure, bool), width: usize, colour: bool) -> Vec<Row> {
    let (title, figure, from_zero) = panel;
    let y = Scale::of(chart.points().map(figure), from_zero);
    let labels: Vec<String> = y.ticks(4).iter().map(|tick| scale::figure(*tick)).collect();
    let margin = labels.iter().map(|label| columns::width(label)).max().unwrap_or(0).min(width / 3);
    let columns = width - margin - 2;
    let x = Scale::of_axis(chart.points().map(|point| point.x));
    let canvas = drawn(chart, figure, &x, &y, columns);
    let title = format!("{:margin$}  {title}{}", "", y.remark());
    let mut rows = vec![Row::plain(columns::cut(&title, width).to_string())];
    let at = |tick: f64| canvas.row_of(y.share(tick));
    let ticks: Vec<(usize, &String)> = y.ticks(4).iter().map(|tick| at(*tick)).zip(&labels).collect();
    for row in 0..ROWS {
        let label = ticks.iter().find(|(at, _)| *at == row).map_or("", |(_, label)| label.as_str());
        let edge = if label.is_empty() { '│' } else { '┤' };
        let text = format!("{label:>margin$} {edge}{}", canvas.row(row, colour.then_some(&COLOURS)));
        rows.push(Row { text, columns: margin + 2 + columns });
    }
    rows.push(Row::plain(format!("{:margin$} └{}", "", "─".repeat(columns))));
    rows.push(Row::plain(format!("{:margin$}  {}", "", tick_line(chart, &x, columns))));
    rows
}

fn drawn(chart: &Chart, figure: PointFigure, x: &Scale, y: &Scale, columns: usize) -> Canvas {
    let mut canvas = Canvas::new(columns, ROWS);
    let place = |point: &Point| (x.share(point.x), y.share(figure(point)));
    for (number, line) in chart.lines.iter().enumerate() {
        for pair in line.points.windows(2) {
            canvas.line(place(&pair[0]), place(&pair[1]), number);
        }
    }
    for (number, line) in chart.lines.iter().enumerate() {
        for (index, point) in line.points.iter().enumerate() {
            let mark = if line.knee == Some(index) { KNEE_MARK } else { MARKS[number % MARKS.len()] };
            canvas.mark(place(point), mark, number);
        }
    }
    canvas
}

/// The swept values below the axis: the ends, the knees, and as many others as fit.
fn tick_line(chart: &Chart, x: &Scale, columns: usize) -> String {
    let ticks = chart.ticks();
    let knees: Vec<f64> =
        chart.lines.iter().filter_map(|line| Some(line.points.get(line.knee?)?.x)).collect();
    let last = ticks.len().saturating_sub(1);
    let mut order: Vec<usize> = (0..ticks.len()).collect();
    order.order_by_key(|index| match *index {
        index if index == 0 || index == last => 0,
        index if knees.contains(&ticks[index].0) => 1,
        _ => 2,
    });
    let mut placed: BTreeMap<usize, (usize, &str)> = BTreeMap::new();
    for (value, label) in order.into_iter().map(|index| ticks[index]) {
        let label = columns::cut(label, columns);
        let length = columns::width(label);
        let middle = usize::capped((x.share(value) * (columns - 1) as f64).round());
        let start = middle.saturating_sub(length / 2).min(columns - length);
        let end = start + length;
        // One blank between neighbours.
        if placed.iter().all(|(from, (to, _))| end < *from || *to < start) {
            placed.insert(start, (end, label));
        }
    }
    placed
        .iter()
        .fold(String::new(), |line, (start, (_, label))| columns::left_aligned(&line, *start) + label)
}

/// The meaning of the marks.
fn legend(chart: &Chart, width: usize, colour: bool) -> String {
    let mut entries = vec![(format!("against {}", chart.axis), None)];
    for (number, line) in chart.lines.iter().enumerate().filter(|(_, line)| !line.name.is_empty()) {
        entries.push((format!("{} {}", MARKS[number % MARKS.len()], line.name), Some(number)));
    }
    if chart.lines.iter().any(|line| line.knee.is_some()) {
        entries.push((format!("{KNEE_MARK} {}", chart.mark_name), None));
    }
    let (mut text, mut filled) = (String::new(), 0);
    for (entry, line) in entries {
        let columns = columns::width(&entry) + 3;
        if filled > 0 && filled + columns > width {
            text.push('\n');
            filled = 0;
        }
        filled += columns;
        let painted =
            line.filter(|_| colour).map(|line| canvas::painted(&entry, COLOURS[line % COLOURS.len()]));
        let _ = write!(text, "   {}", painted.unwrap_or(entry));
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(name: &str, figures: &[(f64, f64, f64)], knee: Option<usize>) -> Line {
        let point = |(x, mib_per_s, latency_ms): &(f64, f64, f64)| Point {
            x: *x,
            label: x.to_string(),
            mib_per_s: *mib_per_s,
            latency_ms: *latency_ms,
        };
        Line { name: name.to_string(), points: figures.iter().map(point).collect(), knee }
    }

    fn saturating() -> Chart {
        let figures: Vec<(f64, f64, f64)> = (0..8)
            .map(|power| {
                let threads = f64::from(1 << power);
                (threads, (14.0 * threads).min(112.0), 0.5 * (threads / 8.0).max(1.0))
            })
            .collect();
        Chart {
            axis: "Threads".to_string(),
            lines: vec![line("", &figures, Some(3))],
            latency_title: None,
            mark_name: "knee",
        }
    }

    #[test]
    fn a_saturating_curve_levels_off_in_the_drawing() {
        let drawn = terminal(&saturating(), 80, false);
        assert!(drawn.contains(KNEE_MARK) && drawn.contains("Threads") && drawn.contains("128"), "{drawn}");
        let plateau = drawn.lines().find(|line| line.contains(KNEE_MARK)).unwrap();
        assert_eq!(plateau.matches(MARKS[0]).count(), 4, "{drawn}");
    }

    #[test]
    fn no_line_is_wider_than_requested() {
        let mut chart = saturating();
        chart.lines.push(line("rw=write ioengine=io_uring", &[(1.0, 0.001, 1e6), (3e9, 1e9, 1e-6)], None));
        for width in [40, 63, 64, 80, 200] {
            let drawn = terminal(&chart, width, false);
            let widest = drawn.lines().map(columns::width).max().unwrap();
            assert!(widest <= width, "{width}: {widest}\n{drawn}");
        }
    }

    #[test]
    fn labels_of_wide_and_combining_characters_stay_in_their_columns() {
        let mut chart = saturating();
        chart.axis = "ディスク".to_string();
        chart.lines[0].name = "e\u{301}".to_string();
        for (point, label) in chart.lines[0].points.iter_mut().zip(["ディスク", "e\u{301}", "4k"]) {
            point.label = label.to_string();
        }
        let drawn = terminal(&chart, 64, false);
        assert!(drawn.lines().all(|line| columns::width(line) <= 64), "{drawn}");
        let ticks = drawn.lines().rev().nth(1).unwrap();
        // The first label of the right panel is below the left end of its axis.
        let second = ticks.rfind("ディスク").unwrap();
        let edges = drawn.lines().rev().nth(2).unwrap();
        let corner = columns::width(&edges[..edges.rfind('└').unwrap()]);
        assert_eq!(columns::width(&ticks[..second]), corner + 1, "{drawn}");
    }

    #[test]
    fn degenerate_figures_do_not_panic() {
        for figures in [
            vec![],
            vec![(1.0, 0.0, 0.0)],
            vec![(0.0, 5.0, 5.0), (0.0, 5.0, 5.0)],
            vec![(1.0, f64::NAN, f64::INFINITY), (2.0, 1.0, 1.0)],
            vec![(-5.0, -1.0, 0.0), (1e300, 1e300, 1e-300)],
        ] {
            terminal(
                &Chart {
                    axis: "x".to_string(),
                    lines: vec![line("a", &figures, Some(0))],
                    latency_title: None,
                    mark_name: "knee",
                },
                80,
                true,
            );
        }
    }

    #[test]
    fn colours_do_not_change_the_text() {
        let mut chart = saturating();
        chart.lines.push(line("rw=write", &[(1.0, 5.0, 1.0), (8.0, 50.0, 2.0)], None));
        let coloured = terminal(&chart, 80, true);
        assert!(coloured.contains("\x1b[34m"));
        let mut plain = String::new();
        let mut rest = coloured.as_str();
        while let Some((before, escape)) = rest.split_once('\x1b') {
            plain.push_str(before);
            rest = escape.split_once('m').unwrap().1;
        }
        assert_eq!(plain + rest, terminal(&chart, 80, false));
    }
}
