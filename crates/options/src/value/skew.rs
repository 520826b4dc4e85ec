//! Distributions that prefer some places or files to others: `zipf:1.2`, `pareto:0.2:0.5`, `normal:20`.
//!
//! Invariant: the parameters are within what the distribution is defined for.

use super::floats::finite;

/// A skewed distribution of places in a file, or of the files of a job.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Skew {
    /// A Zipf distribution.
    Zipf {
        /// Skew; at least 0 and not 1.
        theta: f64,
        /// Where the favourite lies, 0 to 1; `None` for anywhere.
        center: Option<f64>,
    },
    /// A Pareto distribution.
    Pareto {
        /// Power; between 0 and 1, both excluded.
        power: f64,
        /// Where the favourite lies, 0 to 1; `None` for anywhere.
        center: Option<f64>,
    },
    /// A normal distribution.
    Normal {
        /// Standard deviation in percent of the range or of the number of files; 0 to below 100.
        deviation_percent: f64,
        /// Where the favourite lies, 0 to 1; `None` for the middle.
        center: Option<f64>,
    },
}

/// fio's default.
const DEFAULT_ZIPF_THETA: f64 = 1.1;
/// fio's default.
const DEFAULT_PARETO_POWER: f64 = 0.2;

impl Skew {
    /// The distribution that `word` names, with the parameters after it; `None` if it names another one. `rest` is the
    /// part of `text` after the word.
    pub(super) fn parse(word: &str, text: &str, rest: &str) -> Option<Result<Skew, String>> {
        let given = text.len() > word.len();
        Some(match word {
            "zipf" => zipf(text, rest, given),
            "pareto" => pareto(text, rest, given),
            "normal" | "gauss" => normal(text, rest, given),
            _ => return None,
        })
    }

    pub(super) fn print(&self) -> String {
        let (word, parameter, center) = match self {
            Skew::Zipf { theta, center } => ("zipf", theta, center),
            Skew::Pareto { power, center } => ("pareto", power, center),
            Skew::Normal { deviation_percent, center } => ("normal", deviation_percent, center),
        };
        match center {
            Some(center) => format!("{word}:{parameter}:{center}"),
            None => format!("{word}:{parameter}"),
        }
    }
}

fn zipf(whole: &str, text: &str, given: bool) -> Result<Skew, String> {
    let (theta, center) = skew(whole, text, given, DEFAULT_ZIPF_THETA)?;
    match theta >= 0.0 && theta != 1.0 {
        true => Ok(Skew::Zipf { theta, center }),
        false => Err(format!("a Zipf theta of {theta} is not allowed: 0 or more, and not 1")),
    }
}

fn pareto(whole: &str, text: &str, given: bool) -> Result<Skew, String> {
    let (power, center) = skew(whole, text, given, DEFAULT_PARETO_POWER)?;
    match power > 0.0 && power < 1.0 {
        true => Ok(Skew::Pareto { power, center }),
        false => Err(format!("a Pareto power of {power} is not between 0 and 1")),
    }
}

fn normal(whole: &str, text: &str, given: bool) -> Result<Skew, String> {
    let (deviation_percent, center) = skew(whole, text, given, 0.0)?;
    match (0.0..100.0).contains(&deviation_percent) {
        true => Ok(Skew::Normal { deviation_percent, center }),
        false => Err(format!("a deviation of {deviation_percent} is not from 0 to below 100")),
    }
}

/// The parameter of a distribution and its centre.
fn skew(whole: &str, text: &str, given: bool, default: f64) -> Result<(f64, Option<f64>), String> {
    if !given {
        return Ok((default, None));
    }
    let number = |text: &str| -> Result<f64, String> {
        finite(text.trim()).ok_or_else(|| format!("{text:?} in {whole:?} is not a number"))
    };
    let Some((parameter, center)) = text.split_once(':') else {
        return Ok((number(text)?, None));
    };
    let center = number(center)?;
    match (0.0..=1.0).contains(&center) {
        true => Ok((number(parameter)?, Some(center))),
        false => Err(format!("the centre {center} in {whole:?} is not between 0 and 1")),
    }
}
