//! The table as a chart of overhead ratios, on a logarithmic axis.
//!
//! Invariant: right is better in every row, whether a claim is about more I/Os or about less time and memory; the
//! picture has its own background, so that it can be read on any page.

use fiord_svg::{Anchor, Document, Element, Path};

use super::result::{Line, LineResult, Ratio};
use super::rows::Target;
use super::table::ratio_text;

const WIDTH: f64 = 800.0;
const AXIS_LEFT: f64 = 190.0;
const AXIS_RIGHT: f64 = 730.0;
const TOP: f64 = 64.0;
const ROW_HEIGHT: f64 = 22.0;

const STYLE: &str = "\
text { font: 12px system-ui, sans-serif; fill: #24292f }
.paper { fill: #ffffff } .title { font-size: 14px; font-weight: 600 }
.held { fill: #4c8fd6 } .missed { fill: #d9822b } .limit { fill: #8b949e }
.grid { stroke: #d0d7de } .even { stroke: #57606a } .whisker { stroke: #24292f; stroke-width: 1.5 }
.target { fill: #b3261e }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 } .paper { fill: #0d1117 } .grid { stroke: #30363d } .even { stroke: #8b949e }
.whisker { stroke: #e6edf3 } .target { fill: #ff8a80 }
}";

/// One bar: all values as multiples, above 1 if better than the other program.
struct Bar<'a> {
    line: &'a Line,
    median: f64,
    lowest: f64,
    highest: f64,
    target: f64,
}

impl Bar<'_> {
    fn of(line: &Line) -> Option<Bar<'_>> {
        let LineResult::Measured { ratio: Some(Ratio { median, lowest, highest }), .. } = line.result else {
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

/// The axis: from the power of ten below all values to the one above.
struct Axis {
    low: f64,
    high: f64,
}

impl Axis {
    fn over(bars: &[Bar<'_>]) -> Axis {
        let all = bars.iter().flat_map(|bar| [bar.lowest, bar.highest, bar.target]);
        // Few bars are shorter than half of fio's figure.
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
    let mut svg = Document::new((WIDTH, height), title, STYLE);
    svg.add(Element::rectangle((0.0, 0.0), (WIDTH, height)).set("rx", "6").class("paper"));
    svg.add(Element::text((16.0, 24.0), Anchor::Start, title).class("title"));
    legend(&mut svg);
    grid(&mut svg, &axis, bottom);
    for (index, bar) in bars.iter().enumerate() {
        draw(&mut svg, bar, &axis, TOP + ROW_HEIGHT * index as f64);
    }
    svg.finish()
}

fn legend(svg: &mut Document) {
    let y = 42.0;
    let mut entry = |x, text| svg.add(Element::text((x, y), Anchor::Start, text));
    entry(34.0, "target held");
    entry(134.0, "target missed");
    entry(250.0, "target");
    entry(332.0, "lowest and highest pair");
    entry(500.0, "missed, at the limit of the other end");
    for (class, x) in [("held", 16.0), ("missed", 116.0), ("limit", 482.0)] {
        svg.add(Element::rectangle((x, y - 9.0), (12.0, 10.0)).class(class));
    }
    svg.add(target_mark(238.0, y - 10.0));
    svg.add(whisker((304.0, 324.0), y - 4.0));
}

fn grid(svg: &mut Document, axis: &Axis, bottom: f64) {
    for tick in axis.ticks() {
        let (x, class) = (axis.x(tick), if tick == 1.0 { "even" } else { "grid" });
        svg.add(Element::line((x, TOP), (x, bottom)).class(class));
        svg.add(Element::text((x, bottom + 16.0), Anchor::Middle, &format!("{tick}×")));
    }
}

fn draw(svg: &mut Document, bar: &Bar<'_>, axis: &Axis, top: f64) {
    let (even, median) = (axis.x(1.0), axis.x(bar.median));
    let (left, width) = (even.min(median), (even - median).abs());
    let (middle, base) = (top + ROW_HEIGHT / 2.0, top + ROW_HEIGHT / 2.0 + 4.0);
    svg.add(Element::text((AXIS_LEFT - 10.0, base), Anchor::End, &bar.line.case));
    svg.add(Element::rectangle((left, middle - 6.0), (width, 12.0)).class(bar.line.verdict()));
    svg.add(whisker((axis.x(bar.lowest), axis.x(bar.highest)), middle));
    svg.add(target_mark(axis.x(bar.target), top + 1.0));
    let ratio = format!("{}×", ratio_text(bar.median));
    svg.add(Element::text((AXIS_RIGHT + 14.0, base), Anchor::Start, &ratio));
}

/// A line from the lowest to the highest, with end marks.
fn whisker((lowest, highest): (f64, f64), middle: f64) -> Element {
    let (top, bottom) = (middle - 4.0, middle + 4.0);
    let path = Path::from((lowest, middle)).horizontal_to(highest);
    let ends = path.move_to((lowest, top)).vertical_to(bottom).move_to((highest, top)).vertical_to(bottom);
    Element::path(&ends).class("whisker").set("fill", "none")
}

/// A triangle that points down at the target of the bar.
fn target_mark(x: f64, top: f64) -> Element {
    let right = Path::from((x - 4.0, top)).horizontal_to(x + 4.0);
    Element::path(&right.line_by((-4.0, 7.0)).close()).class("target")
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
    fn every_mark_is_on_the_axis() {
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
        // One in the legend and one bar of each.
        assert_eq!(text.matches("class=\"held\"").count(), 2);
        assert_eq!(text.matches("class=\"missed\"").count(), 2);
        assert_eq!(text.matches("class=\"limit\"").count(), 1);
        assert!(text.starts_with("<svg ") && text.ends_with("</svg>\n"));
    }
}
