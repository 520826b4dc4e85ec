//! The machine that figures were measured on.
//!
//! Invariant: unknown facts are empty strings; they never prevent a measurement.

use std::fs;
use std::path::Path;
use std::process::Command;

use fiord_sys::procfs::{self, CpuTicks};
use fiord_sys::system;
use serde_json::{Value, json};

/// Machine, kernel, commit and date.
pub fn describe() -> Value {
    json!({
        "date": first_line(Path::new("date"), &["+%F"]),
        "host": system::names().host,
        "cpu": procfs::cpu_model().unwrap_or_default(),
        "cpu_count": std::thread::available_parallelism().map_or(0, usize::from),
        "kernel": first_line(Path::new("uname"), &["-srm"]),
        "commit": first_line(Path::new("git"), &["rev-parse", "HEAD"]),
    })
}

/// The load average of the last minute; 0 if unknown.
pub fn load() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|figure| figure.parse().ok()).unwrap_or(0.0)
}

/// What all processors together have done so far; `None` if unknown.
pub fn cpu_ticks() -> Option<CpuTicks> {
    let cpus = procfs::each_cpu_ticks().ok()?;
    Some(cpus.iter().map(|(_, ticks)| ticks).sum())
}

/// The share of their time that processors were used since an earlier moment, in percent; `None` if unknown.
pub fn busy_percent_since(earlier: Option<CpuTicks>) -> Option<f64> {
    let between = cpu_ticks()?.since(&earlier?);
    (between.all() > 0).then(|| 100.0 - 100.0 * between.unused() as f64 / between.all() as f64)
}

/// The first line that a program prints; empty if it cannot be run.
pub fn first_line(program: &Path, args: &[&str]) -> String {
    let Ok(out) = Command::new(program).args(args).output() else { return String::new() };
    String::from_utf8_lossy(&out.stdout).lines().next().unwrap_or_default().to_string()
}
