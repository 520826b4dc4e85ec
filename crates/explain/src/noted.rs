//! A finding in an explanation, whether fiord made it now or it is in the report.
//!
//! Invariant: all of it is text, since a report may have codes that this version does not know.

use fiord_import::ReportedFinding;
use fiord_report::Finding;

/// A finding in an explanation, whatever its origin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NotedFinding {
    /// Its code.
    pub code: String,
    /// How much it matters.
    pub severity: String,
    /// What it is about.
    pub subject: String,
    /// What is wrong.
    pub sentence: String,
    /// What to do about it.
    pub remedy: String,
}

impl From<&Finding> for NotedFinding {
    fn from(finding: &Finding) -> NotedFinding {
        NotedFinding {
            code: finding.code.name().to_string(),
            severity: finding.severity().name().to_string(),
            subject: finding.subject.to_string(),
            sentence: finding.sentence.clone(),
            remedy: finding.remedy.to_string(),
        }
    }
}

impl From<&ReportedFinding> for NotedFinding {
    fn from(finding: &ReportedFinding) -> NotedFinding {
        let ReportedFinding { code, severity, subject, sentence, remedy } = finding.clone();
        NotedFinding { code, severity, subject, sentence, remedy }
    }
}
