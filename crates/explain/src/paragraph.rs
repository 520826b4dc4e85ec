//! Paragraphs of an explanation.
//!
//! Invariant: no line is wider than asked for, unless a single word is.

use std::fmt::Write;

use fiord_report::table::wrapped;

/// A text without a label, wrapped.
pub(crate) fn paragraph(out: &mut String, text: &str, width: usize) {
    wrapped(text, width).iter().for_each(|line| {
        let _ = writeln!(out, "{line}");
    });
}
