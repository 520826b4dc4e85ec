//! The workspace's external dependencies, and their reasons in CONTRIBUTING.md.
//!
//! Invariant: dependencies are those of cargo's metadata; Cargo.toml is not parsed a second time.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::repo;

/// `cargo metadata` of the workspace's own packages.
pub fn metadata() -> Result<Value, String> {
    let text = repo::output_of(repo::cargo(&["metadata", "--no-deps", "--format-version", "1"]))?;
    serde_json::from_str(&text).map_err(|error| format!("cargo metadata: {error}"))
}

/// The first file of each target, package by package.
pub fn targets(metadata: &Value) -> Result<Vec<Vec<String>>, String> {
    let packages = metadata["packages"].as_array().ok_or("cargo metadata: no packages")?;
    let root = |target: &Value| repo::relative(target["src_path"].as_str().unwrap_or_default());
    let targets = packages.iter().map(|package| package["targets"].as_array().into_iter().flatten());
    Ok(targets.map(|targets| targets.map(root).collect()).collect())
}

/// Names of external crates, of any kind of dependency.
fn outside(metadata: &Value) -> Result<BTreeSet<&str>, String> {
    let packages = metadata["packages"].as_array().ok_or("cargo metadata: no packages")?;
    let dependencies = packages.iter().filter_map(|package| package["dependencies"].as_array()).flatten();
    Ok(dependencies
        .filter(|entry| entry["path"].is_null())
        .filter_map(|entry| entry["name"].as_str())
        .collect())
}

/// Each external crate needs a line `- `name`: why` in the page, and each such line a crate.
pub fn check_reasons(metadata: &Value, page: Option<&str>) -> Result<Vec<String>, String> {
    let Some(page) = page else { return Ok(vec!["CONTRIBUTING.md: not there".to_string()]) };
    let used = outside(metadata)?;
    let explained: BTreeSet<&str> = section(page, "## Dependencies")
        .lines()
        .filter_map(|line| line.strip_prefix("- `")?.split_once("`:").map(|(name, _)| name))
        .collect();
    let missing =
        used.difference(&explained).map(|name| format!("CONTRIBUTING.md: the reason for {name} is missing"));
    let left =
        explained.difference(&used).map(|name| format!("CONTRIBUTING.md: {name} is no longer a dependency"));
    Ok(missing.chain(left).collect())
}

/// Every package inherits the lints of the workspace; cargo does not require that.
pub fn check_lints(metadata: &Value, read: impl Fn(&str) -> Option<String>) -> Result<Vec<String>, String> {
    let packages = metadata["packages"].as_array().ok_or("cargo metadata: no packages")?;
    let manifests =
        packages.iter().filter_map(|package| package["manifest_path"].as_str()).map(repo::relative);
    let lacks = |manifest: &String| {
        let text = read(manifest).unwrap_or_default();
        !text.contains("\n[lints]\nworkspace = true\n")
    };
    Ok(manifests
        .filter(lacks)
        .map(|manifest| format!("{manifest}: lacks `[lints] workspace = true`"))
        .collect())
}

/// The text under a heading, up to the next heading of its level.
fn section<'p>(page: &'p str, heading: &str) -> &'p str {
    let Some((_, rest)) = page.split_once(heading) else { return "" };
    rest.split_once("\n## ").map_or(rest, |(body, _)| body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_and_dependencies_must_match() {
        let metadata = serde_json::json!({"packages": [
            {"dependencies": [{"name": "libc", "path": null}, {"name": "fiord-sys", "path": "x"}]}
        ]});
        let page = |body: &str| format!("# C\n## Dependencies\n\n{body}\n## Next\n- `other`: elsewhere\n");
        assert_eq!(check_reasons(&metadata, Some(&page("- `libc`: calls"))).unwrap(), [""; 0]);
        assert_eq!(check_reasons(&metadata, Some(&page("- `gone`: x"))).unwrap().len(), 2);
        assert_eq!(check_reasons(&metadata, None).unwrap().len(), 1);
    }

    #[test]
    fn a_package_without_the_lints_of_the_workspace_is_found() {
        let metadata =
            serde_json::json!({"packages": [{"manifest_path": "a.toml"}, {"manifest_path": "b.toml"}]});
        let read = |path: &str| {
            Some(if path == "a.toml" { "x\n[lints]\nworkspace = true\n" } else { "x\n" }.to_string())
        };
        assert_eq!(check_lints(&metadata, read).unwrap(), ["b.toml: lacks `[lints] workspace = true`"]);
    }
}
