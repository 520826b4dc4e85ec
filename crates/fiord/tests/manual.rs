//! The manual pages and the completions, against what `--help` says.
//!
//! Invariant: each subcommand of `fiord help --man` has a page, with every option of its `--help` and all sections.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::common::Dir;

/// The subcommands that fiord(1) refers to.
fn subcommands(dir: &Dir) -> Vec<String> {
    let page = dir.run("help --man").assert_success().stdout.clone();
    let referred =
        |line: &str| Some(line.strip_prefix(".BR fiord\\-")?.strip_suffix(" (1)")?.replace("\\-", "-"));
    let names: Vec<String> = page.lines().filter_map(referred).collect();
    assert!(names.len() >= 14 && names.iter().any(|name| name == "crash-test"), "{names:?}");
    names
}

/// The lines of one section.
fn section<'a>(page: &'a str, heading: &str) -> &'a str {
    let (_, after) =
        page.split_once(&format!("\n.SH {heading}\n")).unwrap_or_else(|| panic!("no {heading}: {page}"));
    after.split("\n.SH ").next().unwrap_or(after)
}

#[test]
fn the_page_of_fiord_in_the_repository_is_up_to_date() {
    let committed = include_str!("../../../docs/fiord.1");
    assert!(
        Dir::new().run("help --man").stdout == committed,
        "docs/fiord.1 is stale; update it with: cargo x gen"
    );
}

#[test]
fn each_subcommand_has_a_page_with_what_its_help_says() {
    let dir = Dir::new();
    for name in subcommands(&dir) {
        let page = dir.run(&format!("help --man {name}")).assert_success().stdout.clone();
        let help = dir.run(&format!("{name} --help")).assert_success().stdout.clone();
        for heading in ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "FILES", "ENVIRONMENT", "EXIT STATUS"] {
            assert_ne!(section(&page, heading).trim(), "", "{name}: {heading}");
        }
        let options = section(&page, "OPTIONS");
        let of_options = help.lines().filter(|line| line.trim_start().starts_with('-'));
        let flags = of_options.filter_map(|line| line.split_whitespace().find(|word| word.starts_with("--")));
        for flag in flags {
            let flag = flag.split(['=', '[', ',']).next().unwrap_or(flag);
            assert!(options.contains(&format!("\\fB{}\\fR", flag.replace('-', "\\-"))), "{name}: {flag}");
        }
        if let Some((_, examples)) = help.split_once("Examples:\n") {
            for line in examples.lines().take_while(|line| !line.is_empty()) {
                let line = line.trim_start().replace('\\', "\\e").replace('-', "\\-");
                assert!(section(&page, "EXAMPLES").contains(&line), "{name}: {line}");
            }
        }
    }
}

#[test]
fn pages_render_without_a_warning() {
    let dir = Dir::new();
    let pages = subcommands(&dir).into_iter().map(|name| format!("help --man {name}"));
    for line in pages.chain(["help --man".to_string()]) {
        let page = dir.run(&line).assert_success().stdout.clone();
        let child = Command::new("mandoc")
            .args(["-Tlint", "-Wwarning"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let Ok(mut child) = child else { fiord_testing::skip!("mandoc is not installed") };
        child.stdin.take().unwrap().write_all(page.as_bytes()).unwrap();
        let checked = child.wait_with_output().unwrap();
        assert!(checked.status.success() && checked.stdout.is_empty(), "{line}: {checked:?}");
    }
}

#[test]
fn completions_are_scripts_that_their_shells_accept() {
    let dir = Dir::new();
    for (shell, parts) in [
        ("bash", ["crash-test", "--ioengine", "io_uring"]),
        ("zsh", ["crash-test", "--ioengine", "io_uring"]),
        ("fish", ["crash-test", "ioengine", "io_uring"]),
        ("elvish", ["crash-test", "--ioengine", "--per-sync"]),
    ] {
        let script = dir.run(&format!("completions {shell}")).assert_success().stdout.clone();
        parts.iter().for_each(|part| assert!(script.contains(part), "{shell}: {part}"));
        dir.write(shell, &script);
        let checked = Command::new(shell).arg("-n").arg(dir.join(shell)).output();
        match checked {
            Ok(checked) => assert!(checked.status.success(), "{shell}: {checked:?}"),
            Err(_) => assert_ne!(shell, "bash", "bash is not installed"),
        }
    }
    dir.run("completions tcsh").assert_status(1).assert_prints(&["tcsh", "bash"]);
}

#[test]
fn bash_completes_subcommands_options_and_values() {
    let dir = Dir::new();
    let script = dir.run("completions bash").assert_success().stdout.clone();
    let complete = |words: &str| {
        let count = words.split(' ').count();
        let last = |back: usize| words.split(' ').nth(count - back).unwrap_or_default();
        let (current, previous) = (last(1), last(2));
        let run = format!(
            "{script}\nCOMP_WORDS=({words}{}) COMP_CWORD={}\n_fiord fiord '{current}' '{previous}'\necho \"${{COMPREPLY[@]}}\"",
            if current.is_empty() { " ''" } else { "" },
            count - 1
        );
        let out = Command::new("bash").args(["--norc", "-c", &run]).output().unwrap();
        String::from_utf8(out.stdout).unwrap()
    };
    assert_eq!(complete("fiord crash").trim(), "crash-test");
    assert_eq!(complete("fiord quick --ti").trim(), "--time");
    assert_eq!(complete("fiord --ioengine io_ur").trim(), "io_uring io_uring_cmd");
}
