//! The findings of an explanation, and what to look at next.
//!
//! Invariant: text and JSON have the same findings in the same order.

use fiord_report::json::Writer;

use crate::noted::NotedFinding;
use crate::paragraph::paragraph;

/// As the last two parts of a text.
pub(crate) fn text(out: &mut String, findings: &[NotedFinding], next: &[String], width: usize) {
    out.push_str("\nFindings\n");
    if findings.is_empty() {
        paragraph(out, "  The figures give no reason to doubt them. They do not show everything.", width);
    }
    for NotedFinding { code, severity, subject, sentence, remedy } in findings {
        paragraph(out, &format!("  {severity}: {subject}: {code}: {sentence}."), width);
        if !remedy.is_empty() {
            paragraph(out, &format!("    To do: {remedy}."), width);
        }
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
