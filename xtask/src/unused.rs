//! Items that no program uses: rustc's lint `dead_code` over all crates at once.
//!
//! Invariant: a finding is rustc's. To rustc every `pub` item of a library is used, so that the libraries, fiord and the
//! chores are copied into one program, as modules, with the same lines; only paths that name a crate are changed. What
//! tests alone use is reported. Not seen: `tests/compat` and `tests/guest`, which use none of the crates, and fields that
//! are compared or printed as a whole.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use proc_macro2::{Spacing, TokenStream, TokenTree};
use serde_json::Value;

use crate::repo;
use crate::tidy::dependencies;

/// Where the crates are that exist for tests.
const FOR_TESTS: [&str; 2] = ["crates/testing/", "tests/"];

/// Those of them that chores use too: the benchmark starts the servers.
const USED_BY_CHORES: [&str; 2] = ["tests/programs/", "tests/servers/"];

/// `cargo x unused`
pub fn run() -> Result<(), String> {
    let findings = check()?;
    match findings.is_empty() {
        true => Ok(()),
        false => Err(format!("{}\nunused: {} to remove", findings.join("\n"), findings.len())),
    }
}

/// One line per item that no program uses.
fn check() -> Result<Vec<String>, String> {
    let directory = repo::target_dir().join("one-program");
    let crates = Crates::of(&dependencies::metadata()?)?;
    let files: Vec<String> =
        repo::files()?.into_iter().filter(|file| crates.module_of(file).is_some()).collect();
    let mut sources = BTreeMap::new();
    for file in files {
        let bytes = fs::read(repo::root().join(&file)).map_err(|error| format!("{file}: {error}"))?;
        sources.insert(file, bytes);
    }
    let texts = || sources.iter().filter(|(file, _)| file.ends_with(".rs"));
    let mut macros = BTreeSet::new();
    for (file, bytes) in texts() {
        exported_macros(tokens(file, bytes)?, &mut macros);
    }
    for (file, bytes) in &sources {
        let module = crates.module_of(file).unwrap_or_default();
        let copy = match file.ends_with(".rs") {
            true => crates.as_module(module, &macros, file, bytes)?.into_bytes(),
            false => bytes.clone(),
        };
        write_if_changed(&directory.join(file), &copy)?;
    }
    write_if_changed(&directory.join("main.rs"), crates.program().as_bytes())?;
    let workspace = repo::read("Cargo.toml").unwrap_or_default();
    write_if_changed(&directory.join("Cargo.toml"), manifest(&workspace).as_bytes())?;
    let lock = repo::read("Cargo.lock").ok_or("no Cargo.lock")?;
    write_if_changed(&directory.join("Cargo.lock"), lock.as_bytes())?;
    let own = ["main.rs", "Cargo.toml", "Cargo.lock"];
    let written = sources.keys().map(String::as_str).chain(own);
    remove_others(&directory, &written.map(|file| directory.join(file)).collect())?;
    let mut cargo = repo::cargo(&["check", "--message-format=json"]);
    let output = cargo.current_dir(&directory).env("CARGO_TARGET_DIR", repo::target_dir()).output();
    let output = output.map_err(|error| format!("cargo check: {error}"))?;
    let findings = reported(&String::from_utf8_lossy(&output.stdout))?;
    match output.status.success() {
        true => Ok(findings),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

/// rustc's findings in the output of cargo; an error of the program made of all crates is an error.
fn reported(output: &str) -> Result<Vec<String>, String> {
    let mut findings = BTreeSet::new();
    for line in output.lines() {
        let Ok(line) = serde_json::from_str::<Value>(line) else { continue };
        let message = &line["message"];
        if message["level"] == "error" {
            let text = message["rendered"].as_str().unwrap_or_default();
            return Err(format!("the crates cannot be compiled as one program:\n{text}"));
        }
        if message["code"]["code"] != "dead_code" {
            continue;
        }
        for span in
            message["spans"].as_array().into_iter().flatten().filter(|span| span["is_primary"] == true)
        {
            let file = span["file_name"].as_str().unwrap_or_default();
            let what = message["message"].as_str().unwrap_or_default();
            if !FOR_TESTS.iter().any(|place| file.starts_with(place)) {
                findings.insert((file.to_string(), span["line_start"].as_u64(), what.to_string()));
            }
        }
    }
    let shown = |(file, line, what): (String, Option<u64>, String)| {
        format!("{file}:{}: {what}, except by tests", line.unwrap_or(0))
    };
    Ok(findings.into_iter().map(shown).collect())
}

/// The libraries of the workspace and the programs that use them: the name of each as a module, and its root.
struct Crates {
    libraries: BTreeMap<String, String>,
    programs: BTreeMap<String, String>,
}

impl Crates {
    fn of(metadata: &Value) -> Result<Crates, String> {
        let packages = metadata["packages"].as_array().ok_or("cargo metadata: no packages")?;
        let mut crates = Crates { libraries: BTreeMap::new(), programs: BTreeMap::new() };
        for target in packages.iter().filter_map(|package| package["targets"].as_array()).flatten() {
            let name = target["name"].as_str().unwrap_or_default().replace('-', "_");
            let root = repo::relative(target["src_path"].as_str().unwrap_or_default());
            let is_for_tests = root.starts_with("tests/") || root.starts_with("fuzz/");
            match target["kind"][0].as_str() {
                _ if is_for_tests && !USED_BY_CHORES.iter().any(|place| root.starts_with(place)) => None,
                Some("lib") => crates.libraries.insert(name, root),
                Some("bin") => crates.programs.insert(name, root),
                _ => None,
            };
        }
        Ok(crates)
    }

    fn all(&self) -> impl Iterator<Item = (&String, &String)> {
        self.libraries.iter().chain(&self.programs)
    }

    /// The module of a file: that of the crate whose directory it is in, except its tests.
    fn module_of(&self, file: &str) -> Option<&str> {
        let directory = |root: &str| root.split_once("src/").map(|(directory, _)| directory.to_string());
        let of = |(_, root): &(&String, &String)| {
            directory(root).is_some_and(|directory| {
                file.strip_prefix(&directory).is_some_and(|rest| !rest.starts_with("tests/"))
            })
        };
        self.all().find(of).map(|(name, _)| name.as_str())
    }

    /// The program: every crate as a module, and a main function that calls those of all programs.
    fn program(&self) -> String {
        let modules: String =
            self.all().map(|(name, root)| format!("#[path = {root:?}]\nmod {name};\n")).collect();
        let calls: String = self.programs.keys().map(|name| format!("let _ = {name}::main();\n")).collect();
        format!(
            "#![allow(unused, unexpected_cfgs, macro_expanded_macro_exports_accessed_by_absolute_paths)]\n\
             #![warn(dead_code)]\n{modules}fn main() {{\n{calls}}}\n"
        )
    }

    /// A file of a crate as it reads in its module.
    fn as_module(
        &self,
        module: &str,
        macros: &BTreeSet<String>,
        file: &str,
        bytes: &[u8],
    ) -> Result<String, String> {
        let mut text = String::from_utf8_lossy(bytes).into_owned();
        let mut edits = Vec::new();
        self.edit(tokens(file, bytes)?, module, macros, &mut edits);
        edits.sort();
        for Edit { at, replaced, by } in edits.into_iter().rev() {
            text.replace_range(at..at + replaced, &by);
        }
        Ok(text)
    }

    /// Adds what changes in these tokens: `crate::` is the module, another crate is a module beside it, and exported macros
    /// are those of the program.
    fn edit(&self, stream: TokenStream, module: &str, macros: &BTreeSet<String>, edits: &mut Vec<Edit>) {
        let tokens: Vec<TokenTree> = stream.into_iter().collect();
        for at in 0..tokens.len() {
            let ident = match &tokens[at] {
                TokenTree::Group(group) => {
                    self.edit(group.stream(), module, macros, edits);
                    continue;
                }
                TokenTree::Ident(ident) => ident,
                TokenTree::Punct(_) | TokenTree::Literal(_) => continue,
            };
            let (name, place) = (ident.to_string(), ident.span().byte_range());
            let calls_macro = |at: usize| {
                matches!(tokens.get(at), Some(TokenTree::Ident(name)) if macros.contains(&name.to_string()))
                    && is_punct(tokens.get(at + 1), '!')
            };
            let is_in_path = at >= 2 && is_path_separator(&tokens, at - 2);
            let leads_on = is_path_separator(&tokens, at + 1);
            let before = at.checked_sub(1).map(|before| tokens[before].to_string()).unwrap_or_default();
            if name == "crate" && leads_on && !calls_macro(at + 3) {
                edits.push(Edit { at: place.end, replaced: 0, by: format!("::{module}") });
            } else if self.libraries.contains_key(&name)
                && !is_in_path
                && !["as", ".", "crate"].contains(&before.as_str())
            {
                match leads_on && calls_macro(at + 3) {
                    true => {
                        edits.push(Edit { at: place.start, replaced: place.len(), by: "crate".to_string() })
                    }
                    false => edits.push(Edit { at: place.start, replaced: 0, by: "crate::".to_string() }),
                }
            } else if calls_macro(at) && !is_in_path {
                edits.push(Edit { at: place.start, replaced: 0, by: "crate::".to_string() });
            } else if name == "main" && before == "fn" && self.programs.contains_key(module) {
                let start = tokens[at - 1].span().byte_range().start;
                edits.push(Edit { at: start, replaced: 0, by: "pub ".to_string() });
            }
        }
    }
}

/// A change of a text: these bytes at this place are replaced.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Edit {
    at: usize,
    replaced: usize,
    by: String,
}

fn is_punct(token: Option<&TokenTree>, wanted: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == wanted)
}

/// Whether `::` is at this index.
fn is_path_separator(tokens: &[TokenTree], at: usize) -> bool {
    let is_joint =
        matches!(tokens.get(at), Some(TokenTree::Punct(punct)) if punct.spacing() == Spacing::Joint);
    is_joint && is_punct(tokens.get(at), ':') && is_punct(tokens.get(at + 1), ':')
}

/// Adds the names of the macros that are exported here; they belong to the program, whatever module they are in.
fn exported_macros(stream: TokenStream, found: &mut BTreeSet<String>) {
    let tokens: Vec<TokenTree> = stream.into_iter().collect();
    for (at, token) in tokens.iter().enumerate() {
        let TokenTree::Group(group) = token else { continue };
        let is_exported = group.stream().to_string() == "macro_export"
            && tokens.get(at + 1).is_some_and(|next| next.to_string() == "macro_rules");
        if let (true, Some(name)) = (is_exported, tokens.get(at + 3)) {
            found.insert(name.to_string());
        }
        exported_macros(group.stream(), found);
    }
}

fn tokens(file: &str, bytes: &[u8]) -> Result<TokenStream, String> {
    String::from_utf8_lossy(bytes).parse().map_err(|error: proc_macro2::LexError| format!("{file}: {error}"))
}

/// The manifest of the program, with the outside crates of the workspace.
fn manifest(workspace: &str) -> String {
    let outside = workspace.split("[workspace.dependencies]").nth(1).unwrap_or_default();
    let lines = outside.lines().take_while(|line| !line.starts_with('['));
    let outside: Vec<&str> = lines.filter(|line| !line.contains("path = ")).collect();
    format!(
        "[package]\nname = \"one-program\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n\
         [[bin]]\nname = \"one-program\"\npath = \"main.rs\"\n\n[workspace]\n\n[dependencies]{}\n",
        outside.join("\n")
    )
}

/// Leaves a file alone that has these bytes, so that cargo compiles nothing again.
fn write_if_changed(path: &Path, bytes: &[u8]) -> Result<(), String> {
    if fs::read(path).is_ok_and(|known| known == bytes) {
        return Ok(());
    }
    let parent = path.parent().ok_or("a file without a directory")?;
    let written = fs::create_dir_all(parent).and_then(|()| fs::write(path, bytes));
    written.map_err(|error| format!("{}: {error}", path.display()))
}

/// Removes the files below a directory that are not among these: copies of files that the repository no longer has.
fn remove_others(directory: &Path, kept: &BTreeSet<PathBuf>) -> Result<(), String> {
    let failed = |error: io::Error| format!("{}: {error}", directory.display());
    for entry in fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_dir() {
            remove_others(&path, kept)?;
        } else if !kept.contains(&path) {
            fs::remove_file(&path).map_err(failed)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(text: &str) -> String {
        let named = |names: &[&str]| names.iter().map(|name| (name.to_string(), String::new())).collect();
        let crates = Crates { libraries: named(&["fiord_a", "fiord_b"]), programs: named(&["fiord"]) };
        let macros = BTreeSet::from(["codec".to_string()]);
        crates.as_module("fiord", &macros, "a.rs", text.as_bytes()).unwrap()
    }

    #[test]
    fn only_paths_that_name_a_crate_are_changed() {
        for (text, expected) in [
            ("use crate::{a, b};", "use crate::fiord::{a, b};"),
            ("use fiord_a::x; // fiord_a::x", "use crate::fiord_a::x; // fiord_a::x"),
            ("let x: fiord_a::X = f(&fiord_b::y);", "let x: crate::fiord_a::X = f(&crate::fiord_b::y);"),
            ("pub(crate) fn f() { \"fiord_a::x\" }", "pub(crate) fn f() { \"fiord_a::x\" }"),
            ("macro_rules! m { () => { $crate::x } }", "macro_rules! m { () => { $crate::fiord::x } }"),
            (
                "fiord_a::codec!(X); codec!(Y); $crate::codec!(Z)",
                "crate::codec!(X); crate::codec!(Y); $crate::codec!(Z)",
            ),
            ("fn main() {}", "pub fn main() {}"),
            ("extern crate self as fiord_a;", "extern crate self as fiord_a;"),
        ] {
            assert_eq!(module(text), expected);
        }
    }

    #[test]
    fn exported_macros_are_found_inside_macros() {
        let mut found = BTreeSet::new();
        let text = b"macro_rules! one { () => { #[macro_export] macro_rules! two { () => {} } } }\n\
                     #[macro_export]\nmacro_rules! three { () => {} }";
        exported_macros(tokens("a.rs", text).unwrap(), &mut found);
        assert_eq!(found.into_iter().collect::<Vec<_>>(), ["three", "two"]);
    }

    #[test]
    fn copies_of_files_that_are_gone_are_removed() {
        let directory = std::env::temp_dir().join(format!("fiord-unused-{}", std::process::id()));
        let [kept, gone] = ["crates/a/src/lib.rs", "crates/a/src/gone.rs"].map(|file| directory.join(file));
        for file in [&kept, &gone] {
            write_if_changed(file, b"").unwrap();
        }
        remove_others(&directory, &BTreeSet::from([kept.clone()])).unwrap();
        assert!(kept.exists() && !gone.exists());
        fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn findings_are_rustcs_and_an_error_is_none() {
        let message = |level: &str, code: &str, file: &str| {
            serde_json::json!({"reason": "compiler-message", "message": {
                "level": level, "code": {"code": code}, "message": "function `f` is never used", "rendered": "text",
                "spans": [{"is_primary": true, "file_name": file, "line_start": 3}],
            }})
            .to_string()
        };
        let output = [
            message("warning", "dead_code", "crates/a/src/lib.rs"),
            message("warning", "dead_code", "crates/testing/src/lib.rs"),
            message("warning", "unused_mut", "crates/a/src/lib.rs"),
        ];
        let expected = "crates/a/src/lib.rs:3: function `f` is never used, except by tests";
        assert_eq!(reported(&output.join("\n")), Ok(vec![expected.to_string()]));
        assert!(
            reported(&message("error", "E0432", "crates/a/src/lib.rs"))
                .is_err_and(|why| why.contains("text"))
        );
    }
}
