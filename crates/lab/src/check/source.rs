//! The text of a check file: its values with their places, and what is wrong with them.
//!
//! Invariant: every error has the place of the text that is wrong, and all of them are collected.

use std::ffi::OsStr;
use std::ops::Range;
use std::sync::Arc;

use fiord_options::suggest::nearest;
use fiord_options::{Origin, Place, Problem, ProblemKind};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A table of the file, and where it begins.
pub(super) struct Keys<'f> {
    pub table: &'f DeTable<'f>,
    pub span: Range<usize>,
}

/// A text, and where it is.
pub(super) type Text<'f> = (&'f str, Range<usize>);

/// A check file that is read.
pub(super) struct Source<'f> {
    /// As the user named it.
    pub name: Arc<OsStr>,
    pub text: &'f str,
    pub problems: Vec<Problem>,
}

impl<'f> Source<'f> {
    /// The line and column of a byte, each from 1.
    pub(super) fn place(&self, at: usize) -> Place {
        let before = &self.text.as_bytes()[..at.min(self.text.len())];
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        let begin = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |feed| feed + 1);
        Place {
            source: Origin::File(self.name.clone()),
            line: u32::try_from(line).unwrap_or(u32::MAX),
            column: u32::try_from(before.len() - begin + 1).unwrap_or(u32::MAX),
        }
    }

    /// Adds an error: what is wrong at this place, and what to do.
    pub(super) fn error(&mut self, at: usize, what: impl Into<String>, remedy: impl Into<String>) {
        let place = self.place(at);
        self.problems.push(Problem::error(ProblemKind::InvalidValue, place, None, what, remedy));
    }

    /// Refuses keys that are not among `known`.
    pub(super) fn only(&mut self, keys: &Keys<'_>, known: &[&str], what: &str) {
        for key in keys.table.keys() {
            let name = key.get_ref().as_ref();
            if !known.contains(&name) {
                let remedy = match nearest(name, known.iter().copied()) {
                    Some(near) => format!("did you mean {near:?}?"),
                    None => format!("allowed: {}", known.join(", ")),
                };
                self.error(key.span().start, format!("{what} has no key {name:?}"), remedy);
            }
        }
    }

    /// The text of a key; `None` if it is missing, or not a text.
    pub(super) fn string(&mut self, keys: &Keys<'f>, key: &str) -> Option<Text<'f>> {
        let value = keys.table.get(key)?;
        self.as_text(value, key)
    }

    /// The same of a key that must be there.
    pub(super) fn needed(&mut self, keys: &Keys<'f>, key: &str, example: &str) -> Option<Text<'f>> {
        self.needed_any(keys, key, example);
        self.string(keys, key)
    }

    /// Refuses a table without this key.
    pub(super) fn needed_any(&mut self, keys: &Keys<'f>, key: &str, example: &str) {
        if !keys.table.contains_key(key) {
            self.error(
                keys.span.start,
                format!("the key {key:?} is missing"),
                format!("add {key} = {example}"),
            );
        }
    }

    /// The value as a text that is not empty.
    pub(super) fn as_text(&mut self, value: &'f Spanned<DeValue<'f>>, key: &str) -> Option<Text<'f>> {
        match value.get_ref() {
            DeValue::String(text) if !text.trim().is_empty() => Some((text.as_ref(), value.span())),
            DeValue::String(_) => {
                self.error(value.span().start, format!("{key} is empty"), "write a text, or remove the key");
                None
            }
            other => {
                let found = kind(other);
                let remedy = format!("write it in quotes: {key} = \"...\"");
                self.error(value.span().start, format!("{key} is {found}, not a text"), remedy);
                None
            }
        }
    }

    /// The texts of a key that has one or a list of them.
    pub(super) fn strings(&mut self, keys: &Keys<'f>, key: &str) -> Vec<Text<'f>> {
        let Some(value) = keys.table.get(key) else { return Vec::new() };
        match value.get_ref() {
            DeValue::Array(list) => list.iter().filter_map(|value| self.as_text(value, key)).collect(),
            _ => self.as_text(value, key).into_iter().collect(),
        }
    }

    /// A whole number from 1 to `max`.
    pub(super) fn number(&mut self, keys: &Keys<'f>, key: &str, max: usize) -> Option<usize> {
        let value = keys.table.get(key)?;
        let number = match value.get_ref() {
            DeValue::Integer(number) => usize::from_str_radix(number.as_str(), number.radix()).ok(),
            _ => None,
        };
        let number = number.filter(|number| (1..=max).contains(number));
        if number.is_none() {
            self.error(
                value.span().start,
                format!("{key} is not a whole number from 1 to {max}"),
                format!("write {key} = 3"),
            );
        }
        number
    }

    /// The entries of a table, in the order of the file; none if it is missing, or not a table.
    pub(super) fn entries(
        &mut self,
        keys: &Keys<'f>,
        key: &str,
    ) -> Vec<(Text<'f>, &'f Spanned<DeValue<'f>>)> {
        let Some(value) = keys.table.get(key) else { return Vec::new() };
        let DeValue::Table(table) = value.get_ref() else {
            self.error(
                value.span().start,
                format!("{key} is {}, not a table", kind(value.get_ref())),
                format!("write [{key}] and a line for each entry below it"),
            );
            return Vec::new();
        };
        let mut entries: Vec<_> =
            table.iter().map(|(name, value)| ((name.get_ref().as_ref(), name.span()), value)).collect();
        entries.sort_unstable_by_key(|((_, span), _)| span.start);
        entries
    }

    /// The tables of a list, in the order of the file.
    pub(super) fn tables(&mut self, keys: &Keys<'f>, key: &str) -> Vec<Keys<'f>> {
        let Some(value) = keys.table.get(key) else { return Vec::new() };
        let DeValue::Array(list) = value.get_ref() else {
            self.error(
                value.span().start,
                format!("{key} is {}, not a list of tables", kind(value.get_ref())),
                format!("write [[{key}]] with two brackets"),
            );
            return Vec::new();
        };
        let mut tables = Vec::new();
        for value in list.iter() {
            match value.get_ref() {
                DeValue::Table(table) => tables.push(Keys { table, span: value.span() }),
                other => {
                    self.error(
                        value.span().start,
                        format!("an entry of {key} is {}, not a table", kind(other)),
                        format!("write [[{key}]] with two brackets"),
                    );
                }
            }
        }
        tables
    }
}

/// A value in words.
fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) | DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}
