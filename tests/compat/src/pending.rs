//! The cases that need something that is not built yet, by name.
//!
//! Invariant: nothing else excuses a failure, and a listed case that agrees is a failure, so that the list only
//! shrinks.

use std::collections::BTreeSet;

/// Names of cases that fiord refuses because something is not built.
pub struct Pending(BTreeSet<String>);

impl Pending {
    /// Reads one name per line; `#` starts a comment.
    ///
    /// # Errors
    /// If a line is more than a name, or occurs twice.
    pub fn parse(text: &str) -> Result<Pending, String> {
        let mut names = BTreeSet::new();
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
            if line.contains(": ") {
                return Err(format!("pending.txt: {line:?} is not a name: \"not built\" is the only reason"));
            }
            if !names.insert(line.to_string()) {
                return Err(format!("pending.txt: {line} occurs twice"));
            }
        }
        Ok(Pending(names))
    }

    /// Whether this case is in the list.
    pub fn contains(&self, name: &str) -> bool {
        self.0.contains(name)
    }

    /// Entries that no case has.
    pub fn unknown<'p>(&'p self, names: &'p [&str]) -> impl Iterator<Item = &'p str> {
        self.0.iter().map(String::as_str).filter(|entry| !names.contains(entry))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_a_name_without_a_reason() {
        let pending = Pending::parse("# why\n\na/b\n").unwrap();
        assert!(pending.contains("a/b") && !pending.contains("a"));
        assert_eq!(pending.unknown(&["a/c"]).collect::<Vec<_>>(), ["a/b"]);
        assert!(Pending::parse("a/b: takes too long").is_err());
        assert!(Pending::parse("a\na").is_err());
    }
}
