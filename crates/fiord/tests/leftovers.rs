//! Studies that are killed, and the next one in the same directory.
//!
//! Invariant: after the next study nothing is left, and removed files have been reported; files in use are not touched.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use crate::common::study::is_empty;
use crate::common::{Dir, Running, finish, signal, start, until};

/// Each study in a given directory, running until it is killed: a disk that others use must not end it.
const LONG: [&str; 4] = [
    "quick --trust=off --size 8M --time 30m --no-history DIR",
    "matrix --trust=off --size 8M --time 30m --no-history DIR",
    "check --trust=off --time 30m --no-history etcd DIR",
    "sweep --trust=off --size=8M --no-history --rw=randwrite --runtime=30m --time_based --over bs=4k,8k",
];

/// The next one.
const NEXT: &str = "quick --size 8M --time 70ms --json --no-history .";

fn begin(dir: &Path, line: &str) -> Running {
    // A core dump would be left behind, too.
    let mut command = crate::common::with_own_history("env");
    let line = line.replace("DIR", ".");
    // Programs in the background of a script inherit that SIGQUIT is ignored.
    command.args(["--default-signal=QUIT", "sh", "-c", &format!("ulimit -c 0; exec \"$0\" {line}")]);
    command.arg(env!("CARGO_BIN_EXE_fiord"));
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
            |path: PathBuf| !path.ends_with(".owner") && fs::metadata(path).is_ok_and(|file| file.len() > 0);
        found = own.filter(|own| {
            fs::read_dir(own).is_ok_and(|mut entries| {
                entries.any(|entry| entry.is_ok_and(|entry| is_written(entry.path())))
            })
        });
        found.is_some()
    });
    found.unwrap()
}

/// Waits until nothing of a killed study is in flight: the kernel closes its files, and ends its I/O, a little after the
/// process has ended.
fn until_released(dir: &Dir) {
    until("the study's files are closed", || {
        let before = dir.contents();
        thread::park_timeout(Duration::from_millis(50));
        let is_free = |path: &Path| fs::File::open(path).is_ok_and(|file| file.try_lock().is_ok());
        let mut marks = before.iter().map(|(path, _)| path).filter(|path| path.ends_with(".owner"));
        marks.all(|mark| is_free(mark)) && dir.contents() == before
    });
}

#[test]
fn files_left_by_a_killed_study_are_removed_by_the_next() {
    for line in LONG {
        for signals in [&["KILL"][..], &["QUIT"], &["INT", "INT"], &["INT", "INT", "INT"], &["TERM", "KILL"]]
        {
            let dir = Dir::new();
            let running = begin(dir.path(), line);
            let own = until_it_works(dir.path());
            let pid = running.0.id();
            for name in signals {
                // The previous signal may have ended it.
                let _ = Command::new("kill").arg(format!("-{name}")).arg(pid.to_string()).output().unwrap();
            }
            finish(running);
            until_released(&dir);
            // A signal may end it after the directory and before its mark, which lies beside it then.
            let was_left = !is_empty(dir.path());
            assert!(was_left || !["KILL", "QUIT"].contains(&signals[0]), "{line} {signals:?}");
            let next = dir.run(NEXT);
            next.assert_success();
            let remarks = next.json()["target"]["remarks"].to_string();
            assert_eq!(
                remarks.contains("left by a study that was killed"),
                was_left,
                "{line} {signals:?}: {remarks}"
            );
            let name = own.file_name().unwrap().to_str().unwrap();
            assert!(!was_left || remarks.contains(name), "{remarks}");
            assert!(is_empty(dir.path()), "{line} {signals:?}: {:?}", own_directories(dir.path()));
        }
    }
}

#[test]
fn a_running_study_keeps_its_files() {
    let dir = Dir::new();
    let running = begin(dir.path(), LONG[0]);
    let own = until_it_works(dir.path());
    let text = dir.run("quick --size 8M --time 70ms --no-history .");
    text.assert_success();
    assert!(!text.stdout.contains("left by a study"), "{text:?}");
    assert_eq!(own_directories(dir.path()), std::slice::from_ref(&own));
    assert!(own.join("data").exists());
    signal(running.0.id(), "INT");
    finish(running).assert_status(130);
    assert!(is_empty(dir.path()));
}

#[test]
fn names_already_in_use_are_left_alone() {
    let dir = Dir::new();
    // Process numbers are reused: all those that the next runs may get are taken.
    let me = std::process::id();
    for pid in me..me + 2000 {
        fs::create_dir(dir.join(&format!("fiord-quick-{pid}"))).unwrap();
    }
    let before = dir.contents();
    dir.run(NEXT).assert_success();
    assert!(dir.contents() == before);
}

#[test]
fn removed_files_are_reported() {
    let dir = Dir::new();
    let running = begin(dir.path(), LONG[0]);
    until_it_works(dir.path());
    signal(running.0.id(), "KILL");
    finish(running);
    until_released(&dir);
    for dry in ["quick --dry-run", "sweep --size=8M --dry-run --over bs=4k,8k"] {
        let before = dir.contents();
        dir.run(dry).assert_success();
        assert!(dir.contents() == before, "{dry} changes nothing");
    }
    let ran = dir.run("sweep --size=8M --rw=read --loops=1 --no-history --over bs=64k,1m");
    let words: Vec<&str> = ran.assert_success().stdout.split_whitespace().collect();
    assert!(words.join(" ").contains("left by a study that was killed"), "{ran:?}");
    ran.assert_prints(&["Note    removed"]);
    assert!(is_empty(dir.path()));
}
