//! Kinds of I/O that a replay leaves out, for `replay_skip`.
//!
//! Invariant: a kind that is not named is replayed.

use super::contract::{Reading, Value};
use super::kind::ValueKind;

/// The kinds that are left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReplaySkip {
    /// Reads.
    pub read: bool,
    /// Writes.
    pub write: bool,
    /// Trims.
    pub trim: bool,
    /// Synchronizations.
    pub sync: bool,
}

impl ReplaySkip {
    fn kinds(&mut self) -> [(&'static str, &mut bool); 4] {
        let ReplaySkip { read, write, trim, sync } = self;
        [("read", read), ("write", write), ("trim", trim), ("sync", sync)]
    }
}

impl Value for ReplaySkip {
    const KIND: ValueKind = ValueKind::Words;

    fn parse(text: &str, _reading: &mut Reading) -> Result<ReplaySkip, String> {
        let mut skip = ReplaySkip::default();
        for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            match skip.kinds().into_iter().find(|(kind, _)| *kind == word) {
                Some((_, skipped)) => *skipped = true,
                None => return Err(format!("{word:?} is not one of read, write, trim and sync")),
            }
        }
        Ok(skip)
    }

    fn print(&self) -> String {
        let mut skip = *self;
        let words: Vec<&str> =
            skip.kinds().into_iter().filter(|(_, skipped)| **skipped).map(|(kind, _)| kind).collect();
        words.join(",")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_kinds_are_skipped_and_unknown_ones_refused() {
        let parse = |text| ReplaySkip::parse(text, &mut Reading::default());
        let skip = parse("trim, read").unwrap();
        assert_eq!(skip, ReplaySkip { read: true, trim: true, ..ReplaySkip::default() });
        assert_eq!(skip.print(), "read,trim");
        assert_eq!(parse("").unwrap(), ReplaySkip::default());
        assert!(parse("read,fsync").unwrap_err().contains("fsync"));
    }
}
