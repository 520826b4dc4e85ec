//! The kinds of values options take: each a type that parses what fio parses and prints what fio would read.
//!
//! Invariant: for every value `v`, parsing `v.print()` gives `v` back; and a value is never a number with a secret
//! meaning.

mod choice;
mod cpus;
mod direction;
mod errors;
mod expression;
mod file_service;
mod floats;
mod memory;
mod mode;
pub(crate) mod number;
mod output;
mod pattern;
mod size;
mod split;
mod text;
mod time;

#[cfg(test)]
mod tests;

use std::fmt::Debug;
use std::ops::RangeInclusive;

use crate::spec::{Choice, Takes};

pub use choice::*;
pub use cpus::{CpuSet, NumaNodes, NumaPolicy};
pub use direction::PerDirection;
pub use errors::{ErrorCode, IgnoreErrors};
pub use file_service::FileService;
pub use floats::FloatList;
pub use memory::{Memory, MemoryKind, SyncFileRange};
pub use mode::RwMode;
pub use number::Bytes;
pub use output::{OutputFormat, OutputFormats};
pub use pattern::{BufferPattern, PatternPart, VerifyPattern};
pub use size::{BlockRange, Size, SizeRange};
pub use split::{BlockSplit, SplitEntry};
pub use text::{EngineName, Flag, OptionalText, Switch, Text};
pub use time::{Micros, Period, Seconds, StartDelay};

/// What a value is read under besides its text, and what there is to say about it afterwards.
#[derive(Debug, Clone, Default)]
pub struct Reading {
    /// Numbers allowed, in the unit of the type; `None` when the option sets no bounds.
    pub range: Option<RangeInclusive<i128>>,
    /// Meaning of size suffixes.
    pub kb_base: KbBase,
    /// Sentences (without full stop) on values that fio reads differently from what they seem to say.
    pub notes: Vec<String>,
}

impl Reading {
    /// The given range, and fio's default meaning of suffixes.
    pub fn new(range: Option<RangeInclusive<i128>>) -> Reading {
        Reading { range, ..Reading::default() }
    }

    /// Records something the user should be told although the value is accepted.
    pub fn note(&mut self, sentence: String) {
        if !self.notes.contains(&sentence) {
            self.notes.push(sentence);
        }
    }

    /// Holds a number against the range of the option.
    pub(crate) fn check_range(&self, number: i128) -> Result<(), String> {
        match &self.range {
            Some(range) if number < *range.start() => Err(format!("{number} is below {}", range.start())),
            Some(range) if number > *range.end() => Err(format!("{number} is above {}", range.end())),
            _ => Ok(()),
        }
    }
}

/// A kind of value.
pub trait Value: Sized + Clone + PartialEq + Debug {
    /// The kind in a few words, for help and reference (`integer`, `size`).
    const KIND: &'static str;
    /// Whether a value must follow the option.
    const TAKES: Takes = Takes::Value;
    /// The words allowed, for kinds that are a choice between words.
    const CHOICES: &'static [Choice] = &[];
    /// What separates the parts of a list of such values, one per direction.
    const SEPARATORS: &'static [char] = &[','];

    /// Whether of a list the first value counts alone. One that is left out (`runtime=,3`) then leaves the option as
    /// it was.
    const ONE_OF_LIST: bool = false;

    /// Parses the text after `=`. The error is one sentence without a full stop that names the value.
    fn parse(text: &str, reading: &mut Reading) -> Result<Self, String>;

    /// The value as a user could type it, whatever `kb_base` is.
    fn print(&self) -> String;

    /// Parses on top of the value the option had. Only lists of which parts may be left out need it.
    fn parse_onto(_before: Option<&Self>, text: &str, reading: &mut Reading) -> Result<Self, String> {
        Self::parse(text, reading)
    }

    /// The value of the bare option, where that is allowed.
    fn bare() -> Option<Self> {
        None
    }

    /// The value that says nothing (`= ""` in the table), where there is one.
    fn unset() -> Option<Self> {
        None
    }
}
