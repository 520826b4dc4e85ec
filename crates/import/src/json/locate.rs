//! Where a value of a JSON document stands in its text.
//!
//! Invariant: the text is known to be JSON; where it is not, or the value is not there, there is no place.

use super::fields::PathStep;

/// The offset of the value at the end of a path.
pub(super) fn value_at(text: &str, path: &[PathStep]) -> Option<usize> {
    let mut scanner = Scanner { bytes: text.as_bytes(), at: 0 };
    scanner.skip_space();
    for step in path {
        match step {
            PathStep::Key(key) => scanner.enter_member(text, key)?,
            PathStep::Index(index) => scanner.enter_item(*index)?,
        }
    }
    Some(scanner.at)
}

struct Scanner<'t> {
    bytes: &'t [u8],
    at: usize,
}

impl Scanner<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    fn take(&mut self, wanted: u8) -> Option<()> {
        self.skip_space();
        (self.peek()? == wanted).then(|| self.at += 1)?;
        self.skip_space();
        Some(())
    }

    fn enter_member(&mut self, text: &str, wanted: &str) -> Option<()> {
        self.take(b'{')?;
        loop {
            let start = self.at;
            self.skip_string()?;
            let key: String = serde_json::from_str(text.get(start..self.at)?).ok()?;
            self.take(b':')?;
            if key == wanted {
                return Some(());
            }
            self.skip_value()?;
            self.take(b',')?;
        }
    }

    fn enter_item(&mut self, index: usize) -> Option<()> {
        self.take(b'[')?;
        for _ in 0..index {
            self.skip_value()?;
            self.take(b',')?;
        }
        Some(())
    }

    fn skip_string(&mut self) -> Option<()> {
        (self.peek()? == b'"').then_some(())?;
        loop {
            self.at += 1;
            match self.peek()? {
                b'\\' => self.at += 1,
                b'"' => break,
                _ => {}
            }
        }
        self.at += 1;
        Some(())
    }

    /// Brackets balance in JSON, so that counting them finds the end of a value.
    fn skip_value(&mut self) -> Option<()> {
        let mut depth = 0u32;
        loop {
            match self.peek()? {
                b'"' => {
                    self.skip_string()?;
                    if depth == 0 {
                        return Some(());
                    }
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' | b',' if depth == 0 => return Some(()),
                b'}' | b']' => {
                    depth -= 1;
                    if depth == 0 {
                        self.at += 1;
                        return Some(());
                    }
                }
                _ => {}
            }
            self.at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_by_their_path() {
        let text = "{ \"a\\\"b\" : [1, {\"c\": \"]\"}, -2.5],\n \"d\" : {\"e\": [[], 7]} }";
        let key = |key: &str| PathStep::Key(key.to_string());
        let rest = |path: &[PathStep]| value_at(text, path).map(|at| &text[at..]);
        assert!(rest(&[key("a\"b"), PathStep::Index(2)]).unwrap().starts_with("-2.5"));
        assert!(rest(&[key("a\"b"), PathStep::Index(1), key("c")]).unwrap().starts_with("\"]\""));
        assert!(rest(&[key("d"), key("e"), PathStep::Index(1)]).unwrap().starts_with("7]"));
        assert_eq!(rest(&[key("x")]), None);
        assert_eq!(value_at("{\"a", &[key("a")]), None);
    }
}
