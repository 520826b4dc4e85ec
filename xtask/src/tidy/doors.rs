//! The allowed dependencies between crates (doors between rooms): the table, and its copy in ARCHITECTURE.md.
//!
//! Invariant: a dependency that is not in the table does not exist, and the table has no row without a crate.

use serde_json::Value;

use crate::marked;

/// One crate and what it may depend on (not counting dependencies of its tests).
pub struct Door {
    /// The crate's name.
    pub room: &'static str,
    /// The crates it may use; those of the workspace without their prefix in the page.
    pub may_use: &'static [&'static str],
    /// What it must not know, for the page.
    pub must_not_know: &'static str,
}

const fn door(room: &'static str, may_use: &'static [&'static str], must_not_know: &'static str) -> Door {
    Door { room, may_use, must_not_know }
}

/// The dependencies of each crate; a crate comes after those it may use.
pub const DOORS: &[Door] = &[
    door("fiord-errno", &[], "everything else"),
    door("fiord-options", &["fiord-errno", "fiord-stats", "strsim", "toml"], "files, clocks, engines' code"),
    door("fiord-stats", &["serde"], "everything else"),
    door(
        "fiord-checksum",
        &["crc", "crc32c", "md-5", "sha1", "sha2", "sha3", "xxhash-rust"],
        "everything else",
    ),
    door("fiord-svg", &[], "what is drawn"),
    door("fiord-nbd", &[], "sockets, jobs, plans"),
    door("fiord-http", &["base64", "hmac", "httparse", "md-5", "sha2"], "sockets, jobs, plans"),
    door("fiord-profile", &["fiord-stats", "fiord-svg"], "how counters are read, jobs, stdout"),
    door("fiord-trace", &["fiord-errno"], "who records and replays"),
    door("fiord-import", &["fiord-stats", "serde_json"], "who made a report, and who reads it"),
    door("fiord-device", &["serde"], "how values are obtained"),
    door("fiord-sys", &["fiord-errno", "fiord-device", "libc", "io-uring", "rustix"], "what a job is"),
    door("fiord-testing", &[], "everything else; only tests and chores use it"),
    door("fiord-host", &["fiord-device", "fiord-sys"], "jobs, plans"),
    door("fiord-verify", &["fiord-checksum"], "jobs, plans, files"),
    door(
        "fiord-plan",
        &["fiord-errno", "fiord-options", "fiord-stats", "fiord-trace", "fiord-verify"],
        "system calls",
    ),
    door("fiord-workload", &["fiord-errno", "fiord-plan", "fiord-stats", "fiord-verify"], "files, clocks"),
    door(
        "fiord-engine",
        &[
            "fiord-checksum",
            "fiord-http",
            "fiord-nbd",
            "fiord-options",
            "fiord-plan",
            "fiord-sys",
            "libc",
            "io-uring",
            "rustls",
            "rustls-native-certs",
        ],
        "option text, statistics, report",
    ),
    door(
        "fiord-worker",
        &[
            "fiord-plan",
            "fiord-workload",
            "fiord-engine",
            "fiord-stats",
            "fiord-host",
            "fiord-sys",
            "fiord-verify",
            "fiord-trace",
        ],
        "option text, report, stdout",
    ),
    door(
        "fiord-report",
        &[
            "fiord-device",
            "fiord-errno",
            "fiord-options",
            "fiord-plan",
            "fiord-stats",
            "serde",
            "unicode-width",
        ],
        "worker, engine, stdout",
    ),
    door(
        "fiord-model",
        &["fiord-options", "fiord-plan", "fiord-report", "fiord-stats", "fiord-trace", "fiord-workload"],
        "files, who records and runs, stdout",
    ),
    door(
        "fiord-findings",
        &[
            "fiord-errno",
            "fiord-host",
            "fiord-import",
            "fiord-options",
            "fiord-plan",
            "fiord-report",
            "fiord-stats",
        ],
        "worker, engine, system calls, stdout",
    ),
    door(
        "fiord-metrics",
        &["fiord-device", "fiord-report", "fiord-stats", "fiord-watch", "prost", "serde_json"],
        "how jobs are run, who reads metrics",
    ),
    door("fiord-export", &["fiord-import", "fiord-report", "fiord-stats"], "files, the history, stdout"),
    door(
        "fiord-compare",
        &["fiord-import", "fiord-report", "fiord-stats", "fiord-svg"],
        "how results are obtained and stored, stdout",
    ),
    door(
        "fiord-explain",
        &["fiord-import", "fiord-report", "fiord-stats"],
        "files, how findings are made, stdout",
    ),
    door(
        "fiord-page",
        &[
            "fiord-checksum",
            "fiord-device",
            "fiord-explain",
            "fiord-import",
            "fiord-stats",
            "fiord-svg",
            "minijinja",
        ],
        "files, how runs are made, stdout",
    ),
    door(
        "fiord-lab",
        &[
            "fiord-compare",
            "fiord-options",
            "fiord-profile",
            "fiord-report",
            "fiord-stats",
            "fiord-svg",
            "toml",
        ],
        "how jobs are run, stdout",
    ),
    door(
        "fiord-live",
        &["fiord-report", "fiord-stats", "ratatui-core"],
        "terminals, clocks, how figures are read",
    ),
    door(
        "fiord-fleet",
        &["fiord-errno", "fiord-options", "fiord-report", "fiord-stats", "serde"],
        "how hosts are reached, clocks, sockets, stdout",
    ),
    door(
        "fiord-watch",
        &["fiord-device", "fiord-profile", "fiord-report", "fiord-stats"],
        "how the kernel is read, processes, stdout",
    ),
    door(
        "fiord-store",
        &["fiord-errno", "fiord-report", "fiord-stats", "flate2", "postcard", "rusqlite"],
        "how jobs are run, stdout",
    ),
    door(
        "fiord-session",
        &[
            "flate2",
            "fiord-checksum",
            "fiord-options",
            "fiord-plan",
            "fiord-findings",
            "fiord-host",
            "fiord-lab",
            "fiord-engine",
            "fiord-worker",
            "fiord-stats",
            "fiord-sys",
            "fiord-report",
            "fiord-store",
        ],
        "stdout, terminals, how a run is shown, clap",
    ),
    door(
        "fiord-wire",
        &["crc32c", "fiord-checksum", "fiord-fleet", "fiord-options", "postcard", "serde"],
        "sockets, clocks, processes, jobs",
    ),
    door(
        "fiord-remote",
        &[
            "fiord-fleet",
            "fiord-host",
            "fiord-options",
            "fiord-plan",
            "fiord-report",
            "fiord-session",
            "fiord-stats",
            "fiord-store",
            "fiord-sys",
            "fiord-wire",
            "fiord-worker",
            "hmac",
            "rustls",
            "serde_json",
            "sha2",
        ],
        "stdout beside an agent's stream, terminals, clap",
    ),
    door(
        "fiord",
        &[
            "clap",
            "clap_complete",
            "flate2",
            "fiord-checksum",
            "fiord-options",
            "fiord-plan",
            "fiord-profile",
            "fiord-compare",
            "fiord-explain",
            "fiord-export",
            "fiord-findings",
            "fiord-fleet",
            "fiord-host",
            "fiord-import",
            "fiord-lab",
            "fiord-metrics",
            "fiord-model",
            "fiord-live",
            "fiord-page",
            "fiord-engine",
            "fiord-wire",
            "fiord-worker",
            "fiord-watch",
            "fiord-stats",
            "fiord-sys",
            "fiord-remote",
            "fiord-report",
            "fiord-session",
            "fiord-store",
            "ureq",
            "ratatui-core",
        ],
        "",
    ),
    door(
        "fiord-fuzz",
        &[
            "fiord-device",
            "fiord-engine",
            "fiord-fleet",
            "fiord-http",
            "fiord-import",
            "fiord-lab",
            "fiord-nbd",
            "fiord-options",
            "fiord-plan",
            "fiord-profile",
            "fiord-report",
            "fiord-store",
            "fiord-trace",
            "fiord-verify",
            "fiord-wire",
            "fiord-workload",
            "libfuzzer-sys",
        ],
        "system calls, files: a target is given bytes",
    ),
    door(
        "fiord-compat",
        &["fiord-testing", "libtest-mimic", "serde_json"],
        "fiord's crates: it drives binaries",
    ),
    door("fiord-programs", &["serde_json"], "fiord's crates: it drives binaries"),
    door("fiord-guest", &["fiord-programs", "serde_json"], "fiord's crates: it drives binaries"),
    door("fiord-servers", &["fiord-programs", "serde_json"], "fiord's crates: it drives binaries"),
    door("fiord-fleet-tests", &["fiord-servers", "serde_json"], "fiord's crates: it drives binaries"),
    door(
        "xtask",
        &[
            "fiord-engine",
            "fiord-options",
            "fiord-plan",
            "fiord-report",
            "fiord-servers",
            "fiord-stats",
            "fiord-svg",
            "fiord-sys",
            "fiord-testing",
            "proc-macro2",
            "serde_json",
            "syn",
        ],
        "",
    ),
];

const PAGE_START: &str = "<!-- doors: written by `cargo x gen` from xtask/src/tidy/doors.rs -->\n";
const PAGE_END: &str = "<!-- end of doors -->\n";

/// Compares the table with what `cargo metadata` says.
pub fn check(metadata: &Value) -> Result<Vec<String>, String> {
    let packages = metadata["packages"].as_array().ok_or("cargo metadata: no packages")?;
    let mut findings = Vec::new();
    for package in packages {
        let name = package["name"].as_str().unwrap_or_default();
        let Some(door) = DOORS.iter().find(|door| door.room == name) else {
            findings.push(format!("xtask/src/tidy/doors.rs: {name} has no row"));
            continue;
        };
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let used = dependency["name"].as_str().unwrap_or_default();
            let for_tests = dependency["kind"] == "dev";
            if !for_tests && !door.may_use.contains(&used) {
                findings
                    .push(format!("{name} uses {used}: this dependency is not in xtask/src/tidy/doors.rs"));
            }
        }
    }
    for door in DOORS {
        if !packages.iter().any(|package| package["name"] == door.room) {
            findings.push(format!("xtask/src/tidy/doors.rs: {} is not a crate of the workspace", door.room));
        }
    }
    Ok(findings)
}

/// The table as ARCHITECTURE.md shows it.
pub fn table() -> String {
    let mut page = String::from("| crate | may use | must not know |\n| --- | --- | --- |\n");
    for door in DOORS {
        let uses: Vec<&str> = door.may_use.iter().map(|name| short(name)).collect();
        let uses = if uses.is_empty() { "std only".to_string() } else { uses.join(", ") };
        page.push_str(&format!("| {} | {uses} | {} |\n", short(door.room), door.must_not_know));
    }
    page
}

fn short(name: &str) -> &str {
    name.strip_prefix("fiord-").unwrap_or(name)
}

/// The page with its table replaced by this one; the error names missing marks.
pub fn with_table(page: &str) -> Result<String, String> {
    marked::replace(page, PAGE_START, PAGE_END, &table()).map_err(|lacks| format!("ARCHITECTURE.md: {lacks}"))
}

/// Compares the page's table with this one.
pub fn check_page(page: Option<&str>) -> Vec<String> {
    let Some(page) = page else { return vec!["ARCHITECTURE.md: not there".to_string()] };
    match with_table(page) {
        Ok(mended) if mended == page => Vec::new(),
        Ok(_) => vec![
            "ARCHITECTURE.md: its table of dependencies is outdated; update it with `cargo x gen`"
                .to_string(),
        ],
        Err(lacks) => vec![lacks],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dependency_that_is_not_in_the_table_is_found() {
        let package = |name: &str, uses: &[(&str, Value)]| {
            let uses: Vec<Value> =
                uses.iter().map(|(name, kind)| serde_json::json!({"name": name, "kind": kind})).collect();
            serde_json::json!({"name": name, "dependencies": uses})
        };
        let mut packages: Vec<Value> = DOORS.iter().map(|door| package(door.room, &[])).collect();
        assert_eq!(check(&serde_json::json!({ "packages": packages })).unwrap(), [""; 0]);

        let stats = DOORS.iter().position(|door| door.room == "fiord-stats").unwrap();
        packages[stats] = package("fiord-stats", &[("libc", Value::Null), ("proptest", "dev".into())]);
        packages.push(package("fiord-new", &[]));
        let found = check(&serde_json::json!({ "packages": packages })).unwrap();
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].contains("fiord-stats uses libc"));
    }

    #[test]
    fn the_page_is_updated_only_between_its_marks() {
        let page = format!("# a\n{PAGE_START}old\n{PAGE_END}rest\n");
        assert_eq!(check_page(Some(&page)).len(), 1);
        let mended = with_table(&page).unwrap();
        assert!(
            mended.starts_with("# a\n")
                && mended.ends_with("rest\n")
                && mended.contains("| errno | std only |")
        );
        assert_eq!(check_page(Some(&mended)).len(), 0);
        assert_eq!(check_page(Some("no marks")).len(), 1);
        assert_eq!(check_page(None).len(), 1);
    }
}
