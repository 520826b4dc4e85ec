//! What crates.io, and who looks for a crate there, demand of the crates that can be published.
//!
//! Invariant: a crate is one of these unless its manifest says `publish = false`; what is checked is cargo's metadata.

use serde_json::Value;

/// The most keywords and categories of a crate, and letters of a keyword.
const KEYWORDS_MAX: usize = 5;
const CATEGORIES_MAX: usize = 5;
const KEYWORD_LENGTH_MAX: usize = 20;

/// One line for each thing that crates.io would refuse.
pub fn check(metadata: &Value) -> Result<Vec<String>, String> {
    let packages = metadata["packages"].as_array().ok_or("cargo metadata: no packages")?;
    let published = packages.iter().filter(|package| is_published(package));
    Ok(published.flat_map(|package| of_package(package, packages)).collect())
}

/// A list of registries, of which an empty one is `publish = false`.
fn is_published(package: &Value) -> bool {
    package["publish"].as_array().is_none_or(|registries| !registries.is_empty())
}

fn of_package(package: &Value, packages: &[Value]) -> Vec<String> {
    let name = package["name"].as_str().unwrap_or_default();
    let lacks = |key: &str| package[key].as_str().is_none_or(|text| text.trim().is_empty());
    let listed = |key: &str| package[key].as_array().map_or(&[][..], Vec::as_slice);
    let mut wrong: Vec<String> = Vec::new();
    if lacks("description") {
        wrong.push("has no description".to_string());
    }
    if lacks("license") && lacks("license_file") {
        wrong.push("has no license".to_string());
    }
    if lacks("repository") {
        wrong.push("has no repository".to_string());
    }
    if listed("keywords").is_empty() || listed("categories").is_empty() {
        wrong.push("has no keywords or no categories: nobody would find it".to_string());
    }
    let is_keyword = |keyword: &Value| {
        let keyword = keyword.as_str().unwrap_or_default();
        let is_letter = |letter: char| letter.is_ascii_alphanumeric() || "-_+".contains(letter);
        keyword.len() <= KEYWORD_LENGTH_MAX
            && keyword.starts_with(|first: char| first.is_ascii_alphanumeric())
            && keyword.chars().all(is_letter)
    };
    if listed("keywords").len() > KEYWORDS_MAX || !listed("keywords").iter().all(is_keyword) {
        wrong.push(format!(
            "has more than {KEYWORDS_MAX} keywords, or one that is not a word of up to {KEYWORD_LENGTH_MAX} letters"
        ));
    }
    if listed("categories").len() > CATEGORIES_MAX {
        wrong.push(format!("has more than {CATEGORIES_MAX} categories"));
    }
    let in_a_circle = |dependency: &&Value| {
        let of = dependency["name"].as_str().unwrap_or_default();
        dependency["kind"] == "dev" && dependency["req"] != "*" && needs(packages, of, name, &mut Vec::new())
    };
    for dependency in listed("dependencies").iter().filter(in_a_circle) {
        let of = dependency["name"].as_str().unwrap_or_default();
        wrong.push(format!("tests with {of}, which depends on it: name that by its path without a version"));
    }
    // Tests may need a crate that is not published: cargo leaves a path without a version out.
    let by_path = |dependency: &&Value| !dependency["path"].is_null() && dependency["kind"] != "dev";
    for dependency in listed("dependencies").iter().filter(by_path) {
        let of = dependency["name"].as_str().unwrap_or_default();
        match packages.iter().find(|package| package["name"] == of) {
            Some(known) if !is_published(known) => {
                wrong.push(format!("depends on {of}, which is not published"));
            }
            Some(known)
                if dependency["req"] != format!("^{}", known["version"].as_str().unwrap_or_default()) =>
            {
                wrong.push(format!("depends on {of} without its version"));
            }
            _ => {}
        }
    }
    wrong.iter().map(|wrong| format!("{name}: cannot be published, because it {wrong}")).collect()
}

/// Whether the crate `from` depends on the crate `to`, but for its tests.
fn needs<'p>(packages: &'p [Value], from: &'p str, to: &str, seen: &mut Vec<&'p str>) -> bool {
    if from == to || seen.contains(&from) {
        return from == to;
    }
    seen.push(from);
    let package = packages.iter().find(|package| package["name"] == from);
    let dependencies = package.and_then(|package| package["dependencies"].as_array()).into_iter().flatten();
    let names =
        dependencies.filter(|dependency| dependency["kind"] != "dev" && !dependency["path"].is_null());
    names.filter_map(|dependency| dependency["name"].as_str()).any(|name| needs(packages, name, to, seen))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(first: Value, second: Value) -> Vec<String> {
        let mut packages = vec![
            json!({"name": "a", "dependencies": [
                {"name": "b", "path": "/b", "kind": null, "req": "^0.1.0"},
                {"name": "t", "path": "/t", "kind": "dev", "req": "*"},
                {"name": "libc", "path": null, "kind": null, "req": "^0.2"},
            ]}),
            json!({"name": "b", "dependencies": []}),
            json!({"name": "t", "version": "0.1.0", "publish": [], "dependencies": []}),
        ];
        let complete = json!({
            "version": "0.1.0", "publish": null, "description": "d", "license": "MIT", "repository": "r",
            "keywords": ["k"], "categories": ["c"],
        });
        for (package, changes) in packages.iter_mut().zip([first, second]) {
            for values in [&complete, &changes] {
                let values = values.as_object().expect("an object").clone();
                package.as_object_mut().expect("an object").extend(values);
            }
        }
        check(&json!({ "packages": packages })).expect("packages")
    }

    #[test]
    fn tests_with_a_crate_that_depends_on_this_one_are_named() {
        let tests_with = |req: &str| {
            let dependency = json!({"name": "a", "path": "/a", "kind": "dev", "req": req});
            found(json!({}), json!({ "dependencies": [dependency] }))
        };
        let named = tests_with("^0.1.0");
        assert!(
            matches!(&named[..], [only] if only.contains("it tests with a, which depends on it")),
            "{named:?}"
        );
        assert_eq!(tests_with("*"), Vec::<String>::new());
    }

    #[test]
    fn what_a_registry_refuses_is_named() {
        assert_eq!(found(json!({}), json!({})), Vec::<String>::new());
        let cases = [
            (json!({"description": " "}), json!({}), "has no description"),
            (json!({"license": null}), json!({}), "has no license"),
            (json!({"repository": null}), json!({}), "has no repository"),
            (json!({"keywords": []}), json!({}), "has no keywords or no categories"),
            (json!({"categories": []}), json!({}), "has no keywords or no categories"),
            (json!({"keywords": ["a", "b", "c", "d", "e", "f"]}), json!({}), "more than 5 keywords"),
            (json!({"keywords": ["two words"]}), json!({}), "not a word"),
            (json!({"categories": ["a", "b", "c", "d", "e", "f"]}), json!({}), "more than 5 categories"),
            (json!({}), json!({"publish": []}), "depends on b, which is not published"),
            (json!({}), json!({"version": "0.2.0"}), "depends on b without its version"),
        ];
        for (first, second, why) in cases {
            let found = found(first, second);
            assert!(
                matches!(&found[..], [only] if only.starts_with("a: ") && only.contains(why)),
                "{why}: {found:?}"
            );
        }
    }
}
