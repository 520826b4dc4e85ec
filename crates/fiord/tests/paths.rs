//! Paths that hold what a job file takes for something else, through every study and subcommand that takes one.
//!
//! Invariant: a directory full of precious neighbours, named as a path would be if it were cut, expanded, split, trimmed
//! or read as other text, is byte for byte what it was before.

#![allow(clippy::unwrap_used, reason = "tests panic when something is wrong")]

mod common;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::study::is_empty;
use common::{Dir, Ran, finish, helper, start};

/// What follows this in a path of a test is the path of the test's directory.
const HERE: &[u8] = b"HERE";

/// Names and paths of directories, below the test's.
const DANGEROUS: [&[u8]; 24] = [
    b"a;b",
    b"a#b",
    b"a\nfilename=HERE/victim;",
    b"a\n[b]\nrw=write\nfilename=HERE/victim#",
    b"a\nunlink=1",
    b"x$ncpus",
    b"x${HOME}y",
    b"x${F}",
    b"$jobname.$jobnum",
    b"a:b",
    b":",
    b"a\\:b",
    b"a\\",
    b" a",
    b"a ",
    b"a\t",
    b"\"a\"",
    b"'a'",
    b"[a]",
    b"-a",
    b"-",
    b"a,b=c%d*e?",
    b"\xff\xfe",
    b"a\x01\x1b[2J\r",
];

fn os(bytes: &[u8]) -> OsString {
    OsStr::from_bytes(bytes).to_os_string()
}

/// The name below the directory, with the directory's own path where it says `HERE`.
fn below(dir: &Dir, name: &[u8]) -> PathBuf {
    let here = dir.path().as_os_str().as_bytes();
    let at = name.windows(HERE.len()).position(|part| part == HERE);
    let name = match at {
        Some(at) => [&name[..at], here, &name[at + HERE.len()..]].concat(),
        None => name.to_vec(),
    };
    // Not `join`: the name is never absolute.
    PathBuf::from(os(&[here, b"/", &name].concat()))
}

/// What a name could be taken for.
fn mistaken(name: &[u8]) -> Vec<Vec<u8>> {
    let lossy = String::from_utf8_lossy(name);
    let mut names: Vec<Vec<u8>> = (1..name.len()).map(|length| name[..length].to_vec()).collect();
    names.extend((1..name.len()).map(|start| name[start..].to_vec()));
    names.extend(name.split(|byte| b":;#\n,= ".contains(byte)).map(<[u8]>::to_vec));
    names.push(lossy.trim().as_bytes().to_vec());
    names.push(lossy.replace('\\', "").into_bytes());
    names.push(lossy.replace(['"', '\''], "").into_bytes());
    for cpus in 1..=64 {
        names.push(lossy.replace("$ncpus", &cpus.to_string()).into_bytes());
    }
    names.push(lossy.replace("${HOME}", "home").replace("${F}", "other").into_bytes());
    names.push(lossy.replace("$jobname", "a").replace("$jobnum", "0").into_bytes());
    names.push(lossy.into_owned().into_bytes());
    names.extend([b"victim".to_vec(), b"data".to_vec(), b"x".to_vec(), b"b".to_vec()]);
    names.retain(|other| {
        !other.is_empty() && other != name && other != b"." && other != b".." && !other.contains(&b'/')
    });
    names
}

/// The directory of this dangerous name, among its precious neighbours.
fn among_neighbours(dir: &Dir, name: &[u8]) -> PathBuf {
    let path = below(dir, name);
    fs::create_dir_all(&path).unwrap();
    for neighbour in mistaken(name) {
        let neighbour = dir.path().join(os(&neighbour));
        if !neighbour.exists() {
            fs::write(&neighbour, neighbour.as_os_str().as_bytes()).unwrap();
        }
    }
    path
}

fn run(dir: &Dir, subcommand: &str, path: &Path, rest: &str) -> Ran {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fiord"));
    command.args(subcommand.split_whitespace()).args(rest.split_whitespace()).arg("--").arg(path);
    command.current_dir(dir.path()).env("HOME", "home").env("F", "other");
    command.env("XDG_STATE_HOME", Path::new(env!("CARGO_TARGET_TMPDIR")).join("paths-state"));
    finish(start(command))
}

#[test]
fn studies_write_to_their_own_files_whatever_a_directory_is_called() {
    for name in DANGEROUS {
        let dir = Dir::new();
        let path = among_neighbours(&dir, name);
        let before = dir.contents();
        for study in ["quick --time 70ms", "matrix --time 10ms --bs 4k --rw randrw"] {
            let ran = run(&dir, study, &path, "--size 8M --json");
            ran.assert_success();
            assert_eq!(ran.json()["complete"], true, "{ran:?}");
            assert!(dir.contents() == before, "{study} {path:?}");
        }
        assert!(is_empty(&path));
    }
}

#[test]
fn profiles_write_to_their_own_files_whatever_a_directory_is_called() {
    for name in [DANGEROUS[0], DANGEROUS[2], DANGEROUS[5], DANGEROUS[9], DANGEROUS[22]] {
        let dir = Dir::new();
        let path = among_neighbours(&dir, name);
        let before = dir.contents();
        for profile in ["etcd", "rocksdb", "oltp"] {
            let mut command = Command::new(env!("CARGO_BIN_EXE_fiord"));
            command.args(["check", "--time", "300ms", "--size", "8M", "--json", "--no-history", profile]);
            command.arg("--").arg(&path).current_dir(dir.path());
            let ran = finish(start(command));
            assert_eq!(ran.json()["complete"], true, "{ran:?}");
            assert!(dir.contents() == before, "{profile} {path:?}");
        }
    }
}

#[test]
fn a_sweep_without_files_works_in_a_directory_of_any_name() {
    for name in DANGEROUS {
        let dir = Dir::new();
        let path = among_neighbours(&dir, name);
        let before = dir.contents();
        let mut command = Command::new(env!("CARGO_BIN_EXE_fiord"));
        command.args(["sweep", "--rw=write", "--size=8M", "--over", "bs=64k,1m", "--time", "20ms", "--json"]);
        let ran = finish(start({
            command.current_dir(&path);
            command
        }));
        ran.assert_success();
        assert_eq!(ran.json()["complete"], true, "{ran:?}");
        assert!(dir.contents() == before, "{path:?}");
    }
}

#[test]
fn files_of_any_name_are_only_read() {
    for name in DANGEROUS {
        let dir = Dir::new();
        let path = among_neighbours(&dir, name).join("data");
        fs::File::create(&path).unwrap().set_len(8 << 20).unwrap();
        let before = dir.contents();
        for subcommand in ["quick --time 20ms", "matrix --time 10ms --bs 4k --rw randrw,read"] {
            let ran = run(&dir, subcommand, &path, "--json --no-history");
            ran.assert_success();
            assert_eq!(ran.json()["target"]["writable"], false);
        }
        run(&dir, "devices", &path, "--json").assert_success();
        let text = run(&dir, "devices", &path, "");
        text.assert_success();
        let control = |c: char| c.is_control() && c != '\n';
        assert!(!text.stdout.contains(control), "{text:?}");
        assert!(dir.contents() == before, "{path:?}");
    }
}

/// What the command line of a run names, that of a sweep names as well.
#[test]
fn a_sweep_names_the_files_that_a_run_names() {
    for name in DANGEROUS.into_iter().filter(|name| !name.contains(&b'/')) {
        let Ok(name) = std::str::from_utf8(name) else { continue };
        if name.contains("HERE") {
            continue;
        }
        let written = |line: &[&str]| {
            let dir = Dir::new();
            for neighbour in mistaken(name.as_bytes()) {
                fs::write(dir.path().join(os(&neighbour)), &neighbour).unwrap();
            }
            let before = dir.contents();
            let mut command = Command::new(env!("CARGO_BIN_EXE_fiord"));
            command
                .args(line)
                .args(["--rw=write", "--size=64k", "--loops=1"])
                .arg(format!("--filename={name}"));
            let ran = finish(start({
                command.current_dir(dir.path()).env("F", "other");
                command
            }));
            let changed = |(path, bytes): (PathBuf, Vec<u8>)| {
                let name = path.strip_prefix(dir.path()).unwrap().to_path_buf();
                (!before.contains(&(path, bytes))).then_some(name)
            };
            (ran.status, dir.contents().into_iter().filter_map(changed).collect::<Vec<_>>())
        };
        let by_run = written(&["--name=a", "--no-history", "--output=/dev/null"]);
        assert_eq!(written(&["sweep", "--over", "bs=4k,8k", "--name=a"]), by_run, "{name:?}");
    }
}

#[test]
fn a_dry_run_prints_what_reads_back_or_says_why_not() {
    for name in DANGEROUS {
        let dir = Dir::new();
        let path = among_neighbours(&dir, name);
        let before = dir.contents();
        let ran = run(&dir, "quick", &path, "--size 8M --dry-run");
        match ran.status {
            Some(0) => {
                let lines: Vec<&str> =
                    ran.stdout.lines().filter(|line| line.starts_with("filename=")).collect();
                assert_eq!(lines.len(), 8, "{ran:?}");
                let expected = path.to_str().unwrap().replace(':', "\\:");
                assert!(lines.iter().all(|line| line["filename=".len()..].starts_with(&expected)), "{ran:?}");
            }
            _ => {
                ran.assert_status(1).assert_says(&["cannot be written in a job file: "]);
                assert_eq!(ran.stdout, "");
            }
        }
        assert!(dir.contents() == before);
    }
}

#[test]
fn arguments_that_are_not_text_are_refused_with_their_place() {
    let dir = Dir::new();
    let lossy = String::from_utf8_lossy(b"a\xff").into_owned();
    dir.write(&lossy, "precious");
    for (line, place) in [
        (&["--name=a", "--rw=write", "--size=4k"][..], "argument 4"),
        (&["sweep", "--over", "bs=4k", "--rw=write"], "argument 5"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fiord"));
        command.args(line).arg(os(b"--filename=a\xff")).current_dir(dir.path());
        let ran = finish(start(command));
        ran.assert_status(1).assert_says(&[place, "is not UTF-8", r"--filename=a\xff"]);
        assert_eq!(dir.text(&lossy), "precious");
    }
    // The sweep's own option takes any path.
    let mut command = Command::new(env!("CARGO_BIN_EXE_fiord"));
    command.args(["sweep", "--over", "bs=4k,8k", "--size=8M", "--time", "20ms", "--plot"]).arg(os(b"a\xff"));
    finish(start({
        command.current_dir(dir.path());
        command
    }))
    .assert_success();
    assert_eq!(dir.text(&lossy), "precious");
    assert!(fs::read(dir.path().join(os(b"a\xff"))).unwrap().starts_with(b"<svg "));
}

/// Paths that look alike are not the same to the history.
#[test]
fn the_history_tells_paths_apart() {
    let dir = Dir::new();
    let state = Dir::new();
    let names: [&[u8]; 5] = [b"a\xff", b"a\\xff", "a\u{fffd}".as_bytes(), b"a\n", b"a\\n"];
    let fiord = |words: &[&str], name: &[u8]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fiord"));
        command.args(words).arg(dir.path().join(os(name))).env("XDG_STATE_HOME", state.path());
        command.current_dir(dir.path());
        let ran = finish(start(command));
        ran.assert_success();
        ran
    };
    for name in names {
        fs::create_dir(dir.path().join(os(name))).unwrap();
        fiord(&["quick", "--size", "8M", "--time", "70ms"], name);
    }
    for (number, name) in names.into_iter().enumerate() {
        let listed = fiord(&["history", "--json", "--target"], name).json();
        let runs: Vec<_> = listed["runs"].as_array().unwrap().iter().collect();
        assert_eq!(runs.len(), 1, "{name:?}: {runs:?}");
        // Each study keeps its runs below its own number.
        let ids = |index: usize| {
            fiord(&["history", "--json", "--target"], names[index]).json()["runs"][0]["id"].as_u64()
        };
        assert!(number == 0 || ids(number) > ids(number - 1));
        // The command can be pasted into a shell.
        let command = runs[0]["command"].as_str().unwrap();
        let echo = helper("bash", &["-c", &format!("printf %s {}", command.split_once(" 70ms ").unwrap().1)]);
        let expected = dir.path().join(os(name));
        let bytes = echo.unwrap();
        assert_eq!(
            bytes.trim(),
            String::from_utf8_lossy(expected.as_os_str().as_bytes()).trim(),
            "{command}"
        );
    }
}
