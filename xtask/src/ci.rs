//! Everything CI checks. Tests mostly wait, and run while the rest compiles.
//!
//! Invariant: each stage can be run separately; after a failure the later ones still run, except those that need its
//! binary.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use fiord_sys::thread;

use crate::stage::{self, Share, StageResult, Stages};
use crate::{
    arm, browser, compat, dist, fleet, fmt, fuzz, guest, install, instructions, mutants, packages, repo,
    servers, site, stage_times, targets, test_run, tidy, unused, wheel,
};

const FUZZ_SECONDS_PER_TARGET: u32 = 4;

/// The crates with `unsafe` code, or whose loops pass buffers to it.
const SANITIZED: [&str; 3] = ["fiord-sys", "fiord-engine", "fiord-worker"];

/// The crates with tests of what threads share without a lock, in modules `memory_order`.
const SHARING: [&str; 2] = ["fiord-sys", "fiord-worker"];

/// A stage: its name, when it runs, and its work.
struct Stage(&'static str, Turn, fn(&Gate) -> StageResult);

/// When a stage runs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// While what the others need is installed: these need Rust and a C compiler alone.
    First,
    /// One after the other, in the order of the list.
    InOrder,
    /// While the stages after it run in order: most of its time is waiting. Two of them run one after the other.
    Beside,
    /// When all others have ended.
    Last,
}

use Turn::{Beside, First, InOrder, Last};

/// The nice value of what runs in order while tests run beside it: theirs wait for no compiler.
const NICE_BESIDE_TESTS: i32 = 10;

const STAGES: &[Stage] = &[
    Stage("fmt", First, |_| StageResult::of(fmt::check())),
    Stage("tidy", First, |_| StageResult::of(tidy::run())),
    Stage("build", First, |_| cargo(&["test", "--workspace", "--no-run"])),
    Stage("site", InOrder, |_| site::stage()),
    Stage("test", Beside, |_| test_run::tests(tests)),
    Stage("compat", Beside, |gate| gate.with_binary(compat::stage)),
    Stage("servers", Beside, |gate| gate.with_binary(servers::stage)),
    Stage("fleet", Beside, |gate| gate.with_binary(fleet::stage)),
    Stage("guest", Beside, |gate| gate.with_binary(guest::stage)),
    Stage("clippy", InOrder, |_| {
        cargo(&["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"])
    }),
    Stage("unused", InOrder, |_| StageResult::of(unused::run())),
    Stage("doc", InOrder, |_| doc()),
    Stage("targets", InOrder, |gate| targets::stage(gate.share)),
    Stage("instructions", InOrder, |_| instructions::stage()),
    Stage("arm", InOrder, |gate| gate.with_binary(arm::stage)),
    Stage("address-sanitizer", InOrder, |_| address_sanitizer()),
    Stage("fuzz", InOrder, |gate| fuzz::smoke(FUZZ_SECONDS_PER_TARGET, gate.share)),
    Stage("mutants", InOrder, |gate| mutants::stage(gate.share)),
    Stage("browser", InOrder, |gate| gate.with_binary(browser::stage)),
    Stage("install", InOrder, |gate| gate.with_binary(wheel::stage)),
    Stage("dist", InOrder, |gate| dist::stage(gate.share)),
    Stage("quiet", Last, |_| quiet()),
];

/// Tests of the stage `test` that skip on a machine whose processors have other work, as they mostly have there.
const NEED_PROCESSORS: [&str; 7] = [
    "etcd::etcds_own_p99_of_syncs_matches_the_check",
    "findings::direct::a_server_that_has_a_cache_is_found_and_nothing_is_concluded",
    "findings::table::cpu_bound",
    "findings::table::cpu_contended",
    "findings::table::foreign_cpu",
    "findings::table::not_steady",
    "postgres::the_syncs_of_its_log_take_as_long_as_those_of_the_check",
];

const USAGE: &str = "cargo x ci [--install] [--record] [--all] [STAGE…]";

/// `cargo x ci [--install] [--record] [--all] [STAGE…]`
pub fn run(args: &[String]) -> Result<(), String> {
    let (flags, names): (Vec<&String>, Vec<&String>) = args.iter().partition(|arg| arg.starts_with("--"));
    let known = |name: &&&String| STAGES.iter().any(|Stage(stage, ..)| stage == *name);
    if let Some(unknown) = names.iter().find(|name| !known(name)) {
        let stages: Vec<&str> = STAGES.iter().map(|Stage(name, ..)| *name).collect();
        return Err(format!("unknown stage {unknown:?}; the stages are {}", stages.join(", ")));
    }
    if let Some(unknown) =
        flags.iter().find(|flag| !["--install", "--record", "--all"].contains(&flag.as_str()))
    {
        return Err(format!("{unknown}: unknown argument; usage: {USAGE}"));
    }
    let asked = |flag: &str| flags.iter().any(|given| *given == flag);
    let chosen = |Stage(name, ..): &&Stage| names.is_empty() || names.iter().any(|asked| asked == name);
    let chosen: Vec<&Stage> = STAGES.iter().filter(chosen).collect();
    let gate = Gate {
        share: if asked("--all") { Share::All } else { Share::OfCommit },
        binary: OnceLock::new(),
        is_built: chosen.iter().any(|Stage(name, ..)| *name == "build"),
    };
    let stages = Stages::default();
    std::thread::scope(|scope| {
        if asked("--install") {
            scope.spawn(|| install::run(&chosen.iter().map(|Stage(name, ..)| *name).collect::<Vec<_>>()));
        }
        let first = chosen.iter().filter(|Stage(_, turn, _)| *turn == First);
        first.for_each(|Stage(name, _, work)| stages.run(name, || work(&gate)));
    });
    run_stages(&chosen, &gate, &stages);
    if asked("--record") {
        stage_times::record(&stages.passed())?;
    }
    match stages.summary(&stage_times::recorded()) {
        true => Ok(()),
        false => std::process::exit(1),
    }
}

/// Runs the stages but the first: each of those that run beside others from the place where it stands in the list on. What a thread
/// starts inherits its nice value.
fn run_stages(chosen: &[&Stage], gate: &Gate, stages: &Stages) {
    let run = |Stage(name, _, work): &Stage| stages.run(name, || work(gate));
    let (beside, queue) = std::sync::mpsc::channel::<&Stage>();
    std::thread::scope(|scope| {
        scope.spawn(move || queue.iter().for_each(run));
        for stage in chosen {
            match stage.1 {
                InOrder => run(stage),
                Beside => {
                    // The receiver ends only after the sender; without a privilege all have the same priority.
                    let _ = beside.send(stage);
                    let _ = thread::set_nice(NICE_BESIDE_TESTS);
                }
                First | Last => {}
            }
        }
        drop(beside);
    });
    chosen.iter().filter(|stage| stage.1 == Last).for_each(|stage| run(stage));
}

/// What stages need to know.
struct Gate {
    share: Share,
    binary: OnceLock<Result<PathBuf, String>>,
    /// Whether the stage `build` has built the binary before the stages that use it.
    is_built: bool,
}

impl Gate {
    /// A stage that runs fiord's binary.
    fn with_binary(&self, stage: impl FnOnce(&Path) -> StageResult) -> StageResult {
        let built = self.binary.get_or_init(|| match self.is_built {
            true => compat::built(),
            false => compat::build(false),
        });
        match built {
            Ok(binary) => stage(binary),
            Err(why) => StageResult::Skipped(format!("no binary to run: {why}")),
        }
    }
}

fn cargo(args: &[&str]) -> StageResult {
    StageResult::of(stage::command(repo::cargo(args)))
}

/// What the README says, `cargo test`, and the tests of the chores; or one of them. All of the workspace at once, here and
/// where a stage builds its cases: what is compiled for fewer members has other features, and would be compiled again.
fn tests(alone: Option<&str>) -> Command {
    let mut cargo = repo::cargo(&["test", "--workspace", "--no-fail-fast"]);
    if let Some(name) = alone {
        cargo.args(["--", "--exact", name]);
    }
    cargo
}

/// The tests that need processors without other work.
fn quiet() -> StageResult {
    let result = test_run::tests(|alone| {
        let mut cargo =
            repo::cargo(&["test", "--workspace", "--test", "it", "--", "--test-threads=1", "--exact"]);
        match alone {
            Some(name) => cargo.arg(name),
            None => cargo.args(NEED_PROCESSORS),
        };
        cargo
    });
    match result {
        StageResult::Passed(tally)
            if tally.counts.passed + tally.counts.skipped != NEED_PROCESSORS.len() as u64 =>
        {
            StageResult::Failed(tally, format!("not all of these are tests: {}", NEED_PROCESSORS.join(", ")))
        }
        result => result,
    }
}

/// Checks all links in the documentation, including those of private items.
fn doc() -> StageResult {
    let args = ["doc", "--quiet", "--workspace", "--no-deps", "--document-private-items"];
    let mut cargo = repo::cargo(&args);
    cargo.env("RUSTDOCFLAGS", "-D warnings");
    StageResult::of(stage::command(cargo))
}

/// What a nightly compiler shows of code that shares memory: the tests of the crates with `unsafe`, with AddressSanitizer, and
/// those of what threads share without a lock, under Miri.
fn address_sanitizer() -> StageResult {
    let mut trial = Command::new("rustup");
    trial.args(["run", "nightly", "rustc", "--version"]);
    if !packages::quiet(&mut trial) {
        return StageResult::Skipped(
            "needs a nightly compiler: rustup toolchain install nightly".to_string(),
        );
    }
    match repo::host() {
        Ok(target) => sanitized(&target).and(memory_order()),
        Err(why) => StageResult::of(Err(why)),
    }
}

fn sanitized(target: &str) -> StageResult {
    test_run::tests(|alone| {
        let words = ["run", "nightly", "cargo", "test", "--no-fail-fast", "--target", target];
        let mut command = repo::command("rustup", &words);
        // Naming the target keeps the flag away from build scripts. Some tests leave hung threads (not leaks), request more
        // memory than there is, or raise SIGBUS.
        command
            .args(SANITIZED.iter().flat_map(|package| ["-p", package]))
            .args(["--lib", "--tests"])
            .args(repo::UNOPTIMIZED_LOOPS)
            .args(alone.iter().flat_map(|name| ["--", "--exact", name]))
            .env("RUSTFLAGS", "-Zsanitizer=address")
            .env("ASAN_OPTIONS", "detect_leaks=0:allocator_may_return_null=1:handle_sigbus=0")
            .env("CARGO_PROFILE_DEV_DEBUG", "line-tables-only")
            .env("CARGO_TARGET_DIR", repo::target_dir().join("address-sanitizer"));
        command
    })
}

/// The tests of what threads share without a lock, under Miri, which lets each thread see memory as the language permits:
/// an emulator of ARM orders it as this machine does.
fn memory_order() -> StageResult {
    if !packages::quiet(&mut repo::command("rustup", &["run", "nightly", "cargo", "miri", "--version"])) {
        return StageResult::Skipped("needs Miri: rustup +nightly component add miri rust-src".to_string());
    }
    test_run::tests(|alone| {
        let words = ["run", "nightly", "cargo", "miri", "test", "--no-fail-fast", "--lib"];
        let mut command = repo::command("rustup", &words);
        command
            .args(SHARING.iter().flat_map(|package| ["-p", package]))
            .args(["--", alone.unwrap_or("memory_order::")])
            // Files and clocks are those of this machine; the system's calls take addresses as integers.
            .env("MIRIFLAGS", "-Zmiri-disable-isolation -Zmiri-permissive-provenance")
            .env("CARGO_PROFILE_DEV_DEBUG", "0")
            .env("CARGO_TARGET_DIR", repo::target_dir().join("miri"));
        command
    })
}
