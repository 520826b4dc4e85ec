//! Rules about single files that no lint checks: length, header, paths of one machine, and attributes that would switch
//! off other rules.
//!
//! Invariant: a finding reads `path:line: what is wrong`, so that an editor can jump to it.

use syn::Attribute;
use syn::visit::{self, Visit};

const FILE_LINES_MAX: usize = 800;

/// Where `unsafe` may be allowed.
const UNSAFE_ROOMS: &[&str] = &["crates/sys/", "crates/engine/"];

/// The lints of casts that the root of a crate warns of; tests cast as they like.
const CAST_LINTS: [&str; 3] =
    ["clippy::cast_possible_truncation", "clippy::cast_possible_wrap", "clippy::cast_sign_loss"];

/// Directories of one machine; split so that this file does not contain the text it searches for.
const MACHINE_PATHS: &[&str] = &[concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/tmp/bash", "_jobs")];

/// Every rule about one Rust file.
///
/// # Errors
/// If the file is not Rust.
pub fn rust_file(path: &str, text: &str) -> Result<Vec<String>, String> {
    let mut findings = Vec::new();
    if !text.starts_with("//!") {
        findings.push(format!("{path}:1: a file starts with `//!`: its purpose and its one invariant"));
    }
    let lines = text.lines().count();
    if lines > FILE_LINES_MAX {
        findings.push(format!("{path}:1: {lines} lines, {FILE_LINES_MAX} are allowed"));
    }
    findings.extend(casts(path, text));
    let code =
        syn::parse_file(text).map_err(|error| format!("{path}:{}: {error}", error.span().start().line))?;
    let mut attributes = Attributes::default();
    attributes.visit_file(&code);
    let lifted = attributes.unsafe_allowed.into_iter().filter(|_| !starts_with_any(path, UNSAFE_ROOMS));
    findings.extend(
        lifted.map(|line| {
            format!("{path}:{line}: unsafe code is allowed only in crates/sys and crates/engine")
        }),
    );
    findings.extend(attributes.ignored.into_iter().map(|line| {
        format!("{path}:{line}: tests are not ignored; one that cannot run here calls skip!(\"why\")")
    }));
    Ok(findings)
}

/// The root of a crate warns of casts that truncate, wrap around or lose a sign.
fn casts(path: &str, text: &str) -> Option<String> {
    let (_, file) = path.strip_prefix("crates/")?.split_once("/src/")?;
    let attributes = text.split("\nmod ").next().unwrap_or_default();
    let warns = CAST_LINTS.iter().all(|lint| attributes.contains(lint));
    let is_root = ["lib.rs", "main.rs"].contains(&file);
    (is_root && !warns).then(|| format!("{path}:1: does not warn of {}", CAST_LINTS.join(", ")))
}

/// Lines of attributes that a rule concerns.
#[derive(Default)]
struct Attributes {
    unsafe_allowed: Vec<usize>,
    ignored: Vec<usize>,
}

impl Visit<'_> for Attributes {
    fn visit_attribute(&mut self, attribute: &Attribute) {
        let line = attribute.pound_token.span.start().line;
        let path = attribute.path();
        if path.is_ident("ignore") {
            self.ignored.push(line);
        }
        let lifts = ["allow", "expect", "warn", "cfg_attr"].iter().any(|name| path.is_ident(name));
        let names = |list: &syn::MetaList| list.tokens.to_string().contains("unsafe_code");
        if lifts && attribute.meta.require_list().is_ok_and(names) {
            self.unsafe_allowed.push(line);
        }
        visit::visit_attribute(self, attribute);
    }
}

fn starts_with_any(path: &str, prefixes: &[&str]) -> bool {
    prefixes.iter().any(|prefix| path.starts_with(prefix))
}

/// Paths that exist on one machine only.
pub fn machine_paths(path: &str, text: &str) -> Vec<String> {
    let mut findings = Vec::new();
    for (index, line) in text.lines().enumerate() {
        for what in MACHINE_PATHS {
            let found = line.match_indices(what).any(|(at, _)| {
                // `network/…` is not a path: a word must not precede the first slash.
                !line[..at].ends_with(|before: char| before.is_alphanumeric() || "._-*".contains(before))
            });
            if found {
                findings.push(format!("{path}:{}: {what} is a path of one machine", index + 1));
            }
        }
    }
    findings
}

/// How Rust prints an `io::Error` that is bound to the usual name; split so that this file does not contain it.
const RUSTS_ERROR_TEXTS: &[&str] = &[concat!("{err", "or}"), concat!("error.to_", "string()")];

/// Places where an error may be printed as Rust does, `No such file or directory (os error 2)`. An error of the system
/// is bound to `error` and printed by `error_text`; an error that has its own text is bound to another name.
pub fn error_texts(path: &str, text: &str) -> Vec<String> {
    let is_product =
        path.starts_with("crates/") && path.contains("/src/") && !path.starts_with("crates/errno/");
    if !is_product || path.contains("/tests/") || path.ends_with("tests.rs") || path.ends_with("testing.rs") {
        return Vec::new();
    }
    let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let lines = code.lines().enumerate().filter(|(_, line)| {
        !line.trim_start().starts_with("//") && RUSTS_ERROR_TEXTS.iter().any(|printed| line.contains(printed))
    });
    lines
        .map(|(index, _)| {
            let line = index + 1;
            format!("{path}:{line}: an error of the system is printed by error_text; name one of our own otherwise")
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, text: &str) -> Vec<String> {
        rust_file(path, text).unwrap()
    }

    #[test]
    fn length_and_header_are_measured() {
        assert_eq!(findings("crates/a/src/b.rs", "//! Purpose.\nfn a() {}\n"), [""; 0]);
        assert_eq!(findings("crates/a/src/b.rs", "fn a() {}\n").len(), 1);
        let many = format!("//! .\n{}", "// x\n".repeat(FILE_LINES_MAX));
        assert_eq!(findings("crates/a/src/b.rs", &many).len(), 1);
    }

    #[test]
    fn a_root_warns_of_casts() {
        let warns = format!("//! .\n#![warn({})]\nmod a;\n", CAST_LINTS.join(", "));
        let [all, two] = [warns.clone(), warns.replace(CAST_LINTS[1], "clippy::todo")];
        assert_eq!([&all, &two].map(|text| findings("crates/a/src/lib.rs", text).len()), [0, 1]);
        assert_eq!(findings("crates/a/src/b.rs", "//! .\nmod c;\n"), [""; 0]);
    }

    #[test]
    fn unsafe_is_allowed_only_in_its_crates() {
        let text = "//! .\n#![allow(unsafe_code, reason = \"calls\")]\n";
        assert_eq!(
            findings("crates/plan/src/a.rs", text),
            ["crates/plan/src/a.rs:2: unsafe code is allowed only in crates/sys and crates/engine"]
        );
        assert_eq!(findings("crates/sys/src/a.rs", text), [""; 0]);
        assert_eq!(findings("crates/plan/src/a.rs", "//! .\n#![forbid(unsafe_code)]\n"), [""; 0]);
    }

    #[test]
    fn no_test_is_ignored() {
        let text = "//! .\nmod tests {\n#[test]\n#[ignore = \"slow\"]\nfn a() {}\n}\n";
        assert_eq!(findings("crates/a/src/b.rs", text).len(), 1);
    }

    #[test]
    fn errors_are_printed_in_one_style() {
        for printed in RUSTS_ERROR_TEXTS {
            let text =
                format!("//! .\n// {printed}\nf(\"{printed}\")\n#[cfg(test)]\nmod tests {{ {printed} }}");
            let findings = error_texts("crates/fiord/src/a.rs", &text);
            assert!(
                findings.len() == 1 && findings[0].starts_with("crates/fiord/src/a.rs:3: "),
                "{findings:?}"
            );
            assert_eq!(error_texts("crates/fiord/tests/a.rs", &text), [""; 0]);
        }
        assert_eq!(error_texts("crates/fiord/src/a.rs", "f(error_text(&error), \"{why}\")"), [""; 0]);
    }

    #[test]
    fn a_machine_path_is_one_that_starts_there() {
        let path = MACHINE_PATHS[0];
        assert_eq!(machine_paths("a.md", &format!("see {path}main\nnet{path}x\n./..{path}y")).len(), 1);
    }
}
