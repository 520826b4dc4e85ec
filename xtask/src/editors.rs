//! What editors need for job files, made of the table of options: a TextMate grammar, and options to complete.
//!
//! Invariant: an expression uses only what both Oniguruma, which editors have, and Rust's `regex`, which the tests have, take.

use std::collections::BTreeSet;

use fiord_options::Scope;
use fiord_options::table::{Spec, engine_specs, job_specs};
use serde_json::{Value, json};

/// The path and the text of each file.
pub fn files() -> Result<Vec<(String, String)>, String> {
    let text = |value: &Value| serde_json::to_string_pretty(value).map_err(|error| error.to_string());
    [("editors/fiord.tmLanguage.json", grammar()), ("editors/options.json", options())]
        .into_iter()
        .map(|(path, value)| Ok((path.to_string(), text(&value)? + "\n")))
        .collect()
}

/// Every option that a job file may have.
fn specs() -> impl Iterator<Item = &'static Spec> {
    job_specs().chain(engine_specs())
}

/// Every spelling of their names, in order and once: engines share some.
fn names() -> BTreeSet<&'static str> {
    specs().flat_map(|spec| [spec.name].into_iter().chain(spec.aliases.iter().copied())).collect()
}

fn grammar() -> Value {
    // The end of the name follows in the expression, so that a name may begin with another.
    let names = names().into_iter().collect::<Vec<_>>().join("|").replace('.', r"\.");
    json!({
        "$schema": "https://raw.githubusercontent.com/martinring/tmlanguage/master/tmlanguage.json",
        "name": "Job file of fiord and fio",
        "scopeName": "source.fiord",
        "fileTypes": ["fio", "job"],
        "patterns": [
            { "match": r"^\s*[#;].*$", "name": "comment.line.fiord" },
            {
                "match": r"^\s*(\[)([^\]]*)(\])",
                "captures": {
                    "1": { "name": "punctuation.definition.section.begin.fiord" },
                    "2": { "name": "entity.name.section.fiord" },
                    "3": { "name": "punctuation.definition.section.end.fiord" },
                },
            },
            {
                "match": r"^\s*(include)\s+(.+)$",
                "captures": {
                    "1": { "name": "keyword.control.include.fiord" },
                    "2": { "name": "string.unquoted.path.fiord" },
                },
            },
            { "match": format!(r"^\s*({names})\s*$"), "captures": { "1": { "name": "support.type.option.fiord" } } },
            {
                "begin": format!(r"^\s*({names})\s*(=)"),
                "beginCaptures": {
                    "1": { "name": "support.type.option.fiord" },
                    "2": { "name": "keyword.operator.assignment.fiord" },
                },
                "end": "$",
                "contentName": "string.unquoted.value.fiord",
                "patterns": [{ "include": "#variable" }, { "include": "#number" }],
            },
            { "match": r"^\s*([^\s=#;\[][^\s=]*)", "captures": { "1": { "name": "invalid.illegal.option.fiord" } } },
        ],
        "repository": {
            "variable": {
                "match": r"\$\{[A-Za-z_][A-Za-z0-9_]*\}|\$(?:jobname|jobnum|filenum|clientuid|pagesize|mb_memory|ncpus)\b",
                "name": "variable.other.fiord",
            },
            "number": {
                "match": r"\b(?:0[xX][0-9A-Fa-f]+|[0-9]+(?:\.[0-9]+)?)(?:%|(?:[kmgtpKMGTP](?:i?[bB])?|[munMUN]?[sS]|[munMUN]?sec|[dhmz])?\b)",
                "name": "constant.numeric.fiord",
            },
        },
    })
}

fn options() -> Value {
    let entry = |spec: &Spec| {
        let engines: Vec<String> = match spec.scope {
            Scope::Engine(engines) => engines.iter().map(ToString::to_string).collect(),
            Scope::Job | Scope::Program => Vec::new(),
        };
        json!({
            "name": spec.name,
            "aliases": spec.aliases,
            "engines": engines,
            "type": spec.kind.to_string(),
            "values": spec.choices.iter().map(|choice| choice.word).collect::<Vec<_>>(),
            "default": spec.default,
            "summary": spec.summary(),
        })
    };
    json!({ "options": specs().map(entry).collect::<Vec<_>>() })
}

#[cfg(test)]
mod tests {
    use regex::Regex;

    use super::*;

    /// The scopes of a line: of what the first rule that matches it captures, and of what is in its value.
    fn scopes(grammar: &Value, line: &str) -> Vec<(String, String)> {
        let expression = |rule: &Value, key: &str| Regex::new(rule[key].as_str().unwrap()).unwrap();
        let short = |scope: &Value| scope["name"].as_str().unwrap().trim_end_matches(".fiord").to_string();
        for rule in grammar["patterns"].as_array().unwrap() {
            let is_block = rule.get("begin").is_some();
            let Some(found) = expression(rule, if is_block { "begin" } else { "match" }).captures(line)
            else {
                continue;
            };
            if rule.get("name").is_some() {
                return vec![(found[0].to_string(), short(rule))];
            }
            let captures = rule[if is_block { "beginCaptures" } else { "captures" }].as_object().unwrap();
            let group = |(number, scope): (&String, &Value)| {
                (found[number.parse::<usize>().unwrap()].to_string(), short(scope))
            };
            let mut all: Vec<_> = captures.iter().map(group).collect();
            let value = &line[found.get(0).unwrap().end()..];
            for name in if is_block { ["variable", "number"].as_slice() } else { &[] } {
                let part = &grammar["repository"][name];
                let parts = expression(part, "match");
                all.extend(parts.find_iter(value).map(|found| (found.as_str().to_string(), short(part))));
            }
            return all;
        }
        Vec::new()
    }

    #[test]
    fn every_option_of_the_table_is_one_and_no_other_word() {
        let grammar = grammar();
        let rules = grammar["patterns"].as_array().unwrap();
        let expressions = ["match", "begin"].map(|key| {
            let rule =
                rules.iter().find(|rule| rule[key].as_str().is_some_and(|text| text.contains("|iodepth|")));
            Regex::new(rule.unwrap()[key].as_str().unwrap()).unwrap()
        });
        for name in names() {
            for (expression, line) in expressions.iter().zip([name.to_string(), format!("  {name} = 1")]) {
                assert_eq!(&expression.captures(&line).unwrap_or_else(|| panic!("{line}"))[1], name);
            }
            for expression in &expressions {
                assert!(!expression.is_match(&format!("{name}-x=1")), "{name}-x");
            }
        }
    }

    #[test]
    fn a_job_file_has_its_scopes() {
        let grammar = grammar();
        let of = |line: &str| -> Vec<String> {
            scopes(&grammar, line).into_iter().map(|(text, scope)| format!("{scope} {text}")).collect()
        };
        assert_eq!(of("; bs=4k"), ["comment.line ; bs=4k"]);
        assert_eq!(of("[a job]")[1], "entity.name.section a job");
        assert_eq!(of("include a.fio")[0], "keyword.control.include include");
        assert_eq!(of("time_based"), ["support.type.option time_based"]);
        let value = of("bssplit=4k/20:64KiB/80,${SIZE}");
        assert_eq!(value[0], "support.type.option bssplit");
        let numbers = ["4k", "20", "64KiB", "80"].map(|number| format!("constant.numeric {number}"));
        assert_eq!(value[2..], [vec!["variable.other ${SIZE}".to_string()], numbers.to_vec()].concat());
        assert_eq!(of("size=20%")[2], "constant.numeric 20%");
        assert_eq!(of("thinktime=10ms")[2], "constant.numeric 10ms");
        assert_eq!(of("filename=/dev/nvme0n1").len(), 2, "digits of a name are no number");
        assert_eq!(of("iodeph=4"), ["invalid.illegal.option iodeph"]);
    }
}
