//! No code is written twice: six lines of one place outside tests never stand again in another.
//!
//! Invariant: only lines that say something count (no comment, import, lone bracket or blank line), and a signature that
//! a trait prescribes is not a copy.

use std::collections::BTreeMap;

use syn::visit::{self, Visit};
use syn::{Attribute, ImplItem, ImplItemFn, Item, ItemImpl, ItemMod, Meta, TraitItemFn};

/// This many equal lines are a copy.
const LINES_MIN: usize = 6;

/// Copies that are better than what would replace them: two files (or one twice), and why.
const ALLOWED: &[(&str, &str, &str)] = &[];

/// Directories and files that only tests and chores of tests use.
const TEST_PLACES: &[&str] = &[
    "/tests/",
    "/source_tests/",
    "/cases/",
    "tests/compat/",
    "tests/guest/",
    "tests/programs/",
    "tests/servers/",
    "fuzz/",
];
const TEST_FILES: &[&str] = &["tests.rs", "testing.rs"];

/// A line that counts: its number and its words.
type Line = (usize, String);

/// A run of lines that stands in two places: where each begins, and how long it is.
type Copy<'a> = ((&'a str, usize), (&'a str, usize), usize);

/// One line per copy in these files, which are given as path and text, and per entry of `ALLOWED` that has none.
///
/// # Errors
/// If a file is not Rust.
pub fn check(files: &[(String, String)]) -> Result<Vec<String>, String> {
    check_except(files, ALLOWED)
}

fn check_except(files: &[(String, String)], allowed: &[(&str, &str, &str)]) -> Result<Vec<String>, String> {
    let mut sources: Vec<(&str, Vec<Line>)> = Vec::new();
    for (path, text) in files.iter().filter(|(path, _)| !is_of_tests(path)) {
        sources.push((path.as_str(), lines(path, text)?));
    }
    let is_same = |of: &Copy<'_>, entry: &(&str, &str, &str)| {
        (of.0.0, of.1.0) == (entry.0, entry.1) || (of.0.0, of.1.0) == (entry.1, entry.0)
    };
    let (exempt, wrong): (Vec<Copy<'_>>, Vec<Copy<'_>>) =
        copies(&sources).into_iter().partition(|copy| allowed.iter().any(|entry| is_same(copy, entry)));
    let mut findings: Vec<String> = wrong
        .iter()
        .map(|((path, line), (other, other_line), count)| {
            format!("{path}:{line}: {count} lines that stand in {other}:{other_line} as well; share them")
        })
        .collect();
    let stale = allowed.iter().filter(|entry| !exempt.iter().any(|copy| is_same(copy, entry)));
    findings.extend(stale.map(|(one, other, _)| {
        format!("{}: {one} and {other} share no lines any more; remove the entry", file!())
    }));
    Ok(findings)
}

fn is_of_tests(path: &str) -> bool {
    TEST_PLACES.iter().any(|place| path.contains(place)) || TEST_FILES.iter().any(|end| path.ends_with(end))
}

/// The lines of a file that count.
fn lines(path: &str, text: &str) -> Result<Vec<Line>, String> {
    let code =
        syn::parse_file(text).map_err(|error| format!("{path}:{}: {error}", error.span().start().line))?;
    let mut passed_over = PassedOver::default();
    passed_over.visit_file(&code);
    let says_something = |line: &str| {
        !line.starts_with("//") && line.chars().any(|letter| letter.is_alphanumeric() || letter == '_')
    };
    let counted = text.lines().enumerate().map(|(index, line)| (index + 1, line)).filter(|(number, line)| {
        says_something(line.trim_start())
            && !passed_over.0.iter().any(|(first, last)| (first..=last).contains(&number))
    });
    Ok(counted
        .map(|(number, line)| (number, line.split_whitespace().collect::<Vec<_>>().join(" ")))
        .collect())
}

/// First and last lines of imports, of code for tests, and of signatures that a trait prescribes.
#[derive(Default)]
struct PassedOver(Vec<(usize, usize)>);

impl Visit<'_> for PassedOver {
    fn visit_item(&mut self, item: &Item) {
        match item {
            Item::Use(import) => {
                self.0.push((import.use_token.span.start().line, import.semi_token.span.end().line));
            }
            Item::Mod(ItemMod { attrs, mod_token, content: Some((braces, _)), .. })
                if is_for_tests(attrs) =>
            {
                self.0.push((mod_token.span.start().line, braces.span.close().end().line));
            }
            _ => visit::visit_item(self, item),
        }
    }

    fn visit_item_impl(&mut self, block: &ItemImpl) {
        if block.trait_.is_some() {
            for item in &block.items {
                if let ImplItem::Fn(ImplItemFn { sig, block, .. }) = item {
                    let body = block.brace_token.span.open().start().line;
                    self.0.push((sig.fn_token.span.start().line, body));
                }
            }
        }
        visit::visit_item_impl(self, block);
    }

    fn visit_trait_item_fn(&mut self, function: &TraitItemFn) {
        let end = match (&function.default, &function.semi_token) {
            (Some(block), _) => block.brace_token.span.open().start().line,
            (None, Some(semicolon)) => semicolon.span.end().line,
            (None, None) => return,
        };
        self.0.push((function.sig.fn_token.span.start().line, end));
        visit::visit_trait_item_fn(self, function);
    }
}

fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) => list.path.is_ident("cfg") && list.tokens.to_string() == "test",
        Meta::Path(_) | Meta::NameValue(_) => false,
    })
}

/// The longest runs of equal lines.
fn copies<'a>(sources: &[(&'a str, Vec<Line>)]) -> Vec<Copy<'a>> {
    let mut places: BTreeMap<Vec<&str>, Vec<(usize, usize)>> = BTreeMap::new();
    for (source, (_, lines)) in sources.iter().enumerate() {
        for (start, window) in lines.windows(LINES_MIN).enumerate() {
            let words = window.iter().map(|(_, words)| words.as_str()).collect();
            places.entry(words).or_default().push((source, start));
        }
    }
    let word = |source: usize, index: usize| Some(&sources[source].1.get(index)?.1);
    let mut found = Vec::new();
    for places in places.values() {
        for (index, one) in places.iter().enumerate() {
            for other in &places[index + 1..] {
                let is_continued =
                    one.1 > 0 && other.1 > 0 && word(one.0, one.1 - 1) == word(other.0, other.1 - 1);
                if is_continued || (one.0 == other.0 && other.1 - one.1 < LINES_MIN) {
                    continue;
                }
                let count = (0..).take_while(|at| {
                    let line = word(one.0, one.1 + at);
                    line.is_some() && line == word(other.0, other.1 + at)
                });
                let place = |(source, start): (usize, usize)| (sources[source].0, sources[source].1[start].0);
                found.push((place(*one), place(*other), count.count()));
            }
        }
    }
    found.sort_unstable();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &str = "let a = 1;\n// why\nlet b = 2;\n\nlet c = 3;\nlet d = 4;\nlet e = 5;\n";

    fn findings(one: &str, other: &str) -> Vec<String> {
        let files = [("crates/a/src/a.rs", one), ("crates/b/src/b.rs", other)];
        let files = files.map(|(path, text)| (path.to_string(), text.to_string()));
        check_except(&files, &[]).unwrap()
    }

    #[test]
    fn six_lines_that_say_something_are_a_copy() {
        let one = format!("use x::y;\nfn one() {{\n{BODY}    let f = 6;\n}}\n");
        let other = format!("fn other() {{\n{BODY}let f = 6;\n}}\n");
        assert_eq!(
            findings(&one, &other),
            ["crates/a/src/a.rs:3: 6 lines that stand in crates/b/src/b.rs:2 as well; share them"]
        );
        assert_eq!(findings(&one, &format!("fn other() {{\n{BODY}let g = 6;\n}}\n")), [""; 0]);
        let test = format!("#[cfg(test)]\nmod tests {{\n{other}}}\n");
        assert_eq!(findings(&one, &test), [""; 0], "code of tests");
    }

    #[test]
    fn a_signature_that_a_trait_prescribes_is_no_copy() {
        let parameters = "(\n&self,\na: u8,\nb: u8,\nc: u8,\nd: u8,\n) -> u8 {";
        let of = |head: &str, value: u8| format!("{head} {{\nfn f{parameters}\n{value}\n}}\n}}\n");
        assert_eq!(findings(&of("impl T for A", 1), &of("impl T for B", 2)), [""; 0]);
        assert_eq!(findings(&of("impl A", 1), &of("impl B", 2)).len(), 1);
    }

    #[test]
    fn an_allowed_copy_that_is_gone_is_reported() {
        let twice = format!("fn one() {{\n{BODY}let f = 6;\n}}\nfn two() {{\n{BODY}let f = 6;\n}}\n");
        let allowed = &[("crates/a/src/a.rs", "crates/a/src/a.rs", "it is a test")];
        let findings = |text: &str| {
            check_except(&[("crates/a/src/a.rs".to_string(), text.to_string())], allowed).unwrap()
        };
        assert_eq!(findings(&twice), [""; 0]);
        assert_eq!(findings("fn one() {}").len(), 1);
    }
}
