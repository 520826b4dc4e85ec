//! Which of a job's files is served next.
//!
//! Invariant: the parameters of a skewed distribution are within what the distribution is defined for.

use super::choice::{split_word, unknown_word};
use super::number::scan;
use super::{Reading, Value};
use crate::spec::Choice;

/// Order in which files are served.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FileService {
    /// A file at random for every `ios` I/Os.
    Random {
        /// I/Os before another file is chosen; at least 1.
        ios: u32,
    },
    /// Each file in turn for `ios` I/Os.
    RoundRobin {
        /// I/Os before the next file; at least 1.
        ios: u32,
    },
    /// One file to its end before the next, or `ios` I/Os of it.
    Sequential {
        /// I/Os before the next file; `None` for all of the file.
        ios: Option<u32>,
    },
    /// A file by a Zipf distribution.
    Zipf {
        /// Skew; above 0 and not 1.
        theta: f64,
        /// Where the favourite file lies, 0 to 1; `None` for anywhere.
        center: Option<f64>,
    },
    /// A file by a Pareto distribution.
    Pareto {
        /// Power; between 0 and 1, both excluded.
        power: f64,
        /// Where the favourite file lies, 0 to 1; `None` for anywhere.
        center: Option<f64>,
    },
    /// A file by a normal distribution.
    Normal {
        /// Standard deviation in percent of the number of files; 0 to below 100.
        deviation_percent: f64,
        /// Where the favourite file lies, 0 to 1; `None` for the middle.
        center: Option<f64>,
    },
}

/// What fio skews by when the user does not say.
const DEFAULT_ZIPF_THETA: f64 = 1.1;
/// What fio skews by when the user does not say.
const DEFAULT_PARETO_POWER: f64 = 0.2;

impl Value for FileService {
    const KIND: &'static str = "word, with a number after a colon";
    const CHOICES: &'static [Choice] = &[
        Choice { word: "random", help: "A file at random; `random:8` stays for 8 I/Os." },
        Choice { word: "roundrobin", help: "Each file in turn; `roundrobin:8` stays for 8 I/Os." },
        Choice { word: "sequential", help: "One file to its end, then the next." },
        Choice { word: "zipf", help: "By a Zipf distribution: `zipf:1.2`." },
        Choice { word: "pareto", help: "By a Pareto distribution: `pareto:0.3`." },
        Choice { word: "normal", help: "By a normal distribution: `normal:20`." },
        Choice { word: "gauss", help: "Same as normal." },
    ];

    fn parse(text: &str, reading: &mut Reading) -> Result<FileService, String> {
        let (word, rest) = split_word(text);
        let given = text.len() > word.len();
        match word {
            "random" => Ok(FileService::Random { ios: ios(rest, given, reading)?.unwrap_or(1) }),
            "roundrobin" => Ok(FileService::RoundRobin { ios: ios(rest, given, reading)?.unwrap_or(1) }),
            "sequential" => Ok(FileService::Sequential { ios: ios(rest, given, reading)? }),
            "zipf" => {
                let (theta, center) = skew(text, rest, given, DEFAULT_ZIPF_THETA)?;
                let allowed = theta > 0.0 && theta != 1.0;
                let wrong = || format!("a Zipf theta of {theta} is not allowed: above 0, and not 1");
                allowed.then_some(FileService::Zipf { theta, center }).ok_or_else(wrong)
            }
            "pareto" => {
                let (power, center) = skew(text, rest, given, DEFAULT_PARETO_POWER)?;
                let allowed = power > 0.0 && power < 1.0;
                let wrong = || format!("a Pareto power of {power} is not between 0 and 1");
                allowed.then_some(FileService::Pareto { power, center }).ok_or_else(wrong)
            }
            "normal" | "gauss" => {
                let (deviation_percent, center) = skew(text, rest, given, 0.0)?;
                let allowed = (0.0..100.0).contains(&deviation_percent);
                let wrong = || format!("a deviation of {deviation_percent} is not from 0 to below 100");
                allowed.then_some(FileService::Normal { deviation_percent, center }).ok_or_else(wrong)
            }
            _ => Err(unknown_word(word, Self::CHOICES)),
        }
    }

    fn print(&self) -> String {
        let skewed = |word: &str, number: f64, center: &Option<f64>| match center {
            Some(center) => format!("{word}:{number}:{center}"),
            None => format!("{word}:{number}"),
        };
        match self {
            FileService::Random { ios } => format!("random:{ios}"),
            FileService::RoundRobin { ios } => format!("roundrobin:{ios}"),
            FileService::Sequential { ios: Some(ios) } => format!("sequential:{ios}"),
            FileService::Sequential { ios: None } => "sequential".to_string(),
            FileService::Zipf { theta, center } => skewed("zipf", *theta, center),
            FileService::Pareto { power, center } => skewed("pareto", *power, center),
            FileService::Normal { deviation_percent, center } => skewed("normal", *deviation_percent, center),
        }
    }
}

/// The number of I/Os after the colon.
fn ios(text: &str, given: bool, reading: &mut Reading) -> Result<Option<u32>, String> {
    if !given {
        return Ok(None);
    }
    match scan(text) {
        Some((number, rest)) if (1..=i128::from(u32::MAX)).contains(&number) => {
            super::number::note_rest(text, rest, number, reading);
            Ok(Some(number as u32))
        }
        _ => Err(format!("{text:?} is not a number of I/Os of at least 1")),
    }
}

/// The parameter of a distribution and its centre.
fn skew(whole: &str, text: &str, given: bool, default: f64) -> Result<(f64, Option<f64>), String> {
    if !given {
        return Ok((default, None));
    }
    let number = |text: &str| -> Result<f64, String> {
        let parsed: Result<f64, _> = text.trim().parse();
        parsed.map_err(|_| format!("{text:?} in {whole:?} is not a number"))
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
