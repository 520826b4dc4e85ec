//! The declaration of one option: data for the parser, the help, the manual and the echo.
//!
//! Invariant: a `Spec` comes from the one declaration in the table and from nowhere else.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::RangeInclusive;
use std::ptr;

use crate::secret;
use crate::value::{Choice, EngineName, Reading, Takes, ValueKind};

/// Which namespace an option lives in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// A job option.
    Job,
    /// A command-line option of the program itself (`--output`).
    Program,
    /// A private option of the engines named (`sqthread_poll` of `io_uring`).
    Engine(&'static [EngineName]),
}

/// How far fiord supports an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Works.
    Ready,
    /// Known, refused by name with this reason, unless the value given is the default.
    Pending(&'static str),
    /// Accepted without effect, with this explanation.
    Ignored(&'static str),
    /// Has an effect only together with this option, which is pending; so this one is accepted, and the other refused.
    Dormant(&'static Spec),
    /// Has an effect only in an engine that is not built in; so this one is accepted, and the engine refused.
    Unbuilt,
}

/// One declaration of the table. Each has one address, which is its identity: several engines have an option of the
/// same name (`hipri`), and these are different options.
pub struct Spec {
    /// The canonical name.
    pub name: &'static str,
    /// Other spellings fio takes.
    pub aliases: &'static [&'static str],
    /// Where it applies.
    pub scope: Scope,
    /// Whether a value follows.
    pub takes: Takes,
    /// Whether it works.
    pub status: Status,
    /// Kind of value.
    pub kind: ValueKind,
    /// Default as a user would type it; empty when there is none.
    pub default: &'static str,
    /// Range of allowed numbers, in the unit of the kind; `None` when free or not a number.
    pub range: Option<RangeInclusive<i128>>,
    /// The words allowed; empty when the value is not one of a few words.
    pub choices: &'static [Choice],
    /// Documentation in our own words, one line of text per line; see `summary` and `details`.
    pub doc: &'static str,
    /// Whether its value is shown to no one (`grammar/masked.rs`).
    pub secret: bool,
    /// Heading the reference page lists it under.
    pub category: &'static str,
    /// Parses a value as the option's type and discards it; `reading` has the meaning of suffixes and collects
    /// warnings.
    pub parse: fn(Option<&OsStr>, &mut Reading) -> Result<(), String>,
}

impl PartialEq for Spec {
    fn eq(&self, other: &Spec) -> bool {
        ptr::eq(self, other)
    }
}

impl Eq for Spec {}

impl Hash for Spec {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        ptr::hash(self, hasher);
    }
}

impl fmt::Debug for Spec {
    /// `bs`, `--output`.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dashes = if self.scope == Scope::Program { "--" } else { "" };
        write!(out, "{dashes}{}", self.name)
    }
}

impl Spec {
    /// Checks a value on its own.
    ///
    /// # Errors
    /// The error message.
    pub fn check(&self, value: Option<&OsStr>) -> Result<(), String> {
        let mut reading = Reading::default();
        (self.parse)(value, &mut reading).map_err(|why| reading.with_suggestion(why))
    }

    /// A value as it may be shown.
    pub fn shown_value(&self, value: &OsStr) -> OsString {
        if self.secret { OsString::from(secret::MASK) } else { secret::in_urls(value) }
    }

    /// Whether it is one of these.
    pub fn is_one_of(&self, options: &[&Spec]) -> bool {
        options.contains(&self)
    }

    /// The canonical name, then the aliases.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + use<> {
        std::iter::once(self.name).chain(self.aliases.iter().copied())
    }

    /// The first line of the documentation, without a final full stop.
    pub fn summary(&self) -> &'static str {
        self.doc.lines().next().unwrap_or_default().trim().trim_end_matches('.')
    }

    /// The values allowed, in words: `1 to 100`, `read, write`; empty when free.
    pub fn allowed(&self) -> String {
        match &self.range {
            Some(range) if *range.end() > i128::from(u32::MAX) => format!("{} or more", range.start()),
            Some(range) => format!("{} to {}", range.start(), range.end()),
            None => self.allowed_words(),
        }
    }

    /// The words allowed, separated by commas.
    pub fn allowed_words(&self) -> String {
        let words: Vec<&str> = self.choices.iter().map(|choice| choice.word).collect();
        words.join(", ")
    }

    /// The paragraphs after the summary, each on one line; empty when there are none.
    pub fn details(&self) -> Vec<String> {
        let mut paragraphs = vec![String::new()];
        for line in self.doc.lines().skip(1).map(str::trim) {
            match paragraphs.last_mut() {
                Some(paragraph) if !line.is_empty() => {
                    if !paragraph.is_empty() {
                        paragraph.push(' ');
                    }
                    paragraph.push_str(line);
                }
                _ => paragraphs.push(String::new()),
            }
        }
        paragraphs.retain(|paragraph| !paragraph.is_empty());
        paragraphs
    }
}
