//! Builds the fuzz targets with coverage instrumentation and runs each for a while.
//!
//! Invariant: needs nothing but the stable compiler and a C++ one; what the targets link is safe Rust, so the
//! address sanitizer, which would need a nightly compiler, has nothing to find.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::repo;
use crate::stage::{Counts, Ending};

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
    targets
        .iter()
        .filter(|&target| only.is_none_or(|name| name == target))
        .try_for_each(|name| run_one(name, seconds))
}

/// Every target for a few seconds, as a stage of CI.
pub fn smoke(seconds: u32) -> Ending {
    if !repo::root().join("fuzz/Cargo.toml").is_file() {
        return Ending::Skipped("there is no fuzz/ yet".to_string());
    }
    if !has_cxx() {
        return Ending::Skipped("libFuzzer needs a C++ compiler".to_string());
    }
    let targets = match build().and_then(|()| targets()) {
        Ok(targets) => targets,
        Err(why) => return Ending::Failed(Counts::default(), why),
    };
    let mut counts = Counts::default();
    let mut failures = Vec::new();
    for target in &targets {
        match run_one(target, seconds) {
            Ok(()) => counts.passed += 1,
            Err(why) => {
                counts.failed += 1;
                failures.push(why);
            }
        }
    }
    match failures.is_empty() {
        true => Ending::Passed(counts),
        false => Ending::Failed(counts, failures.join("; ")),
    }
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
    crate::stage::command(cargo)
}

fn run_one(target: &str, seconds: u32) -> Result<(), String> {
    let binary = build_dir().join(host()?).join("release").join(target);
    let corpus = build_dir().join("corpus").join(target);
    fs::create_dir_all(&corpus).map_err(|error| format!("{}: {error}", corpus.display()))?;
    let seeds = repo::root().join("fuzz/seeds").join(target);
    let log = build_dir().join(format!("{target}.log"));
    let output = fs::File::create(&log).map_err(|error| format!("{}: {error}", log.display()))?;
    let mut command = Command::new(binary);
    command.arg(format!("-max_total_time={seconds}")).arg("-rss_limit_mb=2048").arg(&corpus);
    if seeds.is_dir() {
        command.arg(&seeds);
    }
    let status = command
        .current_dir(build_dir())
        .stderr(output)
        .status()
        .map_err(|error| format!("{target}: {error}"))?;
    let text = fs::read_to_string(&log).unwrap_or_default();
    let last = text.lines().rfind(|line| !line.is_empty()).unwrap_or_default();
    println!("fuzz {target}: {last}");
    match status.success() {
        true => Ok(()),
        false => Err(format!("{target}: {status}; see {}\n{text}", log.display())),
    }
}
