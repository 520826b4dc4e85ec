//! The text of a TOML file: its values with their places, and what is wrong with them.
//!
//! Invariant: every error has the place of the text that is wrong, and all of them are collected.

use std::ffi::OsStr;
use std::ops::Range;
use std::sync::Arc;

use fiord_stats::OrderBy;

use ::toml::Spanned;
use ::toml::de::{DeTable, DeValue};

use crate::suggest::nearest;
use crate::{Origin, Place, Problem, ProblemKind};

/// A table of the file, and where it begins.
pub struct Keys<'f> {
    /// Its keys and values.
    pub table: &'f DeTable<'f>,
    /// The bytes of its heading.
    pub span: Range<usize>,
}

/// A text, and where it is.
pub type Text<'f> = (&'f str, Range<usize>);

/// A file that is read.
pub struct Source<'f> {
    /// As the user named it.
    pub name: Arc<OsStr>,
    /// Its text.
    pub text: &'f str,
    /// What is wrong with it.
    pub problems: Vec<Problem>,
    /// The bytes at which its lines begin.
    lines: Vec<usize>,
}

impl<'f> Source<'f> {
    /// A file of this name and text.
    pub fn new(name: &OsStr, text: &'f str) -> Source<'f> {
        let feeds = text.match_indices('\n').map(|(at, _)| at + 1);
        Source {
            name: Arc::from(name),
            text,
            problems: Vec::new(),
            lines: std::iter::once(0).chain(feeds).collect(),
        }
    }

    /// Its outermost table; `None` if it is not TOML, of which `remedy` shows an example.
    pub fn parse(&mut self, remedy: &str) -> Option<Spanned<DeTable<'f>>> {
        match DeTable::parse(self.text) {
            Ok(table) => Some(table),
            Err(error) => {
                let at = error.span().map_or(0, |span| span.start);
                self.error(at, format!("not TOML: {}", error.message().replace('\n', ", ")), remedy);
                None
            }
        }
    }

    /// The line and column of a byte, each from 1.
    pub fn place(&self, at: usize) -> Place {
        let at = at.min(self.text.len());
        let line = self.lines.partition_point(|begin| *begin <= at);
        let begin = self.lines[line - 1];
        Place {
            source: Origin::File(self.name.clone()),
            line: u32::try_from(line).unwrap_or(u32::MAX),
            column: u32::try_from(at - begin + 1).unwrap_or(u32::MAX),
        }
    }

    /// Adds an error: what is wrong at this place, and what to do.
    pub fn error(&mut self, at: usize, what: impl Into<String>, remedy: impl Into<String>) {
        let place = self.place(at);
        self.problems.push(Problem::error(ProblemKind::InvalidValue, place, None, what, remedy));
    }

    /// Refuses keys that are not among `known`.
    pub fn only(&mut self, keys: &Keys<'_>, known: &[&str], what: &str) {
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
    pub fn string(&mut self, keys: &Keys<'f>, key: &str) -> Option<Text<'f>> {
        let value = keys.table.get(key)?;
        self.as_text(value, key)
    }

    /// The same of a key that must be there.
    pub fn needed(&mut self, keys: &Keys<'f>, key: &str, example: &str) -> Option<Text<'f>> {
        self.needed_any(keys, key, example);
        self.string(keys, key)
    }

    /// Refuses a table without this key.
    pub fn needed_any(&mut self, keys: &Keys<'f>, key: &str, example: &str) {
        if !keys.table.contains_key(key) {
            self.error(
                keys.span.start,
                format!("the key {key:?} is missing"),
                format!("add {key} = {example}"),
            );
        }
    }

    /// The value as a text that is not empty.
    pub fn as_text(&mut self, value: &'f Spanned<DeValue<'f>>, key: &str) -> Option<Text<'f>> {
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
    pub fn strings(&mut self, keys: &Keys<'f>, key: &str) -> Vec<Text<'f>> {
        keys.table.get(key).map_or_else(Vec::new, |value| self.as_texts(value, key))
    }

    /// The value as a text, or as a list of them.
    pub fn as_texts(&mut self, value: &'f Spanned<DeValue<'f>>, key: &str) -> Vec<Text<'f>> {
        match value.get_ref() {
            DeValue::Array(list) => list.iter().filter_map(|value| self.as_text(value, key)).collect(),
            _ => self.as_text(value, key).into_iter().collect(),
        }
    }

    /// A key that is true or false.
    pub fn boolean(&mut self, keys: &Keys<'f>, key: &str) -> Option<bool> {
        let value = keys.table.get(key)?;
        match value.get_ref() {
            DeValue::Boolean(is_on) => Some(*is_on),
            other => {
                let found = kind(other);
                self.error(
                    value.span().start,
                    format!("{key} is {found}, not true or false"),
                    format!("write {key} = false"),
                );
                None
            }
        }
    }

    /// A whole number from 1 to `max`.
    pub fn number(&mut self, keys: &Keys<'f>, key: &str, max: usize) -> Option<usize> {
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
    pub fn entries(&mut self, keys: &Keys<'f>, key: &str) -> Vec<(Text<'f>, &'f Spanned<DeValue<'f>>)> {
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
        entries.order_by_key(|((_, span), _)| span.start);
        entries
    }

    /// The tables of a list, in the order of the file.
    pub fn tables(&mut self, keys: &Keys<'f>, key: &str) -> Vec<Keys<'f>> {
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
