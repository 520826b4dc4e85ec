//! Throughput and latency against a swept value, as a picture in SVG.
//!
//! Invariant: the file refers to no other and has a background of its own, so that any viewer can show it.

use fiord_report::columns;
use fiord_svg::{Anchor, Document, Element, Path};

use crate::chart::scale::{self, Scale};
use crate::chart::{Chart, Line, Point, PointFigure};

/// Size of the picture, without the legend.
const WIDTH: f64 = 800.0;
const PANEL_HEIGHT: f64 = 230.0;
const LEFT: f64 = 76.0;
const RIGHT: f64 = 24.0;
/// Above each panel, for its title; below each, for its labels.
const ABOVE: f64 = 36.0;
const BELOW: f64 = 48.0;
const LEGEND_LINE: f64 = 20.0;

/// The colour-blind-safe palette of Okabe and Ito, without its yellow.
const COLOURS: [&str; 6] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00"];

/// Dashes that distinguish lines once all colours are used.
const DASHES: [&str; 3] = ["none", "8 4", "2 4"];

/// Colours, including the background, follow the viewer's preference for dark mode.
const STYLE: &str = "\
svg { font: 13px system-ui, sans-serif }
.back { fill: #ffffff } text { fill: #222222 } .title { font-weight: 600 }
.grid { stroke: #dddddd } .axis { stroke: #888888 } .mark { stroke: #ffffff }
.knee { paint-order: stroke; stroke: #ffffff; stroke-width: 4px }
@media (prefers-color-scheme: dark) {
.back { fill: #16181d } text { fill: #dddddd } .grid { stroke: #33363d } .mark, .knee { stroke: #16181d }
}";

/// Draws the chart.
pub fn draw(chart: &Chart) -> String {
    let named = chart.lines.iter().filter(|line| !line.name.is_empty()).count();
    let legend_height = if named > 0 { named as f64 * LEGEND_LINE + 12.0 } else { 0.0 };
    let height = 2.0 * (ABOVE + PANEL_HEIGHT + BELOW) + legend_height;
    let title = format!("Throughput and latency against {}", chart.axis);
    let mut svg = Document::new((WIDTH, height), &title, STYLE);
    svg.add(Element::rectangle((0.0, 0.0), (WIDTH, height)).class("back"));
    for (number, panel) in chart.panels().into_iter().enumerate() {
        let top = ABOVE + number as f64 * (ABOVE + PANEL_HEIGHT + BELOW);
        Panel::new(chart, panel, top).draw(&mut svg);
    }
    legend(chart, height - legend_height, &mut svg);
    svg.finish()
}

/// One of the two panels.
struct Panel<'a> {
    chart: &'a Chart,
    title: &'a str,
    figure: PointFigure,
    x: Scale,
    y: Scale,
    top: f64,
}

impl<'a> Panel<'a> {
    fn new(
        chart: &'a Chart,
        (title, figure, from_zero): (&'a str, PointFigure, bool),
        top: f64,
    ) -> Panel<'a> {
        let x = Scale::of_axis(chart.points().map(|point| point.x));
        let y = Scale::of(chart.points().map(figure), from_zero);
        Panel { chart, title, figure, x, y, top }
    }

    fn at(&self, point: &Point) -> (f64, f64) {
        (self.column(point.x), self.row((self.figure)(point)))
    }

    fn column(&self, x: f64) -> f64 {
        LEFT + self.x.share(x) * (WIDTH - LEFT - RIGHT)
    }

    fn row(&self, y: f64) -> f64 {
        self.top + (1.0 - self.y.share(y)) * PANEL_HEIGHT
    }

    fn bottom(&self) -> f64 {
        self.top + PANEL_HEIGHT
    }

    fn draw(&self, svg: &mut Document) {
        let title = format!("{}{}", self.title, self.y.remark());
        svg.add(Element::text((LEFT, self.top - 14.0), Anchor::Start, &title).class("title"));
        self.y_axis(svg);
        self.x_axis(svg);
        for (number, line) in self.chart.lines.iter().enumerate() {
            self.line(line, number, svg);
        }
        for (number, line) in self.chart.lines.iter().enumerate() {
            self.knee(line, number, svg);
        }
    }

    fn y_axis(&self, svg: &mut Document) {
        for tick in self.y.ticks(4) {
            let row = self.row(tick);
            let grid = Path::from((LEFT, row)).horizontal_to(WIDTH - RIGHT);
            svg.add(Element::path(&grid).class("grid"));
            svg.add(Element::text((LEFT - 8.0, row + 4.5), Anchor::End, &scale::figure(tick)));
        }
    }

    fn x_axis(&self, svg: &mut Document) {
        let (right, bottom) = (WIDTH - RIGHT, self.bottom());
        let mut free_from = f64::NEG_INFINITY;
        for (value, label) in self.chart.ticks() {
            let column = self.column(value);
            let tick = Path::from((column, bottom)).vertical_to(bottom + 5.0);
            svg.add(Element::path(&tick).class("axis"));
            let half = columns::width(label) as f64 * 4.0;
            if column - half >= free_from {
                svg.add(Element::text((column, bottom + 19.0), Anchor::Middle, label));
                free_from = column + half + 6.0;
            }
        }
        let axes = Path::from((LEFT, self.top)).vertical_to(bottom).horizontal_to(right);
        svg.add(Element::path(&axes).class("axis").set("fill", "none"));
        let middle = (f64::midpoint(LEFT, right), bottom + 37.0);
        svg.add(Element::text(middle, Anchor::Middle, &self.chart.axis));
    }

    fn line(&self, line: &Line, number: usize, svg: &mut Document) {
        svg.add(stroked(Element::polyline(line.points.iter().map(|point| self.at(point))), number));
        for point in &line.points {
            let figures = format!(
                "{} {}: {} MiB/s, {} ms",
                line.name,
                point.label,
                scale::figure(point.mib_per_s),
                scale::figure(point.latency_ms)
            );
            let mark = Element::circle(self.at(point), 4.0).class("mark").set("fill", colour(number));
            svg.add(mark.tooltip(&figures));
        }
    }

    /// A line down to the value of the knee, and a diamond.
    fn knee(&self, line: &Line, number: usize, svg: &mut Document) {
        let Some(point) = line.knee.and_then(|knee| line.points.get(knee)) else { return };
        let (x, y) = self.at(point);
        let down = Element::path(&Path::from((x, y)).vertical_to(self.bottom()));
        svg.add(down.set("stroke", colour(number)).set("stroke-dasharray", "3 3"));
        let diamond = Path::from((x, y - 8.0)).line_by((8.0, 8.0)).line_by((-8.0, 8.0)).line_by((-8.0, -8.0));
        svg.add(Element::path(&diamond.close()).class("mark").set("fill", colour(number)));
        let (anchor, beside) = if x > WIDTH / 2.0 { (Anchor::End, -10.0) } else { (Anchor::Start, 10.0) };
        // Labels of several lines do not overlap.
        let base = self.bottom() - 8.0 - 15.0 * number as f64;
        let label =
            Element::text((x + beside, base), anchor, &format!("{} {}", self.chart.mark_name, point.label));
        svg.add(label.class("knee"));
    }
}

fn colour(number: usize) -> &'static str {
    COLOURS[number % COLOURS.len()]
}

/// An element drawn as the line of this number.
fn stroked(element: Element, number: usize) -> Element {
    let dashes = DASHES[number / COLOURS.len() % DASHES.len()];
    element.set("stroke", colour(number)).set("stroke-width", "2").set("stroke-dasharray", dashes)
}

fn legend(chart: &Chart, top: f64, svg: &mut Document) {
    let named = chart.lines.iter().enumerate().filter(|(_, line)| !line.name.is_empty());
    for (row, (number, line)) in named.enumerate() {
        let y = top + row as f64 * LEGEND_LINE;
        svg.add(stroked(Element::path(&Path::from((LEFT, y)).horizontal_to(LEFT + 28.0)), number));
        svg.add(Element::text((LEFT + 36.0, y + 4.5), Anchor::Start, &line.name));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(names: &[&str]) -> Chart {
        let point = |power: u32| Point {
            x: f64::from(1 << power),
            label: (1 << power).to_string(),
            mib_per_s: f64::from(20 << power.min(3)),
            latency_ms: f64::from(1 << power),
        };
        let line = |name: &&str| Line {
            name: (*name).to_string(),
            points: (0..8).map(point).collect(),
            knee: Some(3),
        };
        Chart {
            axis: "Threads".to_string(),
            lines: names.iter().map(line).collect(),
            latency_title: None,
            mark_name: "knee",
        }
    }

    #[test]
    fn each_combination_has_a_line_and_a_knee_in_both_panels() {
        let svg = draw(&chart(&["rw=read", "rw=write"]));
        assert_eq!(svg.matches("<polyline").count(), 4);
        assert_eq!(svg.matches(">knee 8<").count(), 4);
        for text in ["Throughput, MiB/s", "Mean latency, ms", ">Threads<", ">rw=read<", ">128<"] {
            assert!(svg.contains(text), "{text}");
        }
    }

    /// The values of an attribute in all elements of a kind, in drawing order.
    fn attributes<'s>(svg: &'s str, element: &str, name: &str) -> Vec<&'s str> {
        let (start, value) = (format!("<{element} "), format!("{name}=\""));
        let elements = svg.split(&start).skip(1);
        elements.filter_map(|rest| rest.split_once(&value)?.1.split('"').next()).collect()
    }

    #[test]
    fn points_are_drawn_at_their_figures_in_both_panels() {
        let point = |x: f64, mib_per_s, latency_ms| Point { x, label: x.to_string(), mib_per_s, latency_ms };
        let points = vec![point(1.0, 10.0, 4.0), point(2.0, 20.0, 1.0), point(4.0, 40.0, 2.0)];
        let line = Line { name: "a".to_string(), points, knee: Some(1) };
        let svg = draw(&Chart {
            axis: "Threads".to_string(),
            lines: vec![line],
            latency_title: None,
            mark_name: "knee",
        });
        // From 1 to 4 over 700 units; 0 to 40 MiB/s, and 0 to 4 ms, over 230 each.
        assert_eq!(attributes(&svg, "circle", "cx"), ["76", "309.3", "776", "76", "309.3", "776"]);
        assert_eq!(attributes(&svg, "circle", "cy"), ["208.5", "151", "36", "350", "522.5", "465"]);
        let lines = ["76,208.5 309.3,151 776,36", "76,350 309.3,522.5 776,465"];
        assert_eq!(attributes(&svg, "polyline", "points"), lines);
        for knee in ["M309.3 151V266", "M309.3 522.5V580"] {
            assert!(svg.contains(knee), "{knee}: {svg}");
        }
    }

    #[test]
    fn axis_labels_are_at_their_figures() {
        let svg = draw(&chart(&[""]));
        for label in [
            // 0 to 160 MiB/s: 80 would be at half the height. 1 and 128 threads are at the ends.
            "<text x=\"68\" y=\"270.5\" text-anchor=\"end\">0</text>",
            "<text x=\"68\" y=\"155.5\" text-anchor=\"end\">100</text>",
            "<text x=\"76\" y=\"285\" text-anchor=\"middle\">1</text>",
            "<text x=\"776\" y=\"285\" text-anchor=\"middle\">128</text>",
            "<text x=\"426\" y=\"303\" text-anchor=\"middle\">Threads</text>",
            "<text x=\"426\" y=\"617\" text-anchor=\"middle\">Threads</text>",
        ] {
            assert!(svg.contains(label), "{label}: {svg}");
        }
    }

    #[test]
    fn the_file_refers_to_no_other() {
        let svg = draw(&chart(&[""]));
        assert_eq!(svg.matches("http").count(), 1, "only the namespace");
        assert!(!svg.contains("url(") && !svg.contains("href"));
    }

    #[test]
    fn names_are_escaped() {
        let svg = draw(&chart(&["filename=<a&\"b\">\n"]));
        assert!(svg.contains("filename=&lt;a&amp;&quot;b&quot;&gt; "), "{svg}");
        assert_eq!(svg.matches("<svg").count(), svg.matches("</svg>").count());
    }

    #[test]
    fn figures_that_are_not_finite_are_not_drawn() {
        let mut chart = chart(&["a"]);
        chart.lines[0].points[2].latency_ms = f64::NAN;
        chart.lines[0].points[3].mib_per_s = f64::INFINITY;
        let svg = draw(&chart);
        assert!(!svg.contains("points=\"NaN") && !svg.contains(",NaN") && !svg.contains("inf\""), "{svg}");
    }
}
