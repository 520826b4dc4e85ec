//! Lines of a text, and errors that name a place in it.
//!
//! Invariant: lines and columns count from 1, columns in bytes.

use std::fmt;

use fiord_stats::Capped;

/// Why a text cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadError {
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1, in bytes.
    pub column: u32,
    /// What is wrong there.
    pub problem: String,
}

impl fmt::Display for ReadError {
    /// `LINE:COLUMN: problem`.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}: {}", self.line, self.column, self.problem)
    }
}

impl std::error::Error for ReadError {}

/// A line with its number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NumberedLine<'t> {
    pub number: u32,
    pub text: &'t str,
}

impl NumberedLine<'_> {
    /// An error at a part of this line.
    pub fn error(&self, part: &str, problem: impl Into<String>) -> ReadError {
        let offset = (part.as_ptr() as usize).wrapping_sub(self.text.as_ptr() as usize);
        let column = if offset <= self.text.len() { u32::capped(offset).saturating_add(1) } else { 1 };
        ReadError { line: self.number, column, problem: problem.into() }
    }

    /// Parses a part of this line with `parse`.
    pub fn figure<T>(
        &self,
        part: &str,
        what: &str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<T, ReadError> {
        let trimmed = part.trim();
        parse(trimmed)
            .ok_or_else(|| self.error(part.trim_start(), format!("{what}: {trimmed:?} is not a figure")))
    }
}

/// The parts `key=value` of a list separated by commas.
pub(crate) fn pairs(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.split(", ").filter_map(|part| part.split_once('=')).map(|(key, value)| (key.trim(), value))
}

/// The place of a byte of a text.
pub(crate) fn place_of(text: &str, offset: usize) -> (u32, u32) {
    let before = &text.as_bytes()[..offset.min(text.len())];
    let line_start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let line = u32::capped(before.iter().filter(|byte| **byte == b'\n').count()).saturating_add(1);
    (line, u32::capped(before.len() - line_start).saturating_add(1))
}
