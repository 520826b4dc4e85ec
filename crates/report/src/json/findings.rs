//! Findings in JSON: the same list in the documents of runs and of studies.
//!
//! Invariant: every finding has every key, so that one that is absent is not mistaken for one that is false.

use super::Writer;
use crate::finding::{Figure, Finding};

/// The list, under `findings`.
pub fn write(json: &mut Writer, findings: &[Finding]) {
    json.list("findings", |json| findings.iter().for_each(|finding| json.item(|json| one(json, finding))));
}

fn one(json: &mut Writer, finding: &Finding) {
    let Finding { code, subject, option, figures, sentence, remedy } = finding;
    json.string("code", code.name());
    json.string("severity", code.severity().name());
    json.string("subject", &subject.to_string());
    match option.as_ref() {
        "" => json.null("option"),
        option => json.string("option", option),
    }
    json.string("sentence", sentence);
    json.string("remedy", remedy);
    json.list("figures", |json| {
        for Figure { name, value } in figures {
            json.item(|json| {
                json.string("name", name);
                value.write(json, "value");
            });
        }
    });
}
