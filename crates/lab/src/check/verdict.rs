//! A figure against its limits.
//!
//! Invariant: the worst round decides, whichever way the figure is better.

use fiord_report::table::{Cell, Column, Table};

/// How a disk does; the worst is the greatest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Holds, with reserve.
    Pass,
    /// Holds.
    Marginal,
    /// Does not hold.
    Fail,
}

impl Verdict {
    /// As it is printed.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Pass => "PASS",
            Verdict::Marginal => "MARGINAL",
            Verdict::Fail => "FAIL",
        }
    }
}

/// What a figure counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// Nanoseconds.
    Ns,
    /// So many a second.
    PerSecond,
    /// Of a hundred.
    Percent,
    /// One figure over another.
    Times,
}

impl Unit {
    /// All of them, in the order of the columns of [`figure_columns`].
    const ALL: [Unit; 4] = [Unit::Ns, Unit::PerSecond, Unit::Percent, Unit::Times];

    /// As it is shown, and judged: to a whole one where people read whole ones, else to a tenth.
    fn rounded(self, value: f64) -> f64 {
        match self {
            Unit::Ns | Unit::PerSecond => value.round(),
            Unit::Percent | Unit::Times => (value * 10.0).round() / 10.0,
        }
    }

    fn cell(self, value: f64) -> Cell {
        match self {
            Unit::Ns => Cell::Latency(value.round() as u64),
            Unit::PerSecond => Cell::Count(value.round() as u64),
            Unit::Percent | Unit::Times => Cell::Number(self.rounded(value), 1),
        }
    }

    /// With its unit, for a sentence.
    fn said(self, shown: &str) -> String {
        match self {
            Unit::Ns | Unit::PerSecond => shown.to_string(),
            Unit::Percent => format!("{shown} %"),
            Unit::Times => format!("{shown} times"),
        }
    }

    /// A cell for each unit's column: this one's, and nothing for the others.
    fn spread(self, cell: &Cell) -> impl Iterator<Item = Cell> {
        Unit::ALL.into_iter().map(move |unit| if unit == self { cell.clone() } else { Cell::None })
    }
}

/// The columns of a figure for programs: one for each unit, of which one holds it.
const fn figure_columns(keys: [&'static str; 4]) -> [Column; 4] {
    [Column::new(keys[0], ""), Column::new(keys[1], ""), Column::new(keys[2], ""), Column::new(keys[3], "")]
}

/// The rows for programs: every figure a number, its unit in the key.
pub(super) fn table(rows: &[Row]) -> Table {
    let figures = [
        figure_columns(["measured_ns", "measured_per_s", "measured_percent", "measured_times"]),
        figure_columns(["pass_limit_ns", "pass_limit_per_s", "pass_limit_percent", "pass_limit_times"]),
        figure_columns(["fail_limit_ns", "fail_limit_per_s", "fail_limit_percent", "fail_limit_times"]),
        figure_columns(["rounds_ns", "rounds_per_s", "rounds_percent", "rounds_times"]),
    ];
    let columns = [Column::new("figure", ""), Column::new("verdict", "")].into_iter();
    let mut table = Table::new(columns.chain(figures.concat()).chain([Column::new("limits_from", "")]));
    table.rows = rows.iter().map(Row::cells).collect();
    table
}

/// What else is worth knowing of the figures, for programs.
pub(super) fn details(rows: &[Row]) -> Table {
    let columns = [Column::new("figure", ""), Column::new("detail", "")].into_iter();
    let mut table = Table::new(columns.chain(figure_columns(["ns", "per_s", "percent", "times"])));
    for row in rows {
        table.rows.extend(row.details.iter().map(|Detail { name, unit, value }| {
            let named = [Cell::Text(row.figure.clone()), Cell::Text((*name).to_string())].into_iter();
            named.chain(unit.spread(&unit.cell(*value))).collect()
        }));
    }
    table
}

/// The figure of this name, in nanoseconds, and its name.
pub(super) fn worst_ns(rows: &[Row], name: &'static str) -> Option<(u64, &'static str)> {
    let row = rows.iter().find(|row| row.figure == name)?;
    Some((row.measured() as u64, name))
}

/// The rows for people.
pub(super) fn shown(rows: &[Row]) -> Table {
    let mut table = Table::new([
        Column::new("figure", "FIGURE"),
        Column::new("measured", "MEASURED"),
        Column::new("pass_limit", "PASS"),
        Column::new("fail_limit", "FAIL BEYOND"),
        Column::new("verdict", "VERDICT"),
        Column::new("rounds", "ROUNDS"),
        Column::new("details", "MORE"),
        Column::new("limits_from", "LIMITS FROM"),
    ]);
    table.rows = rows.iter().map(Row::shown).collect();
    table
}

/// Up to where a figure passes, and beyond what it fails.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Limit {
    pub pass: f64,
    /// On the same side as `pass`: of a latency not less, of a rate not more. `None`: it does not fail.
    pub fail: Option<f64>,
    pub better: Better,
    /// Who says so, and where.
    pub from: &'static str,
}

/// Which way a figure is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Better {
    Lower,
    Higher,
}

impl Limit {
    /// What must not be more.
    pub(super) const fn at_most(pass: f64, fail: f64, from: &'static str) -> Limit {
        Limit { pass, fail: Some(fail), better: Better::Lower, from }
    }

    /// What must not be less.
    pub(super) const fn at_least(pass: f64, fail: f64, from: &'static str) -> Limit {
        Limit { pass, fail: Some(fail), better: Better::Higher, from }
    }

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
    /// What it is held against; `None`: it is only told.
    pub limit: Option<Limit>,
    /// What else is worth knowing of it.
    pub details: Vec<Detail>,
}

/// A figure beside another.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Detail {
    pub name: &'static str,
    pub unit: Unit,
    pub value: f64,
}

impl Detail {
    pub(super) fn ns(name: &'static str, ns: u64) -> Detail {
        Detail { name, unit: Unit::Ns, value: ns as f64 }
    }

    pub(super) fn per_second(name: &'static str, per_s: f64) -> Detail {
        Detail { name, unit: Unit::PerSecond, value: per_s }
    }
}

impl Row {
    /// The worst round, rounded as it is shown: what is judged is what is read.
    fn measured(&self) -> f64 {
        let worst = match self.limit.map_or(Better::Lower, |limit| limit.better) {
            Better::Lower => f64::max,
            Better::Higher => f64::min,
        };
        self.unit.rounded(self.rounds.iter().copied().reduce(worst).unwrap_or(f64::NAN))
    }

    /// The same as a cell, with as many digits as tell it from the limits it is held against.
    fn measured_cell(&self) -> Cell {
        let limits = self.limit.iter().flat_map(|limit| [Some(limit.pass), limit.fail]).flatten();
        let beside = |limit: f64| match Cell::latency_beside(self.measured() as u64, limit as u64) {
            said @ Cell::Said(..) => Some(said),
            _ => None,
        };
        let mut said = limits.filter(|_| self.unit == Unit::Ns).filter_map(beside);
        said.next().unwrap_or_else(|| self.unit.cell(self.measured()))
    }

    pub(super) fn verdict(&self) -> Option<Verdict> {
        self.limit.map(|limit| limit.verdict(self.measured()))
    }

    /// The limits as cells.
    fn limits(&self) -> [Cell; 2] {
        let cell = |value: Option<f64>| value.map_or(Cell::None, |value| self.unit.cell(value));
        [cell(self.limit.map(|limit| limit.pass)), cell(self.limit.and_then(|limit| limit.fail))]
    }

    /// Every round, where there was more than one.
    fn rounds(&self) -> Cell {
        match self.rounds.as_slice() {
            [] | [_] => Cell::None,
            rounds => Cell::Figures(rounds.iter().map(|round| self.unit.cell(*round)).collect()),
        }
    }

    fn cells(&self) -> Vec<Cell> {
        let [pass, fail] = self.limits();
        let mut cells = vec![Cell::Text(self.figure.clone()), Cell::text(self.verdict().map(Verdict::word))];
        for figure in [self.measured_cell(), pass, fail, self.rounds()] {
            cells.extend(self.unit.spread(&figure));
        }
        cells.push(Cell::text(self.limit.map(|limit| limit.from)));
        cells
    }

    fn shown(&self) -> Vec<Cell> {
        let [pass, fail] = self.limits();
        let detail = |Detail { name, unit, value }: &Detail| {
            format!("{name} {}", unit.said(&unit.cell(*value).shown()))
        };
        let details = self.details.iter().map(detail).collect::<Vec<_>>().join(", ");
        vec![
            Cell::Text(self.figure.clone()),
            self.measured_cell(),
            pass,
            fail,
            Cell::text(self.verdict().map(Verdict::word)),
            self.rounds(),
            Cell::text(Some(details).filter(|details| !details.is_empty())),
            Cell::text(self.limit.map(|limit| limit.from)),
        ]
    }

    /// For the conclusion: what was measured, and what it is held against.
    pub(super) fn said(&self) -> String {
        let said = |cell: &Cell| self.unit.said(&cell.shown());
        let measured = said(&self.measured_cell());
        let [pass, fail] = self.limits();
        let Some(limit) = self.limit else { return format!("{} is {measured}", self.figure) };
        let side = match limit.better {
            Better::Lower => "more",
            Better::Higher => "less",
        };
        match self.verdict() {
            Some(Verdict::Fail) => {
                format!("{} is {measured}, and {side} than {} fails", self.figure, said(&fail))
            }
            _ => format!("{} is {measured}, and {} would pass", self.figure, said(&pass)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(limit: Limit, rounds: &[f64]) -> Row {
        Row {
            figure: "x".to_string(),
            unit: Unit::Ns,
            rounds: rounds.to_vec(),
            limit: Some(limit),
            details: Vec::new(),
        }
    }

    #[test]
    fn a_limit_is_still_within() {
        let latency = Limit::at_most(5.0, 10.0, "");
        let verdicts = [0.0, 5.0, 5.1, 10.0, 10.1].map(|value| latency.verdict(value).word());
        assert_eq!(verdicts, ["PASS", "PASS", "MARGINAL", "MARGINAL", "FAIL"]);
        let rate = Limit::at_least(500.0, 50.0, "");
        let verdicts = [600.0, 500.0, 499.0, 50.0, 49.0].map(|value| rate.verdict(value).word());
        assert_eq!(verdicts, ["PASS", "PASS", "MARGINAL", "MARGINAL", "FAIL"]);
        let soft = Limit { fail: None, ..latency };
        assert_eq!(soft.verdict(1e9), Verdict::Marginal);
    }

    #[test]
    fn the_worst_round_decides_whichever_way_is_better() {
        let latency = row(Limit::at_most(5.0, 10.0, ""), &[1.0, 11.0, 2.0]);
        assert_eq!((latency.measured(), latency.verdict()), (11.0, Some(Verdict::Fail)));
        let rate = row(Limit::at_least(500.0, 50.0, ""), &[900.0, 400.0, 600.0]);
        assert_eq!((rate.measured(), rate.verdict()), (400.0, Some(Verdict::Marginal)));
    }

    #[test]
    fn what_has_no_limit_has_no_verdict() {
        let told = Row { limit: None, ..row(Limit::at_most(0.0, 0.0, ""), &[1.0]) };
        assert_eq!(told.verdict(), None);
        assert_eq!(told.shown()[2..6], [Cell::None, Cell::None, Cell::None, Cell::None]);
    }
    #[test]
    fn what_is_judged_is_what_is_shown() {
        let late = row(Limit::at_most(5e6, 10e6, ""), &[10_027_008.0]);
        assert_eq!(late.said(), "x is 10.03ms, and more than 10ms fails");
        assert_eq!(late.shown()[1].shown(), "10.03ms");
        let few = Row { unit: Unit::PerSecond, ..row(Limit::at_least(500.0, 50.0, ""), &[499.6]) };
        assert_eq!((few.shown()[1].shown(), few.verdict()), ("500".to_string(), Some(Verdict::Pass)));
        let share = Row { unit: Unit::Percent, ..row(Limit::at_least(99.0, 90.0, ""), &[98.94]) };
        assert_eq!(share.said(), "x is 98.9 %, and 99.0 % would pass");
    }

    #[test]
    fn programs_get_numbers_with_their_unit_in_the_key() {
        let mut row = row(Limit::at_most(5e6, 10e6, ""), &[1e6, 2_500_000.0]);
        row.details = vec![Detail::per_second("writes a second", 12.0)];
        let told = |table: &Table, key: &str| {
            let column = table.columns.iter().position(|column| column.key == key).unwrap();
            table.rows[0][column].clone()
        };
        let rows = table(std::slice::from_ref(&row));
        assert_eq!(told(&rows, "measured_ns"), Cell::Latency(2_500_000));
        assert_eq!(told(&rows, "fail_limit_ns"), Cell::Latency(10_000_000));
        assert_eq!(
            told(&rows, "rounds_ns"),
            Cell::Figures(vec![Cell::Latency(1_000_000), Cell::Latency(2_500_000)])
        );
        assert_eq!((told(&rows, "measured_per_s"), told(&rows, "rounds_percent")), (Cell::None, Cell::None));
        let details = details(std::slice::from_ref(&row));
        assert_eq!((told(&details, "per_s"), told(&details, "ns")), (Cell::Count(12), Cell::None));
        assert_eq!(shown(&[row]).rows[0][6], Cell::Text("writes a second 12".to_string()));
    }
}
