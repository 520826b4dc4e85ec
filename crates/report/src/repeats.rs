//! The figures of repeated runs side by side: median, spread, confidence interval, and how they differ in kind.
//!
//! Invariant: what is shown is computed from the values kept here, so that a report read from the history shows the same.

use fiord_stats::{Capped, Difference, Summary};
use serde::{Deserialize, Serialize};

use crate::table::{Cell, Column, Table, wrapped};

/// One figure of something that was run several times.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RepeatedFigure {
    /// What it is a figure of: `random read 4k, depth 32`.
    pub subject: String,
    /// Its key in JSON, unit last: `iops`, `p99_ns`.
    pub figure: String,
    /// Its title in tables: `P99`.
    pub title: String,
    /// Its value in each run, in the order of the runs.
    pub runs: Vec<f64>,
    /// How many of the first runs its summary leaves out, because throughput was not steady before.
    pub left_out: u32,
}

impl RepeatedFigure {
    /// What the runs say together, from the first steady one on; `None` if there are none.
    pub fn summary(&self) -> Option<Summary> {
        Summary::of(self.runs.get(self.left_out as usize..)?)
    }

    fn cell(&self, value: f64) -> Cell {
        match value {
            _ if self.figure.ends_with("_ns") => Cell::Latency(u64::capped(value.max(0.0).round())),
            100.0.. => Cell::Number(value, 0),
            _ => Cell::Number(value, 1),
        }
    }

    fn number(value: f64) -> Cell {
        Cell::Number(value, 3)
    }

    /// How its runs differ in kind, each in a few words: `the first run was 50 % lower`.
    fn differences(&self) -> Vec<String> {
        let text = |difference: &Difference| match difference {
            Difference::Bimodal { lower, higher } => {
                format!("bimodal, around {} and {}", self.cell(*lower).shown(), self.cell(*higher).shown())
            }
            Difference::Drift { from, to } => {
                let way = if to < from { "falling" } else { "rising" };
                let (from, to) = (self.cell(*from).shown(), self.cell(*to).shown());
                format!("drifting, {way} from about {from} to {to} over the runs")
            }
            Difference::FirstApart { share } if *share < 0.0 => {
                format!("the first run was {:.0} % lower than the others", -100.0 * share)
            }
            Difference::FirstApart { share } => {
                format!("the first run was {:.0} % higher than the others", 100.0 * share)
            }
        };
        fiord_stats::repeats::differences(&self.runs).iter().map(text).collect()
    }
}

/// For programs: a row for each figure.
pub fn table(figures: &[RepeatedFigure]) -> Table {
    let mut table = Table::new([
        Column::new("of", "OF"),
        Column::new("figure", "FIGURE"),
        Column::new("runs", "RUNS"),
        Column::new("left_out", "LEFT OUT"),
        Column::new("median", "MEDIAN"),
        Column::new("lowest", "LOWEST"),
        Column::new("highest", "HIGHEST"),
        Column::new("mean", "MEAN"),
        Column::new("interval_low", "LOW"),
        Column::new("interval_high", "HIGH"),
        Column::new("differences", "DIFFERENCES"),
    ]);
    for one in figures {
        let Some(summary) = one.summary() else { continue };
        let (low, high) = summary.interval().unzip();
        let number = |value: Option<f64>| value.map_or(Cell::None, RepeatedFigure::number);
        table.rows.push(vec![
            Cell::Text(one.subject.clone()),
            Cell::Text(one.figure.clone()),
            Cell::Figures(one.runs.iter().map(|value| RepeatedFigure::number(*value)).collect()),
            Cell::Count(u64::from(one.left_out)),
            number(Some(summary.median)),
            number(Some(summary.lowest)),
            number(Some(summary.highest)),
            number(Some(summary.mean)),
            number(low),
            number(high),
            Cell::List(one.differences()),
        ]);
    }
    table
}

/// What the report above the table of repeated figures shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reported {
    /// Of each step, the run of median throughput.
    Median,
    /// The last run.
    Last,
    /// Every run.
    All,
}

impl Reported {
    /// Follows the number of runs.
    fn clause(self) -> &'static str {
        match self {
            Reported::Median => "; each row above is of the run of median throughput",
            Reported::Last => "; the report above is of the last run",
            Reported::All => "",
        }
    }
}

/// For people: what the figures mean, a row for each of them, and what the runs of some have in common.
pub fn text(figures: &[RepeatedFigure], reported: Reported, width: usize) -> String {
    let Some(rounds) = figures.iter().map(|one| one.runs.len()).max().filter(|rounds| *rounds > 1) else {
        return String::new();
    };
    let mut table = Table::new([
        Column::new("of", "OF"),
        Column::new("figure", "FIGURE"),
        Column::new("median", "MEDIAN"),
        Column::new("lowest", "LOWEST"),
        Column::new("highest", "HIGHEST"),
        Column::new("mean", "MEAN"),
        Column::new("error", "±"),
    ]);
    let mut notes = Vec::new();
    for one in figures {
        let Some(summary) = one.summary() else { continue };
        let cell = |value: f64| one.cell(value);
        table.rows.push(vec![
            Cell::Text(one.subject.clone()),
            Cell::Text(one.title.clone()),
            cell(summary.median),
            cell(summary.lowest),
            cell(summary.highest),
            cell(summary.mean),
            summary.half_width.map_or(Cell::None, cell),
        ]);
        let differences = one.differences();
        let named = |difference: &String| format!("{}, {}: {difference}", one.subject, one.title);
        notes.extend(differences.iter().map(named));
    }
    let mut first: Vec<&str> = Vec::new();
    for one in figures.iter().filter(|one| one.left_out > 0 && (one.left_out as usize) < one.runs.len()) {
        if !first.contains(&one.subject.as_str()) {
            first.push(&one.subject);
            notes.push(format!(
                "{}: the figures are those of runs {} to {}; before, throughput was not steady (SNIA: slope within \
                 10 %, excursion within 20 %)",
                one.subject,
                one.left_out + 1,
                one.runs.len()
            ));
        }
    }
    let fewest = figures.iter().map(|one| one.runs.len()).min().unwrap_or(rounds);
    let counted = if fewest < rounds { format!("{fewest} to {rounds}") } else { rounds.to_string() };
    let head = format!(
        "{counted} runs of each{}; ± is half of the 95 % confidence interval of the mean (Student's t):",
        reported.clause()
    );
    let lines = |text: &str| wrapped(text, width).join("\n") + "\n";
    notes.iter().fold(lines(&head) + &table.text(width), |text, note| text + &lines(note))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repeated(figure: &str, title: &str, runs: &[f64], left_out: u32) -> RepeatedFigure {
        let (subject, figure, title) = ("reads".to_string(), figure.to_string(), title.to_string());
        RepeatedFigure { subject, figure, title, runs: runs.to_vec(), left_out }
    }

    #[test]
    fn figures_have_median_spread_and_interval_in_their_unit() {
        let figures = [
            repeated("iops", "IOPS", &[1000.0, 1010.0, 990.0], 0),
            repeated("p99_ns", "P99", &[2e6, 2.5e6, 3e6], 0),
        ];
        assert_eq!(
            text(&figures, Reported::All, 80),
            "3 runs of each; ± is half of the 95 % confidence interval of the mean (Student's\n\
             t):\n\
             OF     FIGURE  MEDIAN  LOWEST  HIGHEST   MEAN       ±\n\
             reads  IOPS      1000     990     1010   1000    24.8\n\
             reads  P99      2.5ms     2ms      3ms  2.5ms  1.24ms\n"
        );
        let rows = table(&figures);
        assert_eq!(rows.rows[0][4], Cell::Number(1000.0, 3));
        assert_eq!(
            text(&[repeated("iops", "IOPS", &[1.0], 0)], Reported::All, 80),
            "",
            "a single run has no spread"
        );
    }

    #[test]
    fn figures_of_different_numbers_of_runs_are_said_to_be() {
        let figures = [repeated("iops", "IOPS", &[1.0, 2.0], 0), repeated("iops", "IOPS", &[1.0; 3], 0)];
        let text = text(&figures, Reported::All, 200);
        assert!(text.starts_with("2 to 3 runs of each; "), "{text}");
    }

    #[test]
    fn runs_that_differ_in_kind_and_runs_left_out_are_named() {
        let cold = repeated("iops", "IOPS", &[500.0, 1000.0, 1010.0, 990.0, 1000.0], 1);
        assert_eq!(cold.summary().unwrap().lowest, 990.0);
        let text = text(std::slice::from_ref(&cold), Reported::Median, 200);
        assert!(text.contains("reads, IOPS: the first run was 50 % lower than the others\n"), "{text}");
        assert!(text.contains("reads: the figures are those of runs 2 to 5; before, "), "{text}");
        let falling = repeated("iops", "IOPS", &[1000.0, 950.0, 900.0, 850.0, 800.0], 0);
        assert_eq!(falling.differences(), ["drifting, falling from about 1000 to 800 over the runs"]);
        // On the line through them the fall is 173 % of their mean.
        let steep = repeated("iops", "IOPS", &[1000.0, 700.0, 400.0, 200.0, 180.0], 0);
        assert_eq!(steep.differences(), ["drifting, falling from about 924 to 180 over the runs"]);
    }
}
