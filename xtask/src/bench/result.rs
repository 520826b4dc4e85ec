//! The lines of the table, made only from the raw results, so that output and page cannot differ.
//!
//! Invariant: a ratio is fiord's figure divided by the other's of the same pair; the verdict is that of the median
//! ratio.

use serde_json::{Value, json};

use super::measure::{Outcome, median};
use super::rows::{Against, Metric, Row, Target};

/// A peer that was busy for this share of a processor's time limited the run: the rest is what it waits for in the kernel's
/// scheduler, and the ends of a run, when nothing is sent.
const LIMIT_BUSY: f64 = 0.95;

/// One claim and its result.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    pub case: String,
    pub metric: Metric,
    pub target: Target,
    /// Whether the other end was what limited fiord.
    pub is_limited: bool,
    pub result: LineResult,
}

/// The result of a claim.
#[derive(Debug, Clone, PartialEq)]
pub enum LineResult {
    /// The median figures of the other (`None`: it refuses the work) and of fiord, and their ratios.
    Measured {
        other: Option<f64>,
        fiord: f64,
        ratio: Option<Ratio>,
    },
    Skipped(String),
    Failed(String),
}

/// The ratios of all pairs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratio {
    pub median: f64,
    pub lowest: f64,
    pub highest: f64,
}

impl Line {
    /// `held`, `missed`, `limit` (missed, because the other end was busy all the time), `skipped` or `FAILED`.
    pub fn verdict(&self) -> &'static str {
        match &self.result {
            LineResult::Skipped(_) => "skipped",
            LineResult::Failed(_) => "FAILED",
            LineResult::Measured { ratio, .. } => match ratio {
                Some(ratio) if !self.target.is_held_by(ratio.median) => {
                    if self.is_limited {
                        "limit"
                    } else {
                        "missed"
                    }
                }
                _ => "held",
            },
        }
    }
}

/// A row and its outcome as stored in the raw results. `place` is what it ran on, `load` the machine's load average
/// before it.
pub fn raw(row: &Row, outcome: &Outcome, place: &str, load: f64) -> Value {
    let claims: Vec<Value> = row
        .claims
        .iter()
        .map(|(metric, target)| {
            json!({ "case": row.claim_name(*metric), "metric": metric.key(), "target": target.to_string() })
        })
        .collect();
    let mut document = json!({
        "row": row.case,
        "args": row.args,
        "place": place,
        "peer": row.peer.map(|peer| format!("{peer:?}")),
        "against": match row.against {
            Against::Fio => "fio".to_string(),
            Against::Peak(args) => format!("t/io_uring {args}"),
        },
        "load": load,
        "claims": claims,
    });
    let (key, value) = match outcome {
        Outcome::Skipped(why) => ("skipped", json!(why)),
        Outcome::Failed(why) => ("failed", json!(why)),
        Outcome::Measured(pairs) => {
            let pair = |[other, fiord]: &[Option<super::measure::Figures>; 2]| json!({ "other": other.map(|run| run.to_json()), "fiord": fiord.map(|run| run.to_json()) });
            ("pairs", pairs.iter().map(pair).collect())
        }
    };
    document[key] = value;
    document
}

/// The lines of one row of the raw results; the error names the problem.
pub fn lines(row: &Value) -> Result<Vec<Line>, String> {
    let claims = row["claims"].as_array().ok_or_else(|| format!("{}: no claims", row["row"]))?;
    let line = |claim: &Value| {
        let metric = Metric::of_key(claim["metric"].as_str()?)?;
        let target = Target::parse(claim["target"].as_str()?)?;
        let result = if let Some(why) = row["skipped"].as_str() {
            LineResult::Skipped(why.to_string())
        } else if let Some(why) = row["failed"].as_str() {
            LineResult::Failed(why.to_string())
        } else {
            measured(row["pairs"].as_array()?, metric)?
        };
        let is_limited = peer_busy(&row["pairs"]).is_some_and(|busy| busy >= LIMIT_BUSY);
        Some(Line { case: claim["case"].as_str()?.to_string(), metric, target, is_limited, result })
    };
    claims
        .iter()
        .map(|claim| line(claim).ok_or_else(|| format!("{}: cannot be read: {claim}", row["row"])))
        .collect()
}

/// The median of how busy the peer was during fiord's runs, as a share of one processor's time.
fn peer_busy(pairs: &Value) -> Option<f64> {
    let pairs = pairs.as_array()?;
    let busy: Option<Vec<f64>> = pairs.iter().map(|pair| pair["fiord"]["peer_busy"].as_f64()).collect();
    busy.filter(|busy| !busy.is_empty()).map(median)
}

fn measured(pairs: &[Value], metric: Metric) -> Option<LineResult> {
    let figure = |side: &str| -> Vec<f64> {
        pairs.iter().filter_map(|pair| pair[side][metric.key()].as_f64()).collect()
    };
    let (other, fiord) = (figure("other"), figure("fiord"));
    if fiord.is_empty() || fiord.len() != pairs.len() || !(other.is_empty() || other.len() == pairs.len()) {
        return None;
    }
    let ratios: Vec<f64> = other.iter().zip(&fiord).map(|(other, fiord)| fiord / other).collect();
    let ratio = (!ratios.is_empty()).then(|| Ratio {
        lowest: ratios.iter().copied().fold(f64::INFINITY, f64::min),
        highest: ratios.iter().copied().fold(0.0, f64::max),
        median: median(ratios),
    });
    let other = (!other.is_empty()).then(|| median(other));
    Some(LineResult::Measured { other, fiord: median(fiord), ratio })
}

/// The number of lines that are `held`, `missed`, `limit`, `skipped` and `FAILED`.
pub fn counts(lines: &[Line]) -> String {
    let count = |verdict: &str| lines.iter().filter(|line| line.verdict() == verdict).count();
    let failed = match count("FAILED") {
        0 => String::new(),
        count => format!(", {count} failed"),
    };
    let limited = match count("limit") {
        0 => String::new(),
        count => format!(", {count} at the limit of the other end"),
    };
    format!(
        "{} held, {} missed{limited}, {} skipped{failed}",
        count("held"),
        count("missed"),
        count("skipped")
    )
}

#[cfg(test)]
pub mod testing {
    use super::*;

    /// A row of raw results with one claim.
    pub fn row(case: &str, metric: Metric, target: &str, pairs: &[(Option<f64>, f64)]) -> Value {
        let side = |figure: f64| json!({ metric.key(): figure });
        let pairs: Vec<Value> = pairs
            .iter()
            .map(|(other, fiord)| json!({ "other": other.map(side), "fiord": side(*fiord) }))
            .collect();
        json!({ "row": case, "load": 0.5, "pairs": pairs,
                "claims": [{ "case": case, "metric": metric.key(), "target": target }] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_of_successive_runs_and_judged_by_their_median() {
        let pairs = [(Some(100.0), 200.0), (Some(200.0), 300.0), (Some(100.0), 120.0)];
        let row = testing::row("a", Metric::Iops, ">=1.5", &pairs);
        let line = &lines(&row).unwrap()[0];
        let ratio = Ratio { median: 1.5, lowest: 1.2, highest: 2.0 };
        assert_eq!(
            line.result,
            LineResult::Measured { other: Some(100.0), fiord: 200.0, ratio: Some(ratio) }
        );
        assert_eq!(line.verdict(), "held");
        let missed = lines(&testing::row("a", Metric::Iops, ">=1.51", &pairs)).unwrap();
        assert_eq!(missed[0].verdict(), "missed");
        assert_eq!(counts(&[line.clone(), missed[0].clone()]), "1 held, 1 missed, 0 skipped");
    }

    #[test]
    fn a_target_is_not_missed_if_the_other_end_was_busy_all_the_time() {
        let verdict = |busy: f64, fiord: f64| {
            let pairs = [(Some(100.0), fiord), (Some(100.0), fiord)];
            let mut row = testing::row("a", Metric::Iops, ">=1.2", &pairs);
            row["pairs"][0]["fiord"]["peer_busy"] = json!(busy);
            row["pairs"][1]["fiord"]["peer_busy"] = json!(busy);
            lines(&row).unwrap().remove(0)
        };
        assert_eq!(verdict(0.99, 110.0).verdict(), "limit");
        assert_eq!(verdict(0.90, 110.0).verdict(), "missed");
        assert_eq!(verdict(0.99, 130.0).verdict(), "held");
        assert_eq!(
            counts(&[verdict(1.0, 110.0)]),
            "0 held, 0 missed, 1 at the limit of the other end, 0 skipped"
        );
    }

    #[test]
    fn work_that_the_other_refuses_is_held_if_done() {
        let row = testing::row("a", Metric::Time, "runs", &[(None, 2.0), (None, 4.0)]);
        let line = &lines(&row).unwrap()[0];
        assert_eq!(line.result, LineResult::Measured { other: None, fiord: 3.0, ratio: None });
        assert_eq!(line.verdict(), "held");
    }

    #[test]
    fn raw_results_are_read_as_they_are_written() {
        let row = &super::super::rows::rows()[0];
        let skipped = raw(row, &Outcome::Skipped("no device".to_string()), "zram", 1.5);
        assert_eq!(lines(&skipped).unwrap()[0].result, LineResult::Skipped("no device".to_string()));
        let failed = lines(&raw(row, &Outcome::Failed("exit 1".to_string()), "zram", 1.5)).unwrap();
        assert_eq!(counts(&failed), "0 held, 0 missed, 0 skipped, 1 failed");
        assert!(lines(&raw(row, &Outcome::Measured(Vec::new()), "zram", 1.5)).is_err(), "no pair");
    }

    #[test]
    fn a_pair_that_lacks_a_figure_is_an_error() {
        let mut row = testing::row("a", Metric::Time, "<=1", &[(Some(1.0), 2.0), (Some(1.0), 2.0)]);
        row["pairs"][1]["other"] = Value::Null;
        assert!(lines(&row).is_err());
    }
}
