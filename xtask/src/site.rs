//! `cargo x site`: the documents as a site with search, by MkDocs, which refuses a broken link or anchor.
//!
//! The pages are the documents as they are, in their directories. A link to a directory leads to a page that lists its files.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use fiord_sys::errno::error_text;

use crate::repo;
use crate::stage::{self, StageResult};
use crate::tidy::paths;

/// The virtual environment with MkDocs, below the target directory.
pub const ENVIRONMENT: &str = "mkdocs";

/// The order of the pages, and what is refused.
const SETTINGS: &str = "packaging/mkdocs.yml";

/// `cargo x site`
pub fn run() -> Result<(), String> {
    build(&needed()?)?;
    println!("{}/index.html", place().join("out").display());
    Ok(())
}

/// The stage of CI.
pub fn stage() -> StageResult {
    match needed() {
        Err(why) => StageResult::Skipped(why),
        Ok(mkdocs) => StageResult::of(build(&mkdocs)),
    }
}

/// MkDocs; the error says what is missing.
fn needed() -> Result<PathBuf, String> {
    let mkdocs = repo::target_dir().join(ENVIRONMENT).join("bin/mkdocs");
    match mkdocs.exists() {
        true => Ok(mkdocs),
        false => Err(format!("{} is not installed: cargo x ci --install site", mkdocs.display())),
    }
}

fn place() -> PathBuf {
    repo::target_dir().join("site")
}

fn build(mkdocs: &Path) -> Result<(), String> {
    let place = place();
    let failed = |error| format!("{}: {}", place.display(), error_text(&error));
    if place.exists() {
        fs::remove_dir_all(&place).map_err(failed)?;
    }
    let files = repo::files()?;
    let mut listed = BTreeSet::new();
    // What is hidden is for the place where the repository lies.
    for file in files.iter().filter(|file| file.ends_with(".md") && !file.starts_with('.')) {
        let text = repo::read(file).ok_or_else(|| format!("{file} is not text"))?;
        copy(&place, file, &with_pages_of_directories(file, &text, &mut listed)).map_err(failed)?;
        for target in text.lines().flat_map(paths::links).map(|target| paths::resolved(file, target)) {
            if !target.ends_with(".md") && repo::root().join(&target).is_file() {
                copy_as_it_is(&place, &target).map_err(failed)?;
            }
        }
    }
    for directory in &listed {
        list(&place, directory, &files).map_err(failed)?;
    }
    let settings = repo::read(SETTINGS).ok_or_else(|| format!("{SETTINGS} is missing"))?;
    fs::write(place.join("mkdocs.yml"), settings).map_err(failed)?;
    let mut command = Command::new(mkdocs);
    command.args(["build", "--strict", "--quiet"]).current_dir(&place);
    stage::command(command)
}

/// The document with links to the pages of directories; these are added to `listed`.
fn with_pages_of_directories(file: &str, text: &str, listed: &mut BTreeSet<String>) -> String {
    let mut changed = text.to_string();
    for target in text.lines().flat_map(paths::links) {
        let directory = paths::resolved(file, target);
        if repo::root().join(&directory).is_dir() {
            changed = changed.replace(&format!("]({target})"), &format!("]({target}/index.md)"));
            listed.insert(directory);
        }
    }
    changed
}

/// A page that lists the files of a directory.
fn list(place: &Path, directory: &str, files: &[String]) -> std::io::Result<()> {
    let mut page = format!("# {directory}\n\n");
    let below = format!("{directory}/");
    for name in files.iter().filter_map(|file| file.strip_prefix(&below)) {
        copy_as_it_is(place, &format!("{below}{name}"))?;
        page += &format!("- [{name}]({name})\n");
    }
    copy(place, &format!("{below}index.md"), &page)
}

fn copy_as_it_is(place: &Path, file: &str) -> std::io::Result<()> {
    let from = repo::root().join(file);
    let to = made(place, file)?;
    fs::copy(from, to).map(drop)
}

fn copy(place: &Path, file: &str, text: &str) -> std::io::Result<()> {
    fs::write(made(place, file)?, text)
}

/// Where a file of the repository is among the pages; its directory exists.
fn made(place: &Path, file: &str) -> std::io::Result<PathBuf> {
    let path = place.join("pages").join(file);
    fs::create_dir_all(path.parent().unwrap_or(place))?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_to_a_directory_leads_to_the_page_that_lists_it() {
        let mut listed = BTreeSet::new();
        let text = "[keys](json.md), [schemas](schema), [editors](../editors)\n";
        let changed = with_pages_of_directories("docs/page.md", text, &mut listed);
        assert_eq!(changed, "[keys](json.md), [schemas](schema/index.md), [editors](../editors/index.md)\n");
        assert_eq!(listed, BTreeSet::from(["docs/schema", "editors"].map(String::from)));
    }
}
