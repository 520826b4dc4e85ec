//! What all kinds of values have in common, and the context in which they are parsed.
//!
//! Invariant: a value is parsed from its text, the option's range and the meaning of size suffixes, and from nothing
//! else.

use std::ffi::OsStr;
use std::fmt::Debug;
use std::ops::RangeInclusive;

use super::kind::ValueKind;
use crate::shown::shown;
use crate::suggest;

/// Whether a value must, may or cannot follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    /// No value: `--readonly`.
    Nothing,
    /// A value or none: `thread`, `thread=1` (fio's "empty or boolean").
    Optional,
    /// Always a value.
    Value,
}

/// One of the words an option takes as its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice {
    /// The word.
    pub word: &'static str,
    /// What it does, a few words.
    pub help: &'static str,
}

/// What a kilobyte is to the job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum KbBase {
    /// `4k` is 4096 and `4KiB` is 4000: fio's default.
    #[default]
    Binary,
    /// `4k` is 4000 and `4KiB` is 4096.
    Decimal,
}

/// A warning about a value that is accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// What it says, without a full stop.
    pub sentence: String,
    /// Whether it says that a unit of powers of 1024 means one of powers of 1000.
    pub is_decimal_unit: bool,
}

/// The context in which a value is read, and the warnings about it.
#[derive(Debug, Clone, Default)]
pub struct Reading {
    /// Numbers allowed, in the unit of the type; `None` when the option sets no bounds.
    pub range: Option<RangeInclusive<i128>>,
    /// Meaning of size suffixes.
    pub kb_base: KbBase,
    /// Warnings about values that fio reads differently from what they seem to mean.
    pub notes: Vec<Note>,
    /// The word that was probably meant, if the value is not an allowed word.
    pub suggestion: Option<&'static str>,
}

impl Reading {
    /// Records a warning about a value that is accepted.
    pub fn note(&mut self, sentence: String) {
        self.add(Note { sentence, is_decimal_unit: false });
    }

    /// Records that a unit of powers of 1024 means one of powers of 1000.
    pub(crate) fn note_decimal_unit(&mut self, sentence: String) {
        self.add(Note { sentence, is_decimal_unit: true });
    }

    fn add(&mut self, note: Note) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// Records which of these words was probably meant, if one is near.
    pub(crate) fn suggest(&mut self, typed: &str, words: impl Iterator<Item = &'static str>) {
        self.suggestion = suggest::nearest(typed, words);
    }

    /// The error message for the value, with the word that was probably meant.
    pub(crate) fn with_suggestion(&self, why: String) -> String {
        match self.suggestion {
            Some(near) => format!("{why}; did you mean {near:?}?"),
            None => why,
        }
    }

    /// Checks a number against the range of the option.
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
    /// Which kind it is.
    const KIND: ValueKind;
    /// Whether a value must follow the option.
    const TAKES: Takes = Takes::Value;
    /// The words allowed, for kinds that are a choice between words.
    const CHOICES: &'static [Choice] = &[];
    /// What separates the parts of a list of such values, one per direction.
    const SEPARATORS: &'static [char] = &[','];

    /// Whether of a list the first value counts alone. One that is left out (`runtime=,3`) then leaves the option as
    /// it was.
    const ONE_OF_LIST: bool = false;

    /// Parses the text after `=`. The error is one sentence without a full stop that names the value; the word that was
    /// probably meant is in `reading`.
    fn parse(text: &str, reading: &mut Reading) -> Result<Self, String>;

    /// Parses what is not UTF-8. A path and free text may be any bytes; nothing else is.
    fn parse_bytes(bytes: &OsStr, _reading: &mut Reading) -> Result<Self, String> {
        Err(format!("\"{}\" is not UTF-8, and so not a {}", shown(bytes), Self::KIND))
    }

    /// The value as a user could type it, whatever `kb_base` is.
    #[allow(
        dead_code,
        reason = "tests and a fuzz target check that what is printed parses to the same value"
    )]
    fn print(&self) -> String;

    /// Parses on top of the value the option had. Only lists of which parts may be left out need it.
    fn parse_onto(_before: Option<&Self>, text: &str, reading: &mut Reading) -> Result<Self, String> {
        Self::parse(text, reading)
    }

    /// The value of the bare option, where that is allowed.
    fn bare() -> Option<Self> {
        None
    }

    /// The empty value (`= ""` in the table), if the type has one.
    fn unset() -> Option<Self> {
        None
    }
}
