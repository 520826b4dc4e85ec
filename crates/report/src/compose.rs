//! Several formats of one result on one stream.
//!
//! Invariant: whatever the order of the request, terse lines come first, then JSON, then the normal text with the
//! empty line before it: tools cut the stream at these places.

use fiord_plan::shown::visible_lines;

use crate::json::{Detail, json};
use crate::model::RunReport;
use crate::normal::normal;
use crate::terse::{TerseVersion, terse};

/// A format of `--output-format`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Text for people.
    Normal,
    /// A line of fields for each job.
    Terse,
    /// A JSON document.
    Json,
    /// A JSON document with every bin of the histograms.
    JsonPlus,
}

/// The result in all of `formats`.
pub fn render(run: &RunReport, formats: &[Format], terse_version: TerseVersion) -> String {
    let wanted = |format| formats.contains(&format);
    let mut out = String::new();
    if wanted(Format::Terse) {
        out += &terse(run, terse_version);
    }
    if wanted(Format::JsonPlus) {
        out += &json(run, Detail::Bins);
    } else if wanted(Format::Json) {
        out += &json(run, Detail::Percentiles);
    }
    if wanted(Format::Normal) {
        // A name or a text of a job may have escape sequences, which a terminal must not interpret.
        out += &visible_lines(&normal(run));
    }
    out
}

/// Whether one of `formats` is read by programs, which fail on any text before it.
pub fn holds_documents(formats: &[Format]) -> bool {
    formats.iter().any(|format| *format != Format::Normal)
}

/// Whether the jobs' headings and `Starting …` are printed before the run: only with the normal text, so that a stream
/// of JSON or terse lines contains nothing else.
pub fn wants_headings(formats: &[Format]) -> bool {
    formats.contains(&Format::Normal)
}

/// Whether lines that are not part of the report may be printed: not with JSON alone, which a program reads to its end.
pub fn allows_messages(formats: &[Format]) -> bool {
    formats.iter().any(|format| matches!(format, Format::Normal | Format::Terse))
}
