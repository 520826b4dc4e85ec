//! fiord against fio on the same work, pair by pair.
//!
//! Invariant: a ratio is made of two runs that stood next to each other (A B A B); its spread is always shown, and
//! the raw figures are kept.

mod machine;
mod measure;
mod rows;

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::{compat, repo, stage};
use measure::Programs;
use rows::{Row, rows};

/// How much to measure.
struct Effort {
    pairs: usize,
    seconds: u32,
}

const FULL: Effort = Effort { pairs: 7, seconds: 4 };
const QUICK: Effort = Effort { pairs: 3, seconds: 1 };

/// `cargo x bench [--quick] [ROW]`: rows whose name contains ROW. FIO=PATH and FIORD=PATH name the programs.
pub fn run(args: &[String]) -> Result<(), String> {
    let effort = if args.iter().any(|arg| arg == "--quick") { QUICK } else { FULL };
    let filter = args.iter().find(|arg| !arg.starts_with("--")).map_or("", String::as_str);
    let programs = Programs { fio: path_of("FIO").unwrap_or_else(|| "/usr/bin/fio".into()), fiord: fiord()? };
    let place = Scratch::new()?;

    let mut raw = Vec::new();
    println!("{:<28} {:>14} {:>14} {:>8}  {:<15} {:>7}", "row", "fio", "fiord", "ratio", "spread", "target");
    for row in rows(effort.seconds).iter().filter(|row| row.name.contains(filter)) {
        let pairs = measure::pairs(row, &programs, &place.0, effort.pairs)?;
        print_row(row, &pairs);
        raw.push(
            json!({ "row": row.name, "unit": row.metric.unit(), "args": row.args, "fio_fiord_pairs": pairs }),
        );
    }
    if raw.is_empty() {
        return Err(format!("no row's name contains {filter:?}"));
    }
    keep(&programs, raw)
}

fn path_of(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).map(PathBuf::from)
}

/// The fiord to be measured: FIORD=PATH, or one built now.
pub fn fiord() -> Result<PathBuf, String> {
    if let Some(path) = path_of("FIORD") {
        return Ok(path);
    }
    stage::command(repo::cargo(&["build", "--release", "-p", "fiord"]))?;
    Ok(compat::release_binary())
}

/// A directory that goes away again.
pub struct Scratch(pub PathBuf);

impl Scratch {
    pub fn new() -> Result<Scratch, String> {
        let path = repo::target_dir().join(format!("bench-{}", std::process::id()));
        fs::create_dir_all(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Scratch(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Nothing depends on it being gone: the next run has a name of its own.
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn print_row(row: &Row, pairs: &[[f64; 2]]) {
    let fio = median(pairs.iter().map(|pair| pair[0]));
    let fiord = median(pairs.iter().map(|pair| pair[1]));
    let ratios: Vec<f64> = pairs.iter().map(|[fio, fiord]| fiord / fio).collect();
    let low = ratios.iter().copied().fold(f64::INFINITY, f64::min);
    let high = ratios.iter().copied().fold(0.0, f64::max);
    let spread = format!("{low:.2}..{high:.2}");
    let target = row.target.to_string();
    println!("{:<28} {fio:>14.0} {fiord:>14.0} {:>8.2}  {spread:<15} {target:>7}", row.name, median(ratios));
}

/// The middle one, or the mean of the two in the middle; 0 of nothing.
fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => 0.0,
        count if count % 2 == 1 => values[count / 2],
        count => f64::midpoint(values[count / 2 - 1], values[count / 2]),
    }
}

/// Writes the raw figures to bench/runs/DATE-HOST.json, one file per machine and day.
fn keep(programs: &Programs, rows: Vec<Value>) -> Result<(), String> {
    let machine = machine::describe(programs);
    let name = format!("bench/runs/{}-{}.json", machine::today(), machine::host());
    let document = json!({ "machine": machine, "rows": rows });
    let text = serde_json::to_string_pretty(&document).map_err(|error| error.to_string())?;
    fs::create_dir_all(repo::root().join("bench/runs")).map_err(|error| format!("bench/runs: {error}"))?;
    repo::write(&name, &(text + "\n"))?;
    println!("raw results: {name}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(median([3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median([4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(median([]), 0.0);
    }
}
