//! The directory of artefacts: what they are called there, the archives, and the sums of all.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::tree::{Tree, said};
use crate::{repo, stage};

pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Where artefacts are put.
pub fn directory() -> Result<PathBuf, String> {
    let directory = repo::target_dir().join("packages");
    fs::create_dir_all(&directory).map_err(|error| said(&directory, &error))?;
    Ok(directory)
}

/// Runs a command of which only errors are of interest.
pub fn quietly(command: Command) -> Result<(), String> {
    repo::output_of(command).map(drop)
}

/// The file name of the archive for a processor.
pub fn archive_name(processor: &str) -> String {
    format!("fiord-{VERSION}-{processor}-linux.tar.gz")
}

/// An archive of a binary and of the tree's pages, for these systems.
pub fn pack(tree: &Tree, binary: &Path, systems: &str) -> Result<PathBuf, String> {
    let name = format!("fiord-{VERSION}-{}-{systems}", tree.processor.name);
    let path = directory()?.join(format!("{name}.tar.gz"));
    let root = repo::root();
    let mut command = Command::new("tar");
    // The same bytes for the same files, whoever packs them.
    command
        .args([
            "--sort=name",
            "--owner=0",
            "--group=0",
            "--numeric-owner",
            "--mtime=@0",
            "--exclude=*.1.gz",
            "-czf",
        ])
        .arg(&path)
        .args([&format!("--transform=s,^,{name}/,"), "-C"])
        .arg(binary.parent().unwrap_or(&root))
        .args(["fiord", "-C"])
        .arg(&tree.directory)
        .args(["man", "completions", "-C"])
        .arg(&root)
        .args(["LICENSE-APACHE", "LICENSE-MIT", "README.md", "CHANGELOG.md"]);
    quietly(command)?;
    Ok(path)
}

/// `SHA256SUMS` of these files and of those that it has and that are there, such as another processor's; as
/// `sha256sum --check` reads it.
pub fn write_sums(paths: &[PathBuf]) -> Result<(), String> {
    if paths.is_empty() {
        return Ok(());
    }
    let directory = directory()?;
    let path = directory.join("SHA256SUMS");
    let before = fs::read_to_string(&path).unwrap_or_default();
    let before =
        before.lines().filter_map(|line| line.split_once("  ")).map(|(_, name)| directory.join(name));
    let files: BTreeSet<PathBuf> = before.filter(|file| file.exists()).chain(paths.iter().cloned()).collect();
    let mut command = Command::new("sha256sum");
    command.current_dir(&directory).args(files.iter().filter_map(|file| file.file_name()));
    fs::write(&path, repo::output_of(command)?).map_err(|error| said(&path, &error))?;
    let mut check = Command::new("sha256sum");
    check.current_dir(&directory).args(["--check", "--quiet", "SHA256SUMS"]);
    stage::command(check)
}
