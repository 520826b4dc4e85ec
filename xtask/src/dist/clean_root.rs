//! A root file system with nothing but Debian's essential packages, in which a package is installed and run.
//!
//! Invariant: nothing of this machine is in it but the package, and it is removed afterwards.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::chroot;
use super::tree::{SHELLS, said};
use crate::{repo, stage};

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
    repo::output_of(repo::command("mmdebstrap", &["--version"]))
        .map(drop)
        .map_err(|_| "needs mmdebstrap: apt-get install mmdebstrap".to_string())
}

/// Makes a root, installs the package, and profiles the root's own file system with it.
pub fn install_and_run(package: &Path) -> Result<(), String> {
    let root = Root(repo::target_dir().join("clean-root"));
    root.remove()?;
    let mut make = Command::new("mmdebstrap");
    make.args(["--quiet", "--variant=essential", SUITE]).arg(&root.0);
    stage::command(make)?;
    std::fs::copy(package, root.0.join("fiord.deb")).map_err(|error| said(package, &error))?;
    stage::command(chroot::command(&root.0, &["dpkg", "--install", "/fiord.deb"]))?;
    root.has_pages()?;
    chroot::study(chroot::command(&root.0, &PROFILE_ROOT))
}

struct Root(PathBuf);

impl Root {
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
