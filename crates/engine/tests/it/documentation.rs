//! The page on adding an engine quotes the null engine as it is.
//!
//! Invariant: code between fences of `rust` is compared line by line with the source.

const PAGE: &str = include_str!("../../../../docs/adding-an-engine.md");
const SOURCE: &str = include_str!("../../src/engines/null.rs");

#[test]
fn quoted_code_is_that_of_the_null_engine() {
    let quotes: Vec<&str> = PAGE
        .split("```rust\n")
        .skip(1)
        .filter_map(|rest| rest.split_once("```").map(|(quote, _)| quote))
        .collect();
    assert!(quotes.len() >= 5, "the page quotes {} pieces of code", quotes.len());
    for quote in quotes {
        assert!(SOURCE.contains(quote), "not in null.rs:\n{quote}");
    }
}
