//! The result of a program, and of both programs on one case.
//!
//! Invariant: a run longer than `RUN_TIME_MAX` is killed and fails its case, so that the suite never hangs.

use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::raw;
use crate::versions::Version;

/// fiord's message for options and engines that are known but not built.
const NOT_BUILT: &str = "known to fio, not built into fiord yet";

const RUN_TIME_MAX: Duration = Duration::from_secs(60);
/// Part of the error about a program that did not end.
pub const STILL_RUNNING: &str = "still running after";
const POLL: Duration = Duration::from_millis(3);

/// The workspace's target directory.
pub fn target_dir() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from)
}

/// A temporary directory.
pub struct Scratch(pub PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The results of both programs for one case.
pub struct Pair {
    /// fio's result.
    pub fio: Ran,
    /// fiord's result.
    pub fiord: Ran,
    /// fio, and fiord under the name of fio.
    pub programs: (PathBuf, PathBuf),
    /// fiord under its own name, for features beyond fio.
    pub fiord_itself: PathBuf,
    /// The version of fio.
    pub oracle: Version,
    /// The directory of the case.
    pub place: Scratch,
}

impl Pair {
    /// A directory for this case, next to those of its runs.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.place.0.join(name)
    }
}

/// The result of one run.
pub struct Ran {
    /// Exit status; 128 plus the signal's number if a signal killed it.
    pub status: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// The directory it ran in.
    pub dir: PathBuf,
    /// Whether text may precede the document: fio prints notes there, fiord must not (C5).
    pub notes_before_json: bool,
    json: OnceLock<Result<Value, String>>,
}

impl Ran {
    /// Standard output as one JSON document.
    pub fn json(&self) -> Result<&Value, String> {
        let parse = || match self.notes_before_json {
            true => {
                parse_json(raw::documents(&self.stdout).first().map_or(&self.stdout, |document| document))
            }
            false => parse_json(&self.stdout),
        };
        self.json.get_or_init(parse).as_ref().map_err(Clone::clone)
    }

    /// The document's jobs.
    pub fn jobs(&self) -> Result<&[Value], String> {
        self.json()?["jobs"]
            .as_array()
            .map(Vec::as_slice)
            .ok_or_else(|| "no \"jobs\" in the JSON".to_string())
    }

    /// The reason why fiord refused, if it did so only because something is not built.
    pub fn not_built(&self) -> Option<String> {
        let errors: Vec<&str> = self.stderr.lines().filter(|line| line.contains(": error: ")).collect();
        let only_that = !errors.is_empty() && errors.iter().all(|line| line.contains(NOT_BUILT));
        (self.status != 0 && only_that).then(|| errors.join("; "))
    }

    /// Output and messages, for the report of a failure.
    pub fn output(&self) -> String {
        let shortened = |text: &str| text.lines().take(12).collect::<Vec<_>>().join("\n      ");
        format!("exit {}\n      {}\n      {}", self.status, shortened(&self.stdout), shortened(&self.stderr))
    }

    /// Every regular file in the directory: relative path and size, sorted.
    pub fn files(&self) -> Result<Vec<(String, u64)>, String> {
        let mut found = Vec::new();
        walk(&self.dir, &self.dir, &mut found).map_err(|error| format!("{}: {error}", self.dir.display()))?;
        found.sort();
        Ok(found)
    }

    /// The text of a file in the directory.
    pub fn file(&self, name: &str) -> Result<String, String> {
        fs::read_to_string(self.dir.join(name)).map_err(|error| format!("{name}: {error}"))
    }
}

/// One document; the error shows where it is malformed.
pub fn parse_json(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| {
        let from = error.line().saturating_sub(3);
        let near: Vec<&str> = text.lines().skip(from).take(4).collect();
        format!("not JSON: {error}, near\n{}", near.join("\n"))
    })
}

fn walk(base: &Path, dir: &Path, found: &mut Vec<(String, u64)>) -> std::io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        if metadata.is_dir() {
            walk(base, &entry.path(), found)?;
        } else if metadata.is_file() {
            let path = entry.path();
            let name = path.strip_prefix(base).unwrap_or(&path).to_string_lossy().into_owned();
            found.push((name, metadata.len()));
        }
    }
    Ok(())
}

/// Runs a command to its end. Output goes to files next to `dir`, so that no pipe can fill up.
///
/// # Errors
/// If it cannot be started, or is killed because it does not end.
pub fn finish(command: Command, stdin: &str, dir: &Path) -> Result<Ran, String> {
    finish_within(command, stdin, dir, RUN_TIME_MAX)
}

fn finish_within(mut command: Command, stdin: &str, dir: &Path, time_max: Duration) -> Result<Ran, String> {
    let beside = |kind: &str| dir.with_extension(kind);
    let failed = |error: std::io::Error| format!("{command_name}: {error}", command_name = dir.display());
    fs::write(beside("in"), stdin).map_err(failed)?;
    command
        .stdin(File::open(beside("in")).map_err(failed)?)
        .stdout(File::create(beside("out")).map_err(failed)?)
        .stderr(File::create(beside("err")).map_err(failed)?);
    let mut child = command.spawn().map_err(|error| format!("{command:?}: {error}"))?;
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().map_err(failed)? {
            break status;
        }
        if start.elapsed() >= time_max {
            child.kill().map_err(failed)?;
            let _killed = child.wait();
            return Err(format!("{command:?}: {STILL_RUNNING} {} s", time_max.as_secs()));
        }
        std::thread::sleep(POLL);
    };
    let text = |kind: &str| fs::read(beside(kind)).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    Ok(Ran {
        status: status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)),
        stdout: text("out").map_err(failed)?,
        stderr: text("err").map_err(failed)?,
        dir: dir.to_path_buf(),
        notes_before_json: false,
        json: OnceLock::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(status: i32, stderr: &str) -> Ran {
        Ran {
            status,
            stdout: String::new(),
            stderr: stderr.to_string(),
            dir: PathBuf::new(),
            notes_before_json: false,
            json: OnceLock::new(),
        }
    }

    #[test]
    fn a_refusal_with_other_reasons_is_not_counted_as_not_built() {
        let unbuilt = format!("fiord: error: verify=md5: {NOT_BUILT}\n");
        assert!(ran(1, &unbuilt).not_built().is_some_and(|why| why.contains("md5")));
        assert_eq!(ran(0, &unbuilt).not_built(), None, "it ran");
        assert_eq!(ran(1, &format!("{unbuilt}fiord: error: bs=0: too small\n")).not_built(), None);
        assert_eq!(ran(1, "killed").not_built(), None);
    }

    #[test]
    fn a_program_that_does_not_end_is_killed_and_is_an_error() {
        let place = target_dir().join(format!("compat-test-{}", std::process::id()));
        fs::create_dir_all(&place).unwrap();
        let mut command = Command::new("sleep");
        command.arg("600");
        let ended = finish_within(command, "", &place.join("run"), Duration::ZERO);
        fs::remove_dir_all(&place).unwrap();
        assert!(ended.is_err_and(|why| why.contains("still running after 0 s")));
    }
}
