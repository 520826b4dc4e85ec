//! A JSON document with other values of some of its keys.
//!
//! Invariant: all but the values that are replaced stays as it is, byte for byte; a text that is not JSON is not harmed.

use serde_json::Deserializer;

/// The text with each string that follows a key replaced by what `change` makes of the key and the string; `None` leaves it.
pub fn with_values(text: &str, change: impl Fn(&str, &str) -> Option<String>) -> String {
    let mut replaced = String::new();
    let (mut copied, mut at) = (0, 0);
    let mut key: Option<String> = None;
    while let Some(quote) = text[at..].find('"') {
        let start = at + quote;
        let follows_key = text[at..start].trim() == ":";
        let mut strings = Deserializer::from_str(&text[start..]).into_iter::<String>();
        let Some(Ok(string)) = strings.next() else {
            (at, key) = (start + 1, None);
            continue;
        };
        at = start + strings.byte_offset();
        match key.take().filter(|_| follows_key) {
            Some(name) => {
                if let Some(value) = change(&name, &string) {
                    replaced += &text[copied..start];
                    replaced += &serde_json::Value::String(value).to_string();
                    copied = at;
                }
            }
            None => key = Some(string),
        }
    }
    replaced + &text[copied..]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn masked(text: &str) -> String {
        with_values(text, |key, value| (key == "pass" && value != "***").then(|| "***".to_string()))
    }

    #[test]
    fn only_strings_of_the_key_are_replaced() {
        let text = "x \"\n{\"pass\" : \"a\\\"b\", \"list\": [\"pass\", \"x\"], \"pass\":1, \"of\": {\"pass\":\n\"é\"},\"a\":\"pass\"}\n";
        let expected = "x \"\n{\"pass\" : \"***\", \"list\": [\"pass\", \"x\"], \"pass\":1, \"of\": {\"pass\":\n\"***\"},\"a\":\"pass\"}\n";
        assert_eq!(masked(text), expected);
        assert_eq!(masked(expected), expected);
    }

    #[test]
    fn what_is_not_json_stays() {
        for text in ["", "\"", "\"pass\":\"", "\"\\x\"pass\":", "é\"é", "\"pass\" x \"y\""] {
            assert_eq!(masked(text), text);
        }
    }
}
