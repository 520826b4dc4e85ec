//! Names and texts that would control a terminal, a page or a spreadsheet, in every output that shows them.
//!
//! Invariant: no output for people has a control character but line feeds and tabs, nor one that reverses a line.

use std::process::Command;

use crate::common::{Dir, Ran, finish, fiord, start};

/// Colours, a title, a bell, a carriage return, the C1 form of an escape, a reversal, and marks of each medium.
const HOSTILE: &str = "a\u{1b}[31mred\u{1b}]0;title\u{7}\r\u{9b}2J\u{202e}|<b>&\"'";

struct Place(Dir);

impl Place {
    /// Runs words, each as it is.
    fn run(&self, words: &[&str]) -> Ran {
        let mut command: Command = fiord(self.0.path(), "");
        command.args(words).env("XDG_STATE_HOME", self.0.join("state"));
        finish(start(command))
    }
}

#[track_caller]
fn assert_harmless(what: &[&str], text: &str) {
    let is_hostile =
        |letter: &char| (letter.is_control() && !['\n', '\t'].contains(letter)) || *letter == '\u{202e}';
    let found: Vec<char> = text.chars().filter(is_hostile).collect();
    assert!(found.is_empty(), "{what:?}: {found:?} in {text}");
}

// divergence: control characters in names
#[test]
fn no_output_for_people_has_what_controls_a_terminal() {
    let place = Place(Dir::new());
    let name = format!("--name={HOSTILE}");
    let description = format!("--description={HOSTILE}");
    let job = [name.as_str(), description.as_str(), "--ioengine=null", "--size=64k", "--rw=randread"];
    let json = ["--output-format=json", "--output=r.json"];
    let ran = place.run(&[&job[..], &json].concat());
    ran.assert_success();
    let text = place.run(&job);
    assert_harmless(&job, &text.assert_success().stdout);
    place.0.write("r.txt", text.stdout.replace(r"\u{1b}", "\u{1b}"));
    for words in [
        &["show", "last"][..],
        &["show", "last", "--json"],
        &["history"],
        &["history", "--json"],
        &["history", "--markdown"],
        &["explain", "last"],
        &["explain", "r.json"],
        &["explain", "r.txt"],
        &["compare", "last", "last~1"],
        &["compare", "last", "last~1", "--markdown"],
        &["compare", "r.json", "r.json"],
        &["report", "last", "-o", "run.html"],
        &["report", "r.json", "-o", "read.html"],
        &["--name=b", "--ioengine=null", "--size=4k", &format!("--rw={HOSTILE}")],
        &["explain", HOSTILE],
        &["report", HOSTILE],
        &[
            "sweep",
            &name,
            "--ioengine=null",
            "--size=64k",
            "--over",
            "bs=4k,8k",
            "--time=100ms",
            "--trust=off",
        ],
        &["show", "last"],
    ] {
        assert_harmless(words, &place.run(words).all_output());
    }
    for page in ["run.html", "read.html"] {
        assert_harmless(&[page], &place.0.text(page));
        assert!(!place.0.text(page).contains("|<b>&"), "{page}");
    }
}

#[test]
fn cells_of_csv_are_no_formulas() {
    let place = Place(Dir::new());
    for name in ["=1+1", "+1", "-1", "@SUM(A1)", "\tx"] {
        place.run(&[&format!("--name={name}"), "--ioengine=null", "--size=4k"]).assert_success();
        for words in [&["history", "--csv"][..], &["history", "--export=csv"]] {
            let csv = place.run(words).stdout;
            assert!(csv.contains(&format!(",'{name},")), "{name}: {csv}");
        }
    }
}

#[test]
fn the_history_lists_very_long_names() {
    let place = Place(Dir::new());
    let name = format!("--name={}", "long/".repeat(13_000));
    place.run(&[&name, "--ioengine=null", "--size=4k", "--filename=x"]).assert_success();
    for words in [&["history"][..], &["history", "--markdown"], &["show", "last"], &["explain", "last"]] {
        // A run that takes a minute is killed.
        let ran = place.run(words);
        assert_eq!(ran.status, Some(0), "{words:?}");
    }
}
