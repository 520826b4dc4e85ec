//! What was downloaded and unpacked, not installed.
//!
//! Invariant: a directory of unpacked packages is there with all of them, or not at all.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::repo;

/// Shared by all clones of the repository.
pub fn cache() -> PathBuf {
    let home = || PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".cache");
    std::env::var_os("XDG_CACHE_HOME").map_or_else(home, PathBuf::from).join("fiord/guest")
}

/// Downloads packages of Debian 12 (of a kernel's name without a version the newest), of this suite and for an architecture (this machine's if it is none), and unpacks them into a
/// directory. The system's own list of sources stays as it is.
///
/// # Errors
/// The step that failed.
pub fn debian(dir: &Path, suite: &str, architecture: Option<&str>, packages: &[&str]) -> Result<(), String> {
    let source = format!(
        "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian {suite} main\n"
    );
    unpack(dir, |incomplete| {
        let written = fs::create_dir_all(incomplete.join("lists/partial"))
            .and_then(|()| fs::write(incomplete.join("sources.list"), &source));
        written.map_err(|error| format!("{}: {error}", incomplete.display()))?;
        let own = |key: &str, name: &str| format!("-o{key}={}", incomplete.join(name).display());
        let apt = |program: &str, args: &[&str]| {
            let mut command = repo::command(program, &["-qq", "-oDir::Etc::sourceparts=/dev/null"]);
            command.args([own("Dir::Etc::sourcelist", "sources.list"), own("Dir::State::lists", "lists")]);
            if let Some(architecture) = architecture {
                let setting = |key: &str| format!("-oAPT::{key}={architecture}");
                command.args([setting("Architecture"), setting("Architectures::")]);
            }
            command.args(args).current_dir(incomplete);
            repo::output_of(command)
        };
        apt("apt-get", &["update"])?;
        for package in packages {
            let depends = if package.starts_with("linux-image-") {
                apt("apt-cache", &["depends", package])?
            } else {
                String::new()
            };
            apt("apt-get", &["download", newest(&depends).unwrap_or(package)])?;
        }
        Ok(())
    })
}

/// The package that one of Debian's kernels stands for, which depends on the newest of them: by what `apt-cache depends` prints.
pub fn newest(depends: &str) -> Option<&str> {
    depends.lines().find_map(|line| line.trim().strip_prefix("Depends: "))
}

/// Unpacks packages into a directory, which exists only with all of them. `fetch` puts their files into the directory that it
/// is given.
pub fn unpack(dir: &Path, fetch: impl FnOnce(&Path) -> Result<(), String>) -> Result<(), String> {
    let incomplete = dir.with_extension("incomplete");
    let failed = |error: io::Error| format!("{}: {error}", incomplete.display());
    let _ = fs::remove_dir_all(&incomplete);
    fs::create_dir_all(&incomplete).map_err(failed)?;
    fetch(&incomplete)?;
    let files = fs::read_dir(&incomplete).map_err(failed)?.flatten().map(|entry| entry.path());
    for file in files.filter(|path| path.extension().is_some_and(|extension| extension == "deb")) {
        let unpacked = repo::command("dpkg", &["-x", &file.to_string_lossy(), &incomplete.to_string_lossy()]);
        repo::output_of(unpacked)?;
        fs::remove_file(&file).map_err(failed)?;
    }
    let _ = fs::remove_dir_all(dir);
    fs::rename(&incomplete, dir).map_err(failed)
}
