//! The findings of an explanation, and what to look at next.
//!
//! Invariant: text and JSON have the same findings in the same order.

use fiord_report::json::Writer;

use crate::checks::Checks;
use crate::noted::NotedFinding;
use crate::paragraph::paragraph;

/// More findings would not be read.
pub const SHOWN_MAX: usize = 20;

/// As the last two parts of a text.
pub(crate) fn text(
    out: &mut String,
    findings: &[NotedFinding],
    checks: &Checks,
    next: &[String],
    width: usize,
) {
    out.push_str("\nFindings\n");
    for NotedFinding { code, severity, subject, sentence, remedy } in findings.iter().take(SHOWN_MAX) {
        paragraph(out, &format!("  {severity}: {subject}: {code}: {sentence}."), width);
        if !remedy.is_empty() {
            paragraph(out, &format!("    To do: {remedy}."), width);
        }
    }
    if let Some(more) = findings.len().checked_sub(SHOWN_MAX).filter(|more| *more > 0) {
        paragraph(out, &format!("  {more} more, none of them worse; --json has them all."), width);
    }
    for sentence in checks.sentences(!findings.is_empty()) {
        paragraph(out, &format!("  {sentence}"), width);
    }
    out.push_str("\nNext\n");
    next.iter().for_each(|advice| paragraph(out, &format!("  {advice}"), width));
}

/// As a list of a JSON document.
pub(crate) fn write(json: &mut Writer, findings: &[NotedFinding]) {
    json.list("findings", |json| {
        for NotedFinding { code, severity, subject, sentence, remedy } in findings {
            json.item(|json| {
                json.string("code", code);
                json.string("severity", severity);
                json.string("subject", subject);
                json.string("sentence", sentence);
                json.string("remedy", remedy);
            });
        }
    });
}
