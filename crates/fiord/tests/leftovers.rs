//! Studies that are ended by force, and the next one in the same directory.
//!
//! Invariant: after the next study nothing is left, and what was left before has been told; what somebody works with is
//! not touched.

#![allow(clippy::unwrap_used, reason = "tests panic when something is wrong")]

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::study::is_empty;
use common::{Dir, Running, finish, signal, start, until};

/// Each study in the directory it is given, for as long as nobody ends it.
const LONG: [&str; 4] = [
    "quick --size 8M --time 30m --no-history DIR",
    "matrix --size 8M --time 30m --no-history DIR",
    "check --time 30m --no-history etcd DIR",
    "sweep --size=8M --no-history --rw=randwrite --runtime=30m --time_based --over bs=4k,8k",
];

/// The next one.
const NEXT: &str = "quick --size 8M --time 70ms --json --no-history .";

fn begin(dir: &Path, line: &str) -> Running {
    // A core dump would be something left as well.
    let mut command = Command::new("sh");
    let line = line.replace("DIR", ".");
    command.args(["-c", &format!("ulimit -c 0; exec \"$0\" {line}"), env!("CARGO_BIN_EXE_fiord")]);
    command.current_dir(dir);
    start(command)
}

fn own_directories(dir: &Path) -> Vec<PathBuf> {
    fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect()
}

/// Waits until a study has written something into its directory.
fn until_it_works(dir: &Path) -> PathBuf {
    let mut found = None;
    until("the study works", || {
        let own = own_directories(dir).into_iter().next();
        let is_written =
            |path: PathBuf| !path.ends_with("owner") && fs::metadata(path).is_ok_and(|file| file.len() > 0);
        found = own.filter(|own| {
            fs::read_dir(own).is_ok_and(|mut entries| {
                entries.any(|entry| entry.is_ok_and(|entry| is_written(entry.path())))
            })
        });
        found.is_some()
    });
    found.unwrap()
}

#[test]
fn what_a_study_leaves_that_is_ended_by_force_the_next_one_clears() {
    for line in LONG {
        for signals in [&["KILL"][..], &["QUIT"], &["INT", "INT"], &["INT", "INT", "INT"], &["TERM", "KILL"]]
        {
            let dir = Dir::new();
            let running = begin(dir.path(), line);
            let own = until_it_works(dir.path());
            let pid = running.0.id();
            for name in signals {
                // It may have ended by the one before.
                let _ = Command::new("kill").arg(format!("-{name}")).arg(pid.to_string()).output().unwrap();
            }
            finish(running);
            let was_left = own.exists();
            assert!(was_left || !["KILL", "QUIT"].contains(&signals[0]), "{line} {signals:?}");
            let next = dir.run(NEXT);
            next.assert_success();
            let remarks = next.json()["target"]["remarks"].to_string();
            assert_eq!(remarks.contains("cleared "), was_left, "{line} {signals:?}: {remarks}");
            let name = own.file_name().unwrap().to_str().unwrap();
            assert!(!was_left || remarks.contains(name), "{remarks}");
            assert!(is_empty(dir.path()), "{line} {signals:?}: {:?}", own_directories(dir.path()));
        }
    }
}

#[test]
fn a_study_that_goes_on_keeps_its_files() {
    let dir = Dir::new();
    let running = begin(dir.path(), LONG[0]);
    let own = until_it_works(dir.path());
    let text = dir.run("quick --size 8M --time 70ms --no-history .");
    text.assert_success();
    assert!(!text.stdout.contains("cleared"), "{text:?}");
    assert_eq!(own_directories(dir.path()), std::slice::from_ref(&own));
    assert!(own.join("data").exists());
    signal(running.0.id(), "INT");
    finish(running).assert_status(130);
    assert!(is_empty(dir.path()));
}

#[test]
fn names_that_somebody_has_are_left_to_him() {
    let dir = Dir::new();
    // Process numbers come again: those that the next runs may get are all taken.
    let me = std::process::id();
    for pid in me..me + 2000 {
        fs::create_dir(dir.join(&format!("fiord-quick-{pid}"))).unwrap();
    }
    let before = dir.contents();
    dir.run(NEXT).assert_success();
    assert!(dir.contents() == before);
}

#[test]
fn people_are_told_what_was_cleared() {
    let dir = Dir::new();
    let running = begin(dir.path(), LONG[0]);
    until_it_works(dir.path());
    signal(running.0.id(), "KILL");
    finish(running);
    for dry in ["quick --dry-run", "sweep --size=8M --dry-run --over bs=4k,8k"] {
        let before = dir.contents();
        dir.run(dry).assert_success();
        assert!(dir.contents() == before, "{dry} changes nothing");
    }
    let ran = dir.run("sweep --size=8M --rw=read --loops=1 --no-history --over bs=64k,1m");
    ran.assert_success().assert_says(&["Note    cleared /", "that a study left when it was"]);
    assert!(is_empty(dir.path()));
}
