//! Wrong job files and the messages they get, kept in `docs/errors` and shown on the page `docs/errors.md`.
//!
//! Invariant: what the page shows is what fiord says. `FIORD_BLESS=1` writes the messages and the page anew.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use fiord_engine::registry::NAMES;
use fiord_options::Problem;
use fiord_options::cli;
use fiord_options::environment::{Environment, KeywordValues};

const HEADING: &str = "\
# Wrong job files, and what fiord says

Every message names the file, line and column, the option where there is one, what is wrong, and what to do about it.
All of them come at once, before any file is touched. fiord then exits with status 1, unless there are only warnings.

This page is written by a test (`FIORD_BLESS=1 cargo test -p fiord-options --test wrong_jobfiles`) from the files in
[`errors/`](errors).
";

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

/// The wrong job files, in order of their numbers.
fn wrong_job_files() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(docs().join("errors")).expect("docs/errors can be listed");
    let paths = entries.map(|entry| entry.expect("docs/errors can be listed").path());
    let mut files: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|end| end == "fio")).collect();
    files.sort();
    files
}

/// Everything fiord says of a job file.
fn messages(path: &Path) -> String {
    let name = path.file_name().and_then(|name| name.to_str()).expect("the names are text").to_string();
    let read = |file: &OsStr| std::fs::read(docs().join("errors").join(file));
    let keywords = KeywordValues { cpus: 4, memory_mib: 16384, page_bytes: 4096 };
    let environment = Environment { files: &read, variables: &|_| None, keywords, engines: NAMES };
    let problems = match cli::read(&[name], &environment) {
        Ok(parsed) => {
            let mut problems = parsed.warnings.clone();
            problems.extend(cli::check(&parsed, NAMES));
            cli::sort_by_place(&mut problems);
            problems
        }
        Err(problems) => problems,
    };
    problems.iter().map(|problem: &Problem| format!("{problem}\n")).collect()
}

fn page() -> String {
    let mut page = HEADING.to_string();
    for path in wrong_job_files() {
        let text = std::fs::read_to_string(&path).expect("a job file can be read");
        let title =
            path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default()[3..].replace('-', " ");
        let (first, rest) = title.split_at(1);
        page.push_str(&format!("\n## {}{rest}\n", first.to_uppercase()));
        page.push_str(&format!("\n```ini\n{text}```\n\n```text\n{}```\n", messages(&path)));
    }
    page
}

/// Compares a text with the file that keeps it, or writes the file when blessed.
fn compare(path: &Path, text: &str) {
    if std::env::var_os("FIORD_BLESS").is_some() {
        std::fs::write(path, text).expect("docs can be written");
    }
    let kept = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        kept == text,
        "{} is not what fiord says now:\n{text}\nIf that is intended: \
         FIORD_BLESS=1 cargo test -p fiord-options --test wrong_jobfiles",
        path.display()
    );
}

#[test]
fn every_wrong_job_file_gets_its_messages() {
    let files = wrong_job_files();
    assert!(files.len() >= 10, "{} wrong job files", files.len());
    for path in files {
        compare(&path.with_extension("txt"), &messages(&path));
    }
}

#[test]
fn the_page_shows_them() {
    compare(&docs().join("errors.md"), &page());
}
