//! The paths that documents and comments name exist, so that whoever follows them arrives.
//!
//! Invariant: a path may be shortened on the left (`run/drive.rs` for `crates/session/src/run/drive.rs`), never on the
//! right; a path with a placeholder (`DATE-HOST.json`, `*.rs`) is not checked.

use std::collections::BTreeSet;

/// The files of the repository and their directories.
pub struct Tree {
    paths: BTreeSet<String>,
}

impl Tree {
    /// Of these files, whose paths are relative to the root.
    pub fn new(files: &[String]) -> Tree {
        let directories = |file: &String| {
            let ends: Vec<usize> = file.match_indices('/').map(|(at, _)| at + 1).collect();
            ends.into_iter().map(|end| file[..end].to_string()).collect::<Vec<String>>()
        };
        Tree { paths: files.iter().flat_map(directories).chain(files.iter().cloned()).collect() }
    }

    /// Whether there is such a file or, if it ends in `/`, such a directory, at the root or further down.
    fn has(&self, path: &str) -> bool {
        let directory = format!("{path}/");
        self.paths.contains(path)
            || self.paths.contains(&directory)
            || self
                .paths
                .iter()
                .any(|known| known.strip_suffix(path).is_some_and(|above| above.ends_with('/')))
    }
}

/// One line per path that is named in this file and does not exist.
pub fn check(file: &str, text: &str, tree: &Tree) -> Vec<String> {
    let is_document = file.ends_with(".md");
    if !is_document && !file.ends_with(".rs") {
        return Vec::new();
    }
    let mut missing = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let named = match is_document {
            true => in_document(line),
            false => line.trim_start().strip_prefix("//").map(in_comment).unwrap_or_default(),
        };
        let absent = named.into_iter().filter(|path| !tree.has(path));
        missing.extend(absent.map(|path| format!("{file}:{}: {path} does not exist", index + 1)));
        if is_document {
            let broken = links(line).filter(|target| !tree.has(&resolved(file, target)));
            missing
                .extend(broken.map(|target| format!("{file}:{}: the link to {target} is broken", index + 1)));
        }
    }
    missing
}

/// Source files anywhere in the line, and directories of the repository in code spans.
fn in_document(line: &str) -> Vec<&str> {
    let sources = words(line).filter(|word| is_source(word));
    let directories = spans(line).filter(|span| {
        span.ends_with('/') && span.len() > 1 && !span.starts_with('/') && span.chars().all(is_of_path)
    });
    sources.chain(directories).collect()
}

/// Source files that are named with a directory; names of single files may be examples.
fn in_comment(line: &str) -> Vec<&str> {
    words(line).filter(|word| is_source(word) && word.contains('/')).collect()
}

/// Whether the word is the path of a source file or of a document.
fn is_source(word: &str) -> bool {
    let is_known = word.ends_with(".rs") || (word.ends_with(".md") && word.contains('/'));
    is_known && !word.starts_with(['/', '.']) && word.len() > ".rs".len()
}

/// Targets of links to files of the repository, without their anchors.
pub fn links(line: &str) -> impl Iterator<Item = &str> {
    let targets = line.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    let files = targets.filter_map(|(target, _)| target.split('#').next());
    files.filter(|target| !target.is_empty() && !target.contains(':'))
}

/// The path of a link's target from the root; `file` is the document it is in.
pub fn resolved(file: &str, target: &str) -> String {
    let mut parts: Vec<&str> = file.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// The runs of characters that paths are made of, without a full stop at their end.
fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|letter| !is_of_path(letter) && letter != '*')
        .map(|word| word.trim_end_matches('.'))
        .filter(|word| !word.contains('*'))
}

/// The texts between backticks.
fn spans(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

fn is_of_path(letter: char) -> bool {
    letter.is_ascii_lowercase() || letter.is_ascii_digit() || "_-./".contains(letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_text(file: &str, text: &str) -> Vec<String> {
        let files = ["crates/a/src/run/drive.rs", "docs/page.md", "README.md"].map(str::to_string);
        check(file, text, &Tree::new(&files))
    }

    #[test]
    fn a_path_of_a_document_must_exist_but_may_be_shortened_on_the_left() {
        let good = "`crates/a/src/run/drive.rs`, `run/drive.rs`, drive.rs; `src/run/`, `/tmp/x/`, `*.rs`, `DATE.rs`.\n";
        assert_eq!(check_text("docs/page.md", good), [""; 0]);
        let bad = "first\n`run/drives.rs`, `a/run/drive.rs`, rive.rs. See `src/runs/`\n";
        let found = check_text("docs/page.md", bad);
        let missing = ["run/drives.rs", "a/run/drive.rs", "rive.rs", "src/runs/"];
        assert_eq!(found, missing.map(|path| format!("docs/page.md:2: {path} does not exist")));
    }

    #[test]
    fn a_link_of_a_document_must_lead_somewhere() {
        let good = "[a](page.md), [b](../README.md#top), [c](#here), [d](https://example.org/x)\n";
        assert_eq!(check_text("docs/page.md", good), [""; 0]);
        let found = check_text("docs/page.md", "[a](gone.md)\n");
        assert_eq!(found, ["docs/page.md:1: the link to gone.md is broken"]);
    }

    #[test]
    fn comments_name_files_that_exist_and_code_is_not_looked_at() {
        let good = "// As in `run/drive.rs`; foo.rs is an example.\nlet path = \"x/y.rs\";\n";
        assert_eq!(check_text("a.rs", good), [""; 0]);
        assert_eq!(check_text("a.rs", "    /// In run/gone.rs.\n").len(), 1);
        assert_eq!(check_text("a.txt", "run/gone.rs"), [""; 0]);
    }
}
