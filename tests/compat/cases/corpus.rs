//! Verdicts on job files and command lines that cannot be part of the project, from a directory of the user's.
//!
//! Invariant: the project names nothing in that directory; without FIORD_CORPUS there are no cases here. Options that
//! are not built are counted separately.

use std::fs;
use std::path::{Path, PathBuf};

use fiord_compat::compare::verdict;
use fiord_compat::{Case, case};

/// FIORD_CORPUS holds `jobfiles/*.fio` (those called `global*` are only included by others), optionally
/// `jobfiles.tsv` (id, anything, anything, `NAME=VALUE…` for the environment) and `commands.txt` (one per line).
pub fn cases() -> Vec<Case> {
    let Some(corpus) = std::env::var_os("FIORD_CORPUS").map(PathBuf::from) else { return Vec::new() };
    let text = |name: &str| fs::read_to_string(corpus.join(name)).unwrap_or_default();
    let (table, commands) = (text("jobfiles.tsv"), text("commands.txt"));
    let files = job_files(&corpus.join("jobfiles"));
    let (included, jobs): (Vec<_>, Vec<_>) = files.iter().partition(|path| stem(path).starts_with("global"));
    let jobs = jobs.into_iter().map(|path| job_file(path, &included, &table));
    let commands = commands.lines().filter(|line| !line.is_empty()).enumerate().map(|(index, line)| {
        let mut case = case(format!("corpus/line-{}", index + 1), "--parse-only");
        case.args.extend(shell_words(line).into_iter().skip(1));
        case.check(verdict).or_not_built()
    });
    jobs.chain(commands).collect()
}

fn job_files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten();
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "fio"));
    paths.sort();
    paths
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

fn job_file(path: &Path, included: &[&PathBuf], table: &str) -> Case {
    let name = stem(path);
    let mut case = case(format!("corpus/{name}"), "--parse-only job.fio").text("job.fio", lossy(path));
    for other in included {
        case = case.text(&format!("{}.fio", stem(other)), lossy(other));
    }
    let row = table.lines().find(|line| line.split('\t').next() == Some(&name));
    for setting in row.and_then(|line| line.split('\t').nth(3)).unwrap_or_default().split_whitespace() {
        if let Some((variable, value)) = setting.split_once('=') {
            case = case.env(variable, value);
        }
    }
    case.check(verdict).or_not_built()
}

fn lossy(path: &Path) -> String {
    fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}

/// Splits into words like a shell, with its quotes.
fn shell_words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for char in line.chars() {
        match (char, quote) {
            (_, Some(open)) if char == open => quote = None,
            ('\'' | '"', None) => {
                quote = Some(char);
                word.get_or_insert_default();
            }
            (' ' | '\t', None) => words.extend(word.take()),
            _ => word.get_or_insert_default().push(char),
        }
    }
    words.extend(word);
    words
}
