//! Root file systems with nothing but Debian's essential packages and apt, or with nothing at all, in which the package of a
//! repository is installed and run.
//!
//! Invariant: nothing of this machine is in it but the package, and it is removed afterwards.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::chroot;
use super::tree::{SHELLS, said};
use crate::{packages, repo, stage};

/// Which Debian, from the mirror that mmdebstrap takes by itself.
const SUITE: &str = "bookworm";

/// A profile of the root's own file system.
const PROFILE_ROOT: [&str; 7] = ["fiord", "quick", "--time", "10s", "--json", "--trust=off", "/root"];

/// Where the packages put completions; elvish has no such place.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "usr/share/bash-completion/completions"),
    ("zsh", "usr/share/zsh/vendor-completions"),
    ("fish", "usr/share/fish/vendor_completions.d"),
];

/// Why there can be no such root here.
pub fn is_possible() -> Result<(), String> {
    chroot::is_possible()?;
    packages::have_programs(&["mmdebstrap", "dnf", "rpm"].map(|program| (program, program)))
}

/// Makes a root with apt, which installs the package of the repository, and profiles the root's own file system with it.
pub fn by_apt(repository: &Path) -> Result<(), String> {
    let root = Root::new("clean-root")?;
    let mut make = Command::new("mmdebstrap");
    make.args(["--quiet", "--variant=apt", SUITE]).arg(&root.0);
    stage::command(make)?;
    let mut copy = Command::new("cp");
    copy.arg("-r").arg(repository).arg(root.0.join("packages"));
    stage::command(copy)?;
    let list = root.0.join("etc/apt/sources.list");
    std::fs::write(&list, "deb [trusted=yes] file:/packages ./\n").map_err(|error| said(&list, &error))?;
    for words in [&["update"][..], &["install", "--yes", "fiord"]] {
        repo::output_of(chroot::command(&root.0, &[&["apt-get", "-qq"], words].concat()))?;
    }
    root.has_pages()?;
    chroot::study(chroot::command(&root.0, &PROFILE_ROOT))
}

/// The same with an empty root and the package that dnf names, which rpm installs: what makes such packages says that they
/// need a shell, which this one does not and an empty root does not have.
pub fn by_rpm(repository: &Path) -> Result<(), String> {
    let root = Root::new("rpm-root")?;
    let mut dnf = Command::new("dnf");
    dnf.args(["--quiet", "--releasever=1", "--repo=fiord", "repoquery", "--location", "fiord"])
        .arg(format!("--repofrompath=fiord,file://{}", repository.display()))
        .arg(format!("--setopt=cachedir={}", root.0.join("cache").display()));
    let found = repo::output_of(dnf)?;
    let package = found.trim().strip_prefix("file://").ok_or_else(|| format!("dnf found {found:?}"))?;
    let mut rpm = Command::new("rpm");
    rpm.arg("--root").arg(&root.0).args(["--nodeps", "--install", package]);
    repo::output_of(rpm)?;
    root.study()
}

/// A binary that needs glibc, on the oldest Debian of the mirrors, which has 2.31.
pub fn of_oldest(binary: &Path) -> Result<(), String> {
    let root = Root::new("oldest-root")?;
    let mut make = Command::new("mmdebstrap");
    make.args(["--quiet", "--variant=extract", "--include=libc6", "bullseye"]).arg(&root.0);
    stage::command(make)?;
    let place = root.0.join("usr/bin");
    let copied = std::fs::create_dir_all(&place).and_then(|()| std::fs::copy(binary, place.join("fiord")));
    copied.map_err(|error| said(&place, &error))?;
    root.study()
}

/// The same with a package that is a tar file, as those of Arch Linux are, whose package manager is not on other systems.
pub fn by_tar(package: &Path) -> Result<(), String> {
    let root = Root::new("tar-root")?;
    std::fs::create_dir_all(&root.0).map_err(|error| said(&root.0, &error))?;
    let mut tar = Command::new("tar");
    tar.arg("-xf").arg(package).arg("-C").arg(&root.0);
    repo::output_of(tar)?;
    root.study()
}

struct Root(PathBuf);

impl Root {
    /// No such directory, below the target directory.
    fn new(name: &str) -> Result<Root, String> {
        let root = Root(repo::target_dir().join(name));
        root.remove().map(|()| root)
    }

    /// Profiles its own file system, where nothing else is.
    fn study(&self) -> Result<(), String> {
        for directory in ["proc", "sys", "root"] {
            let directory = self.0.join(directory);
            std::fs::create_dir_all(&directory).map_err(|error| said(&directory, &error))?;
        }
        chroot::study(chroot::command(&self.0, &PROFILE_ROOT))
    }

    /// Whether the pages and completions are where they are looked for.
    fn has_pages(&self) -> Result<(), String> {
        let completions = COMPLETIONS.iter().filter_map(|(shell, directory)| {
            let (_, file) = SHELLS.iter().find(|(name, _)| name == shell)?;
            Some(format!("{directory}/{file}"))
        });
        let pages = ["fiord", "fiord-quick", "fiord-crash-test"];
        let pages = pages.iter().map(|page| format!("usr/share/man/man1/{page}.1.gz"));
        for file in completions.chain(pages) {
            let size = std::fs::metadata(self.0.join(&file)).map_or(0, |found| found.len());
            if size == 0 {
                return Err(format!("the package does not have {file}"));
            }
        }
        Ok(())
    }

    fn remove(&self) -> Result<(), String> {
        match std::fs::remove_dir_all(&self.0) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(said(&self.0, &error)),
        }
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        // What remains is removed by the next stage.
        let _ = self.remove();
    }
}
