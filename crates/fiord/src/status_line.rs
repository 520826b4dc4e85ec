//! A line on a terminal that is redrawn to show progress.
//!
//! Invariant: never wider than the terminal; callers erase it before they write anything else.

use std::io;

use fiord_report::columns::{self, cut, left_aligned};
use fiord_report::path::visible;
use fiord_sys::tty;

use crate::output::draw;

/// The line.
#[derive(Debug, Default)]
pub(crate) struct StatusLine {
    /// Columns in use on the screen.
    drawn: usize,
}

impl StatusLine {
    /// Replaces the line on standard error by `text`.
    pub(crate) fn draw(&mut self, text: &str) {
        let line = self.next(text);
        draw(&format!("\r{line}"));
    }

    /// `text`, cut to the width of the terminal and padded to cover the previous line.
    pub(crate) fn next(&mut self, text: &str) -> String {
        let text = &visible(text);
        let text = match tty::columns(io::stderr()) {
            Some(wide) => cut(text, usize::from(wide).saturating_sub(1)),
            None => text,
        };
        let before = std::mem::replace(&mut self.drawn, columns::width(text));
        left_aligned(text, before)
    }

    /// Whether a line was drawn; it is no longer regarded as drawn.
    pub(crate) fn take(&mut self) -> bool {
        std::mem::take(&mut self.drawn) > 0
    }

    /// Erases the line on standard error, so that other text can follow.
    pub(crate) fn clear(&mut self) {
        let drawn = self.drawn;
        if self.take() {
            draw(&format!("\r{:drawn$}\r", ""));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shorter_line_covers_what_was_there_in_columns() {
        let mut line = StatusLine::default();
        assert_eq!(line.next("読み取り"), "読み取り");
        assert_eq!(line.next("read"), "read    ", "four letters over eight columns");
        assert_eq!(line.next("read"), "read");
        assert!(line.take());
        assert!(!line.take());
    }
}
