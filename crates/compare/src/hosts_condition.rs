//! Conditions on how the hosts of one run differ: `hosts.p99.max > 2 * hosts.p99.median`.
//!
//! Invariant: without a figure of every host nothing is decided but what no further host could undo.

use std::fmt;
use std::str::FromStr;

use crate::figure::{Figure, Measure, Subject, number};
use crate::outcome::{Decision, Outcome};

/// How such a condition begins.
const PREFIX: &str = "hosts.";

/// Which of the hosts' values.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Which {
    Min,
    Median,
    Max,
}

const WHICH: [(&str, Which); 3] = [("min", Which::Min), ("median", Which::Median), ("max", Which::Max)];

/// One value of a figure of all hosts: `hosts.read.p99.max`, or `hosts.p99.max` of all directions as one.
#[derive(Clone, Copy, Debug, PartialEq)]
struct OfHosts {
    figure: Figure,
    which: Which,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Limit {
    /// In the unit of the figure.
    Value(f64),
    /// So many times another.
    Times(f64, OfHosts),
}

/// A condition:
///
/// ```text
/// OF_HOSTS (">" | "<") (NUMBER [UNIT] | [NUMBER "*"] OF_HOSTS)
/// OF_HOSTS = "hosts." FIGURE "." ("min" | "median" | "max")
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct HostsCondition {
    text: String,
    left: OfHosts,
    is_above: bool,
    limit: Limit,
}

impl HostsCondition {
    /// Whether this text is to be read as one.
    pub fn is_meant(text: &str) -> bool {
        text.trim_start().starts_with(PREFIX)
    }

    /// What becomes of it. `values`: a figure of each host that has it; `hosts`: how many were asked for.
    pub fn outcome(&self, values: &dyn Fn(Figure) -> Vec<f64>, hosts: usize) -> Outcome {
        let (decision, why) = self.decided(values, hosts);
        Outcome { condition: self.text.clone(), decision, why }
    }

    fn decided(&self, values: &dyn Fn(Figure) -> Vec<f64>, hosts: usize) -> (Decision, String) {
        let of = |one: OfHosts| {
            let known = values(one.figure);
            (one.which.of(&known), hosts.saturating_sub(known.len()))
        };
        let missing = |one: OfHosts| (Decision::Undecided, format!("no host has a figure for {one}"));
        let (Some(value), absent) = of(self.left) else { return missing(self.left) };
        let shown = |value: f64| self.left.figure.cell(value).shown();
        let (limit, of_limit, absent) = match self.limit {
            Limit::Value(limit) => (limit, String::new(), absent),
            Limit::Times(times, other) => match of(other) {
                (None, _) => return missing(other),
                (Some(value), more) => {
                    (times * value, format!(", and the limit {}", shown(times * value)), absent.max(more))
                }
            },
        };
        let holds = if self.is_above { value > limit } else { value < limit };
        let why = format!("{} is {}{of_limit}", self.left, shown(value));
        // A further host cannot make the greatest smaller.
        let is_for_good = matches!(self.limit, Limit::Value(_))
            && self.left.which == if self.is_above { Which::Max } else { Which::Min };
        match (holds, absent) {
            (true, 0) => (Decision::Holds, why),
            (false, 0) => (Decision::Clear, why),
            (true, _) if is_for_good => (Decision::Holds, why),
            (_, absent) => (Decision::Undecided, format!("{why}, without {absent} of {hosts} hosts")),
        }
    }
}

impl Which {
    fn of(self, values: &[f64]) -> Option<f64> {
        let mut sorted = values.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let middle = f64::midpoint(*sorted.get(sorted.len() / 2)?, *sorted.get((sorted.len() - 1) / 2)?);
        match self {
            Which::Min => sorted.first().copied(),
            Which::Median => Some(middle),
            Which::Max => sorted.last().copied(),
        }
    }
}

impl fmt::Display for OfHosts {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (figure, which) = (self.figure.to_string(), WHICH.iter().find(|(_, which)| *which == self.which));
        let figure = figure.strip_prefix("mixed.").unwrap_or(&figure);
        write!(out, "{PREFIX}{figure}.{}", which.map_or("", |(word, _)| word))
    }
}

impl FromStr for OfHosts {
    type Err = String;

    fn from_str(text: &str) -> Result<OfHosts, String> {
        let wrong =
            || format!("{text:?} is no figure of hosts: write hosts.p99.max, hosts.read.iops.min or …median");
        let (figure, word) =
            text.strip_prefix(PREFIX).and_then(|rest| rest.rsplit_once('.')).ok_or_else(wrong)?;
        let (_, which) = WHICH.into_iter().find(|(known, _)| *known == word).ok_or_else(wrong)?;
        let figure = format!("mixed.{figure}").parse().or_else(|_| figure.parse()).map_err(|_| wrong())?;
        match figure {
            Figure { subject: Subject::Sync | Subject::Energy | Subject::Job, .. }
            | Figure { measure: Measure::Counted(_), .. } => Err(wrong()),
            figure => Ok(OfHosts { figure, which }),
        }
    }
}

impl FromStr for HostsCondition {
    type Err = String;

    fn from_str(text: &str) -> Result<HostsCondition, String> {
        let at = |byte: usize, what: &str| format!("column {}: {what}", text[..byte].chars().count() + 1);
        let sign = text.find(['<', '>']).ok_or_else(|| {
            at(text.len(), "expected > or < and a limit, as in hosts.p99.max > 2 * hosts.p99.median")
        })?;
        let trimmed = |from: usize, to: usize| {
            let part = &text[from..to];
            (from + part.len() - part.trim_start().len(), part.trim())
        };
        let (left_at, left) = trimmed(0, sign);
        let left: OfHosts = left.parse().map_err(|why: String| at(left_at, &why))?;
        let (limit_at, limit) = trimmed(sign + 1, text.len());
        let limit = limit_of(limit, left.figure).map_err(|why| at(limit_at, &why))?;
        Ok(HostsCondition {
            text: text.trim().to_string(),
            left,
            is_above: text[sign..].starts_with('>'),
            limit,
        })
    }
}

fn limit_of(text: &str, figure: Figure) -> Result<Limit, String> {
    let (times, other) = match text.split_once('*') {
        Some((times, other)) => (times.trim(), other.trim()),
        None => ("1", text),
    };
    if !HostsCondition::is_meant(other) {
        return figure.value(text).map(Limit::Value).map_err(|units| {
            format!("{text:?} is not a limit; write a value ({units}), or 2 * hosts.p99.median")
        });
    }
    let number = number(times).filter(|times| *times >= 0.0);
    let times = number.ok_or_else(|| format!("{times:?} is not a number; write 2 * {other}"))?;
    let other: OfHosts = other.parse()?;
    let unit = |measure| match measure {
        Measure::Iops => 0,
        Measure::Bandwidth => 1,
        _ => 2,
    };
    match unit(other.figure.measure) == unit(figure.measure) {
        true => Ok(Limit::Times(times, other)),
        false => Err(format!("{other} has another unit; compare a figure with one of its own kind")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decided(text: &str, values: &[f64], hosts: usize) -> Decision {
        let condition: HostsCondition = text.parse().unwrap();
        condition.outcome(&|_| values.to_vec(), hosts).decision
    }

    #[test]
    fn the_greatest_is_compared_with_the_others_or_with_a_value() {
        let even = [1e6, 1.1e6, 1.2e6];
        let one_slow = [1e6, 1.1e6, 5e6];
        let text = "hosts.p99.max > 2 * hosts.p99.median";
        assert_eq!(
            [decided(text, &even, 3), decided(text, &one_slow, 3)],
            [Decision::Clear, Decision::Holds]
        );
        assert_eq!(decided("hosts.p99.max > 4ms", &one_slow, 3), Decision::Holds);
        assert_eq!(decided("hosts.read.iops.min<hosts.read.iops.median", &[2.0, 2.0], 2), Decision::Clear);
        assert_eq!(decided("hosts.mean.median > 1ms", &[0.0, 3e6], 2), Decision::Holds);
    }

    #[test]
    fn a_host_without_a_figure_decides_nothing_unless_it_could_not() {
        assert_eq!(decided("hosts.p99.max > 2 * hosts.p99.median", &[1.0, 9.0], 3), Decision::Undecided);
        assert_eq!(decided("hosts.p99.max > 10ms", &[1e6, 2e6], 3), Decision::Undecided);
        assert_eq!(decided("hosts.p99.max > 1ms", &[1e6, 2e6], 3), Decision::Holds);
        assert_eq!(decided("hosts.p99.min > 0ms", &[1e6, 2e6], 3), Decision::Undecided);
        assert_eq!(decided("hosts.p99.max > 1ms", &[], 3), Decision::Undecided);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_column() {
        let wrong = |text: &str| text.parse::<HostsCondition>().unwrap_err();
        for (text, column) in [
            ("hosts.p99.max", "column 14: expected > or <"),
            ("hosts.p99.mad > 1ms", "column 1: \"hosts.p99.mad\" is no figure of hosts"),
            ("hosts.sync.p99.max > 1ms", "column 1:"),
            ("hosts.p99.max > 2", "column 17: \"2\" is not a limit"),
            ("hosts.p99.max > x * hosts.p99.min", "column 17: \"x\" is not a number"),
            ("hosts.p99.max > 2 * hosts.iops.min", "column 17: hosts.iops.min has another unit"),
        ] {
            assert!(wrong(text).starts_with(column), "{text}: {}", wrong(text));
        }
        let long = "hosts.write.p99.9.max > 1.5 * hosts.write.p99.9.median";
        let condition: HostsCondition = long.parse().unwrap();
        assert_eq!(condition.left.to_string(), "hosts.write.p99.9.max");
    }
}
