//! Builds the fuzz targets with coverage instrumentation and runs each for a while.
//!
//! Invariant: needs nothing but the stable compiler and a C++ one; what the targets link is safe Rust, so the
//! address sanitizer, which would need a nightly compiler, has nothing to find.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::repo;
use crate::stage::{self, Counts, Ending, Tally};

const SECONDS: u32 = 5;

/// What `cargo fuzz` passes to the compiler, without what needs a nightly one.
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

/// `cargo x fuzz [TARGET] [SECONDS]`
pub fn run(args: &[String]) -> Result<(), String> {
    let seconds = args.iter().find_map(|arg| arg.parse().ok()).unwrap_or(SECONDS);
    let only = args.iter().find(|arg| arg.parse::<u32>().is_err());
    let targets = targets()?;
    if let Some(unknown) = only.filter(|&name| !targets.contains(name)) {
        return Err(format!("no fuzz target is called {unknown:?}; there are {}", targets.join(", ")));
    }
    build()?;
    let chosen = targets.into_iter().filter(|target| only.is_none_or(|name| name == target));
    match run_all(chosen, seconds) {
        (_, failures) if failures.is_empty() => Ok(()),
        (_, failures) => Err(format!("{} targets found something", failures.len())),
    }
}

/// The targets on their seeds, as ordinary tests: what a machine without libFuzzer can do.
pub fn tests() -> Ending {
    if !is_there() {
        return Ending::Skipped("there is no fuzz/ yet".to_string());
    }
    let args = [
        "test",
        "--quiet",
        "--manifest-path",
        "fuzz/Cargo.toml",
        "--no-default-features",
        "--",
        "--show-output",
    ];
    let mut cargo = repo::cargo(&args);
    cargo.env("CARGO_TARGET_DIR", build_dir());
    stage::tests(cargo)
}

fn is_there() -> bool {
    repo::root().join("fuzz/Cargo.toml").is_file()
}

/// Every target for a few seconds, as a stage of CI.
pub fn smoke(seconds: u32) -> Ending {
    if !is_there() {
        return Ending::Skipped("there is no fuzz/ yet".to_string());
    }
    if !has_cxx() {
        return Ending::Skipped("libFuzzer needs a C++ compiler".to_string());
    }
    let targets = match build().and_then(|()| targets()) {
        Ok(targets) => targets,
        Err(why) => return Ending::Failed(Tally::default(), why),
    };
    match run_all(targets, seconds) {
        (counts, failures) if failures.is_empty() => Ending::Passed(Tally { counts, ..Tally::default() }),
        (counts, failures) => {
            let tally = Tally { counts, ..Tally::default() };
            Ending::Failed(tally, format!("{} targets found something", failures.len()))
        }
    }
}

/// Runs each target; how many held, and what became of those that did not.
fn run_all(targets: impl IntoIterator<Item = String>, seconds: u32) -> (Counts, Vec<String>) {
    let mut counts = Counts::default();
    let mut failures = Vec::new();
    for target in targets {
        match run_one(&target, seconds) {
            Ok(()) => counts.passed += 1,
            Err(why) => {
                counts.failed += 1;
                failures.push(why);
            }
        }
    }
    (counts, failures)
}

fn has_cxx() -> bool {
    Command::new("c++").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

fn targets() -> Result<Vec<String>, String> {
    let args = ["metadata", "--no-deps", "--format-version", "1", "--manifest-path", "fuzz/Cargo.toml"];
    let metadata: Value =
        serde_json::from_str(&repo::output_of(repo::cargo(&args))?).map_err(|error| error.to_string())?;
    let targets = metadata["packages"][0]["targets"].as_array().ok_or("fuzz: no targets")?;
    let bins = targets.iter().filter(|target| target["kind"][0] == "bin");
    Ok(bins.filter_map(|target| target["name"].as_str()).map(String::from).collect())
}

fn host() -> Result<String, String> {
    let version = repo::output_of(repo::command("rustc", &["-vV"]))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(String::from).ok_or_else(|| "rustc -vV names no host".to_string())
}

fn build_dir() -> PathBuf {
    repo::target_dir().join("fuzz")
}

fn build() -> Result<(), String> {
    // Naming the target keeps the flags away from build scripts.
    let mut cargo = repo::cargo(&[
        "build",
        "--release",
        "--quiet",
        "--manifest-path",
        "fuzz/Cargo.toml",
        "--target",
        &host()?,
    ]);
    cargo.env("RUSTFLAGS", RUSTFLAGS.join(" ")).env("CARGO_TARGET_DIR", build_dir());
    stage::command(cargo)
}

fn run_one(target: &str, seconds: u32) -> Result<(), String> {
    let binary = build_dir().join(host()?).join("release").join(target);
    let corpus = build_dir().join("corpus").join(target);
    fs::create_dir_all(&corpus).map_err(|error| format!("{}: {error}", corpus.display()))?;
    let seeds = repo::root().join("fuzz/seeds").join(target);
    let log = build_dir().join(format!("{target}.log"));
    let output = fs::File::create(&log).map_err(|error| format!("{}: {error}", log.display()))?;
    let mut command = Command::new(binary);
    command
        .arg(format!("-max_total_time={seconds}"))
        .arg("-rss_limit_mb=2048")
        .arg("-artifact_prefix=found-");
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
