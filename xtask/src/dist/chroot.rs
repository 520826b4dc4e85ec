//! Commands in another root file system, with what fiord reads of the kernel.
//!
//! Invariant: nothing of this machine's environment reaches them, and what they need mounted is gone with them.

use std::path::Path;
use std::process::Command;

use crate::repo;

/// Runs its arguments in the root named first.
const ENTER: &str =
    r#"mount -t proc proc "$0/proc" && mount -t sysfs -o ro sysfs "$0/sys" && exec chroot "$0" "$@""#;

/// Why there can be no such command here.
pub fn is_possible() -> Result<(), String> {
    let id = repo::output_of(repo::command("id", &["-u"]))?;
    match id.trim() {
        "0" => Ok(()),
        _ => Err("needs root, for chroot".to_string()),
    }
}

/// A command in `root`, which has the directories `proc` and `sys`.
pub fn command(root: &Path, words: &[&str]) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", ENTER]).arg(root).args(words);
    command.env_clear().env("HOME", "/root").env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
    command
}

/// The document of a command that prints JSON.
pub fn json(command: Command) -> Result<serde_json::Value, String> {
    let shown = format!("{command:?}");
    let printed = repo::output_of(command)?;
    serde_json::from_str(&printed).map_err(|error| format!("{shown}: {error}: {printed}"))
}

/// Runs a study, whose report must have the rates that were measured.
pub fn study(command: Command) -> Result<(), String> {
    let shown = format!("{command:?}");
    let report = json(command)?;
    let measured = |row: &serde_json::Value| row["iops"].as_f64().is_some_and(|iops| iops > 0.0);
    match report["rows"].as_array() {
        Some(rows) if !rows.is_empty() && rows.iter().all(measured) => Ok(()),
        _ => Err(format!("{shown}: not every row was measured: {report}")),
    }
}
