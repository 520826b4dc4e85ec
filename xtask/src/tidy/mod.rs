//! House rules that neither rustc nor clippy checks.
//!
//! Invariant: a rule only reads the repository; findings name file and line.

mod circles;
mod copies;
pub mod dependencies;
mod divergences;
pub mod doors;
mod engines;
mod names;
pub mod paths;
mod publishing;
mod readers;
mod rules;
mod tables;
mod tree;
mod uses;

use self::tree::Tree;
use crate::repo;

/// Runs every rule; the error lists everything that is out of order.
pub fn run() -> Result<(), String> {
    let findings = check()?;
    if findings.is_empty() {
        println!("tidy: in order");
        return Ok(());
    }
    Err(format!("{}\ntidy: {} to fix", findings.join("\n"), findings.len()))
}

/// One line per thing that is out of order.
pub fn check() -> Result<Vec<String>, String> {
    let mut findings = Vec::new();
    let files = repo::files()?;
    let tree = paths::Tree::new(&files);
    let mut sources = Vec::new();
    for path in files {
        let Some(text) = repo::read(&path) else { continue };
        findings.extend(rules::machine_paths(&path, &text));
        findings.extend(paths::check(&path, &text, &tree));
        findings.extend(tables::check(&path, &text));
        if path.ends_with(".rs") {
            findings.extend(rules::rust_file(&path, &text)?);
            findings.extend(rules::error_texts(&path, &text));
            sources.push((path, text));
        }
    }
    findings.extend(copies::check(&sources)?);
    findings.extend(divergences::check(&repo::read(divergences::PAGE).unwrap_or_default(), &sources));
    findings.extend(readers::check()?);
    let metadata = dependencies::metadata()?;
    findings.extend(circles::check(&metadata)?);
    findings.extend(engines::check(&metadata)?);
    findings.extend(dependencies::check_lints(&metadata, repo::read)?);
    findings.extend(publishing::check(&metadata)?);
    findings.extend(doors::check(&metadata)?);
    findings.extend(doors::check_page(repo::read("ARCHITECTURE.md").as_deref()));
    findings.extend(dependencies::check_reasons(&metadata, repo::read("CONTRIBUTING.md").as_deref())?);
    Ok(findings)
}

/// The files that are modules only because of a macro, which rustfmt does not find.
///
/// # Errors
/// If cargo's metadata or a file cannot be read.
pub fn files_found_by_macros() -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    for root in dependencies::targets(&dependencies::metadata()?)?.into_iter().flatten() {
        let tree = Tree::read(&root, &repo::read)?;
        found.extend(tree.found_by_macros.iter().map(|file| tree.files[*file].clone()));
    }
    Ok(found)
}
