//! Instructions per I/O on the null engine, counted by callgrind and compared with those recorded in the repository. The binary is
//! the static one, which the packages have.
//!
//! Invariant: a figure is the difference of two runs of different length, so that it excludes everything done once per
//! run, and only that of the worker's thread. It is repeatable to a tenth; the rest is work done once per millisecond.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Map, Value, json};

use crate::bench::{self, Scratch};
use crate::stage::StageResult;
use crate::{dist, repo};

const RECORD: &str = "bench/instructions.json";

/// I/Os of the short run and of the long one.
const IOS: [u64; 2] = [100_000, 500_000];

/// Changes of a figure above this are reported.
const TOLERANCE_PERCENT: f64 = 5.0;

/// How often a figure that seems to have changed is counted: a clock that could not be calibrated costs more to read, in
/// the long run or in the short one, which is subtracted.
const TRIES: usize = 3;

/// A case: its name and fiord's options.
const CASES: &[(&str, &[&str])] = &[
    ("sync-randread", &["--rw=randread"]),
    ("sync-read", &["--rw=read"]),
    ("queued-randread", &["--rw=randread", "--iodepth=32"]),
    ("queued-randread-batch16", &["--rw=randread", "--iodepth=32", "--iodepth_batch=16"]),
    // Streams whose operations are drawn, or observed one by one.
    ("sync-drawn-sizes", &["--rw=randread", "--bsrange=4k-64k", "--norandommap"]),
    ("sync-mix-drawn-sizes", &["--rw=randrw", "--bsrange=4k-64k"]),
    ("sync-zipf-mix", &["--rw=randrw", "--random_distribution=zipf:1.1"]),
    ("sync-rate", &["--rw=randread", "--rate_iops=100m"]),
    ("sync-rate-mix", &["--rw=randrw", "--rate_iops=100m"]),
    ("sync-flow", &["--rw=randread", "--flow=1"]),
    ("sync-zbd", &["--rw=randwrite", "--zonemode=zbd", "--zonesize=1m"]),
    ("queued-rate", &["--rw=randread", "--iodepth=32", "--rate_iops=100m"]),
    ("queued-overlaps", &["--rw=randwrite", "--norandommap", "--iodepth=32", "--serialize_overlap=1"]),
];

const USAGE: &str = "cargo x instructions [--record]";

/// `cargo x instructions [--record]`: FIORD=PATH names the program.
pub fn run(args: &[String]) -> Result<(), String> {
    let records = match args {
        [] => false,
        [flag] if flag == "--record" => true,
        _ => return Err(USAGE.to_string()),
    };
    can_count()?;
    let fiord = bench::path_of("FIORD").map_or_else(dist::compiled, Ok)?;
    if records { record(&fiord) } else { compare(&fiord) }
}

/// The stage of CI.
pub fn stage() -> StageResult {
    match can_count() {
        Ok(()) => StageResult::of(dist::compiled().and_then(|fiord| compare(&fiord))),
        Err(why) => StageResult::Skipped(why),
    }
}

/// Checks that callgrind runs here and that fiord's usual clock is available; the error is what is missing.
fn can_count() -> Result<(), String> {
    let clocks = "/sys/devices/system/clocksource/clocksource0/available_clocksource";
    if !fs::read_to_string(clocks).unwrap_or_default().contains("tsc") {
        return Err("the figures are for a clock that this machine lacks (tsc)".to_string());
    }
    let mut trial = Command::new("valgrind");
    trial.args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "true"]);
    match trial.stdout(Stdio::null()).stderr(Stdio::null()).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("valgrind cannot run here: {status}")),
        Err(error) => Err(format!("valgrind: {error}; `cargo x ci --install` installs it")),
    }
}

fn record(fiord: &Path) -> Result<(), String> {
    let mut figures = Map::new();
    for (name, options) in CASES {
        let figure = instructions_per_io(fiord, options)?;
        println!("{name:<28} {figure:>8.1}");
        figures.insert((*name).to_string(), json!((figure * 10.0).round() / 10.0));
    }
    let document = json!({ "rustc": rustc()?, "instructions_per_io": figures });
    let text = serde_json::to_string_pretty(&document).map_err(|error| error.to_string())?;
    repo::write(RECORD, &(text + "\n"))
}

fn compare(fiord: &Path) -> Result<(), String> {
    let text = repo::read(RECORD).ok_or_else(|| format!("{RECORD}: not there; `{USAGE}` writes it"))?;
    let document: Value = serde_json::from_str(&text).map_err(|error| format!("{RECORD}: {error}"))?;
    let mut grown = Vec::new();
    println!("{:<28} {:>8} {:>8}", "instructions per I/O", "recorded", "now");
    for (name, options) in CASES {
        let recorded = document["instructions_per_io"][name].as_f64();
        let recorded = recorded.ok_or_else(|| format!("{RECORD}: lacks {name}; `{USAGE}` writes it"))?;
        let now = nearest(recorded, || instructions_per_io(fiord, options))?;
        let verdict = verdict(recorded, now);
        println!("{name:<28} {recorded:>8.1} {now:>8.1}{}", verdict.remark());
        if verdict == Verdict::Grew {
            grown.push(format!("{name} from {recorded:.1} to {now:.1} instructions per I/O"));
        }
    }
    let (then, now) = (document["rustc"].as_str().unwrap_or("an unknown rustc"), rustc()?);
    let compilers = if then == now { String::new() } else { format!("recorded with {then}, now with {now}") };
    if grown.is_empty() {
        if !compilers.is_empty() {
            println!("{compilers}");
        }
        return Ok(());
    }
    let why = if compilers.is_empty() { compilers } else { format!(" ({compilers})") };
    Err(format!("grown by more than {TOLERANCE_PERCENT} %: {}{why}", grown.join(", ")))
}

/// The first of a few counts that is the recorded one, or of all of them the nearest: what has really changed has changed
/// in each.
fn nearest(recorded: f64, mut count: impl FnMut() -> Result<f64, String>) -> Result<f64, String> {
    let mut nearest = count()?;
    for _ in 1..TRIES {
        if verdict(recorded, nearest) == Verdict::Same {
            break;
        }
        let again = count()?;
        if (again - recorded).abs() < (nearest - recorded).abs() {
            nearest = again;
        }
    }
    Ok(nearest)
}

/// A figure compared with its record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Same,
    Grew,
    Shrank,
}

impl Verdict {
    fn remark(self) -> &'static str {
        match self {
            Verdict::Same => "",
            Verdict::Grew => "  grown",
            Verdict::Shrank => "  shrunk: `cargo x instructions --record` records it",
        }
    }
}

fn verdict(recorded: f64, now: f64) -> Verdict {
    let percent = (now / recorded - 1.0) * 100.0;
    if percent > TOLERANCE_PERCENT {
        Verdict::Grew
    } else if percent < -TOLERANCE_PERCENT {
        Verdict::Shrank
    } else {
        Verdict::Same
    }
}

fn rustc() -> Result<String, String> {
    Ok(repo::output_of(repo::command("rustc", &["--version"]))?.trim().to_string())
}

fn instructions_per_io(fiord: &Path, options: &[&str]) -> Result<f64, String> {
    let [short, long] =
        [worker_instructions(fiord, options, IOS[0])?, worker_instructions(fiord, options, IOS[1])?];
    Ok((long as f64 - short as f64) / (IOS[1] - IOS[0]) as f64)
}

/// Instructions of the worker's thread in a run of `ios` I/Os.
fn worker_instructions(fiord: &Path, options: &[&str], ios: u64) -> Result<u64, String> {
    let place = Scratch::new()?;
    let mut command = Command::new("valgrind");
    command
        .args(["--quiet", "--tool=callgrind", "--callgrind-out-file=counts", "--separate-threads=yes"])
        // Calibrating the clock takes a fixed time, and so a varying number of instructions.
        .args(["--toggle-collect=*::calibrate", "--collect-atstart=yes"])
        .arg(fiord)
        .args(["--name=null", "--ioengine=null", "--bs=4k", "--size=64g", "--output=report"])
        .arg(format!("--number_ios={ios}"))
        .args(options)
        .current_dir(&place.0);
    repo::output_of(command)?;
    let files = fs::read_dir(&place.0).map_err(|error| format!("{}: {error}", place.0.display()))?;
    let counts = files.flatten().filter(|file| file.file_name().to_string_lossy().starts_with("counts"));
    let totals = counts.filter_map(|file| total(&fs::read_to_string(file.path()).ok()?));
    // The worker is the thread with the most instructions.
    totals.max().ok_or_else(|| "callgrind wrote no totals".to_string())
}

/// The sum at the end of callgrind's output for a thread.
fn total(counts: &str) -> Option<u64> {
    counts.lines().rev().find_map(|line| line.strip_prefix("totals: ")?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_wrong_count_neither_fails_nor_hides_a_change() {
        let of = |counts: [f64; 3]| {
            let mut counts = counts.into_iter();
            nearest(100.0, || counts.next().ok_or_else(String::new)).unwrap()
        };
        assert_eq!(of([-26.6, 101.0, 150.0]), 101.0, "the first that is right ends the counting");
        assert_eq!(of([180.0, 99.0, 0.0]), 99.0);
        assert_eq!(of([130.0, -26.6, 131.0]), 130.0, "it has grown");
    }

    /// Rows of docs/hot-loop.md, and the cases whose figures they have.
    const ROWS: &[(&str, &[&str])] = &[
        ("all", &["sync-randread", "queued-randread"]),
        ("sizes drawn, anywhere", &["sync-drawn-sizes"]),
        ("mixed, sizes drawn", &["sync-mix-drawn-sizes"]),
        ("mixed, zipf", &["sync-zipf-mix"]),
        ("a rate that is never reached", &["sync-rate"]),
        ("the same, mixed", &["sync-rate-mix"]),
        ("flow", &["sync-flow"]),
        ("zoned (`zonemode=zbd`)", &["sync-zbd"]),
        ("a rate, queued at depth 32", &["queued-rate"]),
        ("overlaps serialized, depth 32", &["queued-overlaps"]),
    ];

    #[test]
    fn the_figures_of_the_hot_loop_page_are_those_recorded() {
        let record: Value = serde_json::from_str(&repo::read(RECORD).unwrap()).unwrap();
        let page = repo::read("docs/hot-loop.md").unwrap();
        for (row, cases) in ROWS {
            let lines = page.lines().filter_map(|line| line.strip_prefix(&format!("| {row} |")));
            // The first cell that is a figure: rows of sums leave out where they are spent.
            let figure = |line: &str| line.split('|').find_map(|cell| cell.trim().parse::<f64>().ok());
            let documented: Vec<f64> = lines.filter_map(figure).collect();
            assert_eq!(documented.len(), cases.len(), "{row}");
            for (documented, case) in documented.iter().zip(*cases) {
                let recorded = record["instructions_per_io"][case].as_f64().unwrap();
                assert!(
                    (documented - recorded).abs() <= recorded * TOLERANCE_PERCENT / 100.0,
                    "{row}: {documented} on the page, {recorded} recorded"
                );
            }
        }
    }

    #[test]
    fn the_total_is_at_the_end_of_callgrinds_output() {
        let counts = "# callgrind format\nversion: 1\nthread: 2\nevents: Ir\nfl=(1) a.rs\nfn=(1) run\n1 7\ntotals: 16245289\n";
        assert_eq!(total(counts), Some(16_245_289));
        assert_eq!(total("version: 1\nevents: Ir\n"), None);
    }

    #[test]
    fn a_figure_may_change_by_a_twentieth() {
        let verdicts = [104.9, 105.1, 95.1, 94.9].map(|now| verdict(100.0, now));
        assert_eq!(verdicts, [Verdict::Same, Verdict::Grew, Verdict::Same, Verdict::Shrank]);
    }
}
