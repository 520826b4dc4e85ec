//! What the workspace depends on, and whether CONTRIBUTING.md says why.
//!
//! Invariant: what counts is cargo's own answer, not a second reading of Cargo.toml.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::repo;

/// `cargo metadata` of the workspace's own packages.
pub fn metadata() -> Result<Value, String> {
    let text = repo::output_of(repo::cargo(&["metadata", "--no-deps", "--format-version", "1"]))?;
    serde_json::from_str(&text).map_err(|error| format!("cargo metadata: {error}"))
}

/// Names of crates from outside, of any kind.
fn outside(metadata: &Value) -> Result<BTreeSet<&str>, String> {
    let packages = metadata["packages"].as_array().ok_or("cargo metadata: no packages")?;
    let dependencies = packages.iter().filter_map(|package| package["dependencies"].as_array()).flatten();
    Ok(dependencies
        .filter(|entry| entry["path"].is_null())
        .filter_map(|entry| entry["name"].as_str())
        .collect())
}

/// Each crate from outside needs a line `- `name`: why` in the page, and each such line a crate.
pub fn check_reasons(metadata: &Value, page: Option<&str>) -> Result<Vec<String>, String> {
    let Some(page) = page else { return Ok(vec!["CONTRIBUTING.md: not there".to_string()]) };
    let used = outside(metadata)?;
    let explained: BTreeSet<&str> = section(page, "## Dependencies")
        .lines()
        .filter_map(|line| line.strip_prefix("- `")?.split_once("`:").map(|(name, _)| name))
        .collect();
    let missing =
        used.difference(&explained).map(|name| format!("CONTRIBUTING.md: does not say why {name} is here"));
    let left =
        explained.difference(&used).map(|name| format!("CONTRIBUTING.md: {name} is no dependency any more"));
    Ok(missing.chain(left).collect())
}

/// The text under a heading, up to the next of its level.
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
}
