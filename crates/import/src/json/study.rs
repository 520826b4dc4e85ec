//! Reads the JSON document of a study.
//!
//! Invariant: every list of rows of the document is a table of the result, with the columns in the order of the document.

use serde_json::Value;

use super::fields::{Fields, WrongType};
use super::{finding, locate, placed};
use crate::model::ReportedFinding;
use crate::place::ReadError;

/// The document of a study.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StudyDocument {
    /// The subcommand: `quick`.
    pub study: String,
    /// Why it is incomplete; `None` if it is complete.
    pub error: Option<String>,
    /// What it concluded; `None` if nothing was measured.
    pub conclusion: Option<String>,
    /// Its further facts: the target, the verdict.
    pub facts: Vec<(String, StudyValue)>,
    /// Its tables, each with its key, in their order; those without rows are left out.
    pub tables: Vec<StudyRows>,
    /// Its findings.
    pub findings: Vec<ReportedFinding>,
    /// Of a study on hosts: the document of each host that has one, by the host's name.
    pub hosts: Vec<(String, StudyDocument)>,
}

/// A table of a study.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StudyRows {
    /// Its key in the document: `rows`.
    pub key: String,
    /// The keys of its columns.
    pub columns: Vec<String>,
    /// Its rows, each with a value for every column.
    pub rows: Vec<Vec<StudyValue>>,
}

/// A value of a study's document.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum StudyValue {
    /// Absent, or `null`.
    #[default]
    None,
    /// Yes or no.
    Flag(bool),
    /// A figure.
    Number(f64),
    /// Words.
    Text(String),
    /// Several values.
    List(Vec<StudyValue>),
}

impl StudyDocument {
    /// The table of this key, if it has rows.
    pub fn table(&self, key: &str) -> Option<&StudyRows> {
        self.tables.iter().find(|table| table.key == key)
    }
}

/// The study of a text; `None` if the text is not the document of a study.
///
/// # Errors
/// A value of the wrong type, with its place.
pub fn read(text: &str) -> Result<Option<StudyDocument>, ReadError> {
    // A report is not held as values, since it may be large.
    let Ok((places, _)) = locate::members(text) else { return Ok(None) };
    let is_named = |at: usize| text.get(at..).is_some_and(|rest| rest.starts_with('"'));
    if !places.iter().any(|(key, at)| key == "study" && is_named(*at)) {
        return Ok(None);
    }
    let Ok(value) = serde_json::from_str::<Value>(text) else { return Ok(None) };
    document(&Fields::root(&value)).map(Some).map_err(|wrong| placed(text, 1, wrong))
}

fn document(root: &Fields<'_>) -> Result<StudyDocument, WrongType> {
    let mut document = StudyDocument {
        study: root.text("study")?.unwrap_or_default(),
        error: root.text("error")?,
        conclusion: root.text("conclusion")?,
        ..StudyDocument::default()
    };
    let target = root.object("target")?.map(|target| target.text("path")).transpose()?.flatten();
    document.facts.extend(target.map(|path| ("target".to_string(), StudyValue::Text(path))));
    for fields in root.list("findings")?.unwrap_or_default() {
        document.findings.push(finding(&fields)?);
    }
    for host in root.list("hosts")?.unwrap_or_default() {
        if let (Some(name), Some(own)) = (host.text("host")?, host.object("document")?) {
            document.hosts.push((name, self::document(&own)?));
        }
    }
    for (key, member) in root.members() {
        match (key, member) {
            ("study" | "complete" | "error" | "conclusion" | "findings", _) => {}
            (_, Value::Array(items)) if items.iter().any(Value::is_object) => {
                // Every item is an object, or it is an error.
                root.list(key)?;
                document.tables.push(rows(key, items));
            }
            (_, Value::Object(_) | Value::Null) => {}
            (_, Value::Array(items)) if items.is_empty() => {}
            (_, fact) => document.facts.push((key.to_string(), value(fact))),
        }
    }
    Ok(document)
}

/// Objects as rows. Rows may have different keys.
fn rows(key: &str, items: &[Value]) -> StudyRows {
    let members = || items.iter().filter_map(Value::as_object);
    let mut columns: Vec<String> = Vec::new();
    for column in members().flat_map(|members| members.keys()) {
        if !columns.contains(column) {
            columns.push(column.clone());
        }
    }
    let rows = members().map(|members| {
        columns.iter().map(|column| members.get(column).map_or(StudyValue::None, value)).collect()
    });
    StudyRows { key: key.to_string(), rows: rows.collect(), columns }
}

fn value(value: &Value) -> StudyValue {
    match value {
        Value::Null | Value::Object(_) => StudyValue::None,
        Value::Bool(flag) => StudyValue::Flag(*flag),
        Value::Number(number) => number.as_f64().map_or(StudyValue::None, StudyValue::Number),
        Value::String(text) => StudyValue::Text(text.clone()),
        Value::Array(items) => StudyValue::List(items.iter().map(self::value).collect()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests panic when something is wrong")]

    use super::*;

    const TEXT: &str = r#"{
  "study" : "check", "complete" : false, "error" : "ended by SIGINT", "target" : { "path" : "/mnt" },
  "jobs" : [], "rows" : [ { "figure" : "p99", "measured_ns" : 5 }, { "figure" : "rate", "measured_per_s" : 2.5 } ],
  "verdict" : null, "profile" : "etcd", "conclusion" : "No verdict.",
  "findings" : [ { "code" : "interrupted", "severity" : "void", "subject" : "this run", "sentence" : "s", "remedy" : "r" } ]
}"#;

    #[test]
    fn a_document_is_read_with_its_tables_and_facts() {
        let study = read(TEXT).unwrap().unwrap();
        assert_eq!((study.study.as_str(), study.error.as_deref()), ("check", Some("ended by SIGINT")));
        let text = |text: &str| StudyValue::Text(text.to_string());
        assert_eq!(
            study.facts,
            [("target".to_string(), text("/mnt")), ("profile".to_string(), text("etcd"))]
        );
        assert_eq!(study.tables.len(), 1, "a list without rows is not a table");
        let rows = study.table("rows").unwrap();
        assert_eq!(rows.columns, ["figure", "measured_ns", "measured_per_s"]);
        assert_eq!(rows.rows[1], [text("rate"), StudyValue::None, StudyValue::Number(2.5)]);
        assert_eq!(study.findings[0].code, "interrupted");
    }

    #[test]
    fn a_study_on_hosts_has_the_documents_of_its_hosts() {
        let text = format!(
            r#"{{ "study" : "check", "hosts" : [ {{ "host" : "a", "document" : {TEXT} }}, {{ "host" : "b", "document" : null }} ] }}"#
        );
        let study = read(&text).unwrap().unwrap();
        assert_eq!(study.hosts, [("a".to_string(), read(TEXT).unwrap().unwrap())]);
        assert_eq!(study.table("hosts").map(|hosts| hosts.rows.len()), Some(2));
    }

    #[test]
    fn other_texts_are_no_study_and_wrong_types_have_a_place() {
        for text in ["", "{", "3;fio-3.42;a", "{ \"jobs\" : [] }", "{ \"study\" : 3 }", "[]"] {
            assert_eq!(read(text).unwrap(), None, "{text}");
        }
        let wrong = read("{ \"study\" : \"quick\",\n  \"conclusion\" : 5 }").unwrap_err();
        assert_eq!((wrong.line, wrong.column), (2, 18), "{wrong}");
        let wrong = read("{ \"study\" : \"quick\",\n  \"rows\" : [ {}, 5 ] }").unwrap_err();
        assert_eq!(wrong.line, 2, "{wrong}");
    }
}
