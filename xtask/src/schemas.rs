//! The JSON Schemas of the documents that fiord prints, made of the tables of `docs/json.md`.
//!
//! Invariant: that page is the only list of keys. What a schema says of a key is what its row says, and an object that the
//! page describes has no other keys.

use serde_json::{Map, Value, json};

/// Where the page is, and where its schemas go.
const PAGE: &str = "docs/json.md";
const DIRECTORY: &str = "docs/schema";

/// How a section says that it describes a document: this, then `NAME.json`.
const MARK: &str = "Schema: [";

/// The key that stands for all those of another section.
const ALL_OF: &str = "*";

/// The type of a key that a study may lack which was ended before it had measured anything, as the keys of its own section.
const IF_COMPLETE: &str = "if complete";

/// A part of the page under a heading.
struct Section<'p> {
    title: &'p str,
    /// The file of its schema, if it describes a document.
    file: Option<&'p str>,
    keys: Vec<Key<'p>>,
}

/// A key, or the objects on the way to it.
#[derive(Default)]
struct Key<'p> {
    name: &'p str,
    /// Whether it is a list of what it describes.
    is_list: bool,
    /// The words of its type; empty for an object or a list that has no row of its own.
    types: Vec<&'p str>,
    text: &'p str,
    line: usize,
    below: Vec<Key<'p>>,
}

/// The path and the text of each schema.
pub fn pages(page: &str) -> Result<Vec<(String, String)>, String> {
    let sections = sections(page)?;
    let described = sections.iter().filter_map(|section| Some((section.file?, section)));
    described
        .map(|(file, section)| {
            let mut text = serde_json::to_string_pretty(&Schemas(&sections).document(section)?)
                .map_err(|error| format!("{file}: {error}"))?;
            text.push('\n');
            Ok((format!("{DIRECTORY}/{file}"), text))
        })
        .collect()
}

fn sections(page: &str) -> Result<Vec<Section<'_>>, String> {
    let mut found: Vec<Section<'_>> = Vec::new();
    for (number, text) in page.lines().enumerate().map(|(index, text)| (index + 1, text)) {
        if let Some(title) = text.strip_prefix("## ").or_else(|| text.strip_prefix("### ")) {
            found.push(Section { title, file: None, keys: Vec::new() });
            continue;
        }
        let Some(section) = found.last_mut() else { continue };
        if let Some((_, rest)) = text.split_once(MARK) {
            section.file = rest.split(']').next();
        }
        let Some(row) = text.strip_prefix("| `") else { continue };
        let cells: Vec<&str> = row.trim_end_matches('|').split(" | ").map(str::trim).collect();
        // The columns of `history --export` are not keys of a document.
        let [key, types, what] = cells[..] else { continue };
        let key = key.split('`').next().unwrap_or_default();
        let types: Vec<&str> = types.split(", ").collect();
        insert(&mut section.keys, key, types, what, number)?;
    }
    Ok(found)
}

/// Puts a row where its path leads.
fn insert<'p>(
    keys: &mut Vec<Key<'p>>,
    path: &'p str,
    types: Vec<&'p str>,
    text: &'p str,
    line: usize,
) -> Result<(), String> {
    let (step, rest) = match path.split_once('.') {
        Some((step, rest)) => (step, Some(rest)),
        None => (path, None),
    };
    let name = step.trim_end_matches("[]");
    let at = keys.iter().position(|key| key.name == name).unwrap_or_else(|| {
        keys.push(Key { name, ..Key::default() });
        keys.len() - 1
    });
    let key = &mut keys[at];
    key.is_list |= step.ends_with("[]");
    match rest {
        Some(rest) => insert(&mut key.below, rest, types, text, line),
        None if !key.types.is_empty() => Err(format!("{PAGE}:{line}: another row has this key; keep one")),
        None => {
            (key.types, key.text, key.line) = (types, text, line);
            Ok(())
        }
    }
}

/// All sections, from which schemas are made.
struct Schemas<'p>(&'p [Section<'p>]);

impl Schemas<'_> {
    fn document(&self, section: &Section<'_>) -> Result<Value, String> {
        let mut shapes = Vec::new();
        let mut schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": format!("fiord: {}", section.title),
        });
        let is_study = section.keys.iter().any(|key| key.name == ALL_OF);
        let body = self.object(&section.keys, is_study, &mut shapes)?;
        let mut definitions = Map::new();
        let mut next = 0;
        while let Some(title) = shapes.get(next).cloned() {
            let shape = self.0.iter().find(|other| anchor(other.title) == title);
            let shape = shape.ok_or_else(|| format!("{PAGE}: no section has the anchor #{title}"))?;
            definitions.insert(title, self.object(&shape.keys, false, &mut shapes)?);
            next += 1;
        }
        if let (Value::Object(schema), Value::Object(body)) = (&mut schema, body) {
            schema.extend(body);
            if !definitions.is_empty() {
                schema.insert("$defs".to_string(), Value::Object(definitions));
            }
        }
        Ok(schema)
    }

    /// An object with these keys and no others. With several targets, the objects in lists of a study also have a `target`; one
    /// that is not complete may lack keys.
    fn object(&self, keys: &[Key<'_>], is_study: bool, shapes: &mut Vec<String>) -> Result<Value, String> {
        let mut properties = Map::new();
        let mut patterns = Map::new();
        let (mut required, mut required_if_complete) = (Vec::new(), Vec::new());
        for key in self.with_shared(keys)? {
            let shared = is_study && !keys.iter().any(|own| std::ptr::eq(own, key));
            let mut schema = self.key(alike(key, keys)?, is_study && !shared, shapes)?;
            describe(&mut schema, key);
            if let Some(pattern) = pattern(key.name) {
                patterns.insert(pattern.to_string(), schema);
                continue;
            }
            let is_own = is_study && !shared;
            match ["absent", IF_COMPLETE].map(|word| key.types.contains(&word)) {
                [true, _] => {}
                [false, false] if !is_own => required.push(key.name),
                _ => required_if_complete.push(key.name),
            }
            properties.insert(key.name.to_string(), schema);
        }
        let mut object = json!({ "type": "object", "properties": properties, "required": required });
        if !patterns.is_empty() {
            object["patternProperties"] = Value::Object(patterns);
        }
        object["additionalProperties"] = Value::Bool(false);
        if !required_if_complete.is_empty() {
            object["if"] = json!({ "properties": { "complete": { "const": true } } });
            object["then"] = json!({ "required": required_if_complete });
        }
        Ok(object)
    }

    /// The keys, with those of the section that is named for [`ALL_OF`].
    fn with_shared<'k>(&'k self, keys: &'k [Key<'k>]) -> Result<Vec<&'k Key<'k>>, String> {
        let mut all = Vec::new();
        for key in keys {
            if key.name != ALL_OF {
                all.push(key);
                continue;
            }
            let title = key.types.iter().find_map(|word| link(word)).unwrap_or_default();
            let shared = self.0.iter().find(|section| anchor(section.title) == title);
            let shared = shared.ok_or_else(|| format!("{PAGE}:{}: name the section by a link", key.line))?;
            all.extend(&shared.keys);
        }
        Ok(all)
    }

    fn key(&self, key: &Key<'_>, is_study: bool, shapes: &mut Vec<String>) -> Result<Value, String> {
        let mut of = if key.below.is_empty() {
            values(key, shapes)?
        } else {
            let mut object = self.object(&key.below, false, shapes)?;
            if is_study && key.is_list && object["properties"]["target"].is_null() {
                object["properties"]["target"] = json!({ "type": ["string", "null"], "description": "of several targets, the one it is of" });
            }
            vec![object]
        };
        if key.is_list {
            let items = if of.len() == 1 { of.remove(0) } else { json!({ "anyOf": of }) };
            of = vec![json!({ "type": "array", "items": items })];
        }
        if key.types.contains(&"null") {
            of.push(json!({ "type": "null" }));
        }
        Ok(if of.len() == 1 { of.remove(0) } else { one_of_types(of) })
    }
}

/// The key whose type a key has: its own, or that which it names.
fn alike<'k>(key: &'k Key<'k>, beside: &'k [Key<'k>]) -> Result<&'k Key<'k>, String> {
    let Some(name) = key.types.iter().find_map(|word| word.strip_prefix("as ")) else { return Ok(key) };
    let other = beside.iter().find(|other| other.name == name);
    other.ok_or_else(|| format!("{PAGE}:{}: there is no key {name} beside it", key.line))
}

/// A schema for each of the types that a key may have, `null` aside.
fn values(key: &Key<'_>, shapes: &mut Vec<String>) -> Result<Vec<Value>, String> {
    let mut of = Vec::new();
    for word in &key.types {
        of.push(match *word {
            "string" | "integer" | "number" | "boolean" => json!({ "type": word }),
            "strings" | "integers" | "numbers" => {
                json!({ "type": "array", "items": { "type": word.trim_end_matches('s') } })
            }
            "numbers or null" => json!({ "type": "array", "items": { "type": ["number", "null"] } }),
            "empty list" => json!({ "type": "array", "maxItems": 0 }),
            "any document" => json!({ "type": "object" }),
            "null" | "absent" | IF_COMPLETE => continue,
            _ => {
                let shape = link(word).ok_or_else(|| format!("{PAGE}:{}: {word} is no type", key.line))?;
                if !shapes.iter().any(|known| known == shape) {
                    shapes.push(shape.to_string());
                }
                json!({ "$ref": format!("#/$defs/{shape}") })
            }
        });
    }
    if of.is_empty() {
        return Err(format!("{PAGE}:{}: say which type {} has", key.line, key.name));
    }
    Ok(of)
}

/// Plain types as one list of types; where one of them is more, as alternatives.
fn one_of_types(of: Vec<Value>) -> Value {
    let is_plain = |schema: &Value| {
        schema.as_object().is_some_and(|members| members.len() == 1) && schema["type"].is_string()
    };
    if of.iter().all(is_plain) {
        let types: Vec<&Value> = of.iter().map(|schema| &schema["type"]).collect();
        return json!({ "type": types });
    }
    json!({ "anyOf": of })
}

/// The anchor to which a type links.
fn link(word: &str) -> Option<&str> {
    word.split_once("](#")?.1.strip_suffix(')')
}

/// GitHub's anchor of a heading.
fn anchor(title: &str) -> String {
    title
        .to_lowercase()
        .chars()
        .filter(|c| c.is_alphanumeric() || " -".contains(*c))
        .collect::<String>()
        .replace(' ', "-")
}

/// Words in capitals stand for keys that no list can name.
fn pattern(name: &str) -> Option<&'static str> {
    Some(match name {
        "PERCENT" => r"^[0-9]+\.[0-9]{6}$",
        "NUMBER" => r"^[0-9]+$",
        "BOUND" => r"^(>=)?[0-9]+(-[0-9]+)?$",
        "CPU" => r"^cpu-[0-9]+$",
        "OPTION" => r"^[A-Za-z0-9_-]+$",
        _ => return None,
    })
}

/// Says what a key is, and its unit where its name ends with one.
fn describe(schema: &mut Value, key: &Key<'_>) {
    const UNITS: [(&str, &str); 17] = [
        ("mib_per_s", "MiB per second"),
        ("bytes_per_s", "bytes per second"),
        ("per_s", "per second"),
        ("mib_s", "MiB per second"),
        ("iops", "I/Os per second"),
        ("_ns", "nanoseconds"),
        ("_us", "microseconds"),
        ("_ms", "milliseconds"),
        ("_s", "seconds"),
        ("_bytes", "bytes"),
        ("_sectors", "sectors of 512 bytes"),
        ("_percent", "percent"),
        ("_celsius", "degrees Celsius"),
        ("_ppb", "thousand-millionths"),
        ("joules", "joules"),
        ("watts", "watts"),
        ("ns_per_io", "nanoseconds per I/O"),
    ];
    let is_figure = key.types.iter().any(|word| word.starts_with("integer") || word.starts_with("number"));
    let unit = UNITS.iter().find(|(end, _)| is_figure && key.name.ends_with(end)).map(|(_, unit)| *unit);
    let text = key.text.replace('`', "");
    let description = match unit {
        Some(unit) if text.is_empty() => unit.to_string(),
        Some(unit) => format!("{text} ({unit})"),
        None if text.is_empty() => return,
        None => text,
    };
    schema["description"] = Value::String(description);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repo;

    const HEAD: &str =
        "## a\n\nSchema: [a.json](schema/a.json).\n\n| key | type | value |\n| --- | --- | --- |\n";

    fn schema(rows: &str) -> Result<Value, String> {
        let made = pages(&format!("{HEAD}{rows}"))?;
        Ok(serde_json::from_str(&made[0].1).unwrap())
    }

    #[test]
    fn a_row_says_type_unit_and_whether_the_key_is_there() {
        let made = schema(
            "| `a[].t_ns` | integer, null | a time |\n| `a[].b` | strings, absent | |\n| `c` | [x](#x-y) | |\n\n\
             ### X: y\n\n| `PERCENT` | number | |\n",
        );
        let made = made.unwrap();
        let item = &made["properties"]["a"]["items"];
        assert_eq!(item["required"], json!(["t_ns"]));
        assert_eq!(item["additionalProperties"], false);
        let time = json!({ "type": ["integer", "null"], "description": "a time (nanoseconds)" });
        assert_eq!(item["properties"]["t_ns"], time);
        assert_eq!(made["properties"]["c"], json!({ "$ref": "#/$defs/x-y" }));
        assert_eq!(
            made["$defs"]["x-y"]["patternProperties"][r"^[0-9]+\.[0-9]{6}$"],
            json!({ "type": "number" })
        );
    }

    #[test]
    fn a_study_lacks_keys_only_if_it_is_not_complete() {
        let rows = "| `*` | [every](#every) | |\n| `own` | number | |\n\n### Every\n\n\
                    | `complete` | boolean | |\n| `list[]` | number, if complete | |\n| `may` | number, absent | |\n";
        let made = schema(rows).unwrap();
        assert_eq!(made["required"], json!(["complete"]));
        assert_eq!(made["if"]["properties"], json!({ "complete": { "const": true } }));
        assert_eq!(made["then"]["required"], json!(["list", "own"]));
    }

    #[test]
    fn errors_name_the_line() {
        for (rows, why) in [
            ("| `a` | text | |", "docs/json.md:7: text is no type"),
            ("| `a` | null | |", "docs/json.md:7: say which type a has"),
            ("| `a` | as b | |", "docs/json.md:7: there is no key b beside it"),
            ("| `a` | string | |\n| `a` | string | |", "docs/json.md:8: another row has this key; keep one"),
            ("| `a` | [b](#b) | |", "docs/json.md: no section has the anchor #b"),
        ] {
            assert_eq!(schema(rows).unwrap_err(), why);
        }
    }

    #[test]
    fn each_file_has_its_section() {
        let made = pages(&repo::read(PAGE).unwrap()).unwrap();
        for file in std::fs::read_dir(repo::root().join(DIRECTORY)).unwrap() {
            let path = format!("{DIRECTORY}/{}", file.unwrap().file_name().to_string_lossy());
            assert!(
                made.iter().any(|(known, _)| *known == path),
                "{path} is of no section of {PAGE}; remove it"
            );
        }
    }
}
