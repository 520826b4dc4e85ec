//! Builds the fuzz targets with coverage instrumentation and runs each for some seconds.
//!
//! Invariant: needs only the stable compiler and a C++ compiler; the targets link only safe Rust, so AddressSanitizer,
//! which would need a nightly compiler, has nothing to find.

use std::collections::VecDeque;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Mutex;

use crate::repo;
use crate::stage::{self, Share, StageResult};
use crate::tally::{Counts, Tally};

const SECONDS: u32 = 5;

/// The stage of CI runs one share of the targets.
const SHARES: usize = 4;

/// Names the target of the fuzz binary; `fiord_fuzz::CHOICE`.
const CHOICE: &str = "FIORD_FUZZ_TARGET";

/// The compiler flags of `cargo fuzz`, without those that need a nightly compiler.
const RUSTFLAGS: &[&str] = &[
    "--cfg fuzzing",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Ccodegen-units=1",
    "-Cdebug-assertions",
];

/// The seed of libFuzzer's random changes.
#[derive(Clone, Copy)]
enum Seed {
    /// The same in each run, so that the result of CI depends on the change alone.
    Fixed,
    Random,
}

/// `cargo x fuzz [TARGET] [SECONDS]`
pub fn run(args: &[String]) -> Result<(), String> {
    let seconds = args.iter().find_map(|arg| arg.parse().ok()).unwrap_or(SECONDS);
    let only = args.iter().find(|arg| arg.parse::<u32>().is_err());
    let targets = build()?;
    if let Some(unknown) = only.filter(|&name| !targets.contains(name)) {
        return Err(format!("unknown fuzz target {unknown:?}; the targets are {}", targets.join(", ")));
    }
    let chosen = targets.into_iter().filter(|target| only.is_none_or(|name| name == target));
    match run_all(chosen, seconds, Seed::Random) {
        (_, failures) if failures.is_empty() => Ok(()),
        (_, failures) => Err(failures.join("\n")),
    }
}

/// The targets for a few seconds each, as a stage of CI: a share of them, chosen by the commit, or all.
pub fn smoke(seconds: u32, share: Share) -> StageResult {
    if !has_cxx() {
        return StageResult::Skipped("libFuzzer needs a C++ compiler".to_string());
    }
    let chosen = build().and_then(|targets| share.choose(targets, SHARES));
    let targets = match chosen {
        Ok(targets) => targets,
        Err(why) => return StageResult::Failed(Tally::default(), why),
    };
    let (counts, failures) = run_all(targets, seconds, Seed::Fixed);
    let tally = Tally { counts, ..Tally::default() };
    match failures.is_empty() {
        true => StageResult::Passed(tally),
        false => StageResult::Failed(tally, failures.join("\n")),
    }
}

/// Runs each target, as many at a time as there are processors; returns counts, and the failures.
fn run_all(targets: impl IntoIterator<Item = String>, seconds: u32, seed: Seed) -> (Counts, Vec<String>) {
    let waiting = Mutex::new(targets.into_iter().collect::<VecDeque<String>>());
    let next = || waiting.lock().ok()?.pop_front();
    let results = || -> Vec<Result<(), String>> {
        std::iter::from_fn(next).map(|target| run_one(&target, seconds, seed)).collect()
    };
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let results: Vec<Result<(), String>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..processors).map(|_| scope.spawn(results)).collect();
        let joined = threads.into_iter().map(|thread| {
            thread.join().unwrap_or_else(|_| vec![Err("a thread that ran targets has panicked".to_string())])
        });
        joined.flatten().collect()
    });
    let failures: Vec<String> = results.iter().filter_map(|result| result.clone().err()).collect();
    let failed = failures.len() as u64;
    (Counts { passed: results.len() as u64 - failed, failed, skipped: 0 }, failures)
}

fn has_cxx() -> bool {
    Command::new("c++").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

fn build_dir() -> PathBuf {
    repo::target_dir().join("fuzz")
}

fn binary() -> Result<PathBuf, String> {
    Ok(build_dir().join(repo::host()?).join("fuzz/fuzz"))
}

/// Builds the program of all targets; returns their names.
fn build() -> Result<Vec<String>, String> {
    let args = ["build", "--quiet", "--profile=fuzz", "-p", "fiord-fuzz", "--features=libfuzzer", "--target"];
    // Naming the target keeps the flags away from build scripts.
    let mut cargo = repo::cargo(&[&args[..], &[&repo::host()?]].concat());
    cargo.env("RUSTFLAGS", RUSTFLAGS.join(" ")).env("CARGO_TARGET_DIR", build_dir());
    stage::command(cargo)?;
    let mut names = Command::new(binary()?);
    names.arg("-runs=0").env_remove(CHOICE).stderr(Stdio::null());
    Ok(repo::output_of(names)?.lines().map(String::from).collect())
}

fn run_one(target: &str, seconds: u32, seed: Seed) -> Result<(), String> {
    let corpus = build_dir().join("corpus").join(target);
    fs::create_dir_all(&corpus).map_err(|error| format!("{}: {error}", corpus.display()))?;
    let seeds = repo::root().join("fuzz/seeds").join(target);
    let log = build_dir().join(format!("{target}.log"));
    let output = fs::File::create(&log).map_err(|error| format!("{}: {error}", log.display()))?;
    let mut command = Command::new(binary()?);
    command
        .env(CHOICE, target)
        .arg(format!("-max_total_time={seconds}"))
        .arg("-rss_limit_mb=2048")
        .arg("-artifact_prefix=found-");
    if let Seed::Fixed = seed {
        command.arg("-seed=1");
    }
    command.arg(&corpus);
    if seeds.is_dir() {
        command.arg(&seeds);
    }
    let status = command
        .current_dir(build_dir())
        .stderr(output)
        .status()
        .map_err(|error| format!("{target}: {error}"))?;
    let text = fs::read_to_string(&log).unwrap_or_default();
    if status.success() {
        println!(
            "fuzz {target}: {}",
            text.lines().rfind(|line| line.starts_with("Done")).unwrap_or_default()
        );
        return Ok(());
    }
    let mut lines = text.lines().skip_while(|line| !line.contains("panicked at"));
    let panic: Vec<&str> = lines.by_ref().take_while(|line| !line.starts_with("stack backtrace")).collect();
    let input = text.lines().find(|line| line.contains("Test unit written")).unwrap_or_default();
    let why = format!("fuzz {target}: {}\n{input}\nsee {}", panic.join("\n"), log.display());
    println!("{why}");
    Err(why)
}
