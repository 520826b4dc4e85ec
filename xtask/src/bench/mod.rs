//! Compares fiord with fio on the same work, pair by pair.
//!
//! Invariant: a ratio is that of two successive runs (A B A B); its spread is always shown, and the raw figures are
//! stored.

mod chart;
mod fleet;
mod measure;
pub mod one;
pub mod page;
pub mod peer;
mod place;
mod result;
mod rows;
mod table;

use std::fs;
use std::io::IsTerminal;
use std::path::PathBuf;

use fiord_sys::signal;
use serde_json::{Value, json};

use crate::{compat, machine, repo};
use measure::{Effort, Programs};
use place::Places;
pub use place::Scratch;
use result::Line;
use rows::{Row, Work};

const FULL: Effort = Effort { pairs: 5, seconds: 2 };
const QUICK: Effort = Effort { pairs: 3, seconds: 1 };

/// What stands for a row that is none: runs on many hosts are measured by themselves.
const FLEET: &str = "fleet";

/// Approximate time that fio takes to start and to end.
const STARTUP_S: f64 = 0.5;

/// `cargo x bench [--quick] [ROW…]`: rows whose name contains a ROW; or `cargo x bench fleet`. FIO=PATH, FIORD=PATH and
/// PEAK=PATH name the programs.
pub fn run(args: &[String]) -> Result<(), String> {
    let (flags, wanted): (Vec<&String>, Vec<&String>) = args.iter().partition(|arg| arg.starts_with("--"));
    if let Some(unknown) = flags.iter().find(|flag| **flag != "--quick") {
        return Err(format!("{unknown}: unknown argument; usage: cargo x bench [--quick] [ROW…]"));
    }
    let is_fleet = wanted == [FLEET];
    let effort = if flags.is_empty() { FULL } else { QUICK };
    let mut rows = rows::rows();
    let is_known = |word: &str| is_fleet || rows.iter().any(|row| row.case.contains(word));
    if let Some(unknown) = wanted.iter().find(|word| !is_known(word)) {
        return Err(format!("no row's name contains {unknown:?}; without a name, all are measured"));
    }
    rows.retain(|row| wanted.is_empty() || wanted.iter().any(|word| row.case.contains(word.as_str())));
    signal::record_stop_requests().map_err(|error| format!("sigaction: {error}"))?;
    let programs = Programs {
        fio: path_of("FIO").unwrap_or_else(|| "/usr/bin/fio".into()),
        fiord: fiord()?,
        peak: path_of("PEAK"),
    };
    let mut machine = machine::describe();
    for (name, program, option) in
        [("fio", &programs.fio, "--version"), ("fiord", &programs.fiord, "version")]
    {
        machine[name] = machine::first_line(program, &[option]).into();
    }
    if is_fleet {
        return keep(&fleet::run(&programs.fio, &programs.fiord, machine)?, &[FLEET]);
    }
    let (lines, raw) = measure_all(&rows, &programs, effort)?;
    println!("{}", result::counts(&lines));

    let partial = [(effort.pairs < FULL.pairs, "quick"), (!wanted.is_empty(), "rows")];
    let document = json!({
        "machine": machine,
        "effort": { "pairs": effort.pairs, "seconds": effort.seconds },
        "rows": raw,
    });
    keep(&document, &partial.map(|(is_so, word)| if is_so { word } else { "" }))?;
    conclude(&lines)
}

/// Absolute, because the programs run in another directory; a bare name is searched for in PATH.
pub fn path_of(variable: &str) -> Option<PathBuf> {
    let path = PathBuf::from(std::env::var_os(variable)?);
    let is_bare = path.components().count() == 1;
    Some(if is_bare { path } else { std::path::absolute(&path).unwrap_or(path) })
}

/// The fiord to measure: FIORD=PATH, or one built now.
pub fn fiord() -> Result<PathBuf, String> {
    if let Some(path) = path_of("FIORD") {
        return Ok(path);
    }
    compat::build(true)
}

/// Measures and prints one row after another; the lines of the table and the raw results.
fn measure_all(rows: &[Row], programs: &Programs, effort: Effort) -> Result<(Vec<Line>, Vec<Value>), String> {
    let places = Places::new()?;
    let seconds = seconds_about(rows, effort);
    eprintln!("rows: {}, about {}", rows.len(), duration_text(seconds));
    println!(
        "{} pairs, {} s each, load {:.2} on {} CPUs; spread: lowest..highest pair",
        effort.pairs,
        effort.seconds,
        machine::load(),
        std::thread::available_parallelism().map_or(0, usize::from),
    );
    println!("{}", table::header());
    let (mut lines, mut raw) = (Vec::new(), Vec::new());
    for (index, row) in rows.iter().enumerate() {
        progress(&format!("{} of {}: {}, load {:.2}", index + 1, rows.len(), row.case, machine::load()));
        let load = machine::load();
        let outcome = measure::row(row, programs, &places, effort);
        progress("");
        if let Some(number) = signal::stop_requested() {
            return Err(format!("stopped by {}; no results were stored", signal::name(number)));
        }
        let kept = result::raw(row, &outcome, places.kind_of(row.place), load);
        for line in result::lines(&kept)? {
            println!("{}", table::line(&line));
            lines.push(line);
        }
        raw.push(kept);
    }
    Ok((lines, raw))
}

/// Prints the current step, on a terminal only; the next one replaces it.
fn progress(text: &str) {
    if std::io::stderr().is_terminal() {
        eprint!("\r\x1b[K{text}");
    }
}

/// Estimated time of all rows, including warm-up.
fn seconds_about(rows: &[Row], effort: Effort) -> f64 {
    let pairs = effort.pairs as f64;
    let of_row = |row: &Row| match row.work {
        Work::Timed => (f64::from(effort.seconds) * 2.0 + STARTUP_S) * pairs + (2.0 + STARTUP_S),
        Work::Ios { pair_seconds_about, .. } => pair_seconds_about * (pairs + 1.0),
    };
    rows.iter().map(of_row).sum()
}

fn duration_text(seconds: f64) -> String {
    if seconds < 90.0 { format!("{seconds:.0} seconds") } else { format!("{:.0} minutes", seconds / 60.0) }
}

/// Writes the raw figures to bench/runs/DATE-HOST.json, one file per machine and day. A partial table has another name,
/// so that it never replaces a full one.
fn keep(document: &Value, partial: &[&str]) -> Result<(), String> {
    let text = |key: &str| document["machine"][key].as_str().unwrap_or_default();
    let words = [text("date"), text("host")].into_iter().chain(partial.iter().copied());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    let name = format!("bench/runs/{}.json", words.join("-"));
    let json = serde_json::to_string_pretty(document).map_err(|error| error.to_string())?;
    fs::create_dir_all(repo::root().join("bench/runs")).map_err(|error| format!("bench/runs: {error}"))?;
    repo::write(&name, &(json + "\n"))?;
    eprintln!("raw results: {name}");
    Ok(())
}

/// Success if every target that could be measured was held.
fn conclude(lines: &[Line]) -> Result<(), String> {
    let named = |verdict: &str| {
        let names: Vec<&str> =
            lines.iter().filter(|line| line.verdict() == verdict).map(|line| line.case.as_str()).collect();
        (!names.is_empty()).then(|| format!("{}: {}", verdict.to_lowercase(), names.join("; ")))
    };
    let wrong: Vec<String> = ["missed", "FAILED"].into_iter().filter_map(named).collect();
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

#[cfg(test)]
mod tests {
    use super::result::testing;
    use super::rows::Metric;
    use super::*;

    #[test]
    fn a_full_table_takes_less_than_forty_minutes() {
        let seconds = seconds_about(&rows::rows(), FULL);
        assert!((300.0..2400.0).contains(&seconds), "{seconds}");
        assert_eq!(duration_text(seconds_about(&rows::rows()[..1], QUICK)), "10 seconds");
        assert_eq!(duration_text(600.0), "10 minutes");
    }

    #[test]
    fn missed_targets_are_named() {
        let line = |case, target| {
            result::lines(&testing::row(case, Metric::Iops, target, &[(Some(1.0), 2.0)])).unwrap().remove(0)
        };
        assert_eq!(conclude(&[line("a", ">=2")]), Ok(()));
        let lines = [line("a", ">=2"), line("b", ">=3"), line("c", "<=1")];
        assert_eq!(conclude(&lines), Err("missed: b; c".to_string()));
    }
}
