//! Writes JSON as fio spaces it: `"key" : value`, indented by two.
//!
//! Invariant: the text is well formed whatever the strings contain: keys and strings are escaped, and each opened
//! object or list is closed by the call that opened it.

use std::fmt::Write;

use fiord_options::shown::controls_terminal;

/// Text being written; `Writer::document` makes one.
pub struct Writer {
    text: String,
    depth: usize,
    first: bool,
}

impl Writer {
    /// A document: one object, in column 0, ending with a line feed.
    pub fn document(fill: impl FnOnce(&mut Writer)) -> String {
        let mut writer = Writer { text: String::new(), depth: 0, first: true };
        writer.enclosed('{', '}', fill);
        writer.text.push('\n');
        writer.text
    }

    /// `"key" : { … }`.
    pub fn object(&mut self, key: &str, fill: impl FnOnce(&mut Writer)) {
        self.key(key);
        self.enclosed('{', '}', fill);
    }

    /// `"key" : [ … ]`.
    pub fn list(&mut self, key: &str, fill: impl FnOnce(&mut Writer)) {
        self.key(key);
        self.enclosed('[', ']', fill);
    }

    /// An object inside a list.
    pub fn item(&mut self, fill: impl FnOnce(&mut Writer)) {
        self.separate();
        self.enclosed('{', '}', fill);
    }

    /// `"key" : 5`.
    pub fn integer(&mut self, key: &str, value: impl std::fmt::Display) {
        self.key(key);
        self.push(format_args!("{value}"));
    }

    /// `"key" : 5.000000`. NaN and infinity, which JSON cannot represent, are written as 0.
    pub fn float(&mut self, key: &str, value: f64) {
        self.key(key);
        let value = if value.is_finite() { value } else { 0.0 };
        self.push(format_args!("{value:.6}"));
    }

    /// `"key" : 5` if it is whole, else `"key" : 5.500000`.
    pub fn number(&mut self, key: &str, value: f64) {
        self.key(key);
        self.push_number(value);
    }

    /// `"key" : [ 5, 5.500000, … ]`.
    pub fn numbers(&mut self, key: &str, values: impl IntoIterator<Item = f64>) {
        self.numbers_known(key, values.into_iter().map(Some));
    }

    /// The same with `null` for those that are not known.
    pub fn numbers_known(&mut self, key: &str, values: impl IntoIterator<Item = Option<f64>>) {
        self.list(key, |json| {
            for value in values {
                json.separate();
                match value {
                    Some(value) => json.push_number(value),
                    None => json.push(format_args!("null")),
                }
            }
        });
    }

    /// `"key" : "value"`.
    pub fn string(&mut self, key: &str, value: &str) {
        self.key(key);
        self.quoted(value);
    }

    /// `"key" : true`.
    pub fn boolean(&mut self, key: &str, value: bool) {
        self.key(key);
        self.push(format_args!("{value}"));
    }

    /// `"key" : null`.
    pub fn null(&mut self, key: &str) {
        self.key(key);
        self.push(format_args!("null"));
    }

    /// `"key" : { … }` of a document that is well formed.
    pub fn embedded(&mut self, key: &str, document: &str) {
        self.key(key);
        self.text.push_str(document.trim_ascii());
    }

    /// `"key" : [ "a", … ]`.
    pub fn strings(&mut self, key: &str, values: &[impl AsRef<str>]) {
        self.list(key, |json| {
            for value in values {
                json.separate();
                json.quoted(value.as_ref());
            }
        });
    }

    fn key(&mut self, key: &str) {
        self.separate();
        self.quoted(key);
        self.text.push_str(" : ");
    }

    fn separate(&mut self) {
        if !self.first {
            self.text.push(',');
        }
        self.first = false;
        self.line();
    }

    fn line(&mut self) {
        self.text.push('\n');
        self.text.extend(std::iter::repeat_n("  ", self.depth));
    }

    fn enclosed(&mut self, open: char, close: char, fill: impl FnOnce(&mut Writer)) {
        self.text.push(open);
        self.depth += 1;
        self.first = true;
        fill(self);
        self.depth -= 1;
        self.first = false;
        self.line();
        self.text.push(close);
    }

    fn quoted(&mut self, text: &str) {
        self.text.push('"');
        for c in text.chars() {
            match c {
                '"' => self.text.push_str("\\\""),
                '\\' => self.text.push_str("\\\\"),
                '\n' => self.text.push_str("\\n"),
                '\r' => self.text.push_str("\\r"),
                '\t' => self.text.push_str("\\t"),
                c if controls_terminal(c) => self.push(format_args!("\\u{:04x}", u32::from(c))),
                c => self.text.push(c),
            }
        }
        self.text.push('"');
    }

    fn push_number(&mut self, value: f64) {
        match value {
            value if !value.is_finite() => self.push(format_args!("0")),
            value if value.fract() == 0.0 => self.push(format_args!("{value:.0}")),
            value => self.push(format_args!("{value:.6}")),
        }
    }

    fn push(&mut self, arguments: std::fmt::Arguments) {
        // Writing to a String cannot fail.
        let _ = self.text.write_fmt(arguments);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spacing_is_fios() {
        let text = Writer::document(|json| {
            json.string("a", "b");
            json.object("o", |json| json.float("x", 1000.0));
            json.list("l", |json| {
                json.item(|json| json.integer("n", 1));
                json.item(|json| json.integer("n", 2));
            });
        });
        let expected = "{\n  \"a\" : \"b\",\n  \"o\" : {\n    \"x\" : 1000.000000\n  },\n  \"l\" : [\n    {\n      \"n\" : 1\n    },\n    {\n      \"n\" : 2\n    }\n  ]\n}\n";
        assert_eq!(text, expected);
    }

    proptest::proptest! {
        #[test]
        fn any_string_and_number_survives(key in ".*", value in ".*", number: f64) {
            let text = Writer::document(|json| {
                json.object("o", |json| json.string(&key, &value));
                json.float("f", number);
            });
            let parsed: serde_json::Value = serde_json::from_str(&text).unwrap();
            proptest::prop_assert_eq!(parsed["o"][&key].as_str(), Some(value.as_str()));
            proptest::prop_assert!(parsed["f"].is_f64());
        }
    }
}
