//! What was checked in a report, and what could not be.
//!
//! Invariant: without a finding, a report is said to be no more than what was checked of it.

use fiord_report::json::Writer;

use crate::words::list;

/// What was checked in a report, and what could not be: both are empty if its program checked it when it ran.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checks {
    /// What was checked.
    pub made: Vec<String>,
    /// What could not be checked, and why.
    pub missing: Vec<(String, String)>,
}

impl Checks {
    /// Whether what was checked is all that can be: nothing is missing, and something was.
    pub fn are_complete(&self) -> bool {
        self.missing.is_empty() && !self.made.is_empty()
    }

    /// What follows from them, with or without findings: sentences for people.
    pub fn sentences(&self, has_findings: bool) -> Vec<String> {
        let mut said = Vec::new();
        if !has_findings {
            said.push(match self.made.as_slice() {
                [] if self.missing.is_empty() => "There are no findings.".to_string(),
                [] => "Nothing could be checked.".to_string(),
                made => {
                    format!("No reason to doubt the figures was found in what was checked: {}.", list(made))
                }
            });
        }
        if !self.missing.is_empty() {
            let mut of_reasons: Vec<(&str, Vec<&str>)> = Vec::new();
            for (what, why) in &self.missing {
                match of_reasons.iter_mut().find(|(known, _)| known == why) {
                    Some((_, all)) => all.push(what),
                    None => of_reasons.push((why, vec![what])),
                }
            }
            let reasons: Vec<String> =
                of_reasons.iter().map(|(why, all)| format!("{} ({why})", all.join(", "))).collect();
            said.push(format!("Not checked: {}.", reasons.join("; ")));
        }
        said
    }

    /// As two lists of a JSON document.
    pub(crate) fn write(&self, json: &mut Writer) {
        json.strings("checked", &self.made);
        json.list("not_checked", |json| {
            for (what, why) in &self.missing {
                json.item(|json| {
                    json.string("check", what);
                    json.string("reason", why);
                });
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_said_than_what_was_checked() {
        let text = |text: &str| text.to_string();
        let missing = |what: &str, why: &str| (text(what), text(why));
        let some = Checks {
            made: vec![text("depth"), text("caches")],
            missing: vec![missing("a", "x"), missing("b", "y"), missing("c", "x")],
        };
        assert_eq!(
            some.sentences(false),
            [
                "No reason to doubt the figures was found in what was checked: depth and caches.",
                "Not checked: a, c (x); b (y)."
            ]
        );
        assert_eq!(some.sentences(true), ["Not checked: a, c (x); b (y)."]);
        assert!(!some.are_complete() && !Checks::default().are_complete());
        let none = Checks { made: Vec::new(), ..some };
        assert_eq!(none.sentences(false)[0], "Nothing could be checked.");
        assert_eq!(Checks::default().sentences(false), ["There are no findings."]);
    }
}
