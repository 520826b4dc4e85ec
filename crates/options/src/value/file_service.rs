//! Which of a job's files is served next.
//!
//! Invariant: a file is served for at least one I/O.

use super::choice::{split_word, unknown_word};
use super::contract::{Choice, Reading, Value};
use super::kind::ValueKind;
use super::scan::scan;
use super::skew::Skew;

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
    /// A file by this distribution.
    Skewed(Skew),
}

impl Value for FileService {
    const KIND: ValueKind = ValueKind::WordWithNumber;
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
            _ => match Skew::parse(word, text, rest) {
                Some(skew) => skew.map(FileService::Skewed),
                None => Err(unknown_word(word, Self::CHOICES, reading)),
            },
        }
    }

    fn print(&self) -> String {
        match self {
            FileService::Random { ios } => format!("random:{ios}"),
            FileService::RoundRobin { ios } => format!("roundrobin:{ios}"),
            FileService::Sequential { ios: Some(ios) } => format!("sequential:{ios}"),
            FileService::Sequential { ios: None } => "sequential".to_string(),
            FileService::Skewed(skew) => skew.print(),
        }
    }
}

/// The number of I/Os after the colon.
fn ios(text: &str, given: bool, reading: &mut Reading) -> Result<Option<u32>, String> {
    if !given {
        return Ok(None);
    }
    match scan(text).map(|(number, rest)| (number, u32::try_from(number), rest)) {
        Some((number, Ok(ios @ 1..), rest)) => {
            super::number::note_rest(text, rest, number, reading);
            Ok(Some(ios))
        }
        _ => Err(format!("{text:?} is not a number of I/Os of at least 1")),
    }
}
