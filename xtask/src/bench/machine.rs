//! What the figures were measured on.
//!
//! Invariant: what cannot be found out is an empty string; it never stops a measurement.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::measure::Programs;

/// Machine, kernel and versions.
pub fn describe(programs: &Programs) -> Value {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let cpu = cpuinfo
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
        .map(|(_, name)| name);
    json!({
        "cpu": cpu.unwrap_or_default(),
        "cpu_count": std::thread::available_parallelism().map_or(0, usize::from),
        "kernel": first_line(Path::new("uname"), &["-srv"]),
        "fio": first_line(&programs.fio, &["--version"]),
        "fiord": first_line(&programs.fiord, &["version"]),
        "commit": first_line(Path::new("git"), &["rev-parse", "HEAD"]),
    })
}

/// Today's date, `YYYY-MM-DD`.
pub fn today() -> String {
    first_line(Path::new("date"), &["+%F"])
}

/// This machine's name.
pub fn host() -> String {
    first_line(Path::new("uname"), &["-n"])
}

fn first_line(program: &Path, args: &[&str]) -> String {
    let Ok(out) = Command::new(program).args(args).output() else { return String::new() };
    String::from_utf8_lossy(&out.stdout).lines().next().unwrap_or_default().to_string()
}
