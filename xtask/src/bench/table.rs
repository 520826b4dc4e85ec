//! The table as text and as Markdown.
//!
//! Invariant: both show the same cells; the text has lines of at most 80 columns, except for errors.

use super::result::{Line, LineResult, Ratio};
use super::rows::Metric;

/// Maximum width of a case's name.
pub const CASE_WIDTH: usize = 23;

const TITLES: [&str; 7] = ["case", "fio", "fiord", "ratio", "spread", "target", "verdict"];

/// The titles of the columns.
pub fn header() -> String {
    padded(&TITLES.map(String::from))
}

/// One line.
pub fn line(line: &Line) -> String {
    match &line.result {
        LineResult::Skipped(why) | LineResult::Failed(why) => {
            format!("{:<CASE_WIDTH$} {}: {why}", line.case, line.verdict())
        }
        LineResult::Measured { .. } => padded(&cells(line)),
    }
}

/// The whole table in Markdown.
pub fn markdown(lines: &[Line]) -> String {
    let row = |cells: &[String; 7]| format!("| {} |\n", cells.join(" | "));
    let rules = ["---", "---:", "---:", "---:", "---:", "---:", "---"].map(String::from);
    let rows: String = lines.iter().map(|line| row(&cells(line))).collect();
    format!("{}{}{rows}", row(&TITLES.map(String::from)), row(&rules))
}

fn padded([case, other, fiord, ratio, spread, target, verdict]: &[String; 7]) -> String {
    format!("{case:<CASE_WIDTH$} {other:>9} {fiord:>9} {ratio:>6} {spread:>14} {target:>6} {verdict}")
}

fn cells(line: &Line) -> [String; 7] {
    let (case, target, verdict) = (line.case.clone(), line.target.to_string(), line.verdict().to_string());
    let none = String::new;
    match &line.result {
        LineResult::Measured { other, fiord, ratio } => {
            let other = other.map_or("refused".to_string(), |other| figure(line.metric, other));
            let spread =
                |ratio: &Ratio| format!("{}..{}", ratio_text(ratio.lowest), ratio_text(ratio.highest));
            let median = |ratio: &Ratio| ratio_text(ratio.median);
            let fiord = figure(line.metric, *fiord);
            [
                case,
                other,
                fiord,
                ratio.as_ref().map_or_else(none, median),
                ratio.as_ref().map_or_else(none, spread),
                target,
                verdict,
            ]
        }
        LineResult::Skipped(why) | LineResult::Failed(why) => {
            let why = why.lines().next().unwrap_or_default();
            [case, none(), none(), none(), none(), target, format!("{verdict}: {why}")]
        }
    }
}

const GIB: f64 = (1 << 30) as f64;

/// A figure with its unit and three digits: `2.71M/s`, `390 ms`, `206 MiB`.
fn figure(metric: Metric, value: f64) -> String {
    match metric {
        Metric::Iops if value >= 1e6 => format!("{:.2}M/s", value / 1e6),
        Metric::Iops => format!("{:.0}k/s", value / 1e3),
        Metric::Time | Metric::Cpu if value >= 1.0 => format!("{value:.2} s"),
        Metric::Time | Metric::Cpu => format!("{:.1} ms", value * 1e3),
        Metric::P99 if value < 10e3 => format!("{value:.0} ns"),
        Metric::P99 => format!("{:.1} us", value / 1e3),
        Metric::Memory if value >= GIB => format!("{:.2} GiB", value / GIB),
        Metric::Memory => format!("{:.1} MiB", value / GIB * 1024.0),
    }
}

/// A ratio with as many digits as are significant.
pub fn ratio_text(ratio: f64) -> String {
    let decimals = match ratio {
        ratio if ratio < 0.095 => 3,
        ratio if ratio < 9.95 => 2,
        _ => 1,
    };
    format!("{ratio:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::super::result::{lines, testing};
    use super::*;

    fn one(metric: Metric, target: &str, pairs: &[(Option<f64>, f64)]) -> Line {
        lines(&testing::row(&"c".repeat(CASE_WIDTH), metric, target, pairs)).unwrap().remove(0)
    }

    #[test]
    fn the_widest_line_fits() {
        let widest = [
            one(Metric::Iops, ">=1.25", &[(Some(99.99e6), 123.456e6)]),
            one(Metric::Memory, "<=0.25", &[(Some(3.2e9), 13.5e6)]),
            one(Metric::Time, "runs", &[(None, 123.4)]),
        ];
        for line in widest.iter().map(super::line).chain([header()]) {
            assert!(line.len() <= 80, "{}: {line}", line.len());
            assert_eq!(line.rfind(' '), Some(72), "{line}");
        }
    }

    #[test]
    fn figures_have_units() {
        assert_eq!(figure(Metric::Iops, 2_710_000.0), "2.71M/s");
        assert_eq!(figure(Metric::Iops, 390_400.0), "390k/s");
        assert_eq!(figure(Metric::Time, 0.0083), "8.3 ms");
        assert_eq!(figure(Metric::Cpu, 6.2), "6.20 s");
        assert_eq!(figure(Metric::Memory, 1048576.0), "1.0 MiB");
        assert_eq!(figure(Metric::Memory, 3.5 * GIB), "3.50 GiB");
        assert_eq!(
            ["0.004", "0.10", "1.27", "14.2"],
            [0.0042, 0.1, 1.271, 14.15].map(ratio_text).each_ref().map(String::as_str)
        );
    }

    #[test]
    fn markdown_has_the_same_cells() {
        let skipped = Line {
            result: LineResult::Skipped("why".to_string()),
            ..one(Metric::Time, "runs", &[(None, 1.0)])
        };
        let text = markdown(&[one(Metric::Iops, ">=1.3", &[(Some(1e6), 2e6)]), skipped]);
        let rows: Vec<&str> = text.lines().collect();
        assert_eq!(rows.len(), 4);
        assert!(rows[2].ends_with("| 1.00M/s | 2.00M/s | 2.00 | 2.00..2.00 | >=1.3 | held |"), "{}", rows[2]);
        assert!(rows[3].ends_with("|  |  |  |  | runs | skipped: why |"), "{}", rows[3]);
        assert!(rows.iter().all(|row| row.matches('|').count() == 8));
    }
}
