//! Compares two JSON documents by keys, their order, and types; never by figures.
//!
//! Invariant: the reference is fio's document, plus the keys that `versions` lists.

use serde_json::{Map, Value};

use crate::verdict::Verdict;
use crate::versions::{
    ADDED_JOB_OBJECTS, ADDED_KEYS, ADDED_LISTS, ADDED_OBJECTS, FOLLOWED, LACKS_ADDED_KEYS, Version,
};

/// Objects whose keys are data: options, and the bins of a histogram.
const FREE_KEYS: &[&str] = &["job options", "global options", "bins"];

/// Compares fiord's document with that of this version of fio.
pub fn compare(fio: &Value, fiord: &Value, oracle: Version) -> Verdict {
    let mut fiord = fiord.clone();
    if let Value::Object(document) = &mut fiord {
        let is_added = |key: &str, value: &Value| {
            let is_own = ADDED_LISTS.contains(&key) && value.is_array()
                || ADDED_OBJECTS.contains(&key) && value.is_object();
            is_own && fio.get(key).is_none()
        };
        document.retain(|key, value| !is_added(key, value));
    }
    at("", fio, &fiord, LACKS_ADDED_KEYS.holds(oracle))
}

fn at(path: &str, fio: &Value, fiord: &Value, adds_keys: bool) -> Verdict {
    match (fio, fiord) {
        (Value::Object(fio), Value::Object(fiord)) => objects(path, fio, fiord, adds_keys),
        (Value::Array(fio), Value::Array(fiord)) => {
            if fio.len() != fiord.len() {
                return Err(format!("{path}: fio lists {}, fiord {}", fio.len(), fiord.len()));
            }
            let path = format!("{path}[]");
            fio.iter().zip(fiord).try_for_each(|(fio, fiord)| at(&path, fio, fiord, adds_keys))
        }
        _ if kind(fio) == kind(fiord) => Ok(()),
        _ => Err(format!("{path}: fio writes {} ({fio}), fiord {} ({fiord})", kind(fio), kind(fiord))),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a truth value",
        Value::Number(number) if number.is_f64() => "a number with decimals",
        Value::Number(_) => "an integer",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

fn objects(path: &str, fio: &Map<String, Value>, fiord: &Map<String, Value>, adds_keys: bool) -> Verdict {
    let name = path.rsplit('/').next().unwrap_or(path);
    if FREE_KEYS.contains(&name) {
        return Ok(());
    }
    let expected = expected_keys(path, fio, adds_keys);
    let is_added =
        |key: &&str| name == "jobs[]" && ADDED_JOB_OBJECTS.contains(key) && fiord[*key].is_object();
    let written: Vec<&str> = fiord.keys().map(String::as_str).filter(|key| !is_added(key)).collect();
    if expected != written {
        return Err(format!("{path}: keys differ: {}", difference(&expected, &written)));
    }
    for key in expected {
        let below = if path.is_empty() { key.to_string() } else { format!("{path}/{key}") };
        match (fio.get(key), &fiord[key]) {
            (Some(value), written) => at(&below, value, written, adds_keys)?,
            (None, written) if kind(written) == "an integer" => {}
            (None, written) => {
                return Err(format!("{below}: an integer in {}, here {written}", FOLLOWED));
            }
        }
    }
    Ok(())
}

fn expected_keys<'k>(path: &str, fio: &'k Map<String, Value>, adds_keys: bool) -> Vec<&'k str> {
    let mut keys: Vec<&str> = fio.keys().map(String::as_str).collect();
    for added in ADDED_KEYS.iter().filter(|added| adds_keys && added.object == path) {
        let place = keys.iter().position(|&key| key == added.after);
        if let Some(place) = place.filter(|_| !keys.contains(&added.key)) {
            keys.insert(place + 1, added.key);
        }
    }
    keys
}

/// Keys that only one has; if only their order differs, the first difference.
fn difference(expected: &[&str], written: &[&str]) -> String {
    let lacks: Vec<&&str> = expected.iter().filter(|key| !written.contains(key)).collect();
    let extra: Vec<&&str> = written.iter().filter(|key| !expected.contains(key)).collect();
    if lacks.is_empty() && extra.is_empty() {
        let first = expected.iter().zip(written).find(|(expected, written)| expected != written);
        return first
            .map_or_else(String::new, |(expected, written)| format!("{written} where {expected} should be"));
    }
    format!("lacks {lacks:?}, additionally has {extra:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEBIAN: Version = Version { major: 3, minor: 33 };

    fn verdict(fio: &str, fiord: &str, oracle: Version) -> Verdict {
        compare(&serde_json::from_str(fio).unwrap(), &serde_json::from_str(fiord).unwrap(), oracle)
    }

    #[test]
    fn keys_order_and_types_must_agree() {
        let fio = r#"{"a": 1, "b": [{"c": 1.0}], "job options": {"x": "1"}}"#;
        assert_eq!(verdict(fio, r#"{"a": 7, "b": [{"c": 2.5}], "job options": {}}"#, FOLLOWED), Ok(()));
        for other in [
            r#"{"b": [{"c": 1.0}], "a": 1, "job options": {}}"#,
            r#"{"a": 1.5, "b": [{"c": 1.0}], "job options": {}}"#,
            r#"{"a": 1, "b": [{"c": 1}], "job options": {}}"#,
            r#"{"a": 1, "b": [], "job options": {}}"#,
            r#"{"a": 1, "b": [{}], "job options": {}}"#,
        ] {
            assert!(verdict(fio, other, FOLLOWED).is_err(), "{other}");
        }
    }

    #[test]
    fn added_keys_are_expected_only_where_fio_is_known_to_lack_them() {
        let old = r#"{"jobs": [{"groupid": 0, "error": 0}]}"#;
        let new = r#"{"jobs": [{"groupid": 0, "job_start": 5, "error": 0}]}"#;
        assert_eq!(verdict(old, new, DEBIAN), Ok(()));
        assert_eq!(verdict(new, new, DEBIAN), Ok(()));
        assert!(verdict(old, new, FOLLOWED).is_err());
        assert!(verdict(old, old, DEBIAN).is_err());
    }
}
