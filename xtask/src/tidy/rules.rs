//! Rules about single files: length, header, banned calls, paths of one machine.
//!
//! Invariant: a finding reads `path:line: what is wrong`, so that an editor can jump to it.

use std::collections::BTreeSet;

use super::exceptions::EXCEPTIONS;
use super::source::{self, Function};

const FUNCTION_LINES_MAX: usize = 70;
const FILE_LINES_MAX: usize = 800;

/// Files that are one table each; a table is as long as what it lists.
const TABLES: &[&str] =
    &["crates/options/src/job.rs", "crates/options/src/program.rs", "crates/options/src/engine/"];

/// Where `unsafe` may stand.
const UNSAFE_ROOMS: &[&str] = &["crates/sys/", "crates/engine/"];

/// Where text is put on stdout or stderr.
const PRINTING_FILES: &[&str] = &["crates/fiord/src/output", "xtask/", "tests/compat/src/runner.rs"];

/// Rooms whose files go through one door, which looks at what it opens, makes or removes.
const ROOMS_WITH_A_DOOR: &[&str] =
    &["crates/worker/src/", "crates/fiord/src/", "crates/lab/src/", "crates/store/src/"];

/// The door; and who claims what it opens.
const DOORS_TO_FILES: &[&str] = &["crates/worker/src/door.rs", "crates/worker/src/claim.rs"];

const BANNED_OPENINGS: &[&str] = &["fs::write", "File::create", "OpenOptions", "File::options", "file::open"];

const BANNED_EVERYWHERE: &[&str] = &["todo!", "unimplemented!", "dbg!"];
const BANNED_PRINTS: &[&str] = &["println!", "eprintln!", "print!", "eprint!"];

/// Directories of one machine; split so that this file does not contain what it looks for.
const MACHINE_PATHS: &[&str] = &[concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/tmp/bash", "_jobs")];

/// Measures functions, and remembers which exceptions were needed.
#[derive(Default)]
pub struct Lengths {
    used: BTreeSet<(&'static str, &'static str)>,
}

impl Lengths {
    fn check(&mut self, path: &str, function: &Function) -> Option<String> {
        let exception = EXCEPTIONS.iter().find(|entry| entry.path == path && entry.function == function.name);
        let (line, name, lines) = (function.first_line, &function.name, function.lines());
        let Some(exception) = exception else {
            return (lines > FUNCTION_LINES_MAX).then(|| {
                format!("{path}:{line}: {name} has {lines} lines, {FUNCTION_LINES_MAX} are allowed")
            });
        };
        self.used.insert((exception.path, exception.function));
        (lines != exception.lines).then(|| {
            format!(
                "{path}:{line}: {name} has {lines} lines, its exception says {}; lists only shrink",
                exception.lines
            )
        })
    }

    /// Entries that no function needed.
    pub fn unused_exceptions(&self) -> Vec<String> {
        let unused = EXCEPTIONS.iter().filter(|entry| !self.used.contains(&(entry.path, entry.function)));
        unused
            .map(|entry| format!("{}: exception for {} is no longer needed", entry.path, entry.function))
            .collect()
    }
}

/// Every rule about one Rust file.
pub fn rust_file(path: &str, text: &str, lengths: &mut Lengths) -> Vec<String> {
    let blanked = source::blank(text);
    let tests = source::test_lines(&blanked);
    let in_tests =
        |line: usize| is_test_file(path) || tests.iter().any(|&(first, last)| (first..=last).contains(&line));

    let mut findings = Vec::new();
    if !text.starts_with("//!") {
        findings.push(format!("{path}:1: a file starts with `//!`: its purpose and its one invariant"));
    }
    let lines = text.lines().count();
    if lines > FILE_LINES_MAX && !starts_with_any(path, TABLES) {
        findings.push(format!("{path}:1: {lines} lines, {FILE_LINES_MAX} are allowed"));
    }
    for function in source::functions(&blanked) {
        if !in_tests(function.first_line) {
            findings.extend(lengths.check(path, &function));
        }
    }
    findings.extend(banned(path, &blanked, &in_tests));
    findings
}

fn is_test_file(path: &str) -> bool {
    path.contains("/tests/")
        || ["/tests.rs", "/testing.rs"].iter().any(|name| path.ends_with(name))
        || path.starts_with("fuzz/")
}

fn starts_with_any(path: &str, prefixes: &[&str]) -> bool {
    prefixes.iter().any(|prefix| path.starts_with(prefix))
}

fn banned(path: &str, blanked: &str, in_tests: &dyn Fn(usize) -> bool) -> Vec<String> {
    let mut findings = Vec::new();
    let mut find = |what: &str, allowed: &dyn Fn(usize) -> bool, why: &str| {
        let word = what.trim_end_matches('!');
        for at in source::words(blanked, word).filter(|&at| blanked[at..].starts_with(what)) {
            let line = source::line_of(blanked, at);
            if !allowed(line) {
                findings.push(format!("{path}:{line}: {what} {why}"));
            }
        }
    };
    let never = |_: usize| false;
    for call in BANNED_EVERYWHERE {
        find(call, &never, "is not left in");
    }
    for call in BANNED_PRINTS {
        find(
            call,
            &|line| starts_with_any(path, PRINTING_FILES) || path.contains("/examples/") || in_tests(line),
            "outside the files that print",
        );
    }
    for call in BANNED_OPENINGS {
        find(
            call,
            &|line| {
                !starts_with_any(path, ROOMS_WITH_A_DOOR)
                    || starts_with_any(path, DOORS_TO_FILES)
                    || path.ends_with("/tests.rs")
                    || in_tests(line)
            },
            "outside crates/worker/src/door.rs, which looks whose the file is",
        );
    }
    find("unwrap()", in_tests, "outside tests: say what was expected, or return the error");
    find("unsafe", &|_| starts_with_any(path, UNSAFE_ROOMS), "outside crates/sys and crates/engine");
    find("ignore]", &never, "on a test: a test that does not run is skipped with a printed reason");
    findings
}

/// Paths that exist on one machine only.
pub fn machine_paths(path: &str, text: &str) -> Vec<String> {
    let mut findings = Vec::new();
    for (index, line) in text.lines().enumerate() {
        for what in MACHINE_PATHS {
            let found = line.match_indices(what).any(|(at, _)| {
                // `network/…` is no path: what stands before the first slash must not be a word.
                !line[..at].ends_with(|before: char| before.is_alphanumeric() || "._-*".contains(before))
            });
            if found {
                findings.push(format!("{path}:{}: {what} is a path of one machine", index + 1));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, text: &str) -> Vec<String> {
        rust_file(path, text, &mut Lengths::default())
    }

    #[test]
    fn a_file_in_order_has_no_finding() {
        assert_eq!(findings("crates/a/src/lib.rs", "//! Purpose.\nfn a() {}\n"), [""; 0]);
    }

    #[test]
    fn banned_calls_are_found_outside_comments_and_tests() {
        let text = "//! todo!\nfn a() { x.unwrap(); println!(); }\n#[cfg(test)]\nmod tests { fn b() { y.unwrap(); } }\n";
        let found = findings("crates/a/src/lib.rs", text);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found.iter().all(|finding| finding.starts_with("crates/a/src/lib.rs:2: ")), "{found:?}");
        assert_eq!(findings("crates/a/tests/b.rs", "//! .\nfn a() { x.unwrap(); }").len(), 0);
    }

    #[test]
    fn files_are_opened_for_writing_at_the_door_alone() {
        let text = "//! .\nfn a() { fs::write(x, y); File::create(x); File::create_new(x); std::fs::OpenOptions::new(); }\n";
        assert_eq!(findings("crates/fiord/src/logs.rs", text).len(), 3);
        assert_eq!(findings("crates/worker/src/files.rs", "//! .\nfn a() { file::open(x) }").len(), 1);
        assert_eq!(findings("crates/worker/src/door.rs", text).len(), 0);
        assert_eq!(findings("crates/host/src/target.rs", text).len(), 0);
    }

    #[test]
    fn unsafe_has_its_rooms() {
        let text = "//! .\n#![forbid(unsafe_code)]\nfn a() { unsafe { b() } }\n";
        assert_eq!(findings("crates/plan/src/lib.rs", text).len(), 1);
        assert_eq!(findings("crates/sys/src/lib.rs", text).len(), 0);
    }

    #[test]
    fn length_and_header_are_measured() {
        let long = format!("fn long() {{\n{}}}\n", "x();\n".repeat(FUNCTION_LINES_MAX));
        assert_eq!(findings("crates/a/src/lib.rs", &long).len(), 2);
        let many = format!("//! .\n{}", "// x\n".repeat(FILE_LINES_MAX));
        assert_eq!(findings("crates/a/src/lib.rs", &many).len(), 1);
        assert_eq!(findings(TABLES[0], &many).len(), 0);
    }

    #[test]
    fn a_machine_path_is_one_that_starts_there() {
        let path = MACHINE_PATHS[0];
        assert_eq!(machine_paths("a.md", &format!("see {path}main\nnet{path}x\n./..{path}y")).len(), 1);
    }
}
