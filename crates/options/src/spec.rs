//! What is known of one option: data for the parser, the help, the manual and the echo.
//!
//! Invariant: a `Spec` comes from the one declaration in the table and from nowhere else.

use std::ops::RangeInclusive;

/// Which namespace an option lives in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// A job option.
    Job,
    /// A command-line option of the program itself (`--output`).
    Program,
    /// A private option of the engines named (`sqthread_poll` of `io_uring`).
    Engine(&'static [&'static str]),
}

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

/// How far fiord supports an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Works.
    Ready,
    /// Known, refused by name with this reason, unless the value given is the default.
    Pending(&'static str),
    /// Accepted without effect, with this explanation.
    Ignored(&'static str),
    /// Has an effect only together with the option named (`*` stands for any text), which is pending; so this one
    /// is accepted, and the other one refused.
    Dormant(&'static str),
}

/// One of the words an option takes as its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice {
    /// The word.
    pub word: &'static str,
    /// What it does, a few words.
    pub help: &'static str,
}

/// One declaration of the table.
#[derive(Debug)]
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
    /// Kind of value in the field's words (`integer`, `size`, `duration`), for help and docs.
    pub kind: &'static str,
    /// Default as a user would type it; empty when there is none.
    pub default: &'static str,
    /// Range of allowed numbers, in the unit of the kind; `None` when free or not a number.
    pub range: Option<RangeInclusive<i128>>,
    /// The words allowed; empty when the value is not one of a few words.
    pub choices: &'static [Choice],
    /// Documentation in our own words, one line of text per line; see `summary` and `details`.
    pub doc: &'static str,
    /// Heading the reference page lists it under.
    pub category: &'static str,
    /// Parses `value` as the option's type and throws the result away: the check behind `--parse-only`.
    pub check: fn(Option<&str>) -> Result<(), String>,
}

impl Spec {
    /// Whether both are the same declaration. Addresses cannot tell: another crate that reads a set's `SPECS` has a
    /// copy of its own.
    pub fn is(&self, other: &Spec) -> bool {
        self.name == other.name && self.scope == other.scope
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
            Some(range) if *range.end() >= i128::from(u32::MAX) => format!("{} or more", range.start()),
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
