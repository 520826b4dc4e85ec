//! A figure compared with its limits.
//!
//! Invariant: the worst round decides, whether lower or higher is better, unless the rounds together decide nothing; every
//! form of the result shows that one verdict.

use fiord_report::RepeatedFigure;
use fiord_report::table::{Cell, Column, Table, shown_bytes};
use fiord_stats::{Capped, Summary};

use crate::verdict::Verdict;

/// The unit of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// Nanoseconds.
    Ns,
    /// Per second.
    PerSecond,
    /// Bytes per second.
    BytesPerSecond,
    /// Percent.
    Percent,
    /// The ratio of two figures.
    Times,
    /// A number of things, such as findings.
    Count,
}

impl Unit {
    /// All of them, in the order of the columns of [`figure_columns`].
    const ALL: [Unit; 6] =
        [Unit::Ns, Unit::PerSecond, Unit::Percent, Unit::Times, Unit::BytesPerSecond, Unit::Count];

    /// Rounded as it is shown and judged: to a whole number, or to a tenth for percentages and ratios.
    fn rounded(self, value: f64) -> f64 {
        match self {
            Unit::Ns | Unit::PerSecond | Unit::BytesPerSecond | Unit::Count => value.round(),
            Unit::Percent | Unit::Times => (value * 10.0).round() / 10.0,
        }
    }

    pub(super) fn cell(self, value: f64) -> Cell {
        match self {
            Unit::Ns => Cell::Latency(u64::capped(value.round())),
            Unit::PerSecond | Unit::Count => Cell::Count(u64::capped(value.round())),
            Unit::BytesPerSecond => {
                Cell::Formatted(format!("{}/s", shown_bytes(u64::capped(value.round()))), value.round())
            }
            Unit::Percent | Unit::Times => Cell::Number(self.rounded(value), 1),
        }
    }

    /// With its unit, for a sentence.
    pub(super) fn with_unit(self, shown: &str) -> String {
        match self {
            Unit::Ns | Unit::PerSecond | Unit::BytesPerSecond | Unit::Count => shown.to_string(),
            Unit::Percent => format!("{shown} %"),
            Unit::Times => format!("{shown} times"),
        }
    }

    /// A cell for each unit's column, empty for all other units.
    fn spread(self, cell: &Cell) -> impl Iterator<Item = Cell> {
        Unit::ALL.into_iter().map(move |unit| if unit == self { cell.clone() } else { Cell::None })
    }
}

/// The columns of a figure for programs: one for each unit, of which one is filled.
fn figure_columns(keys: [&'static str; 6]) -> [Column; 6] {
    keys.map(|key| Column::new(key, ""))
}

/// What the runs behind the rows allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Evidence {
    /// All of them were made, and none is void: each row is judged by its own rounds.
    Sound,
    /// A finding voids one of them, and with it every verdict.
    Void,
    /// Some are missing: there is no verdict.
    Incomplete,
}

/// The rows for programs: figures are numbers, with the unit in the key.
pub(super) fn table(rows: &[Row], evidence: Evidence) -> Table {
    let figures = [
        figure_columns([
            "measured_ns",
            "measured_per_s",
            "measured_percent",
            "measured_times",
            "measured_bytes_per_s",
            "measured_count",
        ]),
        figure_columns([
            "pass_limit_ns",
            "pass_limit_per_s",
            "pass_limit_percent",
            "pass_limit_times",
            "pass_limit_bytes_per_s",
            "pass_limit_count",
        ]),
        figure_columns([
            "fail_limit_ns",
            "fail_limit_per_s",
            "fail_limit_percent",
            "fail_limit_times",
            "fail_limit_bytes_per_s",
            "fail_limit_count",
        ]),
        figure_columns([
            "rounds_ns",
            "rounds_per_s",
            "rounds_percent",
            "rounds_times",
            "rounds_bytes_per_s",
            "rounds_count",
        ]),
    ];
    let columns = [Column::new("figure", ""), Column::new("verdict", "")].into_iter();
    let mut table = Table::new(
        columns.chain(figures.concat()).chain(["limits_from", "remedy"].map(|key| Column::new(key, ""))),
    );
    table.rows = rows.iter().map(|row| row.cells(evidence)).collect();
    table
}

/// The details of the figures, for programs.
pub(super) fn details(rows: &[Row]) -> Table {
    let columns = [Column::new("figure", ""), Column::new("detail", "")].into_iter();
    let mut table = Table::new(columns.chain(figure_columns([
        "ns",
        "per_s",
        "percent",
        "times",
        "bytes_per_s",
        "count",
    ])));
    for row in rows {
        table.rows.extend(row.details.iter().map(|Detail { name, unit, value }| {
            let named = [Cell::Text(row.figure.clone()), Cell::Text(name.clone())].into_iter();
            named.chain(unit.spread(&unit.cell(*value))).collect()
        }));
    }
    table
}

/// The figure of this name, in nanoseconds, and its name.
pub(super) fn worst_ns(rows: &[Row], name: &str) -> Option<(u64, String)> {
    let row = rows.iter().find(|row| row.figure == name && row.unit == Unit::Ns)?;
    Some((u64::capped(row.measured()), name.to_string()))
}

/// The rows for the text and Markdown tables.
pub(super) fn shown(rows: &[Row], evidence: Evidence) -> Table {
    let mut table = Table::new([
        Column::new("figure", "FIGURE"),
        Column::new("measured", "MEASURED"),
        Column::new("pass_limit", "PASS"),
        Column::new("fail_limit", "FAIL BEYOND"),
        Column::new("verdict", "VERDICT"),
        Column::new("rounds", "ROUNDS"),
        Column::new("details", "DETAILS"),
        Column::new("limits_from", "LIMITS FROM"),
    ]);
    table.rows = rows.iter().map(|row| row.shown(evidence)).collect();
    table
}

/// The limits of a figure: where it passes, and beyond which it fails.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Limit {
    pub pass: f64,
    /// Not stricter than `pass`. `None`: the figure cannot fail.
    pub fail: Option<f64>,
    pub better: Better,
    /// The source of the limits.
    pub from: String,
}

/// Whether lower or higher is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Better {
    Lower,
    Higher,
}

impl Limit {
    fn verdict(&self, value: f64) -> Verdict {
        let within = |limit: f64| match self.better {
            Better::Lower => value <= limit,
            Better::Higher => value >= limit,
        };
        if within(self.pass) {
            Verdict::Pass
        } else if self.fail.is_none_or(within) {
            Verdict::Marginal
        } else {
            Verdict::Fail
        }
    }
}

/// A figure, as measured in each round.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    pub figure: String,
    pub unit: Unit,
    /// At least one.
    pub rounds: Vec<f64>,
    /// Its limits; `None`: it is reported without a verdict.
    pub limit: Option<Limit>,
    /// What to do if it is not within its limits.
    pub remedy: Option<String>,
    /// Related figures.
    pub details: Vec<Detail>,
}

/// A figure that explains another.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Detail {
    pub name: String,
    pub unit: Unit,
    pub value: f64,
}

impl Row {
    /// The worst round, rounded as it is shown, so that the figure judged is the one shown.
    fn measured(&self) -> f64 {
        self.unit.rounded(self.worst())
    }

    fn worst(&self) -> f64 {
        let worst = match self.limit.as_ref().map_or(Better::Lower, |limit| limit.better) {
            Better::Lower => f64::max,
            Better::Higher => f64::min,
        };
        self.rounds.iter().copied().reduce(worst).unwrap_or(f64::NAN)
    }

    /// The same as a cell, with enough digits to distinguish it from its limits.
    fn measured_cell(&self) -> Cell {
        let limits = self.limit.iter().flat_map(|limit| [Some(limit.pass), limit.fail]).flatten();
        let beside = |limit: f64| match Cell::latency_beside(u64::capped(self.measured()), u64::capped(limit))
        {
            cell @ Cell::Formatted(..) => Some(cell),
            _ => None,
        };
        let mut cells = limits.filter(|_| self.unit == Unit::Ns).filter_map(beside);
        cells.next().unwrap_or_else(|| self.unit.cell(self.measured()))
    }

    /// Adds the figure of a later round; the details are those of the worst.
    pub(super) fn add_round(&mut self, later: Row) {
        let before = self.worst();
        self.rounds.extend(later.rounds);
        if self.worst() != before {
            self.details = later.details;
        }
    }

    /// Its rounds as figures to be compared.
    pub(super) fn repeated(&self) -> RepeatedFigure {
        let key = match self.unit {
            Unit::Ns => "measured_ns",
            Unit::PerSecond => "measured_per_s",
            Unit::Percent => "measured_percent",
            Unit::Times => "measured_times",
            Unit::BytesPerSecond => "measured_bytes_per_s",
            Unit::Count => "measured_count",
        };
        RepeatedFigure {
            subject: self.figure.clone(),
            figure: key.to_string(),
            runs: self.rounds.clone(),
            ..RepeatedFigure::default()
        }
    }

    /// Over all rounds; `None` if there are too few for an interval.
    fn over_rounds(&self) -> Option<Summary> {
        Summary::of(&self.rounds).filter(|summary| summary.half_width.is_some())
    }

    /// The verdict on this figure, which every form of the result shows; `None` without limits, or if runs are missing.
    pub(super) fn verdict(&self, evidence: Evidence) -> Option<Verdict> {
        let limit = self.limit.as_ref()?;
        match evidence {
            Evidence::Incomplete => None,
            Evidence::Void => Some(Verdict::Undecided),
            Evidence::Sound if self.noise_across_limit().is_some() => Some(Verdict::Undecided),
            Evidence::Sound => Some(limit.verdict(self.measured())),
        }
    }

    /// The limits as cells.
    fn limits(&self) -> [Cell; 2] {
        let cell = |value: Option<f64>| value.map_or(Cell::None, |value| self.unit.cell(value));
        let limit = self.limit.as_ref();
        [cell(limit.map(|limit| limit.pass)), cell(limit.and_then(|limit| limit.fail))]
    }

    /// Every round, if there were several.
    fn rounds(&self) -> Cell {
        match self.rounds.as_slice() {
            [] | [_] => Cell::None,
            rounds => Cell::Figures(rounds.iter().map(|round| self.unit.cell(*round)).collect()),
        }
    }

    fn cells(&self, evidence: Evidence) -> Vec<Cell> {
        let [pass, fail] = self.limits();
        let verdict = self.verdict(evidence).map(Verdict::word);
        let mut cells = vec![Cell::Text(self.figure.clone()), Cell::text(verdict)];
        for figure in [self.measured_cell(), pass, fail, self.rounds()] {
            cells.extend(self.unit.spread(&figure));
        }
        cells.push(self.source());
        cells.push(Cell::text(self.remedy.clone()));
        cells
    }

    fn shown(&self, evidence: Evidence) -> Vec<Cell> {
        let [pass, fail] = self.limits();
        let detail = |Detail { name, unit, value }: &Detail| {
            format!("{name} {}", unit.with_unit(&unit.cell(*value).shown()))
        };
        let details = self.details.iter().map(detail).collect::<Vec<_>>().join(", ");
        vec![
            Cell::Text(self.figure.clone()),
            self.measured_cell(),
            pass,
            fail,
            Cell::text(self.verdict(evidence).map(Verdict::word)),
            self.rounds(),
            Cell::text(Some(details).filter(|details| !details.is_empty())),
            self.source(),
        ]
    }

    /// Where its limits are from.
    fn source(&self) -> Cell {
        Cell::text(self.limit.as_ref().map(|limit| limit.from.clone()))
    }

    /// For the conclusion: the figure and the limit that decided.
    pub(super) fn summary(&self) -> String {
        let text = |cell: &Cell| self.unit.with_unit(&cell.shown());
        let measured = text(&self.measured_cell());
        let [pass, fail] = self.limits();
        let Some(limit) = &self.limit else { return format!("{} is {measured}", self.figure) };
        let (within, beyond) = match limit.better {
            Better::Lower => ("up to", "above"),
            Better::Higher => ("from", "below"),
        };
        let spread = self.spread().map_or_else(String::new, |spread| format!("{spread}; "));
        match limit.verdict(self.measured()) {
            Verdict::Fail => {
                format!("{} is {measured} ({spread}fails {beyond} {})", self.figure, text(&fail))
            }
            _ => format!("{} is {measured} ({spread}passes {within} {})", self.figure, text(&pass)),
        }
    }

    /// The lowest and the highest round, and the interval of their mean, if there were several:
    /// `1ms to 3ms in 3 rounds, mean 2ms ± 1ms`.
    fn spread(&self) -> Option<String> {
        let count = self.rounds.len();
        let rounded = || self.rounds.iter().map(|round| self.unit.rounded(*round));
        let (lowest, highest) = (rounded().reduce(f64::min)?, rounded().reduce(f64::max)?);
        let text = |value: f64| self.unit.cell(value).shown();
        let with_unit = |value: f64| self.unit.with_unit(&text(value));
        let spread = format!("{} to {} in {count} rounds", text(lowest), with_unit(highest));
        let mean = |summary: Summary| {
            let (mean, half, (_, high)) = (text(summary.mean), summary.half_width?, summary.interval()?);
            // No figure is below zero, as this half of the interval would be.
            let reach = match half < summary.mean {
                true => format!("± {}", with_unit(half)),
                false => format!("(95 %: up to {})", with_unit(high)),
            };
            Some(format!(", mean {mean} {reach}"))
        };
        (count > 1).then(|| spread + &self.over_rounds().and_then(mean).unwrap_or_default())
    }

    /// That some rounds fail and others do not, or that the interval of their mean contains the limit: in the middle of a
    /// sentence.
    pub(super) fn noise_across_limit(&self) -> Option<String> {
        let fail = self.limit.as_ref()?.fail?;
        let across = self.across(fail, |verdict| verdict == Verdict::Fail)?;
        Some(format!("{} was {}, {across}", self.figure, self.spread()?))
    }

    /// The same of the limit between PASS and MARGINAL.
    pub(super) fn noise_across_headroom(&self) -> Option<String> {
        let across = self.across(self.limit.as_ref()?.pass, |verdict| verdict == Verdict::Pass)?;
        Some(format!("{} was {}, {across}", self.figure, self.spread()?))
    }

    /// How a limit lies within the noise: rounds on both sides of it, by whether their verdict `is_beside` it, or within the
    /// interval of their mean.
    fn across(&self, limit: f64, is_beside: impl Fn(Verdict) -> bool) -> Option<String> {
        let limits = self.limit.as_ref()?;
        let shown = self.unit.with_unit(&self.unit.cell(limit).shown());
        let beside =
            self.rounds.iter().filter(|round| is_beside(limits.verdict(self.unit.rounded(**round)))).count();
        if beside > 0 && beside < self.rounds.len() {
            return Some(format!("on both sides of the limit of {shown}"));
        }
        let crosses = self.over_rounds().is_some_and(|summary| summary.crosses(limit));
        crosses.then(|| format!("and the 95 % interval of the mean contains the limit of {shown}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Limit {
        fn at_most(pass: f64, fail: f64) -> Limit {
            Limit { pass, fail: Some(fail), better: Better::Lower, from: String::new() }
        }

        fn at_least(pass: f64, fail: f64) -> Limit {
            Limit { better: Better::Higher, ..Limit::at_most(pass, fail) }
        }
    }

    fn row(limit: Limit, rounds: &[f64]) -> Row {
        Row {
            figure: "x".to_string(),
            unit: Unit::Ns,
            rounds: rounds.to_vec(),
            limit: Some(limit),
            remedy: None,
            details: Vec::new(),
        }
    }

    #[test]
    fn a_value_equal_to_its_limit_is_within_it() {
        let latency = Limit::at_most(5.0, 10.0);
        let verdicts = [0.0, 5.0, 5.1, 10.0, 10.1].map(|value| latency.verdict(value).word());
        assert_eq!(verdicts, ["PASS", "PASS", "MARGINAL", "MARGINAL", "FAIL"]);
        let rate = Limit::at_least(500.0, 50.0);
        let verdicts = [600.0, 500.0, 499.0, 50.0, 49.0].map(|value| rate.verdict(value).word());
        assert_eq!(verdicts, ["PASS", "PASS", "MARGINAL", "MARGINAL", "FAIL"]);
        let soft = Limit { fail: None, ..latency };
        assert_eq!(soft.verdict(1e9), Verdict::Marginal);
    }

    #[test]
    fn the_worst_round_decides_for_lower_and_higher_limits() {
        let sound = |row: &Row| row.verdict(Evidence::Sound);
        let latency = row(Limit::at_most(5.0, 10.0), &[12.0, 13.0, 12.0]);
        assert_eq!((latency.measured(), sound(&latency)), (13.0, Some(Verdict::Fail)));
        let rate = row(Limit::at_least(500.0, 50.0), &[450.0, 400.0, 420.0]);
        assert_eq!((rate.measured(), sound(&rate)), (400.0, Some(Verdict::Marginal)));
    }

    /// A row has one verdict, that of the whole evidence, in every form.
    #[test]
    fn a_row_is_not_judged_by_its_worst_round_where_the_rounds_decide_nothing() {
        let across = row(Limit::at_most(5.0, 10.0), &[1.0, 11.0, 2.0]);
        let (undecided, failed) = (Some(Verdict::Undecided), row(Limit::at_most(5.0, 10.0), &[11.0]));
        assert_eq!(across.verdict(Evidence::Sound), undecided);
        assert_eq!(failed.verdict(Evidence::Void), undecided);
        assert_eq!(failed.verdict(Evidence::Incomplete), None);
        for evidence in [Evidence::Sound, Evidence::Void, Evidence::Incomplete] {
            for row in [&across, &failed] {
                let word = Cell::text(row.verdict(evidence).map(Verdict::word));
                let tables =
                    [table(std::slice::from_ref(row), evidence), shown(std::slice::from_ref(row), evidence)];
                assert!(tables.iter().all(|table| table.select(&["verdict"]).rows == [[word.clone()]]));
            }
        }
    }

    #[test]
    fn an_interval_across_a_limit_is_not_called_rounds_across_it_and_ends_at_zero() {
        let few = row(Limit { fail: None, ..Limit::at_most(10e6, 10e6) }, &[1.9e6, 1.6e6, 6.9e6]);
        assert_eq!(
            few.noise_across_headroom().unwrap(),
            "x was 1.6ms to 6.9ms in 3 rounds, mean 3.47ms (95 %: up to 10.9ms), and the 95 % interval of the mean contains \
             the limit of 10ms"
        );
        let both = row(Limit::at_most(5e6, 10e6), &[1.9e6, 1.6e6, 6.9e6]);
        assert!(both.noise_across_headroom().unwrap().ends_with(", on both sides of the limit of 5ms"));
    }

    #[test]
    fn a_figure_without_limits_has_no_verdict() {
        let unlimited = Row { limit: None, ..row(Limit::at_most(0.0, 0.0), &[1.0]) };
        assert_eq!(unlimited.verdict(Evidence::Sound), None);
        assert_eq!(unlimited.shown(Evidence::Sound)[2..6], [Cell::None, Cell::None, Cell::None, Cell::None]);
    }

    #[test]
    fn the_figure_judged_is_the_one_shown() {
        let late = row(Limit::at_most(5e6, 10e6), &[10_027_008.0]);
        assert_eq!(late.summary(), "x is 10.03ms (fails above 10ms)");
        assert_eq!(late.shown(Evidence::Sound)[1].shown(), "10.03ms");
        let few = Row { unit: Unit::PerSecond, ..row(Limit::at_least(500.0, 50.0), &[499.6]) };
        assert_eq!(
            (few.shown(Evidence::Sound)[1].shown(), few.verdict(Evidence::Sound)),
            ("500".to_string(), Some(Verdict::Pass))
        );
        let share = Row { unit: Unit::Percent, ..row(Limit::at_least(99.0, 90.0), &[98.94]) };
        assert_eq!(share.summary(), "x is 98.9 % (passes from 99.0 %)");
    }

    #[test]
    fn programs_get_numbers_with_their_unit_in_the_key() {
        let mut row = row(Limit::at_most(5e6, 10e6), &[1e6, 2_500_000.0]);
        row.details =
            vec![Detail { name: "writes per second".to_string(), unit: Unit::PerSecond, value: 12.0 }];
        let cell = |table: &Table, key: &str| {
            let column = table.columns.iter().position(|column| column.key == key).unwrap();
            table.rows[0][column].clone()
        };
        let rows = table(std::slice::from_ref(&row), Evidence::Sound);
        assert_eq!(cell(&rows, "measured_ns"), Cell::Latency(2_500_000));
        assert_eq!(cell(&rows, "fail_limit_ns"), Cell::Latency(10_000_000));
        assert_eq!(
            cell(&rows, "rounds_ns"),
            Cell::Figures(vec![Cell::Latency(1_000_000), Cell::Latency(2_500_000)])
        );
        assert_eq!((cell(&rows, "measured_per_s"), cell(&rows, "rounds_percent")), (Cell::None, Cell::None));
        let details = details(std::slice::from_ref(&row));
        assert_eq!((cell(&details, "per_s"), cell(&details, "ns")), (Cell::Count(12), Cell::None));
        assert_eq!(shown(&[row], Evidence::Sound).rows[0][6], Cell::Text("writes per second 12".to_string()));
    }
}
