//! What the figures were measured on.
//!
//! Invariant: what cannot be found out is an empty string; it never stops a measurement.

use std::fs;
use std::path::Path;
use std::process::Command;

use fiord_sys::procfs;
use serde_json::{Value, json};

use super::measure::Programs;

/// Machine, kernel and versions.
pub fn describe(programs: &Programs) -> Value {
    json!({
        "date": first_line(Path::new("date"), &["+%F"]),
        "host": procfs::hostname().unwrap_or_default(),
        "cpu": procfs::cpu_model().unwrap_or_default(),
        "cpu_count": std::thread::available_parallelism().map_or(0, usize::from),
        "kernel": first_line(Path::new("uname"), &["-srm"]),
        "fio": first_line(&programs.fio, &["--version"]),
        "fiord": first_line(&programs.fiord, &["version"]),
        "commit": first_line(Path::new("git"), &["rev-parse", "HEAD"]),
    })
}

/// How many processes wanted to run in the last minute, on average; 0 where the kernel does not say.
pub fn load() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|figure| figure.parse().ok()).unwrap_or(0.0)
}

fn first_line(program: &Path, args: &[&str]) -> String {
    let Ok(out) = Command::new(program).args(args).output() else { return String::new() };
    String::from_utf8_lossy(&out.stdout).lines().next().unwrap_or_default().to_string()
}
