//! What fiord cannot do yet, by name and with the reason.
//!
//! Invariant: an entry whose case passes is a failure, so that the list only shrinks.

use std::collections::BTreeMap;

/// Names of cases and why each is expected to fail.
pub struct Pending(BTreeMap<String, String>);

impl Pending {
    /// Reads `name: reason` lines; `#` starts a comment.
    pub fn parse(text: &str) -> Result<Pending, String> {
        let mut entries = BTreeMap::new();
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let (name, reason) = line
                .split_once(": ")
                .ok_or_else(|| format!("pending.txt: {line:?} is not `name: reason`"))?;
            if entries.insert(name.to_string(), reason.to_string()).is_some() {
                return Err(format!("pending.txt: {name} stands there twice"));
            }
        }
        Ok(Pending(entries))
    }

    /// Why this case is expected to fail, if it is.
    pub fn reason(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Entries that no case has.
    pub fn unknown<'p>(&'p self, names: &'p [&str]) -> impl Iterator<Item = &'p str> {
        self.0.keys().map(String::as_str).filter(|entry| !names.contains(entry))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_have_a_name_and_a_reason() {
        let pending = Pending::parse("# why\n\na/b: not built: yet\n").unwrap();
        assert_eq!(pending.reason("a/b"), Some("not built: yet"));
        assert_eq!(pending.reason("a"), None);
        assert_eq!(pending.unknown(&["a/c"]).collect::<Vec<_>>(), ["a/b"]);
        assert!(Pending::parse("a/b").is_err());
        assert!(Pending::parse("a: x\na: y").is_err());
    }
}
