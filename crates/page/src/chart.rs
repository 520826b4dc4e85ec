//! Line charts: lines on two axes, stalls as bands, a legend, and the figures as a table.
//!
//! Invariant: what a chart shows is in its table, too; lines differ in their dashes as well as in colour.

use std::fmt::Write;

use fiord_svg::{Anchor, Document, Element, Path};

use crate::axis::Axis;

/// A picture's size and margins in user units.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    pub width: f64,
    pub height: f64,
    pub left: f64,
    /// Labels on the x axis.
    pub x_labels: usize,
    /// The end of the picture's id.
    pub suffix: &'static str,
}

/// For the whole width of a page, for half of it, and for a phone's.
pub(crate) const BIG: Frame = Frame { width: 900.0, height: 290.0, left: 74.0, x_labels: 10, suffix: "w" };
pub(crate) const WIDE: Frame = Frame { width: 560.0, height: 220.0, left: 74.0, x_labels: 6, suffix: "w" };
pub(crate) const NARROW: Frame = Frame { width: 330.0, height: 210.0, left: 62.0, x_labels: 4, suffix: "n" };
const RIGHT: f64 = 14.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 40.0;

/// Lines that are told apart; further ones repeat the colours with other dashes.
pub(crate) const COLOURS: usize = 6;
/// The most lines of a chart.
pub(crate) const LINES_MAX: usize = 12;

/// One line.
#[derive(Clone, Debug, Default)]
pub(crate) struct Line {
    pub name: String,
    /// (x, y); a point without y is a gap.
    pub points: Vec<(f64, Option<f64>)>,
}

/// A chart and its table.
#[derive(Clone, Debug)]
pub(crate) struct Chart {
    pub id: String,
    pub title: String,
    /// What it shows, in a sentence.
    pub description: String,
    pub x_title: String,
    pub x: Axis,
    pub y: Axis,
    /// 1024 if y is in bytes.
    pub y_base: f64,
    pub x_text: fn(f64) -> String,
    pub y_text: fn(f64) -> String,
    /// Figures on the x axis to label, if not chosen by the axis.
    pub x_ticks: Option<Vec<f64>>,
    pub lines: Vec<Line>,
    /// From and to.
    pub bands: Vec<(f64, f64)>,
}

/// The width of a letter of a label, and what lies between a label and its axis.
const LETTER: f64 = 6.8;
pub(crate) const LABEL_GAP: f64 = 8.0;

impl Frame {
    /// The ends of the drawing area as shares of the picture's width.
    pub(crate) fn area(&self) -> (f64, f64) {
        (self.left / self.width, self.right() / self.width)
    }

    pub(crate) fn right(&self) -> f64 {
        self.width - RIGHT
    }

    pub(crate) fn bottom(&self) -> f64 {
        self.height - BOTTOM
    }

    pub(crate) fn column(&self, share: f64) -> f64 {
        self.left + share * (self.right() - self.left)
    }

    pub(crate) fn row(&self, share: f64) -> f64 {
        TOP + (1.0 - share) * (self.bottom() - TOP)
    }

    /// Grid and labels of both axes.
    pub(crate) fn axes(&self, svg: &mut Document, y: &[(f64, String)], x: &[(f64, String)], x_title: &str) {
        for (share, label) in y {
            let row = self.row(*share);
            svg.add(Element::line((self.left, row), (self.right(), row)).class("grid"));
            svg.add(Element::text((self.left - LABEL_GAP, row + 4.0), Anchor::End, label));
        }
        let bottom = self.bottom();
        svg.add(Element::line((self.left, bottom), (self.right(), bottom)).class("axis"));
        let mut free_from = f64::NEG_INFINITY;
        for (share, label) in x {
            let column = self.column(*share);
            let half = label.chars().count() as f64 * LETTER / 2.0;
            svg.add(Element::line((column, bottom), (column, bottom + 4.0)).class("axis"));
            // A label at either end stays inside the picture.
            let at = column.min(self.width - half - 1.0).max(half + 1.0);
            if at - half >= free_from {
                svg.add(Element::text((at, bottom + 17.0), Anchor::Middle, label));
                free_from = at + half + 8.0;
            }
        }
        let middle = f64::midpoint(self.left, self.right());
        svg.add(Element::text((middle, bottom + 34.0), Anchor::Middle, x_title).class("axis-title"));
    }
}

impl Chart {
    /// The picture.
    pub(crate) fn draw(&self, frame: &Frame) -> String {
        let frame = &self.fitted(frame);
        let id = format!("{}-{}", self.id, frame.suffix);
        let mut svg = Document::inline((frame.width, frame.height), &id, &self.title, &self.description);
        for (from, to) in &self.bands {
            let (left, right) = (frame.column(self.x.share(*from)), frame.column(self.x.share(*to)));
            let size = ((right - left).max(2.0), frame.bottom() - TOP);
            svg.add(Element::rectangle((left, TOP), size).class("stall"));
        }
        let y: Vec<(f64, String)> = self.y_labels().collect();
        let x = self.x_ticks.clone().unwrap_or_else(|| self.x.ticks(frame.x_labels, 1000.0)).into_iter();
        let x: Vec<(f64, String)> = x.map(|tick| (self.x.share(tick), (self.x_text)(tick))).collect();
        frame.axes(&mut svg, &y, &x, &self.x_title);
        for (number, line) in self.lines.iter().enumerate().take(LINES_MAX) {
            self.line(frame, number, line, &mut svg);
        }
        svg.finish()
    }

    fn line(&self, frame: &Frame, number: usize, line: &Line, svg: &mut Document) {
        let class =
            format!("s{} l{number}{}", number % COLOURS, if number >= COLOURS { " dashed" } else { "" });
        let at = |(x, y): (f64, f64)| (frame.column(self.x.share(x)), frame.row(self.y.share(y)));
        for run in line.points.split(|(_, y)| y.is_none_or(|y| !y.is_finite())).filter(|run| !run.is_empty())
        {
            let points: Vec<(f64, f64)> = run.iter().filter_map(|(x, y)| Some(at((*x, (*y)?)))).collect();
            match points.as_slice() {
                [only] => svg.add(Element::circle(*only, 3.0).class(&format!("dot {class}"))),
                _ => svg.add(Element::polyline(points).class(&format!("line {class}"))),
            }
        }
    }

    /// Names of the lines, with the numbers of their colours.
    pub(crate) fn legend(&self) -> Vec<(String, usize)> {
        self.lines
            .iter()
            .take(LINES_MAX)
            .enumerate()
            .map(|(number, line)| (line.name.clone(), number))
            .collect()
    }

    /// The rows of the table: x as text and as a share of the axis, and the figure of each line.
    pub(crate) fn rows(&self) -> Vec<(String, String, Vec<String>)> {
        let lines = &self.lines[..self.lines.len().min(LINES_MAX)];
        let are_one = |one: f64, other: f64| (one - other).abs() < 1e-6;
        let mut xs: Vec<f64> = lines.iter().flat_map(|line| &line.points).map(|(x, _)| *x).collect();
        xs.sort_unstable_by(f64::total_cmp);
        xs.dedup_by(|next, kept| are_one(*next, *kept));
        let row = |x: &f64| {
            let figure = |line: &Line| {
                let near = line.points.iter().find(|point| are_one(point.0, *x));
                near.and_then(|point| point.1).map_or_else(|| "–".to_string(), self.y_text)
            };
            let mut share = String::new();
            // Writing to a String cannot fail.
            let _ = write!(share, "{:.4}", self.x.share(*x));
            ((self.x_text)(*x), share, lines.iter().map(figure).collect())
        };
        xs.iter().map(row).collect()
    }

    /// Whether there is anything to show.
    pub(crate) fn is_empty(&self) -> bool {
        self.lines.iter().all(|line| line.points.iter().all(|(_, y)| y.is_none()))
    }

    fn y_labels(&self) -> impl Iterator<Item = (f64, String)> + '_ {
        let ticks = self.y.ticks(4, self.y_base).into_iter();
        ticks.map(|tick| (self.y.share(tick), (self.y_text)(tick)))
    }

    /// The frame with room for the longest label at its left.
    fn fitted(&self, frame: &Frame) -> Frame {
        let longest = self.y_labels().map(|(_, label)| label.chars().count()).max().unwrap_or(0);
        Frame { left: frame.left.max(longest as f64 * LETTER + LABEL_GAP + 1.0), ..*frame }
    }

    /// The ends of the drawing area as shares of the picture's width.
    pub(crate) fn area(&self, frame: &Frame) -> (f64, f64) {
        self.fitted(frame).area()
    }
}

/// A rectangle as a part of a path.
pub(crate) fn cell(path: Path, (x, y): (f64, f64), (width, height): (f64, f64)) -> Path {
    path.move_to((x, y)).horizontal_to(x + width).vertical_to(y + height).horizontal_to(x).close()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures;

    fn chart(lines: Vec<Line>) -> Chart {
        Chart {
            id: "c".to_string(),
            title: "A <chart>".to_string(),
            description: "d".to_string(),
            x_title: "Time".to_string(),
            x: Axis::linear(0.0, 10.0),
            y: Axis::from_zero([0.0, 40.0].into_iter(), 1000.0),
            y_base: 1000.0,
            x_text: figures::seconds,
            y_text: figures::count,
            x_ticks: None,
            lines,
            bands: vec![(2.0, 3.0)],
        }
    }

    /// The left ends of the labels of the y axis.
    #[test]
    fn no_label_leaves_the_picture() {
        let chart = Chart {
            y: Axis::from_zero([0.0, 1.3e9].into_iter(), 1024.0),
            y_base: 1024.0,
            y_text: |bytes| format!("{}/s", figures::size(bytes)),
            ..chart(vec![Line { name: "read".to_string(), points: vec![(0.0, Some(1.3e9))] }])
        };
        for frame in [WIDE, NARROW] {
            let fitted = chart.fitted(&frame);
            for (_, label) in chart.y_labels() {
                let start = fitted.left - LABEL_GAP - label.chars().count() as f64 * LETTER;
                assert!(start >= 0.0, "{label} begins at {start}");
            }
            assert_eq!(chart.area(&frame).0, fitted.left / frame.width, "the cursor is where the lines are");
        }
        assert!(chart.fitted(&NARROW).left > NARROW.left, "{:?}", chart.y_labels().collect::<Vec<_>>());
    }

    #[test]
    fn lines_have_gaps_and_tables_have_all_figures() {
        let points = vec![(0.0, Some(10.0)), (1.0, Some(20.0)), (2.0, None), (3.0, Some(40.0))];
        let chart = chart(vec![Line { name: "read".to_string(), points }]);
        let svg = chart.draw(&WIDE);
        assert_eq!((svg.matches("<polyline").count(), svg.matches("<circle").count()), (1, 1));
        assert!(svg.contains("A &lt;chart&gt;") && svg.contains("class=\"stall\""), "{svg}");
        let rows = chart.rows();
        assert_eq!(rows.len(), 4);
        assert_eq!(
            (rows[1].0.as_str(), rows[1].1.as_str(), rows[1].2[0].as_str()),
            ("1\u{a0}s", "0.1000", "20")
        );
        assert_eq!(rows[2].2[0], "–");
        assert!(!chart.is_empty());
    }

    #[test]
    fn a_table_has_the_figures_of_lines_that_share_no_moment() {
        let line = |name: &str, points: &[(f64, f64)]| Line {
            name: name.to_string(),
            points: points.iter().map(|(x, y)| (*x, Some(*y))).collect(),
        };
        let rows = chart(vec![line("a", &[(1.0, 10.0), (2.0, 20.0)]), line("b", &[(3.0, 30.0)])]).rows();
        let figures: Vec<Vec<String>> = rows.into_iter().map(|(_, _, figures)| figures).collect();
        assert_eq!(figures, [["10", "–"], ["20", "–"], ["–", "30"]]);
    }
}
