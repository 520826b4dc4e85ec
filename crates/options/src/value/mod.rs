//! The kinds of values options take: each a type that parses what fio parses and prints what fio would read.
//!
//! Invariant: for every value `v`, parsing `v.print()` gives `v` back; and a value is never a number with a secret
//! meaning.

mod text;

use std::fmt::Debug;
use std::ops::RangeInclusive;

use crate::spec::{Choice, Takes};

pub use text::{Flag, Switch, Text};

/// What a kilobyte is to the job (`kb_base`): fio reads `k` as 1024 and `KiB` as 1000 by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KbBase {
    /// `4k`, `4kB` and `4KB` are 4096; `4KiB` is 4000, fio's inversion.
    #[default]
    Binary,
    /// `4k` and `4kB` are 4000; `4KiB` is 4096, as the standard has it.
    Decimal,
}

/// What a value is parsed under besides its text.
#[derive(Debug, Clone)]
pub struct Rules {
    /// Numbers allowed, in the unit of the type; `None` when the option sets no bounds.
    pub range: Option<RangeInclusive<i128>>,
    /// Meaning of size suffixes.
    pub kb_base: KbBase,
}

impl Rules {
    /// The given range, and fio's default meaning of suffixes.
    pub fn new(range: Option<RangeInclusive<i128>>) -> Rules {
        Rules { range, kb_base: KbBase::default() }
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

    /// Parses the text after `=`. The error is one sentence without a full stop that names the value.
    fn parse(text: &str, rules: &Rules) -> Result<Self, String>;

    /// The value as a user would type it.
    fn print(&self) -> String;

    /// Parses on top of the value the option had. Only lists of which parts may be left out need it.
    fn parse_onto(_before: Option<&Self>, text: &str, rules: &Rules) -> Result<Self, String> {
        Self::parse(text, rules)
    }

    /// The value of the bare option, where that is allowed.
    fn bare() -> Option<Self> {
        None
    }
}
