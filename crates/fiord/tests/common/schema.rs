//! The JSON Schemas of `docs/schema`, and documents that are checked against them.
//!
//! Invariant: a key that is printed and not documented fails, and so does one that is documented and not printed, or that has
//! another type.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex};

use jsonschema::Validator;
use serde_json::Value;

static READ: LazyLock<Mutex<HashMap<String, Arc<Validator>>>> = LazyLock::new(Mutex::default);

/// The schema as it is in its file.
pub fn schema(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema").join(format!("{name}.json"));
    serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap()
}

fn validator(name: &str) -> Arc<Validator> {
    let mut read = READ.lock().unwrap();
    read.entry(name.to_string())
        .or_insert_with(|| Arc::new(jsonschema::validator_for(&schema(name)).unwrap()))
        .clone()
}

/// What a document has that its schema refuses.
pub fn refused(document: &Value, name: &str) -> Vec<String> {
    let errors = |error: jsonschema::ValidationError<'_>| format!("{}: {error:.300}", error.instance_path());
    validator(name).iter_errors(document).map(errors).collect()
}

/// Checks that a document is what its schema, `docs/schema/NAME.json`, says.
#[track_caller]
pub fn assert_documented(document: &Value, name: &str) {
    let refused = refused(document, name);
    assert!(refused.is_empty(), "docs/schema/{name}.json, made of docs/json.md, refuses: {refused:#?}");
}

/// The same, of a document that shows which it is: that of a run or of a study.
#[track_caller]
pub fn assert_known(document: &Value) {
    let has = |key: &str| document.get(key).is_some();
    match document["study"].as_str() {
        Some(_) if has("hosts") => assert_documented(document, "study-on-hosts"),
        Some(study) => assert_documented(document, study),
        None if has("client_stats") => assert_documented(document, "run-on-hosts"),
        None if has("fio version") => assert_documented(document, "run"),
        None => {}
    }
}
