//! Everything CI checks, in the order in which failures are cheapest to find.
//!
//! Invariant: each stage can be run separately; after a failure the later ones still run, except those that need its
//! binary.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::stage::{self, StageResult, Stages};
use crate::{
    browser, compat, dist, fmt, fuzz, guest, install, instructions, mutants, repo, servers, stage_times,
    test_run, tidy, unused,
};

const FUZZ_SECONDS_PER_TARGET: u32 = 4;

/// The crates with `unsafe` code, or whose loops pass buffers to it.
const SANITIZED: [&str; 3] = ["fiord-sys", "fiord-engine", "fiord-worker"];

type Stage = (&'static str, fn(&mut Build) -> StageResult);

const STAGES: &[Stage] = &[
    ("fmt", |_| StageResult::of(fmt::check())),
    ("clippy", |_| cargo(&["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"])),
    ("tidy", |_| StageResult::of(tidy::run())),
    ("unused", |_| StageResult::of(unused::run())),
    ("doc", |_| doc()),
    ("build", |build| StageResult::of(build.binary().map(drop))),
    ("instructions", |build| match build.binary() {
        Ok(binary) => instructions::stage(&binary),
        Err(why) => StageResult::Skipped(format!("no binary to count: {why}")),
    }),
    ("test", |_| test_run::tests(tests())),
    ("compat", |build| match build.binary() {
        Ok(binary) => test_run::tests(compat::command(&binary, &[])),
        Err(why) => StageResult::Skipped(format!("no binary to compare: {why}")),
    }),
    ("guest", |build| match build.binary() {
        Ok(binary) => guest::stage(&binary),
        Err(why) => StageResult::Skipped(format!("no binary to run: {why}")),
    }),
    ("servers", |build| match build.binary() {
        Ok(binary) => servers::stage(&binary),
        Err(why) => StageResult::Skipped(format!("no binary to run: {why}")),
    }),
    ("dist", |_| dist::stage()),
    ("browser", |build| match build.binary() {
        Ok(binary) => browser::stage(&binary),
        Err(why) => StageResult::Skipped(format!("no binary to make pages with: {why}")),
    }),
    ("address-sanitizer", |_| address_sanitizer()),
    ("seeds", |_| fuzz::tests()),
    ("fuzz", |_| fuzz::smoke(FUZZ_SECONDS_PER_TARGET)),
    ("mutants", |_| mutants::stage()),
];

/// `cargo x ci [--install] [--record] [STAGE…]`
pub fn run(args: &[String]) -> Result<(), String> {
    let (flags, names): (Vec<&String>, Vec<&String>) = args.iter().partition(|arg| arg.starts_with("--"));
    let known = |name: &&&String| STAGES.iter().any(|(stage, _)| stage == *name);
    if let Some(unknown) = names.iter().find(|name| !known(name)) {
        let stages: Vec<&str> = STAGES.iter().map(|(name, _)| *name).collect();
        return Err(format!("unknown stage {unknown:?}; the stages are {}", stages.join(", ")));
    }
    if let Some(unknown) = flags.iter().find(|flag| !["--install", "--record"].contains(&flag.as_str())) {
        return Err(format!(
            "{unknown}: unknown argument; usage: cargo x ci [--install] [--record] [STAGE…]"
        ));
    }
    let asked = |flag: &str| flags.iter().any(|given| *given == flag);
    if asked("--install") {
        install::run()?;
    }
    let mut stages = Stages::default();
    let mut build = Build::default();
    for (name, work) in STAGES {
        if names.is_empty() || names.iter().any(|asked| asked == name) {
            stages.run(name, || work(&mut build));
        }
    }
    if asked("--record") {
        stage_times::record(&stages.passed())?;
    }
    match stages.summary(&stage_times::recorded()) {
        true => Ok(()),
        false => std::process::exit(1),
    }
}

/// The release build of fiord, built for the first stage that needs it.
#[derive(Default)]
struct Build(Option<Result<PathBuf, String>>);

impl Build {
    fn binary(&mut self) -> Result<PathBuf, String> {
        let build = || {
            stage::command(repo::cargo(&["build", "--release", "-p", "fiord"]))?;
            Ok(compat::release_binary())
        };
        self.0.get_or_insert_with(build).clone()
    }
}

fn cargo(args: &[&str]) -> StageResult {
    StageResult::of(stage::command(repo::cargo(args)))
}

/// The tests that need no other program. Most of the time of a test of fiord's binary is waiting, so there are more threads
/// than processors.
fn tests() -> Command {
    const THREADS_PER_PROCESSOR: usize = 2;
    let others = ["fiord-compat", "fiord-guest", "fiord-servers"];
    let mut cargo = repo::cargo(&["test", "--workspace", "--no-fail-fast"]);
    cargo.args(others.iter().flat_map(|other| ["--exclude", other]));
    if std::env::var_os("RUST_TEST_THREADS").is_none() {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        cargo.env("RUST_TEST_THREADS", (processors * THREADS_PER_PROCESSOR).to_string());
    }
    cargo
}

/// Checks all links in the documentation, including those of private items.
fn doc() -> StageResult {
    let args = ["doc", "--quiet", "--workspace", "--no-deps", "--document-private-items"];
    let mut cargo = repo::cargo(&args);
    cargo.env("RUSTDOCFLAGS", "-D warnings");
    StageResult::of(stage::command(cargo))
}

/// The tests of the crates with `unsafe`, with AddressSanitizer.
fn address_sanitizer() -> StageResult {
    let mut trial = Command::new("rustup");
    trial.args(["run", "nightly", "rustc", "--version"]).stdout(Stdio::null()).stderr(Stdio::null());
    if !trial.status().is_ok_and(|status| status.success()) {
        return StageResult::Skipped(
            "needs a nightly compiler: rustup toolchain install nightly".to_string(),
        );
    }
    let target = match repo::host() {
        Ok(target) => target,
        Err(why) => return StageResult::of(Err(why)),
    };
    let mut command =
        repo::command("rustup", &["run", "nightly", "cargo", "test", "--no-fail-fast", "--target", &target]);
    // Naming the target keeps the flag away from build scripts. Some tests leave hung threads (not leaks), request more
    // memory than there is, or raise SIGBUS.
    command
        .args(SANITIZED.iter().flat_map(|package| ["-p", package]))
        .args(["--lib", "--tests"])
        .env("RUSTFLAGS", "-Zsanitizer=address")
        .env("ASAN_OPTIONS", "detect_leaks=0:allocator_may_return_null=1:handle_sigbus=0")
        .env("CARGO_TARGET_DIR", repo::target_dir().join("address-sanitizer"));
    test_run::tests(command)
}
