//! Throughput and latency against a swept value, as a picture in SVG.
//!
//! Invariant: the file needs nothing beside itself, and carries its own background, so that it can be read anywhere.

use std::fmt::Write;

use crate::chart::scale::{self, Scale};
use crate::chart::{Chart, Figure, Line, PANELS, Point};

/// Size of the picture, without the legend.
const WIDTH: f64 = 800.0;
const PANEL_HEIGHT: f64 = 230.0;
const LEFT: f64 = 76.0;
const RIGHT: f64 = 24.0;
/// Above each panel, for its title; below each, for its labels.
const ABOVE: f64 = 36.0;
const BELOW: f64 = 48.0;
const LEGEND_LINE: f64 = 20.0;

/// Colours that people who confuse some still tell apart (Okabe and Ito), but for the yellow.
const COLOURS: [&str; 6] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00"];

/// Dashes that tell lines apart where colours do not, once all of them are used.
const DASHES: [&str; 3] = ["none", "8 4", "2 4"];

/// The viewer's preference for dark is followed; the background goes with it.
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
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
         height=\"{height}\" role=\"img\">\n<title>{} against {}</title>\n<style>\n{STYLE}\n</style>\n\
         <rect class=\"back\" width=\"100%\" height=\"100%\"/>\n",
        "Throughput and latency",
        escaped(&chart.axis),
    );
    for (number, panel) in PANELS.into_iter().enumerate() {
        let top = ABOVE + number as f64 * (ABOVE + PANEL_HEIGHT + BELOW);
        Panel::new(chart, panel, top).draw(&mut svg);
    }
    legend(chart, height - legend_height, &mut svg);
    svg + "</svg>\n"
}

/// One of the two pictures.
struct Panel<'a> {
    chart: &'a Chart,
    title: &'a str,
    figure: Figure,
    x: Scale,
    y: Scale,
    top: f64,
}

impl<'a> Panel<'a> {
    fn new(chart: &'a Chart, (title, figure, from_zero): (&'a str, Figure, bool), top: f64) -> Panel<'a> {
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

    fn draw(&self, svg: &mut String) {
        // Writing to a String cannot fail.
        let _ = writeln!(
            svg,
            "<text class=\"title\" x=\"{LEFT}\" y=\"{:.1}\">{}{}</text>",
            self.top - 14.0,
            escaped(self.title),
            self.y.remark()
        );
        self.axes(svg);
        for (number, line) in self.chart.lines.iter().enumerate() {
            self.line(line, number, svg);
        }
        for (number, line) in self.chart.lines.iter().enumerate() {
            self.knee(line, number, svg);
        }
    }

    fn axes(&self, svg: &mut String) {
        let (right, bottom) = (WIDTH - RIGHT, self.top + PANEL_HEIGHT);
        for tick in self.y.ticks(4) {
            let row = self.row(tick);
            let _ = writeln!(
                svg,
                "<path class=\"grid\" d=\"M{LEFT} {row:.1}H{right}\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                LEFT - 8.0,
                row + 4.5,
                scale::figure(tick)
            );
        }
        let mut free_from = f64::NEG_INFINITY;
        for (value, label) in self.chart.ticks() {
            let column = self.column(value);
            let _ = write!(svg, "<path class=\"axis\" d=\"M{column:.1} {bottom}v5\"/>");
            let half = label.chars().count() as f64 * 4.0;
            if column - half >= free_from {
                let _ = write!(
                    svg,
                    "<text x=\"{column:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                    bottom + 19.0,
                    escaped(label)
                );
                free_from = column + half + 6.0;
            }
            svg.push('\n');
        }
        let _ = writeln!(
            svg,
            "<path class=\"axis\" fill=\"none\" d=\"M{LEFT} {:.1}V{bottom}H{right}\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            self.top,
            f64::midpoint(LEFT, right),
            bottom + 37.0,
            escaped(&self.chart.axis)
        );
    }

    fn line(&self, line: &Line, number: usize, svg: &mut String) {
        let places: Vec<String> =
            line.points.iter().map(|point| self.at(point)).map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let _ = writeln!(svg, "<polyline fill=\"none\" {} points=\"{}\"/>", stroke(number), places.join(" "));
        for point in &line.points {
            let ((x, y), colour) = (self.at(point), COLOURS[number % COLOURS.len()]);
            let _ = writeln!(
                svg,
                "<circle class=\"mark\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\" fill=\"{colour}\">\
                 <title>{} {}: {} MiB/s, {} ms</title></circle>",
                escaped(&line.name),
                escaped(&point.label),
                scale::figure(point.mib_per_s),
                scale::figure(point.latency_ms)
            );
        }
    }

    /// A line down to the value of the knee, and a diamond.
    fn knee(&self, line: &Line, number: usize, svg: &mut String) {
        let Some(point) = line.knee.and_then(|knee| line.points.get(knee)) else { return };
        let ((x, y), colour) = (self.at(point), COLOURS[number % COLOURS.len()]);
        let bottom = self.top + PANEL_HEIGHT;
        let (anchor, beside) = if x > WIDTH / 2.0 { ("end", -10.0) } else { ("start", 10.0) };
        let _ = writeln!(
            svg,
            "<path stroke=\"{colour}\" stroke-dasharray=\"3 3\" d=\"M{x:.1} {y:.1}V{bottom}\"/>\
             <path class=\"mark\" fill=\"{colour}\" d=\"M{x:.1} {:.1}l8 8l-8 8l-8 -8z\"/>\
             <text class=\"knee\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">knee {}</text>",
            y - 8.0,
            x + beside,
            // Labels of several lines do not lie upon each other.
            bottom - 8.0 - 15.0 * number as f64,
            escaped(&point.label)
        );
    }
}

fn stroke(number: usize) -> String {
    let dashes = DASHES[number / COLOURS.len() % DASHES.len()];
    format!("stroke=\"{}\" stroke-width=\"2\" stroke-dasharray=\"{dashes}\"", COLOURS[number % COLOURS.len()])
}

fn legend(chart: &Chart, top: f64, svg: &mut String) {
    let named = chart.lines.iter().enumerate().filter(|(_, line)| !line.name.is_empty());
    for (row, (number, line)) in named.enumerate() {
        let y = top + row as f64 * LEGEND_LINE;
        let _ = writeln!(
            svg,
            "<path {} d=\"M{LEFT} {y:.1}h28\"/><text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            stroke(number),
            LEFT + 36.0,
            y + 4.5,
            escaped(&line.name)
        );
    }
}

/// Text as XML holds it.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            c if c.is_control() => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
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
        Chart { axis: "Threads".to_string(), lines: names.iter().map(line).collect() }
    }

    #[test]
    fn one_line_a_combination_and_its_knee_in_both_panels() {
        let svg = draw(&chart(&["rw=read", "rw=write"]));
        assert_eq!(svg.matches("<polyline").count(), 4);
        assert_eq!(svg.matches(">knee 8<").count(), 4);
        for text in ["Throughput, MiB/s", "Mean latency, ms", ">Threads<", ">rw=read<", ">128<"] {
            assert!(svg.contains(text), "{text}");
        }
    }

    #[test]
    fn it_needs_nothing_beside_itself() {
        let svg = draw(&chart(&[""]));
        assert_eq!(svg.matches("http").count(), 1, "the name space alone");
        assert!(!svg.contains("url(") && !svg.contains("href"));
    }

    #[test]
    fn names_cannot_break_it() {
        let svg = draw(&chart(&["filename=<a&\"b\">\n"]));
        assert!(svg.contains("filename=&lt;a&amp;&quot;b&quot;&gt; "), "{svg}");
        assert_eq!(svg.matches("<svg").count(), svg.matches("</svg>").count());
    }

    #[test]
    fn no_figure_is_drawn_outside() {
        let mut chart = chart(&["a"]);
        chart.lines[0].points[2].latency_ms = f64::NAN;
        chart.lines[0].points[3].mib_per_s = f64::INFINITY;
        let svg = draw(&chart);
        assert!(!svg.contains("points=\"NaN") && !svg.contains(",NaN") && !svg.contains("inf\""), "{svg}");
    }
}
