//! Recipes by which other package managers install the archives of a release: Homebrew's formula, Arch Linux's PKGBUILD, and
//! a Nix flake. Made of those in packaging/recipes.
//!
//! Invariant: a recipe names archives of one version alone, with the digests that SHA256SUMS has.

use std::fs;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use fiord_sys::process::is_root;

use super::place::{VERSION, archive_name};
use super::processor::{self, Processor};
use super::tree::said;
use crate::{packages, repo};

const FORMULA: &str = "fiord.rb";
const PKGBUILD: &str = "PKGBUILD";
const FLAKE: &str = "flake.nix";

/// What checks them, and the packages that have it.
const PROGRAMS: [(&str, &str); 5] = [
    ("makepkg", "makepkg"),
    ("bsdtar", "libarchive-tools"),
    ("fakeroot", "fakeroot"),
    ("ruby", "ruby"),
    ("nix-instantiate", "nix-bin"),
];

/// Nobody: makepkg refuses to run as root.
const NOBODY: u32 = 65534;

/// Why they cannot be checked here.
pub fn is_possible() -> Result<(), String> {
    packages::have_programs(&PROGRAMS)
}

/// Writes the recipes beside the archives of the directory, and .SRCINFO as makepkg prints it.
pub fn write(directory: &Path) -> Result<(), String> {
    let digest = |processor: &Processor| {
        digest_in(directory, processor)?.ok_or_else(|| {
            let name = processor.name;
            format!("--recipes: needs the archive for {name}: cargo x dist --for {name} archive")
        })
    };
    fill(directory, digest)?;
    let workshop = Workshop::new(directory)?;
    let printed = repo::output_of(workshop.makepkg(&["--printsrcinfo"]))?;
    let path = directory.join(".SRCINFO");
    fs::write(&path, printed).map_err(|error| said(&path, &error))
}

/// Checks the recipes of the archive that is in the directory, and makes a package of it by the PKGBUILD: its path, which is
/// there as long as the workshop. Archives of other processors, which are not looked at here, need not be there.
pub fn check(directory: &Path) -> Result<(PathBuf, Workshop), String> {
    fill(directory, |processor| Ok(digest_in(directory, processor)?.unwrap_or_else(|| "0".repeat(64))))?;
    let path = |name: &str| directory.join(name).to_string_lossy().into_owned();
    repo::output_of(repo::command("ruby", &["-c", &path(FORMULA)]))?;
    repo::output_of(repo::command("nix-instantiate", &["--parse", &path(FLAKE)]))?;
    let workshop = Workshop::new(directory)?;
    let archive = archive_name(processor::ALL[0].name);
    // A source that is there is not downloaded.
    workshop.copy(&directory.join(&archive), &archive)?;
    repo::output_of(workshop.makepkg(&["--nodeps", "--noconfirm"]))?;
    let name = format!("fiord-bin-{VERSION}-1-{}.pkg.tar", processor::ALL[0].name);
    Ok((workshop.0.join(name), workshop))
}

/// Writes the recipes with the version, and the digest of the archive of each processor.
fn fill(directory: &Path, digest: impl Fn(&Processor) -> Result<String, String>) -> Result<(), String> {
    for name in [FORMULA, PKGBUILD, FLAKE] {
        let template = format!("packaging/recipes/{name}");
        let mut text = repo::read(&template).ok_or_else(|| format!("{template}: cannot be read"))?;
        text = text.replace("@VERSION@", VERSION);
        for processor in &processor::ALL {
            text = text.replace(&format!("@SHA256_{}@", processor.name), &digest(processor)?);
        }
        let path = directory.join(name);
        fs::write(&path, text).map_err(|error| said(&path, &error))?;
    }
    Ok(())
}

/// The digest of the archive for a processor; `None` if the directory has none.
fn digest_in(directory: &Path, processor: &Processor) -> Result<Option<String>, String> {
    let path = directory.join("SHA256SUMS");
    let sums = fs::read_to_string(&path).map_err(|error| said(&path, &error))?;
    let archive = archive_name(processor.name);
    let line = sums.lines().filter_map(|line| line.split_once("  ")).find(|(_, name)| *name == archive);
    Ok(line.map(|(digest, _)| digest.to_string()))
}

/// A directory of nobody's with the PKGBUILD, removed at the end.
pub struct Workshop(PathBuf);

impl Workshop {
    fn new(directory: &Path) -> Result<Workshop, String> {
        let workshop = Workshop(std::env::temp_dir().join(format!("fiord-makepkg-{}", std::process::id())));
        fs::create_dir(&workshop.0).map_err(|error| said(&workshop.0, &error))?;
        workshop.hand_over(&workshop.0)?;
        workshop.copy(&directory.join(PKGBUILD), PKGBUILD)?;
        Ok(workshop)
    }

    fn copy(&self, from: &Path, name: &str) -> Result<(), String> {
        let to = self.0.join(name);
        fs::copy(from, &to).map_err(|error| said(from, &error))?;
        self.hand_over(&to)
    }

    /// Gives a file to nobody, if this is root.
    fn hand_over(&self, path: &Path) -> Result<(), String> {
        let given = if is_root() { chown(path, Some(NOBODY), Some(NOBODY)) } else { Ok(()) };
        given.map_err(|error| said(path, &error))
    }

    fn makepkg(&self, words: &[&str]) -> Command {
        let mut command = repo::command("makepkg", words);
        // Elsewhere than on Arch Linux there is no pacman, and nothing that it would be asked.
        command.current_dir(&self.0).env("HOME", &self.0).env("PACMAN", "true").env("PKGEXT", ".pkg.tar");
        if is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    }
}

impl Drop for Workshop {
    fn drop(&mut self) {
        // Nothing depends on its removal: the next has another name.
        let _ = fs::remove_dir_all(&self.0);
    }
}
