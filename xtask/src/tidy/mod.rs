//! House rules that neither rustc nor clippy checks.
//!
//! Invariant: a rule reads the repository and says file and line; it changes nothing.

mod dependencies;
pub mod doors;
mod exceptions;
mod readers;
mod rules;
mod source;

use crate::repo;

/// Runs every rule; the error lists everything that is out of order.
pub fn run() -> Result<(), String> {
    let findings = check()?;
    if findings.is_empty() {
        println!("tidy: in order");
        return Ok(());
    }
    Err(format!("{}\ntidy: {} to mend", findings.join("\n"), findings.len()))
}

/// One line per thing that is out of order.
pub fn check() -> Result<Vec<String>, String> {
    let mut findings = Vec::new();
    let mut lengths = rules::Lengths::default();
    for path in repo::files()? {
        let Some(text) = repo::read(&path) else { continue };
        findings.extend(rules::machine_paths(&path, &text));
        if path.ends_with(".rs") {
            findings.extend(rules::rust_file(&path, &text, &mut lengths));
        }
    }
    findings.extend(lengths.unused_exceptions());
    findings.extend(readers::check()?);
    let metadata = dependencies::metadata()?;
    findings.extend(doors::check(&metadata)?);
    findings.extend(doors::check_page(repo::read("ARCHITECTURE.md").as_deref()));
    findings.extend(dependencies::check_reasons(&metadata, repo::read("CONTRIBUTING.md").as_deref())?);
    Ok(findings)
}
