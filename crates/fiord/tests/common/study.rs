//! Helpers of the tests of studies: the schema of their JSON, masked figures, and an ordinary user.
//!
//! Invariant: a key that is printed and not documented fails, and so does one that is documented and not printed.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::{Dir, Ran, assert_fits_terminal, finish, helper, root, start, words};

/// The keys of a document, as `docs/json.md` writes them, and the lists that were empty.
fn keys(at: &str, value: &Value, found: &mut BTreeSet<String>, empty: &mut BTreeSet<String>) {
    let below = |key: &str| if at.is_empty() { key.to_string() } else { format!("{at}.{key}") };
    match value {
        Value::Object(members) => {
            members.iter().for_each(|(key, value)| keys(&below(key), value, found, empty));
        }
        Value::Array(items) if items.is_empty() => {
            empty.insert(at.to_string());
        }
        Value::Array(items) => items.iter().for_each(|item| match item {
            Value::Object(_) => keys(&format!("{at}[]"), item, found, empty),
            _ => keys(at, item, found, empty),
        }),
        _ => {
            found.insert(at.to_string());
        }
    }
}

/// Checks that a document has exactly the keys of these sections of `docs/json.md`.
#[track_caller]
pub fn assert_documented(document: &Value, sections: &[&str]) {
    let page = include_str!("../../../../docs/json.md");
    let mut documented = BTreeSet::new();
    for name in sections {
        let section = page.split("\n## ").find(|section| section.starts_with(&format!("{name}\n"))).unwrap();
        let keys = section.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
        documented.extend(keys.map(str::to_string));
    }
    let (mut found, mut empty) = (BTreeSet::new(), BTreeSet::new());
    keys("", document, &mut found, &mut empty);
    let not_documented: Vec<_> = found.iter().chain(&empty).filter(|key| !has(&documented, key)).collect();
    assert!(not_documented.is_empty(), "not in docs/json.md: {not_documented:?}");
    let is_empty = |key: &str| empty.iter().any(|list| key == list || key.starts_with(&format!("{list}[].")));
    let not_printed: Vec<_> =
        documented.iter().filter(|key| !found.contains(*key) && !is_empty(key)).collect();
    assert!(not_printed.is_empty(), "documented and not printed: {not_printed:?}");
}

/// Whether a key is there, or keys of its items.
fn has(documented: &BTreeSet<String>, key: &str) -> bool {
    documented.contains(key) || documented.iter().any(|known| known.starts_with(&format!("{key}[].")))
}

/// A text with each figure and its unit as `#`, each bar as `=`, and single blanks. Words keep their digits (`4k`,
/// `p99`), and so do all figures before the table.
pub fn masked(text: &str) -> String {
    let word = |word: &str| {
        let unit = word.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        let bar = !word.is_empty() && word.chars().all(|c| ('\u{2581}'..='\u{258f}').contains(&c));
        match () {
            () if bar => "=".to_string(),
            () if unit.len() < word.len() && ["", "ns", "us", "ms", "s"].contains(&unit) => "#".to_string(),
            () => word.to_string(),
        }
    };
    let line = |line: &str| line.split_whitespace().map(word).collect::<Vec<_>>().join(" ");
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// The binary where every user may run it, and a directory where every user may write. Needs root.
pub fn public(parent: &Path) -> Result<(Dir, PathBuf), String> {
    root()?;
    let dir = Dir::under(parent)?;
    helper("chmod", &["777", &dir.path().to_string_lossy()])?;
    let binary = dir.join("fiord");
    fs::copy(env!("CARGO_BIN_EXE_fiord"), &binary).map_err(|error| error.to_string())?;
    Ok((dir, binary))
}

/// Runs the public binary as an unprivileged user.
pub fn as_ordinary_user(dir: &Dir, binary: &Path, line: &str) -> Ran {
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(binary);
    command.args(words(line)).current_dir(dir.path());
    // Not root's history.
    command.env("XDG_STATE_HOME", dir.join("state"));
    finish(start(command))
}

/// Checks that a run succeeded and that each of its lines fits a terminal.
#[track_caller]
pub fn assert_fits(ran: &Ran) {
    ran.assert_success();
    assert_fits_terminal(&ran.stdout);
}

/// The values of a column in a study's JSON, row by row.
pub fn column<'d>(document: &'d Value, key: &str) -> Vec<&'d str> {
    document["rows"].as_array().unwrap().iter().map(|row| row[key].as_str().unwrap()).collect()
}

/// Whether no files were left behind.
pub fn is_empty(directory: &Path) -> bool {
    fs::read_dir(directory).unwrap().next().is_none()
}

/// Checks that the real fio accepts the job files of a dry run.
///
/// # Errors
/// There is no fio here.
pub fn fio_takes(dir: &Dir, job_files: &str) -> Result<(), String> {
    helper("fio", &["--version"])?;
    dir.write("dry.fio", job_files);
    let path = dir.join("dry.fio");
    helper("fio", &["--parse-only", &path.to_string_lossy()]).unwrap();
    fs::remove_file(path).unwrap();
    Ok(())
}
