//! Conditions that must not hold: `read.p99 > +10%`.
//!
//! Invariant: a condition holds only by more than noise; one that cannot be decided is said to be undecided.

use std::fmt;
use std::str::FromStr;

use crate::compared::{ComparedFigure, Comparison, Verdict};
use crate::figure::{Figure, Measure, number};
use crate::outcome::{Decision, Outcome};

/// A condition:
///
/// ```text
/// [ROW ":"] FIGURE (">" | "<") LIMIT
/// LIMIT = ["+" | "-"] NUMBER "%"     the change from the first result
///       | NUMBER [UNIT]              the figure itself: ns us ms s, KiB MiB GiB, k M
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    /// As typed.
    pub text: String,
    row: Option<String>,
    figure: Figure,
    is_above: bool,
    limit: Limit,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Limit {
    /// A change in percent.
    Change(f64),
    /// A value, in the unit of the figure.
    Value(f64),
}

impl FromStr for Condition {
    type Err = String;

    fn from_str(text: &str) -> Result<Condition, String> {
        let at = |column: usize, what: &str| format!("column {}: {what}", text[..column].chars().count() + 1);
        let sign = text
            .find(['<', '>'])
            .ok_or_else(|| at(text.len(), "expected > or < and a limit, as in read.p99 > +10%"))?;
        let (left, right) = (&text[..sign], &text[sign + 1..]);
        let begin = left.rfind(':').map_or(0, |colon| colon + 1);
        let row = left[..begin].strip_suffix(':').map(|row| row.trim().to_string());
        if row.as_ref().is_some_and(String::is_empty) {
            return Err(at(0, "expected the name of a row before the colon"));
        }
        let name = left[begin..].trim();
        let name_at = begin + left[begin..].len() - left[begin..].trim_start().len();
        let figure: Figure = name.parse().map_err(|why: String| at(name_at, &why))?;
        let limit_text = right.trim();
        let limit_at = sign + 1 + right.len() - right.trim_start().len();
        let limit = limit(limit_text, figure).map_err(|why| at(limit_at, &why))?;
        let is_above = text[sign..].starts_with('>');
        Ok(Condition { text: text.trim().to_string(), row, figure, is_above, limit })
    }
}

fn limit(text: &str, figure: Figure) -> Result<Limit, String> {
    if let Some(percent) = text.strip_suffix('%') {
        return number(percent)
            .map(Limit::Change)
            .ok_or_else(|| format!("{text:?} is not a change in percent; write +10% or -5%"));
    }
    figure.value(text).map(Limit::Value).map_err(|units| {
        format!("{text:?} is not a limit; write a change (+10%), or a value of {figure} ({units})")
    })
}

impl Condition {
    /// The percentile it is about, if it is about one.
    pub(crate) fn percentile(&self) -> Option<f64> {
        match self.figure.measure {
            Measure::Percentile(percent) => Some(percent),
            _ => None,
        }
    }

    /// Whether it is about a change, which takes a result to compare with.
    pub fn is_change(&self) -> bool {
        matches!(self.limit, Limit::Change(_))
    }

    /// What becomes of it: the worst over all rows and sides that have its figure.
    pub(crate) fn outcome(&self, comparison: &Comparison) -> Outcome {
        let mut worst: Option<(Decision, String)> = None;
        for row in comparison.rows.iter().filter(|row| self.row.as_ref().is_none_or(|name| *name == row.name))
        {
            let Some(figure) = row.figures.iter().find(|figure| figure.figure == self.figure) else {
                continue;
            };
            // The first result is what others are compared with, unless there is no other.
            for side in usize::from(comparison.sides.len() > 1)..comparison.sides.len() {
                let of = match comparison.rows.len() {
                    1 => comparison.sides[side].0.clone(),
                    _ => format!("{}, {}", comparison.sides[side].0, row.name),
                };
                let (decision, why) = self.decide(figure, side);
                if worst.as_ref().is_none_or(|(known, _)| decision > *known) {
                    worst = Some((decision, format!("{of}: {why}")));
                }
            }
        }
        let (decision, why) = worst.unwrap_or_else(|| {
            let row = self.row.as_ref().map_or_else(String::new, |row| format!(" of a row {row:?}"));
            (Decision::Undecided, format!("no result has {}{row}", self.figure))
        });
        Outcome { condition: self.text.clone(), decision, why }
    }

    fn decide(&self, figure: &ComparedFigure, side: usize) -> (Decision, String) {
        let Some(estimate) = figure.estimates[side] else {
            return (Decision::Undecided, format!("it has no {}", self.figure));
        };
        let beyond = |value: f64, limit: f64| if self.is_above { value > limit } else { value < limit };
        match self.limit {
            Limit::Value(limit) => {
                let shown = self.figure.cell(estimate.value).shown();
                let why = format!("{} is {shown}", self.figure);
                if !beyond(estimate.value, limit) {
                    return (Decision::Clear, why);
                }
                // An error of about two standard errors; if it was not measured, the value is what it is.
                let error = estimate.error.filter(|_| estimate.basis.is_measured());
                let reach = error.map_or(0.0, |error| 2.0 * error.share * estimate.value);
                let nearest = if self.is_above { estimate.value - reach } else { estimate.value + reach };
                match beyond(nearest, limit) {
                    true => (Decision::Holds, why),
                    false => (Decision::Undecided, format!("{why}, and the limit is within its noise")),
                }
            }
            Limit::Change(limit) => {
                let change = side.checked_sub(1).and_then(|at| figure.changes.get(at).copied().flatten());
                let Some(change) = change else {
                    return (Decision::Undecided, format!("{} has nothing to be compared with", self.figure));
                };
                let why = format!("{} changed by {}", self.figure, change.shown());
                match change.verdict {
                    Verdict::NotComparable => {
                        (Decision::Undecided, format!("{why}, but the two are not comparable"))
                    }
                    _ if !beyond(change.percent, limit) => (Decision::Clear, why),
                    Verdict::CannotTell if !figure.is_noise_measured(side) => {
                        (Decision::Undecided, format!("{why}, and how much is noise is not known"))
                    }
                    Verdict::Same | Verdict::CannotTell => {
                        (Decision::Undecided, format!("{why}, which noise explains"))
                    }
                    Verdict::Better | Verdict::Worse => (Decision::Holds, why),
                }
            }
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Condition, String> {
        text.parse()
    }

    #[test]
    fn a_condition_is_a_figure_a_sign_and_a_limit() {
        let condition = read("read.p99 > +10%").unwrap();
        assert_eq!((condition.is_above, condition.limit), (true, Limit::Change(10.0)));
        assert_eq!(condition.percentile(), Some(99.0));
        let condition = read("random read 4k, depth 32: read.iops<-5.5%").unwrap();
        assert_eq!(condition.row.as_deref(), Some("random read 4k, depth 32"));
        assert_eq!((condition.is_above, condition.limit), (false, Limit::Change(-5.5)));
        for (text, value) in [
            ("write.p99.9 > 10ms", 1e7),
            ("read.iops < 50k", 5e4),
            ("read.bw < 100MiB/s", 104_857_600.0),
            ("sync.mean > 250us", 2.5e5),
            ("read.iops < 7", 7.0),
        ] {
            assert_eq!(read(text).unwrap().limit, Limit::Value(value), "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_named_with_its_column() {
        for (text, column, word) in [
            ("read.p99", 9, "expected > or <"),
            ("rad.p99 > 5%", 1, "\"rad.p99\" is not a figure"),
            ("a:  rad.p99 > 5%", 5, "not a figure"),
            ("read.p99 > ", 12, "is not a limit"),
            ("read.p99 > 5", 12, "is not a limit"),
            ("read.p99 > x%", 12, "not a change in percent"),
            ("é: read.iops > 5furlongs", 16, "is not a limit"),
            (": read.iops > 5%", 1, "name of a row"),
        ] {
            let why = read(text).unwrap_err();
            assert!(why.starts_with(&format!("column {column}: ")) && why.contains(word), "{text}: {why}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_it_panic(text in ".{0,20}[:<>%]?.{0,20}") {
            let _ = read(&text);
        }
    }
}
