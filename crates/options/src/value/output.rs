//! Formats of the report.
//!
//! Invariant: at least one format, each at most once.

use super::choice::unknown_word;
use super::contract::{Choice, Reading, Value};
use super::kind::ValueKind;

/// A format of the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OutputFormat {
    /// Text for people.
    Normal,
    /// Semicolon-separated values.
    Terse,
    /// JSON.
    Json,
    /// JSON with all latency bins.
    JsonPlus,
}

/// Formats of the report, in the order given: `json,normal`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputFormats(pub Vec<OutputFormat>);

impl OutputFormat {
    /// The word that stands for it.
    pub fn word(self) -> &'static str {
        match self {
            OutputFormat::Normal => "normal",
            OutputFormat::Terse => "terse",
            OutputFormat::Json => "json",
            OutputFormat::JsonPlus => "json+",
        }
    }
}

impl Value for OutputFormats {
    const KIND: ValueKind = ValueKind::Words;
    const CHOICES: &'static [Choice] = &[
        Choice { word: "terse", help: "Semicolon-separated values." },
        Choice { word: "json", help: "JSON." },
        Choice { word: "json+", help: "JSON with all latency bins." },
        Choice { word: "normal", help: "Text for people." },
    ];

    fn parse(text: &str, reading: &mut Reading) -> Result<OutputFormats, String> {
        let mut formats = Vec::new();
        for word in text.split(',') {
            let format = match word.trim() {
                "normal" => OutputFormat::Normal,
                "terse" | "minimal" => OutputFormat::Terse,
                "json" => OutputFormat::Json,
                "json+" => OutputFormat::JsonPlus,
                word => return Err(unknown_word(word, Self::CHOICES, reading)),
            };
            if !formats.contains(&format) {
                formats.push(format);
            }
        }
        Ok(OutputFormats(formats))
    }

    fn print(&self) -> String {
        let words: Vec<&str> = self.0.iter().map(|format| format.word()).collect();
        words.join(",")
    }
}
