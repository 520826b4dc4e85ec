//! One part of a report and what it means.
//!
//! Invariant: a text states only figures of the report, and what follows from them.

/// One part of a report in words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartExplanation {
    /// What it is about, as programs name it: `read.slat`.
    pub part: String,
    /// As the report labels it: `slat`.
    pub label: String,
    /// The line it is from; `None` in JSON.
    pub line: Option<u32>,
    /// The explanation: whole sentences.
    pub text: String,
}

/// Sentences about one part, one after another.
#[derive(Debug, Default)]
pub(crate) struct Sentences(Vec<String>);

impl Sentences {
    /// Adds one.
    pub fn say(&mut self, sentence: impl Into<String>) {
        self.0.push(sentence.into());
    }

    /// Adds one if there is one.
    pub fn say_if(&mut self, sentence: Option<String>) {
        self.0.extend(sentence);
    }

    /// The entry; `None` if nothing was said.
    pub fn entry(self, part: String, label: &str, line: Option<u32>) -> Option<PartExplanation> {
        (!self.0.is_empty()).then(|| PartExplanation {
            part,
            label: label.to_string(),
            line,
            text: self.0.join(" "),
        })
    }
}
