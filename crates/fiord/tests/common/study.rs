//! Helpers of the tests of studies: masked figures, and an ordinary user.
//!
//! Invariant: what is masked are figures alone; words and the order of lines stay.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::{Dir, Ran, assert_fits_terminal, finish, helper, root, start, words};

/// A text with each figure and its unit as `#`, each bar as `=`, and single blanks. Words keep their digits (`4k`,
/// `p99`), and so do all figures before the table.
pub fn masked(text: &str) -> String {
    let word = |word: &str| {
        let unit = word.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        let bar = !word.is_empty() && word.chars().all(|c| ('\u{2581}'..='\u{258f}').contains(&c));
        match () {
            () if bar => "=".to_string(),
            () if unit.len() < word.len() && ["", "ns", "us", "ms", "s"].contains(&unit) => "#".to_string(),
            () => word.to_string(),
        }
    };
    let line = |line: &str| line.split_whitespace().map(word).collect::<Vec<_>>().join(" ");
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// The binary where every user may run it, and a directory where every user may write. Needs root.
pub fn public(parent: &Path) -> Result<(Dir, PathBuf), String> {
    root()?;
    let dir = Dir::under(parent)?;
    helper("chmod", &["777", &dir.path().to_string_lossy()])?;
    let binary = program_in(&dir)?;
    Ok((dir, binary))
}

/// A copy of the program. Another process writes it: a child of this one, started meanwhile by another test, would have it
/// open for writing as well, and no program is executed that anybody writes (`ETXTBSY`).
pub fn program_in(dir: &Dir) -> Result<PathBuf, String> {
    let copy = dir.join("fiord");
    helper("cp", &[env!("CARGO_BIN_EXE_fiord"), &copy.to_string_lossy()])?;
    Ok(copy)
}

/// Runs the public binary as an unprivileged user.
pub fn as_ordinary_user(dir: &Dir, binary: &Path, line: &str) -> Ran {
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(binary);
    command.args(words(line)).current_dir(dir.path());
    // Not root's history.
    command.env("XDG_STATE_HOME", dir.join("state"));
    finish(start(command))
}

/// Checks that a run succeeded and that each of its lines fits a terminal.
#[track_caller]
pub fn assert_fits(ran: &Ran) {
    ran.assert_success();
    assert_fits_terminal(&ran.stdout);
}

/// The values of a column in a study's JSON, row by row.
pub fn column<'d>(document: &'d Value, key: &str) -> Vec<&'d str> {
    document["rows"].as_array().unwrap().iter().map(|row| row[key].as_str().unwrap()).collect()
}

/// Whether no files were left behind.
pub fn is_empty(directory: &Path) -> bool {
    fs::read_dir(directory).unwrap().next().is_none()
}

/// Checks that the real fio accepts the job files of a dry run.
///
/// # Errors
/// There is no fio here.
pub fn fio_takes(dir: &Dir, job_files: &str) -> Result<(), String> {
    helper("fio", &["--version"])?;
    dir.write("dry.fio", job_files);
    let path = dir.join("dry.fio");
    helper("fio", &["--parse-only", &path.to_string_lossy()]).unwrap();
    fs::remove_file(path).unwrap();
    Ok(())
}
