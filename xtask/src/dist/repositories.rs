//! The directory of packages as a repository: of apt (`Packages`, `Release`) and of dnf (`repodata`).
//!
//! Signatures are not made here: whoever publishes signs `Release` and `repodata/repomd.xml`.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::tree::said;
use crate::{packages, repo};

/// What is made, and what makes it.
const PROGRAMS: [(&str, &str); 2] = [("apt-ftparchive", "apt-utils"), ("createrepo_c", "createrepo-c")];

/// Why they cannot be made here.
pub fn is_possible() -> Result<(), String> {
    packages::have_programs(&PROGRAMS)
}

/// Writes what apt and dnf read beside the packages of the directory.
pub fn write(directory: &Path) -> Result<(), String> {
    is_possible()?;
    let archive = |words: &[&str]| {
        let mut command = Command::new("apt-ftparchive");
        command.current_dir(directory).args(words);
        repo::output_of(command)
    };
    let put = |name: &str, text: String| {
        let path = directory.join(name);
        fs::write(&path, text).map_err(|error| said(&path, &error))
    };
    put("Packages", archive(&["packages", "."])?)?;
    // An older one would be listed in the new one.
    put("Release", String::new())?;
    let told = ["Origin", "Label"].map(|key| format!("APT::FTPArchive::Release::{key}=fiord"));
    put("Release", archive(&["-o", &told[0], "-o", &told[1], "release", "."])?)?;
    let mut rpm = Command::new("createrepo_c");
    rpm.current_dir(directory).args(["--quiet", "."]);
    repo::output_of(rpm).map(drop)
}
