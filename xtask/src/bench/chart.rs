//! The table as a picture: how many times less overhead, on a logarithmic axis.
//!
//! Invariant: right is better in every row, whether a claim is of more I/Os or of less time and memory; the picture has
//! its own background, so that it can be read on any page.

use std::fmt::Write;

use super::result::{Ending, Line, Ratio};
use super::rows::Target;
use super::table::ratio_text;

const WIDTH: f64 = 800.0;
const AXIS_LEFT: f64 = 190.0;
const AXIS_RIGHT: f64 = 730.0;
const TOP: f64 = 64.0;
const ROW_HEIGHT: f64 = 22.0;

const STYLE: &str = "\
<style>
text { font: 12px system-ui, sans-serif; fill: #24292f }
.paper { fill: #ffffff } .title { font-size: 14px; font-weight: 600 }
.held { fill: #4c8fd6 } .missed { fill: #d9822b }
.grid { stroke: #d0d7de } .even { stroke: #57606a } .whisker { stroke: #24292f; stroke-width: 1.5 }
.target { fill: #b3261e }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 } .paper { fill: #0d1117 } .grid { stroke: #30363d } .even { stroke: #8b949e }
.whisker { stroke: #e6edf3 } .target { fill: #ff8a80 }
}
</style>
";

/// One bar: everything as `times better than the other`.
struct Bar<'a> {
    line: &'a Line,
    median: f64,
    lowest: f64,
    highest: f64,
    target: f64,
}

impl Bar<'_> {
    fn of(line: &Line) -> Option<Bar<'_>> {
        let Ending::Measured { ratio: Some(Ratio { median, lowest, highest }), .. } = line.ending else {
            return None;
        };
        match line.target {
            Target::AtLeast(target) => Some(Bar { line, median, lowest, highest, target }),
            Target::AtMost(target) => Some(Bar {
                line,
                median: 1.0 / median,
                lowest: 1.0 / highest,
                highest: 1.0 / lowest,
                target: 1.0 / target,
            }),
            Target::Runs => None,
        }
    }
}

/// The axis: from the power of ten below everything to the one above.
struct Axis {
    low: f64,
    high: f64,
}

impl Axis {
    fn over(bars: &[Bar<'_>]) -> Axis {
        let all = bars.iter().flat_map(|bar| [bar.lowest, bar.highest, bar.target]);
        // Half of what fio does is as far left as a bar usually goes.
        let (low, high) =
            all.fold((0.5_f64, 10.0_f64), |(low, high), value| (low.min(value), high.max(value)));
        Axis { low: low * 0.9, high: high * 1.1 }
    }

    fn x(&self, value: f64) -> f64 {
        let share = (value / self.low).ln() / (self.high / self.low).ln();
        AXIS_LEFT + share * (AXIS_RIGHT - AXIS_LEFT)
    }

    fn ticks(&self) -> impl Iterator<Item = f64> + '_ {
        let steps = [0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0];
        steps.into_iter().filter(|tick| (self.low..=self.high).contains(tick))
    }
}

/// The picture of all lines that have a ratio.
pub fn svg(title: &str, lines: &[Line]) -> String {
    let bars: Vec<Bar<'_>> = lines.iter().filter_map(Bar::of).collect();
    let axis = Axis::over(&bars);
    let bottom = TOP + ROW_HEIGHT * bars.len() as f64;
    let height = bottom + 34.0;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\">\n\
         <title>{0}</title>\n{STYLE}<rect class=\"paper\" width=\"{WIDTH}\" height=\"{height}\" rx=\"6\"/>\n\
         <text class=\"title\" x=\"16\" y=\"24\">{0}</text>\n",
        escaped(title)
    );
    legend(&mut out);
    grid(&mut out, &axis, bottom);
    for (index, bar) in bars.iter().enumerate() {
        draw(&mut out, bar, &axis, TOP + ROW_HEIGHT * index as f64);
    }
    out + "</svg>\n"
}

fn legend(out: &mut String) {
    let y = 42.0;
    let entries = [("held", "target held"), ("missed", "target missed")];
    for ((class, text), x) in entries.into_iter().zip([16.0, 116.0]) {
        add(
            out,
            format_args!("<rect class=\"{class}\" x=\"{x}\" y=\"{}\" width=\"12\" height=\"10\"/>", y - 9.0),
        );
        add(out, format_args!("<text x=\"{}\" y=\"{y}\">{text}</text>", x + 18.0));
    }
    target_mark(out, 238.0, y - 10.0);
    add(out, format_args!("<text x=\"250\" y=\"{y}\">target</text>"));
    add(
        out,
        format_args!("<path class=\"whisker\" d=\"M304 {0}h20m-20 -4v8m20 -8v8\" fill=\"none\"/>", y - 4.0),
    );
    add(out, format_args!("<text x=\"332\" y=\"{y}\">lowest and highest pair</text>"));
}

fn grid(out: &mut String, axis: &Axis, bottom: f64) {
    for tick in axis.ticks() {
        let (x, class) = (axis.x(tick), if tick == 1.0 { "even" } else { "grid" });
        add(
            out,
            format_args!(
                "<line class=\"{class}\" x1=\"{x:.1}\" y1=\"{TOP}\" x2=\"{x:.1}\" y2=\"{bottom}\"/>"
            ),
        );
        add(
            out,
            format_args!("<text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{tick}×</text>", bottom + 16.0),
        );
    }
}

fn draw(out: &mut String, bar: &Bar<'_>, axis: &Axis, top: f64) {
    let (even, median) = (axis.x(1.0), axis.x(bar.median));
    let (left, width) = (even.min(median), (even - median).abs());
    let (middle, base) = (top + ROW_HEIGHT / 2.0, top + ROW_HEIGHT / 2.0 + 4.0);
    let class = bar.line.verdict();
    add(
        out,
        format_args!(
            "<text x=\"{}\" y=\"{base}\" text-anchor=\"end\">{}</text>",
            AXIS_LEFT - 10.0,
            escaped(&bar.line.case)
        ),
    );
    add(
        out,
        format_args!(
            "<rect class=\"{class}\" x=\"{left:.1}\" y=\"{}\" width=\"{width:.1}\" height=\"12\"/>",
            middle - 6.0
        ),
    );
    let (lowest, highest) = (axis.x(bar.lowest), axis.x(bar.highest));
    add(
        out,
        format_args!(
            "<path class=\"whisker\" d=\"M{lowest:.1} {middle}H{highest:.1}M{lowest:.1} {0}v8M{highest:.1} {0}v8\" \
             fill=\"none\"/>",
            middle - 4.0
        ),
    );
    target_mark(out, axis.x(bar.target), top + 1.0);
    add(
        out,
        format_args!("<text x=\"{}\" y=\"{base}\">{}×</text>", AXIS_RIGHT + 14.0, ratio_text(bar.median)),
    );
}

/// A triangle that points down at where the bar is meant to reach.
fn target_mark(out: &mut String, x: f64, top: f64) {
    add(out, format_args!("<path class=\"target\" d=\"M{:.1} {top}h8l-4 7z\"/>", x - 4.0));
}

fn add(out: &mut String, element: std::fmt::Arguments<'_>) {
    // Writing to a String does not fail.
    let _ = writeln!(out, "{element}");
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::super::result::{lines, testing};
    use super::super::rows::Metric;
    use super::*;

    fn one(case: &str, metric: Metric, target: &str, pairs: &[(Option<f64>, f64)]) -> Line {
        lines(&testing::row(case, metric, target, pairs)).unwrap().remove(0)
    }

    #[test]
    fn less_time_is_drawn_as_more() {
        let line = one("a", Metric::Time, "<=0.5", &[(Some(4.0), 1.0), (Some(8.0), 1.0), (Some(4.0), 2.0)]);
        let bar = Bar::of(&line).unwrap();
        assert_eq!([bar.median, bar.lowest, bar.highest, bar.target], [4.0, 2.0, 8.0, 2.0]);
    }

    #[test]
    fn every_mark_lies_on_the_axis() {
        let far = one("a", Metric::Iops, ">=10", &[(Some(1.0), 0.2), (Some(1.0), 300.0)]);
        let axis = Axis::over(&[Bar::of(&far).unwrap()]);
        for value in [0.2, 1.0, 10.0, 300.0] {
            assert!((AXIS_LEFT..=AXIS_RIGHT).contains(&axis.x(value)), "{value}");
        }
        assert!(axis.ticks().any(|tick| tick == 1.0));
    }

    #[test]
    fn a_bar_is_drawn_for_each_ratio_and_nothing_else() {
        let lines = [
            one("a <b>", Metric::Iops, ">=1.3", &[(Some(1.0), 1.2)]),
            one("c", Metric::Iops, ">=1.3", &[(Some(1.0), 1.4)]),
            one("refused", Metric::Time, "runs", &[(None, 1.0)]),
        ];
        let text = svg("x & y", &lines);
        assert!(text.contains("<title>x &amp; y</title>") && text.contains("a &lt;b&gt;"));
        assert!(!text.contains("refused"));
        // One in the legend each, one bar each.
        assert_eq!(text.matches("class=\"held\"").count(), 2);
        assert_eq!(text.matches("class=\"missed\"").count(), 2);
        assert!(text.starts_with("<svg ") && text.ends_with("</svg>\n"));
    }
}
