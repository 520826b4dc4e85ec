//! A figure against its limits.
//!
//! Invariant: the worst round decides, whichever way the figure is better.

use fiord_report::table::Cell;

/// How a disk does; the worst is the greatest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Verdict {
    /// Holds, with reserve.
    Pass,
    /// Holds.
    Marginal,
    /// Does not hold.
    Fail,
}

impl Verdict {
    /// As it is printed.
    pub(super) fn word(self) -> &'static str {
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
    fn word(self) -> &'static str {
        match self {
            Unit::Ns => "ns",
            Unit::PerSecond => "per second",
            Unit::Percent => "percent",
            Unit::Times => "times",
        }
    }

    pub(super) fn cell(self, value: f64) -> Cell {
        match self {
            Unit::Ns => Cell::Latency(value.round() as u64),
            Unit::PerSecond => Cell::Count(value.round() as u64),
            Unit::Percent | Unit::Times => Cell::Number(value, 1),
        }
    }

    /// With its unit, for a sentence.
    fn said(self, value: f64) -> String {
        let shown = self.cell(value).shown();
        match self {
            Unit::Ns | Unit::PerSecond => shown,
            Unit::Percent => shown + " %",
            Unit::Times => shown + " times",
        }
    }
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
    /// What else is worth knowing of it; empty for nothing.
    pub detail: String,
}

impl Row {
    /// The worst round.
    fn measured(&self) -> f64 {
        let worst = match self.limit.map_or(Better::Lower, |limit| limit.better) {
            Better::Lower => f64::max,
            Better::Higher => f64::min,
        };
        self.rounds.iter().copied().reduce(worst).unwrap_or(f64::NAN)
    }

    pub(super) fn verdict(&self) -> Option<Verdict> {
        self.limit.map(|limit| limit.verdict(self.measured()))
    }

    /// In the columns of the study's table.
    pub(super) fn cells(&self) -> Vec<Cell> {
        let limit = |value: Option<f64>| value.map_or(Cell::None, |value| self.unit.cell(value));
        let rounds = || self.rounds.iter().map(|round| self.unit.cell(*round).shown()).collect();
        vec![
            Cell::Text(self.figure.clone()),
            self.unit.cell(self.measured()),
            Cell::Text(self.unit.word().to_string()),
            limit(self.limit.map(|limit| limit.pass)),
            limit(self.limit.and_then(|limit| limit.fail)),
            Cell::text(self.verdict().map(Verdict::word)),
            if self.rounds.len() > 1 { Cell::List(rounds()) } else { Cell::None },
            Cell::text(Some(self.detail.clone()).filter(|detail| !detail.is_empty())),
            Cell::text(self.limit.map(|limit| limit.from)),
        ]
    }

    /// For the conclusion: what was measured, and what it is held against.
    pub(super) fn said(&self) -> String {
        let measured = self.unit.said(self.measured());
        let Some(limit) = self.limit else { return format!("{} is {measured}", self.figure) };
        let side = match limit.better {
            Better::Lower => "more",
            Better::Higher => "less",
        };
        match (self.verdict(), limit.fail) {
            (Some(Verdict::Fail), Some(fail)) => {
                format!("{} is {measured}, and {side} than {} fails", self.figure, self.unit.said(fail))
            }
            _ => format!("{} is {measured}, and {} would pass", self.figure, self.unit.said(limit.pass)),
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
            detail: String::new(),
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
        assert_eq!(told.cells()[3..6], [Cell::None, Cell::None, Cell::None]);
    }
}
