//! Runs of the two programs, and the figure taken from each.
//!
//! Invariant: the two programs of a pair run directly after each other, in the same directory.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use serde_json::Value;

use super::rows::{Metric, Row};

/// The two that are compared.
pub struct Programs {
    pub fio: PathBuf,
    pub fiord: PathBuf,
}

/// `[fio, fiord]` per pair, after one run of each that only warms files and caches.
pub fn pairs(row: &Row, programs: &Programs, place: &Path, count: usize) -> Result<Vec<[f64; 2]>, String> {
    let pair = || Ok([one(row, &programs.fio, place)?, one(row, &programs.fiord, place)?]);
    let _warm: [f64; 2] = pair()?;
    (0..count).map(|_| pair()).collect()
}

fn one(row: &Row, program: &Path, place: &Path) -> Result<f64, String> {
    let shown = || format!("{}: {} {}", row.name, program.display(), row.args.join(" "));
    let mut command = Command::new(program);
    command.args(&row.args).arg("--output-format=json").current_dir(place);
    let start = Instant::now();
    let out = command.output().map_err(|error| format!("{}: {error}", shown()))?;
    let took = start.elapsed();
    if !out.status.success() {
        return Err(format!("{}: {}\n{}", shown(), out.status, String::from_utf8_lossy(&out.stderr)));
    }
    match row.metric {
        Metric::ProcessMicros => Ok(took.as_secs_f64() * 1e6),
        Metric::Iops => iops(&out.stdout).ok_or_else(|| format!("{}: its JSON names no IOPS", shown())),
    }
}

fn iops(stdout: &[u8]) -> Option<f64> {
    let document: Value = serde_json::from_slice(stdout).ok()?;
    let jobs = document["jobs"].as_array()?;
    let of_job = |job: &Value| Some(job["read"]["iops"].as_f64()? + job["write"]["iops"].as_f64()?);
    jobs.iter().map(of_job).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iops_are_summed_over_jobs_and_directions() {
        let document = br#"{"jobs": [{"read": {"iops": 1.5}, "write": {"iops": 2}}, {"read": {"iops": 4}, "write": {"iops": 0}}]}"#;
        assert_eq!(iops(document), Some(7.5));
        assert_eq!(iops(b"{}"), None);
    }
}
