//! The JSON Schemas of the documents: they fit what is printed, and refuse what is not.
//!
//! Invariant: every change of a document below, wherever in it, is seen to be refused. Documents of studies and of most other
//! subcommands are checked where their subcommands are tested, those of runs wherever a test reads one.

use serde_json::{Value, json};

use crate::common::Dir;
use crate::common::schema::{assert_documented, refused, schema};

/// The place of each value in a document, as a JSON pointer.
fn places(document: &Value, at: String, found: &mut Vec<String>) {
    let escaped = |key: &str| key.replace('~', "~0").replace('/', "~1");
    match document {
        Value::Object(members) => {
            members.iter().for_each(|(key, value)| places(value, format!("{at}/{}", escaped(key)), found));
        }
        // One item is enough: all have one schema.
        Value::Array(items) => items.iter().take(1).for_each(|item| places(item, format!("{at}/0"), found)),
        _ => {}
    }
    found.push(at);
}

/// Checks that another type is refused in each place of a document, and an unknown key in each object.
fn assert_closed(document: &Value, name: &str) -> Vec<String> {
    assert_documented(document, name);
    let mut found = Vec::new();
    places(document, String::new(), &mut found);
    for place in &found {
        let mut other = document.clone();
        let value = other.pointer_mut(place).unwrap();
        if let Value::Object(members) = value {
            members.insert("not a key".to_string(), json!(1));
            assert!(!refused(&other, name).is_empty(), "{name}: an unknown key in {place} is accepted");
        }
        let mut other = document.clone();
        *other.pointer_mut(place).unwrap() = json!([[]]);
        assert!(!refused(&other, name).is_empty(), "{name}: another type of {place} is accepted");
    }
    found
}

/// The document without one of its values.
fn without(document: &Value, place: &str) -> Value {
    let mut other = document.clone();
    let (parent, key) = place.rsplit_once('/').unwrap();
    let key = key.replace("~1", "/").replace("~0", "~");
    other.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(&key).unwrap();
    other
}

#[test]
fn what_describes_the_machine_and_fiord_has_every_key() {
    let dir = Dir::new();
    for (line, name) in [
        ("devices --json .", "devices"),
        ("engines --json", "engines"),
        ("calibrate --json", "calibrate"),
        ("check list --json", "check-list"),
        ("help --json", "help"),
        ("version --json", "version"),
        ("explain --json --line clat_ns", "explain-line"),
    ] {
        let document = dir.run(line).assert_success().json();
        for place in assert_closed(&document, name).iter().filter(|place| !place.ends_with("/0")) {
            if !place.is_empty() {
                let why = refused(&without(&document, place), name);
                assert!(!why.is_empty(), "{name}: a document without {place} is accepted");
            }
        }
    }
}

#[test]
fn a_run_of_jobs_is_closed_and_has_the_keys_of_fio() {
    let dir = Dir::new();
    let job =
        "--output-format=json+ --name=a --rw=randrw --size=1m --bs=4k --lat_percentiles=1 --rate_iops=10000";
    let document = dir.run(job).assert_success().json();
    let places = assert_closed(&document, "run");
    assert!(places.iter().any(|place| place.contains("/bins/")), "{places:?}");
    for place in
        ["/jobs", "/jobs/0/jobname", "/jobs/0/read/iops", "/jobs/0/write/clat_ns/mean", "/jobs/0/sync/lat_ns"]
    {
        assert!(!refused(&without(&document, place), "run").is_empty(), "{place} may be absent");
    }
    let mut other = document.clone();
    other["jobs"][0]["read"]["clat_ns"]["percentile"]["half"] = json!(1);
    assert!(!refused(&other, "run").is_empty(), "a percentile has a number");
    // What depends on options may be absent.
    assert_documented(&without(&document, "/jobs/0/response"), "run");
    let plain = dir
        .run("--output-format=json --name=a --size=1m --disable_lat=1 --trust=off")
        .assert_success()
        .json();
    assert!(plain.get("devices").is_none_or(|devices| devices[0].get("samples").is_none()));
    assert_closed(&plain, "run");
}

#[test]
fn every_schema_is_one_and_refuses_what_is_empty() {
    let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema");
    for entry in std::fs::read_dir(directory).unwrap() {
        let file = entry.unwrap().file_name().into_string().unwrap();
        let name = file.strip_suffix(".json").unwrap();
        jsonschema::meta::validate(&schema(name)).unwrap();
        assert!(!refused(&json!({}), name).is_empty(), "{file} accepts an empty document");
        assert!(!refused(&json!([]), name).is_empty(), "{file} accepts a list");
    }
}
