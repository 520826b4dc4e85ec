//! Pages that are written from tables, and the test that they are up to date.
//!
//! Invariant: a generated page is never edited by hand; `cargo x gen` gives the same bytes for the same table.

use fiord_options::reference;

use crate::bench::page as performance;
use crate::repo;
use crate::tidy::doors;

/// Every generated page: path and text.
fn pages() -> Result<Vec<(&'static str, String)>, String> {
    let mut pages = vec![
        ("docs/options.md", reference::options_markdown()),
        ("docs/engines.md", reference::engines_markdown()),
        ("docs/fiord.1", reference::man_page()),
    ];
    pages.extend(performance::pages()?);
    Ok(pages)
}

/// Writes every page whose text differs.
pub fn run() -> Result<(), String> {
    for (path, text) in pages()? {
        put(path, &text)?;
    }
    let page = repo::read("ARCHITECTURE.md").ok_or("ARCHITECTURE.md: not there")?;
    put("ARCHITECTURE.md", &doors::with_table(&page)?)
}

fn put(path: &str, text: &str) -> Result<(), String> {
    if repo::read(path).as_deref() != Some(text) {
        println!("gen: {path}");
        repo::write(path, text)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn committed_pages_are_what_the_tables_say() {
        let stale: Vec<&str> = pages()
            .unwrap()
            .into_iter()
            .filter(|(path, text)| repo::read(path).as_deref() != Some(text.as_str()))
            .map(|(path, _)| path)
            .collect();
        assert!(
            stale.is_empty(),
            "{} differ from their tables; mend them with: cargo x gen",
            stale.join(", ")
        );
    }
}
