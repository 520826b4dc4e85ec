//! When a measure counts as steady: `iops:3%`, `bw_slope:0.1%`, `lat:50us`.
//!
//! Invariant: the limit is a finite number, in percent of the mean or in the unit of the measure.

use super::choice::unknown_word;
use super::contract::{Choice, Reading, Value};
use super::floats::finite;
use super::kind::ValueKind;
use super::number::integer;
use super::time::Micros;

use fiord_stats::Capped;
pub use fiord_stats::SteadyMeasure;

/// How far a measure may be from steady.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SteadyLimit {
    /// Percent of the mean.
    Percent(f64),
    /// In the unit of the measure: I/Os or bytes per second, or nanoseconds.
    Absolute(f64),
}

/// A measure, what is judged of it, and the limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SteadyCriterion {
    /// What is measured.
    pub measure: SteadyMeasure,
    /// The slope of a line through the measurements is judged, not their largest deviation from the mean.
    pub is_slope: bool,
    /// It is steady below this.
    pub limit: SteadyLimit,
}

/// What the words mean, in the order of the choices: the measure, and whether its slope is judged.
const MEANINGS: [(SteadyMeasure, bool); 6] = [
    (SteadyMeasure::Iops, false),
    (SteadyMeasure::Iops, true),
    (SteadyMeasure::Bandwidth, false),
    (SteadyMeasure::Bandwidth, true),
    (SteadyMeasure::Latency, false),
    (SteadyMeasure::Latency, true),
];

/// The word of a measure, or of its slope, in options and reports: `bw_slope`.
pub fn steady_word(measure: SteadyMeasure, is_slope: bool) -> &'static str {
    let meant = |meaning: &(SteadyMeasure, bool)| *meaning == (measure, is_slope);
    MEANINGS.iter().position(meant).map_or("", |at| SteadyCriterion::CHOICES[at].word)
}

/// What a word means.
fn meaning(word: &str) -> Option<(SteadyMeasure, bool)> {
    SteadyCriterion::CHOICES.iter().position(|choice| choice.word == word).map(|at| MEANINGS[at])
}

impl Value for SteadyCriterion {
    const KIND: ValueKind = ValueKind::WordWithNumber;
    const CHOICES: &'static [Choice] = &[
        Choice { word: "iops", help: "I/Os per second: the largest deviation from their mean." },
        Choice { word: "iops_slope", help: "I/Os per second: the slope of a line through them." },
        Choice { word: "bw", help: "Bandwidth: the largest deviation from its mean." },
        Choice { word: "bw_slope", help: "Bandwidth: the slope of a line through it." },
        Choice { word: "lat", help: "Mean latency: the largest deviation from its mean." },
        Choice { word: "lat_slope", help: "Mean latency: the slope of a line through it." },
    ];

    fn parse(text: &str, reading: &mut Reading) -> Result<SteadyCriterion, String> {
        let (word, limit) = text.split_once(':').unwrap_or((text, ""));
        let Some((measure, is_slope)) = meaning(word) else {
            return Err(unknown_word(word, Self::CHOICES, reading));
        };
        if limit.trim().is_empty() {
            return Err(format!("{text:?} needs a limit: {word}:5%, for example"));
        }
        if limit.contains([',', ':']) {
            return Err(format!("{text:?} is more than one criterion"));
        }
        let limit = match (limit.contains('%'), measure) {
            (true, _) => SteadyLimit::Percent(decimal(limit, reading)?),
            (false, SteadyMeasure::Iops) => SteadyLimit::Absolute(decimal(limit, reading)?),
            (false, SteadyMeasure::Bandwidth) => SteadyLimit::Absolute(integer(limit, reading)? as f64),
            (false, SteadyMeasure::Latency) => {
                SteadyLimit::Absolute(Micros::parse(limit, reading)?.us as f64 * 1000.0)
            }
        };
        Ok(SteadyCriterion { measure, is_slope, limit })
    }

    fn print(&self) -> String {
        let word = steady_word(self.measure, self.is_slope);
        match self.limit {
            SteadyLimit::Percent(percent) => format!("{word}:{percent}%"),
            SteadyLimit::Absolute(ns) if self.measure == SteadyMeasure::Latency => {
                format!("{word}:{}", Micros { us: u64::capped(ns / 1000.0) }.print())
            }
            SteadyLimit::Absolute(limit) => format!("{word}:{limit}"),
        }
    }
}

/// The number at the start of a limit; what follows it, apart from a percent sign, is noted as ignored.
fn decimal(text: &str, reading: &mut Reading) -> Result<f64, String> {
    let trimmed = text.trim();
    let digits: String = trimmed
        .chars()
        .take_while(|letter| letter.is_ascii_digit() || matches!(letter, '.' | '-' | '+' | 'e' | 'E'))
        .collect();
    let number = finite(&digits).ok_or_else(|| format!("{trimmed:?} is not a number"))?;
    let rest = &trimmed[digits.len()..];
    if !matches!(rest, "" | "%") {
        reading.note(format!("{trimmed:?} is read as {number}{}", if rest.contains('%') { "%" } else { "" }));
    }
    Ok(number)
}
