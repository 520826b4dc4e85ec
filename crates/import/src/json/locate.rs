//! Where a value of a JSON document stands in its text, and the values of a document one after another.
//!
//! Invariant: where the text is not JSON, or the value is not there, there is no place. Of a document that is read in parts,
//! one part at a time is held as values, which take ten times the memory of their text.

use serde_json::Value;

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

/// Why a part of a text is not JSON, at this offset of it.
#[derive(Debug)]
pub(super) struct NotJson {
    pub at: usize,
    pub problem: String,
}

/// The members of the object at the beginning of a text: each key with the offset of its value; and its length.
pub(super) fn members(text: &str) -> Result<(Vec<(String, usize)>, usize), NotJson> {
    let mut scanner = Scanner { bytes: text.as_bytes(), at: 0 };
    let mut found = Vec::new();
    scanner.expect(b'{')?;
    if scanner.take_end(b'}').is_some() {
        return Ok((found, scanner.at));
    }
    loop {
        let (key, length) = value(text, scanner.at)?;
        let Value::String(key) = key else { return Err(scanner.not("a key")) };
        scanner.at += length;
        scanner.expect(b':')?;
        let start = scanner.at;
        found.push((key, start));
        if scanner.skip_value().is_none() {
            // Where it ends is not known: it is the last that can be read.
            return Ok((found, text.len()));
        }
        scanner.skip_space();
        if scanner.take_end(b'}').is_some() {
            return Ok((found, scanner.at));
        }
        scanner.expect(b',')?;
    }
}

/// Hands each item of the list at this offset to `read`, one at a time; `None` if it is not a list.
pub(super) fn items<E: From<NotJson>>(
    text: &str,
    at: usize,
    mut read: impl FnMut(usize, Value) -> Result<(), E>,
) -> Result<Option<()>, E> {
    let mut scanner = Scanner { bytes: text.as_bytes(), at };
    if scanner.take(b'[').is_none() {
        return Ok(None);
    }
    if scanner.take_end(b']').is_some() {
        return Ok(Some(()));
    }
    for index in 0.. {
        let (item, length) = value(text, scanner.at)?;
        scanner.at += length;
        read(index, item)?;
        scanner.skip_space();
        if scanner.take_end(b']').is_some() {
            break;
        }
        scanner.expect(b',')?;
    }
    Ok(Some(()))
}

/// The value at this offset, and its length.
pub(super) fn value(text: &str, at: usize) -> Result<(Value, usize), NotJson> {
    let rest = text.get(at..).unwrap_or_default();
    let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
    match values.next() {
        Some(Ok(value)) => Ok((value, values.byte_offset())),
        Some(Err(why)) => {
            let line = why.line().saturating_sub(1);
            let start = rest.split_inclusive('\n').take(line).map(str::len).sum::<usize>();
            let whole = why.to_string();
            let problem = whole.split(" at line ").next().unwrap_or_default().to_string();
            Err(NotJson { at: at + start + why.column().saturating_sub(1), problem })
        }
        None => Err(NotJson { at: text.len(), problem: "EOF while parsing a value".to_string() }),
    }
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

    /// Like `take`, without what follows it.
    fn take_end(&mut self, wanted: u8) -> Option<()> {
        (self.peek()? == wanted).then(|| self.at += 1)
    }

    fn expect(&mut self, wanted: u8) -> Result<(), NotJson> {
        self.take(wanted).ok_or_else(|| self.not(&format!("`{}`", char::from(wanted))))
    }

    fn not(&self, wanted: &str) -> NotJson {
        let problem = match self.peek() {
            None => format!("EOF while looking for {wanted}"),
            Some(_) => format!("expected {wanted}"),
        };
        NotJson { at: self.at, problem }
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

    /// Brackets balance in JSON, which finds the end of a value.
    fn skip_value(&mut self) -> Option<()> {
        let mut open = Vec::new();
        loop {
            match self.peek()? {
                b'"' => {
                    self.skip_string()?;
                    if open.is_empty() {
                        return Some(());
                    }
                    continue;
                }
                b'}' | b']' | b',' if open.is_empty() => return Some(()),
                b'{' => open.push(b'}'),
                b'[' => open.push(b']'),
                closing @ (b'}' | b']') => {
                    (open.pop()? == closing).then_some(())?;
                    if open.is_empty() {
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
