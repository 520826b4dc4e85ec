//! A file with hosts: one on a line, as fio's, or sections in the grammar of job files.
//!
//! Invariant: what a section says holds for each host of its name, after what the globals before it say.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;

use fiord_options::environment::Environment;
use fiord_options::grammar::jobfile;
use fiord_options::{Origin, Place, Problem, ProblemKind, ProblemLevel, Setting, expand};

use super::entry::{Entry, HostKeys, mistaken};
use super::{address, pattern};

/// What sections may say of a host, besides options of jobs.
const KEYS: [&str; 6] = ["via", "user", "port", "address", "agent", "role"];

/// A line with one of [`KEYS`].
struct KeyLine {
    key: &'static str,
    value: String,
    place: Place,
}

/// Reads a file. Its entries are added to `entries`, problems to `problems`.
pub(super) fn read(
    name: &OsStr,
    text: &[u8],
    environment: &Environment<'_>,
    entries: &mut Vec<Entry>,
    problems: &mut Vec<Problem>,
) {
    let source = Origin::File(Arc::from(name));
    let lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
    let first = lines.iter().map(|line| jobfile::strip(line).1).find(|content| !content.is_empty());
    match first {
        Some([b'[', ..]) => sections(name, &lines, &source, environment, entries, problems),
        Some(_) => one_a_line(&lines, &source, entries, problems),
        None => {
            let message = "the list of hosts is empty";
            let remedy = "write a host on each line, or sections such as [db[1-12]]";
            problems.push(Problem::error(
                ProblemKind::Syntax,
                Place { source, line: 0, column: 1 },
                None,
                message,
                remedy,
            ));
        }
    }
}

fn place_at(source: &Origin, line: usize, column: usize) -> Place {
    let number = |index: usize| u32::try_from(index + 1).unwrap_or(u32::MAX);
    Place { source: source.clone(), line: number(line), column: number(column) }
}

fn one_a_line(lines: &[&[u8]], source: &Origin, entries: &mut Vec<Entry>, problems: &mut Vec<Problem>) {
    for (index, line) in lines.iter().enumerate() {
        let (start, content, _) = jobfile::strip(line);
        if content.is_empty() {
            continue;
        }
        let place = place_at(source, index, start);
        match Entry::read(&String::from_utf8_lossy(content), &place, true) {
            Ok(entry) => entries.push(entry),
            Err(problem) => problems.push(problem),
        }
    }
}

fn sections(
    name: &OsStr,
    lines: &[&[u8]],
    source: &Origin,
    environment: &Environment<'_>,
    entries: &mut Vec<Entry>,
    problems: &mut Vec<Problem>,
) {
    // What is said of hosts is taken out; the lines that are left, in their places, are a job file.
    let mut rest = Vec::new();
    let mut by_header: HashMap<u32, Vec<KeyLine>> = HashMap::new();
    let mut header = 0;
    for (index, line) in lines.iter().enumerate() {
        let (start, content, _) = jobfile::strip(line);
        if content.starts_with(b"[") {
            header = place_at(source, index, 0).line;
        }
        match key_line(content, &place_at(source, index, start), environment) {
            Some(Ok(key)) if header > 0 => by_header.entry(header).or_default().push(key),
            Some(Err(problem)) => problems.push(problem),
            _ => rest.extend_from_slice(line),
        }
        rest.push(b'\n');
    }
    let mut found = Vec::new();
    let blocks = jobfile::read(name, &rest, &[], &[], environment, &mut found);
    // A list of hosts that is read otherwise than it is meant reaches the wrong ones: nothing in it is only a warning.
    found.iter_mut().for_each(|problem| problem.level = ProblemLevel::Error);
    problems.append(&mut found);
    let (mut keys, mut settings): (HostKeys, Vec<Setting>) = Default::default();
    for block in blocks {
        let own = by_header.remove(&block.place.line).unwrap_or_default();
        let Some(hosts) = block.name else {
            apply(&mut keys, own, problems);
            settings.extend(block.settings);
            continue;
        };
        let mut own_keys = keys.clone();
        apply(&mut own_keys, own, problems);
        match Entry::read(&hosts.to_string_lossy(), &block.place, false) {
            Ok(entry) => {
                let settings = settings.iter().cloned().chain(block.settings).collect();
                entries.push(Entry { keys: own_keys, settings, ..entry });
            }
            Err(problem) => problems.push(problem),
        }
    }
}

/// A line that says something of a host; `None` for any other.
fn key_line(
    content: &[u8],
    place: &Place,
    environment: &Environment<'_>,
) -> Option<Result<KeyLine, Problem>> {
    let equals = content.iter().position(|byte| *byte == b'=')?;
    let key = KEYS.into_iter().find(|key| content[..equals].trim_ascii() == key.as_bytes())?;
    let expanded =
        expand::variables(OsStr::from_bytes(content[equals + 1..].trim_ascii()), environment.variables);
    let wrong = |kind, message: String, remedy: &str| {
        Some(Err(Problem::error(kind, place.clone(), None, message, remedy)))
    };
    if let Some(unset) = expanded.unset.first() {
        let message = format!("the variable {unset} is not set");
        return wrong(ProblemKind::UnsetVariable, message, "set it, or write its value");
    }
    match expanded.text.to_str() {
        Some(value) if !value.is_empty() => {
            Some(Ok(KeyLine { key, value: value.to_string(), place: place.clone() }))
        }
        _ => wrong(ProblemKind::ValueCount, format!("{key} needs a value"), "write it behind the \"=\""),
    }
}

fn apply(keys: &mut HostKeys, lines: Vec<KeyLine>, problems: &mut Vec<Problem>) {
    for KeyLine { key, value, place } in lines {
        let result = match key {
            "user" => address::read(&format!("{value}@x"), false).map(|found| keys.user = found.user),
            "port" => address::read(&format!("x:{value}"), false).map(|found| keys.port = found.port),
            "address" => address::read(&value, false).map(|found| {
                keys.user = found.user.or(keys.user.take());
                keys.port = found.port.or(keys.port.take());
                keys.address = Some(found.host);
            }),
            "via" => {
                keys.via = Some(value);
                continue;
            }
            "agent" => {
                keys.agent = Some(PathBuf::from(OsString::from(value)));
                continue;
            }
            _ => {
                keys.role = Some(value);
                continue;
            }
        };
        if let Err(mistake) = result {
            // The place is that of the key: the text was read with other text around it.
            problems.push(mistaken(&place, pattern::Mistake { at: 0, ..mistake }));
        }
    }
}
