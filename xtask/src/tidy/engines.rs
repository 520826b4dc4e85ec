//! An engine is one file and one line: no other code names one.
//!
//! Invariant: an engine is named by a path through the module `engines` of its crate, or by its variant of `EngineName`,
//! whose declaration is fio's vocabulary and not a list of what is built.

use serde_json::Value;

use super::dependencies;
use super::tree::{Names, Read, Tree};
use super::uses;
use crate::repo;

/// The crate of the engines, as a directory and as a name.
const CRATE: (&str, &str) = ("crates/engine/src/", "fiord_engine");

/// Where engines may be named: their own files and list, and the options, which declare fio's names and which engine each
/// option belongs to.
const OWN: [&str; 2] = ["crates/engine/src/engines/", "crates/options/src/"];

/// Files whose subject is one engine, each with the reason.
const ABOUT_ONE: [(&str, &str); 1] = [(
    "crates/worker/src/self_cost.rs",
    "what fiord itself costs is measured on the engine that does nothing",
)];

/// One line per place outside tests that names an engine.
pub fn check(metadata: &Value) -> Result<Vec<String>, String> {
    let mut findings = Vec::new();
    let roots = dependencies::targets(metadata)?.into_iter().flatten();
    for root in roots.filter(|root| root.starts_with("crates/") && root.contains("/src/")) {
        findings.extend(of_target(&root, &repo::read)?);
    }
    for (path, _) in ABOUT_ONE {
        let before = findings.len();
        findings.retain(|finding| !finding.starts_with(&format!("{path}:")));
        if findings.len() == before {
            findings.push(format!("xtask/src/tidy/engines.rs: {path} no longer names an engine"));
        }
    }
    Ok(findings)
}

/// The places in the target whose first file is `root`.
fn of_target(root: &str, read: Read) -> Result<Vec<String>, String> {
    let tree = Tree::read(root, read)?;
    let mut findings = Vec::new();
    for module in &tree.modules {
        let file = &tree.files[module.file];
        if OWN.iter().any(|own| file.starts_with(own)) {
            continue;
        }
        for found in uses::of(&module.code).into_iter().filter(|found| names_engine(file, &found.path)) {
            let path = found.path.join("::");
            findings.push(format!(
                "{file}:{}: {path}: an engine is named only in its file and its line of the list; derive this from its \
                 descriptor",
                found.line
            ));
        }
    }
    Ok(findings)
}

fn names_engine(file: &str, path: &Names) -> bool {
    let own = if file.starts_with(CRATE.0) { "crate" } else { CRATE.1 };
    let through_module = path.len() > 1 && path[0] == own && path[1] == "engines";
    let is_variant = |name: &str| name.starts_with(char::is_uppercase) && name.contains(char::is_lowercase);
    let by_name = path.windows(2).any(|pair| pair[0] == "EngineName" && is_variant(&pair[1]));
    through_module || by_name
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<String> {
        of_target(path, &|name| (name == path).then(|| text.to_string())).unwrap()
    }

    #[test]
    fn an_engine_is_named_by_its_module_or_its_name() {
        let code = "use fiord_engine::engines::Null;\nuse fiord_plan::EngineName;\n\
                    fn f() { matches!(name, EngineName::Sync | EngineName::Psync) }";
        let lines = found("crates/plan/src/lib.rs", code);
        assert_eq!(lines.len(), 3, "{lines:?}");
        assert!(lines[0].starts_with("crates/plan/src/lib.rs:1: fiord_engine::engines::Null"), "{lines:?}");
        assert_eq!(found("crates/engine/src/lib.rs", "use crate::engines::mmap;").len(), 1);
    }

    #[test]
    fn lists_of_engines_and_tests_are_free() {
        let code = "fn f() { EngineName::ALL; EngineName::join(&[]); super::engines::find() }\n\
                    #[cfg(test)]\nmod tests { use fiord_engine::engines::Null; }";
        assert_eq!(found("crates/plan/src/lib.rs", code), [""; 0]);
        assert_eq!(found("crates/engine/src/engines/mod.rs", "use crate::engines::mmap;"), [""; 0]);
    }
}
