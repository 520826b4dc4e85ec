//! Paths and files of the repository.
//!
//! Invariant: every path returned is relative to the root, with `/`, so that lists compare as text.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The directory of the workspace's Cargo.toml.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// Cargo's target directory.
pub fn target_dir() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// A command that runs in the root.
pub fn command(program: &str, args: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(args).current_dir(root());
    command
}

/// The cargo that runs this chore, in the environment that cargo has in a shell: what it has told this program of its own
/// package would make the build scripts that look at it, such as ring's, run again, and all that depends on them.
pub fn cargo(args: &[&str]) -> Command {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_string());
    let mut command = command(&cargo, args);
    let of_package = |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(of_package)) {
        command.env_remove(name);
    }
    command
}

/// Options of cargo that leave the crates with the loops without optimization, for programs that do little I/O: it takes
/// longer than they run, and with a sanitizer it is most of the compiler's time.
pub const UNOPTIMIZED_LOOPS: [&str; 6] = [
    "--config",
    "profile.dev.package.fiord-engine.opt-level=0",
    "--config",
    "profile.dev.package.fiord-sys.opt-level=0",
    "--config",
    "profile.dev.package.fiord-worker.opt-level=0",
];

/// Standard output of a command; its failure is the error.
pub fn output_of(mut command: Command) -> Result<String, String> {
    let shown = format!("{command:?}");
    let out = command.output().map_err(|error| format!("{shown}: {error}"))?;
    if !out.status.success() {
        return Err(format!("{shown}: {}\n{}", out.status, String::from_utf8_lossy(&out.stderr)));
    }
    String::from_utf8(out.stdout).map_err(|error| format!("{shown}: {error}"))
}

/// The compiler's default target.
pub fn host() -> Result<String, String> {
    let version = output_of(command("rustc", &["-vV"]))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(String::from).ok_or_else(|| "rustc -vV names no host".to_string())
}

/// A number of the current commit, by which it chooses its share of work.
pub fn commit_number() -> Result<u64, String> {
    let commit = output_of(command("git", &["rev-parse", "HEAD"]))?;
    let number = commit.get(..8).and_then(|digits| u64::from_str_radix(digits, 16).ok());
    number.ok_or_else(|| format!("git rev-parse HEAD: {commit:?} is not a commit"))
}

/// Files that belong to the project: tracked, or new and not ignored.
pub fn files() -> Result<Vec<String>, String> {
    let list = output_of(command("git", &["ls-files", "-z", "--cached", "--others", "--exclude-standard"]))?;
    let mut files: Vec<String> = list
        .split('\0')
        .filter(|file| !file.is_empty() && root().join(file).is_file())
        .map(String::from)
        .collect();
    files.sort();
    files.dedup();
    Ok(files)
}

/// The path relative to the root, if it is below it.
pub fn relative(path: &str) -> String {
    let path = Path::new(path);
    path.strip_prefix(root()).unwrap_or(path).to_string_lossy().into_owned()
}

/// The text of a file; `None` if it does not exist or is not text.
pub fn read(path: &str) -> Option<String> {
    fs::read_to_string(root().join(path)).ok()
}

/// Replaces a file's text.
pub fn write(path: &str, text: &str) -> Result<(), String> {
    fs::write(root().join(path), text).map_err(|error| format!("{path}: {error}"))
}
