//! A root file system with nothing but Debian's essential packages, in which a package is installed and run.
//!
//! Invariant: nothing of this machine is in it but the package, and it is removed afterwards.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::tree::{SHELLS, said};
use crate::{repo, stage};

/// Which Debian, from the mirror that mmdebstrap takes by itself.
const SUITE: &str = "bookworm";

/// Runs its arguments in the root named first, with what fiord reads of the kernel.
const ENTER: &str =
    r#"mount -t proc proc "$0/proc" && mount -t sysfs -o ro sysfs "$0/sys" && exec chroot "$0" "$@""#;

/// Where the packages put completions; elvish has no such place.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "usr/share/bash-completion/completions"),
    ("zsh", "usr/share/zsh/vendor-completions"),
    ("fish", "usr/share/fish/vendor_completions.d"),
];

/// Why there can be no such root here.
pub fn is_possible() -> Result<(), String> {
    let id = repo::output_of(repo::command("id", &["-u"]))?;
    if id.trim() != "0" {
        return Err("needs root, for chroot".to_string());
    }
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
    stage::command(root.command(&["dpkg", "--install", "/fiord.deb"]))?;
    root.has_pages()?;
    root.profiles_itself()
}

struct Root(PathBuf);

impl Root {
    /// A command in the root, with nothing of this environment. What it needs mounted is gone with it.
    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new("unshare");
        command
            .args(["--mount", "sh", "-c", ENTER])
            .arg(&self.0)
            .args(words)
            .env_clear()
            .env("HOME", "/root");
        command.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
        command
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

    /// `fiord quick`, whose report has the rates that were measured.
    fn profiles_itself(&self) -> Result<(), String> {
        let line = ["fiord", "quick", "--time", "10s", "--json", "--trust=off", "/root"];
        let report = repo::output_of(self.command(&line))?;
        let report: serde_json::Value =
            serde_json::from_str(&report).map_err(|error| format!("{line:?}: {error}: {report}"))?;
        let rows = report["rows"].as_array().map_or(0, Vec::len);
        let all_measured = |rows: &Vec<serde_json::Value>| {
            rows.iter().all(|row| row["iops"].as_f64().is_some_and(|iops| iops > 0.0))
        };
        match report["rows"].as_array().is_some_and(all_measured) && rows > 0 {
            true => Ok(()),
            false => Err(format!("{line:?}: not every row was measured: {report}")),
        }
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
